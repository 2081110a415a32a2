#include "policy/plan.h"
#include "policy/bound.h"
#include "policy/check.h"
#include "policy/impossible.h"
#include "policy/strategy.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t DEFAULT_DEADLINE_NS = 300000000, FLOOR_SEARCH_NS = 1000000000;

/* In the order in which they are asked, twice: first quickly, then thoroughly, with a share of the effort that is left.
 * Without a plan they are asked again, as quickly, and each time more patiently; the exact search, which says that
 * there is none, thoroughly then as well. */
static const struct turn {
    const struct strategy *strategy;
    double quick_share, thorough_share;
} turns[] = {
    {&strategy_revolve, 1, 1},          {&strategy_greedy, 0.4, 0.2},
    {&strategy_swap, 1, 0.4},           {&strategy_revolve, 1, 1},
    {&strategy_chain, 0.3, 0.1},        {&strategy_checkpoints, 0.75, 0.1},
    {&strategy_portfolio, 0.5, 0.15},   {&strategy_log, 1, 1},
    {&strategy_exact, 0.1, 0.5},        {&strategy_chen_budget, 1, 0.08},
    {&strategy_chen_segments, 1, 0.04}, {&strategy_refine, 1, 0.75},
    {&strategy_polish, 1, 1},           {&strategy_refine, 1, 1},
};

enum {
    TURNS = sizeof turns / sizeof turns[0],
    BRIEF_ALWAYS_NS = 2000000,
    BRIEF_PER_OPERATION_NS = 20000,
    LEAST_PER_OPERATION_NS = 4800, /* below, a large problem would be left to the first strategy */
    PATIENCE = 1,                  /* times the effort in addition, where there is no plan yet; */
    EXACT_PATIENCE = 3,            /* the same for a graph that may be searched to the end; */
    PATIENT_OPERATIONS = 50000     /* in proportion less for more: what is not counted as effort grows as well */
};

struct best {
    struct item_list items;
    struct simulation found;
    const char *strategy;
};

static int by_bytes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Greatest size such that all versions up to it together make under half a percent of what may be dropped. */
static uint64_t small_bytes_under(const struct policy_problem *p, uint64_t cap)
{
    uint64_t *bytes = malloc(sizeof *bytes * ((size_t)p->version_count + 1)), sum = 0, small = 0;
    if (!bytes)
        return 0;
    for (uint32_t v = 0; v < p->version_count; v++)
        bytes[v] = p->versions[v].bytes;
    qsort(bytes, p->version_count, sizeof *bytes, by_bytes);
    uint64_t room = cap > p->fixed_bytes ? (cap - p->fixed_bytes) / 200 : 0;
    for (uint32_t k = 0; k < p->version_count && sum + bytes[k] <= room; k++) {
        sum += bytes[k];
        if (k + 1 == p->version_count || bytes[k + 1] > bytes[k])
            small = bytes[k]; /* only where all of this size fit */
    }
    free(bytes);
    return small;
}

static enum strategy_result run_strategy(const struct strategy *strategy, const struct graph *graph,
                                         struct strategy_request *request, struct best *best)
{
    struct item_list items = {0};
    struct simulation found;
    enum strategy_result result = strategy->make(graph, request, &items);
    if (result == STRATEGY_FOUND && check_plan(graph, items.items, items.count, request->cap, &found, NULL, 0) &&
        found.added_nanoseconds < request->give_up_ns) {
        items_release(&best->items);
        *best = (struct best){items, found, strategy->name};
        request->give_up_ns = found.added_nanoseconds;
    } else {
        items_release(&items);
    }
    return result;
}

static uint64_t effort_deadline(const struct graph *graph, const struct policy_options *options)
{
    uint64_t deadline = options->deadline_ns ? options->deadline_ns : DEFAULT_DEADLINE_NS;
    uint64_t brief = BRIEF_ALWAYS_NS + (uint64_t)BRIEF_PER_OPERATION_NS * graph->problem->operation_count;
    uint64_t least = (uint64_t)LEAST_PER_OPERATION_NS * graph->problem->operation_count;
    least = least < DEFAULT_DEADLINE_NS ? least : DEFAULT_DEADLINE_NS;
    if (options->is_brief && brief < deadline)
        return brief;
    return deadline > least ? deadline : least;
}

