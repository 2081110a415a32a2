/* Copies of rows and boxes (cuMemcpy2D*, cuMemcpy3D*), between memory and arrays. */
#include "tests/device/driver.h"
#include "tests/device/array.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"

/* One side of a box copy: where it begins and how its rows and slices follow each other. */
struct side {
    uint64_t base;
    size_t pitch, slice;
    size_t element_bytes; /* of an array, else 1 */
};

/* How many bytes, rows and slices of what lies there the copy takes, from where. */
struct part {
    size_t x, y, z, width, height, depth;
};

static CUresult side_of_array(CUarray handle, const struct part *part, struct side *out)
{
    struct array *array;
    CUresult result = array_find(handle, &array);
    if (result != CUDA_SUCCESS)
        return result;
    if (part->x % array->element_bytes != 0 || part->width % array->element_bytes != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (part->x + part->width > array->row_bytes || part->y + part->height > array->rows ||
        part->z + part->depth > array->slices)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct side){array->memory, array->row_bytes, array->row_bytes * array->rows, array->element_bytes};
    return CUDA_SUCCESS;
}

static CUresult side_of_memory(uint64_t address, size_t pitch, size_t rows, const struct part *part, struct side *out)
{
    if (address == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (pitch == 0)
        pitch = part->width;
    *out = (struct side){address, pitch, pitch * (rows != 0 ? rows : part->height), 1};
    return CUDA_SUCCESS;
}

static CUresult side_of(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array, size_t pitch,
                        size_t rows, const struct part *part, struct side *out)
{
    CUresult result = CUDA_SUCCESS;
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        return side_of_memory((uint64_t)host, pitch, rows, part, out);
    case CU_MEMORYTYPE_DEVICE:
        result = copy_check_device(device, part->width);
        return result != CUDA_SUCCESS ? result : side_of_memory(device, pitch, rows, part, out);
    case CU_MEMORYTYPE_UNIFIED:
        return side_of_memory(device, pitch, rows, part, out);
    case CU_MEMORYTYPE_ARRAY:
        return side_of_array(array, part, out);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static uint64_t begin_of(const struct side *side, const struct part *part)
{
    return side->base + part->z * side->slice + part->y * side->pitch + part->x;
}

CUresult copy_of_box(const CUDA_MEMCPY3D *box, struct copy_work *out)
{
    struct side to, from;
    struct part to_part = {box->dstXInBytes, box->dstY, box->dstZ, box->WidthInBytes, box->Height, box->Depth};
    struct part from_part = {box->srcXInBytes, box->srcY, box->srcZ, box->WidthInBytes, box->Height, box->Depth};
    CUresult result = side_of(box->dstMemoryType, box->dstHost, box->dstDevice, box->dstArray, box->dstPitch,
                              box->dstHeight, &to_part, &to);
    if (result == CUDA_SUCCESS)
        result = side_of(box->srcMemoryType, box->srcHost, box->srcDevice, box->srcArray, box->srcPitch, box->srcHeight,
                         &from_part, &from);
    if (result != CUDA_SUCCESS)
        return result;
    if (to.element_bytes > 1 && from.element_bytes > 1 && to.element_bytes != from.element_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct copy_work){
        .destination = begin_of(&to, &to_part),
        .source = begin_of(&from, &from_part),
        .width = box->WidthInBytes,
        .height = box->Height,
        .depth = box->Depth,
        .destination_pitch = to.pitch,
        .source_pitch = from.pitch,
        .destination_slice = to.slice,
        .source_slice = from.slice,
    };
    return CUDA_SUCCESS;
}

static CUresult copy_box(const CUDA_MEMCPY3D *box, CUstream handle, bool is_synchronous)
{
    struct context *context;
    struct stream *stream;
    struct copy_work copy;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (box->WidthInBytes == 0 || box->Height == 0 || box->Depth == 0)
        return CUDA_SUCCESS;
    result = copy_of_box(box, &copy);
    return result != CUDA_SUCCESS ? result : copy_submit(context, stream, &copy, is_synchronous);
}

static CUresult copy_rectangle(const CUDA_MEMCPY2D *rows, CUstream stream, bool is_synchronous)
{
    if (rows == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D box = {
        .srcXInBytes = rows->srcXInBytes,
        .srcY = rows->srcY,
        .srcMemoryType = rows->srcMemoryType,
        .srcHost = rows->srcHost,
        .srcDevice = rows->srcDevice,
        .srcArray = rows->srcArray,
        .srcPitch = rows->srcPitch,
        .dstXInBytes = rows->dstXInBytes,
        .dstY = rows->dstY,
        .dstMemoryType = rows->dstMemoryType,
        .dstHost = rows->dstHost,
        .dstDevice = rows->dstDevice,
        .dstArray = rows->dstArray,
        .dstPitch = rows->dstPitch,
        .WidthInBytes = rows->WidthInBytes,
        .Height = rows->Height,
        .Depth = 1,
    };
    return copy_box(&box, stream, is_synchronous);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *rows)
{
    return copy_rectangle(rows, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *rows)
{
    return copy_rectangle(rows, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *rows)
{
    return copy_rectangle(rows, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *rows)
{
    return copy_rectangle(rows, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *rows, CUstream stream)
{
    return copy_rectangle(rows, stream, false);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *rows, CUstream stream)
{
    return copy_rectangle(rows, per_thread(stream), false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *box)
{
    return box == NULL ? CUDA_ERROR_INVALID_VALUE : copy_box(box, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *box)
{
    return box == NULL ? CUDA_ERROR_INVALID_VALUE : copy_box(box, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *box, CUstream stream)
{
    return box == NULL ? CUDA_ERROR_INVALID_VALUE : copy_box(box, stream, false);
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *box, CUstream stream)
{
    return box == NULL ? CUDA_ERROR_INVALID_VALUE : copy_box(box, per_thread(stream), false);
}

/* Between the memory of two contexts: the addresses say where it is, so the contexts need only be good. */
static CUresult copy_between(const CUDA_MEMCPY3D_PEER *peers, CUstream stream, bool is_synchronous)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS && peers == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && peers->srcMemoryType != CU_MEMORYTYPE_ARRAY)
        result = context_find(peers->srcContext, &context);
    if (result == CUDA_SUCCESS && peers->dstMemoryType != CU_MEMORYTYPE_ARRAY)
        result = context_find(peers->dstContext, &context);
    if (result != CUDA_SUCCESS)
        return result;
    CUDA_MEMCPY3D box = {
        .srcXInBytes = peers->srcXInBytes,
        .srcY = peers->srcY,
        .srcZ = peers->srcZ,
        .srcMemoryType = peers->srcMemoryType,
        .srcHost = peers->srcHost,
        .srcDevice = peers->srcDevice,
        .srcArray = peers->srcArray,
        .srcPitch = peers->srcPitch,
        .srcHeight = peers->srcHeight,
        .dstXInBytes = peers->dstXInBytes,
        .dstY = peers->dstY,
        .dstZ = peers->dstZ,
        .dstMemoryType = peers->dstMemoryType,
        .dstHost = peers->dstHost,
        .dstDevice = peers->dstDevice,
        .dstArray = peers->dstArray,
        .dstPitch = peers->dstPitch,
        .dstHeight = peers->dstHeight,
        .WidthInBytes = peers->WidthInBytes,
        .Height = peers->Height,
        .Depth = peers->Depth,
    };
    return copy_box(&box, stream, is_synchronous);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *peers)
{
    return copy_between(peers, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *peers)
{
    return copy_between(peers, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *peers, CUstream stream)
{
    return copy_between(peers, stream, false);
}

TWIN(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *peers, CUstream stream), (peers, per_thread(stream)))
