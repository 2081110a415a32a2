/* Refinement: starts from the settings of the best plan so far and changes what each version is worth. What
 * was run more than once becomes dearer; noise splits lumps that one price would flip as a whole. */
#include "policy/strategy.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20000, PATIENCE = 700, MOVES = 7 };

struct refiner {
    const struct graph *graph;
    const struct strategy_request *request;
    struct attempt_search search;
    double *weight;  /* tried now */
    uint32_t *times; /* per operation: replays in the best plan */
    uint64_t seed;
    double credit[MOVES]; /* how often each kind of change has helped lately */
};

/* SplitMix64, as a number in [0, 1). */
static double draw(struct refiner *r)
{
    uint64_t z = r->seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static void count_replays(struct refiner *r)
{
    const struct item_list *items = &r->request->incumbent->items;
    memset(r->times, 0, sizeof *r->times * r->graph->problem->operation_count);
    for (uint32_t k = 0; k < items->count; k++)
        if (items->items[k].verb == PLAN_REPLAY)
            r->times[items->items[k].index]++;
}

static void shake_all(struct refiner *r)
{
    double strength = 0.02 + draw(r) * draw(r);
    for (uint32_t v = 0; v < r->graph->problem->version_count; v++)
        r->weight[v] *= exp(strength * (draw(r) - 0.5));
}

static void shake_some(struct refiner *r)
{
    double share = draw(r) * draw(r) * 0.2, strength = 0.5 + 2 * draw(r);
    for (uint32_t v = 0; v < r->graph->problem->version_count; v++)
        if (draw(r) < share)
            r->weight[v] *= exp(strength * (draw(r) - 0.5));
}

static void raise_repeated(struct refiner *r)
{
    const struct policy_problem *p = r->graph->problem;
    double share = 0.1 + 0.9 * draw(r), factor = 1.1 + 3 * draw(r);
    for (uint32_t v = 0; v < p->version_count; v++)
        if (p->versions[v].producer != POLICY_NONE && r->times[p->versions[v].producer] > 1 && draw(r) < share)
            r->weight[v] *= factor;
}

static void shift_stretch(struct refiner *r)
{
    const struct policy_problem *p = r->graph->problem;
    double length = (0.01 + 0.2 * draw(r)) * p->version_count, start = draw(r) * p->version_count;
    double factor = exp(2 * (draw(r) - 0.5));
    for (double v = start; v < start + length && v < p->version_count; v++)
        r->weight[(uint32_t)v] *= factor;
}

static void lower_unused(struct refiner *r)
{
    const struct policy_problem *p = r->graph->problem;
    double share = 0.05 * draw(r), factor = 1 / (1.2 + 3 * draw(r));
    for (uint32_t v = 0; v < p->version_count; v++)
        if (p->versions[v].producer != POLICY_NONE && !r->times[p->versions[v].producer] && draw(r) < share)
            r->weight[v] *= factor;
}

/* Protects what a few costly replays make: those chosen in proportion to the time they add. */
static void protect_costly(struct refiner *r)
{
    const struct policy_problem *p = r->graph->problem;
    double total = 0, factor = 1.2 + 4 * draw(r) * draw(r);
    for (uint32_t o = 0; o < p->operation_count; o++)
        total += (double)p->operations[o].nanoseconds * r->times[o];
    for (uint32_t count = 1 + (uint32_t)(6 * draw(r) * draw(r)); count > 0; count--) {
        double at = draw(r) * total;
        uint32_t o = 0;
        for (; o + 1 < p->operation_count && at >= 0; o++)
            at -= (double)p->operations[o].nanoseconds * r->times[o];
        o = o ? o - 1 : 0;
        for (uint32_t k = 0; k < p->operations[o].write_count; k++)
            r->weight[p->writes[p->operations[o].first_write + k]] *= factor;
    }
}

/* One or a few versions only. */
static void shake_few(struct refiner *r)
{
    for (uint32_t count = 1 + (uint32_t)(4 * draw(r)); count > 0; count--)
        r->weight[(uint32_t)(draw(r) * r->graph->problem->version_count)] *= exp(5 * (draw(r) - 0.5));
}

static uint32_t choose_move(struct refiner *r)
{
    double total = 0;
    for (uint32_t k = 0; k < MOVES; k++)
        total += r->credit[k];
    double at = draw(r) * total;
    uint32_t move = 0;
    for (; move + 1 < MOVES && at >= r->credit[move]; move++)
        at -= r->credit[move];
    return move;
}

static bool try_change(struct refiner *r, uint32_t round)
{
    static void (*const changes[MOVES])(struct refiner *) = {raise_repeated, shake_all,      shift_stretch, shake_some,
                                                             lower_unused,   protect_costly, shake_few};
    struct forward_settings settings = r->request->incumbent->settings;
    uint32_t count = r->graph->problem->version_count;
    for (uint32_t v = 0; v < count; v++)
        r->weight[v] = settings.weight ? settings.weight[v] : 1;
    uint32_t move = choose_move(r);
    changes[move](r);
    if (round % 7 == 6)
        settings.omega = draw(r);
    if (round % 11 == 10)
        settings.beta = draw(r);
    if (settings.swap_weight >= 0 && round % 5 == 4)
        settings.swap_weight = draw(r) * draw(r);
    if (round % 13 == 12)
        settings.counts_dead = !settings.counts_dead;
    settings.weight = r->weight;
    bool is_better = attempts_try(&r->search, settings);
    r->credit[move] = 0.95 * r->credit[move] + (is_better ? 1 : 0.01);
    return is_better;
}

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out)
{
    const struct policy_problem *p = graph->problem;
    struct refiner r = {.graph = graph, .request = request, .seed = 1};
    if (!request->is_thorough || !request->incumbent || !request->incumbent->has_plan)
        return STRATEGY_NOTHING;
    attempts_begin(&r.search, graph, request);
    r.weight = malloc(sizeof *r.weight * ((size_t)p->version_count + 1));
    r.times = malloc(sizeof *r.times * ((size_t)p->operation_count + 1));
    r.search.out_of_memory = !r.weight || !r.times;
    if (!r.search.out_of_memory)
        count_replays(&r);
    uint32_t idle = 0;
    for (uint32_t k = 0; k < MOVES; k++)
        r.credit[k] = 1;
    for (uint32_t round = 0; round < ROUNDS && idle < PATIENCE && !r.search.is_late && !r.search.out_of_memory;
         round++) {
        idle++;
        if (try_change(&r, round)) {
            idle = 0;
            count_replays(&r);
        }
    }
    free(r.weight);
    free(r.times);
    return attempts_end(&r.search, out);
}

const struct strategy strategy_refine = {"refine", make};