static struct effort effort_allowed(const struct graph *graph, const struct policy_options *options)
{
    struct effort effort = effort_of(effort_deadline(graph, options));
    effort.wall_end = options->is_untimed ? UINT64_MAX : effort.wall_end;
    return effort;
}

static struct strategy_request request_for(const struct graph *graph, const struct policy_options *options,
                                           uint64_t cap, struct effort *effort)
{
    *effort = effort_allowed(graph, options);
    struct strategy_request request = {.cap = cap,
                                       .may_swap = options->may_swap,
                                       .may_not_replay = options->may_not_replay,
                                       .is_alone = options->only_strategy != NULL,
                                       .give_up_ns = UINT64_MAX,
                                       .effort = effort,
                                       .allowed_steps = effort->allowed,
                                       .small_bytes = small_bytes_under(graph->problem, cap)};
    graph_undropped_peak(graph, &request.pivot);
    return request;
}

static bool may_run(const struct strategy *strategy, const struct policy_options *options)
{
    bool is_asked = !options->only_strategy || strcmp(options->only_strategy, strategy->name) == 0;
    return is_asked && (!options->may_not_replay || strategy == &strategy_swap || strategy == &strategy_refine);
}

/* One strategy with its share of what is left; all of it where it is the only one. is_hasty: it gives up what takes
 * half as long again as the program, since others may know better. */
static enum strategy_result take_turn(const struct turn *turn, const struct graph *graph, bool is_hasty,
                                      struct strategy_request *request, struct best *best)
{
    struct effort *whole = request->effort, part = *whole;
    bool is_last_hope = turn->strategy == &strategy_exact && request->is_thorough && !best->items.items;
    double share = request->is_alone || is_last_hope ? 1
                   : request->is_thorough            ? turn->thorough_share
                                                     : turn->quick_share;
    if (part.allowed > part.steps)
        part.allowed = part.steps + (uint64_t)(share * (double)(part.allowed - part.steps));
    request->effort = &part;
    uint64_t give_up_ns = request->give_up_ns, hasty_ns = graph->clock[graph->problem->operation_count] / 2;
    if (is_hasty && hasty_ns && hasty_ns < give_up_ns)
        request->give_up_ns = hasty_ns;
    enum strategy_result result = run_strategy(turn->strategy, graph, request, best);
    if (request->give_up_ns == hasty_ns)
        request->give_up_ns = give_up_ns;
    whole->steps = part.steps;
    request->effort = whole;
    return result;
}

/* Is there nothing left to win, or nothing to win it with? */
static bool is_enough(const struct strategy_request *request, const struct best *best)
{
    if (!best->items.items)
        return false;
    bool is_optimal = !request->may_swap && ((request->incumbent && request->incumbent->is_optimal) ||
                                             best->found.added_nanoseconds <= request->bound_ns);
    return is_optimal || request->give_up_ns == 0 || effort_is_spent(request->effort);
}

/* The others have a plan at hand without any search. */
static bool needs_effort(const struct strategy *strategy)
{
    return strategy != &strategy_revolve && strategy != &strategy_log && strategy != &strategy_chain;
}

/* Before the last of many rounds, other strategies may still find what no editing comes to. */
static bool edits_plans(const struct strategy *strategy)
{
    return strategy == &strategy_refine || strategy == &strategy_polish;
}

/* In addition to `allowed`, where there is no plan yet. */
static uint64_t more_effort(const struct graph *graph, uint64_t allowed)
{
    if (exact_can_search(graph))
        return allowed * EXACT_PATIENCE;
    uint32_t count = graph->problem->operation_count;
    return count > PATIENT_OPERATIONS ? allowed * PATIENCE * PATIENT_OPERATIONS / count : allowed * PATIENCE;
}

