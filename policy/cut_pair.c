#include "policy/cut_pair.h"
#include "policy/flow.h"
#include "policy/standing.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 18, BOX_LINES = 4, STEPS = 40, VAIN_STEPS = 4 };

#define GAIN_WORTH_A_STEP 1e-4 /* of the bound */
#define FIRST_HOPE        0.03
#define LEAST_HOPE        0.002
#define LEAST_SHARE       0.9 /* of the bound known: below it, following the slopes is not worth it */

/* A version that may be held at one of the positions. At the first, the node's sink side means that the version is
 * there; at the second, its source side. */
struct pair_hold {
    uint32_t version, node, producer; /* producer: node of the operation, or POLICY_NONE where it cannot run again */
    uint32_t edge;                    /* whose capacity is the price of holding; POLICY_NONE: none */
    bool is_supplied;                 /* the price is a supply of the node instead */
    /* At the second position, where the version is older than the first: */
    uint32_t first_node, first_edge; /* its node there, and the edge from that to the sink; POLICY_NONE: none */
    double tie, slope; /* price of holding it without having been there before (policy/cut_pair.h), and how the bound
                          changes with it: bytes */
};

struct pair {
    const struct graph *graph;
    struct standings first, second;
    uint32_t *first_node, *second_node; /* per version; POLICY_NONE: none */
    struct pair_hold *holds;            /* of the first position, then of the second */
    uint32_t first_holds, hold_count;
    uint32_t *first_edge;    /* per operation before the first position: edge for what is kept, POLICY_NONE: none */
    struct flow flow;        /* without prices until one is set */
    struct flow_edge *edges; /* as they are without prices */
    int64_t *excess;
};

/* A line (a plane, in fact) above the bound as a function of the two prices. */
struct plane {
    double constant, first, second; /* value at no price; slopes */
};

struct point {
    double first, second, level;
};

static uint32_t first_operation(uint32_t o)
{
    return o;
}

static uint32_t second_operation(const struct pair *p, uint32_t o)
{
    return p->first.pivot + o;
}

static uint32_t new_node(const struct pair *p)
{
    return p->first.pivot + p->second.pivot + p->hold_count;
}

static uint64_t bytes_of(const struct pair *p, uint32_t v)
{
    return p->graph->problem->versions[v].bytes;
}

/* Node of a version that is dead or gone at the second position. */
static uint32_t meet_at_second(struct pair *p, uint32_t v)
{
    if (p->second_node[v] != POLICY_NONE)
        return p->second_node[v];
    uint32_t producer = p->graph->problem->versions[v].producer, node = new_node(p);
    bool can_rebuild = producer != POLICY_NONE && standings_can_run_again(&p->second, producer);
    bool can_hold = standings_can_hold(&p->second, v);
    uint32_t to = can_rebuild ? second_operation(p, producer) : p->flow.node_count;
    uint32_t edge = flow_connect(&p->flow, node, to, can_hold ? 0 : FLOW_INFINITE);
    p->holds[p->hold_count++] = (struct pair_hold){.version = v,
                                                   .node = node,
                                                   .producer = can_rebuild ? to : POLICY_NONE,
                                                   .edge = can_hold ? edge : POLICY_NONE,
                                                   .first_node = p->first_node[v],
                                                   .first_edge = POLICY_NONE};
    if (p->first_node[v] != POLICY_NONE)
        p->holds[p->hold_count - 1].first_edge = flow_connect(&p->flow, p->first_node[v], p->flow.node_count, 0);
    return p->second_node[v] = node;
}

/* The same at the first position. */
static uint32_t meet_at_first(struct pair *p, uint32_t v)
{
    if (p->first_node[v] != POLICY_NONE)
        return p->first_node[v];
    uint32_t producer = p->graph->problem->versions[v].producer, node = new_node(p), edge = POLICY_NONE;
    bool can_rebuild = producer != POLICY_NONE && standings_can_run_again(&p->first, producer);
    bool can_hold = standings_can_hold(&p->first, v);
    if (can_rebuild)
        edge = flow_connect(&p->flow, first_operation(producer), node, can_hold ? 0 : FLOW_INFINITE);
    else if (!can_hold)
        flow_supply(&p->flow, node, FLOW_PRICELESS);
    p->holds[p->hold_count++] = (struct pair_hold){.version = v,
                                                   .node = node,
                                                   .producer = can_rebuild ? first_operation(producer) : POLICY_NONE,
                                                   .edge = can_hold ? edge : POLICY_NONE,
                                                   .is_supplied = can_hold && !can_rebuild};
    return p->first_node[v] = node;
}

