#include "policy/floor.h"
#include "policy/impossible.h"
#include "policy/plan.h"
#include <stdlib.h>

/* First position from which on v must stay once produced, whatever the plan: it is pinned from its
 * production up to droppable_from, and from the last chance to rebuild it up to its last need. */
static uint32_t forced_from(const struct graph *g, uint32_t v, bool can_swap)
{
    uint32_t producer = g->problem->versions[v].producer, born = producer == POLICY_NONE ? 0 : producer + 1;
    if (can_swap && g->problem->versions[v].is_swappable)
        return POLICY_NONE;
    return g->latest_rebuild[v] + 1 > born ? g->latest_rebuild[v] + 1 : born;
}

static void force(int64_t *change, uint32_t from, uint32_t to, uint64_t bytes)
{
    if (from >= to)
        return;
    change[from] += (int64_t)bytes;
    change[to] -= (int64_t)bytes;
}

/* Positions at which a version must be there: two ranges that do not overlap, ends excluded. */
struct forced {
    uint32_t pin_from, pin_to, need_from, need_to;
};

static struct forced forced_range(const struct graph *g, uint32_t v, bool can_swap)
{
    const struct policy_version *version = &g->problem->versions[v];
    uint32_t n = g->problem->operation_count, end = graph_replaced_at(g, v);
    uint32_t born = version->producer == POLICY_NONE ? 0 : version->producer + 1;
    struct forced f = {born, version->droppable_from < n + 1 ? version->droppable_from : n + 1, 0, 0};
    f.need_from = forced_from(g, v, can_swap);
    f.need_to = g->last_need[v] + 1;
    if (g->replaced_by[v] != POLICY_NONE) {
        f.pin_to = f.pin_to < end + 1 ? f.pin_to : end + 1;
        f.need_to = f.need_to < end + 1 ? f.need_to : end + 1;
    }
    if (f.pin_to <= f.pin_from)
        f.pin_to = f.pin_from = 0;
    if (f.need_from == POLICY_NONE || f.need_to <= f.need_from)
        f.need_from = f.need_to = 0;
    if (f.need_from < f.pin_to && f.need_to)
        f.need_from = f.pin_to; /* the union is what counts */
    if (f.need_to <= f.need_from)
        f.need_from = f.need_to = 0;
    return f;
}

static bool is_forced(const struct forced *f, uint32_t position)
{
    return (position >= f->pin_from && position < f->pin_to) || (position >= f->need_from && position < f->need_to);
}

/* What operation o needs beyond what is forced at its position. */
static uint64_t transient_bytes(const struct graph *g, uint32_t o, const struct forced *forced)
{
    const struct policy_problem *p = g->problem;
    uint64_t bytes = p->operations[o].workspace_bytes;
    for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++)
        bytes += is_forced(&forced[g->needs[k]], o) ? 0 : p->versions[g->needs[k]].bytes;
    for (uint32_t k = 0; k < p->operations[o].write_count; k++) {
        uint32_t v = p->writes[p->operations[o].first_write + k];
        bytes += p->versions[v].replaces == POLICY_NONE ? p->versions[v].bytes : 0;
    }
    return bytes;
}

static uint64_t greatest(const struct graph *g, bool can_swap, int64_t *change, struct forced *forced,
                         uint32_t *operation)
{
    const struct policy_problem *p = g->problem;
    uint64_t floor = 0, start = p->fixed_bytes;
    for (uint32_t v = 0; v < p->version_count; v++) {
        forced[v] = forced_range(g, v, can_swap);
        force(change, forced[v].pin_from, forced[v].pin_to, p->versions[v].bytes);
        force(change, forced[v].need_from, forced[v].need_to, p->versions[v].bytes);
        bool is_there = p->versions[v].producer == POLICY_NONE && !(can_swap && p->versions[v].may_start_on_host);
        start += is_there ? p->versions[v].bytes : 0;
    }
    floor = start;
    *operation = 0;
    int64_t held = (int64_t)p->fixed_bytes;
    for (uint32_t o = 0; o <= p->operation_count; o++) {
        held += change[o];
        uint64_t now = (uint64_t)held + (o < p->operation_count ? transient_bytes(g, o, forced) : 0);
        *operation = now > floor ? o : *operation;
        floor = now > floor ? now : floor;
    }
    return floor;
}

uint64_t floor_of_operations(const struct graph *g, bool can_swap, uint32_t *operation)
{
    int64_t *change = calloc((size_t)g->problem->operation_count + 3, sizeof *change);
    struct forced *forced = malloc(sizeof *forced * ((size_t)g->problem->version_count + 1));
    uint64_t floor = change && forced ? greatest(g, can_swap, change, forced, operation) : UINT64_MAX;
    free(change);
    free(forced);
    return floor;
}

uint64_t policy_floor_bytes(const struct policy_problem *problem)
{
    struct graph g;
    if (!policy_problem_is_valid(problem, NULL, 0) || !graph_build(&g, problem))
        return UINT64_MAX;
    bool can_swap = problem->out_bytes_per_ns > 0 && problem->in_bytes_per_ns > 0;
    uint32_t operation;
    uint64_t floor = floor_of_operations(&g, can_swap, &operation);
    if (!can_swap && floor != UINT64_MAX)
        floor = impossible_floor(&g, floor);
    graph_release(&g);
    return floor;
}
