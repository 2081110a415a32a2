#include "shim/submit.h"

#include "shim/config.h"
#include "shim/follow.h"
#include "shim/hidden.h"
#include "shim/iterate.h"
#include "shim/judge.h"
#include "shim/proof.h"
#include "shim/refuse.h"
#include "shim/reside.h"
#include "shim/stats.h"
#include "shim/tracing.h"

#include "shim/inside.h"

static struct {
    bool is_pressed;                    /* memory was short once: residency is managed */
    uint32_t lane;                      /* stream number of the main lane; STREAMS_NONE: not known yet */
    uint64_t launches[STREAMS_MAX + 1]; /* by stream */
} state = {.lane = STREAMS_NONE};

uint32_t submit_lane(void)
{
    return state.lane != STREAMS_NONE ? state.lane : streams_number(CU_STREAM_LEGACY);
}

void submit_leave_plan(void)
{
    follow_leave();
    iterate_left(submit_lane());
}

void submit_yield_plan(void)
{
    if (follow_is_on() && !follow_is_leaving()) {
        submit_leave_plan();
    }
}

static void note_uses(const struct touches *touches, uint32_t stream)
{
    for (uint32_t i = 0; i < touches->count; i++) {
        struct allocation *allocation = space_get(touches->items[i].allocation);
        last_use_note(&space_place(allocation->home)->last, stream);
        allocation->is_fresh = false;
    }
}

/* Everything is in frames, or can be without moving anything; what used it before is ordered before the stream. */
static bool all_fits(const struct touches *touches, uint32_t stream)
{
    for (uint32_t i = 0; i < touches->count; i++) {
        struct allocation *allocation = space_get(touches->items[i].allocation);
        struct place *home = space_place(allocation->home);
        CUresult result;
        if (allocation->host != NULL || (!home->is_resident && !frames_acquire(home, stream, &result))) {
            return false;
        }
        if (home->page_count > 0) {
            space_touch(allocation);
        }
        streams_order(home->last.streams, stream);
    }
    return true;
}

static void lock_all(const struct touches *touches, bool is_locked)
{
    for (uint32_t i = 0; i < touches->count; i++) {
        struct allocation *allocation = space_get(touches->items[i].allocation);
        allocation->locks = is_locked ? allocation->locks + 1 : allocation->locks - 1;
    }
}

static bool bring_in_all(const struct touches *touches, uint32_t stream, CUresult *result)
{
    for (uint32_t i = 0; i < touches->count; i++) {
        struct allocation *allocation = space_get(touches->items[i].allocation);
        if (!reside_content(allocation, stream, result)) {
            return false;
        }
        streams_order(space_place(allocation->home)->last.streams, stream);
        if (allocation->is_fresh && learn_is_on() && space_place(allocation->home)->page_count > 0) {
            proof_fill(allocation->base, allocation->bytes, stream);
            last_use_note(&space_place(allocation->home)->last, stream);
        }
    }
    return true;
}

static void scan_written(const struct operation *operation, const struct touches *touches, uint32_t stream)
{
    bool is_unread = operation->kind == OPERATION_LAUNCH && !operation->facts->is_readable;
    bool is_from_host =
        operation->kind == OPERATION_COPY && /* scanned where it was in hand */
        ((const struct copy_arguments *)(const void *)operation->arguments)->direction != COPY_DEVICE_TO_DEVICE;
    for (uint32_t i = 0; i < touches->count && operation->kind != OPERATION_SET && !is_from_host; i++) {
        if (touches->items[i].is_stored || is_unread) {
            hidden_scan_device(space_get(touches->items[i].allocation), stream);
        }
    }
}

/* Residency on demand, with everything recorded that a plan will need. */
static CUresult submit_managed(struct operation *operation, uint64_t signature, struct touches *touches,
                               uint32_t stream, bool is_main)
{
    CUresult result = CUDA_SUCCESS;
    hidden_close(touches);
    lock_all(touches, true);
    if (!bring_in_all(touches, stream, &result)) {
        result = result == CUDA_ERROR_OUT_OF_MEMORY ? refuse_operation(operation, touches) : result;
        lock_all(touches, false);
        return result;
    }
    uint32_t record = is_main && learn_is_on() ? learn_before(operation, signature, touches, stream) : SCRIPT_NONE;
    result = operation->forward(operation->call);
    streams_submitted(stream);
    note_uses(touches, stream);
    learn_after(record, touches, stream);
    scan_written(operation, touches, stream);
    note_uses(touches, stream);
    lock_all(touches, false);
    return result;
}

/* The main lane is the stream that most kernels were launched on so far. */
static void choose_lane(void)
{
    uint32_t best = state.lane;
    for (uint32_t i = 0; i <= STREAMS_MAX; i++) {
        best = best == STREAMS_NONE || state.launches[i] > state.launches[best] ? i : best;
    }
    if (best != state.lane && state.launches[best] > 0) {
        state.lane = best;
        iterate_new_lane();
    }
}

/* Without a cap: an iteration was analysed for the trace, and from then on nothing is managed. */
static bool is_recording_over(void)
{
    return config()->cap_bytes == 0 && state.is_pressed && !learn_is_on();
}

void submit_press(uint32_t stream)
{
    if (!state.is_pressed) {
        state.is_pressed = true;
        choose_lane();
        iterate_record(stream);
    } else if (is_recording_over()) {
        iterate_record(stream); /* looks for pointers in memory as well: before anything is moved */
    }
}

static CUresult submit_free(struct operation *operation, uint64_t signature, struct touches *touches, uint32_t stream,
                            bool is_main)
{
    bool is_managed = (state.is_pressed || config()->trace_path != NULL) && !is_recording_over();
    if (!is_managed && all_fits(touches, stream)) {
        CUresult result = operation->forward(operation->call);
        streams_submitted(stream);
        note_uses(touches, stream);
        return result;
    }
    submit_press(stream);
    return submit_managed(operation, signature, touches, stream, is_main);
}