static bool is_free(const struct standings *s, uint32_t v)
{
    return s->of[v] == STANDING_GIVEN || s->of[v] == STANDING_WANTED;
}

static void connect_first(struct pair *p)
{
    const struct graph *g = p->graph;
    for (uint32_t o = 0; o < p->first.pivot; o++) {
        p->first_edge[o] = POLICY_NONE;
        if (!standings_can_run_again(&p->first, o))
            continue;
        flow_supply(&p->flow, first_operation(o), (int64_t)g->problem->operations[o].nanoseconds);
        if (p->first.wanted_bytes[o])
            p->first_edge[o] = flow_connect(&p->flow, first_operation(o), p->flow.node_count, 0);
        for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++)
            if (standings_takes(&p->first, o, k) && !is_free(&p->first, g->needs[k]))
                flow_connect(&p->flow, meet_at_first(p, g->needs[k]), first_operation(o), FLOW_INFINITE);
    }
}

static bool is_older(const struct pair *p, uint32_t v)
{
    uint32_t producer = p->graph->problem->versions[v].producer;
    return producer == POLICY_NONE || producer < p->first.pivot;
}

/* What is there at the second position was there before it. */
static void connect_both(struct pair *p)
{
    const struct policy_problem *problem = p->graph->problem;
    for (uint32_t v = 0; v < problem->version_count; v++) {
        if (!is_older(p, v) || is_free(&p->first, v))
            continue;
        if (p->second.of[v] == STANDING_GIVEN)
            flow_connect(&p->flow, meet_at_first(p, v), p->flow.node_count, FLOW_INFINITE);
        else if (p->second.of[v] == STANDING_WANTED)
            flow_connect(&p->flow, meet_at_first(p, v), second_operation(p, problem->versions[v].producer),
                         FLOW_INFINITE);
    }
    for (uint32_t k = 0; k < p->graph->need_first[p->second.pivot]; k++) {
        uint32_t v = p->graph->needs[k];
        if (is_older(p, v) && !is_free(&p->first, v) && !is_free(&p->second, v))
            meet_at_first(p, v);
    }
    p->first_holds = p->hold_count;
}

static void connect_second(struct pair *p)
{
    const struct graph *g = p->graph;
    for (uint32_t o = 0; o < p->second.pivot; o++) {
        bool can_run = standings_can_run_again(&p->second, o);
        int64_t time = can_run ? (int64_t)g->problem->operations[o].nanoseconds : FLOW_INFINITE;
        flow_connect(&p->flow, second_operation(p, o), p->flow.node_count, time);
        for (uint32_t k = g->need_first[o]; can_run && k < g->need_first[o + 1]; k++)
            if (standings_takes(&p->second, o, k) && !is_free(&p->second, g->needs[k]))
                flow_connect(&p->flow, second_operation(p, o), meet_at_second(p, g->needs[k]), FLOW_INFINITE);
    }
}

static bool keep_bare(struct pair *p)
{
    size_t edges = sizeof *p->edges * p->flow.edge_count, nodes = sizeof *p->excess * ((size_t)p->flow.node_count + 1);
    p->edges = malloc(edges + 1);
    p->excess = malloc(nodes);
    if (!p->edges || !p->excess || p->flow.has_failed)
        return false;
    memcpy(p->edges, p->flow.edges, edges);
    memcpy(p->excess, p->flow.excess, nodes);
    return true;
}

static bool pair_begin(struct pair *p, const struct graph *g, const struct cut_pair_request *r)
{
    size_t versions = (size_t)g->problem->version_count + 1;
    *p = (struct pair){.graph = g};
    if (!standings_begin(&p->first, g, r->first, r->second, r->cap) ||
        !standings_begin(&p->second, g, r->second, g->problem->operation_count, r->cap))
        return false;
    p->first_node = malloc(versions * sizeof *p->first_node);
    p->second_node = malloc(versions * sizeof *p->second_node);
    p->holds = malloc(2 * versions * sizeof *p->holds);
    p->first_edge = malloc(((size_t)r->first + 1) * sizeof *p->first_edge);
    uint32_t holds = standings_hold_count(&p->first) + standings_hold_count(&p->second);
    if (!p->first_node || !p->second_node || !p->holds || !p->first_edge ||
        !flow_begin(&p->flow, r->first + r->second + holds))
        return false;
    memset(p->first_node, 0xff, versions * sizeof *p->first_node);
    memset(p->second_node, 0xff, versions * sizeof *p->second_node);
    connect_first(p);
    connect_both(p);
    connect_second(p);
    return keep_bare(p);
}

static void pair_end(struct pair *p)
{
    standings_end(&p->first);
    standings_end(&p->second);
    flow_end(&p->flow);
    free(p->first_node);
    free(p->second_node);
    free(p->holds);
    free(p->first_edge);
    free(p->edges);
    free(p->excess);
}

