#pragma once
#include <stdint.h>

/* malloc and free of kernels: at most 8 MiB at a time, as CUDA's default heap; NULL beyond. A pointer that is not from
 * here is left alone. */
void *ptx_heap_take(uint64_t bytes);
void ptx_heap_give(void *memory);
