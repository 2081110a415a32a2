/* Leaving a plan in the middle: everything the program holds is rebuilt or fetched, so that residency on demand
 * can go on from there. See live.h. */
#include "shim/live.h"
#include "shim/say.h"
#include "shim/store.h"
#include "shim/swap.h"
#include "shim/tracing.h"

#include "shim/inside.h"

static bool is_at_hand(const struct live *live, uint32_t version)
{
    return live->versions[version].state == VERSION_PRESENT;
}

/* What the replay changes in place beside, and what is there already, is needed as it was before: the other outputs may
 * depend on it. Where it cannot come back they are rebuilt without it, and compared. */
static bool is_dispensable(const struct live *live, const struct script_touch *touch)
{
    bool is_there = touch->writes != SCRIPT_NONE &&
                    (is_at_hand(live, touch->writes) || live->versions[touch->writes].state == VERSION_HOST);
    bool can_return = live->versions[touch->reads].state == VERSION_HOST ||
                      live->operations[live->script->versions[touch->reads].producer].is_kept;
    return is_there && !(touch->is_loaded && can_return);
}

/* First version that the producer of `version` reads and that is not in frames; SCRIPT_NONE: all are there. */
static uint32_t missing_input(const struct live *live, uint32_t version)
{
    const struct script_operation *producer = &live->script->operations[live->script->versions[version].producer];
    for (uint32_t i = 0; i < producer->touch_count; i++) {
        const struct script_touch *touch = &live->script->touches[producer->first_touch + i];
        if (touch->reads != SCRIPT_NONE && !is_at_hand(live, touch->reads) && !is_dispensable(live, touch)) {
            return touch->reads;
        }
    }
    return SCRIPT_NONE;
}

#define MAX_LOCKED 1024u

/* What the replay reads stays in frames meanwhile; a later version that stands in the same allocation may go. */
static uint32_t lock_inputs(struct live *live, uint32_t version, uint32_t *locked)
{
    const struct script_operation *producer = &live->script->operations[live->script->versions[version].producer];
    uint32_t count = 0;
    for (uint32_t i = 0; i < producer->touch_count && count < MAX_LOCKED; i++) {
        const struct script_touch *touch = &live->script->touches[producer->first_touch + i];
        const struct live_slot *slot = &live->slots[touch->slot];
        bool is_needed = live->script->slots[touch->slot].kind != SLOT_PLANNED ||
                         (touch->reads != SCRIPT_NONE && slot->at_home == touch->reads);
        if (is_needed && slot->allocation != SCRIPT_NONE) {
            space_get(slot->allocation)->locks++;
            locked[count++] = slot->allocation;
        }
    }
    return count;
}

/* Contents that were evicted while others were rebuilt are versions on the host from now on. */
static void note_evictions(struct live *live)
{
    for (uint32_t i = 0; i < live->script->slot_count; i++) {
        struct live_slot *slot = &live->slots[i];
        if (slot->at_home == SCRIPT_NONE || slot->allocation == SCRIPT_NONE) {
            continue;
        }
        struct allocation *allocation = space_get(slot->allocation);
        if (allocation->host != NULL && live->script->slots[i].kind == SLOT_PLANNED) {
            struct live_version *version = &live->versions[slot->at_home];
            if (version->host != NULL) {
                swap_release(version->host);
            }
            version->host = allocation->host;
            version->state = VERSION_HOST;
            version->place = SCRIPT_NONE;
            allocation->host = NULL;
            allocation->is_dropped = true;
            slot->at_home = SCRIPT_NONE;
        }
    }
}

static bool fetch_given(struct live *live, uint32_t version, CUresult *result)
{
    const struct script_operation *producer = &live->script->operations[live->script->versions[version].producer];
    for (uint32_t i = 0; i < producer->touch_count; i++) {
        const struct script_touch *touch = &live->script->touches[producer->first_touch + i];
        uint32_t allocation = live->slots[touch->slot].allocation;
        if (live->script->slots[touch->slot].kind != SLOT_PLANNED && allocation != SCRIPT_NONE &&
            !reside_content(space_get(allocation), live->stream, result)) {
            return false;
        }
    }
    return true;
}

static bool rebuild_one(struct live *live, uint32_t version, CUresult *result)
{
    if (live->versions[version].state == VERSION_HOST) {
        return live_swap_in(live, version, result);
    }
    static uint32_t locked[MAX_LOCKED]; /* guarded by the turn */
    uint32_t count = lock_inputs(live, version, locked);
    bool is_done =
        fetch_given(live, version, result) && live_replay(live, live->script->versions[version].producer, result);
    while (count > 0) {
        space_get(locked[--count])->locks--;
    }
    return is_done;
}

static bool is_read_by(const struct live *live, uint32_t operation, uint32_t version)
{
    const struct script_operation *reader = &live->script->operations[operation];
    for (uint32_t i = 0; i < reader->touch_count; i++) {
        if (live->script->touches[reader->first_touch + i].reads == version) {
            return true;
        }
    }
    return false;
}

/* Ghosts and old versions: present, but neither what the program has in its hands nor read by operation `reader`
 * (SCRIPT_NONE: by none). True if some memory came free. */
