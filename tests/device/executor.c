#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/crew.h"
#include "tests/device/executor.h"
#include "tests/device/fault.h"
#include "tests/device/futex.h"
#include "tests/device/settings.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define IDLE_SPIN_NANOSECONDS 40000
#define WORK_PER_LOOK         16
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
        fence_pass(work->fence, now_nanoseconds());
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

static void run_head(struct stream *stream)
{
    struct work *work = stream->head;
    stream->is_running = true;
    if (!run_under_lock(work)) {
        queue_unlock();
        watch_handlers();
        CUresult result = work_run(work, order_seed());
        if (result != CUDA_SUCCESS)
            context_fail(stream->context, result);
        queue_lock();
    }
    if (stream->head->next == NULL)
        remove_stream(stream);
    stream_finish_head(stream);
}

static bool is_for_dispatcher(const struct work *work)
{
    return work->kind == WORK_HOST || work->kind == WORK_CALLBACK;
}

/* Under queue_lock. */
static void take_and_run(struct stream *stream)
{
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
    bool may_run = stream != NULL && !is_for_dispatcher(stream->head);
    if (may_run) {
        fault_install();
        take_and_run(stream);
    }
    return may_run;
}

void executor_leave(void)
{
    if (!state.is_taken && state.active_count > 0)
        executor_notify();
}

/* Nothing is to be done here: it is empty, another thread works, or something that the host will do is missing. */
static void idle(uint32_t seen, bool is_empty, bool is_taken, uint64_t pause)
{
    if (is_taken)
        wait_for_submission(seen, 0);
    else if (is_empty)
        wait_for_submission(seen, IDLE_SPIN_NANOSECONDS);
    else
        sleep_nanoseconds(pause > 0 ? pause : POLL_NANOSECONDS);
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
        bool is_empty = state.active_count == 0, is_taken = state.is_taken;
        queue_unlock();
        idle(seen, is_empty, is_taken, pause);
        queue_lock();
    }
    return NULL;
}

bool executor_start(void)
{
    fault_install();
    if (!crew_start(settings()->threads))
        return false;
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_t thread;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_started = pthread_create(&thread, NULL, dispatcher_main, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (is_started)
        pthread_detach(thread);
    return is_started;
}
