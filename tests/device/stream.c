#include "tests/device/driver.h"
#include "tests/device/capture.h"
#include "tests/device/context.h"
#include "tests/device/executor.h"
#include "tests/device/futex.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_SPIN_NANOSECONDS 25000
#define QUEUED_WORK_MAX       4096 /* per stream; then the caller waits, as on a GPU */

static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

static struct {
    uint64_t order, stream_id;
    struct work *spare_work;
    struct stream *spare_streams;
    struct fence *spare_fences;
} state;

void queue_lock(void)
{
    pthread_mutex_lock(&lock);
}

void queue_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void *allocate(size_t bytes)
{
    void *memory = aligned_alloc(16, (bytes + 15) & ~(size_t)15);
    if (memory == NULL)
        abort();
    return memory;
}

struct stream *stream_create(struct context *context, uint32_t flags, int priority)
{
    queue_lock();
    struct stream *stream = state.spare_streams;
    /* The counts go on: a thread may still be waiting for a number of the stream that was here before. */
    uint64_t count = stream != NULL ? stream->completed : 0;
    if (stream != NULL)
        state.spare_streams = stream->next;
    else
        stream = allocate(sizeof *stream);
    *stream = (struct stream){
        .submitted = count,
        .completed = count,
        .magic = HANDLE_STREAM,
        .context = context,
        .flags = flags,
        .priority = priority,
        .id = ++state.stream_id,
        .is_blocking = (flags & CU_STREAM_NON_BLOCKING) == 0,
        .next = context->streams,
    };
    context->streams = stream;
    queue_unlock();
    return stream;
}

static void stream_bury(struct stream *stream)
{
    struct stream **link = &stream->context->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    stream->magic = HANDLE_DEAD;
    free(stream->attributes);
    stream->attributes = NULL;
    stream->next = state.spare_streams;
    state.spare_streams = stream;
}

void stream_destroy(struct stream *stream)
{
    queue_lock();
    if (stream->head == NULL)
        stream_bury(stream);
    else
        stream->is_dying = true;
    queue_unlock();
}

bool stream_is_handle(CUstream handle)
{
    return handle != NULL && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD;
}

CUresult stream_find(struct context *context, CUstream handle, struct stream **out)
{
    if (handle == NULL || handle == CU_STREAM_LEGACY) {
        *out = context->legacy;
        /* It would wait for the captured stream, which does not run. */
        return context->capturing_streams > 0 ? capture_refuse_legacy(context) : CUDA_SUCCESS;
    }
    if (handle == CU_STREAM_PER_THREAD) {
        *out = context_thread_stream(context);
        return CUDA_SUCCESS;
    }
    struct stream *stream = (struct stream *)handle;
    if (((uintptr_t)handle & 15) != 0 || stream->magic != HANDLE_STREAM || stream->is_dying)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = stream;
    return CUDA_SUCCESS;
}

struct work *work_new(enum work_kind kind)
{
    queue_lock();
    struct work *work = state.spare_work;
    if (work != NULL)
        state.spare_work = work->next;
    queue_unlock();
    if (work == NULL)
        work = allocate(sizeof *work);
    work->kind = kind;
    work->payload = NULL;
    work->next = NULL;
    return work;
}

void *work_room(struct work *work, size_t bytes)
{
    if (bytes <= WORK_INLINE_BYTES)
        return work->inline_bytes;
    work->payload = allocate(bytes);
    work->payload_bytes = bytes;
    return work->payload;
}

static struct work *copy_one(const struct work *work)
{
    struct work *copy = work_new(work->kind);
    memcpy(copy, work, sizeof *copy);
    copy->next = NULL;
    if (work->payload != NULL) {
        copy->payload = allocate(work->payload_bytes);
        memcpy(copy->payload, work->payload, work->payload_bytes);
    }
    void *room = copy->payload != NULL ? copy->payload : copy->inline_bytes;
    if (work->kind == WORK_GRID)
        copy->grid.grid.params = room;
    if (work->kind == WORK_COPY && work->copy.is_staged)
        copy->copy.source = (uint64_t)room;
    return copy;
}

struct work *work_copy(const struct work *work)
{
    struct work *first = NULL, **link = &first;
    for (; work != NULL; work = work->next) {
        *link = copy_one(work);
        link = &(*link)->next;
    }
    return first;
}

static void work_recycle(struct work *work)
{
    if (work->payload != NULL)
        free(work->payload);
    work->next = state.spare_work;
    state.spare_work = work;
}

void work_discard(struct work *work)
{
    queue_lock();
    for (struct work *next; work != NULL; work = next) {
        next = work->next;
        work_recycle(work);
    }
    queue_unlock();
}

