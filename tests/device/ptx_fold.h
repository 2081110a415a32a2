#pragma once
#include "tests/device/ptx.h"

void ptx_fold_constants(struct ptx_arena *arena, struct ptx_function *function);
