#include "policy/prefetch.h"
#include "policy/strategy.h"
#include "policy/tidy.h"
#include <string.h>

enum { MAKE_STEPS = 16, TIDY_STEPS = 14, SWAP_TIDY_STEPS = 24, PASSES_PER_STEP = 2, BEGIN_PASSES = 4 };
enum { FEW_RUNS = 2, SOME_RUNS = 8, MANY_RUNS = 64 }; /* of the whole program */

/* By patience. Each way of making room finds plans where the others do not: near the floor operations take what others
 * wait for in turns, gradients go for want of anything else, or what was given goes while its results are still there.
 */
static const struct {
    uint64_t runs; /* that an attempt may replay; UINT64_MAX = any number */
    bool is_loyal, keeps_gradients, keeps_given;
} manners[MOST_PATIENCE + 1] = {
    {FEW_RUNS, false, false, false},   {SOME_RUNS, false, true, false},  {SOME_RUNS, true, true, true},
    {SOME_RUNS, false, false, true},   {MANY_RUNS, false, false, false}, {MANY_RUNS, true, true, true},
    {UINT64_MAX, false, false, false}, {UINT64_MAX, true, true, true},
};

#define USUAL_SHARE     0.93
#define LESS_HASTY_FROM 0.3 /* of the effort */
#define PATIENT_FROM    0.5

void attempts_begin(struct attempt_search *s, const struct graph *graph, const struct strategy_request *request)
{
    *s = (struct attempt_search){.graph = graph, .request = request, .best_ns = request->give_up_ns};
}

/* Remembers how the best plan of all was made. */
static void note_incumbent(struct attempt_search *s, const struct forward_settings *settings)
{
    struct incumbent *best = s->request->incumbent;
    size_t bytes = sizeof(double) * s->graph->problem->version_count;
    if (!best)
        return;
    struct item_list copy;
    if (!items_copy(&copy, &s->best))
        return;
    items_release(&best->items);
    best->items = copy;
    best->settings = *settings;
    best->has_plan = true;
    if (settings->hold && settings->hold != best->hold)
        memcpy(best->hold, settings->hold, bytes);
    if (settings->weight && settings->weight != best->weight)
        memcpy(best->weight, settings->weight, bytes);
    best->settings.hold = settings->hold ? best->hold : NULL;
    best->settings.weight = settings->weight ? best->weight : NULL;
}

/* Tidies and measures; true, and the items are taken over, if they are the best so far. */
static bool take_if_better(struct attempt_search *s, struct item_list *items)
{
    uint64_t added_ns;
    s->request->effort->steps += (uint64_t)items->count * (s->request->may_swap ? SWAP_TIDY_STEPS : TIDY_STEPS);
    if (!tidy_plan(s->graph, s->request->cap, items, &added_ns) ||
        !prefetch_swaps(s->graph, s->request->cap, items, &added_ns) || added_ns >= s->best_ns) {
        items_release(items);
        return false;
    }
    items_release(&s->best);
    s->best = *items;
    s->best_ns = added_ns;
    return true;
}

bool attempts_are_over(const struct attempt_search *s)
{
    bool has_plan = s->best_ns != UINT64_MAX;
    return s->out_of_memory || effort_is_used_up(s->request->effort) ||
           (has_plan && (s->is_late || s->request->any_will_do));
}

void attempts_count_passes(struct attempt_search *s, uint32_t passes)
{
    const struct policy_problem *p = s->graph->problem;
    s->request->effort->steps += ((uint64_t)p->version_count + p->operation_count) * passes / PASSES_PER_STEP;
}

bool attempts_offer(struct attempt_search *s, struct item_list *items)
{
    s->request->effort->steps += (uint64_t)items->count * MAKE_STEPS;
    bool is_better = take_if_better(s, items);
    s->is_late |= effort_is_spent(s->request->effort);
    return is_better;
}

/* Tidying costs more than the attempt: only for what may become the best by it. */
static bool is_promising(const struct attempt_search *s, uint64_t replay_ns, bool may_swap)
{
    double most = s->tidied_to > 0 && s->tidied_to < USUAL_SHARE ? s->tidied_to * 0.98 : USUAL_SHARE;
    return may_swap || s->best_ns == UINT64_MAX || (double)replay_ns * most < (double)s->best_ns;
}

/* Replayed time at which an attempt is given up. Where there is a plan, tidying may still halve the time. Where there
 * is none yet, most attempts that replay for long never end: first those are sought that need little, then others. */
static uint64_t give_up_at(const struct attempt_search *s)
{
    double used = (double)s->request->effort->steps / ((double)s->request->allowed_steps + 1);
    uint64_t run_ns = s->graph->clock[s->graph->problem->operation_count] + 1;
    if (s->best_ns != UINT64_MAX)
        return s->best_ns > UINT64_MAX / 2 ? UINT64_MAX : 2 * s->best_ns;
    uint64_t runs = manners[s->request->patience].runs;
    if (!s->request->patience && used > LESS_HASTY_FROM)
        runs = used > PATIENT_FROM ? UINT64_MAX : SOME_RUNS;
    return s->request->any_will_do || run_ns > UINT64_MAX / runs ? UINT64_MAX : run_ns * runs;
}

bool attempts_try(struct attempt_search *s, struct forward_settings settings)
{
    struct item_list items = {0};
    uint64_t replay_ns;
    bool has_plan = s->best_ns != UINT64_MAX;
    if (s->out_of_memory || (has_plan && (s->is_late || s->request->any_will_do)))
        return false;
    settings.cap = s->request->cap;
    settings.turn = s->request->pivot;
    settings.small_bytes = s->request->small_bytes;
    settings.effort = s->request->effort;
    settings.must_finish = !has_plan && !effort_is_used_up(s->request->effort); /* late is better than nothing */
    settings.give_up_ns = give_up_at(s);
    settings.is_patient = s->request->patience > 0;
    settings.is_loyal = manners[s->request->patience].is_loyal;
    settings.keeps_gradients = manners[s->request->patience].keeps_gradients;
    settings.keeps_given = manners[s->request->patience].keeps_given;
    settings.never_replays = s->request->may_not_replay;
    if (!s->request->may_swap)
        settings.swap_weight = -1;
    attempts_count_passes(s, BEGIN_PASSES);
    enum forward_result result = forward_plan(s->graph, &settings, &items, &replay_ns);
    s->out_of_memory |= result == FORWARD_NO_MEMORY;
    s->is_late |= effort_is_spent(s->request->effort);
    double share = s->tidied_to > 0 && s->tidied_to < 1 ? s->tidied_to : 1;
    s->last_ns = result == FORWARD_DONE ? (uint64_t)((double)replay_ns * share) : UINT64_MAX;
    if (result != FORWARD_DONE)
        return false;
    if (!is_promising(s, replay_ns, settings.swap_weight >= 0)) {
        items_release(&items);
        return false;
    }
    uint64_t best_ns = s->best_ns;
    if (!take_if_better(s, &items))
        return false;
    s->last_ns = s->best_ns;
    if (settings.swap_weight < 0 && replay_ns && best_ns != UINT64_MAX) {
        double left = (double)s->best_ns / (double)replay_ns;
        s->tidied_to = left < s->tidied_to || s->tidied_to <= 0 ? left : s->tidied_to;
    }
    note_incumbent(s, &settings);
    return true;
}

enum strategy_result attempts_end(struct attempt_search *s, struct item_list *out)
{
    *out = s->best;
    if (s->out_of_memory)
        items_release(out);
    return s->out_of_memory ? STRATEGY_NO_MEMORY : out->items ? STRATEGY_FOUND : STRATEGY_NOTHING;
}
