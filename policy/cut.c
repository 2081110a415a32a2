#include "policy/cut.h"
#include "policy/flow.h"
#include "policy/standing.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How the price is searched: doubled from `first` until what is kept fits, and `beyond` times more; then narrowed. */
struct search {
    double first;
    int coarse, beyond, fine;
};

static const struct search whole_search = {0, 44, 4, 16}, near_search = {0, 16, 0, 7};

#define NEAR_SHARE (1.0 / 64)

struct hold {
    uint32_t version, node, producer; /* producer: operation, or POLICY_NONE where only holding helps */
    uint32_t edge;                    /* POLICY_NONE where holding is impossible */
};

struct solver {
    const struct graph *graph;
    uint32_t pivot;
    struct standings at;
    uint32_t *node_of; /* per version: its node, POLICY_NONE if it has none */
    struct hold *holds;
    uint32_t hold_count;
    struct flow flow;
    double price;        /* at which supplies and edges stand now */
    int64_t wanted;      /* bytes that the program needs later and that may be dropped */
    double value, bound; /* cut - price x room: at this price, and the greatest so far */
    double *threshold;
    int64_t most_bytes; /* of one operation's wanted outputs, or of one version that can be held */
};

static void connect_input(struct solver *s, uint32_t o, uint32_t v)
{
    const struct policy_version *version = &s->graph->problem->versions[v];
    if (s->at.of[v] == STANDING_GIVEN || s->at.of[v] == STANDING_WANTED)
        return;
    if (s->node_of[v] == POLICY_NONE) {
        uint32_t producer = version->producer, node = s->pivot + s->hold_count;
        bool can_rebuild = producer != POLICY_NONE && standings_can_run_again(&s->at, producer),
             can_hold = standings_can_hold(&s->at, v);
        uint32_t edge =
            flow_connect(&s->flow, node, can_rebuild ? producer : s->flow.node_count, can_hold ? 0 : FLOW_INFINITE);
        s->node_of[v] = node;
        s->holds[s->hold_count++] =
            (struct hold){v, node, can_rebuild ? producer : POLICY_NONE, can_hold ? edge : POLICY_NONE};
    }
    flow_connect(&s->flow, o, s->node_of[v], FLOW_INFINITE);
}

static void build_network(struct solver *s)
{
    const struct graph *g = s->graph;
    const struct policy_problem *p = g->problem;
    for (uint32_t o = 0; o < s->pivot; o++) {
        bool can_run = standings_can_run_again(&s->at, o);
        flow_connect(&s->flow, o, s->flow.node_count, can_run ? (int64_t)p->operations[o].nanoseconds : FLOW_INFINITE);
        for (uint32_t k = g->need_first[o]; can_run && k < g->need_first[o + 1]; k++)
            if (standings_takes(&s->at, o, k))
                connect_input(s, o, g->needs[k]);
    }
}

/* Raises the price, solves, and takes the bound. */
static void solve_at(struct solver *s, double price)
{
    const struct policy_problem *p = s->graph->problem;
    for (uint32_t o = 0; o < s->pivot; o++)
        if (s->at.wanted_bytes[o])
            flow_supply(&s->flow, o,
                        flow_worth(price, s->at.wanted_bytes[o]) - flow_worth(s->price, s->at.wanted_bytes[o]));
    for (uint32_t k = 0; k < s->hold_count; k++) {
        int64_t bytes = (int64_t)p->versions[s->holds[k].version].bytes;
        if (s->holds[k].edge != POLICY_NONE)
            flow_widen(&s->flow, s->holds[k].edge, flow_worth(price, bytes) - flow_worth(s->price, bytes));
    }
    s->price = price;
    s->value = (double)flow_solve(&s->flow) - price * (double)s->at.room;
    s->bound = s->value > s->bound ? s->value : s->bound;
    for (uint32_t o = 0; o < s->pivot; o++)
        if (s->threshold && flow_is_source_side(&s->flow, o) && s->threshold[o] > price)
            s->threshold[o] = price;
}

static bool is_held_now(const struct solver *s, const struct hold *hold)
{
    return hold->edge != POLICY_NONE && flow_is_source_side(&s->flow, hold->node) &&
           (hold->producer == POLICY_NONE || !flow_is_source_side(&s->flow, hold->producer));
}

