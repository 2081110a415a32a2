/* From a recorded iteration to a script and a planning problem. See learn.h and script.h. */
#include "shim/driver.h"
#include "shim/proof.h"
#include "shim/recording.h"
#include "shim/say.h"
#include "shim/store.h"
#include "shim/tracing.h"

#include "shim/inside.h"

#define BANK_BYTES (4ull << 30)

struct composer {
    const struct recording *from;
    uint32_t first, count;
    struct script *script;
    struct policy_problem *problem;
    struct bump *bank;
    uint32_t *slot_of;           /* by recorded object */
    uint32_t *current;           /* by slot: version it holds now */
    uint32_t *next_write;        /* by slot: next operation that writes it */
    const uint64_t **last_print; /* by slot: fingerprint after its last touch */
    bool *is_unexplained;        /* by slot */
    bool *is_held;               /* by slot: was there before the window */
    uint32_t next_outside;       /* next operation that writes memory that is not ours */
};

static struct bump banks[2];

static void *take(struct composer *composer, size_t count, size_t bytes)
{
    unsigned char *taken = bump_take(composer->bank, count * bytes + 1);
    for (size_t i = 0; taken != NULL && i < count * bytes; i++) {
        taken[i] = 0;
    }
    return taken;
}

static const struct record *record_at(const struct composer *composer, uint32_t operation)
{
    return &composer->from->records[composer->first + operation];
}

static const struct record_touch *touch_at(const struct composer *composer, uint32_t operation, uint32_t index)
{
    return &composer->from->touches[record_at(composer, operation)->first_touch + index];
}

static bool prints_equal(const uint64_t *a, const uint64_t *b)
{
    return a != NULL && b != NULL && a[0] == b[0] && a[1] == b[1];
}

static bool touch_writes(const struct record_touch *touch)
{
    if (touch->is_exact) {
        return touch->is_stored;
    }
    return touch->is_stored || !prints_equal(proof_log_get(touch->before), proof_log_get(touch->after));
}

static bool allocate_arrays(struct composer *c)
{
    uint32_t touches = 0, uses = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        touches += record_at(c, i)->touch_count;
        uses += record_at(c, i)->use_count;
    }
    struct script *s = c->script;
    *s = (struct script){.operation_count = c->count, .touch_count = touches, .use_count = uses};
    *c->problem = (struct policy_problem){.operation_count = c->count};
    c->slot_of = take(c, c->from->object_count, sizeof *c->slot_of);
    s->operations = take(c, c->count, sizeof *s->operations);
    s->touches = take(c, touches, sizeof *s->touches);
    s->uses = take(c, uses, sizeof *s->uses);
    s->slots = take(c, touches, sizeof *s->slots);
    s->versions = take(c, touches, sizeof *s->versions);
    c->current = take(c, touches, sizeof *c->current);
    c->next_write = take(c, touches, sizeof *c->next_write);
    c->last_print = take(c, touches, sizeof *c->last_print);
    c->is_unexplained = take(c, touches, sizeof *c->is_unexplained);
    c->is_held = take(c, touches, sizeof *c->is_held);
    c->problem->operations = take(c, c->count, sizeof *c->problem->operations);
    c->problem->versions = take(c, touches, sizeof *c->problem->versions);
    c->problem->reads = take(c, touches, sizeof *c->problem->reads);
    c->problem->writes = take(c, touches, sizeof *c->problem->writes);
    if (c->problem->writes == NULL || c->problem->reads == NULL || c->problem->versions == NULL) {
        say(SAY_WARNING, "an iteration of %u operations is too large to plan", c->count);
        return false;
    }
    for (uint32_t i = 0; i < c->from->object_count; i++) {
        c->slot_of[i] = SCRIPT_NONE;
    }
    return true;
}

