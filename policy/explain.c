#include "policy/explain.h"
#include "policy/residency.h"
#include <stdlib.h>

enum { BY_NOBODY, BY_PROGRAM, BY_GROUP }; /* BY_GROUP + g: by a replay that is charged to group g */

struct explainer {
    const struct graph *graph;
    const struct plan *plan;
    const uint32_t *group_of;
    uint32_t group_count;
    struct explain_group *groups;
    uint32_t *next_use;   /* per version, walking backward: who uses what is there now */
    uint32_t *first_made; /* per item: where its flags begin in is_made */
    bool *is_made;        /* per replay and output: it was absent */
    uint32_t pivot;
};

static struct explain_group *group_of_version(struct explainer *x, uint32_t version)
{
    uint32_t producer = x->graph->problem->versions[version].producer;
    return &x->groups[producer == POLICY_NONE ? x->group_count : x->group_of[producer]];
}

static void note_saved(struct explainer *x, const struct residency *r)
{
    const struct policy_problem *p = x->graph->problem;
    for (uint32_t v = 0; v < p->version_count; v++) {
        bool has_been = p->versions[v].producer == POLICY_NONE || p->versions[v].producer < x->pivot;
        bool is_overwritten = graph_replaced_at(x->graph, v) < x->pivot;
        if (has_been && !is_overwritten && x->graph->last_need[v] > x->pivot && !residency_has(r, v))
            group_of_version(x, v)->saved_bytes += p->versions[v].bytes;
    }
}

/* Notes what every replay makes. */
static void walk_forward(struct explainer *x, struct residency *r)
{
    const struct policy_problem *p = x->graph->problem;
    uint32_t flags = 0;
    for (uint32_t k = 0; k < x->plan->item_count; k++) {
        struct plan_item item = x->plan->items[k];
        if (item.verb == PLAN_RUN && item.index == x->pivot)
            note_saved(x, r);
        x->first_made[k] = flags;
        if (item.verb == PLAN_REPLAY) {
            const struct policy_operation *op = &p->operations[item.index];
            for (uint32_t w = 0; w < op->write_count; w++)
                x->is_made[flags++] = !residency_has(r, p->writes[op->first_write + w]);
        }
        residency_step(r, item);
    }
}

static void use_inputs(struct explainer *x, uint32_t operation, uint32_t user)
{
    for (uint32_t k = x->graph->need_first[operation]; k < x->graph->need_first[operation + 1]; k++)
        if (x->next_use[x->graph->needs[k]] != BY_PROGRAM)
            x->next_use[x->graph->needs[k]] = user;
}

static void count_return(struct explainer *x, uint32_t version, bool is_swap)
{
    struct explain_group *group = group_of_version(x, version);
    uint64_t bytes = x->graph->problem->versions[version].bytes;
    group->dropped_count++;
    group->dropped_bytes += bytes;
    group->swapped_count += is_swap;
    group->swapped_bytes += is_swap ? bytes : 0;
}

static void charge_replay(struct explainer *x, uint32_t operation, const bool *is_made)
{
    const struct policy_problem *p = x->graph->problem;
    const struct policy_operation *op = &p->operations[operation];
    uint32_t owner = BY_NOBODY;
    for (uint32_t w = 0; w < op->write_count; w++) {
        uint32_t v = p->writes[op->first_write + w], use = x->next_use[v];
        if (!is_made[w])
            continue;
        if (use == BY_PROGRAM) {
            count_return(x, v, false);
            owner = BY_GROUP + x->group_of[operation];
        } else if (owner == BY_NOBODY) {
            owner = use;
        }
        x->next_use[v] = BY_NOBODY;
    }
    if (owner == BY_NOBODY)
        owner = BY_GROUP + x->group_of[operation];
    x->groups[owner - BY_GROUP].replay_count++;
    x->groups[owner - BY_GROUP].replay_ns += op->nanoseconds;
    use_inputs(x, operation, owner);
}

static void walk_backward(struct explainer *x)
{
    const struct policy_problem *p = x->graph->problem;
    for (uint32_t v = 0; v < p->version_count; v++)
        x->next_use[v] = p->versions[v].is_kept ? BY_PROGRAM : BY_NOBODY;
    for (uint32_t k = x->plan->item_count; k-- > 0;) {
        struct plan_item item = x->plan->items[k];
        if (item.verb == PLAN_REPLAY) {
            charge_replay(x, item.index, x->is_made + x->first_made[k]);
        } else if (item.verb == PLAN_RUN) {
            const struct policy_operation *op = &p->operations[item.index];
            for (uint32_t w = 0; w < op->write_count; w++)
                x->next_use[p->writes[op->first_write + w]] = BY_NOBODY;
            use_inputs(x, item.index, BY_PROGRAM);
        } else {
            if (item.verb == PLAN_SWAP_IN)
                count_return(x, item.index, true);
            x->next_use[item.index] = BY_NOBODY;
        }
    }
}

bool explain_plan(const struct graph *graph, const struct plan *plan, const uint32_t *group_of_operation,
                  uint32_t group_count, struct explain_group *groups)
{
    const struct policy_problem *p = graph->problem;
    struct explainer x = {
        .graph = graph, .plan = plan, .group_of = group_of_operation, .group_count = group_count, .groups = groups};
    struct residency residency = {0};
    size_t flags = 1;
    for (uint32_t k = 0; k < plan->item_count; k++)
        flags += plan->items[k].verb == PLAN_REPLAY ? p->operations[plan->items[k].index].write_count : 0;
    for (uint32_t g = 0; g <= group_count; g++)
        groups[g] = (struct explain_group){0};
    graph_undropped_peak(graph, &x.pivot);
    x.next_use = malloc(sizeof *x.next_use * ((size_t)p->version_count + 1));
    x.first_made = malloc(sizeof *x.first_made * ((size_t)plan->item_count + 1));
    x.is_made = malloc(flags);
    bool has_memory = x.next_use && x.first_made && x.is_made && residency_begin(&residency, graph, UINT64_MAX);
    if (has_memory) {
        walk_forward(&x, &residency);
        walk_backward(&x);
    }
    residency_end(&residency);
    free(x.next_use);
    free(x.first_made);
    free(x.is_made);
    return has_memory;
}
