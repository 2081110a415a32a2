/* Calls that let something beside launches, copies and sets reach an allocation: it is pinned, then they are
 * forwarded. One line per function: what it is called with, and which of its arguments is an address. */
#include "shim/hook.h"

#include "shim/touch.h"

#include "shim/inside.h"

static CUresult pin_all(const CUdeviceptr *list, size_t count, const char *reason)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; list && i < count && result == CUDA_SUCCESS; i++)
        result = engine_pin(list[i], reason);
    return result;
}

/* Whole functions; `pinned` is the result of pinning. */
#define PIN(name, parameters, arguments, pinned)                                                                       \
    CUresult hook_##name parameters                                                                                    \
    {                                                                                                                  \
        if (!gate_enter())                                                                                             \
            return driver.name arguments;                                                                              \
        CUresult result = pinned;                                                                                      \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = driver.name arguments;                                                                            \
        return gate_leave(result);                                                                                     \
    }

#define PIN_ON_STREAM(name, parameters, arguments, pinned)                                                             \
    static CUresult on_##name parameters                                                                               \
    {                                                                                                                  \
        if (!gate_enter())                                                                                             \
            return driver.name arguments;                                                                              \
        CUresult result = pinned;                                                                                      \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = driver.name arguments;                                                                            \
        return gate_leave(result);                                                                                     \
    }                                                                                                                  \
    STREAM_PAIR(name, parameters, arguments)

static const char by_stream[] = "a stream memory operation";

PIN_ON_STREAM(cuStreamWriteValue32, (CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned int flags),
              (stream, at, value, flags), engine_pin(at, by_stream))
PIN_ON_STREAM(cuStreamWriteValue32_v2, (CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned int flags),
              (stream, at, value, flags), engine_pin(at, by_stream))
PIN_ON_STREAM(cuStreamWriteValue64, (CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned int flags),
              (stream, at, value, flags), engine_pin(at, by_stream))
PIN_ON_STREAM(cuStreamWriteValue64_v2, (CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned int flags),
              (stream, at, value, flags), engine_pin(at, by_stream))
PIN_ON_STREAM(cuStreamWaitValue32, (CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned int flags),
              (stream, at, value, flags), engine_pin(at, by_stream))
PIN_ON_STREAM(cuStreamWaitValue32_v2, (CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned int flags),
              (stream, at, value, flags), engine_pin(at, by_stream))
PIN_ON_STREAM(cuStreamWaitValue64, (CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned int flags),
              (stream, at, value, flags), engine_pin(at, by_stream))
PIN_ON_STREAM(cuStreamWaitValue64_v2, (CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned int flags),
              (stream, at, value, flags), engine_pin(at, by_stream))
PIN_ON_STREAM(cuStreamBatchMemOp,
              (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *list, unsigned int flags),
              (stream, count, list, flags), touch_memory_operations(list, count))
PIN_ON_STREAM(cuStreamBatchMemOp_v2,
              (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *list, unsigned int flags),
              (stream, count, list, flags), touch_memory_operations(list, count))

static const char by_advice[] = "advice or prefetch";

PIN_ON_STREAM(cuMemPrefetchAsync, (CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream),
              (at, bytes, device, stream), engine_pin(at, by_advice))
PIN_ON_STREAM(cuMemPrefetchAsync_v2,
              (CUdeviceptr at, size_t bytes, CUmemLocation location, unsigned int flags, CUstream stream),
              (at, bytes, location, flags, stream), engine_pin(at, by_advice))
PIN_ON_STREAM(cuMemPrefetchBatchAsync,
              (CUdeviceptr * at, size_t *bytes, size_t count, CUmemLocation *locations, size_t *indices,
               size_t location_count, unsigned long long flags, CUstream stream),
              (at, bytes, count, locations, indices, location_count, flags, stream), pin_all(at, count, by_advice))
PIN_ON_STREAM(cuMemDiscardBatchAsync,
              (CUdeviceptr * at, size_t *bytes, size_t count, unsigned long long flags, CUstream stream),
              (at, bytes, count, flags, stream), pin_all(at, count, by_advice))
PIN_ON_STREAM(cuMemDiscardAndPrefetchBatchAsync,
              (CUdeviceptr * at, size_t *bytes, size_t count, CUmemLocation *locations, size_t *indices,
               size_t location_count, unsigned long long flags, CUstream stream),
              (at, bytes, count, locations, indices, location_count, flags, stream), pin_all(at, count, by_advice))
PIN_ON_STREAM(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr at, size_t bytes, unsigned int flags),
              (stream, at, bytes, flags), engine_pin(at, by_advice))
PIN(cuMemAdvise, (CUdeviceptr at, size_t bytes, CUmem_advise advice, CUdevice device), (at, bytes, advice, device),
    engine_pin(at, by_advice))
