#include "shim/follow.h"

#include "shim/config.h"
#include "shim/driver.h"
#include "shim/engine.h"
#include "shim/live.h"
#include "shim/proof.h"
#include "shim/proven.h"
#include "shim/say.h"
#include "shim/store.h"
#include "shim/swap.h"
#include "shim/tracing.h"

#include "shim/inside.h"

#define MAX_VERSIONS   (1u << 22)
#define MAX_OPERATIONS (1u << 20)
#define ARGUMENT_BYTES (2ull << 30)

static struct {
    struct live live;
    struct bump arguments;
    bool is_on;
    struct follow_counts counts;
    const char *trouble;
} state;

static bool reserve(struct live *live)
{
    if (live->versions != NULL) {
        return true;
    }
    live->slots = store_reserve(sizeof *live->slots * MAX_VERSIONS, "slots");
    live->operations = store_reserve(sizeof *live->operations * MAX_OPERATIONS, "operations in hand");
    live->versions = store_reserve(sizeof *live->versions * MAX_VERSIONS, "versions");
    return bump_open(&state.arguments, ARGUMENT_BYTES, "arguments") && live->slots != NULL &&
           live->operations != NULL && live->versions != NULL;
}

void follow_install(const struct script *script, bool is_probation, bool keeps_copies)
{
    CHECK(!state.is_on);
    state.live.script = script != NULL && reserve(&state.live) ? script : NULL;
    state.live.is_probation = is_probation;
    state.live.keeps_copies = keeps_copies;
    state.live.random = config()->seed;
}

void follow_end_probation(void)
{
    state.live.is_probation = false;
}

const struct script *follow_script(void)
{
    return state.live.script;
}

bool follow_is_on(void)
{
    return state.is_on;
}

bool follow_is_leaving(void)
{
    return state.live.is_restoring;
}

bool follow_is_complete(void)
{
    return state.is_on && state.live.next_operation == state.live.script->operation_count;
}

struct follow_counts follow_count(void)
{
    return state.counts;
}

const char *follow_trouble(void)
{
    return state.trouble;
}

bool follow_matches_start(uint64_t signature)
{
    const struct script *script = state.live.script;
    return script != NULL && !state.is_on && script->operations[0].signature == signature &&
           script->start_signature == space_live_signature();
}

/* ---- beginning ---- */

static void reset(struct live *live, uint32_t stream)
{
    const struct script *script = live->script;
    for (uint32_t i = 0; i < script->slot_count; i++) {
        live->slots[i] = (struct live_slot){SCRIPT_NONE, SCRIPT_NONE, SCRIPT_NONE, false, 0};
    }
    for (uint32_t i = 0; i < script->version_count; i++) {
        live->versions[i] = (struct live_version){.place = SCRIPT_NONE};
    }
    for (uint32_t i = 0; i < script->operation_count; i++) {
        live->operations[i].is_kept = false;
    }
    bump_reset(&state.arguments);
    live->next_operation = live->next_item = 0;
    live->stream = stream;
    live->is_restoring = false;
    live->trouble = NULL;
}

/* What is given keeps its identity from iteration to iteration where it can. */
static void bind_given(struct live *live)
{
    for (uint32_t i = 0; i < live->script->slot_count; i++) {
        const struct script_slot *slot = &live->script->slots[i];
        if (slot->kind != SLOT_GIVEN || slot->ends != SCRIPT_NONE) {
            continue;
        }
        struct allocation *allocation = space_get(slot->allocation);
        if (allocation->is_live && allocation->serial == slot->serial && allocation->slot == SPACE_NONE) {
            live->slots[i].allocation = slot->allocation;
            live->slots[i].was_bound = true;
            live->slots[i].traced = allocation->traced;
            allocation->slot = i;
        }
    }
}

static bool bring_in_given(uint32_t stream)
{
    for (uint32_t i = 0; i < space_count(); i++) {
        struct allocation *allocation = space_get(i);
        CUresult result;
        if (allocation->is_live && allocation->host != NULL && !reside_content(allocation, stream, &result)) {
            return false;
        }
    }
    return true;
}