static uint32_t slot_for(struct composer *c, const struct record_touch *touch)
{
    uint32_t slot = c->slot_of[touch->object];
    if (slot != SCRIPT_NONE) {
        return slot;
    }
    const struct record_object *object = &c->from->objects[touch->object];
    slot = c->script->slot_count++;
    bool was_there = object->was_there || object->born < c->first;
    uint32_t ends = SCRIPT_NONE;
    if (object->ended != SCRIPT_NONE && object->ended <= c->first + c->count) {
        ends = object->ended - c->first;
    }
    c->script->slots[slot] = (struct script_slot){.bytes = object->bytes,
                                                  .kind = was_there ? SLOT_GIVEN : SLOT_PLANNED,
                                                  .ends = ends,
                                                  .allocation = object->allocation,
                                                  .serial = object->serial,
                                                  .traced = object->traced,
                                                  .stack = object->stack,
                                                  .is_small = object->is_small,
                                                  .is_foreign = object->is_foreign};
    if (!was_there && (object->is_pinned || object->is_foreign)) {
        c->script->slots[slot].kind = SLOT_FIXED;
    }
    c->is_unexplained[slot] = object->is_foreign;
    c->is_held[slot] = was_there;
    c->current[slot] = c->next_write[slot] = SCRIPT_NONE;
    c->slot_of[touch->object] = slot;
    return slot;
}

static void fix_slot(struct composer *c, uint32_t slot)
{
    if (c->script->slots[slot].kind == SLOT_PLANNED) {
        c->script->slots[slot].kind = SLOT_FIXED;
    }
}

/* Pass 1: slots, what is written, what nobody explains. */
static bool find_slots(struct composer *c)
{
    uint32_t next_touch = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct record *record = record_at(c, i);
        struct script_operation *operation = &c->script->operations[i];
        operation->first_touch = next_touch;
        operation->touch_count = record->touch_count;
        for (uint32_t j = 0; j < record->touch_count; j++) {
            const struct record_touch *touch = touch_at(c, i, j);
            const uint64_t *before = proof_log_get(touch->before), *after = proof_log_get(touch->after);
            if (touch->object == SPACE_NONE || before == NULL || after == NULL) {
                say(SAY_DEBUG, "operation %u (%s) has no fingerprint of its touch %u: %s", i,
                    record->facts != NULL ? record->facts->name : "copy or set", j,
                    touch->object == SPACE_NONE ? "the allocation is unknown"
                    : before == NULL            ? "before"
                                                : "after");
                return false;
            }
            uint32_t slot = slot_for(c, touch);
            bool writes = touch_writes(touch);
            if (c->last_print[slot] != NULL && !prints_equal(c->last_print[slot], before)) {
                c->is_unexplained[slot] = true;
                fix_slot(c, slot);
            }
            if (touch->is_hidden || (c->last_print[slot] == NULL && !writes)) {
                fix_slot(c, slot);
            }
            c->last_print[slot] = after;
            c->script->slots[slot].is_partly_written |=
                proof_is_unwritten(touch->unwritten, c->script->slots[slot].bytes);
            c->script->touches[next_touch++] = (struct script_touch){.slot = slot,
                                                                     .reads = SCRIPT_NONE,
                                                                     .writes = SCRIPT_NONE,
                                                                     .is_written = writes,
                                                                     .is_loaded = touch->is_loaded,
                                                                     .is_hidden = touch->is_hidden};
        }
    }
    return true;
}

