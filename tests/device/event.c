#include "tests/device/driver.h"
#include "tests/device/event.h"
#include "tests/device/capture.h"
#include "tests/device/context.h"
#include <stdlib.h>
#include <unistd.h>

#define POLL_MICROSECONDS 20

#define EVENT_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

/* Events' memory is never returned, so that a stale handle is recognised. Under queue_lock. */
static struct event *spare;

CUresult event_find(CUevent handle, struct event **out)
{
    struct event *event = (struct event *)handle;
    if (event == NULL || ((uintptr_t)event & 7) != 0 || event->magic != HANDLE_EVENT)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = event;
    return CUDA_SUCCESS;
}

static CUresult enter(CUevent handle, struct context **context, struct event **event)
{
    CUresult result = context_enter(context);
    return result != CUDA_SUCCESS ? result : event_find(handle, event);
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || (flags & ~(unsigned)EVENT_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    queue_lock();
    struct event *event = spare;
    if (event != NULL)
        spare = event->next;
    queue_unlock();
    if (event == NULL)
        event = malloc(sizeof *event);
    if (event == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *event = (struct event){.magic = HANDLE_EVENT, .context = context, .flags = flags};
    if ((flags & CU_EVENT_INTERPROCESS) != 0)
        result = event_share(event);
    if (result == CUDA_SUCCESS)
        *out = (CUevent)event;
    return result;
}

CUresult cuEventDestroy_v2(CUevent handle)
{
    struct event *event;
    CUresult result = device_enter();
    if (result == CUDA_SUCCESS)
        result = event_find(handle, &event);
    if (result != CUDA_SUCCESS)
        return result;
    event_unshare(event);
    queue_lock();
    if (event->latest != NULL)
        fence_drop(event->latest);
    event->magic = HANDLE_DEAD;
    free(event->nodes);
    event->next = spare;
    spare = event;
    queue_unlock();
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent handle)
{
    return cuEventDestroy_v2(handle);
}

struct fence *event_renew(struct event *event)
{
    struct fence *fence = fence_new();
    queue_lock();
    fence->holders = 2;
    struct fence *former = event->latest;
    event->latest = fence;
    event->capture_id = 0;
    if (former != NULL)
        fence_drop(former);
    queue_unlock();
    return fence;
}

/* Behind the record: the word that other processes look at. */
static struct work *tell_others(struct event_page *page)
{
    struct work *work = work_new(WORK_VALUE_WRITE);
    work->value = (struct value_work){(uint64_t)&page->passed, ++page->recorded, VALUE_RISES, true};
    return work;
}

/* The latest record, whoever made it, has been reached. */
static bool is_page_passed(const struct event_page *page, uint64_t number)
{
    return page->passed >= number;
}

static CUresult record(CUevent handle, CUstream stream_handle)
{
    struct context *context;
    struct event *event;
    struct stream *stream;
    CUresult result = enter(handle, &context, &event);
    if (result == CUDA_SUCCESS)
        result = stream_find(context, stream_handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->context != event->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture != NULL)
        return capture_record(stream, event);
    struct work *work = work_new(WORK_RECORD);
    work->fence = event_renew(event);
    if (event->page != NULL)
        work->next = tell_others(event->page);
    work_submit(stream, work);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return record(event, stream);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    return record(event, per_thread(stream));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    return flags > CU_EVENT_RECORD_EXTERNAL ? CUDA_ERROR_INVALID_VALUE : record(event, stream);
}

TWIN(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned int flags),
     (event, per_thread(stream), flags))

struct fence *event_latest(struct event *event)
{
    queue_lock();
    struct fence *fence = event->latest;
    if (fence != NULL)
        fence->holders++;
    queue_unlock();
    return fence;
}

CUresult cuEventQuery(CUevent handle)
{
    struct context *context;
    struct event *event;
    CUresult result = enter(handle, &context, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->capture_id != 0)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (event->page != NULL)
        return is_page_passed(event->page, event->page->recorded) ? context->error : CUDA_ERROR_NOT_READY;
    struct fence *fence = event_latest(event);
    if (fence == NULL)
        return CUDA_SUCCESS;
    bool is_passed = fence_is_passed(fence);
    fence_let_go(fence);
    if (!is_passed)
        return CUDA_ERROR_NOT_READY;
    return context->error;
}

CUresult cuEventSynchronize(CUevent handle)
{
    struct context *context;
    struct event *event;
    CUresult result = enter(handle, &context, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->capture_id != 0)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (event->page != NULL) {
        uint64_t number = event->page->recorded;
        while (!is_page_passed(event->page, number) && context->error == CUDA_SUCCESS)
            usleep(POLL_MICROSECONDS);
        return context->error;
    }
    struct fence *fence = event_latest(event);
    if (fence == NULL)
        return CUDA_SUCCESS;
    fence_wait(fence);
    fence_let_go(fence);
    return context->error;
}

static CUresult elapsed(float *milliseconds, CUevent begin, CUevent end)
{
    struct context *context;
    struct event *from, *to;
    CUresult result = enter(begin, &context, &from);
    if (result == CUDA_SUCCESS)
        result = event_find(end, &to);
    if (result != CUDA_SUCCESS)
        return result;
    if (milliseconds == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    queue_lock();
    const struct fence *first = from->latest, *last = to->latest;
    if (first == NULL || last == NULL)
        result = CUDA_ERROR_INVALID_HANDLE;
    else if (!fence_is_passed(first) || !fence_is_passed(last))
        result = CUDA_ERROR_NOT_READY;
    else
        *milliseconds = (float)((double)((int64_t)(last->nanoseconds - first->nanoseconds)) / 1e6);
    queue_unlock();
    return result;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end)
{
    return elapsed(milliseconds, begin, end);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin, CUevent end)
{
    return elapsed(milliseconds, begin, end);
}

static CUresult wait_event(CUstream stream_handle, CUevent handle, unsigned int flags)
{
    struct context *context;
    struct event *event;
    struct stream *stream;
    CUresult result = enter(handle, &context, &event);
    if (result == CUDA_SUCCESS)
        result = stream_find(context, stream_handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags > CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (event->capture_id != 0 || stream->capture != NULL)
        return capture_wait(stream, event);
    if (event->page != NULL) {
        struct work *wait = work_new(WORK_VALUE_WAIT);
        wait->value =
            (struct value_work){(uint64_t)&event->page->passed, event->page->recorded, CU_STREAM_WAIT_VALUE_GEQ, true};
        work_submit(stream, wait);
        return CUDA_SUCCESS;
    }
    struct fence *fence = event_latest(event);
    if (fence == NULL)
        return CUDA_SUCCESS;
    struct work *work = work_new(WORK_WAIT);
    work->fence = fence;
    work_submit(stream, work);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    return wait_event(stream, event, flags);
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
    return wait_event(per_thread(stream), event, flags);
}
