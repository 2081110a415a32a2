#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/executor.h"
#include "tests/device/host_call.h"
#include "tests/device/memory.h"
#include "tests/device/presence.h"
#include "tests/device/settings.h"
#include "tests/device/stats.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define STACK_DEPTH    64
#define FORGETTERS_MAX 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    _Atomic bool is_initialised, is_forked_child;
    bool is_device_open, is_device_broken;
    struct primary {
        struct context *context;
        uint32_t holders, flags;
    } primaries[DEVICES_MAX];
    struct context *all; /* contexts are never freed, only marked dead */
    uint64_t next_id;
    void (*forgetters[FORGETTERS_MAX])(struct context *);
    size_t forgetter_count;
    pthread_key_t thread_key;
} state;

struct thread_stream {
    struct context *context;
    uint64_t context_id;
    struct stream *stream;
    struct thread_stream *next;
};

static THREAD_LOCAL struct context *stack[STACK_DEPTH];
static THREAD_LOCAL size_t depth;
static THREAD_LOCAL struct thread_stream *thread_streams;

void context_on_destroy(void (*forget)(struct context *context))
{
    pthread_mutex_lock(&lock);
    bool is_known = false;
    for (size_t i = 0; i < state.forgetter_count; i++)
        is_known |= state.forgetters[i] == forget;
    if (!is_known && state.forgetter_count < FORGETTERS_MAX)
        state.forgetters[state.forgetter_count++] = forget;
    pthread_mutex_unlock(&lock);
}

static void on_fork_child(void)
{
    atomic_store(&state.is_forked_child, true);
}

static void on_thread_end(void *streams)
{
    for (struct thread_stream *own = streams, *next; own != NULL; own = next) {
        next = own->next;
        if (!state.is_forked_child && own->context->magic == HANDLE_CONTEXT && own->context->id == own->context_id)
            stream_destroy(own->stream);
        free(own);
    }
}

CUresult cuInit(unsigned int flags)
{
    if (flags != 0 || !settings_are_valid())
        return CUDA_ERROR_INVALID_VALUE;
    if (state.is_forked_child)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (settings()->device_count == 0)
        return CUDA_ERROR_NO_DEVICE;
    pthread_mutex_lock(&lock);
    if (!state.is_initialised) {
        pthread_atfork(NULL, NULL, on_fork_child);
        pthread_key_create(&state.thread_key, on_thread_end);
        state.is_initialised = true;
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult device_enter(void)
{
    if (host_call_is_inside())
        return CUDA_ERROR_NOT_PERMITTED;
    if (!atomic_load_explicit(&state.is_initialised, memory_order_acquire) || state.is_forked_child)
        return CUDA_ERROR_NOT_INITIALIZED;
    return CUDA_SUCCESS;
}

CUresult device_check(CUdevice device)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    return (unsigned)device < settings()->device_count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

struct context *context_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

CUresult context_enter(struct context **out)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct context *context = context_current();
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context->magic != HANDLE_CONTEXT)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *out = context;
    return atomic_load_explicit(&context->error, memory_order_relaxed);
}

CUresult stream_enter(CUstream handle, struct context **context, struct stream **stream)
{
    CUresult result = context_enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    return stream_find(*context, handle, stream);
}

void context_fail(struct context *context, CUresult error)
{
    CUresult none = CUDA_SUCCESS;
    atomic_compare_exchange_strong(&context->error, &none, error);
}

struct stream *context_thread_stream(struct context *context)
{
    for (struct thread_stream *own = thread_streams; own != NULL; own = own->next)
        if (own->context == context && own->context_id == context->id)
            return own->stream;
    struct thread_stream *own = malloc(sizeof *own);
    if (own == NULL)
        abort();
    struct stream *stream = stream_create(context, CU_STREAM_DEFAULT, 0);
    context_begin_stream(context, stream);
    stream->is_thread_owned = true;
    *own = (struct thread_stream){context, context->id, stream, thread_streams};
    thread_streams = own;
    pthread_setspecific(state.thread_key, own);
    return stream;
}

#define STREAMS_MAX 1024