static void set_prices(struct pair *p, double first, double second)
{
    memcpy(p->flow.edges, p->edges, sizeof *p->edges * p->flow.edge_count);
    memcpy(p->flow.excess, p->excess, sizeof *p->excess * ((size_t)p->flow.node_count + 1));
    for (uint32_t o = 0; o < p->first.pivot; o++)
        if (p->first_edge[o] != POLICY_NONE)
            flow_widen(&p->flow, p->first_edge[o], flow_worth(first, p->first.wanted_bytes[o]));
    for (uint32_t o = 0; o < p->second.pivot; o++)
        flow_supply(&p->flow, second_operation(p, o), flow_worth(second, p->second.wanted_bytes[o]));
    for (uint32_t k = 0; k < p->hold_count; k++) {
        const struct pair_hold *hold = &p->holds[k];
        int64_t value = flow_worth(k < p->first_holds ? first : second, (int64_t)bytes_of(p, hold->version));
        if (hold->tie > 0) {
            value += flow_worth(hold->tie, (int64_t)bytes_of(p, hold->version));
            flow_widen(&p->flow, hold->first_edge, flow_worth(hold->tie, (int64_t)bytes_of(p, hold->version)));
        }
        if (hold->is_supplied)
            flow_supply(&p->flow, hold->node, value);
        else if (hold->edge != POLICY_NONE)
            flow_widen(&p->flow, hold->edge, value);
    }
}

static bool is_there(const struct pair *p, uint32_t k)
{
    return flow_is_source_side(&p->flow, p->holds[k].node) == (k >= p->first_holds);
}

static bool is_held(const struct pair *p, uint32_t k)
{
    const struct pair_hold *hold = &p->holds[k];
    bool is_at_first = k < p->first_holds;
    bool runs = hold->producer != POLICY_NONE && flow_is_source_side(&p->flow, hold->producer) != is_at_first;
    return (hold->is_supplied || hold->edge != POLICY_NONE) && is_there(p, k) && !runs;
}

/* Held at the second position; and there before, which is the other way round in the network. */
static bool was_there_before(const struct pair *p, const struct pair_hold *hold)
{
    return !flow_is_source_side(&p->flow, hold->first_node);
}

/* Bytes kept at either position in the solution at hand. */
static void count_kept(struct pair *p, double *first, double *second)
{
    *first = *second = 0;
    for (uint32_t o = 0; o < p->first.pivot; o++)
        *first += flow_is_source_side(&p->flow, first_operation(o)) ? (double)p->first.wanted_bytes[o] : 0;
    for (uint32_t o = 0; o < p->second.pivot; o++)
        *second += flow_is_source_side(&p->flow, second_operation(p, o)) ? 0 : (double)p->second.wanted_bytes[o];
    for (uint32_t k = 0; k < p->hold_count; k++) {
        double bytes = (double)bytes_of(p, p->holds[k].version);
        *(k < p->first_holds ? first : second) += is_held(p, k) ? bytes : 0;
        if (p->holds[k].first_edge != POLICY_NONE && p->holds[k].edge != POLICY_NONE)
            p->holds[k].slope = bytes * (is_held(p, k) - was_there_before(p, &p->holds[k]));
    }
}

static double tied_worth(const struct pair *p)
{
    double value = 0;
    for (uint32_t k = p->first_holds; k < p->hold_count; k++)
        value += p->holds[k].tie * (double)bytes_of(p, p->holds[k].version);
    return value;
}

/* The bound at these prices; *plane touches it there. */
static double solve_at(struct pair *p, const struct point *at, struct plane *plane)
{
    set_prices(p, at->first, at->second);
    double cut = (double)flow_solve(&p->flow) - tied_worth(p);
    count_kept(p, &plane->first, &plane->second);
    plane->first -= (double)p->first.room;
    plane->second -= (double)p->second.room;
    double value = cut - at->first * (double)p->first.room - at->second * (double)p->second.room;
    plane->constant = value - plane->first * at->first - plane->second * at->second;
    return value;
}

static double height(const struct plane *plane, double first, double second)
{
    return plane->constant + plane->first * first + plane->second * second;
}

