/* What streams can be told about the work to come, and events of whole contexts. */
#include "tests/device/driver.h"
#include "tests/device/capture.h"
#include "tests/device/context.h"
#include "tests/device/event.h"
#include <stdlib.h>
#include <string.h>

static bool is_stream_attribute(CUstreamAttrID id)
{
    return id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW || id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
           id == CU_LAUNCH_ATTRIBUTE_PRIORITY || id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
           id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN || id == CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
}

static CUresult check(CUstreamAttrID id, const CUstreamAttrValue *value)
{
    if (value == NULL || !is_stream_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY &&
        (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC))
        return CUDA_ERROR_INVALID_VALUE;
    /* CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE is 0, MEM_SYNC_DOMAIN_COUNT 1. */
    if (id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW && value->accessPolicyWindow.num_bytes != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static void set(struct stream *stream, CUstreamAttrID id, const CUstreamAttrValue *value)
{
    if (stream->attributes == NULL)
        stream->attributes = calloc(STREAM_ATTRIBUTES, sizeof *stream->attributes);
    if (stream->attributes == NULL)
        abort();
    stream->attributes[id] = *value;
    if (id != CU_LAUNCH_ATTRIBUTE_PRIORITY)
        return;
    queue_lock();
    stream->priority = value->priority > 0 ? 0 : value->priority < -5 ? -5 : value->priority;
    queue_unlock();
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue *value)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result == CUDA_SUCCESS)
        result = check(id, value);
    if (result == CUDA_SUCCESS)
        set(stream, id, value);
    return result;
}

TWIN(cuStreamSetAttribute, _ptsz, (CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *value),
     (per_thread(stream), id, value))

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID id, CUstreamAttrValue *out)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || !is_stream_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    if (stream->attributes != NULL)
        *out = stream->attributes[id];
    else if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
        out->syncPolicy = CU_SYNC_POLICY_AUTO;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        out->priority = stream->priority;
    return CUDA_SUCCESS;
}

TWIN(cuStreamGetAttribute, _ptsz, (CUstream stream, CUstreamAttrID id, CUstreamAttrValue *out),
     (per_thread(stream), id, out))

CUresult cuStreamCopyAttributes(CUstream to_handle, CUstream from_handle)
{
    struct context *context;
    struct stream *to, *from;
    CUresult result = stream_enter(to_handle, &context, &to);
    if (result == CUDA_SUCCESS)
        result = stream_find(context, from_handle, &from);
    if (result != CUDA_SUCCESS)
        return result;
    if (to->context != from->context)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned id = 0; from->attributes != NULL && id < STREAM_ATTRIBUTES; id++)
        if (is_stream_attribute((CUstreamAttrID)id) && id != CU_LAUNCH_ATTRIBUTE_PRIORITY)
            set(to, (CUstreamAttrID)id, &from->attributes[id]);
    return CUDA_SUCCESS;
}

TWIN(cuStreamCopyAttributes, _ptsz, (CUstream to, CUstream from), (per_thread(to), per_thread(from)))

/* There are no green contexts. */
CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *out, CUgreenCtx *green)
{
    CUresult result = out == NULL ? CUDA_ERROR_INVALID_VALUE : cuStreamGetCtx(handle, out);
    if (result == CUDA_SUCCESS && green != NULL)
        *green = NULL;
    return result;
}

TWIN(cuStreamGetCtx_v2, _ptsz, (CUstream stream, CUcontext *out, CUgreenCtx *green), (per_thread(stream), out, green))

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *out)
{
    CUcontext context;
    CUresult result = cuStreamGetCtx_v2(handle, &context, NULL);
    if (result == CUDA_SUCCESS && out == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *out = NULL;
    return result;
}

/* ---- a context's work as a whole ---- */

static CUresult enter(CUcontext handle, CUevent event_handle, struct context **context, struct event **event)
{
    CUresult result = device_enter();
    if (result == CUDA_SUCCESS)
        result = context_find(handle, context);
    if (result == CUDA_SUCCESS)
        result = event_find(event_handle, event);
    if (result == CUDA_SUCCESS && context_is_capturing(*context))
        result = capture_refuse_context(*context);
    return result;
}

/* The record runs in a stream of its own that waits for a fence at the end of every other. */
CUresult cuCtxRecordEvent(CUcontext handle, CUevent event_handle)
{
    struct context *context;
    struct event *event;
    CUresult result = enter(handle, event_handle, &context, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    struct stream *gathering = stream_create(context, CU_STREAM_NON_BLOCKING, 0);
    context_gather(context, gathering);
    struct work *record = work_new(WORK_RECORD);
    record->fence = event_renew(event);
    work_submit(gathering, record);
    stream_destroy(gathering);
    return CUDA_SUCCESS;
}

CUresult cuCtxWaitEvent(CUcontext handle, CUevent event_handle)
{
    struct context *context;
    struct event *event;
    CUresult result = enter(handle, event_handle, &context, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->capture_id != 0)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    struct fence *fence = event_latest(event);
    if (fence == NULL)
        return CUDA_SUCCESS;
    context_hold_back(context, fence);
    fence_let_go(fence);
    return CUDA_SUCCESS;
}