/* Returns how many streams it waited for: at most STREAMS_MAX of those that had work. */
static size_t wait_for_some(struct context *context)
{
    struct stream *streams[STREAMS_MAX];
    size_t count = 0;
    queue_lock();
    for (struct stream *stream = context->streams; stream != NULL && count < STREAMS_MAX; stream = stream->next)
        if (stream->head != NULL)
            streams[count++] = stream;
    queue_unlock();
    for (size_t i = 0; i < count; i++)
        stream_wait(streams[i]);
    return count;
}

void context_wait(struct context *context)
{
    while (wait_for_some(context) == STREAMS_MAX)
        continue;
}

void device_wait(void)
{
    for (struct context *context = state.all; context != NULL; context = context->next)
        if (context->magic == HANDLE_CONTEXT)
            context_wait(context);
}

/* All streams of the context at this moment, to be freed. */
static struct stream **list_streams(struct context *context, size_t *count)
{
    size_t room = 0;
    *count = 0;
    queue_lock();
    for (struct stream *stream = context->streams; stream != NULL; stream = stream->next)
        room++;
    struct stream **streams = calloc(room + 1, sizeof(struct stream *));
    if (streams == NULL)
        abort();
    for (struct stream *stream = context->streams; stream != NULL; stream = stream->next)
        if (!stream->is_dying)
            streams[(*count)++] = stream;
    queue_unlock();
    return streams;
}

static void submit_fence(struct stream *stream, enum work_kind kind, struct fence *fence)
{
    struct work *work = work_new(kind);
    fence_hold(fence);
    work->fence = fence;
    work_submit(stream, work);
}

void context_gather(struct context *context, struct stream *gathering)
{
    size_t count;
    struct stream **streams = list_streams(context, &count);
    for (size_t i = 0; i < count; i++) {
        if (streams[i] == gathering)
            continue;
        struct fence *fence = fence_new();
        submit_fence(streams[i], WORK_RECORD, fence);
        submit_fence(gathering, WORK_WAIT, fence);
        fence_let_go(fence);
    }
    free(streams);
}

void context_hold_back(struct context *context, struct fence *fence)
{
    size_t count;
    fence_hold(fence);
    queue_lock();
    struct fence *former = context->held_back_by;
    context->held_back_by = fence;
    queue_unlock();
    if (former != NULL)
        fence_let_go(former);
    struct stream **streams = list_streams(context, &count);
    for (size_t i = 0; i < count; i++)
        submit_fence(streams[i], WORK_WAIT, fence);
    free(streams);
}

bool context_is_capturing(struct context *context)
{
    bool is_capturing = false;
    queue_lock();
    for (struct stream *stream = context->streams; stream != NULL; stream = stream->next)
        is_capturing |= stream->capture != NULL;
    queue_unlock();
    return is_capturing;
}

/* A new stream of a context that waits for an event waits as well. */
void context_begin_stream(struct context *context, struct stream *stream)
{
    queue_lock();
    struct fence *fence = context->held_back_by;
    if (fence != NULL)
        fence->holders++;
    queue_unlock();
    if (fence == NULL)
        return;
    if (!fence_is_passed(fence))
        submit_fence(stream, WORK_WAIT, fence);
    fence_let_go(fence);
}

/* Memory and threads come with the first context: a process that only asks questions has neither. */
static bool open_device(void)
{
    if (state.is_device_open || state.is_device_broken)
        return state.is_device_open;
    const struct settings *set = settings();
    state.is_device_open = frames_open(set->device_count, set->memory_bytes, set->frame_bytes) &&
                           space_open(set->frame_bytes) && executor_start();
    state.is_device_broken = !state.is_device_open;
    if (state.is_device_open) {
        stats_open(set->stats_path, set->device_count);
        presence_open();
    }
    return state.is_device_open;
}

CUresult device_open(void)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    bool is_open = open_device();
    pthread_mutex_unlock(&lock);
    return is_open ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void context_reset(struct context *context, uint32_t flags)
{
    context->magic = HANDLE_CONTEXT;
    context->id = ++state.next_id;
    context->flags = flags;
    context->api_version = 3020;
    context->error = CUDA_SUCCESS;
    context->peers = 0;
    context->limits[CU_LIMIT_STACK_SIZE] = 1024;
    context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = (size_t)1 << 20;
    context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = (size_t)8 << 20;
    context->legacy = stream_create(context, CU_STREAM_DEFAULT, 0);
    context->legacy->is_legacy = true;
}

