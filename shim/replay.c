#include "shim/driver.h"
#include "shim/live.h"
#include "shim/proof.h"
#include "shim/proven.h"
#include "shim/say.h"
#include "shim/swap.h"
#include "shim/tracing.h"

#include "shim/inside.h"

#define MAX_REPLAY_TOUCHES 1024u

/* Where each touch of a replay goes. */
struct target {
    CUdeviceptr base;
    uint32_t place;    /* SCRIPT_NONE: an allocation's home that no version stands for */
    bool is_temporary; /* the write is unwanted: given back after the operation */
    bool is_rebuilt;   /* the version the touch writes becomes present */
};

bool live_acquire(struct live *live, struct place *place, uint32_t stream, CUresult *result)
{
    bool is_acquired =
        live->is_restoring ? reside_acquire(place, stream, result) : frames_acquire(place, stream, result);
    if (is_acquired) {
        streams_follow(&place->last, stream); /* it may have had its frames already, and a copy under way */
    }
    return is_acquired;
}

bool live_is_home(const struct live *live, uint32_t version)
{
    return live->slots[live->script->versions[version].slot].at_home == version;
}

static struct allocation *held_by(const struct live *live, uint32_t slot)
{
    uint32_t allocation = live->slots[slot].allocation;
    return allocation == SCRIPT_NONE ? NULL : space_get(allocation);
}

void live_let_go(struct live *live, uint32_t version)
{
    struct live_version *state = &live->versions[version];
    struct live_slot *slot = &live->slots[live->script->versions[version].slot];
    if (state->state == VERSION_PRESENT) {
        if (slot->at_home == version) {
            slot->at_home = SCRIPT_NONE;
        } else {
            space_give_place(state->place);
        }
    }
    if (state->host != NULL) {
        swap_release(state->host);
        state->host = NULL;
    }
    if (state->audit != NULL) {
        swap_release(state->audit);
        state->audit = NULL;
    }
    state->state = VERSION_ABSENT;
    state->place = SCRIPT_NONE;
}

static bool own_place(struct live *live, uint64_t bytes, uint32_t *place, CUresult *result)
{
    *place = space_take_place(bytes, live->stream, result);
    if (*place == SPACE_NONE && live->is_restoring && space_is_small(bytes) && reside_make_room(1, live->stream)) {
        *place = space_take_place(bytes, live->stream, result); /* in a new slab */
    }
    if (*place == SPACE_NONE) {
        return false;
    }
    if (!live_acquire(live, space_place(*place), live->stream, result)) {
        space_give_place(*place);
        *place = SCRIPT_NONE;
        return false;
    }
    return true;
}

bool live_vacate(struct live *live, uint32_t slot, uint32_t keep, CUresult *result)
{
    uint32_t version = live->slots[slot].at_home;
    *result = CUDA_SUCCESS;
    if (version == SCRIPT_NONE || version == keep) {
        return true;
    }
    struct live_version *state = &live->versions[version];
    struct place *home = space_place(state->place);
    if (live->script->versions[version].last_item < live->next_item && !live->is_restoring) {
        frames_release(home);
        live_let_go(live, version);
        return true;
    }
    uint32_t place = space_take_place(live->script->versions[version].bytes, live->stream, result);
    if (place == SPACE_NONE) {
        return false;
    }
    if (home->page_count > 0) {
        frames_move(home, space_place(place), live->stream, result);
    } else {
        *result = driver.cuMemcpyDtoDAsync_v2(space_place(place)->base, home->base,
                                              live->script->versions[version].bytes, streams_handle(live->stream));
        streams_submitted(live->stream);
        last_use_note(&home->last, live->stream);
        last_use_note(&space_place(place)->last, live->stream);
    }
    if (*result != CUDA_SUCCESS) {
        space_give_place(place);
        return false;
    }
    state->place = place;
    live->slots[slot].at_home = SCRIPT_NONE;
    return true;
}

/* A place for a version that is about to be rebuilt: its allocation's home if the program's present content is
 * dropped or is this very version, else one of its own. */
static bool place_rebuilt(struct live *live, uint32_t version, uint32_t *place, CUresult *result)
{
    uint32_t slot = live->script->versions[version].slot;
    struct allocation *allocation = held_by(live, slot);
    struct live_slot *at = &live->slots[slot];
    bool is_current = at->current == version;
    bool is_home_wanted = allocation != NULL && space_place(allocation->home)->page_count > 0 &&
                          (is_current || (at->at_home == SCRIPT_NONE && at->current != SCRIPT_NONE &&
                                          live->versions[at->current].state == VERSION_DROPPED));
    if (!is_home_wanted) {
        return own_place(live, live->script->versions[version].bytes, place, result);
    }
    if (!live_vacate(live, slot, version, result)) {
        return false;
    }
    if (!live_acquire(live, space_place(allocation->home), live->stream, result)) {
        return false;
    }
    *place = allocation->home;
    at->at_home = version;
    return true;
}

