/* Plans one problem under several caps and prints a table: what bench_plan is made of.
 *
 *     bench_policy PROBLEM [--deadline MS] [--strategy NAME] [--swap] [--no-replay] [--repeat N] CAP...
 *     bench_policy PROBLEM --curve POINTS          the whole curve: points, ms of the processor and of the wall
 *
 * PROBLEM is a file (a trace or the text form) or KIND:SIZE[:SEED] (policy/generate.h); CAP up to 2 is a share of the
 * undropped peak, bytes above. Columns: cap, ok or none, nanoseconds of all operations once, added, bound on what is
 * added ("impossible" where that is proven), peak bytes, planning time in ms of the processor and of the wall (the
 * least of N), strategy, or why there is no plan; the bound by a cut at one position. */
#include "policy/curve.h"
#include "policy/generate.h"
#include "policy/graph.h"
#include "policy/plan.h"
#include "trace/verb_input.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct timed {
    double cpu_ms, wall_ms;
};

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static enum policy_status plan_timed(const struct policy_problem *problem, const struct policy_options *options,
                                     struct plan *plan, char *why, size_t why_bytes, struct timed *timed)
{
    uint64_t cpu = read_clock(CLOCK_THREAD_CPUTIME_ID), wall = read_clock(CLOCK_MONOTONIC);
    enum policy_status status = policy_make_plan(problem, options, plan, NULL, why, why_bytes);
    timed->cpu_ms = fmin(timed->cpu_ms, (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu) / 1e6);
    timed->wall_ms = fmin(timed->wall_ms, (double)(read_clock(CLOCK_MONOTONIC) - wall) / 1e6);
    return status;
}

static void plan_at(const struct policy_problem *problem, uint64_t peak, double ratio, struct policy_options options,
                    uint32_t repeats)
{
    struct plan plan;
    struct timed timed = {HUGE_VAL, HUGE_VAL};
    char why[256] = "";
    enum policy_status status = POLICY_OK;
    options.cap_bytes = ratio > 2 ? (uint64_t)ratio : (uint64_t)((double)peak * ratio); /* bytes as well */
    for (uint32_t k = 0; k < repeats; k++) {
        if (k && status == POLICY_OK)
            plan_release(&plan);
        status = plan_timed(problem, &options, &plan, why, sizeof why, &timed);
    }
    if (status != POLICY_OK) {
        printf("%" PRIu64 "\tnone\t-\t-\t%s\t-\t%.1f\t%.1f\t%s\n", options.cap_bytes,
               plan.needed_bytes ? "impossible" : "-", timed.cpu_ms, timed.wall_ms, why);
        return;
    }
    printf("%" PRIu64 "\tok\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%.1f\t%.1f\t%s\t%" PRIu64 "\n",
           options.cap_bytes, plan.run_nanoseconds, plan.added_nanoseconds, plan.bound_nanoseconds, plan.peak_bytes,
           timed.cpu_ms, timed.wall_ms, plan.strategy, plan.cut_nanoseconds);
    plan_release(&plan);
}

static void curve_timed(const struct policy_problem *problem, uint32_t points)
{
    static struct curve curve;
    uint64_t cpu = read_clock(CLOCK_THREAD_CPUTIME_ID), wall = read_clock(CLOCK_MONOTONIC);
    curve_make(problem, &(struct curve_request){.points = points, .nanoseconds = 2000000000}, &curve, NULL, 0);
    printf("%u %.1f %.1f\n", curve.point_count, (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu) / 1e6,
           (double)(read_clock(CLOCK_MONOTONIC) - wall) / 1e6);
}

/* A generated problem, or what a file holds. */
struct loaded {
    struct problem_builder built;
    struct verb_input input;
    const struct policy_problem *problem;
};

static bool load(const char *name, struct loaded *out)
{
    char why[256];
    *out = (struct loaded){0};
    if (!generate_is_name(name)) {
        bool is_open = verb_input_open(name, &out->input);
        out->problem = out->input.problem;
        return is_open;
    }
    out->problem = &out->built.problem;
    if (generate_named(&out->built, name, why, sizeof why))
        return true;
    fprintf(stderr, "bench_policy: %s\n", why);
    return false;
}

static int usage(void)
{
    fprintf(
        stderr,
        "usage: bench_policy PROBLEM [--deadline MS] [--strategy NAME] [--swap] [--no-replay] [--repeat N] CAP...\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct loaded loaded;
    struct graph graph;
    struct policy_options options = {0};
    uint32_t repeats = 1;
    if (argc < 2)
        return usage();
    if (!load(argv[1], &loaded))
        return 2;
    const struct policy_problem *problem = loaded.problem;
    if (!graph_build(&graph, problem))
        return 2;
    uint64_t peak = graph_undropped_peak(&graph, NULL);
    printf("# operations %u versions %u peak %" PRIu64 " floor %" PRIu64 " run %" PRIu64 " demand %" PRIu64 "\n",
           problem->operation_count, problem->version_count, peak, policy_floor_bytes(problem),
           graph.clock[problem->operation_count],
           loaded.input.demand_peak_bytes ? loaded.input.demand_peak_bytes : peak);
    graph_release(&graph);
    for (int k = 2; k < argc; k++) {
        bool has_value = k + 1 < argc;
        if (strcmp(argv[k], "--deadline") == 0 && has_value)
            options.deadline_ns = strtoull(argv[++k], NULL, 10) * 1000000;
        else if (strcmp(argv[k], "--strategy") == 0 && has_value)
            options.only_strategy = argv[++k];
        else if (strcmp(argv[k], "--repeat") == 0 && has_value)
            repeats = (uint32_t)strtoul(argv[++k], NULL, 10);
        else if (strcmp(argv[k], "--curve") == 0 && has_value)
            curve_timed(problem, (uint32_t)strtoul(argv[++k], NULL, 10));
        else if (strcmp(argv[k], "--swap") == 0)
            options.may_swap = true;
        else if (strcmp(argv[k], "--no-replay") == 0)
            options.may_not_replay = true;
        else
            plan_at(problem, peak, strtod(argv[k], NULL), options, repeats ? repeats : 1);
    }
    verb_input_close(&loaded.input);
    builder_release(&loaded.built);
    return 0;
}
