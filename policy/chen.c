/* Chen et al. 2016 on a recorded iteration: what crosses a segment's boundary is kept, the rest of the
 * segment is dropped, and rebuilt from the boundary when the backward pass first asks for it.
 *
 * chen-segments: k segments of equal size, all sensible k.
 * chen-budget: a boundary wherever the dropped bytes pass b; b is searched.
 * Drops happen only under pressure, oldest segment first, so that neither does more work than it must. */
#include "policy/segments.h"
#include "policy/strategy.h"
#include <math.h>
#include <stdlib.h>

struct chen {
    const struct graph *graph;
    uint32_t pivot;
    uint32_t *segment_of;
    bool *is_crossing;
    double *hold;
    struct attempt_search search;
};

static bool chen_begin(struct chen *c, const struct graph *graph, const struct strategy_request *request)
{
    *c = (struct chen){.graph = graph, .pivot = request->pivot};
    c->segment_of = malloc(sizeof *c->segment_of * ((size_t)graph->problem->operation_count + 1));
    c->is_crossing = malloc(sizeof *c->is_crossing * ((size_t)graph->problem->version_count + 1));
    c->hold = malloc(sizeof *c->hold * ((size_t)graph->problem->version_count + 1));
    attempts_begin(&c->search, graph, request);
    return c->segment_of && c->is_crossing && c->hold;
}

static enum strategy_result chen_end(struct chen *c, bool has_begun, struct item_list *out)
{
    free(c->segment_of);
    free(c->is_crossing);
    free(c->hold);
    c->search.out_of_memory |= !has_begun;
    return attempts_end(&c->search, out);
}

static bool try_segments(struct chen *c)
{
    const struct graph *g = c->graph;
    const struct policy_problem *p = g->problem;
    attempts_count_passes(&c->search, 3);
    segments_mark_crossing(g, c->pivot, c->segment_of, c->is_crossing);
    double last = (double)g->problem->operation_count + 2;
    for (uint32_t v = 0; v < p->version_count; v++) {
        uint32_t producer = p->versions[v].producer;
        bool is_wanted = g->last_need[v] >= c->pivot;
        double order = producer == POLICY_NONE ? 0 : producer + 1.0;
        c->hold[v] = c->is_crossing[v] ? last + order : is_wanted ? order : 0;
    }
    return attempts_try(
        &c->search,
        (struct forward_settings){
            .hold = c->hold, .pivot = c->pivot, .beta = 1, .omega = 0.5, .swap_weight = -1, .flat_hold = true});
}

static enum strategy_result make_segments(const struct graph *graph, const struct strategy_request *request,
                                          struct item_list *out)
{
    struct chen c;
    if (!request->is_thorough)
        return STRATEGY_NOTHING;
    bool has_begun = chen_begin(&c, graph, request);
    uint32_t count = has_begun ? segments_droppable_count(graph, request->pivot) : 0, previous = 0;
    for (double k = 2; k <= count && !attempts_are_over(&c.search); k *= 1.3) {
        if ((uint32_t)k == previous)
            continue;
        previous = (uint32_t)k;
        segments_by_count(graph, c.pivot, previous, c.segment_of);
        try_segments(&c);
    }
    return chen_end(&c, has_begun, out);
}

static enum strategy_result make_budget(const struct graph *graph, const struct strategy_request *request,
                                        struct item_list *out)
{
    struct chen c;
    if (!request->is_thorough)
        return STRATEGY_NOTHING;
    bool has_begun = chen_begin(&c, graph, request);
    double bytes = has_begun ? (double)segments_droppable_bytes(graph, request->pivot) : 0, best = 0;
    for (double budget = bytes / 2; budget > bytes / 4096 && budget >= 1 && !attempts_are_over(&c.search);
         budget /= 1.5) {
        segments_by_bytes(graph, c.pivot, (uint64_t)budget, c.segment_of);
        if (try_segments(&c))
            best = budget;
    }
    for (double factor = 1.3; best > 0 && factor > 1.02 && !attempts_are_over(&c.search); factor = sqrt(factor)) {
        double around[] = {best * factor, best / factor};
        for (int side = 0; side < 2; side++) {
            segments_by_bytes(graph, c.pivot, (uint64_t)around[side], c.segment_of);
            if (try_segments(&c))
                best = around[side];
        }
    }
    return chen_end(&c, has_begun, out);
}

const struct strategy strategy_chen_segments = {"chen-segments", make_segments};
const struct strategy strategy_chen_budget = {"chen-budget", make_budget};
