#include "policy/residency.h"
#include <stdlib.h>

bool residency_begin(struct residency *r, const struct graph *graph, uint64_t cap)
{
    const struct policy_problem *p = graph->problem;
    *r = (struct residency){.graph = graph, .cap = cap, .bytes = p->fixed_bytes};
    r->state = calloc((size_t)p->version_count + 1, 1);
    if (!r->state)
        return false;
    for (uint32_t v = 0; v < p->version_count; v++) {
        if (p->versions[v].producer == POLICY_NONE) {
            r->state[v] = RESIDENCY_PRESENT;
            r->bytes += p->versions[v].bytes;
        }
    }
    r->step_bytes = r->bytes;
    return true;
}

void residency_end(struct residency *r)
{
    free(r->state);
    r->state = NULL;
}

static bool refuse(struct residency *r, enum step_result result, uint32_t version)
{
    r->fault = (struct step_fault){.result = result, .version = version};
    return false;
}

static bool refuse_bytes(struct residency *r, uint64_t bytes)
{
    r->fault = (struct step_fault){.result = STEP_OVER_CAP, .version = POLICY_NONE, .bytes = bytes};
    return false;
}

/* An output takes over the bytes of what it replaces whenever it is absent itself. */
static bool takes_over(const struct residency *r, uint32_t version)
{
    return !residency_has(r, version) && r->graph->problem->versions[version].replaces != POLICY_NONE;
}

uint64_t residency_growth(const struct residency *r, uint32_t operation, bool is_replay)
{
    const struct policy_problem *p = r->graph->problem;
    const struct policy_operation *op = &p->operations[operation];
    if (!is_replay || !r->graph->is_in_place[operation])
        return r->graph->growth[operation] + (is_replay ? op->scratch_bytes : 0);
    uint64_t bytes = op->workspace_bytes + op->scratch_bytes;
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k];
        if (!takes_over(r, v))
            bytes += p->versions[v].bytes;
    }
    return bytes;
}

static uint32_t first_missing(const struct residency *r, uint32_t operation)
{
    const struct graph *g = r->graph;
    const struct policy_operation *op = &g->problem->operations[operation];
    for (uint32_t k = g->need_first[operation]; k < g->need_first[operation + 1]; k++) {
        uint32_t v = g->needs[k];
        if (residency_has(r, v))
            continue;
        if (k < g->need_first[operation] + op->read_count || !residency_has(r, g->replaced_by[v]))
            return v;
    }
    return POLICY_NONE;
}

static bool step_operation(struct residency *r, uint32_t operation, bool is_replay)
{
    const struct policy_problem *p = r->graph->problem;
    const struct policy_operation *op = &p->operations[operation];
    uint32_t missing = first_missing(r, operation);
    if (missing != POLICY_NONE)
        return refuse(r, STEP_ABSENT, missing);
    uint64_t during = r->bytes + residency_growth(r, operation, is_replay);
    if (during > r->cap)
        return refuse_bytes(r, during);
    r->step_bytes = during;
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k];
        if (residency_has(r, v))
            continue;
        if (takes_over(r, v))
            r->state[p->versions[v].replaces] &= RESIDENCY_STARTED_ON_HOST;
        else
            r->bytes += p->versions[v].bytes;
        r->state[v] |= RESIDENCY_PRESENT;
    }
    return true;
}

void residency_make_outputs(struct residency *r, uint32_t operation)
{
    const struct policy_problem *p = r->graph->problem;
    const struct policy_operation *op = &p->operations[operation];
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k];
        r->bytes += residency_has(r, v) ? 0 : p->versions[v].bytes;
        r->state[v] |= RESIDENCY_PRESENT;
    }
    r->has_begun = true;
    r->position += operation == r->position;
}

static bool can_swap(const struct policy_problem *p, uint32_t v)
{
    return p->versions[v].is_swappable && p->out_bytes_per_ns > 0 && p->in_bytes_per_ns > 0;
}

static bool is_start_on_host(const struct residency *r, struct plan_item item)
{
    const struct policy_problem *p = r->graph->problem;
    return !r->has_begun && item.verb == PLAN_DROP && item.index < p->version_count &&
           p->versions[item.index].may_start_on_host && can_swap(p, item.index) && residency_has(r, item.index);
}

static bool start_on_host(struct residency *r, uint32_t v)
{
    r->state[v] = RESIDENCY_ON_HOST | RESIDENCY_STARTED_ON_HOST;
    r->bytes -= r->graph->problem->versions[v].bytes;
    r->step_bytes = r->bytes;
    return true;
}

static bool step_out(struct residency *r, uint32_t v, bool is_swap)
{
    const struct policy_problem *p = r->graph->problem;
    if (!residency_has(r, v))
        return refuse(r, STEP_ABSENT, v);
    if (p->versions[v].droppable_from == POLICY_NONE || r->position < p->versions[v].droppable_from)
        return refuse(r, STEP_NOT_DROPPABLE, v);
    if (is_swap && !can_swap(p, v))
        return refuse(r, STEP_NOT_SWAPPABLE, v);
    r->step_bytes = r->bytes;
    r->state[v] = (uint8_t)((r->state[v] & ~RESIDENCY_PRESENT) | (is_swap ? RESIDENCY_ON_HOST : 0));
    r->bytes -= p->versions[v].bytes;
    return true;
}

static bool step_in(struct residency *r, uint32_t v)
{
    uint64_t during = r->bytes + r->graph->problem->versions[v].bytes;
    if (residency_has(r, v))
        return refuse(r, STEP_PRESENT, v);
    if (!(r->state[v] & RESIDENCY_ON_HOST))
        return refuse(r, STEP_NOT_ON_HOST, v);
    if (during > r->cap)
        return refuse_bytes(r, during);
    r->state[v] |= RESIDENCY_PRESENT;
    r->bytes = r->step_bytes = during;
    return true;
}

bool residency_step(struct residency *r, struct plan_item item)
{
    const struct policy_problem *p = r->graph->problem;
    bool is_operation = item.verb == PLAN_RUN || item.verb == PLAN_REPLAY;
    if (item.verb > PLAN_SWAP_IN || item.index >= (is_operation ? p->operation_count : p->version_count))
        return refuse(r, STEP_BAD_ITEM, POLICY_NONE);
    if (is_start_on_host(r, item))
        return start_on_host(r, item.index);
    r->has_begun = true;
    switch (item.verb) {
    case PLAN_RUN:
        if (item.index != r->position)
            return refuse(r, STEP_OUT_OF_ORDER, POLICY_NONE);
        if (!step_operation(r, item.index, false))
            return false;
        r->position++;
        return true;
    case PLAN_REPLAY:
        if (item.index >= r->position || r->position > p->operations[item.index].replayable_until)
            return refuse(r, STEP_NOT_REPLAYABLE, POLICY_NONE);
        return step_operation(r, item.index, true);
    case PLAN_DROP:
    case PLAN_SWAP_OUT:
        return step_out(r, item.index, item.verb == PLAN_SWAP_OUT);
    default:
        return step_in(r, item.index);
    }
}

bool residency_is_complete(const struct residency *r)
{
    for (uint32_t v = 0; v < r->graph->problem->version_count; v++) {
        bool is_due = residency_is_due(r, v), is_owed = residency_is_owed(r, v);
        if ((is_due && !residency_has(r, v)) || (is_owed && !(r->state[v] & RESIDENCY_ON_HOST)))
            return false;
    }
    return r->position == r->graph->problem->operation_count;
}
