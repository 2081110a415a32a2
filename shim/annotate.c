/* What the plan adds to its script: what is dropped and rebuilt, until when it is needed, what is compared. See learn.h
 * and script.h. */
#include "shim/learn.h"
#include "shim/store.h"

#include "shim/inside.h"

/* Per version, while going through the plan. IS_WANTED: a rebuild may have to begin with it. */
enum { NOTE_ABSENT = 1, NOTE_WAS_DROPPED = 2, NOTE_IS_WANTED = 4 };

static void annotate_run(struct script *script, const struct policy_problem *problem, uint32_t index,
                         unsigned char *notes)
{
    struct plan_item item = script->plan.items[index];
    const struct policy_operation *operation = &problem->operations[item.index];
    bool is_replay = item.verb == PLAN_REPLAY;
    script->operations[item.index].is_replayed |= is_replay;
    for (uint32_t j = 0; j < operation->read_count; j++) {
        struct script_version *version = &script->versions[problem->reads[operation->first_read + j]];
        version->last_item = index;
        version->is_checked |= !is_replay && (notes[version - script->versions] & NOTE_WAS_DROPPED);
    }
    for (uint32_t j = 0; j < operation->write_count; j++) {
        uint32_t written = problem->writes[operation->first_write + j], old = problem->versions[written].replaces;
        if (old != POLICY_NONE) {
            script->versions[old].last_item = index;
            script->versions[old].is_checked |= !is_replay && (notes[old] & NOTE_WAS_DROPPED);
        }
        script->versions[written].is_rebuilt |= is_replay && (notes[written] & NOTE_ABSENT);
        notes[written] &= (unsigned char)~NOTE_ABSENT;
    }
}

static void annotate_item(struct script *script, const struct policy_problem *problem, uint32_t index,
                          unsigned char *notes)
{
    struct plan_item item = script->plan.items[index];
    if (item.verb == PLAN_RUN || item.verb == PLAN_REPLAY) {
        annotate_run(script, problem, index, notes);
        return;
    }
    script->versions[item.index].last_item = index;
    if (item.verb == PLAN_DROP) {
        notes[item.index] |= NOTE_ABSENT | NOTE_WAS_DROPPED;
    }
}

/* Versions that a rebuild may start from: those that are dropped or rebuilt, and whatever these were made of, be it
 * because the plan says so or because it is left in the middle. */
static void note_sources(const struct script *script, unsigned char *notes)
{
    for (uint32_t i = script->operation_count; i-- > 0;) {
        const struct script_operation *operation = &script->operations[i];
        const struct script_touch *touches = &script->touches[operation->first_touch];
        bool is_wanted = false;
        for (uint32_t j = 0; j < operation->touch_count; j++) {
            is_wanted |= touches[j].writes != SCRIPT_NONE && (notes[touches[j].writes] & NOTE_IS_WANTED);
        }
        for (uint32_t j = 0; is_wanted && j < operation->touch_count; j++) {
            if (touches[j].reads != SCRIPT_NONE) {
                notes[touches[j].reads] |= NOTE_IS_WANTED;
            }
        }
    }
}

/* Bytes that nobody wrote are copied and changed like all others: they must come out equal wherever a rebuild begins.
 */
static void choose_filled(struct script *script, unsigned char *notes)
{
    for (uint32_t v = 0; v < script->version_count; v++) {
        notes[v] |= script->versions[v].print != SCRIPT_NONE ? NOTE_IS_WANTED : 0;
    }
    note_sources(script, notes);
    for (uint32_t v = 0; v < script->version_count; v++) {
        struct script_slot *slot = &script->slots[script->versions[v].slot];
        slot->is_filled |= slot->is_partly_written && (notes[v] & NOTE_IS_WANTED);
    }
}

void learn_annotate(struct script *script, const struct policy_problem *problem)
{
    unsigned char *notes = store_reserve(script->version_count + 1, "plan notes");
    if (notes == NULL) {
        return;
    }
    for (uint32_t i = 0; i < script->plan.item_count; i++) {
        annotate_item(script, problem, i, notes);
    }
    for (uint32_t v = 0; v < script->version_count; v++) {
        bool is_dropped = notes[v] & NOTE_WAS_DROPPED; /* if the plan is left, even what it never rebuilds may be */
        script->versions[v].print = script->versions[v].is_rebuilt || is_dropped ? script->print_count++ : SCRIPT_NONE;
        script->versions[v].is_checked |= problem->versions[v].is_kept && (notes[v] & NOTE_WAS_DROPPED);
    }
    choose_filled(script, notes);
    store_return(notes, script->version_count + 1);
}
