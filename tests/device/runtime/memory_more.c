/* Memory between processes, batches, and what managed memory and pools can be asked. */
#include "tests/device/runtime/runtime.h"
#include <string.h>

#define SAME_SIZE(one, other) _Static_assert(sizeof(one) == sizeof(other), #one " and " #other " differ")

SAME_SIZE(cudaIpcMemHandle_t, CUipcMemHandle);
SAME_SIZE(cudaIpcEventHandle_t, CUipcEventHandle);
SAME_SIZE(struct cudaMemPoolPtrExportData, CUmemPoolPtrExportData);
SAME_SIZE(struct cudaMemAccessDesc, CUmemAccessDesc);
SAME_SIZE(struct cudaMemLocation, CUmemLocation);
SAME_SIZE(struct cudaMemcpyAttributes, CUmemcpyAttributes);
SAME_SIZE(struct cudaMemcpy3DBatchOp, CUDA_MEMCPY3D_BATCH_OP);

/* Each with its per-thread-stream twin, which the driver has as well. */
#define BOTH(name, parameters, call, arguments)                                                                        \
    FORWARD(name, parameters, call arguments)                                                                          \
    FORWARD(name##_ptsz, parameters, call##_ptsz arguments)

/* ---- between processes ---- */

FORWARD(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *memory),
        cuIpcGetMemHandle((CUipcMemHandle *)handle, (CUdeviceptr)memory))
FORWARD(cudaIpcCloseMemHandle, (void *memory), cuIpcCloseMemHandle((CUdeviceptr)memory))
FORWARD(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event),
        cuIpcGetEventHandle((CUipcEventHandle *)handle, event))

cudaError_t cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned int flags)
{
    CUipcMemHandle same;
    cudaError_t error = runtime_enter();
    memcpy(&same, &handle, sizeof same);
    return error != cudaSuccess ? error
                                : runtime_result(driver.cuIpcOpenMemHandle_v2((CUdeviceptr *)memory, same, flags));
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle same;
    cudaError_t error = runtime_enter();
    memcpy(&same, &handle, sizeof same);
    return error != cudaSuccess ? error : runtime_result(driver.cuIpcOpenEventHandle(event, same));
}

FORWARD_LOADED(cudaMemPoolExportToShareableHandle,
               (void *out, cudaMemPool_t pool, enum cudaMemAllocationHandleType type, unsigned int flags),
               cuMemPoolExportToShareableHandle(out, pool, (CUmemAllocationHandleType)type, flags))
FORWARD(cudaMemPoolImportFromShareableHandle,
        (cudaMemPool_t * pool, void *handle, enum cudaMemAllocationHandleType type, unsigned int flags),
        cuMemPoolImportFromShareableHandle(pool, handle, (CUmemAllocationHandleType)type, flags))
FORWARD(cudaMemPoolExportPointer, (struct cudaMemPoolPtrExportData * out, void *memory),
        cuMemPoolExportPointer((CUmemPoolPtrExportData *)out, (CUdeviceptr)memory))
FORWARD(cudaMemPoolImportPointer, (void **memory, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *from),
        cuMemPoolImportPointer((CUdeviceptr *)memory, pool, (CUmemPoolPtrExportData *)from))

/* ---- pools ---- */

FORWARD_LOADED(cudaMemPoolGetAccess,
               (enum cudaMemAccessFlags * flags, cudaMemPool_t pool, struct cudaMemLocation *location),
               cuMemPoolGetAccess((CUmemAccess_flags *)flags, pool, (CUmemLocation *)location))
FORWARD_LOADED(cudaMemGetDefaultMemPool,
               (cudaMemPool_t * pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
               cuMemGetDefaultMemPool(pool, (CUmemLocation *)location, (CUmemAllocationType)type))
FORWARD_LOADED(cudaMemGetMemPool,
               (cudaMemPool_t * pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
               cuMemGetMemPool(pool, (CUmemLocation *)location, (CUmemAllocationType)type))
FORWARD_LOADED(cudaMemSetMemPool,
               (struct cudaMemLocation * location, enum cudaMemAllocationType type, cudaMemPool_t pool),
               cuMemSetMemPool((CUmemLocation *)location, (CUmemAllocationType)type, pool))

/* ---- managed memory ---- */

FORWARD(cudaMemRangeGetAttribute,
        (void *data, size_t data_bytes, enum cudaMemRangeAttribute attribute, const void *memory, size_t bytes),
        cuMemRangeGetAttribute(data, data_bytes, (CUmem_range_attribute)attribute, (CUdeviceptr)memory, bytes))
FORWARD(cudaMemRangeGetAttributes,
        (void **data, size_t *sizes, enum cudaMemRangeAttribute *attributes, size_t count, const void *memory,
         size_t bytes),
        cuMemRangeGetAttributes(data, sizes, (CUmem_range_attribute *)attributes, count, (CUdeviceptr)memory, bytes))
BOTH(cudaMemPrefetchBatchAsync,
     (void **memory, size_t *sizes, size_t count, struct cudaMemLocation *locations, size_t *indices,
      size_t location_count, unsigned long long flags, cudaStream_t stream),
     cuMemPrefetchBatchAsync,
     ((CUdeviceptr *)memory, sizes, count, (CUmemLocation *)locations, indices, location_count, flags, stream))
BOTH(cudaMemDiscardBatchAsync,
     (void **memory, size_t *sizes, size_t count, unsigned long long flags, cudaStream_t stream),
     cuMemDiscardBatchAsync, ((CUdeviceptr *)memory, sizes, count, flags, stream))
BOTH(cudaMemDiscardAndPrefetchBatchAsync,
     (void **memory, size_t *sizes, size_t count, struct cudaMemLocation *locations, size_t *indices,
      size_t location_count, unsigned long long flags, cudaStream_t stream),
     cuMemDiscardAndPrefetchBatchAsync,
     ((CUdeviceptr *)memory, sizes, count, (CUmemLocation *)locations, indices, location_count, flags, stream))

/* ---- batches of copies ---- */

BOTH(cudaMemcpyBatchAsync,
     (void *const *to, const void *const *from, const size_t *sizes, size_t count,
      struct cudaMemcpyAttributes *attributes, size_t *indices, size_t attribute_count, cudaStream_t stream),
     cuMemcpyBatchAsync_v2,
     ((CUdeviceptr *)to, (CUdeviceptr *)from, (size_t *)sizes, count, (CUmemcpyAttributes *)attributes, indices,
      attribute_count, stream))
BOTH(cudaMemcpy3DBatchAsync,
     (size_t count, struct cudaMemcpy3DBatchOp *operations, unsigned long long flags, cudaStream_t stream),
     cuMemcpy3DBatchAsync_v2, (count, (CUDA_MEMCPY3D_BATCH_OP *)operations, flags, stream))
