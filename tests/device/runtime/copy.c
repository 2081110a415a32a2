#include "tests/device/runtime/runtime.h"
#include <string.h>

/* The driver's functions for one way of copying: blocking or in a stream, legacy or per-thread. */
static CUresult copy_blocking(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, bool is_per_thread)
{
    CUdeviceptr device_to = (CUdeviceptr)to, device_from = (CUdeviceptr)from;
    switch (kind) {
    case cudaMemcpyHostToHost:
        memmove(to, from, bytes);
        return CUDA_SUCCESS;
    case cudaMemcpyHostToDevice:
        return (is_per_thread ? driver.cuMemcpyHtoD_v2_ptds : driver.cuMemcpyHtoD_v2)(device_to, from, bytes);
    case cudaMemcpyDeviceToHost:
        return (is_per_thread ? driver.cuMemcpyDtoH_v2_ptds : driver.cuMemcpyDtoH_v2)(to, device_from, bytes);
    case cudaMemcpyDeviceToDevice:
        return (is_per_thread ? driver.cuMemcpyDtoD_v2_ptds : driver.cuMemcpyDtoD_v2)(device_to, device_from, bytes);
    case cudaMemcpyDefault:
        return (is_per_thread ? driver.cuMemcpy_ptds : driver.cuMemcpy)(device_to, device_from, bytes);
    default:
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    }
}

static CUresult copy_streamed(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream,
                              bool is_per_thread)
{
    CUdeviceptr device_to = (CUdeviceptr)to, device_from = (CUdeviceptr)from;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return (is_per_thread ? driver.cuMemcpyHtoDAsync_v2_ptsz : driver.cuMemcpyHtoDAsync_v2)(device_to, from, bytes,
                                                                                                stream);
    case cudaMemcpyDeviceToHost:
        return (is_per_thread ? driver.cuMemcpyDtoHAsync_v2_ptsz : driver.cuMemcpyDtoHAsync_v2)(to, device_from, bytes,
                                                                                                stream);
    case cudaMemcpyDeviceToDevice:
        return (is_per_thread ? driver.cuMemcpyDtoDAsync_v2_ptsz : driver.cuMemcpyDtoDAsync_v2)(device_to, device_from,
                                                                                                bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return (is_per_thread ? driver.cuMemcpyAsync_ptsz : driver.cuMemcpyAsync)(device_to, device_from, bytes,
                                                                                  stream);
    default:
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    }
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || bytes == 0)
        return error;
    return runtime_result(copy_blocking(to, from, bytes, kind, false));
}

cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || bytes == 0)
        return error;
    return runtime_result(copy_blocking(to, from, bytes, kind, true));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || bytes == 0)
        return error;
    return runtime_result(copy_streamed(to, from, bytes, kind, stream, false));
}

cudaError_t cudaMemcpyAsync_ptsz(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                 cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || bytes == 0)
        return error;
    return runtime_result(copy_streamed(to, from, bytes, kind, stream, true));
}

/* The contexts of both devices. */
static cudaError_t enter_peers(int to_device, int from_device, CUcontext *to, CUcontext *from)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    CUresult result = runtime_primary(to_device, to);
    if (result == CUDA_SUCCESS)
        result = runtime_primary(from_device, from);
    return runtime_result(result);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    CUcontext to_context, from_context;
    cudaError_t error = enter_peers(to_device, from_device, &to_context, &from_context);
    if (error != cudaSuccess || bytes == 0)
        return error;
    return runtime_result(driver.cuMemcpyPeer((CUdeviceptr)to, to_context, (CUdeviceptr)from, from_context, bytes));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream)
{
    CUcontext to_context, from_context;
    cudaError_t error = enter_peers(to_device, from_device, &to_context, &from_context);
    if (error != cudaSuccess || bytes == 0)
        return error;
    return runtime_result(
        driver.cuMemcpyPeerAsync((CUdeviceptr)to, to_context, (CUdeviceptr)from, from_context, bytes, stream));
}