static enum strategy_result run_strategies(const struct graph *graph, const struct policy_options *options,
                                           struct strategy_request *request, struct best *best)
{
    uint64_t allowed = request->effort->allowed;
    size_t count = 2 * TURNS;
    bool is_extended = false;
    request->best = &best->items;
    for (size_t k = 0; k < count && !is_enough(request, best); k++) {
        const struct turn *turn = &turns[k % TURNS];
        bool is_hasty = k < TURNS && turn->strategy == &strategy_greedy && !request->is_alone;
        request->is_thorough = k / TURNS == 1 || (k >= 2 * TURNS && turn->strategy == &strategy_exact);
        request->patience = k < 2 * TURNS ? 0 : (uint32_t)(k / TURNS) - 1;
        if (!best->items.items && effort_is_used_up(request->effort) && !is_extended) {
            request->effort->allowed = request->effort->steps + more_effort(graph, allowed);
            is_extended = true;
        }
        bool can_run = !effort_is_used_up(request->effort) || !needs_effort(turn->strategy);
        if (edits_plans(turn->strategy) && k >= 2 * TURNS && k + TURNS < count)
            continue;
        if (can_run && may_run(turn->strategy, options) &&
            take_turn(turn, graph, is_hasty, request, best) == STRATEGY_NO_MEMORY)
            return STRATEGY_NO_MEMORY;
        if (k + 1 == count && !best->items.items && !request->is_alone)
            count = (2 + MOST_PATIENCE) * TURNS;
    }
    return best->items.items ? STRATEGY_FOUND : STRATEGY_NOTHING;
}

/* Does the first strategy, the quickest, hold this cap? policy_make_plan will then do so as well. */
static bool is_easy(const struct graph *graph, const struct policy_options *options, uint64_t cap)
{
    struct best best = {0};
    struct effort effort;
    struct strategy_request request = request_for(graph, options, cap, &effort);
    request.any_will_do = true;
    if (!options->may_not_replay)
        run_strategy(&strategy_greedy, graph, &request, &best);
    if (options->may_swap && !best.items.items)
        run_strategy(&strategy_swap, graph, &request, &best);
    bool is_found = best.items.items;
    items_release(&best.items);
    return is_found;
}

/* The smallest cap found for which a plan exists, by bisection between what any execution needs and what
 * an undropped one takes. */