/* Under the lock. */
static CUresult context_create(int device, uint32_t flags, struct context **out)
{
    if (!open_device())
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->device = device;
    context_reset(context, flags);
    context->next = state.all;
    state.all = context;
    *out = context;
    return CUDA_SUCCESS;
}

static void context_destroy(struct context *context)
{
    context_wait(context);
    for (size_t i = 0; i < state.forgetter_count; i++)
        state.forgetters[i](context);
    memory_release_all(context);
    context->magic = HANDLE_DEAD;
    while (context->streams != NULL)
        stream_destroy(context->streams);
}

CUresult context_find(CUcontext handle, struct context **out)
{
    struct context *context = (struct context *)handle;
    if (context == NULL || ((uintptr_t)context & 7) != 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context->magic != HANDLE_CONTEXT)
        return CUDA_ERROR_INVALID_CONTEXT;
    *out = context;
    return CUDA_SUCCESS;
}

static CUresult push(struct context *context)
{
    if (depth == STACK_DEPTH)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct context *context = NULL;
    pthread_mutex_lock(&lock);
    result = context_create(device, flags, &context);
    pthread_mutex_unlock(&lock);
    if (result != CUDA_SUCCESS)
        return result;
    *out = (CUcontext)context;
    return push(context);
}

CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *params, int count, unsigned int flags, CUdevice device)
{
    if (params != NULL || count != 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return cuCtxCreate_v2(out, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice device)
{
    if (params != NULL && (params->numExecAffinityParams != 0 || params->cigParams != NULL))
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuCtxCreate_v2(out, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext handle)
{
    struct context *context;
    CUresult result = device_enter();
    if (result == CUDA_SUCCESS)
        result = context_find(handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (context->is_primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_destroy(context);
    if (context_current() == context)
        depth--;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
    struct context *context;
    CUresult result = device_enter();
    if (result == CUDA_SUCCESS)
        result = context_find(handle, &context);
    return result != CUDA_SUCCESS ? result : push(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (out != NULL)
        *out = (CUcontext)stack[depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL) {
        if (depth > 0)
            depth--;
        return CUDA_SUCCESS;
    }
    struct context *context;
    result = context_find(handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (depth == 0)
        return push(context);
    stack[depth - 1] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)context_current();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct primary *primary = &state.primaries[device];
    pthread_mutex_lock(&lock);
    if (primary->context == NULL) {
        result = context_create(device, primary->flags, &primary->context);
        if (result == CUDA_SUCCESS)
            primary->context->is_primary = true;
    } else if (primary->context->magic != HANDLE_CONTEXT) {
        context_reset(primary->context, primary->flags);
    }
    if (result == CUDA_SUCCESS) {
        primary->holders++;
        *out = (CUcontext)primary->context;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult primary_let_go(CUdevice device, bool is_reset)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    struct primary *primary = &state.primaries[device];
    pthread_mutex_lock(&lock);
    bool is_held = primary->holders > 0, is_last = false;
    if (is_held && !is_reset)
        is_last = --primary->holders == 0;
    if (is_held && is_reset)
        is_last = true;
    if (is_last && primary->context->magic == HANDLE_CONTEXT) {
        context_destroy(primary->context);
        /* Holders keep the handle; it works again, empty, as after a reset. */
        if (is_reset)
            context_reset(primary->context, primary->flags);
    }
    pthread_mutex_unlock(&lock);
    return is_held || is_reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return primary_let_go(device, false);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return primary_let_go(device, false);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return primary_let_go(device, true);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return primary_let_go(device, true);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if ((flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    state.primaries[device].flags = flags;
    if (state.primaries[device].context != NULL)
        state.primaries[device].context->flags = flags;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *is_active)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    if (flags != NULL)
        *flags = state.primaries[device].flags;
    if (is_active != NULL)
        *is_active = state.primaries[device].holders > 0;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* ---- by use count, as before CUDA 4 ---- */

CUresult cuCtxAttach(CUcontext *out, unsigned int flags)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    context->attachments++;
    *out = (CUcontext)context;
    return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext handle)
{
    struct context *context;
    CUresult result = device_enter();
    if (result == CUDA_SUCCESS)
        result = context_find(handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (context->attachments > 0) {
        context->attachments--;
        return CUDA_SUCCESS;
    }
    return cuCtxDestroy_v2(handle);
}