static const char *no_recipe(const struct composer *c, uint32_t index)
{
    const struct record *record = record_at(c, index);
    const struct script_operation *operation = &c->script->operations[index];
    if (!record->is_usable) {
        return "its arguments could not be read";
    }
    if (record->kind == OPERATION_COPY && record->direction != COPY_DEVICE_TO_DEVICE) {
        return "it is a copy between host and device";
    }
    if (record->facts != NULL && record->facts->is_readable && record->facts->is_impure) {
        return record->facts->impure_reason != NULL ? record->facts->impure_reason : "its code is impure";
    }
    if (record->facts != NULL && record->facts->reads_module_memory && c->from->is_outside_foreign) {
        return "it reads module memory that another stream writes";
    }
    if (record->facts != NULL && learn_is_rejected(record->facts->function)) {
        return "rejected";
    }
    for (uint32_t j = 0; j < operation->touch_count; j++) {
        const struct script_touch *touch = &c->script->touches[operation->first_touch + j];
        if (c->is_unexplained[touch->slot]) {
            return "it touches memory that changed unseen";
        }
        if (touch->is_hidden && touch->is_written) {
            return "it writes through a pointer in memory";
        }
    }
    return NULL;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The last position at which everything the operation needs beside versions still stands where it stood. */
static uint32_t replayable_until(const struct composer *c, uint32_t index)
{
    const struct script_operation *operation = &c->script->operations[index];
    const struct record *record = record_at(c, index);
    uint32_t until = record->facts != NULL && record->facts->reads_module_memory ? c->next_outside : c->count;
    for (uint32_t j = 0; j < operation->touch_count; j++) {
        const struct script_touch *touch = &c->script->touches[operation->first_touch + j];
        const struct script_slot *slot = &c->script->slots[touch->slot];
        if (slot->kind == SLOT_PLANNED || (touch->is_written && !touch->is_loaded)) {
            continue;
        }
        if (slot->ends != SCRIPT_NONE) {
            until = least(until, slot->ends - (slot->ends > 0));
        }
        if (!touch->is_written && c->next_write[touch->slot] != SCRIPT_NONE) {
            until = least(until, c->next_write[touch->slot]);
        }
    }
    return until > index ? until : 0;
}

static uint64_t unwanted_bytes(const struct composer *c, uint32_t index)
{
    const struct script_operation *operation = &c->script->operations[index];
    uint64_t bytes = 0;
    for (uint32_t j = 0; j < operation->touch_count; j++) {
        const struct script_touch *touch = &c->script->touches[operation->first_touch + j];
        if (touch->is_written && c->script->slots[touch->slot].kind != SLOT_PLANNED) {
            bytes += space_allocation_footprint(c->script->slots[touch->slot].bytes);
        }
    }
    return bytes;
}

/* Pass 2, backwards: recipes and how long they hold. */
static void find_recipes(struct composer *c)
{
    c->next_outside = c->count;
    for (uint32_t i = c->count; i-- > 0;) {
        struct script_operation *operation = &c->script->operations[i];
        struct policy_operation *cost = &c->problem->operations[i];
        const char *reason = no_recipe(c, i);
        if (reason != NULL && record_at(c, i)->facts != NULL && record_at(c, i)->facts->is_impure) {
            learn_reject(record_at(c, i)->facts->function, record_at(c, i)->facts->name, reason);
        }
        operation->reason = reason;
        cost->replayable_until = reason == NULL ? replayable_until(c, i) : 0;
        cost->scratch_bytes = unwanted_bytes(c, i);
        operation->is_replayable = cost->replayable_until != 0;
        c->next_outside = record_at(c, i)->writes_outside ? i : c->next_outside;
        for (uint32_t j = 0; j < operation->touch_count; j++) {
            const struct script_touch *touch = &c->script->touches[operation->first_touch + j];
            if (touch->is_written) {
                c->next_write[touch->slot] = i;
            }
        }
    }
}

static uint32_t new_version(struct composer *c, uint32_t slot, uint32_t producer, uint32_t replaces)
{
    const struct script_slot *home = &c->script->slots[slot];
    uint32_t index = c->script->version_count++;
    bool is_rebuildable =
        c->script->operations[producer].is_replayable && !home->is_small && home->kind == SLOT_PLANNED;
    c->script->versions[index] = (struct script_version){.slot = slot, .producer = producer, .bytes = home->bytes};
    c->problem->versions[index] = (struct policy_version){
        .bytes = space_allocation_footprint(home->bytes),
        .producer = producer,
        .replaces = replaces,
        .droppable_from = is_rebuildable ? 0 : home->ends,
        .is_kept = home->ends == SCRIPT_NONE,
        .is_swappable = home->kind == SLOT_PLANNED && !home->is_small,
    };
    return index;
}

static void end_version(struct composer *c, uint32_t version, uint32_t operation)
{
    if (version != SCRIPT_NONE) {
        struct policy_version *old = &c->problem->versions[version];
        old->is_kept = false;
        old->droppable_from = least(old->droppable_from, operation);
    }
}

static uint32_t planned_writes(const struct composer *c, uint32_t index)
{
    const struct script_operation *operation = &c->script->operations[index];
    uint32_t count = 0;
    for (uint32_t j = 0; j < operation->touch_count; j++) {
        const struct script_touch *touch = &c->script->touches[operation->first_touch + j];
        count += touch->is_written && c->script->slots[touch->slot].kind == SLOT_PLANNED;
    }
    return count;
}

static void version_touch(struct composer *c, uint32_t index, uint32_t touch_index)
{
    struct script_touch *touch = &c->script->touches[c->script->operations[index].first_touch + touch_index];
    uint32_t slot = touch->slot, old = c->current[slot];
    enum slot_kind kind = (enum slot_kind)c->script->slots[slot].kind;
    if (kind == SLOT_GIVEN || (kind == SLOT_FIXED && old != SCRIPT_NONE)) {
        return;
    }
    struct policy_problem *problem = c->problem;
    bool is_pure = old == SCRIPT_NONE || touch_at(c, index, touch_index)->is_full_write;
    if (kind == SLOT_PLANNED && (!touch->is_written || !is_pure)) {
        touch->reads = old;
        /* what is only turned into its successor is named by `replaces`; other outputs may depend on it as well */
        if (!touch->is_written || planned_writes(c, index) > 1) {
            problem->reads[problem->read_count++] = old;
        }
    }
    if (touch->is_written || kind == SLOT_FIXED) {
        uint32_t fresh = new_version(c, slot, index, is_pure ? SCRIPT_NONE : old);
        end_version(c, old, index);
        c->current[slot] = fresh;
        touch->writes = kind == SLOT_PLANNED ? fresh : SCRIPT_NONE;
        problem->writes[problem->write_count++] = fresh;
    }
}

static uint64_t duration(const struct composer *c, uint32_t index)
{
    uint32_t record = c->first + index;
    uint64_t nanoseconds;
    if (!record_at(c, index)->is_timed ||
        !streams_elapsed(c->from->events[2ul * record], c->from->events[2ul * record + 1], &nanoseconds)) {
        return 1;
    }
    return nanoseconds + 1;
}

struct timed {
    uint64_t signature, nanoseconds;
};

static bool is_later(const struct timed *a, const struct timed *b)
{
    return a->signature != b->signature ? a->signature > b->signature : a->nanoseconds > b->nanoseconds;
}

static void sift(struct timed *heap, uint32_t root, uint32_t count)
{
    for (uint32_t child = 2 * root + 1; child < count; root = child, child = 2 * root + 1) {
        child += child + 1 < count && is_later(&heap[child + 1], &heap[child]);
        if (!is_later(&heap[child], &heap[root])) {
            return;
        }
        struct timed moved = heap[root];
        heap[root] = heap[child];
        heap[child] = moved;
    }
}

static void sort(struct timed *items, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;) {
        sift(items, i, count);
    }
    for (uint32_t last = count; last-- > 1;) {
        struct timed greatest = items[0];
        items[0] = items[last];
        items[last] = greatest;
        sift(items, 0, last);
    }
}

