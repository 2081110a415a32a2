/* A CPU device of 8 MiB in frames of 64 KiB, with a current context, for tests that link the driver. */
#pragma once
#include "tests/device/driver.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define FRAME        ((size_t)65536)
#define DEVICE_BYTES (128 * FRAME)

#define succeeds(call)     assert_int_equal(call, CUDA_SUCCESS)
#define fails(call, error) assert_int_equal(call, error)

static inline int start_device(void **state)
{
    (void)state;
    setenv("CPUDEV_MEMORY", "8MiB", 1);
    setenv("CPUDEV_GRANULARITY", "64KiB", 1);
    CUcontext context;
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS)
        return -1;
    return cuCtxSetCurrent(context) == CUDA_SUCCESS ? 0 : -1;
}

static inline size_t free_bytes(void)
{
    size_t bytes = 0;
    succeeds(cuMemGetInfo_v2(&bytes, NULL));
    return bytes;
}

static inline CUmemAllocationProp device_memory(void)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
}

static inline CUresult set_access(CUdeviceptr base, size_t bytes, CUmemAccess_flags flags)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, .flags = flags};
    return cuMemSetAccess(base, bytes, &access, 1);
}
