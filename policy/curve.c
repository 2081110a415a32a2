#include "policy/curve.h"
#include "policy/graph.h"
#include "policy/plan.h"
#include <math.h>
#include <string.h>

static const uint64_t DEFAULT_PLAN_NS = 100000000;

struct maker {
    const struct policy_problem *problem;
    struct curve *out;
    uint64_t caps[CURVE_MOST_POINTS], plan_ns;
    uint32_t cap_count;
    double forward_share; /* of the time, before the position at which the bare run holds most */
    bool is_out_of_memory;
};

/* What one call of the planner found. */
struct answer {
    bool is_found;
    double ratio, bound;
    uint64_t peak_bytes;
    const char *strategy;
};

static struct answer ask(struct maker *m, uint64_t cap, bool may_swap, const char *strategy)
{
    struct policy_options options = {
        .cap_bytes = cap, .deadline_ns = m->plan_ns, .may_swap = may_swap, .only_strategy = strategy};
    struct plan plan;
    enum policy_status status = policy_make_plan(m->problem, &options, &plan, NULL, NULL, 0);
    m->is_out_of_memory |= status == POLICY_NO_MEMORY;
    if (status != POLICY_OK)
        return (struct answer){0};
    double run = plan.run_nanoseconds ? (double)plan.run_nanoseconds : 1;
    struct answer answer = {true, 1 + (double)plan.added_nanoseconds / run, 1 + (double)plan.bound_nanoseconds / run,
                            plan.peak_bytes, plan.strategy};
    plan_release(&plan);
    return answer;
}

static bool is_better(double ratio, double than)
{
    return ratio > 0 && (than <= 0 || ratio < than);
}

static void keep_better(const struct curve_point *below, struct curve_point *point)
{
    if (is_better(below->alone, point->alone)) {
        point->alone = below->alone;
        point->peak_bytes = below->peak_bytes;
        point->strategy = below->strategy;
    }
    if (is_better(below->swapping, point->swapping))
        point->swapping = below->swapping;
}

static void add_point(struct maker *m, uint64_t cap)
{
    struct curve *out = m->out;
    struct answer alone = ask(m, cap, false, NULL), swapping = {0};
    if (out->has_swapping)
        swapping = ask(m, cap, true, NULL);
    struct curve_point *point = &out->points[out->point_count];
    *point = (struct curve_point){.cap_bytes = cap,
                                  .alone = alone.ratio,
                                  .swapping = swapping.ratio,
                                  .bound = alone.bound,
                                  .peak_bytes = alone.peak_bytes,
                                  .strategy = alone.strategy};
    if (out->point_count)
        keep_better(point - 1, point);
    if (out->has_swapping && is_better(point->alone, point->swapping))
        point->swapping = point->alone;
    out->point_count += point->alone > 0 || point->swapping > 0;
}

/* The bound for more memory holds for less as well. */
static void level_bounds(struct curve *out)
{
    for (uint32_t k = out->point_count; k-- > 1;)
        out->points[k - 1].bound = fmax(out->points[k - 1].bound, out->points[k].bound);
}

/* A plan of a named method is a plan. */
static void offer(struct curve *out, const struct answer *answer)
{
    for (uint32_t k = 0; k < out->point_count; k++) {
        struct curve_point *point = &out->points[k];
        if (answer->is_found && point->cap_bytes >= answer->peak_bytes && is_better(answer->ratio, point->alone)) {
            point->alone = answer->ratio;
            point->peak_bytes = answer->peak_bytes;
            point->strategy = answer->strategy;
        }
        if (out->has_swapping && is_better(point->alone, point->swapping))
            point->swapping = point->alone;
    }
}

static void add_mark(struct curve *out, const char *name, char letter, const struct answer *answer)
{
    for (uint32_t k = 0; k < out->mark_count; k++)
        if (out->marks[k].letter == letter && out->marks[k].peak_bytes == answer->peak_bytes)
            return;
    if (answer->is_found && out->mark_count < CURVE_MOST_MARKS)
        out->marks[out->mark_count++] =
            (struct curve_mark){name, letter, answer->peak_bytes, answer->ratio, answer->strategy};
}

/* The plan of this strategy with the least memory among the caps of the curve, of those that add at most `most` of the
 * bare time. */
static struct answer ask_least(struct maker *m, const char *strategy, double most)
{
    struct answer least = {0};
    uint32_t low = 0, high = m->cap_count ? m->cap_count - 1 : 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct answer answer = ask(m, m->caps[middle], false, strategy);
        bool is_right = answer.is_found && answer.ratio <= 1 + most;
        least = is_right ? answer : least;
        high = is_right ? middle : high;
        low = is_right ? low : middle + 1;
    }
    return least;
}

