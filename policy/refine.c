/* Refinement: starts from the settings of the best plan so far and changes what each version is worth. What
 * was run more than once becomes dearer; noise splits lumps that one price would flip as a whole. */
#include "policy/random.h"
#include "policy/strategy.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 200000, MOVES = 8 };
#define WORSE      0.001
#define IDLE_SHARE 0.2 /* of the effort: without success for so long, it is left to polishing, which cannot swap */

struct refiner {
    const struct graph *graph;
    const struct strategy_request *request;
    struct attempt_search search;
    double *weight;                  /* tried now */
    struct forward_settings current; /* what changes start from: the best, or not much worse */
    double *current_weight;
    uint64_t current_ns;
    uint32_t *times; /* per operation: replays in the best plan */
    uint64_t seed;
    double credit[MOVES]; /* how often each kind of change has helped lately */
};

static double draw(struct refiner *r)
{
    return random_share(&r->seed);
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

/* Towards the cut: what it would keep and is run again becomes dearer, what it would run again cheaper. */
static void follow_cut(struct refiner *r)
{
    const struct cut *cut = r->request->cut;
    const struct policy_problem *p = r->graph->problem;
    double share = draw(r) * draw(r), factor = 1.1 + 4 * draw(r) * draw(r);
    if (!cut)
        return;
    double from = draw(r) < 0.5 ? 0 : draw(r) * cut->pivot, to = from + (0.05 + draw(r)) * cut->pivot;
    for (uint32_t o = (uint32_t)from; o < cut->pivot && o < to; o++) {
        bool is_run_by_cut = cut->threshold[o] <= cut->price, is_run = r->times[o];
        if (is_run == is_run_by_cut || draw(r) >= share)
            continue;
        for (uint32_t k = 0; k < p->operations[o].write_count; k++)
            r->weight[p->writes[p->operations[o].first_write + k]] *= is_run ? factor : 1 / factor;
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
                                                             lower_unused,   protect_costly, shake_few,     follow_cut};
    struct forward_settings settings = r->current;
    size_t bytes = sizeof *r->weight * r->graph->problem->version_count;
    memcpy(r->weight, r->current_weight, bytes);
    attempts_count_passes(&r->search, 2);
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
    const struct effort *effort = r->request->effort;
    double left = 1 - (double)effort->steps / (double)effort->allowed;
    double most = (double)r->search.best_ns * (1 + WORSE * left * draw(r));
    if (is_better || (double)r->search.last_ns <= most) {
        memcpy(r->current_weight, r->weight, bytes);
        r->current = settings;
        r->current_ns = r->search.last_ns;
    }
    return is_better;
}

static void start(struct refiner *r)
{
    count_replays(r);
    r->current = r->request->incumbent->settings;
    for (uint32_t v = 0; v < r->graph->problem->version_count; v++)
        r->current_weight[v] = r->current.weight ? r->current.weight[v] : 1;
}

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out)
{
    const struct policy_problem *p = graph->problem;
    bool is_last = request->effort->allowed >= request->allowed_steps; /* whatever is left is for this */
    struct refiner r = {.graph = graph, .request = request, .seed = is_last ? 2 : 1};
    if (!request->is_thorough || !request->incumbent || !request->incumbent->has_plan)
        return STRATEGY_NOTHING;
    attempts_begin(&r.search, graph, request);
    r.weight = malloc(sizeof *r.weight * ((size_t)p->version_count + 1));
    r.current_weight = malloc(sizeof *r.weight * ((size_t)p->version_count + 1));
    r.times = malloc(sizeof *r.times * ((size_t)p->operation_count + 1));
    r.search.out_of_memory = !r.weight || !r.times || !r.current_weight;
    if (!r.search.out_of_memory)
        start(&r);
    for (uint32_t k = 0; k < MOVES; k++)
        r.credit[k] = 1;
    const struct effort *effort = request->effort;
    uint64_t success = effort->steps, left = effort->allowed - effort->steps;
    uint64_t idle = request->may_swap || is_last ? left : (uint64_t)(IDLE_SHARE * (double)left);
    for (uint32_t round = 0;
         effort->steps <= success + idle && round < ROUNDS && !r.search.is_late && !r.search.out_of_memory; round++) {
        if (try_change(&r, round)) {
            success = effort->steps;
            count_replays(&r);
        }
    }
    free(r.weight);
    free(r.current_weight);
    free(r.times);
    return attempts_end(&r.search, out);
}

const struct strategy strategy_refine = {"refine", make};