static uint64_t median_of(const struct timed *sorted, uint32_t count, uint64_t signature)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        *(sorted[middle].signature < signature ? &low : &high) =
            sorted[middle].signature < signature ? middle + 1 : middle;
    }
    uint32_t end = low;
    while (end < count && sorted[end].signature == signature) {
        end++;
    }
    return sorted[low + (end - low) / 2].nanoseconds;
}

/* Operations with the same signature do the same work: each gets the median of their durations, so that one that
 * was interrupted does not mislead the planner. */
static bool smooth_durations(struct composer *c)
{
    struct timed *sorted = take(c, c->count, sizeof *sorted);
    if (sorted == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        sorted[i] = (struct timed){c->script->operations[i].signature, c->script->operations[i].nanoseconds};
    }
    sort(sorted, c->count);
    uint64_t known = 0, value = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        struct script_operation *operation = &c->script->operations[i];
        if (i == 0 || operation->signature != known) {
            known = operation->signature;
            value = median_of(sorted, c->count, known);
        }
        operation->nanoseconds = c->problem->operations[i].nanoseconds = value;
    }
    return true;
}

/* Pass 3: versions, and the problem's lists. */
static void find_versions(struct composer *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        const struct record *record = record_at(c, i);
        struct script_operation *operation = &c->script->operations[i];
        struct policy_operation *cost = &c->problem->operations[i];
        operation->signature = record->signature;
        operation->moved_bytes = record->copied_bytes;
        operation->direction = record->direction;
        operation->number = record->number;
        operation->stack = record->stack;
        __builtin_memcpy(operation->grid, record->grid, sizeof operation->grid);
        __builtin_memcpy(operation->block, record->block, sizeof operation->block);
        operation->function = record->facts != NULL ? record->facts->function : NULL;
        operation->name = record->facts != NULL ? record->facts->name : record->kind == OPERATION_COPY ? "copy" : "set";
        cost->first_read = c->problem->read_count;
        cost->first_write = c->problem->write_count;
        for (uint32_t j = 0; j < operation->touch_count; j++) {
            version_touch(c, i, j);
        }
        cost->read_count = c->problem->read_count - cost->first_read;
        cost->write_count = c->problem->write_count - cost->first_write;
        cost->nanoseconds = operation->nanoseconds = duration(c, i);
        tracing_timed(record->number, record->is_timed ? operation->nanoseconds : 0);
    }
    c->problem->version_count = c->script->version_count;
}