PIN(cuMemAdvise_v2, (CUdeviceptr at, size_t bytes, CUmem_advise advice, CUmemLocation location),
    (at, bytes, advice, location), engine_pin(at, by_advice))
PIN(cuMemRangeGetAttribute, (void *data, size_t size, CUmem_range_attribute attribute, CUdeviceptr at, size_t bytes),
    (data, size, attribute, at, bytes), engine_pin(at, by_advice))
PIN(cuMemRangeGetAttributes,
    (void **data, size_t *sizes, CUmem_range_attribute *attributes, size_t count, CUdeviceptr at, size_t bytes),
    (data, sizes, attributes, count, at, bytes), engine_pin(at, by_advice))

static CUresult pin_compressed(const CUmemDecompressParams *list, size_t count)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; list && i < count && result == CUDA_SUCCESS; i++) {
        CUdeviceptr touched[3] = {(CUdeviceptr)list[i].src, (CUdeviceptr)list[i].dst, (CUdeviceptr)list[i].dstActBytes};
        result = pin_all(touched, 3, "decompression");
    }
    return result;
}

PIN_ON_STREAM(cuMemBatchDecompressAsync,
              (CUmemDecompressParams * list, size_t count, unsigned int flags, size_t *failed, CUstream stream),
              (list, count, flags, failed, stream), pin_compressed(list, count))

static const char by_export[] = "it was exported to another process or device";

PIN(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr at), (handle, at), engine_pin(at, by_export))
PIN(cuMemPoolExportPointer, (CUmemPoolPtrExportData * data, CUdeviceptr at), (data, at), engine_pin(at, by_export))
PIN(cuMemGetHandleForAddressRange,
    (void *handle, CUdeviceptr at, size_t bytes, CUmemRangeHandleType type, unsigned long long flags),
    (handle, at, bytes, type, flags), engine_pin(at, by_export))
PIN(cuMulticastBindAddr,
    (CUmemGenericAllocationHandle multicast, size_t offset, CUdeviceptr at, size_t bytes, unsigned long long flags),
    (multicast, offset, at, bytes, flags), engine_pin(at, by_export))

static const char by_texture[] = "a texture reads it";

static CUresult pin_resource(const CUDA_RESOURCE_DESC *resource)
{
    if (resource && resource->resType == CU_RESOURCE_TYPE_LINEAR)
        return engine_pin(resource->res.linear.devPtr, by_texture);
    if (resource && resource->resType == CU_RESOURCE_TYPE_PITCH2D)
        return engine_pin(resource->res.pitch2D.devPtr, by_texture);
    return CUDA_SUCCESS;
}

PIN(cuTexObjectCreate,
    (CUtexObject * object, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
     const CUDA_RESOURCE_VIEW_DESC *view),
    (object, resource, texture, view), pin_resource(resource))
PIN(cuTexRefSetAddress_v2, (size_t * offset, CUtexref texture, CUdeviceptr at, size_t bytes),
    (offset, texture, at, bytes), engine_pin(at, by_texture))
PIN(cuTexRefSetAddress2D_v2, (CUtexref texture, const CUDA_ARRAY_DESCRIPTOR *layout, CUdeviceptr at, size_t pitch),
    (texture, layout, at, pitch), engine_pin(at, by_texture))
PIN(cuTexRefSetAddress2D_v3, (CUtexref texture, const CUDA_ARRAY_DESCRIPTOR *layout, CUdeviceptr at, size_t pitch),
    (texture, layout, at, pitch), engine_pin(at, by_texture))

static const char by_map[] = "a tensor map holds its address";

PIN(cuTensorMapEncodeTiled,
    (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *at, const cuuint64_t *dimensions,
     const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
    (map, type, rank, at, dimensions, strides, box, steps, interleave, swizzle, promotion, fill),
    engine_pin((CUdeviceptr)at, by_map))
PIN(cuTensorMapEncodeIm2col,
    (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *at, const cuuint64_t *dimensions,
     const cuuint64_t *strides, const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels,
     const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
    (map, type, rank, at, dimensions, strides, lower, upper, channels, pixels, steps, interleave, swizzle, promotion,
     fill),
    engine_pin((CUdeviceptr)at, by_map))
PIN(cuTensorMapEncodeIm2colWide,
    (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *at, const cuuint64_t *dimensions,
     const cuuint64_t *strides, int lower, int upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps,
     CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
    (map, type, rank, at, dimensions, strides, lower, upper, channels, pixels, steps, interleave, mode, swizzle,
     promotion, fill),
    engine_pin((CUdeviceptr)at, by_map))
PIN(cuTensorMapReplaceAddress, (CUtensorMap * map, void *at), (map, at), engine_pin((CUdeviceptr)at, by_map))