bool follow_begin(uint32_t stream)
{
    if (!bring_in_given(stream)) {
        return false;
    }
    reset(&state.live, stream);
    bind_given(&state.live);
    proof_new_iteration(stream);
    state.is_on = true;
    state.trouble = NULL;
    return true;
}

/* ---- matching ---- */

static bool bind(struct live *live, uint32_t slot_index, struct allocation *allocation)
{
    struct live_slot *slot = &live->slots[slot_index];
    if (slot->allocation == allocation->index) {
        return allocation->slot == slot_index;
    }
    if (slot->was_bound || allocation->slot != SPACE_NONE ||
        allocation->bytes != live->script->slots[slot_index].bytes) {
        return false;
    }
    if (live->script->slots[slot_index].kind != SLOT_GIVEN && !allocation->is_fresh) {
        return false;
    }
    slot->allocation = allocation->index;
    slot->traced = allocation->traced;
    slot->was_bound = true;
    allocation->slot = slot_index;
    return true;
}

static bool matches(struct live *live, const struct operation *operation, uint64_t signature,
                    const struct touches *touches)
{
    if (live->next_operation == live->script->operation_count) {
        return false;
    }
    const struct script_operation *script = &live->script->operations[live->next_operation];
    if (script->signature != signature || touches->is_overfull) {
        return false;
    }
    uint32_t next = 0;
    for (uint32_t i = 0; i < operation->use_count; i++) {
        if (touches->of_use[i] == SCRIPT_NONE) {
            continue;
        }
        if (next == script->use_count) {
            return false;
        }
        const struct script_use *use = &live->script->uses[script->first_use + next++];
        const struct script_touch *touch = &live->script->touches[script->first_touch + use->touch];
        struct allocation *allocation = space_get(touches->items[touches->of_use[i]].allocation);
        if (use->where != operation->uses[i].where || use->offset != operation->uses[i].address - allocation->base ||
            !bind(live, touch->slot, allocation)) {
            return false;
        }
    }
    return next == script->use_count;
}

/* ---- items ---- */

/* A version that nobody holds and nothing in the plan needs any more gives its memory back. */
static void let_go_unneeded(struct live *live, uint32_t operation)
{
    const struct script_operation *script = &live->script->operations[operation];
    for (uint32_t i = 0; i < script->touch_count; i++) {
        uint32_t version = live->script->touches[script->first_touch + i].reads;
        if (version != SCRIPT_NONE && live->versions[version].state == VERSION_PRESENT &&
            !live_is_home(live, version) && live->script->versions[version].last_item < live->next_item) {
            live_let_go(live, version);
        }
    }
}

static bool run_item(struct live *live, struct plan_item item)
{
    CUresult result = CUDA_SUCCESS;
    bool is_done = true;
    switch ((enum plan_verb)item.verb) {
    case PLAN_DROP:
        return live_drop(live, item.index);
    case PLAN_SWAP_OUT:
        return live_swap_out(live, item.index);
    case PLAN_SWAP_IN:
        is_done = live_swap_in(live, item.index, &result);
        break;
    case PLAN_REPLAY:
        is_done = live_replay(live, item.index, &result);
        let_go_unneeded(live, item.index);
        break;
    case PLAN_RUN:
        return true;
    }
    if (!is_done && live->trouble == NULL) {
        live->trouble = result == CUDA_ERROR_OUT_OF_MEMORY ? FOLLOW_SHORT : "a driver call failed";
    }
    return is_done;
}

static bool run_items_until(struct live *live, uint32_t operation)
{
    const struct plan *plan = &live->script->plan;
    while (live->next_item < plan->item_count) {
        struct plan_item item = plan->items[live->next_item];
        if (item.verb == PLAN_RUN) {
            return item.index == operation;
        }
        live->next_item++;
        if (!run_item(live, item)) {
            return false;
        }
    }
    return operation == live->script->operation_count;
}