static void copy_uses(struct composer *c)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct record *record = record_at(c, i);
        c->script->operations[i].first_use = next;
        c->script->operations[i].use_count = record->use_count;
        for (uint32_t j = 0; j < record->use_count; j++) {
            c->script->uses[next++] = c->from->uses[record->first_use + j];
        }
    }
}

/* Allocations that are there during the whole window: touched (GIVEN) or idle. */
static void count_given(struct composer *c)
{
    for (uint32_t i = 0; i < space_count(); i++) {
        const struct allocation *allocation = space_get(i);
        if (!allocation->is_live) {
            continue;
        }
        const struct record_object *object =
            allocation->learned == SPACE_NONE ? NULL : &c->from->objects[allocation->learned];
        if (object == NULL || object->was_there || object->born < c->first) {
            uint64_t bytes = space_allocation_footprint(allocation->bytes);
            *(space_is_small(allocation->bytes) ? &c->script->given_small_bytes : &c->script->given_page_bytes) +=
                bytes;
        }
    }
    for (uint32_t i = 0; i < c->script->slot_count; i++) {
        const struct script_slot *slot = &c->script->slots[i];
        const struct allocation *allocation = space_get(slot->allocation);
        if (slot->kind == SLOT_GIVEN && !(allocation->is_live && allocation->serial == slot->serial)) {
            uint64_t bytes = space_allocation_footprint(slot->bytes);
            *(slot->is_small ? &c->script->given_small_bytes : &c->script->given_page_bytes) += bytes;
        }
    }
}

bool learn_make(uint32_t bank, uint32_t first, uint32_t count, uint32_t stream, struct script *script,
                struct policy_problem *problem)
{
    struct composer composer = {.from = learn_recording(),
                                .first = first,
                                .count = count,
                                .script = script,
                                .problem = problem,
                                .bank = &banks[bank]};
    if (composer.bank->base == NULL && !bump_open(composer.bank, BANK_BYTES, "scripts")) {
        return false;
    }
    bump_reset(composer.bank);
    if (composer.from->is_overfull || first + count > composer.from->record_count || !allocate_arrays(&composer)) {
        return false;
    }
    proof_log_collect(stream);
    if (!find_slots(&composer)) {
        say(SAY_WARNING, "the record of this iteration has gaps: it is recorded again");
        return false;
    }
    find_recipes(&composer);
    find_versions(&composer);
    copy_uses(&composer);
    if (!smooth_durations(&composer)) {
        return false;
    }
    count_given(&composer);
    script->start_signature = record_at(&composer, 0)->live_signature;
    problem->frame_bytes = frames_count().frame_bytes;
    return true;
}
