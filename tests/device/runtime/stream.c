#include "tests/device/runtime/runtime.h"

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamDestroy_v2(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamSynchronize(stream));
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamSynchronize_ptsz(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    CUresult result = driver.cuStreamQuery(stream);
    return result == CUDA_ERROR_NOT_READY ? cudaErrorNotReady : runtime_result(result);
}

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    CUresult result = driver.cuStreamQuery_ptsz(stream);
    return result == CUDA_ERROR_NOT_READY ? cudaErrorNotReady : runtime_result(result);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamWaitEvent_ptsz(stream, event, flags));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status));
}

cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamIsCapturing_ptsz(stream, (CUstreamCaptureStatus *)status));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamGetFlags(stream, flags));
}

cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned int *flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamGetFlags_ptsz(stream, flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamGetPriority(stream, priority));
}

cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int *priority)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamGetPriority_ptsz(stream, priority));
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamGetId(stream, id));
}

cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long *id)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamGetId_ptsz(stream, id));
}

/* The program's callback speaks the runtime's error codes, which are the driver's numbers. */
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamAddCallback(stream, (CUstreamCallback)(void *)callback, data, flags));
}

cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                       unsigned int flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamAddCallback_ptsz(stream, (CUstreamCallback)(void *)callback, data, flags));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuCtxGetStreamPriorityRange(least, greatest));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuEventCreate(event, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuEventDestroy_v2(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuEventRecord(event, stream));
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuEventRecord_ptsz(event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuEventRecordWithFlags(event, stream, flags));
}

cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuEventRecordWithFlags_ptsz(event, stream, flags));
}

/* Not ready is an answer here, not an error to be kept. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    CUresult result = driver.cuEventQuery(event);
    return result == CUDA_ERROR_NOT_READY ? cudaErrorNotReady : runtime_result(result);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuEventSynchronize(event));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuEventElapsedTime(milliseconds, begin, end));
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamGetDevice(stream, device));
}

cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int *device)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuStreamGetDevice_ptsz(stream, device));
}
