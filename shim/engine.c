#include "shim/engine.h"

#include "shim/config.h"
#include "shim/driver.h"
#include "shim/follow.h"
#include "shim/hidden.h"
#include "shim/iterate.h"
#include "shim/judge.h"
#include "shim/proof.h"
#include "shim/proven.h"
#include "shim/refuse.h"
#include "shim/reside.h"
#include "shim/say.h"
#include "shim/stats.h"
#include "shim/submit.h"
#include "shim/swap.h"
#include "shim/tracing.h"

#include <pthread.h>
#include <unistd.h>

#include "shim/inside.h"

#define STOPPED_STATUS 3

/* The turn: decisions and submissions happen in one order. It is held while work is submitted (README, decision
 * "the turn"), never while the program itself waits for the device. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static struct {
    bool is_open, has_failed, is_finished;
    CUcontext context;
    CUdevice device;
    uint64_t variable_bytes; /* of modules; charged as far as the engine is open */
} state;

static void turn_take(void)
{
    pthread_mutex_lock(&turn);
}

static void turn_give(void)
{
    pthread_mutex_unlock(&turn);
}

bool engine_is_on(void)
{
    return config()->cap_bytes != 0 || config()->stats_path != NULL || config()->trace_path != NULL;
}

static uint32_t frames_for(uint64_t bytes)
{
    uint64_t frame = frames_count().frame_bytes;
    return (uint32_t)((bytes + frame - 1) / frame);
}

/* ---- opening ---- */

static bool open_engine(void)
{
    if (state.is_open || state.has_failed) {
        return state.is_open;
    }
    if (driver.cuCtxGetCurrent(&state.context) != CUDA_SUCCESS || state.context == NULL ||
        driver.cuCtxGetDevice(&state.device) != CUDA_SUCCESS) {
        return false;
    }
    bool is_watching = config()->cap_bytes != 0 || config()->trace_path != NULL;
    reside_before_eviction(submit_press);
    reside_before_taking_planned(submit_yield_plan);
    state.is_open = frames_open(state.device, config()->cap_bytes, config()->is_strict) && space_open() &&
                    iterate_open() && frames_charge(frames_for(state.variable_bytes));
    if (state.is_open && is_watching) {
        tracing_open();
        state.is_open = proof_open(streams_number(CU_STREAM_LEGACY));
    }
    stats_open();
    state.has_failed = !state.is_open;
    if (state.has_failed) {
        say(SAY_ERROR, "cannot hold a cap on this device: stopped before the program takes memory");
        _exit(STOPPED_STATUS);
    }
    return state.is_open;
}

/* Memory of other devices is not ours to hold: said once, and left to the driver. */
static bool is_our_device(void)
{
    static bool has_said;
    CUdevice device;
    if (driver.cuCtxGetDevice(&device) != CUDA_SUCCESS || device == state.device) {
        return true;
    }
    if (!has_said) {
        say(SAY_WARNING, "device %d is not held under the cap: only the first device used is", (int)device);
        has_said = true;
    }
    return false;
}

void engine_arena(CUdeviceptr *begin, CUdeviceptr *end)
{
    frames_arena(begin, end);
}

bool engine_owns(CUdeviceptr address)
{
    CUdeviceptr begin, end;
    frames_arena(&begin, &end);
    return address >= begin && address < end;
}

/* Frames for what the program asks for between operations; a plan does not know of them. */
static bool make_room(uint32_t count, uint32_t stream)
{
    if (frames_available() < count && follow_is_on()) {
        submit_leave_plan();
    }
    return reside_make_room(count, stream);
}

/* ---- allocations ---- */