/* Where the content is that a touch of a replay finds; SPACE_NONE: nowhere. */
static uint32_t place_read(const struct live *live, const struct script_touch *touch)
{
    if (touch->reads != SCRIPT_NONE && live->versions[touch->reads].state == VERSION_PRESENT) {
        return live->versions[touch->reads].place;
    }
    const struct allocation *allocation = held_by(live, touch->slot);
    bool is_at_home = live->script->slots[touch->slot].kind != SLOT_PLANNED && allocation != NULL;
    return is_at_home ? allocation->home : SPACE_NONE;
}

/* The write of this touch is wanted by nobody: it goes to memory that is given back afterwards. */
static bool target_unwanted(struct live *live, const struct script_touch *touch, struct target *target,
                            CUresult *result)
{
    const struct script_slot *slot = &live->script->slots[touch->slot];
    uint32_t source = place_read(live, touch);
    if (!own_place(live, slot->bytes, &target->place, result)) {
        return false;
    }
    target->is_temporary = true;
    target->base = space_place(target->place)->base;
    if (touch->is_loaded && source != SPACE_NONE) {
        *result = driver.cuMemcpyDtoDAsync_v2(target->base, space_place(source)->base, slot->bytes,
                                              streams_handle(live->stream));
        streams_submitted(live->stream);
        last_use_note(&space_place(source)->last, live->stream);
    }
    return *result == CUDA_SUCCESS;
}

/* It is there already. While a plan is left, a copy on the host is as good: the recipe may not hold any more. */
static bool is_unwanted(const struct live *live, uint32_t version)
{
    uint32_t state = live->versions[version].state;
    return state == VERSION_PRESENT || (state == VERSION_HOST && live->is_restoring);
}

static bool target_written(struct live *live, const struct script_touch *touch, struct target *target, CUresult *result)
{
    uint32_t version = touch->writes;
    if (is_unwanted(live, version)) {
        return target_unwanted(live, touch, target, result);
    }
    target->is_rebuilt = true;
    if (touch->reads != SCRIPT_NONE) {
        target->place = live->versions[touch->reads].place;
    } else if (!place_rebuilt(live, version, &target->place, result)) {
        return false;
    }
    target->base = space_place(target->place)->base;
    if (touch->reads == SCRIPT_NONE && live->script->slots[touch->slot].is_filled) {
        proof_fill_alike(target->base, live->script->slots[touch->slot].bytes, live->stream);
    }
    return true;
}

static bool choose_target(struct live *live, const struct script_touch *touch, struct target *target, CUresult *result)
{
    *target = (struct target){.place = SCRIPT_NONE};
    if (touch->reads != SCRIPT_NONE && live->versions[touch->reads].state != VERSION_PRESENT) {
        bool is_soft = touch->writes != SCRIPT_NONE && is_unwanted(live, touch->writes);
        if (!is_soft) {
            live->trouble = "an input of a replay is not there";
            *result = CUDA_ERROR_UNKNOWN;
            return false;
        }
    }
    if (touch->writes != SCRIPT_NONE) {
        return target_written(live, touch, target, result);
    }
    if (touch->is_written && !touch->is_hidden) {
        return target_unwanted(live, touch, target, result);
    }
    if (touch->reads != SCRIPT_NONE) {
        target->place = live->versions[touch->reads].place;
        target->base = space_place(target->place)->base;
        return true;
    }
    struct allocation *allocation = held_by(live, touch->slot);
    if (allocation == NULL) {
        live->trouble = "an allocation that a replay reads was freed";
        *result = CUDA_ERROR_UNKNOWN;
        return false;
    }
    target->place = allocation->home;
    target->base = allocation->base;
    return true;
}

static void patch(const struct live *live, uint32_t operation, const struct target *targets, unsigned char *arguments)
{
    const struct script_operation *script = &live->script->operations[operation];
    for (uint32_t i = 0; i < script->use_count; i++) {
        const struct script_use *use = &live->script->uses[script->first_use + i];
        CUdeviceptr address = targets[use->touch].base + use->offset;
        __builtin_memcpy(arguments + use->where, &address, sizeof address);
    }
}

static void note_at_home(struct live *live, uint32_t version)
{
    struct allocation *allocation = held_by(live, live->script->versions[version].slot);
    allocation->is_dropped = false;
    space_touch(allocation);
}

/* The version is there, whatever comes after. In place: the one that was read is gone, its place holds this one. */
static void note_rebuilt(struct live *live, const struct script_touch *touch, const struct target *target)
{
    struct live_version *fresh = &live->versions[touch->writes];
    struct live_slot *slot = &live->slots[touch->slot];
    fresh->place = target->place;
    fresh->state = VERSION_PRESENT;
    tracing_moved(TRACE_REBUILD, slot->traced, live->script->versions[touch->writes].bytes);
    if (touch->reads != SCRIPT_NONE) {
        slot->at_home = slot->at_home == touch->reads ? touch->writes : slot->at_home;
        live->versions[touch->reads].place = SCRIPT_NONE;
        live->versions[touch->reads].state = VERSION_ABSENT;
    }
    if (live_is_home(live, touch->writes)) {
        note_at_home(live, touch->writes);
    }
}