/* Where three planes of which the last may be a wall (a line in the plane of prices) meet. */
static bool meet(const struct plane *a, const struct plane *b, const struct plane *c, bool is_wall, struct point *out)
{
    double a1 = a->first - b->first, b1 = a->second - b->second, c1 = b->constant - a->constant;
    double a2 = is_wall ? c->first : a->first - c->first, b2 = is_wall ? c->second : a->second - c->second;
    double c2 = is_wall ? -c->constant : c->constant - a->constant, d = a1 * b2 - a2 * b1;
    if (d == 0 || !isfinite(d))
        return false;
    out->first = (c1 * b2 - c2 * b1) / d;
    out->second = (a1 * c2 - a2 * c1) / d;
    out->level = height(a, out->first, out->second);
    return isfinite(out->first) && isfinite(out->second);
}

/* The greatest height under all planes between the walls, where the prices are 0 or as high as they may be. */
static struct point highest(const struct plane *planes, uint32_t count, double most_first, double most_second)
{
    const struct plane walls[BOX_LINES] = {{0, 1, 0}, {0, 0, 1}, {-most_first, 1, 0}, {-most_second, 0, 1}};
    struct point best = {0, 0, -HUGE_VAL};
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count; j++)
            for (uint32_t k = j + 1; k < count + BOX_LINES; k++) {
                struct point at;
                const struct plane *third = k < count ? &planes[k] : &walls[k - count];
                if (!meet(&planes[i], &planes[j], third, k >= count, &at))
                    continue;
                double slack1 = most_first * 1e-9, slack2 = most_second * 1e-9;
                bool is_inside = at.first >= -slack1 && at.second >= -slack2 && at.first <= most_first + slack1 &&
                                 at.second <= most_second + slack2;
                double level = at.level;
                for (uint32_t n = 0; is_inside && n < count && level > best.level; n++)
                    level = fmin(level, height(&planes[n], at.first, at.second));
                if (is_inside && level > best.level)
                    best = (struct point){fmax(at.first, 0), fmax(at.second, 0), level};
            }
    return best;
}

/* The greatest bound over both prices, by cutting planes; what is tied stays. *at: where. */
static double climb(struct pair *p, const struct cut_pair_request *r, double known, struct point *at)
{
    struct plane planes[MOST_LINES];
    double best = 0, most = 4 * fmax(r->first_price, r->second_price);
    struct point next = *at;
    for (uint32_t count = 0; count < MOST_LINES && !p->flow.has_failed;) {
        double value = solve_at(p, &next, &planes[count++]);
        if (value > best) {
            best = value;
            *at = next;
        }
        next = count == 1   ? (struct point){r->first_price, 0, 0}
               : count == 2 ? (struct point){0, r->second_price, 0}
                            : highest(planes, count, most, most);
        if (count > 2 && next.level < fmax(best, known) * (1 + GAIN_WORTH_A_STEP))
            break;
    }
    return best;
}

static double moved(double price, double step, double slope)
{
    return fmax(price + step * slope, 0);
}

/* All prices and ties follow the slopes (Polyak's step: as if the bound were to rise by a share of itself). */
static double follow_slopes(struct pair *p, double best, struct point *at)
{
    double hope = FIRST_HOPE;
    struct point here = *at;
    for (int step = 0, vain = 0; step < STEPS && hope > LEAST_HOPE && !p->flow.has_failed; step++) {
        struct plane plane;
        double value = solve_at(p, &here, &plane), square = plane.first * plane.first + plane.second * plane.second;
        vain = value > best * (1 + GAIN_WORTH_A_STEP) ? 0 : vain + 1;
        best = fmax(best, value);
        if (vain == VAIN_STEPS) {
            hope /= 2;
            vain = 0;
        }
        for (uint32_t k = p->first_holds; k < p->hold_count; k++)
            square += p->holds[k].tie > 0 || p->holds[k].slope > 0 ? p->holds[k].slope * p->holds[k].slope : 0;
        if (square <= 0)
            break;
        double length = (best * (1 + hope) - value) / square;
        here.first = moved(here.first, length, plane.first);
        here.second = moved(here.second, length, plane.second);
        for (uint32_t k = p->first_holds; k < p->hold_count; k++)
            p->holds[k].tie = moved(p->holds[k].tie, length, p->holds[k].slope);
    }
    return best;
}

uint64_t cut_pair_bound(const struct graph *graph, const struct cut_pair_request *r, uint64_t *steps)
{
    struct pair p;
    double best = (double)r->known_ns;
    struct point at = {r->first_price / 2, r->second_price / 2, 0};
    if (pair_begin(&p, graph, r) && p.first.room >= 0 && p.second.room >= 0) {
        double value = climb(&p, r, 0, &at);
        if (value > best * LEAST_SHARE)
            value = follow_slopes(&p, value, &at);
        best = fmax(best, value);
    }
    *steps += p.flow.steps;
    pair_end(&p);
    return best > (double)r->known_ns && best < (double)(UINT64_MAX / 2) ? (uint64_t)best : r->known_ns;
}
