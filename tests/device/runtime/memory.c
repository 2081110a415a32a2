#include "tests/device/runtime/runtime.h"
#include <string.h>

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    *out = NULL;
    return bytes == 0 ? cudaSuccess : runtime_result(driver.cuMemAlloc_v2((CUdeviceptr *)out, bytes));
}

cudaError_t cudaFree(void *memory)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || memory == NULL)
        return error;
    return runtime_result(driver.cuMemFree_v2((CUdeviceptr)memory));
}

cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (out == NULL || pitch == NULL)
        return runtime_record(cudaErrorInvalidValue);
    return runtime_result(driver.cuMemAllocPitch_v2((CUdeviceptr *)out, pitch, width, height, 16));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    *out = (struct cudaPitchedPtr){.xsize = extent.width, .ysize = extent.height};
    return cudaMallocPitch(&out->ptr, &out->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned int flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (out == NULL || bytes == 0)
        return runtime_record(cudaErrorInvalidValue);
    return runtime_result(driver.cuMemAllocManaged((CUdeviceptr *)out, bytes, flags));
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    *out = NULL;
    return bytes == 0 ? cudaSuccess : runtime_result(driver.cuMemHostAlloc(out, bytes, flags));
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    return cudaHostAlloc(out, bytes, 0);
}

cudaError_t cudaFreeHost(void *memory)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || memory == NULL)
        return error;
    return runtime_result(driver.cuMemFreeHost(memory));
}

FORWARD(cudaHostRegister, (void *memory, size_t bytes, unsigned int flags), cuMemHostRegister_v2(memory, bytes, flags))
FORWARD(cudaHostUnregister, (void *memory), cuMemHostUnregister(memory))
FORWARD(cudaHostGetDevicePointer, (void **device, void *host, unsigned int flags),
        cuMemHostGetDevicePointer_v2((CUdeviceptr *)device, host, flags))
FORWARD(cudaHostGetFlags, (unsigned int *flags, void *host), cuMemHostGetFlags(flags, host))
FORWARD(cudaMemGetInfo, (size_t * free_bytes, size_t *total), cuMemGetInfo_v2(free_bytes, total))

cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    *out = NULL;
    return bytes == 0 ? cudaSuccess : runtime_result(driver.cuMemAllocAsync((CUdeviceptr *)out, bytes, stream));
}

cudaError_t cudaMallocAsync_ptsz(void **out, size_t bytes, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    *out = NULL;
    return bytes == 0 ? cudaSuccess : runtime_result(driver.cuMemAllocAsync_ptsz((CUdeviceptr *)out, bytes, stream));
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    return runtime_result(driver.cuMemAllocFromPoolAsync((CUdeviceptr *)out, bytes, pool, stream));
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    return runtime_result(driver.cuMemAllocFromPoolAsync_ptsz((CUdeviceptr *)out, bytes, pool, stream));
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || memory == NULL)
        return error;
    return runtime_result(driver.cuMemFreeAsync((CUdeviceptr)memory, stream));
}

cudaError_t cudaFreeAsync_ptsz(void *memory, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || memory == NULL)
        return error;
    return runtime_result(driver.cuMemFreeAsync_ptsz((CUdeviceptr)memory, stream));
}

FORWARD_LOADED(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), cuDeviceGetDefaultMemPool(pool, device))
FORWARD_LOADED(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device), cuDeviceGetMemPool(pool, device))
FORWARD_LOADED(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool), cuDeviceSetMemPool(device, pool))

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    cudaError_t error = runtime_load();
    if (error != cudaSuccess)
        return error;
    _Static_assert(sizeof *properties == sizeof(CUmemPoolProps), "the pool properties differ");
    return runtime_result(driver.cuMemPoolCreate(pool, (const CUmemPoolProps *)properties));
}

FORWARD_LOADED(cudaMemPoolDestroy, (cudaMemPool_t pool), cuMemPoolDestroy(pool))
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc) &&
                   (int)cudaMemLocationTypeDevice == (int)CU_MEM_LOCATION_TYPE_DEVICE,
               "the descriptions differ");
FORWARD_LOADED(cudaMemPoolSetAccess, (cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count),
               cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)list, count))
FORWARD_LOADED(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), cuMemPoolTrimTo(pool, keep))
FORWARD_LOADED(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
               cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, value))
FORWARD_LOADED(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
               cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, value))

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *address)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    unsigned type = 0, is_managed = 0;
    int device = 0;
    CUdeviceptr at_device = 0;
    void *at_host = NULL;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *answers[] = {&type, &is_managed, &device, &at_device, &at_host};
    error = runtime_result(driver.cuPointerGetAttributes(5, asked, answers, (CUdeviceptr)address));
    if (error != cudaSuccess)
        return error;
    memset(out, 0, sizeof *out);
    out->type = is_managed ? cudaMemoryTypeManaged : (enum cudaMemoryType)type;
    out->device = device;
    out->devicePointer = (void *)at_device;
    out->hostPointer = type == 0 ? (void *)address : at_host;
    return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void *address, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    CUmemLocation place = {.type = (CUmemLocationType)location.type, .id = location.id};
    return runtime_result(driver.cuMemAdvise_v2((CUdeviceptr)address, bytes, (CUmem_advise)advice, place));
}

cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, struct cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    CUmemLocation place = {.type = (CUmemLocationType)location.type, .id = location.id};
    return runtime_result(driver.cuMemPrefetchAsync_v2((CUdeviceptr)address, bytes, place, flags, stream));
}

cudaError_t cudaMemPrefetchAsync_ptsz(const void *address, size_t bytes, struct cudaMemLocation location,
                                      unsigned int flags, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    CUmemLocation place = {.type = (CUmemLocationType)location.type, .id = location.id};
    return runtime_result(driver.cuMemPrefetchAsync_v2_ptsz((CUdeviceptr)address, bytes, place, flags, stream));
}
