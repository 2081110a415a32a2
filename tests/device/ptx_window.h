#pragma once
#include <stddef.h>
#include <stdint.h>

/* Shared memory of the block that the calling thread runs: `bytes` at the least, 64-byte aligned, the same at every
 * call. It lies in a window of 4 GiB of which nothing else is mapped, so that a kernel which leaves its shared memory
 * faults as it would on a GPU, and touches nothing of the process. NULL where the address space does not allow it. */
uint8_t *ptx_shared_window(size_t bytes);