static bool move_aside(struct live *live, uint32_t reader)
{
    bool has_moved = false;
    for (uint32_t v = 0; v < live->script->version_count; v++) {
        struct live_version *version = &live->versions[v];
        uint32_t slot = live->script->versions[v].slot;
        bool is_current = live->slots[slot].allocation != SCRIPT_NONE && live->slots[slot].current == v;
        if (version->state != VERSION_PRESENT || is_current || live->slots[slot].at_home == v ||
            (reader != SCRIPT_NONE && is_read_by(live, reader, v))) {
            continue;
        }
        struct place *place = space_place(version->place);
        if (place->page_count > 0 && version->host == NULL) {
            version->host = swap_out(place->base, live->script->versions[v].bytes, live->stream, SWAP_TRAFFIC);
        }
        if (place->page_count > 0 && version->host != NULL) {
            last_use_note(&place->last, live->stream);
            space_give_place(version->place);
            version->place = SCRIPT_NONE;
            version->state = VERSION_HOST;
            tracing_moved(TRACE_SWAP_OUT, live->slots[slot].traced, live->script->versions[v].bytes);
            has_moved = true;
        }
    }
    return has_moved;
}

/* Rebuilds with a stack of its own: chains are as long as the network is deep. */
static bool rebuild(struct live *live, uint32_t wanted, uint32_t *stack, CUresult *result)
{
    uint32_t depth = 0;
    uint64_t steps = 0, limit = 16ull * live->script->version_count + 1024;
    stack[depth++] = wanted;
    while (depth > 0) {
        uint32_t version = stack[depth - 1];
        if (is_at_hand(live, version)) {
            depth--;
            continue;
        }
        uint32_t input = live->versions[version].state == VERSION_HOST ? SCRIPT_NONE : missing_input(live, version);
        if (input != SCRIPT_NONE) {
            if (depth == live->script->version_count) {
                return false;
            }
            stack[depth++] = input;
            continue;
        }
        if (++steps > limit) {
            return false;
        }
        bool is_done = rebuild_one(live, version, result);
        note_evictions(live);
        if (!is_done && (is_at_hand(live, version) || *result != CUDA_ERROR_OUT_OF_MEMORY ||
                         !move_aside(live, live->script->versions[version].producer))) {
            return false;
        }
    }
    return true;
}

static bool has_away(const struct live *live)
{
    for (uint32_t i = 0; i < live->script->slot_count; i++) {
        const struct live_slot *slot = &live->slots[i];
        if (slot->allocation != SCRIPT_NONE && slot->current != SCRIPT_NONE &&
            (live->versions[slot->current].state == VERSION_DROPPED ||
             (live->versions[slot->current].state == VERSION_PRESENT && slot->at_home != slot->current))) {
            return true;
        }
    }
    return false;
}

/* Where a copy was kept to prove the recipe, it is the content itself: nothing has to be recomputed. */
static void use_kept_copies(struct live *live)
{
    for (uint32_t v = 0; v < live->script->version_count; v++) {
        struct live_version *version = &live->versions[v];
        if (version->state == VERSION_DROPPED && version->audit != NULL && version->host == NULL) {
            version->host = version->audit;
            version->audit = NULL;
            version->state = VERSION_HOST;
        }
    }
}

static bool rebuild_held(struct live *live, CUresult *result)
{
    uint32_t *stack = store_reserve(sizeof *stack * (live->script->version_count + 1), "restoring");
    bool is_done = stack != NULL;
    for (uint32_t i = 0; is_done && i < live->script->slot_count; i++) {
        const struct live_slot *slot = &live->slots[i];
        if (slot->allocation != SCRIPT_NONE && slot->current != SCRIPT_NONE &&
            live->versions[slot->current].state == VERSION_DROPPED) {
            is_done = rebuild(live, slot->current, stack, result);
        }
    }
    for (uint32_t i = 0; is_done && i < live->script->slot_count; i++) {
        uint32_t version = live->slots[i].current;
        if (version != SCRIPT_NONE && live->versions[version].state == VERSION_PRESENT) {
            is_done = live_bring_home(live, version, result);
        }
    }
    store_return(stack, sizeof *stack * (live->script->version_count + 1));
    return is_done;
}

bool live_restore(struct live *live, CUresult *result)
{
    *result = CUDA_SUCCESS;
    live->is_restoring = true;
    reside_allow_eviction(true);
    reside_spare_planned(false);
    bool is_done = true;
    use_kept_copies(live);
    if (has_away(live)) {
        move_aside(live, SCRIPT_NONE);
        is_done = rebuild_held(live, result);
    }
    reside_spare_planned(true);
    live->is_restoring = false;
    return is_done;
}

static void end_slot(struct live *live, uint32_t index)
{
    struct live_slot *slot = &live->slots[index];
    if (slot->allocation == SCRIPT_NONE) {
        return;
    }
    struct allocation *allocation = space_get(slot->allocation);
    allocation->slot = SPACE_NONE;
    if (slot->current != SCRIPT_NONE && live->versions[slot->current].state == VERSION_HOST) {
        allocation->host = live->versions[slot->current].host;
        live->versions[slot->current].host = NULL;
        allocation->is_dropped = false;
    }
    CHECK(!allocation->is_dropped);
}

void live_end(struct live *live)
{
    for (uint32_t i = 0; i < live->script->slot_count; i++) {
        CUresult result;
        if (live->slots[i].allocation != SCRIPT_NONE && live->slots[i].at_home != live->slots[i].current &&
            live->slots[i].at_home != SCRIPT_NONE) {
            live_vacate(live, i, live->slots[i].current, &result);
        }
    }
    for (uint32_t i = 0; i < live->script->slot_count; i++) {
        end_slot(live, i);
    }
    for (uint32_t v = 0; v < live->script->version_count; v++) {
        live_let_go(live, v);
    }
}