static void mark_foreign(const struct touches *touches)
{
    for (uint32_t i = 0; i < touches->count; i++) {
        space_get(touches->items[i].allocation)->is_foreign = true;
    }
}

/* Another lane uses what a plan disposes of: the plan was made without knowing that. */
static void leave_for_foreign(const struct touches *touches)
{
    for (uint32_t i = 0; i < touches->count && follow_is_on(); i++) {
        uint32_t slot = space_get(touches->items[i].allocation)->slot;
        if (slot != SPACE_NONE && !follow_script()->slots[slot].is_foreign) {
            follow_leave();
            follow_install(NULL, false, false);
            iterate_left(submit_lane());
        }
    }
}

/* A launch under capture runs later, and again and again: all it touches stays where it is. */
static CUresult submit_captured(struct operation *operation, const struct touches *touches, uint32_t stream)
{
    CUresult result = CUDA_SUCCESS;
    leave_for_foreign(touches);
    for (uint32_t i = 0; i < touches->count; i++) {
        struct allocation *allocation = space_get(touches->items[i].allocation);
        if (!reside_content(allocation, submit_lane(), &result)) {
            return refuse_operation(operation, touches);
        }
        hidden_note(NULL, allocation, "a graph uses it");
        allocation->is_fresh = false;
    }
    (void)stream;
    return operation->forward(operation->call);
}

/* Its arguments cannot be read: whatever lives may be touched, so all of it must be there, and stay. */
static CUresult submit_opaque(struct operation *operation, uint32_t stream)
{
    CUresult result = CUDA_SUCCESS;
    if (follow_is_on()) {
        follow_leave();
        iterate_left(stream);
    }
    for (uint32_t i = 0; i < space_count(); i++) {
        struct allocation *allocation = space_get(i);
        if (!allocation->is_live) {
            continue;
        }
        hidden_note(NULL, allocation, "a launch with unreadable arguments");
        if (!reside_content(allocation, stream, &result)) {
            refuse_memory("a launch whose arguments cannot be read", space_live_bytes(), 0);
            return result;
        }
        streams_order(space_place(allocation->home)->last.streams, stream);
        last_use_note(&space_place(allocation->home)->last, stream);
        allocation->is_fresh = false;
        allocation->is_foreign = true;
    }
    result = operation->forward(operation->call);
    streams_submitted(stream);
    return result;
}

#define ALIGNMENT 512ull /* of allocations: what follows up to there belongs to no other */

static uint64_t moved_bytes(const struct operation *operation)
{
    if (operation->kind == OPERATION_COPY) {
        return ((const struct copy_arguments *)(const void *)operation->arguments)->bytes;
    }
    const struct set_arguments *set = (const void *)operation->arguments;
    return (set->height > 1 ? set->pitch * (set->height - 1) : 0) + set->width * set->element_bytes;
}

/* Copies and sets must lie in one live allocation, as for the driver: the neighbour in the arena is another tensor. */
static bool lies_inside(const struct operation *operation)
{
    for (uint32_t i = 0; operation->kind != OPERATION_LAUNCH && i < operation->use_count; i++) {
        uint32_t index = space_find(operation->uses[i].address);
        if (index == SPACE_NONE) {
            return false;
        }
        const struct allocation *allocation = space_get(index);
        uint64_t offset = operation->uses[i].address - allocation->base, bytes = moved_bytes(operation);
        uint64_t size = (allocation->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (offset > size || bytes > size - offset) {
            return false;
        }
    }
    return true;
}

/* What a kernel may store the address of can be reached from anywhere afterwards: it stays where it is. */
static void pin_published(const struct touches *touches)
{
    for (uint32_t i = 0; i < touches->count; i++) {
        if (touches->items[i].is_published) {
            hidden_note(NULL, space_get(touches->items[i].allocation), "a kernel may store its address");
        }
    }
    if (hidden_took_dropped() && follow_is_on()) {
        submit_leave_plan();
    }
}

static CUresult submit(struct operation *operation, struct touches *touches, uint32_t stream)
{
    if (!lies_inside(operation)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    judge_touches(operation, touches);
    if (operation->is_captured) {
        return submit_captured(operation, touches, stream);
    }
    if (operation->is_opaque) {
        return submit_opaque(operation, stream);
    }
    if (operation->kind == OPERATION_LAUNCH) {
        stats_launched();
        state.launches[stream]++;
        state.lane = state.lane == STREAMS_NONE ? stream : state.lane;
    }
    bool is_main = state.lane == STREAMS_NONE || stream == state.lane;
    uint64_t signature = 0;
    if (is_main) {
        signature = judge_signature(operation, touches);
        iterate_arrived(signature, operation->kind == OPERATION_LAUNCH ? operation->facts->name : NULL, stream);
    } else {
        leave_for_foreign(touches);
        mark_foreign(touches);
        learn_foreign(operation);
    }
    pin_published(touches);
    if (follow_is_on() && is_main) {
        CUresult result;
        if (follow_operation(operation, signature, touches, stream, &result)) {
            return result;
        }
        iterate_left(stream);
    }
    return submit_free(operation, signature, touches, stream, is_main);
}

/* Told when it has been submitted: what had to be moved or rebuilt for it stands before it in the trace. */
CUresult submit_operation(struct operation *operation, struct touches *touches)
{
    uint32_t stream = streams_number(operation->stream);
    CUresult result = submit(operation, touches, stream);
    if (result == CUDA_SUCCESS && !operation->is_captured) { /* under capture nothing runs */
        tracing_ran(operation, touches, stream);
    }
    return result;
}
