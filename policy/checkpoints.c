/* Checkpoints with prices: what crosses a segment's boundary is protected throughout, so that a long chain is
 * never rebuilt as a whole; within the segments the prices of the parametric cut decide. */
#include "policy/prices.h"
#include "policy/segments.h"
#include "policy/strategy.h"
#include <stdlib.h>

enum { PROTECTED = 1000 };

struct checkpoints {
    const struct graph *graph;
    uint32_t *segment_of;
    bool *is_crossing;
    double *hold, *weight;
    struct attempt_search search;
};

static bool try_settings(struct checkpoints *c, double beta, double omega, bool is_flat)
{
    return attempts_try(&c->search, (struct forward_settings){.hold = c->hold, .weight = c->weight,
                                                              .pivot = c->search.request->pivot, .beta = beta,
                                                              .omega = omega, .flat_hold = is_flat, .swap_weight = 1});
}

static bool try_segments(struct checkpoints *c)
{
    const struct cut *cut = c->search.request->cut;
    segments_mark_crossing(c->graph, c->search.request->pivot, c->segment_of, c->is_crossing);
    price_versions(c->graph, cut, 1, c->hold);
    for (uint32_t v = 0; v < c->graph->problem->version_count; v++) {
        c->weight[v] = c->is_crossing[v] ? PROTECTED : 1;
        if (c->is_crossing[v] && c->hold[v] <= 0)
            c->hold[v] = cut->price;
    }
    bool is_better = try_settings(c, 0.5, 0.5, false);
    is_better |= try_settings(c, 1, 0.1, false);
    return is_better;
}

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out)
{
    struct checkpoints c = {.graph = graph};
    size_t versions = (size_t)graph->problem->version_count + 1;
    attempts_begin(&c.search, graph, request);
    c.segment_of = malloc(sizeof *c.segment_of * ((size_t)graph->problem->operation_count + 1));
    c.is_crossing = malloc(versions);
    c.hold = malloc(versions * sizeof *c.hold);
    c.weight = malloc(versions * sizeof *c.weight);
    c.search.out_of_memory = !c.segment_of || !c.is_crossing || !c.hold || !c.weight;
    uint32_t count = request->cut ? segments_droppable_count(graph, request->pivot) : 0, previous = 0;
    for (double k = 4; k <= count && !c.search.out_of_memory; k *= 1.5) {
        if ((uint32_t)k == previous)
            continue;
        previous = (uint32_t)k;
        segments_by_count(graph, request->pivot, previous, c.segment_of);
        try_segments(&c);
    }
    free(c.segment_of);
    free(c.is_crossing);
    free(c.hold);
    free(c.weight);
    return attempts_end(&c.search, out);
}

const struct strategy strategy_checkpoints = {"checkpoints", make};