/* Square root: the least memory at the price of one more forward pass, by equal segments or by the budget search. */
static void mark_chen(struct maker *m)
{
    struct answer segments = ask_least(m, "chen-segments", m->forward_share);
    struct answer budget = ask_least(m, "chen-budget", m->forward_share);
    bool is_budget = budget.is_found && (!segments.is_found || budget.peak_bytes < segments.peak_bytes);
    add_mark(m->out, "Chen sqrt(n)", 'S', is_budget ? &budget : &segments);
    struct answer least = ask_least(m, "log-n", HUGE_VAL);
    add_mark(m->out, "Chen log n", 'L', &least);
}

/* Methods that have a plan for every memory: a few places along the curve. */
static void mark_along(struct maker *m, const char *strategy, const char *name, char letter)
{
    for (uint32_t k = m->cap_count / 8; k + 1 < m->cap_count; k += m->cap_count / 5 + 1) {
        struct answer answer = ask(m, m->caps[k], false, strategy);
        add_mark(m->out, name, letter, &answer);
    }
}

/* Where a named method has a plan, ours is asked for the same memory. */
static void add_point_at(struct maker *m, const struct curve_mark *mark)
{
    struct curve *out = m->out;
    uint32_t k = out->point_count;
    while (k && out->points[k - 1].cap_bytes >= mark->peak_bytes)
        k--;
    bool is_there = k < out->point_count && out->points[k].cap_bytes == mark->peak_bytes;
    if (is_there || out->point_count == CURVE_MOST_POINTS)
        return;
    uint32_t after = out->point_count - k;
    struct curve_point upper[CURVE_MOST_POINTS];
    memcpy(upper, out->points + k, after * sizeof *upper);
    out->point_count = k;
    add_point(m, mark->peak_bytes);
    uint32_t first = out->point_count;
    memcpy(out->points + first, upper, after * sizeof *upper);
    out->point_count += after;
    for (uint32_t i = first ? first : 1; i < out->point_count; i++)
        keep_better(&out->points[i - 1], &out->points[i]);
}

/* Closer together where memory is scarce. */
static void choose_caps(struct maker *m, uint32_t points)
{
    double floor = (double)(m->out->floor_bytes ? m->out->floor_bytes : 1), peak = (double)m->out->bare_peak_bytes;
    for (uint32_t k = 0; k < points; k++) {
        double cap = floor * pow(peak / floor, (double)k / (points - 1));
        uint64_t bytes = k + 1 == points ? m->out->bare_peak_bytes : (uint64_t)ceil(cap);
        if (bytes >= m->out->bare_peak_bytes)
            bytes = m->out->bare_peak_bytes;
        if (!m->cap_count || bytes > m->caps[m->cap_count - 1])
            m->caps[m->cap_count++] = bytes;
    }
}

static void make(struct maker *m, const struct curve_request *request)
{
    choose_caps(m, request->points);
    for (uint32_t k = 0; k < m->cap_count; k++)
        add_point(m, m->caps[k]);
    level_bounds(m->out);
    if (!request->has_marks)
        return;
    mark_chen(m);
    mark_along(m, "revolve", "Revolve", 'R');
    mark_along(m, "chain", "chain programme", 'D');
    for (uint32_t k = 0; k < m->out->mark_count; k++) {
        const struct curve_mark *mark = &m->out->marks[k];
        add_point_at(m, mark);
        offer(m->out, &(struct answer){true, mark->ratio, 0, mark->peak_bytes, mark->strategy});
    }
    level_bounds(m->out);
}

enum curve_result curve_make(const struct policy_problem *problem, const struct curve_request *request,
                             struct curve *out, char *why, size_t why_bytes)
{
    struct graph graph;
    *out = (struct curve){0};
    if (!policy_problem_is_valid(problem, why, why_bytes))
        return CURVE_BAD_PROBLEM;
    if (!graph_build(&graph, problem))
        return CURVE_NO_MEMORY;
    struct maker maker = {.problem = problem, .out = out, .plan_ns = DEFAULT_PLAN_NS};
    uint32_t turn = 0;
    out->bare_peak_bytes = graph_undropped_peak(&graph, &turn);
    out->run_nanoseconds = graph.clock[problem->operation_count];
    maker.forward_share = (double)graph.clock[turn] / (double)(out->run_nanoseconds ? out->run_nanoseconds : 1);
    graph_release(&graph);
    out->floor_bytes = policy_floor_bytes(problem);
    out->has_swapping = request->may_swap && problem->out_bytes_per_ns > 0 && problem->in_bytes_per_ns > 0;
    if (request->nanoseconds) {
        uint32_t plans = request->points * (1u + out->has_swapping);
        maker.plan_ns = request->nanoseconds / plans + 1;
    }
    make(&maker, request);
    return maker.is_out_of_memory ? CURVE_NO_MEMORY : CURVE_DONE;
}
