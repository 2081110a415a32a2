#include "tests/device/driver.h"
#include "tests/device/crew.h"
#include "tests/device/fault.h"
#include "tests/device/futex.h"
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define IDLE_SPIN_NANOSECONDS 20000
#define STACK_BYTES           ((size_t)8 << 20)

/* The job in hand, as the crew sees it. */
struct task {
    struct job job;
    uint64_t chunk;
    uint64_t multiplier, offset; /* part i runs as (i * multiplier + offset) mod parts */
    _Atomic uint64_t next;
    _Atomic uint32_t error;
};

static struct {
    uint32_t threads;
    struct task task;
    _Atomic(struct task *) current;
    _Atomic uint32_t generation; /* changes with every published task; the crew sleeps on it */
    _Atomic uint32_t sleepers;
    _Atomic uint32_t inside;        /* crew members that may hold `current` */
    _Atomic uint32_t is_waited_for; /* the publisher sleeps on `inside` */
} state;

struct member {
    struct program_worker worker;
    struct task *task;
};

static void worker_fault(struct program_worker *worker, CUresult code, const char *what)
{
    (void)worker;
    (void)what;
    fault_raise(code);
}

static void member_init(struct member *member)
{
    *member = (struct member){.worker = {.fault = worker_fault}};
    member->worker.self = member;
}

static uint64_t place_of(const struct task *task, uint64_t index)
{
    if (task->job.seed == 0)
        return index;
    return (uint64_t)(((unsigned __int128)index * task->multiplier + task->offset) % task->job.parts);
}

static void take_parts(void *argument)
{
    struct member *member = argument;
    struct task *task = member->task;
    for (;;) {
        uint64_t first = atomic_fetch_add_explicit(&task->next, task->chunk, memory_order_relaxed);
        uint64_t end = first + task->chunk < task->job.parts ? first + task->chunk : task->job.parts;
        if (first >= end)
            return;
        for (uint64_t i = first; i < end; i++) {
            if (atomic_load_explicit(&task->error, memory_order_relaxed) != CUDA_SUCCESS)
                return;
            task->job.run(task->job.subject, place_of(task, i), &member->worker);
        }
    }
}

static void work_on(struct member *member, struct task *task)
{
    member->task = task;
    CUresult result = fault_guard(take_parts, member);
    if (result != CUDA_SUCCESS)
        atomic_store(&task->error, result);
}

static void *member_main(void *argument)
{
    struct member *member = argument;
    for (;;) {
        uint32_t generation = atomic_load(&state.generation);
        atomic_fetch_add(&state.inside, 1);
        struct task *task = atomic_load(&state.current);
        if (task != NULL)
            work_on(member, task);
        if (atomic_fetch_sub(&state.inside, 1) == 1 && atomic_load(&state.is_waited_for))
            futex_wake(&state.inside, 1);
        if (task != NULL && spin_while_equal(&state.generation, generation, IDLE_SPIN_NANOSECONDS))
            continue;
        atomic_fetch_add(&state.sleepers, 1);
        while (atomic_load(&state.generation) == generation)
            futex_wait(&state.generation, generation);
        atomic_fetch_sub(&state.sleepers, 1);
    }
    return NULL;
}

bool crew_start_thread(void *(*body)(void *), void *argument, pthread_t *thread, size_t stack_bytes)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_started = pthread_create(thread, &attributes, body, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return is_started;
}

bool crew_start(uint32_t threads)
{
    state.threads = threads;
    for (uint32_t i = 1; i < threads; i++) {
        struct member *member = malloc(sizeof *member);
        pthread_t thread;
        if (member == NULL)
            return false;
        member_init(member);
        if (!crew_start_thread(member_main, member, &thread, STACK_BYTES)) {
            free(member);
            return false;
        }
        pthread_detach(thread);
    }
    return true;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void task_prepare(struct task *task, const struct job *job)
{
    task->job = *job;
    uint64_t chunk = job->parts / ((uint64_t)state.threads * 8);
    task->chunk = job->is_shared ? (chunk > 0 ? chunk : 1) : job->parts;
    if (job->seed != 0) {
        uint64_t seed = job->seed * 0x9E3779B97F4A7C15u;
        task->multiplier = (seed >> 8) % job->parts;
        while (gcd(task->multiplier, job->parts) != 1)
            task->multiplier = (task->multiplier + 1) % job->parts + (job->parts == 1);
        task->offset = (seed >> 32) % job->parts;
    }
    atomic_store_explicit(&task->next, 0, memory_order_relaxed);
    atomic_store_explicit(&task->error, CUDA_SUCCESS, memory_order_relaxed);
}

static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void end_own(void *argument)
{
    struct member *member = argument;
    free(member->worker.scratch);
    free(member);
}

static void make_own_key(void)
{
    if (pthread_key_create(&own_key, end_own) != 0)
        abort();
}

/* Of the calling thread, until it ends. */
static struct member *own_member(void)
{
    static THREAD_LOCAL struct member *own;
    if (own == NULL) {
        own = malloc(sizeof *own);
        pthread_once(&own_once, make_own_key);
        if (own == NULL || pthread_setspecific(own_key, own) != 0)
            abort();
        member_init(own);
    }
    return own;
}

static void publish(struct task *task)
{
    atomic_store(&state.current, task);
    atomic_fetch_add(&state.generation, 1);
    if (atomic_load(&state.sleepers) > 0)
        futex_wake(&state.generation, INT_MAX);
}

static void withdraw(void)
{
    atomic_store(&state.current, NULL);
    for (int i = 0; i < 256 && atomic_load(&state.inside) != 0; i++)
        pause_core();
    atomic_store(&state.is_waited_for, 1);
    for (uint32_t inside; (inside = atomic_load(&state.inside)) != 0;)
        futex_wait(&state.inside, inside);
    atomic_store(&state.is_waited_for, 0);
}

CUresult crew_run(const struct job *job)
{
    struct task *task = &state.task;
    task_prepare(task, job);
    bool is_shared = job->is_shared && job->parts > 1 && state.threads > 1;
    if (is_shared)
        publish(task);
    work_on(own_member(), task);
    if (is_shared)
        withdraw();
    return (CUresult)atomic_load(&task->error);
}

struct lone_part {
    struct member member;
    pthread_t thread;
    const struct job *job;
    uint64_t part;
    CUresult result;
    bool is_started;
};

static void run_lone_part(void *argument)
{
    struct lone_part *lone = argument;
    lone->job->run(lone->job->subject, lone->part, &lone->member.worker);
}

static void *lone_main(void *argument)
{
    struct lone_part *lone = argument;
    lone->result = fault_guard(run_lone_part, lone);
    free(lone->member.worker.scratch);
    return NULL;
}

CUresult crew_run_together(const struct job *job)
{
    struct lone_part *lone = calloc(job->parts, sizeof *lone);
    if (lone == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_SUCCESS;
    for (uint64_t i = 0; i < job->parts; i++) {
        member_init(&lone[i].member);
        lone[i].job = job;
        lone[i].part = i;
        lone[i].is_started = crew_start_thread(lone_main, &lone[i], &lone[i].thread, STACK_BYTES / 8);
        /* The ones that run would wait for the missing one for ever. */
        if (!lone[i].is_started)
            abort();
    }
    for (uint64_t i = 0; i < job->parts; i++) {
        pthread_join(lone[i].thread, NULL);
        if (lone[i].result != CUDA_SUCCESS)
            result = lone[i].result;
    }
    free(lone);
    return result;
}
