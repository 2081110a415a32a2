#include "tests/apps/device.h"
#include <stdio.h>
#include <stdlib.h>

void device_check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    if (error == cudaErrorMemoryAllocation) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

void device_launched(const char *kernel)
{
    device_check(cudaGetLastError(), kernel);
}

void *device_make_bytes(size_t bytes)
{
    void *memory = nullptr;
    device_check(cudaMalloc(&memory, bytes), "allocate device memory");
    return memory;
}

void device_free_bytes(void *memory)
{
    if (memory)
        device_check(cudaFree(memory), "free device memory");
}
