#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/crew.h"
#include "tests/device/executor.h"
#include "tests/device/fault.h"
#include "tests/device/futex.h"
#include "tests/device/host_call.h"
#include "tests/device/presence.h"
#include "tests/device/settings.h"
#include <stdlib.h>

#define IDLE_SPIN_NANOSECONDS 40000
#define WORK_PER_LOOK         16
#define STACK_BYTES           ((size_t)8 << 20)
#define POLL_NANOSECONDS      20000 /* between looks at a word that the host may write */

static struct {
    struct stream **active; /* streams with work; under queue_lock */
    size_t active_count, active_room;
    _Atomic uint32_t submissions; /* the dispatcher sleeps on it */
    _Atomic uint32_t is_sleeping;
    bool is_taken; /* some thread is running a piece of work; under queue_lock */
} state;

void executor_add_stream(struct stream *stream)
{
    if (state.active_count == state.active_room) {
        state.active_room = state.active_room == 0 ? 64 : 2 * state.active_room;
        struct stream **more = realloc(state.active, state.active_room * sizeof *more);
        if (more == NULL)
            abort();
        state.active = more;
    }
    state.active[state.active_count++] = stream;
}

void executor_notify(void)
{
    atomic_fetch_add(&state.submissions, 1);
    if (atomic_load(&state.is_sleeping))
        futex_wake(&state.submissions, 1);
}

static void remove_stream(const struct stream *stream)
{
    size_t i = 0;
    while (state.active[i] != stream)
        i++;
    state.active[i] = state.active[--state.active_count];
}

static void sleep_nanoseconds(uint64_t nanoseconds)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = (long)nanoseconds};
    nanosleep(&time, NULL);
}

static void wait_for_submission(uint32_t seen, uint64_t spin_nanoseconds)
{
    if (spin_while_equal(&state.submissions, seen, spin_nanoseconds)) {
        fault_install();
        return;
    }
    atomic_store(&state.is_sleeping, 1);
    while (atomic_load(&state.submissions) == seen)
        futex_wait(&state.submissions, seen);
    atomic_store(&state.is_sleeping, 0);
    fault_install();
}

/* Fences cost no time: done without leaving the lock. */
static bool run_under_lock(struct work *work)
{
    switch (work->kind) {
    case WORK_RECORD:
        fence_pass(work->fence, device_clock());
        fence_drop(work->fence);
        return true;
    case WORK_WAIT:
        fence_drop(work->fence);
        return true;
    case WORK_NOTHING:
        return true;
    default:
        return false;
    }
}

/* The program may put its own signal handlers in front at any time; looking costs a system call, so a busy
 * device looks now and then, and an idle one whenever it wakes. */
static void watch_handlers(void)
{
    static uint32_t count;
    if (count++ % WORK_PER_LOOK == 0 || settings()->jitter != 0)
        fault_install();
}

/* Under queue_lock. */
static void finish_head(struct stream *stream)
{
    if (stream->head->next == NULL)
        remove_stream(stream);
    stream_finish_head(stream);
}

static void run_head(struct stream *stream)
{
    struct work *work = stream->head;
    if (!run_under_lock(work)) {
        queue_unlock();
        watch_handlers();
        unsigned device_id = settings()->device_ids[stream->context->device];
        presence_begin(device_id);
        CUresult result = work_run(work, order_seed());
        presence_end(device_id);
        if (result != CUDA_SUCCESS)
            context_fail(stream->context, result);
        queue_lock();
    }
    finish_head(stream);
}

static bool is_host_call(const struct work *work)
{
    return work->kind == WORK_HOST || work->kind == WORK_CALLBACK;
}

/* Under queue_lock. */
static void take_and_run(struct stream *stream)
{
    stream->is_running = true;
    if (is_host_call(stream->head)) {
        host_call_post(stream, finish_head);
        return;
    }
    state.is_taken = true;
    run_head(stream);
    state.is_taken = false;
}

bool executor_help(void)
{
    /* The adversary wants the host far ahead and the work late. */
    if (state.is_taken || settings()->jitter != 0)
        return false;
    uint64_t pause;
    struct stream *stream = order_choose(state.active, state.active_count, &pause);
    if (stream == NULL)
        return false;
    fault_install();
    take_and_run(stream);
    return true;
}

void executor_leave(void)
{
    if (!state.is_taken && state.active_count > 0)
        executor_notify();
}

/* Some stream waits for a word of memory, which anybody may write at any time. */
static bool is_word_awaited(void)
{
    for (size_t i = 0; i < state.active_count; i++)
        if (state.active[i]->head->kind == WORK_VALUE_WAIT)
            return true;
    return false;
}

/* Nothing is to be done here: all streams are empty, another thread works, or what the others wait for is the host's
 * to do. */
static void idle(uint32_t seen, bool is_empty, bool must_poll, uint64_t pause)
{
    if (pause > 0 || must_poll)
        sleep_nanoseconds(pause > 0 ? pause : POLL_NANOSECONDS);
    else
        wait_for_submission(seen, is_empty ? IDLE_SPIN_NANOSECONDS : 0);
}

static void *dispatcher_main(void *argument)
{
    (void)argument;
    queue_lock();
    for (;;) {
        uint32_t seen = atomic_load(&state.submissions);
        uint64_t pause = 0;
        struct stream *stream = NULL;
        if (!state.is_taken)
            stream = order_choose(state.active, state.active_count, &pause);
        if (stream != NULL) {
            take_and_run(stream);
            continue;
        }
        bool is_empty = state.active_count == 0, must_poll = !state.is_taken && is_word_awaited();
        queue_unlock();
        idle(seen, is_empty, must_poll, pause);
        queue_lock();
    }
    return NULL;
}

bool executor_start(void)
{
    fault_install();
    if (!crew_start(settings()->threads))
        return false;
    pthread_t thread;
    bool is_started = crew_start_thread(dispatcher_main, NULL, &thread, STACK_BYTES);
    if (is_started)
        pthread_detach(thread);
    return is_started;
}
