#include "tests/device/driver.h"
#include "tests/device/capture.h"
#include "tests/device/context.h"
#include "tests/device/memory.h"
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
    struct stream *stream = stream_create(context, flags, priority);
    context_begin_stream(context, stream);
    *out = (CUstream)stream;
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

TWIN(cuStreamSynchronize, _ptsz, (CUstream handle), (per_thread(handle)))

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

TWIN(cuStreamQuery, _ptsz, (CUstream handle), (per_thread(handle)))

#define QUESTION(name, type, answer)                                                                                   \
    CUresult name(CUstream handle, type *out)                                                                          \
    {                                                                                                                  \
        struct context *context;                                                                                       \
        struct stream *stream;                                                                                         \
        CUresult result = stream_enter(handle, &context, &stream);                                                     \
        if (result == CUDA_SUCCESS && out == NULL)                                                                     \
            result = CUDA_ERROR_INVALID_VALUE;                                                                         \
        if (result == CUDA_SUCCESS)                                                                                    \
            *out = answer;                                                                                             \
        return result;                                                                                                 \
    }                                                                                                                  \
    TWIN(name, _ptsz, (CUstream stream, type * out), (per_thread(stream), out))

QUESTION(cuStreamGetFlags, unsigned int, stream->flags)
QUESTION(cuStreamGetPriority, int, stream->priority)
QUESTION(cuStreamGetId, unsigned long long, stream->id)
QUESTION(cuStreamGetCtx, CUcontext, (CUcontext)stream->context)
QUESTION(cuStreamGetDevice, CUdevice, stream->context->device)

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

TWIN(cuLaunchHostFunc, _ptsz, (CUstream handle, CUhostFn function, void *data), (per_thread(handle), function, data))

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

TWIN(cuStreamAddCallback, _ptsz, (CUstream handle, CUstreamCallback function, void *data, unsigned int flags),
     (per_thread(handle), function, data, flags))

/* Managed memory belongs to every stream whatever is said: what is asked for is checked, and nothing is to be done. */
CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t bytes, unsigned int flags)
{
    struct context *context;
    struct stream *stream;
    struct allocation allocation;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!memory_find(address, &allocation) || !allocation.is_managed || (bytes != 0 && bytes != allocation.bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return flags == CU_MEM_ATTACH_SINGLE && stream->is_legacy ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

TWIN(cuStreamAttachMemAsync, _ptsz, (CUstream handle, CUdeviceptr address, size_t bytes, unsigned int flags),
     (per_thread(handle), address, bytes, flags))
