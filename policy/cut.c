#include "policy/cut.h"
#include "policy/flow.h"
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

enum standing {
    STANDING_GIVEN,  /* there at the pivot whatever the plan */
    STANDING_WANTED, /* the program needs it later; may be dropped and rebuilt */
    STANDING_DEAD,   /* not needed by the program any more; can be held */
    STANDING_GONE    /* overwritten before the pivot: there only if it was rebuilt since */
};

struct hold {
    uint32_t version, node, producer; /* producer: operation, or POLICY_NONE where only holding helps */
    uint32_t edge;                    /* POLICY_NONE where holding is impossible */
};

struct solver {
    const struct graph *graph;
    uint32_t pivot;
    uint8_t *standing;
    uint32_t *node_of;     /* per version: its node, POLICY_NONE if it has none */
    int64_t *wanted_bytes; /* per operation: bytes of its wanted outputs */
    struct hold *holds;
    uint32_t hold_count;
    struct flow flow;
    double price;        /* at which supplies and edges stand now */
    int64_t wanted;      /* bytes that the program needs later and that may be dropped */
    int64_t room;        /* cap - what is given; may be negative */
    double value, bound; /* cut - price x room: at this price, and the greatest so far */
    double *threshold;
    int64_t most_bytes; /* of one operation's wanted outputs, or of one version that can be held */
};

static bool is_needed_at(const struct graph *g, uint32_t pivot, uint32_t v)
{
    return graph_is_needed(g, v) && g->last_need[v] >= pivot;
}

static bool is_given(const struct graph *g, uint32_t pivot, uint32_t v)
{
    const struct policy_version *version = &g->problem->versions[v];
    if (version->droppable_from > pivot)
        return true;
    for (uint32_t k = g->need_first[pivot]; k < g->need_first[pivot + 1]; k++)
        if (g->needs[k] == v)
            return true;
    return is_needed_at(g, pivot, v) && g->latest_rebuild[v] <= pivot;
}

static enum standing standing_of(const struct graph *g, uint32_t pivot, uint32_t v)
{
    if (g->replaced_by[v] != POLICY_NONE && graph_replaced_at(g, v) < pivot)
        return STANDING_GONE;
    if (is_given(g, pivot, v))
        return STANDING_GIVEN;
    return is_needed_at(g, pivot, v) ? STANDING_WANTED : STANDING_DEAD;
}

static bool is_born_before(const struct graph *g, uint32_t v, uint32_t pivot)
{
    uint32_t producer = g->problem->versions[v].producer;
    return producer == POLICY_NONE || producer < pivot;
}

/* What is there at the pivot in every plan. */
static uint64_t given_bytes(const struct solver *s)
{
    const struct policy_problem *p = s->graph->problem;
    const struct policy_operation *op = &p->operations[s->pivot];
    uint64_t bytes = p->fixed_bytes + op->workspace_bytes;
    for (uint32_t v = 0; v < p->version_count; v++)
        if (is_born_before(s->graph, v, s->pivot) && s->standing[v] == STANDING_GIVEN)
            bytes += p->versions[v].bytes;
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k];
        bytes += p->versions[v].replaces == POLICY_NONE ? p->versions[v].bytes : 0;
    }
    return bytes;
}

static bool can_run_again(const struct solver *s, uint32_t o)
{
    return s->graph->latest_replay[o] > s->pivot;
}

/* What was overwritten can be there only if it was made again before the pivot. */
static bool can_be_held(const struct solver *s, uint32_t v)
{
    return s->standing[v] == STANDING_DEAD || s->graph->latest_rebuild[v] > graph_replaced_at(s->graph, v);
}

static void connect_input(struct solver *s, uint32_t o, uint32_t v)
{
    const struct policy_version *version = &s->graph->problem->versions[v];
    if (s->standing[v] == STANDING_GIVEN || s->standing[v] == STANDING_WANTED)
        return;
    if (s->node_of[v] == POLICY_NONE) {
        uint32_t producer = version->producer, node = s->pivot + s->hold_count;
        bool can_rebuild = producer != POLICY_NONE && can_run_again(s, producer), can_hold = can_be_held(s, v);
        uint32_t edge =
            flow_connect(&s->flow, node, can_rebuild ? producer : s->flow.node_count, can_hold ? 0 : FLOW_INFINITE);
        s->node_of[v] = node;
        s->holds[s->hold_count++] =
            (struct hold){v, node, can_rebuild ? producer : POLICY_NONE, can_hold ? edge : POLICY_NONE};
    }
    flow_connect(&s->flow, o, s->node_of[v], FLOW_INFINITE);
}

