/* Copies that are not modelled as operations: rows, volumes, arrays, batches, other devices. What they touch is
 * pinned, and the call goes to the driver as it came. */
#include "shim/hook.h"

#include "shim/touch.h"

#include "shim/inside.h"

#define COPY_STRUCT_NOW(name, type, touch)                                                                             \
    CUresult hook_##name(const type *copy)                                                                             \
    {                                                                                                                  \
        if (copy == NULL || !gate_enter())                                                                             \
            return driver.name(copy);                                                                                  \
        CUresult result = touch(copy);                                                                                 \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = engine_after_sync(driver.name(copy));                                                             \
        return gate_leave(result);                                                                                     \
    }                                                                                                                  \
    CUresult hook_##name##_ptds(const type *copy)                                                                      \
    {                                                                                                                  \
        if (copy == NULL || !gate_enter())                                                                             \
            return driver.name##_ptds(copy);                                                                           \
        CUresult result = touch(copy);                                                                                 \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = engine_after_sync(driver.name##_ptds(copy));                                                      \
        return gate_leave(result);                                                                                     \
    }

#define COPY_STRUCT_LATER(name, type, touch)                                                                           \
    static CUresult on_##name(const type *copy, CUstream stream)                                                       \
    {                                                                                                                  \
        if (copy == NULL || !gate_enter())                                                                             \
            return driver.name(copy, stream);                                                                          \
        CUresult result = touch(copy);                                                                                 \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = driver.name(copy, stream);                                                                        \
        return gate_leave(result);                                                                                     \
    }                                                                                                                  \
    STREAM_PAIR(name, (const type *copy, CUstream stream), (copy, stream))

COPY_STRUCT_NOW(cuMemcpy2D_v2, CUDA_MEMCPY2D, touch_copy_2d)
COPY_STRUCT_NOW(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, touch_copy_2d)
COPY_STRUCT_NOW(cuMemcpy3D_v2, CUDA_MEMCPY3D, touch_copy_3d)
COPY_STRUCT_NOW(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, touch_copy_3d_peer)
COPY_STRUCT_LATER(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, touch_copy_2d)
COPY_STRUCT_LATER(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, touch_copy_3d)
COPY_STRUCT_LATER(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, touch_copy_3d_peer)

static const char with_array[] = "a copy to or from an array";

static CUresult touch_device(CUdeviceptr address)
{
    return engine_pin(address, with_array);
}

static CUresult touch_host(const void *from, size_t bytes)
{
    return engine_scan(from, bytes, 0);
}

/* `parameters` in parentheses, the arguments as the driver wants them, and what is touched. */
#define ARRAY_COPY_NOW(name, parameters, arguments, touched)                                                           \
    CUresult hook_##name parameters                                                                                    \
    {                                                                                                                  \
        if (!gate_enter())                                                                                             \
            return driver.name arguments;                                                                              \
        CUresult result = touched;                                                                                     \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = engine_after_sync(driver.name arguments);                                                         \
        return gate_leave(result);                                                                                     \
    }                                                                                                                  \
    CUresult hook_##name##_ptds parameters                                                                             \
    {                                                                                                                  \
        if (!gate_enter())                                                                                             \
            return driver.name##_ptds arguments;                                                                       \
        CUresult result = touched;                                                                                     \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = engine_after_sync(driver.name##_ptds arguments);                                                  \
        return gate_leave(result);                                                                                     \
    }

ARRAY_COPY_NOW(cuMemcpyDtoA_v2, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes), (to, offset, from, bytes),
               touch_device(from))
ARRAY_COPY_NOW(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes), (to, from, offset, bytes),
               touch_device(to))
ARRAY_COPY_NOW(cuMemcpyHtoA_v2, (CUarray to, size_t offset, const void *from, size_t bytes), (to, offset, from, bytes),
               touch_host(from, bytes))
ARRAY_COPY_NOW(cuMemcpyAtoH_v2, (void *to, CUarray from, size_t offset, size_t bytes), (to, from, offset, bytes),
               CUDA_SUCCESS)

static CUresult on_cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream)
{
    if (!gate_enter())
        return driver.cuMemcpyHtoAAsync_v2(to, offset, from, bytes, stream);
    CUresult result = touch_host(from, bytes);
    if (result == CUDA_SUCCESS)
        result = driver.cuMemcpyHtoAAsync_v2(to, offset, from, bytes, stream);
    return gate_leave(result);
}

STREAM_PAIR(cuMemcpyHtoAAsync_v2, (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream),
            (to, offset, from, bytes, stream))

static CUresult on_cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream)
{
    if (!gate_enter())
        return driver.cuMemcpyAtoHAsync_v2(to, from, offset, bytes, stream);
    return gate_leave(driver.cuMemcpyAtoHAsync_v2(to, from, offset, bytes, stream));
}

STREAM_PAIR(cuMemcpyAtoHAsync_v2, (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream),
            (to, from, offset, bytes, stream))

