/* Plans one problem under several caps and prints a table: what bench_plan is made of.
 *
 *     bench_policy PROBLEM [--deadline MS] [--strategy NAME] [--swap] [--no-replay] CAP...
 *
 * PROBLEM is a file or KIND:SIZE[:SEED] (policy/generate.h); CAP up to 2 is a share of the undropped peak, bytes above.
 * Columns: cap, ok or none, nanoseconds of all operations once, added, bound on what is added, peak bytes, planning
 * time (of the processor) in ms, strategy. */
#include "policy/generate.h"
#include "policy/graph.h"
#include "policy/effort.h"
#include "policy/plan.h"
#include "policy/text.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t cpu_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void plan_at(const struct policy_problem *problem, uint64_t peak, double ratio, struct policy_options options)
{
    struct plan plan;
    char why[256] = "";
    options.cap_bytes = ratio > 2 ? (uint64_t)ratio : (uint64_t)((double)peak * ratio); /* bytes as well */
    uint64_t start = cpu_nanoseconds();
    enum policy_status status = policy_make_plan(problem, &options, &plan, NULL, why, sizeof why);
    double milliseconds = (double)(cpu_nanoseconds() - start) / 1e6;
    if (status != POLICY_OK) {
        printf("%" PRIu64 "\tnone\t-\t-\t-\t-\t%.1f\t%s\n", options.cap_bytes, milliseconds, why);
        return;
    }
    printf("%" PRIu64 "\tok\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%.1f\t%s\n", options.cap_bytes,
           plan.run_nanoseconds, plan.added_nanoseconds, plan.bound_nanoseconds, plan.peak_bytes, milliseconds,
           plan.strategy);
    plan_release(&plan);
}

static bool load(const char *name, struct text_problem *text, char *why, size_t why_bytes)
{
    *text = (struct text_problem){0};
    if (generate_is_name(name))
        return generate_named(&text->builder, name, why, why_bytes);
    FILE *input = fopen(name, "r");
    if (!input) {
        snprintf(why, why_bytes, "%s: cannot be opened", name);
        return false;
    }
    char line[256];
    bool is_read = text_read(input, text, line, sizeof line);
    fclose(input);
    if (!is_read)
        snprintf(why, why_bytes, "%s: %s", name, line);
    return is_read;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_policy PROBLEM [--deadline MS] [--strategy NAME] [--swap] [--no-replay] CAP...\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct text_problem text;
    struct graph graph;
    struct policy_options options = {0};
    char why[512];
    if (argc < 2)
        return usage();
    if (!load(argv[1], &text, why, sizeof why)) {
        fprintf(stderr, "bench_policy: %s\n", why);
        return 2;
    }
    if (!graph_build(&graph, &text.builder.problem))
        return 2;
    uint64_t peak = graph_undropped_peak(&graph, NULL);
    printf("# operations %u versions %u peak %" PRIu64 " floor %" PRIu64 " run %" PRIu64 "\n",
           text.builder.problem.operation_count, text.builder.problem.version_count, peak,
           policy_floor_bytes(&text.builder.problem), graph.clock[text.builder.problem.operation_count]);
    graph_release(&graph);
    for (int k = 2; k < argc; k++) {
        if (strcmp(argv[k], "--deadline") == 0 && k + 1 < argc)
            options.deadline_ns = strtoull(argv[++k], NULL, 10) * 1000000;
        else if (strcmp(argv[k], "--strategy") == 0 && k + 1 < argc)
            options.only_strategy = argv[++k];
        else if (strcmp(argv[k], "--swap") == 0)
            options.may_swap = true;
        else if (strcmp(argv[k], "--no-replay") == 0)
            options.may_not_replay = true;
        else
            plan_at(&text.builder.problem, peak, strtod(argv[k], NULL), options);
    }
    text_release(&text);
    return 0;
}
