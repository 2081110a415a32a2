#include "tests/device/driver.h"
#include "tests/device/host_call.h"
#include "tests/device/crew.h"
#include "tests/device/executor.h"
#include "tests/device/futex.h"
#include <stdlib.h>

#define STACK_BYTES           ((size_t)8 << 20)
#define IDLE_SPIN_NANOSECONDS 20000

struct caller {
    _Atomic uint32_t is_posted; /* the thread sleeps on it */
    struct stream *stream;
    void (*finish)(struct stream *stream);
    struct caller *next; /* of the idle ones */
};

static struct caller *idle_callers; /* under queue_lock */
static THREAD_LOCAL bool is_inside;

bool host_call_is_inside(void)
{
    return is_inside;
}

static void wait_for_post(struct caller *caller)
{
    if (!spin_while_equal(&caller->is_posted, 0, IDLE_SPIN_NANOSECONDS))
        while (atomic_load(&caller->is_posted) == 0)
            futex_wait(&caller->is_posted, 0);
    atomic_store(&caller->is_posted, 0);
}

static void *caller_main(void *argument)
{
    struct caller *caller = argument;
    for (;;) {
        wait_for_post(caller);
        is_inside = true;
        work_run(caller->stream->head, 0);
        is_inside = false;
        queue_lock();
        caller->finish(caller->stream);
        caller->next = idle_callers;
        idle_callers = caller;
        queue_unlock();
        executor_notify();
    }
    return NULL;
}

static struct caller *start_caller(void)
{
    struct caller *caller = calloc(1, sizeof *caller);
    pthread_t thread;
    if (caller == NULL || !crew_start_thread(caller_main, caller, &thread, STACK_BYTES))
        abort();
    pthread_detach(thread);
    return caller;
}

void host_call_post(struct stream *stream, void (*finish)(struct stream *stream))
{
    struct caller *caller = idle_callers;
    if (caller != NULL)
        idle_callers = caller->next;
    else
        caller = start_caller();
    caller->stream = stream;
    caller->finish = finish;
    atomic_store(&caller->is_posted, 1);
    futex_wake(&caller->is_posted, 1);
}
