/* Runs the threads of one block through the regions of a kernel. Needs no lock and no heap: all state is in the block.
 */
#pragma once
#include "tests/device/ptx_run.h"

#include <stdbool.h>

/* seed 0: threads in their order. Else an order drawn from the seed, the same for the same seed. */
void ptx_schedule_block(const struct ptx_kernel *kernel, struct ptx_block *block, uint64_t seed);