static CUresult touch_two(CUdeviceptr to, CUdeviceptr from)
{
    CUresult result = engine_pin(to, "a copy between devices");
    if (result == CUDA_SUCCESS)
        result = engine_pin(from, "a copy between devices");
    return result;
}

ARRAY_COPY_NOW(cuMemcpyPeer,
               (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes),
               (to, to_context, from, from_context, bytes), touch_two(to, from))

static CUresult on_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                     size_t bytes, CUstream stream)
{
    if (!gate_enter())
        return driver.cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream);
    CUresult result = touch_two(to, from);
    if (result == CUDA_SUCCESS)
        result = driver.cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream);
    return gate_leave(result);
}

STREAM_PAIR(cuMemcpyPeerAsync,
            (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
             CUstream stream),
            (to, to_context, from, from_context, bytes, stream))

static CUresult touch_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes, size_t count)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; to && from && bytes && i < count && result == CUDA_SUCCESS; i++)
        result = touch_copy(&(struct touch_copy){
            .from = {.type = CU_MEMORYTYPE_UNIFIED, .device = from[i]},
            .to = {.type = CU_MEMORYTYPE_UNIFIED, .device = to[i]},
            .width_bytes = bytes[i],
            .rows = 1,
            .layers = 1,
        });
    return result;
}

static CUresult on_cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                      CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count,
                                      size_t *failed, CUstream stream)
{
    if (!gate_enter())
        return driver.cuMemcpyBatchAsync(to, from, bytes, count, attributes, indices, attribute_count, failed, stream);
    CUresult result = touch_batch(to, from, bytes, count);
    if (result == CUDA_SUCCESS)
        result =
            driver.cuMemcpyBatchAsync(to, from, bytes, count, attributes, indices, attribute_count, failed, stream);
    return gate_leave(result);
}

STREAM_PAIR(cuMemcpyBatchAsync,
            (CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t count, CUmemcpyAttributes *attributes,
             size_t *indices, size_t attribute_count, size_t *failed, CUstream stream),
            (to, from, bytes, count, attributes, indices, attribute_count, failed, stream))

static CUresult on_cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                         CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count,
                                         CUstream stream)
{
    if (!gate_enter())
        return driver.cuMemcpyBatchAsync_v2(to, from, bytes, count, attributes, indices, attribute_count, stream);
    CUresult result = touch_batch(to, from, bytes, count);
    if (result == CUDA_SUCCESS)
        result = driver.cuMemcpyBatchAsync_v2(to, from, bytes, count, attributes, indices, attribute_count, stream);
    return gate_leave(result);
}

STREAM_PAIR(cuMemcpyBatchAsync_v2,
            (CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t count, CUmemcpyAttributes *attributes,
             size_t *indices, size_t attribute_count, CUstream stream),
            (to, from, bytes, count, attributes, indices, attribute_count, stream))

/* Rows are counted in elements: bytes between two pointers. Beside an array they are larger, and the first bytes
 * of each row are what can safely be searched. */
static CUresult touch_operand(const CUmemcpy3DOperand *operand)
{
    return operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER
               ? engine_pin(operand->op.ptr.ptr, "a batch of copies of volumes")
               : CUDA_SUCCESS;
}

static CUresult touch_volumes(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; list && i < count && result == CUDA_SUCCESS; i++) {
        const CUextent3D *extent = &list[i].extent;
        const CUmemcpy3DOperand *from = &list[i].src;
        result = touch_operand(from);
        if (result == CUDA_SUCCESS)
            result = touch_operand(&list[i].dst);
        if (result == CUDA_SUCCESS && from->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
            result = touch_copy(&(struct touch_copy){
                .from = {.type = CU_MEMORYTYPE_UNIFIED,
                         .device = from->op.ptr.ptr,
                         .pitch = from->op.ptr.rowLength,
                         .height = from->op.ptr.layerHeight},
                .to = {.type = CU_MEMORYTYPE_DEVICE},
                .width_bytes = extent->width,
                .rows = extent->height,
                .layers = extent->depth,
            });
    }
    return result;
}

static CUresult on_cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,
                                        unsigned long long flags, CUstream stream)
{
    if (!gate_enter())
        return driver.cuMemcpy3DBatchAsync(count, list, failed, flags, stream);
    CUresult result = touch_volumes(list, count);
    if (result == CUDA_SUCCESS)
        result = driver.cuMemcpy3DBatchAsync(count, list, failed, flags, stream);
    return gate_leave(result);
}

STREAM_PAIR(cuMemcpy3DBatchAsync,
            (size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags, CUstream stream),
            (count, list, failed, flags, stream))

static CUresult on_cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags,
                                           CUstream stream)
{
    if (!gate_enter())
        return driver.cuMemcpy3DBatchAsync_v2(count, list, flags, stream);
    CUresult result = touch_volumes(list, count);
    if (result == CUDA_SUCCESS)
        result = driver.cuMemcpy3DBatchAsync_v2(count, list, flags, stream);
    return gate_leave(result);
}

STREAM_PAIR(cuMemcpy3DBatchAsync_v2,
            (size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream),
            (count, list, flags, stream))