static void wait_on(struct waiter *waiter)
{
    if (spin_while_equal(&waiter->is_released, 0, WAIT_SPIN_NANOSECONDS))
        return;
    /* 0 -> 2 tells the releasing thread that somebody sleeps. */
    uint32_t expected = 0;
    if (!atomic_compare_exchange_strong(&waiter->is_released, &expected, 2))
        return;
    while (atomic_load(&waiter->is_released) == 2)
        futex_wait(&waiter->is_released, 2);
}

static void release(struct waiter *waiter)
{
    /* The waiter lives on a stack that may be gone once it sees 1; the address alone is used afterwards. */
    if (atomic_exchange(&waiter->is_released, 1) == 2)
        futex_wake(&waiter->is_released, 1);
}

/* Returns with queue_lock let go. */
static void wait_for_completed(struct stream *stream, uint64_t completed)
{
    if (stream->completed >= completed) {
        queue_unlock();
        return;
    }
    struct waiter waiter = {.completed = completed, .next = stream->waiters};
    stream->waiters = &waiter;
    queue_unlock();
    wait_on(&waiter);
}

void stream_wait(struct stream *stream)
{
    queue_lock();
    uint64_t target = stream->submitted;
    while (stream->completed < target && executor_help())
        continue;
    executor_leave();
    wait_for_completed(stream, target);
}

bool stream_is_idle(struct stream *stream)
{
    queue_lock();
    bool is_idle = stream->head == NULL;
    queue_unlock();
    return is_idle;
}

void work_submit_chain(struct stream *stream, struct work *first)
{
    queue_lock();
    if (stream->submitted - stream->completed >= QUEUED_WORK_MAX) {
        wait_for_completed(stream, stream->submitted - QUEUED_WORK_MAX / 2);
        queue_lock();
    }
    bool was_empty = stream->head == NULL;
    if (was_empty)
        stream->head = first;
    else
        stream->tail->next = first;
    for (struct work *work = first; work != NULL; work = work->next) {
        work->stream = stream;
        work->order = ++state.order;
        stream->submitted++;
        stream->tail = work;
    }
    if (was_empty)
        executor_add_stream(stream);
    queue_unlock();
    executor_notify();
}

void work_submit(struct stream *stream, struct work *work)
{
    work_submit_chain(stream, work);
}

CUresult work_take(struct stream *stream, struct work *work)
{
    struct capture *capture = atomic_load_explicit(&stream->capture, memory_order_acquire);
    if (capture != NULL)
        return capture_take(stream, work);
    work_submit(stream, work);
    return CUDA_SUCCESS;
}

bool stream_finish_head(struct stream *stream)
{
    struct work *work = stream->head;
    stream->head = work->next;
    stream->completed++;
    stream->is_running = false;
    work_recycle(work);
    for (struct waiter **link = &stream->waiters; *link != NULL;) {
        struct waiter *waiter = *link;
        if (waiter->completed > stream->completed) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        release(waiter);
    }
    if (stream->head != NULL)
        return true;
    if (stream->is_dying)
        stream_bury(stream);
    return false;
}

struct fence *fence_new(void)
{
    queue_lock();
    struct fence *fence = state.spare_fences;
    if (fence != NULL)
        state.spare_fences = (struct fence *)fence->waiters;
    queue_unlock();
    if (fence == NULL)
        fence = allocate(sizeof *fence);
    *fence = (struct fence){.holders = 1};
    return fence;
}

void fence_hold(struct fence *fence)
{
    queue_lock();
    fence->holders++;
    queue_unlock();
}

void fence_drop(struct fence *fence)
{
    if (--fence->holders > 0)
        return;
    fence->waiters = (struct waiter *)state.spare_fences;
    state.spare_fences = fence;
}

void fence_let_go(struct fence *fence)
{
    queue_lock();
    fence_drop(fence);
    queue_unlock();
}

bool fence_is_passed(const struct fence *fence)
{
    return atomic_load_explicit(&fence->is_passed, memory_order_acquire) != 0;
}

void fence_wait(struct fence *fence)
{
    queue_lock();
    while (!fence_is_passed(fence) && executor_help())
        continue;
    executor_leave();
    if (fence_is_passed(fence)) {
        queue_unlock();
        return;
    }
    struct waiter waiter = {.next = fence->waiters};
    fence->waiters = &waiter;
    queue_unlock();
    wait_on(&waiter);
}

void fence_pass(struct fence *fence, uint64_t nanoseconds)
{
    fence->nanoseconds = nanoseconds;
    atomic_store_explicit(&fence->is_passed, 1, memory_order_release);
    while (fence->waiters != NULL) {
        struct waiter *waiter = fence->waiters;
        fence->waiters = waiter->next;
        release(waiter);
    }
}