/* Does running o again take its k-th need? What an output replaces is not needed where that output is there and
 * another one is wanted. */
static bool takes_input(const struct solver *s, uint32_t o, uint32_t k)
{
    const struct policy_operation *op = &s->graph->problem->operations[o];
    return k < s->graph->need_first[o] + op->read_count || op->write_count == 1;
}

static void build_network(struct solver *s)
{
    const struct graph *g = s->graph;
    const struct policy_problem *p = g->problem;
    for (uint32_t o = 0; o < s->pivot; o++) {
        bool can_run = can_run_again(s, o);
        for (uint32_t k = 0; k < p->operations[o].write_count; k++) {
            uint32_t v = p->writes[p->operations[o].first_write + k];
            s->wanted_bytes[o] += s->standing[v] == STANDING_WANTED ? (int64_t)p->versions[v].bytes : 0;
        }
        flow_connect(&s->flow, o, s->flow.node_count, can_run ? (int64_t)p->operations[o].nanoseconds : FLOW_INFINITE);
        for (uint32_t k = g->need_first[o]; can_run && k < g->need_first[o + 1]; k++)
            if (takes_input(s, o, k))
                connect_input(s, o, g->needs[k]);
    }
}

static int64_t worth(double price, int64_t bytes)
{
    double value = floor(price * (double)bytes);
    return value < (double)(FLOW_INFINITE / 65536) ? (int64_t)value : FLOW_INFINITE / 65536;
}

/* Raises the price, solves, and takes the bound. */
static void solve_at(struct solver *s, double price)
{
    const struct policy_problem *p = s->graph->problem;
    for (uint32_t o = 0; o < s->pivot; o++)
        if (s->wanted_bytes[o])
            flow_supply(&s->flow, o, worth(price, s->wanted_bytes[o]) - worth(s->price, s->wanted_bytes[o]));
    for (uint32_t k = 0; k < s->hold_count; k++) {
        int64_t bytes = (int64_t)p->versions[s->holds[k].version].bytes;
        if (s->holds[k].edge != POLICY_NONE)
            flow_widen(&s->flow, s->holds[k].edge, worth(price, bytes) - worth(s->price, bytes));
    }
    s->price = price;
    s->value = (double)flow_solve(&s->flow) - price * (double)s->room;
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
        bytes += flow_is_source_side(&s->flow, o) ? 0 : s->wanted_bytes[o];
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

static void note_held(const struct solver *s, struct cut *out)
{
    if (!out->is_held)
        return;
    memset(out->is_held, 0, s->graph->problem->version_count * sizeof *out->is_held);
    for (uint32_t k = 0; k < s->hold_count; k++)
        out->is_held[s->holds[k].version] =
            s->standing[s->holds[k].version] == STANDING_DEAD && is_held_now(s, &s->holds[k]);
}

/* What one solved price says about the bound as a function of the price: a line that touches it there. */
struct tangent {
    double price, value, slope; /* slope: bytes kept beyond the room */
};

static struct tangent tangent_at(const struct solver *s)
{
    return (struct tangent){s->price, s->value, (double)(kept_bytes(s) - s->room)};
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
            if (!snapshot_take(s, shot))
                return false;
        } else {
            high = middle;
            note_held(s, out);
        }
    }
    out->price = high.price;
    return true;
}

static double typical_price(const struct solver *s)
{
    double bytes = 1;
    for (uint32_t o = 0; o < s->pivot; o++)
        bytes += (double)s->wanted_bytes[o];
    return ((double)s->graph->clock[s->pivot] + 1) / bytes;
}

/* Do the kept bytes exceed the room by more than any work could save? At this price a byte less would have cost more
 * than all work there is, had there been a way (rounding apart, a nanosecond per version). */
static bool can_never_fit(const struct solver *s, double excess)
{
    const struct policy_problem *p = s->graph->problem;
    double work = (double)s->graph->clock[s->pivot] + 2.0 * p->version_count;
    return excess * s->price > work && worth(s->price, s->most_bytes) < FLOW_INFINITE / 65536;
}