static int64_t kept_bytes(const struct solver *s)
{
    int64_t bytes = 0;
    for (uint32_t o = 0; o < s->pivot; o++)
        bytes += flow_is_source_side(&s->flow, o) ? 0 : s->at.wanted_bytes[o];
    for (uint32_t k = 0; k < s->hold_count; k++)
        if (is_held_now(s, &s->holds[k]))
            bytes += (int64_t)s->graph->problem->versions[s->holds[k].version].bytes;
    return bytes;
}

/* A copy of what changes while solving. */
struct snapshot {
    struct flow_edge *edges;
    int64_t *excess;
    double price;
};

static bool snapshot_take(const struct solver *s, struct snapshot *shot)
{
    size_t edges = sizeof *shot->edges * s->flow.edge_count,
           nodes = sizeof *shot->excess * ((size_t)s->flow.node_count + 1);
    if (!shot->edges)
        shot->edges = malloc(edges + 1);
    if (!shot->excess)
        shot->excess = malloc(nodes);
    if (!shot->edges || !shot->excess)
        return false;
    if (edges)
        memcpy(shot->edges, s->flow.edges, edges);
    memcpy(shot->excess, s->flow.excess, nodes);
    shot->price = s->price;
    return true;
}

static void snapshot_restore(struct solver *s, const struct snapshot *shot)
{
    if (s->flow.edge_count)
        memcpy(s->flow.edges, shot->edges, sizeof *shot->edges * s->flow.edge_count);
    memcpy(s->flow.excess, shot->excess, sizeof *shot->excess * ((size_t)s->flow.node_count + 1));
    s->price = shot->price;
}

/* is_held: NULL where nobody asks. */
static void note_held(const struct solver *s, bool *is_held)
{
    if (!is_held)
        return;
    memset(is_held, 0, s->graph->problem->version_count * sizeof *is_held);
    for (uint32_t k = 0; k < s->hold_count; k++)
        is_held[s->holds[k].version] = s->at.of[s->holds[k].version] == STANDING_DEAD && is_held_now(s, &s->holds[k]);
}

/* What one solved price says about the bound as a function of the price: a line that touches it there. */
struct tangent {
    double price, value, slope; /* slope: bytes kept beyond the room */
};

static struct tangent tangent_at(const struct solver *s)
{
    return (struct tangent){s->price, s->value, (double)(kept_bytes(s) - s->at.room)};
}

/* The next price to look at: where the two lines cross, kept away from both ends. */
static double crossing(const struct tangent *low, const struct tangent *high)
{
    double price =
        (high->value - low->value + low->slope * low->price - high->slope * high->price) / (low->slope - high->slope);
    double margin = (high->price - low->price) / 64;
    if (!(price > low->price + margin))
        return low->price + margin;
    return price < high->price - margin ? price : high->price - margin;
}

/* Between a price at which too much is kept and one at which it fits: closes in on the greatest bound. */
static bool narrow(struct solver *s, const struct search *search, struct snapshot *shot, struct tangent low,
                   struct tangent high, struct cut *out)
{
    for (int step = 0; step < search->fine && high.price - low.price > high.price * 1e-7; step++) {
        snapshot_restore(s, shot);
        solve_at(s, crossing(&low, &high));
        struct tangent middle = tangent_at(s);
        if (middle.slope > 0) {
            low = middle;
            note_held(s, out->is_held_below);
            if (!snapshot_take(s, shot))
                return false;
        } else {
            high = middle;
            note_held(s, out->is_held);
        }
    }
    out->price = high.price;
    out->price_below = low.price;
    return true;
}

static double typical_price(const struct solver *s)
{
    double bytes = 1;
    for (uint32_t o = 0; o < s->pivot; o++)
        bytes += (double)s->at.wanted_bytes[o];
    return ((double)s->graph->clock[s->pivot] + 1) / bytes;
}

/* Do the kept bytes exceed the room by more than any work could save? At this price a byte less would have cost more
 * than all work there is, had there been a way (rounding apart, a nanosecond per version). */
static bool can_never_fit(const struct solver *s, double excess)
{
    const struct policy_problem *p = s->graph->problem;
    double work = (double)s->graph->clock[s->pivot] + 2.0 * p->version_count;
    return excess * s->price > work && flow_worth(s->price, s->most_bytes) < FLOW_PRICELESS;
}