/* ---- the program's operation ---- */

static bool prepare_touch(struct live *live, const struct script_touch *touch, CUresult *result)
{
    uint32_t allocation_index = live->slots[touch->slot].allocation;
    if (allocation_index == SCRIPT_NONE) {
        return touch->is_hidden;
    }
    struct allocation *allocation = space_get(allocation_index);
    struct place *home = space_place(allocation->home);
    uint32_t current = live->slots[touch->slot].current;
    if (touch->reads != SCRIPT_NONE && live->versions[touch->reads].state != VERSION_PRESENT) {
        live->trouble = "an operation reads what the plan did not bring back";
        return false;
    }
    if (touch->writes != SCRIPT_NONE && touch->reads == SCRIPT_NONE && current != SCRIPT_NONE) {
        if (!live_vacate(live, touch->slot, SCRIPT_NONE, result)) {
            return false;
        }
    }
    if (!frames_acquire(home, live->stream, result)) {
        live->trouble = FOLLOW_SHORT;
        return false;
    }
    if (allocation->host != NULL && !reside_content(allocation, live->stream, result)) {
        live->trouble = "a content could not be fetched from the host";
        return false;
    }
    streams_follow(&home->last, live->stream);
    if (allocation->is_fresh && live->script->slots[touch->slot].is_filled) {
        proof_fill_alike(home->base, allocation->bytes, live->stream);
    }
    allocation->is_fresh = false;
    allocation->is_dropped = false;
    if (home->page_count > 0) {
        space_touch(allocation);
    }
    return true;
}

/* A replay must not record the program's events a second time. */
static unsigned copy_attributes(CUlaunchAttribute *to, const CUlaunchConfig *from)
{
    unsigned count = 0;
    for (unsigned i = 0; i < from->numAttrs; i++) {
        if (from->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT &&
            from->attrs[i].id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
            to[count++] = from->attrs[i];
        }
    }
    return count;
}

static void keep_operation(struct live *live, uint32_t index, const struct operation *operation)
{
    struct live_operation *kept = &live->operations[index];
    size_t attribute_bytes = sizeof *operation->config.attrs * operation->config.numAttrs;
    unsigned char *arguments = bump_take(&state.arguments, operation->argument_bytes);
    CUlaunchAttribute *attributes = bump_take(&state.arguments, attribute_bytes);
    if (arguments == NULL || attributes == NULL) {
        return;
    }
    kept->operation = *operation;
    __builtin_memcpy(arguments, operation->arguments, operation->argument_bytes);
    kept->operation.arguments = arguments;
    kept->operation.uses = NULL;
    kept->operation.use_count = 0;
    kept->operation.forward = NULL;
    kept->operation.call = NULL;
    if (attribute_bytes > 0) {
        kept->operation.config.attrs = attributes;
        kept->operation.config.numAttrs = copy_attributes(attributes, &operation->config);
    }
    kept->number = tracing_next();
    kept->is_kept = true;
}

/* Copies of it may be out of date: the kernel wrote nothing while it was recorded, which is all we know. */
static void doubt(struct live_version *version)
{
    version->is_doubtful = true;
    if (version->host != NULL) {
        swap_release(version->host);
        version->host = NULL;
    }
    if (version->audit != NULL) {
        swap_release(version->audit);
        version->audit = NULL;
    }
}

static void note_touch(struct live *live, const struct script_touch *touch, bool is_unread)
{
    struct live_slot *slot = &live->slots[touch->slot];
    if (slot->allocation != SCRIPT_NONE) {
        last_use_note(&space_place(space_get(slot->allocation)->home)->last, live->stream);
    }
    if (touch->writes == SCRIPT_NONE) {
        if (is_unread && touch->reads != SCRIPT_NONE) {
            doubt(&live->versions[touch->reads]);
        }
        return;
    }
    if (touch->reads != SCRIPT_NONE) {
        struct live_version *old = &live->versions[touch->reads];
        if (old->host != NULL) {
            swap_release(old->host);
            old->host = NULL;
        }
        old->state = VERSION_ABSENT;
        old->place = SCRIPT_NONE;
    }
    slot->current = slot->at_home = touch->writes;
    live->versions[touch->writes].state = VERSION_PRESENT;
    live->versions[touch->writes].place = space_get(slot->allocation)->home;
}

