#include "tests/device/runtime/runtime.h"

FORWARD(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned int flags, int priority),
        cuStreamCreateWithPriority(stream, flags, priority))

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

FORWARD(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy_v2(stream))
FORWARD(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(stream))
FORWARD(cudaStreamSynchronize_ptsz, (cudaStream_t stream), cuStreamSynchronize_ptsz(stream))

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

FORWARD(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
        cuStreamWaitEvent(stream, event, flags))
FORWARD(cudaStreamWaitEvent_ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
        cuStreamWaitEvent_ptsz(stream, event, flags))
FORWARD(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
        cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status))
FORWARD(cudaStreamIsCapturing_ptsz, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
        cuStreamIsCapturing_ptsz(stream, (CUstreamCaptureStatus *)status))
FORWARD(cudaStreamGetFlags, (cudaStream_t stream, unsigned int *flags), cuStreamGetFlags(stream, flags))
FORWARD(cudaStreamGetFlags_ptsz, (cudaStream_t stream, unsigned int *flags), cuStreamGetFlags_ptsz(stream, flags))
FORWARD(cudaStreamGetPriority, (cudaStream_t stream, int *priority), cuStreamGetPriority(stream, priority))
FORWARD(cudaStreamGetPriority_ptsz, (cudaStream_t stream, int *priority), cuStreamGetPriority_ptsz(stream, priority))
FORWARD(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), cuStreamGetId(stream, id))
FORWARD(cudaStreamGetId_ptsz, (cudaStream_t stream, unsigned long long *id), cuStreamGetId_ptsz(stream, id))

/* The program's callback speaks the runtime's error codes, which are the driver's numbers. */
FORWARD(cudaStreamAddCallback, (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags),
        cuStreamAddCallback(stream, (CUstreamCallback)(void *)callback, data, flags))
FORWARD(cudaStreamAddCallback_ptsz,
        (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags),
        cuStreamAddCallback_ptsz(stream, (CUstreamCallback)(void *)callback, data, flags))
FORWARD(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), cuCtxGetStreamPriorityRange(least, greatest))
FORWARD(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags), cuEventCreate(event, flags))

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

FORWARD(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy_v2(event))
FORWARD(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord(event, stream))
FORWARD(cudaEventRecord_ptsz, (cudaEvent_t event, cudaStream_t stream), cuEventRecord_ptsz(event, stream))
FORWARD(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
        cuEventRecordWithFlags(event, stream, flags))
FORWARD(cudaEventRecordWithFlags_ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
        cuEventRecordWithFlags_ptsz(event, stream, flags))

/* Not ready is an answer here, not an error to be kept. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    CUresult result = driver.cuEventQuery(event);
    return result == CUDA_ERROR_NOT_READY ? cudaErrorNotReady : runtime_result(result);
}

FORWARD(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize(event))
FORWARD(cudaEventElapsedTime, (float *milliseconds, cudaEvent_t begin, cudaEvent_t end),
        cuEventElapsedTime(milliseconds, begin, end))
FORWARD(cudaStreamGetDevice, (cudaStream_t stream, int *device), cuStreamGetDevice(stream, device))
FORWARD(cudaStreamGetDevice_ptsz, (cudaStream_t stream, int *device), cuStreamGetDevice_ptsz(stream, device))
