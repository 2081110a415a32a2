/* The state of a forward simulation, kept up to date item by item: so that scoring finds what is absent around a
 * version without looking.
 *
 *     absent_outputs of o == its outputs that were there once and are not now; absent_inputs likewise
 *     absent_children of v == the sum of absent_outputs over its readers */
#include "policy/pressure.h"
#include <stdlib.h>
#include <string.h>

enum { LEAST_CANDIDATES = 64 };

static struct forward_version version_at_start(const struct graph *g, uint32_t v)
{
    const struct policy_version *version = &g->problem->versions[v];
    uint32_t first = g->reader_first[v], end = g->reader_first[v + 1];
    return (struct forward_version){.bytes = version->bytes,
                                    .producer = version->producer,
                                    .droppable_from = version->droppable_from,
                                    .reader_first = first,
                                    .reader_end = end,
                                    .last_need = g->last_need[v],
                                    .rebuildable_until = g->rebuildable_until[v],
                                    .next_use = first < end ? g->readers[first] : POLICY_NONE,
                                    .cursor = first,
                                    .need_next = POLICY_NONE};
}

bool forward_state_begin(struct forward *f, const struct graph *g, const struct forward_settings *settings)
{
    size_t versions = (size_t)g->problem->version_count + 1, operations = (size_t)g->problem->operation_count + 2;
    *f = (struct forward){.graph = g, .settings = settings};
    f->versions = aligned_alloc(sizeof *f->versions, versions * sizeof *f->versions);
    f->operations = malloc(operations * sizeof *f->operations);
    f->losses = calloc(versions, sizeof *f->losses);
    f->child_until = calloc(versions, sizeof(uint32_t));
    f->walk = malloc(versions * sizeof(uint32_t) + 4096);
    f->wake_next = malloc(versions * sizeof(uint32_t));
    f->wake_head = malloc(operations * sizeof(uint32_t));
    bool has_candidates = candidates_begin(&f->candidates, 2 * g->problem->version_count + LEAST_CANDIDATES);
    if (!residency_begin(&f->residency, g, settings->cap) || !has_candidates || !f->versions || !f->operations ||
        !f->child_until || !f->losses || !f->walk || !f->wake_next || !f->wake_head)
        return false;
    memset(f->wake_head, 0xff, operations * sizeof(uint32_t));
    for (uint32_t o = 0; o < g->problem->operation_count; o++) {
        const struct policy_operation *op = &g->problem->operations[o];
        f->operations[o] = (struct forward_operation){.nanoseconds = (double)op->nanoseconds,
                                                      .need_first = g->need_first[o],
                                                      .read_end = g->need_first[o] + op->read_count,
                                                      .need_end = g->need_first[o + 1]};
    }
    for (uint32_t v = 0; v + 1 < versions; v++) {
        f->wake_next[v] = v;
        f->versions[v] = version_at_start(g, v);
    }
    return true;
}

void forward_state_end(struct forward *f)
{
    residency_end(&f->residency);
    free(f->versions);
    free(f->operations);
    free(f->losses);
    free(f->child_until);
    free(f->walk);
    free(f->wake_next);
    free(f->wake_head);
    candidates_end(&f->candidates);
    free(f->frames);
}

/* v went, by = 1, or came back, by = -1. */
static void count_absent(struct forward *f, uint32_t v, uint32_t by)
{
    const struct graph *g = f->graph;
    const struct forward_version *version = &f->versions[v];
    for (uint32_t k = version->reader_first; k < version->reader_end; k++)
        f->operations[g->readers[k]].absent_inputs += by;
    if (version->producer == POLICY_NONE)
        return;
    struct forward_operation *maker = &f->operations[version->producer];
    maker->absent_outputs += by;
    for (uint32_t k = maker->need_first; k < maker->need_end; k++)
        f->versions[g->needs[k]].absent_children += by;
}

static void pass_operation(struct forward *f, uint32_t operation)
{
    const struct graph *g = f->graph;
    for (uint32_t k = g->need_first[operation]; k < g->need_first[operation + 1]; k++) {
        struct forward_version *version = &f->versions[g->needs[k]];
        version->cursor++;
        bool has_more = version->cursor < version->reader_end;
        version->next_use = has_more ? g->readers[version->cursor] : POLICY_NONE;
    }
}

static bool append(struct forward *f, enum plan_verb verb, uint32_t index)
{
    if (!items_append(&f->items, verb, index))
        f->out_of_memory = true;
    return !f->out_of_memory;
}

bool forward_step(struct forward *f, enum plan_verb verb, uint32_t index)
{
    if (!residency_step(&f->residency, (struct plan_item){(uint32_t)verb, index}))
        return false;
    count_absent(f, index, verb == PLAN_SWAP_IN ? UINT32_MAX : 1);
    return append(f, verb, index);
}

/* Counts what an operation's outputs change; true where one of them takes another's place. */
static bool count_outputs(struct forward *f, uint32_t operation, bool is_replay)
{
    const struct policy_problem *p = f->graph->problem;
    const struct policy_operation *op = &p->operations[operation];
    if (!is_replay && !f->graph->is_in_place[operation])
        return false;
    bool is_in_place = false;
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k], old = p->versions[v].replaces;
        if (residency_has(&f->residency, v))
            continue;
        if (is_replay)
            count_absent(f, v, UINT32_MAX);
        if (old != POLICY_NONE)
            count_absent(f, old, 1);
        is_in_place |= old != POLICY_NONE;
    }
    return is_in_place;
}

bool forward_step_operation(struct forward *f, uint32_t operation)
{
    bool is_replay = operation != f->residency.position;
    enum plan_verb verb = is_replay ? PLAN_REPLAY : PLAN_RUN;
    if (!count_outputs(f, operation, is_replay))
        residency_make_outputs(&f->residency, operation);
    else if (!residency_step(&f->residency, (struct plan_item){(uint32_t)verb, operation}))
        return false; /* making room took what is replaced */
    if (!is_replay) {
        pass_operation(f, operation);
        f->most_losses = 0;
    }
    return append(f, verb, operation);
}