bool live_bring_home(struct live *live, uint32_t version, CUresult *result)
{
    uint32_t index = live->script->versions[version].slot, place = live->versions[version].place;
    struct live_slot *slot = &live->slots[index];
    struct allocation *allocation = held_by(live, index);
    if (allocation == NULL || slot->current != version || slot->at_home == version ||
        space_place(allocation->home)->page_count == 0) {
        return true;
    }
    if (!live_vacate(live, index, version, result) ||
        !frames_move(space_place(place), space_place(allocation->home), live->stream, result)) {
        return false;
    }
    space_give_place(place);
    live->versions[version].place = allocation->home;
    slot->at_home = version;
    note_at_home(live, version);
    return true;
}

/* A version that was on the host and came about by the way, as another output of a replay: what the host has is known
 * to be right. */
static bool put_back(struct live *live, uint32_t version)
{
    const struct live_version *state = &live->versions[version];
    if (state->host == NULL) {
        return true;
    }
    bool is_done = swap_in(state->host, space_place(state->place)->base, live->stream, SWAP_TRAFFIC);
    last_use_note(&space_place(state->place)->last, live->stream);
    return is_done;
}

static bool settle(struct live *live, uint32_t operation, const struct target *targets, CUresult *result)
{
    const struct script_operation *script = &live->script->operations[operation];
    const struct script_touch *touches = &live->script->touches[script->first_touch];
    for (uint32_t i = 0; i < script->touch_count; i++) {
        if (targets[i].place != SCRIPT_NONE) {
            last_use_note(&space_place(targets[i].place)->last, live->stream);
        }
        if (targets[i].is_temporary) {
            space_give_place(targets[i].place);
        }
        if (targets[i].is_rebuilt) {
            note_rebuilt(live, &touches[i], &targets[i]);
        }
    }
    for (uint32_t i = 0; i < script->touch_count; i++) {
        if (targets[i].is_rebuilt && touches[i].reads != SCRIPT_NONE &&
            !live_bring_home(live, touches[i].writes, result)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < script->touch_count; i++) {
        const struct script_touch *touch = &live->script->touches[script->first_touch + i];
        if (targets[i].is_rebuilt && !(put_back(live, touch->writes) && proven_rebuilt(live, touch->writes))) {
            *result = CUDA_ERROR_UNKNOWN;
            return false;
        }
    }
    return true;
}

static void undo_targets(struct live *live, const struct script_operation *script, const struct target *targets,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct script_touch *touch = &live->script->touches[script->first_touch + i];
        if (targets[i].place != SCRIPT_NONE) { /* it may be being filled, or copied to */
            last_use_note(&space_place(targets[i].place)->last, live->stream);
        }
        if (targets[i].is_temporary) {
            space_give_place(targets[i].place);
        } else if (targets[i].is_rebuilt && touch->reads == SCRIPT_NONE && targets[i].place != SCRIPT_NONE) {
            if (live_is_home(live, touch->writes)) {
                live->slots[touch->slot].at_home = SCRIPT_NONE;
                frames_release(space_place(targets[i].place));
            } else {
                space_give_place(targets[i].place);
            }
        }
    }
}

/* What it reads may be on its way from the host. */
static void follow_inputs(struct live *live, const struct script_operation *script)
{
    for (uint32_t i = 0; i < script->touch_count; i++) {
        uint32_t place = place_read(live, &live->script->touches[script->first_touch + i]);
        if (place != SPACE_NONE) {
            streams_follow(&space_place(place)->last, live->stream);
        }
    }
}

bool live_replay(struct live *live, uint32_t index, CUresult *result)
{
    static struct target targets[MAX_REPLAY_TOUCHES];
    static unsigned char arguments[LAUNCH_MAX_ARGUMENT_BYTES];
    const struct script_operation *script = &live->script->operations[index];
    const struct live_operation *kept = &live->operations[index];
    *result = CUDA_SUCCESS;
    if (!kept->is_kept || script->touch_count > MAX_REPLAY_TOUCHES) {
        live->trouble = "the arguments of an operation to replay were not kept";
        *result = CUDA_ERROR_UNKNOWN;
        return false;
    }
    follow_inputs(live, script);
    for (uint32_t i = 0; i < script->touch_count; i++) {
        if (!choose_target(live, &live->script->touches[script->first_touch + i], &targets[i], result)) {
            undo_targets(live, script, targets, i + 1);
            return false;
        }
    }
    __builtin_memcpy(arguments, kept->operation.arguments, kept->operation.argument_bytes);
    patch(live, index, targets, arguments);
    *result = launch_issue(&kept->operation, arguments);
    if (*result != CUDA_SUCCESS) {
        live->trouble = "a replay could not be issued";
        undo_targets(live, script, targets, script->touch_count);
        return false;
    }
    streams_submitted(live->stream);
    live->replayed++;
    live->replayed_nanoseconds += script->nanoseconds;
    tracing_replayed(script, kept->number, live->stream);
    return settle(live, index, targets, result);
}
