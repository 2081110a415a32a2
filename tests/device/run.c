/* How each kind of work runs, on the dispatcher's thread. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"
#include "tests/device/crew.h"
#include "tests/device/executor.h"
#include "tests/device/fault.h"
#include "tests/device/futex.h"
#include "tests/device/graph_memory.h"
#include "tests/device/memory.h"
#include "tests/device/module.h"
#include "tests/device/settings.h"
#include "tests/device/stats.h"
#include <stdatomic.h>
#include <time.h>

/* Below this the other threads are not woken: it would take longer than the work. */
#define SHARED_NANOSECONDS 40000

static void run_block(void *subject, uint64_t index, struct program_worker *worker)
{
    const struct grid_work *work = subject;
    program_run_block(work->function->module->program, work->function->index, &work->grid, index, worker);
}

/* What one block takes, smoothed; decides whether the next launch is shared. */
static void learn_duration(struct function *function, uint64_t blocks, uint64_t nanoseconds, bool is_shared)
{
    uint64_t each = nanoseconds * (is_shared ? settings()->threads : 1) / blocks;
    uint64_t before = function->nanoseconds_per_block;
    uint64_t now = before == 0 ? each : (3 * before + each) / 4;
    function->nanoseconds_per_block = (uint32_t)(now == 0 ? 1 : now < UINT32_MAX ? now : UINT32_MAX);
}

static CUresult run_grid(struct grid_work *work, uint64_t seed)
{
    struct function *function = work->function;
    stats_add_launch();
    work->grid.seed = seed;
    if (work->grid.is_cooperative)
        work->grid.barrier = work->barrier;
    struct job job = {
        .run = run_block, .subject = work, .parts = work->blocks, .seed = function->entry->waits_for_blocks ? 0 : seed};
    if (work->grid.is_cooperative && work->blocks > 1)
        return crew_run_together(&job);
    uint64_t each = function->nanoseconds_per_block;
    job.is_shared = work->blocks > 1 && (each == 0 || each * work->blocks > SHARED_NANOSECONDS);
    uint64_t begin = now_nanoseconds();
    CUresult result = crew_run(&job);
    learn_duration(function, work->blocks, now_nanoseconds() - begin, job.is_shared);
    return result;
}

static CUresult run_copy(struct copy_work *copy, uint64_t seed)
{
    uint64_t parts = copy_parts(copy);
    struct job job = {copy_run_part, copy, parts, parts > 1, seed};
    return crew_run(&job);
}

static CUresult run_fill(struct fill_work *fill, uint64_t seed)
{
    uint64_t parts = fill_parts(fill);
    bool is_shared = fill->height > 1 ? fill->height * fill->width > 65536 : parts > 1;
    struct job job = {fill_run_part, fill, parts, is_shared, seed};
    return crew_run(&job);
}

static void write_value(void *argument)
{
    const struct value_work *value = argument;
    if ((value->flags & VALUE_RISES) != 0) {
        _Atomic uint64_t *word = (_Atomic uint64_t *)value->address;
        uint64_t now = *word;
        while (now < value->value && !atomic_compare_exchange_weak(word, &now, value->value))
            continue;
    } else if (value->is_wide)
        __atomic_store_n((uint64_t *)value->address, value->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)value->address, (uint32_t)value->value, __ATOMIC_RELEASE);
}

static void release_memory(CUdeviceptr address)
{
    memory_release(address);
    memory_expect_release(-1);
}

/* Processor time of all work so far, where that is what events tell. */
static _Atomic uint64_t worked_nanoseconds;

uint64_t device_clock(void)
{
    return settings()->counts_work ? atomic_load(&worked_nanoseconds) : now_nanoseconds();
}

static uint64_t thread_nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static CUresult run_uncounted(struct work *work, uint64_t seed)
{
    struct context *context = work->stream->context;
    CUresult error = context->error;
    switch (work->kind) {
    case WORK_GRID:
        return error != CUDA_SUCCESS ? error : run_grid(&work->grid, seed);
    case WORK_COPY:
        return error != CUDA_SUCCESS ? error : run_copy(&work->copy, seed);
    case WORK_FILL:
        return error != CUDA_SUCCESS ? error : run_fill(&work->fill, seed);
    case WORK_VALUE_WRITE:
        /* Other processes wait for the word whatever has become of this context. */
        if (error != CUDA_SUCCESS && (work->value.flags & VALUE_RISES) == 0)
            return error;
        return fault_guard(write_value, &work->value);
    case WORK_HOST:
        if (error == CUDA_SUCCESS)
            work->host.function(work->host.data);
        return CUDA_SUCCESS;
    case WORK_CALLBACK:
        work->callback.function((CUstream)work->stream, error, work->callback.data);
        return CUDA_SUCCESS;
    case WORK_RELEASE:
        release_memory(work->release);
        return CUDA_SUCCESS;
    case WORK_BRING:
        return graph_memory_bring(work->graph_memory);
    case WORK_DROP:
        graph_memory_drop(work->graph_memory);
        return CUDA_SUCCESS;
    case WORK_VALUE_WAIT:
    case WORK_RECORD:
    case WORK_WAIT:
    case WORK_NOTHING:
        return CUDA_SUCCESS;
    }
    return CUDA_SUCCESS;
}

CUresult work_run(struct work *work, uint64_t seed)
{
    bool is_counted = work->kind == WORK_GRID || work->kind == WORK_COPY || work->kind == WORK_FILL;
    if (!is_counted || !settings()->counts_work)
        return run_uncounted(work, seed);
    uint64_t begin = thread_nanoseconds();
    CUresult result = run_uncounted(work, seed);
    atomic_fetch_add(&worked_nanoseconds, thread_nanoseconds() - begin);
    return result;
}