static bool search_price(struct solver *s, const struct search *search, struct cut *out)
{
    struct snapshot shot = {0};
    struct tangent low = {0, 0, (double)(s->wanted - s->room)}, high = {0};
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
            note_held(s, out);
        } else {
            low = here;
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

static bool solver_begin(struct solver *s, const struct graph *g, uint32_t pivot)
{
    size_t versions = (size_t)g->problem->version_count + 1;
    *s = (struct solver){.graph = g, .pivot = pivot};
    s->standing = malloc(versions);
    s->node_of = malloc(versions * sizeof *s->node_of);
    s->wanted_bytes = calloc((size_t)pivot + 1, sizeof *s->wanted_bytes);
    s->holds = malloc(versions * sizeof *s->holds);
    if (!s->standing || !s->node_of || !s->wanted_bytes || !s->holds)
        return false;
    memset(s->node_of, 0xff, versions * sizeof *s->node_of);
    uint32_t nodes = pivot;
    for (uint32_t v = 0; v < g->problem->version_count; v++) {
        s->standing[v] = (uint8_t)standing_of(g, pivot, v);
        nodes += s->standing[v] == STANDING_DEAD || s->standing[v] == STANDING_GONE;
    }
    return flow_begin(&s->flow, nodes);
}

static void solver_end(struct solver *s)
{
    free(s->standing);
    free(s->node_of);
    free(s->wanted_bytes);
    free(s->holds);
    flow_end(&s->flow);
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The part of the room that whole versions can fill: where all but the smallest are multiples of one size, they
 * fill a multiple of it, and the smallest at most their sum. */
static bool round_room(struct solver *s)
{
    const struct policy_problem *p = s->graph->problem;
    uint64_t *bytes = malloc(sizeof *bytes * ((size_t)p->version_count + 1)), rest = 0, divisor = 0;
    uint32_t count = 0;
    if (!bytes)
        return false;
    for (uint32_t v = 0; v < p->version_count; v++) {
        if (s->standing[v] != STANDING_GIVEN && p->versions[v].bytes && is_born_before(s->graph, v, s->pivot))
            rest += bytes[count++] = p->versions[v].bytes;
    }
    qsort(bytes, count, sizeof *bytes, descending);
    uint64_t room = (uint64_t)s->room, least = room < rest ? room : rest;
    for (uint32_t k = 0; k < count && divisor != 1; k++) {
        divisor = common_divisor(divisor, bytes[k]);
        rest -= bytes[k];
        uint64_t filled = room - room % divisor + rest;
        least = filled < least ? filled : least;
    }
    s->room = (int64_t)least;
    free(bytes);
    return true;
}

static bool prepare(struct solver *s, uint64_t cap, double *threshold)
{
    s->room = (int64_t)cap - (int64_t)given_bytes(s);
    s->threshold = threshold;
    build_network(s);
    for (uint32_t o = 0; o < s->pivot; o++) {
        s->wanted += s->wanted_bytes[o];
        s->most_bytes = s->wanted_bytes[o] > s->most_bytes ? s->wanted_bytes[o] : s->most_bytes;
    }
    for (uint32_t k = 0; k < s->hold_count; k++) {
        int64_t bytes = (int64_t)s->graph->problem->versions[s->holds[k].version].bytes;
        s->most_bytes = bytes > s->most_bytes ? bytes : s->most_bytes;
    }
    return !s->flow.has_failed && (s->room < 0 || round_room(s));
}

static bool solve(struct solver *s, uint64_t cap, const struct search *search, struct cut *out)
{
    if (!prepare(s, cap, out->threshold))
        return false;
    if (s->room < 0) {
        out->bound_ns = UINT64_MAX;
        return true;
    }
    struct search from = *search;
    if (from.first <= 0)
        from.first = typical_price(s) / 4096;
    if (!search_price(s, &from, out) || s->flow.has_failed)
        return false;
    if (s->wanted <= s->room)
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
    bool is_done = out->threshold && out->is_held && pivot < graph->problem->operation_count;
    for (size_t o = 0; is_done && o < operations; o++)
        out->threshold[o] = HUGE_VAL;
    is_done = is_done && solver_begin(&s, graph, pivot) && solve(&s, cap, &whole_search, out);
    solver_end(&s);
    if (!is_done)
        cut_release(out);
    return is_done;
}

uint64_t cut_bound_near(const struct graph *graph, uint32_t pivot, uint64_t cap, double *price)
{
    struct solver s = {0};
    struct cut cut = {.pivot = pivot};
    struct search search = near_search;
    search.first = *price * NEAR_SHARE;
    bool is_done = solver_begin(&s, graph, pivot) && solve(&s, cap, &search, &cut);
    solver_end(&s);
    *price = cut.price;
    return is_done ? cut.bound_ns : 0;
}

void cut_release(struct cut *cut)
{
    free(cut->threshold);
    free(cut->is_held);
    *cut = (struct cut){0};
}
