#include "policy/bound.h"
#include "policy/cut_pair.h"
#include <stdlib.h>

/* FLOW_STEPS of a flow take about as long as one step of effort. */
enum { MOST_POSITIONS = 6, MOST_OPERATIONS = 20000, FLOW_STEPS = 2, LEAST_PART = 4 };

#define SHARE_OF_EFFORT 0.05

struct candidate {
    uint32_t position;
    uint64_t score;
};

struct bounding {
    const struct graph *graph;
    uint64_t cap;
    const struct cut *cut;
    uint64_t steps, most_steps; /* of flows */
    uint64_t bound;
    uint32_t best; /* position of the greatest bound at a single one */
    double price;  /* there */
};

static uint64_t bytes_of(const struct graph *g, uint32_t o)
{
    const struct policy_problem *p = g->problem;
    uint64_t bytes = p->operations[o].workspace_bytes;
    for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++)
        bytes += p->versions[g->needs[k]].bytes;
    for (uint32_t k = 0; k < p->operations[o].write_count; k++)
        bytes += p->versions[p->writes[p->operations[o].first_write + k]].bytes;
    return bytes;
}

/* Keeps the candidates with the greatest scores, in descending order. */
static void enter(struct candidate *candidates, uint32_t *count, struct candidate new)
{
    uint32_t at = *count < MOST_POSITIONS ? (*count)++ : MOST_POSITIONS;
    for (; at > 0 && candidates[at - 1].score < new.score; at--)
        if (at < MOST_POSITIONS)
            candidates[at] = candidates[at - 1];
    if (at < MOST_POSITIONS)
        candidates[at] = new;
}

static bool is_spent(const struct bounding *b)
{
    return b->steps > b->most_steps || b->bound == UINT64_MAX;
}

/* Where little room is left beside the operation itself, and yet almost everything is held. */
static void try_positions(struct bounding *b, const uint64_t *held)
{
    struct candidate candidates[MOST_POSITIONS];
    uint32_t count = 0, pivot = b->cut->pivot;
    for (uint32_t o = 0; o < b->graph->problem->operation_count; o++) {
        uint64_t lack = held[pivot] - held[o], bytes = bytes_of(b->graph, o);
        if (o != pivot && held[o] <= held[pivot] && bytes > lack)
            enter(candidates, &count, (struct candidate){o, bytes - lack});
    }
    for (uint32_t k = 0; k < count && !is_spent(b); k++) {
        double price = b->cut->price;
        uint64_t bound = cut_bound_near(b->graph, candidates[k].position, b->cap, &price, &b->steps);
        if (bound <= b->bound)
            continue;
        b->bound = bound;
        b->best = candidates[k].position;
        b->price = price;
    }
}

static void try_pair(struct bounding *b, uint32_t other)
{
    double price = b->price;
    if (other == b->best || is_spent(b))
        return;
    cut_bound_near(b->graph, other, b->cap, &price, &b->steps);
    bool is_first = b->best < other;
    struct cut_pair_request request = {.first = is_first ? b->best : other,
                                       .second = is_first ? other : b->best,
                                       .first_price = is_first ? b->price : price,
                                       .second_price = is_first ? price : b->price,
                                       .cap = b->cap,
                                       .known_ns = b->bound};
    b->bound = cut_pair_bound(b->graph, &request, &b->steps);
}

/* The best position together with the pivot, and with operations that take a good part of the cap. Of those that take
 * the same, the first one stands for all. */
static void try_pairs(struct bounding *b)
{
    struct candidate candidates[MOST_POSITIONS];
    uint32_t count = 0;
    for (uint32_t o = 0; o < b->graph->problem->operation_count; o++) {
        struct candidate new = {o, bytes_of(b->graph, o)};
        bool is_known = o == b->best || new.score < b->cap / LEAST_PART;
        for (uint32_t k = 0; k < count; k++)
            is_known |= candidates[k].score == new.score;
        if (!is_known)
            enter(candidates, &count, new);
    }
    if (count || bytes_of(b->graph, b->best) >= b->cap / LEAST_PART)
        try_pair(b, b->cut->pivot);
    for (uint32_t k = 0; k < count; k++)
        try_pair(b, candidates[k].position);
}

struct bound bound_find(const struct graph *g, uint64_t cap, const struct cut *cut, struct effort *effort)
{
    struct bounding b = {.graph = g,
                         .cap = cap,
                         .cut = cut,
                         .most_steps = (uint64_t)(SHARE_OF_EFFORT * FLOW_STEPS * (double)effort->allowed),
                         .bound = cut->bound_ns,
                         .best = cut->pivot,
                         .price = cut->price};
    struct bound found = {cut->bound_ns, cut->bound_ns, cut->pivot};
    if (b.bound == UINT64_MAX || cut->price <= 0 || g->problem->operation_count > MOST_OPERATIONS)
        return found;
    uint64_t *held = malloc(sizeof *held * ((size_t)g->problem->operation_count + 1));
    if (held && graph_undropped_bytes(g, held)) {
        try_positions(&b, held);
        found.single = b.bound;
        try_pairs(&b);
    }
    free(held);
    effort->steps += b.steps / FLOW_STEPS;
    found.ns = b.bound;
    found.position = b.best;
    return found;
}
