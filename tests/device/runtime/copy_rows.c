#include "tests/device/runtime/runtime.h"

struct sides {
    CUmemorytype to, from;
};

static bool sides_of(enum cudaMemcpyKind kind, struct sides *out)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        *out = (struct sides){CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST};
        return true;
    case cudaMemcpyHostToDevice:
        *out = (struct sides){CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
        return true;
    case cudaMemcpyDeviceToHost:
        *out = (struct sides){CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE};
        return true;
    case cudaMemcpyDeviceToDevice:
        *out = (struct sides){CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE};
        return true;
    case cudaMemcpyDefault:
        *out = (struct sides){CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED};
        return true;
    default:
        return false;
    }
}

static cudaError_t rows_of(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                           enum cudaMemcpyKind kind, CUDA_MEMCPY2D *out)
{
    struct sides sides;
    if (!sides_of(kind, &sides))
        return cudaErrorInvalidMemcpyDirection;
    if (width > to_pitch || width > from_pitch)
        return cudaErrorInvalidPitchValue;
    *out = (CUDA_MEMCPY2D){
        .srcMemoryType = sides.from,
        .srcHost = from,
        .srcDevice = (CUdeviceptr)from,
        .srcPitch = from_pitch,
        .dstMemoryType = sides.to,
        .dstHost = to,
        .dstDevice = (CUdeviceptr)to,
        .dstPitch = to_pitch,
        .WidthInBytes = width,
        .Height = height,
    };
    return cudaSuccess;
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D rows;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = rows_of(to, to_pitch, from, from_pitch, width, height, kind, &rows);
    if (error != cudaSuccess)
        return runtime_record(error);
    return runtime_result(driver.cuMemcpy2DUnaligned_v2(&rows));
}

cudaError_t cudaMemcpy2D_ptds(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D rows;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = rows_of(to, to_pitch, from, from_pitch, width, height, kind, &rows);
    if (error != cudaSuccess)
        return runtime_record(error);
    return runtime_result(driver.cuMemcpy2DUnaligned_v2_ptds(&rows));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D rows;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = rows_of(to, to_pitch, from, from_pitch, width, height, kind, &rows);
    if (error != cudaSuccess)
        return runtime_record(error);
    return runtime_result(driver.cuMemcpy2DAsync_v2(&rows, stream));
}

cudaError_t cudaMemcpy2DAsync_ptsz(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                   size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D rows;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = rows_of(to, to_pitch, from, from_pitch, width, height, kind, &rows);
    if (error != cudaSuccess)
        return runtime_record(error);
    return runtime_result(driver.cuMemcpy2DAsync_v2_ptsz(&rows, stream));
}

cudaError_t runtime_box(const struct cudaMemcpy3DParms *params, CUDA_MEMCPY3D *out)
{
    struct sides sides;
    if (params == NULL)
        return cudaErrorInvalidValue;
    if (params->srcArray != NULL || params->dstArray != NULL)
        return cudaErrorNotSupported;
    if (!sides_of(params->kind, &sides))
        return cudaErrorInvalidMemcpyDirection;
    const struct cudaPitchedPtr *from = &params->srcPtr, *to = &params->dstPtr;
    *out = (CUDA_MEMCPY3D){
        .srcMemoryType = sides.from,
        .srcHost = from->ptr,
        .srcDevice = (CUdeviceptr)from->ptr,
        .srcPitch = from->pitch,
        .srcHeight = from->ysize,
        .srcXInBytes = params->srcPos.x,
        .srcY = params->srcPos.y,
        .srcZ = params->srcPos.z,
        .dstMemoryType = sides.to,
        .dstHost = to->ptr,
        .dstDevice = (CUdeviceptr)to->ptr,
        .dstPitch = to->pitch,
        .dstHeight = to->ysize,
        .dstXInBytes = params->dstPos.x,
        .dstY = params->dstPos.y,
        .dstZ = params->dstPos.z,
        .WidthInBytes = params->extent.width,
        .Height = params->extent.height,
        .Depth = params->extent.depth,
    };
    return cudaSuccess;
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D box;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = runtime_box(params, &box);
    return error != cudaSuccess ? runtime_record(error) : runtime_result(driver.cuMemcpy3D_v2(&box));
}

cudaError_t cudaMemcpy3D_ptds(const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D box;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = runtime_box(params, &box);
    return error != cudaSuccess ? runtime_record(error) : runtime_result(driver.cuMemcpy3D_v2_ptds(&box));
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *params, cudaStream_t stream)
{
    CUDA_MEMCPY3D box;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = runtime_box(params, &box);
    return error != cudaSuccess ? runtime_record(error) : runtime_result(driver.cuMemcpy3DAsync_v2(&box, stream));
}

cudaError_t cudaMemcpy3DAsync_ptsz(const struct cudaMemcpy3DParms *params, cudaStream_t stream)
{
    CUDA_MEMCPY3D box;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = runtime_box(params, &box);
    return error != cudaSuccess ? runtime_record(error) : runtime_result(driver.cuMemcpy3DAsync_v2_ptsz(&box, stream));
}