/* Address of the bytes [offset, offset + bytes) of a registered variable. */
static cudaError_t in_symbol(const void *symbol, size_t offset, size_t bytes, void **address)
{
    CUdeviceptr base = 0;
    size_t room = 0;
    cudaError_t error = runtime_enter();
    if (error == cudaSuccess)
        error = runtime_record(registered_variable(symbol, &base, &room));
    if (error != cudaSuccess)
        return error;
    if (offset > room || bytes > room - offset)
        return runtime_record(cudaErrorInvalidValue);
    *address = (void *)(base + offset);
    return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    void *to;
    cudaError_t error = in_symbol(symbol, offset, bytes, &to);
    return error != cudaSuccess ? error : cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemcpyToSymbol_ptds(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    enum cudaMemcpyKind kind)
{
    void *to;
    cudaError_t error = in_symbol(symbol, offset, bytes, &to);
    return error != cudaSuccess ? error : cudaMemcpy_ptds(to, from, bytes, kind);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *to;
    cudaError_t error = in_symbol(symbol, offset, bytes, &to);
    return error != cudaSuccess ? error : cudaMemcpyAsync(to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void *symbol, const void *from, size_t bytes, size_t offset,
                                         enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *to;
    cudaError_t error = in_symbol(symbol, offset, bytes, &to);
    return error != cudaSuccess ? error : cudaMemcpyAsync_ptsz(to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
    void *from;
    cudaError_t error = in_symbol(symbol, offset, bytes, &from);
    return error != cudaSuccess ? error : cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemcpyFromSymbol_ptds(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind)
{
    void *from;
    cudaError_t error = in_symbol(symbol, offset, bytes, &from);
    return error != cudaSuccess ? error : cudaMemcpy_ptds(to, from, bytes, kind);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *from;
    cudaError_t error = in_symbol(symbol, offset, bytes, &from);
    return error != cudaSuccess ? error : cudaMemcpyAsync(to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void *to, const void *symbol, size_t bytes, size_t offset,
                                           enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *from;
    cudaError_t error = in_symbol(symbol, offset, bytes, &from);
    return error != cudaSuccess ? error : cudaMemcpyAsync_ptsz(to, from, bytes, kind, stream);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || bytes == 0)
        return error;
    return runtime_result(driver.cuMemsetD8_v2((CUdeviceptr)to, (unsigned char)value, bytes));
}

cudaError_t cudaMemset_ptds(void *to, int value, size_t bytes)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || bytes == 0)
        return error;
    return runtime_result(driver.cuMemsetD8_v2_ptds((CUdeviceptr)to, (unsigned char)value, bytes));
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || bytes == 0)
        return error;
    return runtime_result(driver.cuMemsetD8Async((CUdeviceptr)to, (unsigned char)value, bytes, stream));
}

cudaError_t cudaMemsetAsync_ptsz(void *to, int value, size_t bytes, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess || bytes == 0)
        return error;
    return runtime_result(driver.cuMemsetD8Async_ptsz((CUdeviceptr)to, (unsigned char)value, bytes, stream));
}

FORWARD(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height),
        cuMemsetD2D8_v2((CUdeviceptr)to, pitch, (unsigned char)value, width, height))
FORWARD(cudaMemset2D_ptds, (void *to, size_t pitch, int value, size_t width, size_t height),
        cuMemsetD2D8_v2_ptds((CUdeviceptr)to, pitch, (unsigned char)value, width, height))
FORWARD(cudaMemset2DAsync, (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
        cuMemsetD2D8Async((CUdeviceptr)to, pitch, (unsigned char)value, width, height, stream))
FORWARD(cudaMemset2DAsync_ptsz, (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
        cuMemsetD2D8Async_ptsz((CUdeviceptr)to, pitch, (unsigned char)value, width, height, stream))

/* Slice by slice: the rows of one slice follow each other at the pitch. */
static cudaError_t fill_box(struct cudaPitchedPtr to, int value, struct cudaExtent extent, cudaStream_t stream,
                            __typeof__(cuMemsetD2D8Async) *fill_rows)
{
    cudaError_t error = runtime_enter();
    CUresult result = CUDA_SUCCESS;
    if (error != cudaSuccess)
        return error;
    for (size_t z = 0; z < extent.depth && result == CUDA_SUCCESS; z++)
        result = fill_rows((CUdeviceptr)to.ptr + z * to.pitch * to.ysize, to.pitch, (unsigned char)value, extent.width,
                           extent.height, stream);
    return runtime_result(result);
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
    if (runtime_enter() != cudaSuccess)
        return cudaPeekAtLastError();
    return fill_box(to, value, extent, cudaStreamLegacy, driver.cuMemsetD2D8Async);
}

cudaError_t cudaMemset3D_ptds(struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
    if (runtime_enter() != cudaSuccess)
        return cudaPeekAtLastError();
    return fill_box(to, value, extent, cudaStreamPerThread, driver.cuMemsetD2D8Async);
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent, cudaStream_t stream)
{
    if (runtime_enter() != cudaSuccess)
        return cudaPeekAtLastError();
    return fill_box(to, value, extent, stream, driver.cuMemsetD2D8Async);
}

cudaError_t cudaMemset3DAsync_ptsz(struct cudaPitchedPtr to, int value, struct cudaExtent extent, cudaStream_t stream)
{
    if (runtime_enter() != cudaSuccess)
        return cudaPeekAtLastError();
    return fill_box(to, value, extent, stream, driver.cuMemsetD2D8Async_ptsz);
}
