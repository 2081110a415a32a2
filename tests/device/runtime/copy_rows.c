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

/* A call for rows or a box: what it asks for is turned into the driver's struct, then given to the driver. */
#define COPY(name, parameters, type, convert, call)                                                                    \
    cudaError_t name parameters                                                                                        \
    {                                                                                                                  \
        type copy;                                                                                                     \
        cudaError_t error = runtime_enter();                                                                           \
        if (error == cudaSuccess)                                                                                      \
            error = runtime_record(convert);                                                                           \
        return error != cudaSuccess ? error : runtime_result(driver.call);                                             \
    }

#define ROWS                                                                                                           \
    void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,                       \
        enum cudaMemcpyKind kind
#define OF_ROWS rows_of(to, to_pitch, from, from_pitch, width, height, kind, &copy)

COPY(cudaMemcpy2D, (ROWS), CUDA_MEMCPY2D, OF_ROWS, cuMemcpy2DUnaligned_v2(&copy))
COPY(cudaMemcpy2D_ptds, (ROWS), CUDA_MEMCPY2D, OF_ROWS, cuMemcpy2DUnaligned_v2_ptds(&copy))
COPY(cudaMemcpy2DAsync, (ROWS, cudaStream_t stream), CUDA_MEMCPY2D, OF_ROWS, cuMemcpy2DAsync_v2(&copy, stream))
COPY(cudaMemcpy2DAsync_ptsz, (ROWS, cudaStream_t stream), CUDA_MEMCPY2D, OF_ROWS,
     cuMemcpy2DAsync_v2_ptsz(&copy, stream))

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

COPY(cudaMemcpy3D, (const struct cudaMemcpy3DParms *params), CUDA_MEMCPY3D, runtime_box(params, &copy),
     cuMemcpy3D_v2(&copy))
COPY(cudaMemcpy3D_ptds, (const struct cudaMemcpy3DParms *params), CUDA_MEMCPY3D, runtime_box(params, &copy),
     cuMemcpy3D_v2_ptds(&copy))
COPY(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *params, cudaStream_t stream), CUDA_MEMCPY3D,
     runtime_box(params, &copy), cuMemcpy3DAsync_v2(&copy, stream))
COPY(cudaMemcpy3DAsync_ptsz, (const struct cudaMemcpy3DParms *params, cudaStream_t stream), CUDA_MEMCPY3D,
     runtime_box(params, &copy), cuMemcpy3DAsync_v2_ptsz(&copy, stream))

/* Between devices: both sides are device memory, wherever it is. */
static cudaError_t peers_of(const struct cudaMemcpy3DPeerParms *params, CUDA_MEMCPY3D_PEER *out)
{
    CUDA_MEMCPY3D box;
    if (params == NULL)
        return cudaErrorInvalidValue;
    struct cudaMemcpy3DParms same = {.srcArray = params->srcArray,
                                     .srcPos = params->srcPos,
                                     .srcPtr = params->srcPtr,
                                     .dstArray = params->dstArray,
                                     .dstPos = params->dstPos,
                                     .dstPtr = params->dstPtr,
                                     .extent = params->extent,
                                     .kind = cudaMemcpyDeviceToDevice};
    CUcontext from, to;
    cudaError_t error = runtime_box(&same, &box);
    if (error == cudaSuccess)
        error = (cudaError_t)runtime_primary(params->srcDevice, &from);
    if (error == cudaSuccess)
        error = (cudaError_t)runtime_primary(params->dstDevice, &to);
    if (error != cudaSuccess)
        return error;
    *out = (CUDA_MEMCPY3D_PEER){.srcXInBytes = box.srcXInBytes,
                                .srcY = box.srcY,
                                .srcZ = box.srcZ,
                                .srcMemoryType = box.srcMemoryType,
                                .srcDevice = box.srcDevice,
                                .srcContext = from,
                                .srcPitch = box.srcPitch,
                                .srcHeight = box.srcHeight,
                                .dstXInBytes = box.dstXInBytes,
                                .dstY = box.dstY,
                                .dstZ = box.dstZ,
                                .dstMemoryType = box.dstMemoryType,
                                .dstDevice = box.dstDevice,
                                .dstContext = to,
                                .dstPitch = box.dstPitch,
                                .dstHeight = box.dstHeight,
                                .WidthInBytes = box.WidthInBytes,
                                .Height = box.Height,
                                .Depth = box.Depth};
    return cudaSuccess;
}

COPY(cudaMemcpy3DPeer, (const struct cudaMemcpy3DPeerParms *params), CUDA_MEMCPY3D_PEER, peers_of(params, &copy),
     cuMemcpy3DPeer(&copy))
COPY(cudaMemcpy3DPeer_ptds, (const struct cudaMemcpy3DPeerParms *params), CUDA_MEMCPY3D_PEER, peers_of(params, &copy),
     cuMemcpy3DPeer_ptds(&copy))
COPY(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *params, cudaStream_t stream), CUDA_MEMCPY3D_PEER,
     peers_of(params, &copy), cuMemcpy3DPeerAsync(&copy, stream))
COPY(cudaMemcpy3DPeerAsync_ptsz, (const struct cudaMemcpy3DPeerParms *params, cudaStream_t stream), CUDA_MEMCPY3D_PEER,
     peers_of(params, &copy), cuMemcpy3DPeerAsync_ptsz(&copy, stream))
