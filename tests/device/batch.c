/* Batches of copies: all checked, then submitted in one step. Within a batch no order is promised. */
#include "tests/device/driver.h"
#include "tests/device/array.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"
#include "tests/device/settings.h"

struct batch {
    struct work *first;
    bool must_wait; /* a source that may go after the call could not be taken */
};

/* New work goes to the front or, for the adversary, sometimes behind the first. */
static void put(struct batch *batch, struct work *work)
{
    bool is_second = settings()->jitter != 0 && batch->first != NULL && (work->copy.destination >> 9) % 2 != 0;
    struct work **link = is_second ? &batch->first->next : &batch->first;
    work->next = *link;
    *link = work;
}

static bool is_access_order(CUmemcpySrcAccessOrder order)
{
    return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
           order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

static CUresult add(struct batch *batch, const struct copy_work *copy, CUmemcpySrcAccessOrder order, unsigned flags)
{
    struct work *work;
    if (!is_access_order(order) || flags > CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = copy_make_work(copy, &work);
    if (result != CUDA_SUCCESS)
        return result;
    if (order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && !copy_take_source(work))
        batch->must_wait = true;
    put(batch, work);
    return CUDA_SUCCESS;
}

/* The stream of a batch: any but the legacy one. */
static CUresult enter(CUstream handle, struct stream **stream)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS && (handle == NULL || handle == CU_STREAM_LEGACY))
        result = CUDA_ERROR_INVALID_VALUE;
    return result != CUDA_SUCCESS ? result : stream_find(context, handle, stream);
}

static CUresult submit(struct batch *batch, struct stream *stream)
{
    CUresult result = CUDA_SUCCESS;
    if (batch->first == NULL)
        return CUDA_SUCCESS;
    if (stream->capture == NULL) {
        work_submit_chain(stream, batch->first);
        if (batch->must_wait)
            stream_wait(stream);
        return stream->context->error;
    }
    for (struct work *work = batch->first, *next; work != NULL; work = next) {
        next = work->next;
        work->next = NULL;
        if (result == CUDA_SUCCESS)
            result = work_take(stream, work);
        else
            work_discard(work);
    }
    return result;
}

/* Each set of attributes begins at a copy behind the one before, the first at the first copy. */
static bool are_attributes_placed(const size_t *indices, size_t attribute_count, size_t count)
{
    if (attribute_count == 0 || attribute_count > count || indices[0] != 0)
        return false;
    for (size_t i = 1; i < attribute_count; i++)
        if (indices[i] <= indices[i - 1])
            return false;
    return indices[attribute_count - 1] < count;
}

static CUresult copy_rows(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                          CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count, size_t *failed,
                          CUstream handle)
{
    struct stream *stream;
    struct batch batch = {0};
    size_t unused, set = 0;
    failed = failed != NULL ? failed : &unused;
    *failed = SIZE_MAX;
    CUresult result = enter(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (to == NULL || from == NULL || sizes == NULL || attributes == NULL || indices == NULL || count == 0 ||
        !are_attributes_placed(indices, attribute_count, count))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        if (set + 1 < attribute_count && indices[set + 1] == i)
            set++;
        struct copy_work copy = {.destination = to[i], .source = from[i], .width = sizes[i], .height = 1, .depth = 1};
        if (sizes[i] == 0 || to[i] == 0 || from[i] == 0)
            result = CUDA_ERROR_INVALID_VALUE;
        else
            result = add(&batch, &copy, attributes[set].srcAccessOrder, attributes[set].flags);
        if (result != CUDA_SUCCESS)
            *failed = i;
    }
    if (result == CUDA_SUCCESS)
        return submit(&batch, stream);
    work_discard(batch.first);
    return result;
}

/* ---- boxes ---- */

static size_t element_bytes(const CUmemcpy3DOperand *operand)
{
    struct array *array;
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY || array_find(operand->op.array.array, &array) != CUDA_SUCCESS)
        return 1;
    return array->element_bytes;
}

/* One side of the operation, in the terms of CUDA_MEMCPY3D. */
struct operand {
    CUmemorytype type;
    CUdeviceptr memory;
    CUarray array;
    size_t pitch, rows, x, y, z;
};