static bool search_price(struct solver *s, const struct search *search, struct cut *out)
{
    struct snapshot shot = {0};
    struct tangent low = {0, 0, (double)(s->wanted - s->at.room)}, high = {0};
    bool is_done = true, fits = false;
    double price = search->first;
    for (int step = 0, beyond = 0; step < search->coarse && !(fits && beyond == search->beyond); step++, price *= 2) {
        is_done = fits || snapshot_take(s, &shot);
        if (!is_done)
            break;
        solve_at(s, price);
        struct tangent here = tangent_at(s);
        if (can_never_fit(s, here.slope)) {
            s->bound = HUGE_VAL;
            break;
        }
        if (fits) {
            beyond++;
        } else if (here.slope <= 0) {
            fits = true;
            high = here;
            note_held(s, out->is_held);
        } else {
            low = here;
            note_held(s, out->is_held_below);
        }
    }
    if (fits && is_done)
        is_done = narrow(s, search, &shot, low, high, out);
    else
        out->price = s->price;
    free(shot.edges);
    free(shot.excess);
    return is_done;
}

static bool solver_begin(struct solver *s, const struct graph *g, uint32_t pivot, uint64_t cap)
{
    size_t versions = (size_t)g->problem->version_count + 1;
    *s = (struct solver){.graph = g, .pivot = pivot};
    s->node_of = malloc(versions * sizeof *s->node_of);
    s->holds = malloc(versions * sizeof *s->holds);
    if (!standings_begin(&s->at, g, pivot, g->problem->operation_count, cap) || !s->node_of || !s->holds)
        return false;
    memset(s->node_of, 0xff, versions * sizeof *s->node_of);
    return flow_begin(&s->flow, pivot + standings_hold_count(&s->at));
}

static void solver_end(struct solver *s)
{
    standings_end(&s->at);
    free(s->node_of);
    free(s->holds);
    flow_end(&s->flow);
}

static bool prepare(struct solver *s, double *threshold)
{
    s->threshold = threshold;
    build_network(s);
    for (uint32_t o = 0; o < s->pivot; o++) {
        s->wanted += s->at.wanted_bytes[o];
        s->most_bytes = s->at.wanted_bytes[o] > s->most_bytes ? s->at.wanted_bytes[o] : s->most_bytes;
    }
    for (uint32_t k = 0; k < s->hold_count; k++) {
        int64_t bytes = (int64_t)s->graph->problem->versions[s->holds[k].version].bytes;
        s->most_bytes = bytes > s->most_bytes ? bytes : s->most_bytes;
    }
    return !s->flow.has_failed;
}

static bool solve(struct solver *s, const struct search *search, struct cut *out)
{
    if (!prepare(s, out->threshold))
        return false;
    if (s->at.room < 0) {
        out->bound_ns = UINT64_MAX;
        return true;
    }
    struct search from = *search;
    if (from.first <= 0)
        from.first = typical_price(s) / 4096;
    if (!search_price(s, &from, out) || s->flow.has_failed)
        return false;
    if (s->wanted <= s->at.room)
        out->price = 0;
    out->bound_ns = s->bound < (double)(UINT64_MAX / 2) ? (uint64_t)s->bound : UINT64_MAX;
    return true;
}

bool cut_solve(const struct graph *graph, uint32_t pivot, uint64_t cap, struct cut *out)
{
    struct solver s = {0};
    size_t operations = (size_t)graph->problem->operation_count + 1;
    *out = (struct cut){.pivot = pivot};
    out->threshold = malloc(operations * sizeof *out->threshold);
    out->is_held = calloc((size_t)graph->problem->version_count + 1, sizeof *out->is_held);
    out->is_held_below = calloc((size_t)graph->problem->version_count + 1, sizeof *out->is_held_below);
    bool is_done = out->threshold && out->is_held && out->is_held_below && pivot < graph->problem->operation_count;
    for (size_t o = 0; is_done && o < operations; o++)
        out->threshold[o] = HUGE_VAL;
    is_done = is_done && solver_begin(&s, graph, pivot, cap) && solve(&s, &whole_search, out);
    solver_end(&s);
    if (!is_done)
        cut_release(out);
    return is_done;
}

uint64_t cut_bound_near(const struct graph *graph, uint32_t pivot, uint64_t cap, double *price, uint64_t *steps)
{
    struct solver s = {0};
    struct cut cut = {.pivot = pivot};
    struct search search = near_search;
    search.first = *price * NEAR_SHARE;
    bool is_done = solver_begin(&s, graph, pivot, cap) && solve(&s, &search, &cut);
    *steps += s.flow.steps;
    solver_end(&s);
    *price = cut.price;
    return is_done ? cut.bound_ns : 0;
}

void cut_release(struct cut *cut)
{
    free(cut->threshold);
    free(cut->is_held);
    free(cut->is_held_below);
    *cut = (struct cut){0};
}