static uint64_t find_floor(const struct graph *graph, const struct policy_options *options, uint64_t above)
{
    uint64_t high = graph_undropped_peak(graph, NULL), low = policy_floor_bytes(graph->problem);
    uint64_t halving = options->may_not_replay ? UINT64_MAX : log_least_bytes(graph);
    if (low <= above)
        low = above + 1;
    if (halving > above && halving < high)
        high = halving;
    if (low >= high)
        return high;
    uint64_t tolerance = high / 512 + 1, start = now_nanoseconds();
    for (uint64_t middle = low; low < high; middle = low + (high - low) / 2) {
        if ((high - low < tolerance && middle != low) || now_nanoseconds() - start > FLOOR_SEARCH_NS)
            break;
        if (is_easy(graph, options, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

static uint64_t start_bytes(const struct policy_problem *p)
{
    uint64_t bytes = p->fixed_bytes;
    for (uint32_t v = 0; v < p->version_count; v++)
        bytes += p->versions[v].producer == POLICY_NONE ? p->versions[v].bytes : 0;
    return bytes;
}

static void explain_lack(const struct graph *graph, const struct policy_options *options, const struct plan *plan,
                         const uint64_t *floor_bytes, char *why, size_t why_bytes)
{
    uint64_t start = start_bytes(graph->problem);
    int used;
    if (!options->may_swap && start > options->cap_bytes) {
        snprintf(why, why_bytes,
                 "no plan holds a cap of %" PRIu64 " bytes by recomputation alone: %" PRIu64
                 " bytes are there when the iteration starts, and nothing can rebuild them",
                 options->cap_bytes, start);
        return;
    }
    if (plan->needed_bytes && plan->needing_operation < graph->problem->operation_count)
        used = snprintf(why, why_bytes,
                        "no plan can hold a cap of %" PRIu64 " bytes by recomputation alone: operation %" PRIu32
                        ", and what it takes to make its inputs, needs at least %" PRIu64,
                        options->cap_bytes, plan->needing_operation, plan->needed_bytes);
    else if (plan->needed_bytes && plan->needing_operation == POLICY_NONE)
        used = snprintf(why, why_bytes,
                        "no plan can hold a cap of %" PRIu64
                        " bytes by recomputation alone: all possible ones were searched",
                        options->cap_bytes);
    else if (plan->needed_bytes)
        used = snprintf(why, why_bytes,
                        "no plan can hold a cap of %" PRIu64
                        " bytes by recomputation alone: what must be there at the end needs at least %" PRIu64,
                        options->cap_bytes, plan->needed_bytes);
    else
        used = snprintf(why, why_bytes, "no plan was found under a cap of %" PRIu64 " bytes", options->cap_bytes);
    if (floor_bytes && used > 0 && (size_t)used < why_bytes)
        snprintf(why + used, why_bytes - (size_t)used, "; the smallest cap with a known plan is %" PRIu64 " bytes",
                 *floor_bytes);
}

/* The search for the floor takes longer than a plan: only where the caller wants to know. */
static enum policy_status report_infeasible(const struct graph *graph, const struct policy_options *options,
                                            const struct plan *plan, uint64_t *floor_bytes, char *why, size_t why_bytes)
{
    if (floor_bytes)
        *floor_bytes = find_floor(graph, options, options->cap_bytes);
    if (why && why_bytes)
        explain_lack(graph, options, plan, floor_bytes, why, why_bytes);
    return POLICY_INFEASIBLE;
}

/* True where no plan without swapping can exist; `out` then says why. */
static bool is_impossible(const struct graph *graph, const struct policy_options *options, struct plan *out)
{
    struct impossible found;
    if (options->may_swap || impossible_under(graph, options->cap_bytes, &found) != IMPOSSIBLE_PROVEN)
        return false;
    *out = (struct plan){
        .bound_nanoseconds = UINT64_MAX, .needed_bytes = found.bytes, .needing_operation = found.operation};
    return true;
}

static bool is_known_strategy(const char *name)
{
    for (size_t k = 0; k < TURNS; k++)
        if (strcmp(turns[k].strategy->name, name) == 0)
            return true;
    return false;
}

/* Nothing to do: nothing to plan, where what is given fits. */
static enum policy_status make_empty(const struct graph *graph, const struct policy_options *options, struct plan *out)
{
    if (start_bytes(graph->problem) > options->cap_bytes)
        return POLICY_INFEASIBLE;
    *out = (struct plan){.items = calloc(1, sizeof *out->items),
                         .peak_bytes = start_bytes(graph->problem),
                         .strategy = strategy_greedy.name};
    return out->items ? POLICY_OK : POLICY_NO_MEMORY;
}

/* The cut where the cap binds, and the bound on what is added that comes of it. False: no memory. */
static bool prepare(const struct graph *graph, const struct policy_options *options, struct strategy_request *request,
                    struct cut *cut, struct bound *bound)
{
    if (graph_undropped_peak(graph, NULL) <= options->cap_bytes)
        return true;
    if (!cut_solve(graph, request->pivot, options->cap_bytes, cut))
        return false;
    request->cut = cut;
    if (!options->may_swap)
        *bound = bound_find(graph, options->cap_bytes, cut, request->effort);
    request->bound_ns = bound->ns;
    return true;
}

static enum strategy_result make_best(const struct graph *graph, const struct policy_options *options,
                                      struct strategy_request *request, struct best *best)
{
    size_t versions = (size_t)graph->problem->version_count + 1;
    struct incumbent incumbent = {.hold = malloc(versions * sizeof(double)),
                                  .weight = malloc(versions * sizeof(double))};
    request->incumbent = &incumbent;
    enum strategy_result result =
        incumbent.hold && incumbent.weight ? run_strategies(graph, options, request, best) : STRATEGY_NO_MEMORY;
    if (result == STRATEGY_FOUND && incumbent.is_optimal && !options->may_swap)
        request->bound_ns = best->found.added_nanoseconds;
    if (result == STRATEGY_NOTHING && incumbent.is_optimal && !options->may_swap)
        request->bound_ns = UINT64_MAX; /* all there is was searched */
    free(incumbent.hold);
    free(incumbent.weight);
    items_release(&incumbent.items);
    request->incumbent = NULL;
    return result;
}

static void keep_better(struct best *best, struct best *other)
{
    if (other->items.items && (!best->items.items || other->found.added_nanoseconds < best->found.added_nanoseconds)) {
        struct best worse = *best;
        *best = *other;
        *other = worse;
    }
    items_release(&other->items);
}

/* By one of the means alone, as if it had been asked for. */
static enum strategy_result make_by_one(const struct graph *graph, const struct policy_options *both,
                                        struct strategy_request *request, bool is_swap, struct best *best)
{
    struct policy_options options = *both;
    struct best found = {0};
    options.may_not_replay = is_swap;
    options.may_swap = is_swap;
    *request->effort = effort_allowed(graph, &options);
    request->give_up_ns = UINT64_MAX;
    request->may_not_replay = is_swap;
    request->may_swap = is_swap;
    request->bound_ns =
        request->cut && !is_swap ? bound_find(graph, options.cap_bytes, request->cut, request->effort).ns : 0;
    enum strategy_result result = STRATEGY_NOTHING;
    if (request->bound_ns != UINT64_MAX)
        result = make_best(graph, &options, request, &found);
    keep_better(best, &found);
    request->may_not_replay = false;
    request->may_swap = true;
    request->bound_ns = 0;
    return result;
}

static bool may_gain(const struct best *best)
{
    return !best->items.items || best->found.added_nanoseconds > 0;
}

/* With both means a plan is never worse than by one of them alone: each is asked for by itself before, unless there is
 * nothing to win. A running program has had its answer without swapping, and no time. */
static enum strategy_result make_by_any(const struct graph *graph, const struct policy_options *options,
                                        struct strategy_request *request, struct best *best)
{
    enum strategy_result result = STRATEGY_NOTHING;
    if (options->may_swap && !options->may_not_replay && !options->only_strategy) {
        if (!options->is_brief)
            result = make_by_one(graph, options, request, false, best);
        if (result != STRATEGY_NO_MEMORY && may_gain(best))
            result = make_by_one(graph, options, request, true, best);
        if (result == STRATEGY_NO_MEMORY || !may_gain(best))
            return result == STRATEGY_NO_MEMORY ? result : STRATEGY_FOUND;
        *request->effort = effort_allowed(graph, options);
        request->give_up_ns = best->items.items ? best->found.added_nanoseconds : UINT64_MAX;
    }
    return make_best(graph, options, request, best);
}

static enum policy_status make_from_graph(const struct graph *graph, const struct policy_options *options,
                                          struct plan *out, uint64_t *floor_bytes, char *why, size_t why_bytes)
{
    struct best best = {0};
    struct effort effort;
    struct strategy_request request = request_for(graph, options, options->cap_bytes, &effort);
    if (graph->problem->operation_count == 0) {
        enum policy_status status = make_empty(graph, options, out);
        return status == POLICY_INFEASIBLE ? report_infeasible(graph, options, out, floor_bytes, why, why_bytes)
                                           : status;
    }
    if (is_impossible(graph, options, out))
        return report_infeasible(graph, options, out, floor_bytes, why, why_bytes);
    struct cut cut = {0};
    enum strategy_result result = STRATEGY_NO_MEMORY;
    struct bound bound = {.position = POLICY_NONE};
    if (prepare(graph, options, &request, &cut, &bound))
        result = bound.ns == UINT64_MAX ? STRATEGY_NOTHING : make_by_any(graph, options, &request, &best);
    cut_release(&cut);
    if (result == STRATEGY_NO_MEMORY) {
        items_release(&best.items);
        return POLICY_NO_MEMORY;
    }
    out->bound_nanoseconds = request.bound_ns;
    if (request.bound_ns == UINT64_MAX) {
        out->needed_bytes = options->cap_bytes + 1;
        out->needing_operation = bound.ns == UINT64_MAX ? bound.position : POLICY_NONE;
    }
    if (result != STRATEGY_FOUND)
        return report_infeasible(graph, options, out, floor_bytes, why, why_bytes);
    *out = (struct plan){.items = best.items.items,
                         .item_count = best.items.count,
                         .peak_bytes = best.found.peak_bytes,
                         .run_nanoseconds = best.found.run_nanoseconds,
                         .added_nanoseconds = best.found.added_nanoseconds,
                         .bound_nanoseconds = request.bound_ns,
                         .cut_nanoseconds = bound.single,
                         .strategy = best.strategy};
    return POLICY_OK;
}

enum policy_status policy_make_plan(const struct policy_problem *problem, const struct policy_options *options,
                                    struct plan *out, uint64_t *floor_bytes, char *why, size_t why_bytes)
{
    struct graph graph;
    *out = (struct plan){0};
    if (options->only_strategy && !is_known_strategy(options->only_strategy)) {
        if (why && why_bytes)
            snprintf(why, why_bytes, "unknown strategy %s", options->only_strategy);
        return POLICY_BAD_PROBLEM;
    }
    if (!policy_problem_is_valid(problem, why, why_bytes))
        return POLICY_BAD_PROBLEM;
    if (!graph_build(&graph, problem))
        return POLICY_NO_MEMORY;
    enum policy_status status = make_from_graph(&graph, options, out, floor_bytes, why, why_bytes);
    graph_release(&graph);
    return status;
}

void plan_release(struct plan *plan)
{
    free(plan->items);
    *plan = (struct plan){0};
}
