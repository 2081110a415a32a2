/* The plain copy calls. Every pair of a call and its per-thread-stream twin differs in what NULL means. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"

static CUresult copy_plain(uint64_t destination, uint64_t source, size_t bytes, CUstream handle, bool is_synchronous)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes > 0 && (destination == 0 || source == 0))
        return CUDA_ERROR_INVALID_VALUE;
    struct copy_work copy = {.destination = destination, .source = source, .width = bytes, .height = 1, .depth = 1};
    return copy_submit(context, stream, &copy, is_synchronous);
}

/* Calls whose names say which side is the device's: the address must be one that the device may touch. */
static CUresult copy_checked(CUdeviceptr device, size_t bytes, uint64_t destination, uint64_t source, CUstream handle,
                             bool is_synchronous)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS && bytes > 0)
        result = copy_check_device(device, bytes);
    return result != CUDA_SUCCESS ? result : copy_plain(destination, source, bytes, handle, is_synchronous);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_plain(to, from, bytes, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_plain(to, from, bytes, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_plain(to, from, bytes, stream, false);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_plain(to, from, bytes, per_thread(stream), false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return copy_checked(to, bytes, to, (uint64_t)from, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t bytes)
{
    return copy_checked(to, bytes, to, (uint64_t)from, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy_checked(to, bytes, to, (uint64_t)from, stream, false);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy_checked(to, bytes, to, (uint64_t)from, per_thread(stream), false);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return copy_checked(from, bytes, (uint64_t)to, from, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from, size_t bytes)
{
    return copy_checked(from, bytes, (uint64_t)to, from, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_checked(from, bytes, (uint64_t)to, from, stream, false);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_checked(from, bytes, (uint64_t)to, from, per_thread(stream), false);
}

static CUresult copy_device(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, bool is_synchronous)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS && bytes > 0)
        result = copy_check_device(to, bytes);
    return result != CUDA_SUCCESS ? result : copy_checked(from, bytes, to, from, stream, is_synchronous);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_device(to, from, bytes, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_device(to, from, bytes, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_device(to, from, bytes, stream, false);
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_device(to, from, bytes, per_thread(stream), false);
}

static CUresult check_peers(CUcontext to, CUcontext from)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = context_find(to, &context);
    return result != CUDA_SUCCESS ? result : context_find(from, &context);
}

/* Behind all work of both contexts, and before what is submitted to them later. */
static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                          CUstream stream)
{
    CUresult result = check_peers(to_context, from_context);
    if (result != CUDA_SUCCESS)
        return result;
    context_wait((struct context *)to_context);
    context_wait((struct context *)from_context);
    result = copy_device(to, from, bytes, stream, true);
    if (result == CUDA_SUCCESS && to_context != from_context)
        context_wait(context_current());
    return result;
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes)
{
    return copy_peer(to, to_context, from, from_context, bytes, CU_STREAM_LEGACY);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes)
{
    return copy_peer(to, to_context, from, from_context, bytes, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream)
{
    CUresult result = check_peers(to_context, from_context);
    return result != CUDA_SUCCESS ? result : copy_device(to, from, bytes, stream, false);
}

TWIN(cuMemcpyPeerAsync, _ptsz,
     (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream stream),
     (to, to_context, from, from_context, bytes, per_thread(stream)))
