#include "policy/plan.h"
#include "policy/bound.h"
#include "policy/check.h"
#include "policy/strategy.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t DEFAULT_DEADLINE_NS = 300000000, FLOOR_SEARCH_NS = 1000000000;

/* In the order in which they are asked; what seldom wins comes last, when there is effort left. */
static const struct strategy *const strategies[] = {
    &strategy_greedy,    &strategy_swap,  &strategy_revolve,     &strategy_checkpoints,
    &strategy_portfolio, &strategy_log,   &strategy_exact,       &strategy_refine,
    &strategy_polish,    &strategy_chain, &strategy_chen_budget, &strategy_chen_segments,
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

static struct strategy_request request_for(const struct graph *graph, const struct policy_options *options,
                                           uint64_t cap, struct effort *effort)
{
    *effort = effort_of(options->deadline_ns ? options->deadline_ns : DEFAULT_DEADLINE_NS);
    struct strategy_request request = {.cap = cap,
                                       .may_swap = options->may_swap,
                                       .may_not_replay = options->may_not_replay,
                                       .give_up_ns = UINT64_MAX,
                                       .effort = effort,
                                       .small_bytes = small_bytes_under(graph->problem, cap)};
    graph_undropped_peak(graph, &request.pivot);
    return request;
}

static enum strategy_result run_strategies(const struct graph *graph, const struct policy_options *options,
                                           struct strategy_request *request, struct best *best)
{
    const size_t count = sizeof strategies / sizeof strategies[0];
    request->best = &best->items;
    for (size_t k = 0; k < 2 * count; k++) {
        const struct strategy *strategy = strategies[k % count];
        request->is_thorough = k >= count;
        if (options->only_strategy && strcmp(options->only_strategy, strategy->name) != 0)
            continue;
        if (options->may_not_replay && strategy != &strategy_swap && strategy != &strategy_refine)
            continue;
        if (run_strategy(strategy, graph, request, best) == STRATEGY_NO_MEMORY)
            return STRATEGY_NO_MEMORY;
        if (best->items.items && request->incumbent && request->incumbent->is_optimal && !request->may_swap)
            break;
        if (best->items.items && (request->give_up_ns == 0 || effort_is_spent(request->effort)))
            break;
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
        run_strategy(strategies[0], graph, &request, &best);
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
    if (low <= above)
        low = above + 1;
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

/* The search for the floor takes longer than a plan: only where the caller wants to know. */
static enum policy_status report_infeasible(const struct graph *graph, const struct policy_options *options,
                                            uint64_t *floor_bytes, char *why, size_t why_bytes)
{
    if (floor_bytes)
        *floor_bytes = find_floor(graph, options, options->cap_bytes);
    uint64_t start = start_bytes(graph->problem);
    if (why && why_bytes && !options->may_swap && start > options->cap_bytes)
        snprintf(why, why_bytes,
                 "no plan holds a cap of %" PRIu64 " bytes by recomputation alone: %" PRIu64
                 " bytes are there when the iteration starts, and nothing can rebuild them",
                 options->cap_bytes, start);
    else if (why && why_bytes && floor_bytes)
        snprintf(why, why_bytes, "no plan holds a cap of %" PRIu64 " bytes; the smallest that would do is %" PRIu64,
                 options->cap_bytes, *floor_bytes);
    else if (why && why_bytes)
        snprintf(why, why_bytes, "no plan holds a cap of %" PRIu64 " bytes", options->cap_bytes);
    return POLICY_INFEASIBLE;
}

static bool is_known_strategy(const char *name)
{
    for (size_t k = 0; k < sizeof strategies / sizeof strategies[0]; k++)
        if (strcmp(strategies[k]->name, name) == 0)
            return true;
    return false;
}

static enum policy_status make_from_graph(const struct graph *graph, const struct policy_options *options,
                                          struct plan *out, uint64_t *floor_bytes, char *why, size_t why_bytes)
{
    struct best best = {0};
    struct cut cut = {0};
    struct effort effort;
    struct strategy_request request = request_for(graph, options, options->cap_bytes, &effort);
    bool is_under_pressure = graph->problem->operation_count && graph_undropped_peak(graph, NULL) > options->cap_bytes;
    if (is_under_pressure && !cut_solve(graph, request.pivot, options->cap_bytes, &cut))
        return POLICY_NO_MEMORY;
    request.cut = is_under_pressure ? &cut : NULL;
    size_t versions = (size_t)graph->problem->version_count + 1;
    struct incumbent incumbent = {.hold = malloc(versions * sizeof(double)),
                                  .weight = malloc(versions * sizeof(double))};
    request.incumbent = incumbent.hold && incumbent.weight ? &incumbent : NULL;
    enum strategy_result result = run_strategies(graph, options, &request, &best);
    free(incumbent.hold);
    free(incumbent.weight);
    items_release(&incumbent.items);
    bool has_bound = is_under_pressure && !options->may_swap && result == STRATEGY_FOUND;
    uint64_t bound = has_bound ? bound_nanoseconds(graph, options->cap_bytes, &cut) : 0;
    cut_release(&cut);
    if (result == STRATEGY_NO_MEMORY) {
        items_release(&best.items);
        return POLICY_NO_MEMORY;
    }
    if (result != STRATEGY_FOUND)
        return report_infeasible(graph, options, floor_bytes, why, why_bytes);
    *out = (struct plan){.items = best.items.items,
                         .item_count = best.items.count,
                         .peak_bytes = best.found.peak_bytes,
                         .run_nanoseconds = best.found.run_nanoseconds,
                         .added_nanoseconds = best.found.added_nanoseconds,
                         .bound_nanoseconds = bound,
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
