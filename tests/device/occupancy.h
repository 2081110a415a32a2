#pragma once
#include "tests/device/module.h"

/* Blocks that fit on one processor at a time; 0 if not even one does. */
int occupancy_blocks(const struct function *function, int threads, size_t dynamic_shared_bytes);