bool follow_operation(struct operation *operation, uint64_t signature, const struct touches *touches, uint32_t stream,
                      CUresult *result)
{
    struct live *live = &state.live;
    uint32_t index = live->next_operation;
    *result = CUDA_SUCCESS;
    if (stream != live->stream || !matches(live, operation, signature, touches)) {
        live->trouble = "the program does something else than in the recorded iteration";
        follow_leave();
        return false;
    }
    if (!run_items_until(live, index)) {
        follow_leave();
        return false;
    }
    const struct script_operation *script = &live->script->operations[index];
    for (uint32_t i = 0; i < script->touch_count; i++) {
        if (!prepare_touch(live, &live->script->touches[script->first_touch + i], result)) {
            follow_leave();
            return false;
        }
    }
    *result = operation->forward(operation->call);
    streams_submitted(stream);
    if (script->is_replayable) {
        keep_operation(live, index, operation);
    }
    bool is_unread = operation->kind == OPERATION_LAUNCH && !operation->facts->is_readable;
    for (uint32_t i = 0; i < script->touch_count; i++) {
        note_touch(live, &live->script->touches[script->first_touch + i], is_unread);
    }
    live->next_item++;
    let_go_unneeded(live, index);
    live->next_operation++;
    return true;
}

/* ---- ending ---- */

/* From here on the program may order its work by its own stream alone: copies under way are waited for there. */
static void follow_copies(struct live *live)
{
    for (uint32_t i = 0; i < live->script->slot_count; i++) {
        if (live->slots[i].allocation != SCRIPT_NONE) {
            streams_follow(&space_place(space_get(live->slots[i].allocation)->home)->last, live->stream);
        }
    }
}

static void close_iteration(struct live *live)
{
    follow_copies(live);
    state.counts.replayed += live->replayed;
    state.counts.replayed_nanoseconds += live->replayed_nanoseconds;
    live->replayed = live->replayed_nanoseconds = 0;
    live_end(live);
    state.is_on = false;
}

void follow_finish(void)
{
    struct live *live = &state.live;
    if (!run_items_until(live, live->script->operation_count)) {
        follow_leave();
        return;
    }
    state.trouble = NULL;
    close_iteration(live);
}

void follow_leave(void)
{
    struct live *live = &state.live;
    CUresult result = CUDA_SUCCESS;
    state.trouble = live->trouble != NULL ? live->trouble : "the iteration was cut short";
    say(SAY_INFO, "left the plan at operation %u of %u: %s", live->next_operation, live->script->operation_count,
        state.trouble);
    if (!live_restore(live, &result)) {
        say(SAY_ERROR,
            "stopped: dropped activations could not be restored (error %d); nothing wrong has left the device",
            (int)result);
        engine_stop();
    }
    close_iteration(live);
}

bool follow_free(struct allocation *allocation)
{
    struct live *live = &state.live;
    if (!state.is_on || allocation->slot == SPACE_NONE) {
        return false;
    }
    struct live_slot *slot = &live->slots[allocation->slot];
    uint32_t version = slot->at_home;
    slot->allocation = SCRIPT_NONE;
    allocation->slot = SPACE_NONE;
    if (version == SCRIPT_NONE) {
        return false;
    }
    slot->at_home = SCRIPT_NONE;
    if (live->script->versions[version].last_item >= live->next_item) {
        return true; /* its place is the version's own from now on */
    }
    live->versions[version].state = VERSION_ABSENT;
    live->versions[version].place = SCRIPT_NONE;
    return false;
}
