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
    return attempts_try(&c->search, (struct forward_settings){.hold = c->hold,
                                                              .weight = c->weight,
                                                              .pivot = c->search.request->pivot,
                                                              .beta = beta,
                                                              .omega = omega,
                                                              .flat_hold = is_flat,
                                                              .swap_weight = -1});
}

static void price_segments(struct checkpoints *c)
{
    const struct cut *cut = c->search.request->cut;
    attempts_count_passes(&c->search, 4);
    segments_mark_crossing(c->graph, c->search.request->pivot, c->segment_of, c->is_crossing);
    price_versions(c->graph, cut, false, 1, c->hold);
    for (uint32_t v = 0; v < c->graph->problem->version_count; v++) {
        c->weight[v] = c->is_crossing[v] ? PROTECTED : 1;
        if (c->is_crossing[v] && c->hold[v] <= 0)
            c->hold[v] = cut->price;
    }
}

static bool try_count(struct checkpoints *c, uint32_t count)
{
    uint32_t pivot = c->search.request->pivot;
    if (count < 2 || attempts_are_over(&c->search))
        return false;
    segments_by_count(c->graph, pivot, count, c->segment_of);
    price_segments(c);
    bool is_better = try_settings(c, 1, 0.1, false);
    if (!c->search.request->is_thorough)
        return is_better;
    is_better |= try_settings(c, 0.5, 0.5, false);
    is_better |= try_settings(c, 1, 0.5, true);
    if (attempts_are_over(&c->search))
        return is_better;
    segments_by_time(c->graph, pivot, count, c->segment_of);
    price_segments(c);
    return try_settings(c, 1, 0.1, false) || is_better;
}

/* Numbers of segments in geometric steps; stops when more no longer help. Returns the best. */
static uint32_t search_counts(struct checkpoints *c, uint32_t most)
{
    uint32_t best = 0, worse = 0;
    for (uint32_t count = 4; count <= most && worse < (best ? 2u : 6u) && !attempts_are_over(&c->search); count *= 2) {
        if (try_count(c, count)) {
            best = count;
            worse = 0;
        } else {
            worse++;
        }
    }
    return best;
}

static void refine_count(struct checkpoints *c, uint32_t around)
{
    for (double factor = 1.41; factor > 1.05 && !attempts_are_over(&c->search); factor = 1 + (factor - 1) / 2) {
        uint32_t more = (uint32_t)(around * factor), fewer = (uint32_t)(around / factor), best = around;
        best = try_count(c, more) ? more : best;
        around = try_count(c, fewer) ? fewer : best;
    }
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
    if (request->cut && !c.search.out_of_memory) {
        uint32_t best = search_counts(&c, segments_droppable_count(graph, request->pivot));
        if (best)
            refine_count(&c, best);
    }
    free(c.segment_of);
    free(c.is_crossing);
    free(c.hold);
    free(c.weight);
    return attempts_end(&c.search, out);
}

const struct strategy strategy_checkpoints = {"checkpoints", make};