CUresult engine_allocate(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    uint32_t stack = tracing_stack();
    turn_take();
    CUresult result = CUDA_ERROR_NOT_INITIALIZED;
    if (!open_engine() || !is_our_device() || bytes == 0) {
        turn_give();
        return driver.cuMemAlloc_v2(out, bytes);
    }
    struct frames_counts frames = frames_count();
    uint64_t unmovable = space_unmovable_frames() * frames.frame_bytes, footprint = space_allocation_footprint(bytes);
    uint64_t cap = (uint64_t)(frames.cap_frames - frames.charged_frames) * frames.frame_bytes;
    uint32_t number = stream == NULL ? submit_lane() : streams_number(stream);
    uint32_t index = SPACE_NONE;
    if (bytes <= cap && footprint + unmovable <= cap) {
        index = space_allocate(bytes, number, &result);
        if (index == SPACE_NONE && space_is_small(bytes) && make_room(1, number)) {
            index = space_allocate(bytes, number, &result);
        }
    }
    if (index == SPACE_NONE) {
        refuse_memory("an allocation", bytes, unmovable);
        turn_give();
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct allocation *allocation = space_get(index);
    tracing_held(allocation, stack);
    learn_allocated(allocation);
    stats_demand(space_live_bytes());
    *out = allocation->base;
    turn_give();
    return CUDA_SUCCESS;
}

/* Others than those we saw may have used a pinned allocation: wait for all of them, as cuMemFree promises. */
static void wait_for_unseen_users(CUdeviceptr address)
{
    turn_take();
    uint32_t index = space_find(address);
    bool is_pinned = index != SPACE_NONE && space_get(index)->is_pinned;
    turn_give();
    if (is_pinned) {
        driver.cuCtxSynchronize();
    }
}

CUresult engine_free(CUdeviceptr address, CUstream stream, bool *is_ours)
{
    *is_ours = engine_owns(address);
    if (!*is_ours) {
        return CUDA_SUCCESS;
    }
    wait_for_unseen_users(address);
    turn_take();
    uint32_t index = space_find(address);
    if (index == SPACE_NONE || space_get(index)->base != address) {
        turn_give();
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct allocation *allocation = space_get(index);
    if (stream != NULL) {
        last_use_note(&space_place(allocation->home)->last, streams_number(stream));
    }
    tracing_freed(allocation);
    learn_freed(allocation);
    hidden_forget(allocation);
    if (allocation->host != NULL) {
        swap_release(allocation->host);
    }
    bool is_kept = follow_free(allocation);
    uint32_t place = space_end(index);
    if (!is_kept) {
        space_give_place(place);
    }
    turn_give();
    return CUDA_SUCCESS;
}

bool engine_find(CUdeviceptr address, CUdeviceptr *base, size_t *bytes)
{
    if (!engine_owns(address)) {
        return false;
    }
    turn_take();
    uint32_t index = space_find(address);
    bool is_inside = index != SPACE_NONE && address - space_get(index)->base < space_get(index)->bytes;
    if (is_inside) {
        *base = space_get(index)->base;
        *bytes = space_get(index)->bytes;
    }
    turn_give();
    return is_inside;
}

/* ---- submitting ---- */

static bool is_blocking_copy(const struct operation *operation)
{
    return operation->kind == OPERATION_COPY &&
           ((const struct copy_arguments *)(const void *)operation->arguments)->is_synchronous != 0 &&
           ((const struct copy_arguments *)(const void *)operation->arguments)->direction == COPY_DEVICE_TO_HOST;
}

CUresult engine_submit(struct operation *operation)
{
    static struct touches touches; /* guarded by the turn */
    bool is_blocking = is_blocking_copy(operation);
    if (is_blocking && !operation->is_captured) {
        driver.cuStreamSynchronize(operation->stream); /* the program waits here: not with the turn in hand */
    }
    operation->stack = tracing_stack();
    turn_take();
    CUresult result = state.is_open ? submit_operation(operation, &touches) : operation->forward(operation->call);
    if (is_blocking && state.is_open) {
        proven_look(follow_script());
    }
    turn_give();
    return result;
}

/* ---- pins, pointers, charges ---- */

CUresult engine_pin(CUdeviceptr address, const char *reason)
{
    if (!engine_owns(address)) {
        return CUDA_SUCCESS;
    }
    turn_take();
    CUresult result = CUDA_SUCCESS;
    uint32_t index = space_find(address);
    if (index != SPACE_NONE) {
        struct allocation *allocation = space_get(index);
        if (follow_is_on() && (!allocation->is_pinned || !allocation->is_foreign || allocation->is_dropped)) {
            submit_leave_plan();
        }
        if (!reside_content(allocation, submit_lane(), &result)) {
            refuse_memory("memory that must stay", allocation->bytes, reside_unmovable_bytes());
        } else {
            hidden_note(NULL, allocation, reason);
            allocation->is_foreign = true;
            allocation->is_fresh = false;
        }
    }
    turn_give();
    return result;
}

CUresult engine_scan(const void *host, size_t bytes, CUdeviceptr destination)
{
    if (!state.is_open || bytes < 8 || engine_owns((CUdeviceptr)(uintptr_t)host)) { /* the wrong kind of copy */
        return CUDA_SUCCESS;
    }
    turn_take();
    hidden_scan_host(host, bytes, destination);
    if (hidden_took_dropped() && follow_is_on()) {
        submit_leave_plan();
    }
    turn_give();
    return CUDA_SUCCESS;
}

static CUresult charge(uint32_t count, uint64_t bytes, const char *what)
{
    if (make_room(count, submit_lane()) && frames_charge(count)) {
        return CUDA_SUCCESS;
    }
    refuse_memory(what, bytes, reside_unmovable_bytes());
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult engine_charge(size_t bytes, const char *what)
{
    uint32_t stack = tracing_stack();
    turn_take();
    CUresult result = CUDA_SUCCESS;
    if (open_engine() && (result = charge(frames_for(bytes), bytes, what)) == CUDA_SUCCESS) {
        tracing_charged(bytes, what, stack);
    }
    turn_give();
    return result;
}

void engine_refund(size_t bytes)
{
    turn_take();
    if (state.is_open) {
        tracing_refunded(bytes);
        frames_refund(frames_for(bytes));
    }
    turn_give();
}

CUresult engine_charge_variables(size_t bytes)
{
    uint32_t stack = tracing_stack();
    CUresult result = CUDA_SUCCESS;
    turn_take();
    if (open_engine()) {
        uint32_t count = frames_for(state.variable_bytes + bytes) - frames_for(state.variable_bytes);
        result = charge(count, bytes, "the variables of a module");
        if (result == CUDA_SUCCESS && count > 0) {
            tracing_charged(count * frames_count().frame_bytes, "variables of modules", stack);
        }
    }
    state.variable_bytes += result == CUDA_SUCCESS ? bytes : 0;
    turn_give();
    return result;
}

void engine_refund_variables(size_t bytes)
{
    turn_take();
    uint64_t before = state.variable_bytes;
    state.variable_bytes -= bytes;
    uint32_t count = state.is_open ? frames_for(before) - frames_for(state.variable_bytes) : 0;
    if (count > 0) {
        tracing_refunded(count * frames_count().frame_bytes);
        frames_refund(count);
    }
    turn_give();
}

/* ---- seeing results ---- */

/* On a thread of the driver's, perhaps while another waits for it with the turn in hand: takes no turn. */
static void CUDA_CB look_in_stream(void *unused)
{
    uint32_t print;
    (void)unused;
    if (proof_mismatch(&print)) {
        say(SAY_ERROR, "stopped: what was recomputed differs from what was computed before; no result of it has left "
                       "the device");
        engine_stop();
    }
}

void engine_before_host_function(CUstream stream)
{
    if (state.is_open && proof_is_open() && config()->cap_bytes != 0) {
        driver.cuLaunchHostFunc(stream, look_in_stream, NULL);
    }
}

CUresult engine_after_sync(CUresult result)
{
    if (state.is_open) {
        turn_take();
        proven_look(follow_script());
        turn_give();
    }
    return result;
}

void engine_stream_destroyed(CUstream stream)
{
    turn_take();
    if (state.is_open) {
        streams_forget(stream);
    }
    turn_give();
}

void engine_context_destroyed(CUcontext context)
{
    if (state.is_open && context == state.context) {
        engine_finish();
    }
}

bool engine_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    if (config()->cap_bytes == 0) {
        return false;
    }
    turn_take();
    bool is_open = open_engine();
    if (is_open) {
        struct frames_counts frames = frames_count();
        uint64_t cap = (uint64_t)frames.cap_frames * frames.frame_bytes;
        uint64_t available = (uint64_t)frames_available() * frames.frame_bytes;
        if (free_bytes != NULL) {
            *free_bytes = available;
        }
        if (total_bytes != NULL) {
            *total_bytes = cap;
        }
    }
    turn_give();
    return is_open;
}

void engine_finish(void)
{
    if (state.is_finished) {
        return;
    }
    state.is_finished = true;
    if (state.is_open) {
        iterate_finish();
    }
    tracing_finish();
    stats_write(config()->stats_path);
}

void engine_stop(void)
{
    engine_finish();
    _exit(STOPPED_STATUS);
}
