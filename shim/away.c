/* Versions that leave device memory as the plan says, and come back from the host. See live.h; what is dropped comes
 * back by replay.c. */
#include "shim/follow.h"
#include "shim/live.h"
#include "shim/proven.h"
#include "shim/swap.h"
#include "shim/tracing.h"

#include "shim/inside.h"

bool live_drop(struct live *live, uint32_t version)
{
    const struct script_version *script = &live->script->versions[version];
    struct live_version *state_of = &live->versions[version];
    struct live_slot *slot = &live->slots[script->slot];
    if (state_of->state != VERSION_PRESENT) {
        return true;
    }
    bool is_held = slot->allocation != SCRIPT_NONE && slot->at_home == version;
    if (is_held &&
        (!live->script->operations[script->producer].is_replayable || space_place(state_of->place)->page_count == 0)) {
        return true; /* the program has not freed it yet: it stays until it does */
    }
    if (is_held && space_get(slot->allocation)->is_pinned) {
        live->trouble = FOLLOW_PINNED;
        return false;
    }
    if (state_of->was_swapped && state_of->host == NULL) {
        return live_swap_out(live, version); /* its copy was given up (doubt), and the plan brings it in again */
    }
    if (state_of->host == NULL && (script->is_rebuilt || is_held) && !proven_dropping(live, version, is_held)) {
        live->trouble = "no host memory for the copies of probation";
        return false;
    }
    if (!is_held) {
        struct host_copy *host = state_of->host, *audit = state_of->audit;
        state_of->host = state_of->audit = NULL;
        last_use_note(&space_place(state_of->place)->last, live->stream);
        live_let_go(live, version);
        state_of->host = host;
        state_of->audit = audit;
    } else {
        struct allocation *allocation = space_get(slot->allocation);
        last_use_note(&space_place(state_of->place)->last, live->stream);
        frames_release(space_place(state_of->place));
        space_untrack(allocation);
        allocation->is_dropped = true;
        slot->at_home = SCRIPT_NONE;
        state_of->place = SCRIPT_NONE;
    }
    state_of->state = state_of->host != NULL ? VERSION_HOST : VERSION_DROPPED;
    tracing_moved(TRACE_DROP, slot->traced, script->bytes);
    return true;
}

bool live_swap_out(struct live *live, uint32_t version)
{
    struct live_version *state_of = &live->versions[version];
    if (state_of->state != VERSION_PRESENT) {
        return true;
    }
    if (live_is_home(live, version) && live->slots[live->script->versions[version].slot].allocation != SCRIPT_NONE &&
        space_get(live->slots[live->script->versions[version].slot].allocation)->is_pinned) {
        live->trouble = FOLLOW_PINNED;
        return false;
    }
    struct place *place = space_place(state_of->place);
    if (state_of->host == NULL) {
        uint32_t stream = swap_stream(SWAP_OUT, live->stream);
        streams_follow(&place->last, stream);
        state_of->host = swap_out(place->base, live->script->versions[version].bytes, stream, SWAP_TRAFFIC);
        last_use_note(&place->last, stream);
    }
    if (state_of->host == NULL) {
        live->trouble = "no host memory to swap to";
        return false;
    }
    struct live_slot *slot = &live->slots[live->script->versions[version].slot];
    if (slot->at_home == version) {
        frames_release(place);
        slot->at_home = SCRIPT_NONE;
        if (slot->allocation != SCRIPT_NONE) {
            space_untrack(space_get(slot->allocation));
            space_get(slot->allocation)->is_dropped = true;
        }
    } else {
        space_give_place(state_of->place);
    }
    state_of->place = SCRIPT_NONE;
    state_of->state = VERSION_HOST;
    state_of->was_swapped = true;
    tracing_moved(TRACE_SWAP_OUT, slot->traced, live->script->versions[version].bytes);
    return true;
}

bool live_swap_in(struct live *live, uint32_t version, CUresult *result)
{
    struct live_version *state_of = &live->versions[version];
    const struct script_version *script = &live->script->versions[version];
    struct live_slot *slot = &live->slots[script->slot];
    *result = CUDA_SUCCESS;
    if (state_of->state != VERSION_HOST) {
        return true;
    }
    uint32_t stream = live->is_restoring ? live->stream : swap_stream(SWAP_IN, live->stream);
    bool is_home = slot->allocation != SCRIPT_NONE && slot->current == version;
    uint32_t place =
        is_home ? space_get(slot->allocation)->home : space_take_place(script->bytes, live->stream, result);
    if (place == SPACE_NONE || (is_home && !live_vacate(live, script->slot, version, result))) {
        return false;
    }
    if (!live_acquire(live, space_place(place), stream, result) ||
        !swap_in(state_of->host, space_place(place)->base, stream, SWAP_TRAFFIC)) {
        if (!is_home) {
            space_give_place(place);
        }
        return false;
    }
    last_use_note(&space_place(place)->last, stream);
    state_of->place = place;
    state_of->state = VERSION_PRESENT;
    tracing_moved(TRACE_SWAP_IN, slot->traced, script->bytes);
    if (is_home) {
        slot->at_home = version;
        space_get(slot->allocation)->is_dropped = false;
        space_touch(space_get(slot->allocation));
    }
    return true;
}
