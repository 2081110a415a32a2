/* Copies of rows and boxes (cuMemcpy2D*, cuMemcpy3D*). CUDA arrays are not supported. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"

static CUresult side(CUmemorytype type, const void *host, CUdeviceptr device, uint64_t *out)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        *out = (uint64_t)host;
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        *out = device;
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult check_sides(CUmemorytype to_type, CUmemorytype from_type, const struct copy_work *copy)
{
    CUresult result = CUDA_SUCCESS;
    if (to_type == CU_MEMORYTYPE_DEVICE)
        result = copy_check_device(copy->destination, copy->width);
    if (result == CUDA_SUCCESS && from_type == CU_MEMORYTYPE_DEVICE)
        result = copy_check_device(copy->source, copy->width);
    return result;
}

CUresult copy_of_box(const CUDA_MEMCPY3D *box, struct copy_work *out)
{
    uint64_t to = 0, from = 0;
    CUresult result = side(box->dstMemoryType, box->dstHost, box->dstDevice, &to);
    if (result == CUDA_SUCCESS)
        result = side(box->srcMemoryType, box->srcHost, box->srcDevice, &from);
    if (result != CUDA_SUCCESS)
        return result;
    if (to == 0 || from == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct copy_work copy = {
        .width = box->WidthInBytes,
        .height = box->Height,
        .depth = box->Depth,
        .destination_pitch = box->dstPitch != 0 ? box->dstPitch : box->WidthInBytes,
        .source_pitch = box->srcPitch != 0 ? box->srcPitch : box->WidthInBytes,
    };
    copy.destination_slice = copy.destination_pitch * (box->dstHeight != 0 ? box->dstHeight : box->Height);
    copy.source_slice = copy.source_pitch * (box->srcHeight != 0 ? box->srcHeight : box->Height);
    copy.destination = to + box->dstZ * copy.destination_slice + box->dstY * copy.destination_pitch + box->dstXInBytes;
    copy.source = from + box->srcZ * copy.source_slice + box->srcY * copy.source_pitch + box->srcXInBytes;
    *out = copy;
    return check_sides(box->dstMemoryType, box->srcMemoryType, &copy);
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
