#include "tests/device/driver.h"
#include "tests/device/capture.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"
#include "tests/device/stream.h"

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (priority > 0)
        priority = 0;
    if (priority < -5)
        priority = -5;
    *out = (CUstream)stream_create(context, flags, priority);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
    return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    struct context *context;
    struct stream *stream;
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!stream_is_handle(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = stream_find(context, handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    stream_destroy(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream handle)
{
    return cuStreamDestroy_v2(handle);
}

CUresult cuStreamSynchronize(CUstream handle)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != NULL)
        return capture_refuse(stream);
    stream_wait(stream);
    return stream->context->error;
}

CUresult cuStreamSynchronize_ptsz(CUstream handle)
{
    return cuStreamSynchronize(per_thread(handle));
}

CUresult cuStreamQuery(CUstream handle)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != NULL)
        return capture_refuse(stream);
    if (!stream_is_idle(stream))
        return CUDA_ERROR_NOT_READY;
    return context->error;
}

CUresult cuStreamQuery_ptsz(CUstream handle)
{
    return cuStreamQuery(per_thread(handle));
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags_ptsz(CUstream handle, unsigned int *flags)
{
    return cuStreamGetFlags(per_thread(handle), flags);
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (priority == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority_ptsz(CUstream handle, int *priority)
{
    return cuStreamGetPriority(per_thread(handle), priority);
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *id = stream->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId_ptsz(CUstream handle, unsigned long long *id)
{
    return cuStreamGetId(per_thread(handle), id);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *out)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)stream->context;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_ptsz(CUstream handle, CUcontext *out)
{
    return cuStreamGetCtx(per_thread(handle), out);
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice_ptsz(CUstream handle, CUdevice *device)
{
    return cuStreamGetDevice(per_thread(handle), device);
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (function == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct work *work = work_new(WORK_HOST);
    work->host.function = function;
    work->host.data = data;
    return work_take(stream, work);
}

CUresult cuLaunchHostFunc_ptsz(CUstream handle, CUhostFn function, void *data)
{
    return cuLaunchHostFunc(per_thread(handle), function, data);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void *data, unsigned int flags)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (function == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct work *work = work_new(WORK_CALLBACK);
    work->callback.function = function;
    work->callback.data = data;
    return work_take(stream, work);
}

CUresult cuStreamAddCallback_ptsz(CUstream handle, CUstreamCallback function, void *data, unsigned int flags)
{
    return cuStreamAddCallback(per_thread(handle), function, data, flags);
}

static CUresult submit_value(CUstream handle, enum work_kind kind, CUdeviceptr address, uint64_t value, unsigned flags,
                             bool is_wide)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    size_t bytes = is_wide ? 8 : 4;
    if (address % bytes != 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = copy_check_device(address, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    struct work *work = work_new(kind);
    work->value = (struct value_work){address, value, flags, is_wide};
    return work_take(stream, work);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
    return submit_value(stream, WORK_VALUE_WRITE, address, value, flags, false);
}

CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
    return submit_value(per_thread(stream), WORK_VALUE_WRITE, address, value, flags, false);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
    return submit_value(stream, WORK_VALUE_WRITE, address, value, flags, true);
}

CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
    return submit_value(per_thread(stream), WORK_VALUE_WRITE, address, value, flags, true);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
    return submit_value(stream, WORK_VALUE_WAIT, address, value, flags, false);
}

CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
    return submit_value(per_thread(stream), WORK_VALUE_WAIT, address, value, flags, false);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
    return submit_value(stream, WORK_VALUE_WAIT, address, value, flags, true);
}

CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
    return submit_value(per_thread(stream), WORK_VALUE_WAIT, address, value, flags, true);
}

/* Unified memory belongs to every stream from the start. */
CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t bytes, unsigned int flags)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    (void)bytes;
    (void)flags;
    return result != CUDA_SUCCESS ? result : copy_check_device(address, 1);
}

CUresult cuStreamAttachMemAsync_ptsz(CUstream handle, CUdeviceptr address, size_t bytes, unsigned int flags)
{
    return cuStreamAttachMemAsync(per_thread(handle), address, bytes, flags);
}