static CUresult read_operand(const CUmemcpy3DOperand *from, const CUextent3D *extent, size_t element,
                             struct operand *out)
{
    if (from->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        const CUoffset3D *offset = &from->op.array.offset;
        *out = (struct operand){.type = CU_MEMORYTYPE_ARRAY,
                                .array = from->op.array.array,
                                .x = offset->x * element,
                                .y = offset->y,
                                .z = offset->z};
        return CUDA_SUCCESS;
    }
    size_t row = from->op.ptr.rowLength, rows = from->op.ptr.layerHeight;
    if (from->type != CU_MEMCPY_OPERAND_TYPE_POINTER || (row != 0 && row < extent->width) ||
        (rows != 0 && rows < extent->height))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct operand){
        .type = CU_MEMORYTYPE_UNIFIED, .memory = from->op.ptr.ptr, .pitch = row * element, .rows = rows};
    return CUDA_SUCCESS;
}

static CUresult add_box(struct batch *batch, const CUDA_MEMCPY3D_BATCH_OP *operation)
{
    struct operand to, from;
    struct copy_work copy;
    const CUextent3D *extent = &operation->extent;
    size_t to_element = element_bytes(&operation->dst), from_element = element_bytes(&operation->src);
    size_t element = to_element > from_element ? to_element : from_element;
    if (extent->width == 0 || extent->height == 0 || extent->depth == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = read_operand(&operation->dst, extent, element, &to);
    if (result == CUDA_SUCCESS)
        result = read_operand(&operation->src, extent, element, &from);
    if (result != CUDA_SUCCESS)
        return result;
    CUDA_MEMCPY3D box = {.srcXInBytes = from.x,
                         .srcY = from.y,
                         .srcZ = from.z,
                         .srcMemoryType = from.type,
                         .srcDevice = from.memory,
                         .srcArray = from.array,
                         .srcPitch = from.pitch,
                         .srcHeight = from.rows,
                         .dstXInBytes = to.x,
                         .dstY = to.y,
                         .dstZ = to.z,
                         .dstMemoryType = to.type,
                         .dstDevice = to.memory,
                         .dstArray = to.array,
                         .dstPitch = to.pitch,
                         .dstHeight = to.rows,
                         .WidthInBytes = extent->width * element,
                         .Height = extent->height,
                         .Depth = extent->depth};
    result = copy_of_box(&box, &copy);
    return result != CUDA_SUCCESS ? result : add(batch, &copy, operation->srcAccessOrder, operation->flags);
}

static CUresult copy_boxes(size_t count, CUDA_MEMCPY3D_BATCH_OP *operations, size_t *failed, unsigned long long flags,
                           CUstream handle)
{
    struct stream *stream;
    struct batch batch = {0};
    size_t unused;
    failed = failed != NULL ? failed : &unused;
    *failed = SIZE_MAX;
    CUresult result = enter(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (operations == NULL || count == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = add_box(&batch, &operations[i]);
        if (result != CUDA_SUCCESS)
            *failed = i;
    }
    if (result == CUDA_SUCCESS)
        return submit(&batch, stream);
    work_discard(batch.first);
    return result;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count, size_t *failed,
                            CUstream stream)
{
    return copy_rows(to, from, sizes, count, attributes, indices, attribute_count, failed, stream);
}

TWIN(cuMemcpyBatchAsync, _ptsz,
     (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t count, CUmemcpyAttributes *attributes, size_t *indices,
      size_t attribute_count, size_t *failed, CUstream stream),
     (to, from, sizes, count, attributes, indices, attribute_count, failed, per_thread(stream)))

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count, CUstream stream)
{
    return copy_rows(to, from, sizes, count, attributes, indices, attribute_count, NULL, stream);
}

TWIN(cuMemcpyBatchAsync_v2, _ptsz,
     (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t count, CUmemcpyAttributes *attributes, size_t *indices,
      size_t attribute_count, CUstream stream),
     (to, from, sizes, count, attributes, indices, attribute_count, per_thread(stream)))

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *operations, size_t *failed,
                              unsigned long long flags, CUstream stream)
{
    return copy_boxes(count, operations, failed, flags, stream);
}

TWIN(cuMemcpy3DBatchAsync, _ptsz,
     (size_t count, CUDA_MEMCPY3D_BATCH_OP *operations, size_t *failed, unsigned long long flags, CUstream stream),
     (count, operations, failed, flags, per_thread(stream)))

CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *operations, unsigned long long flags,
                                 CUstream stream)
{
    return copy_boxes(count, operations, NULL, flags, stream);
}

TWIN(cuMemcpy3DBatchAsync_v2, _ptsz,
     (size_t count, CUDA_MEMCPY3D_BATCH_OP *operations, unsigned long long flags, CUstream stream),
     (count, operations, flags, per_thread(stream)))
