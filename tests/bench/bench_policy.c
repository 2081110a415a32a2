/* Plans one problem under several caps and prints a table: what bench-plan is made of.
 *
 *     bench_policy PROBLEM [--deadline MS] [--strategy NAME] [--swap] [--no-replay] RATIO...
 *
 * Columns: ratio of the cap to the undropped peak, cap, status, time with the plan / time without, the
 * certified bound on that, peak, planning time (of the processor) in ms, strategy. */
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
    uint64_t floor = 0, start = cpu_nanoseconds();
    options.cap_bytes = ratio > 2 ? (uint64_t)ratio : (uint64_t)((double)peak * ratio); /* bytes as well */
    enum policy_status status = policy_make_plan(problem, &options, &plan, &floor, why, sizeof why);
    double milliseconds = (double)(cpu_nanoseconds() - start) / 1e6;
    if (status != POLICY_OK) {
        printf("%.4g\t%" PRIu64 "\t-\t-\t-\t-\t%.0f\t%s\n", ratio, options.cap_bytes, milliseconds, why);
        return;
    }
    double run = (double)(plan.run_nanoseconds ? plan.run_nanoseconds : 1);
    printf("%.4g\t%" PRIu64 "\tok\t%.4f\t%.4f\t%" PRIu64 "\t%.0f\t%s\n", ratio, options.cap_bytes,
           1 + (double)plan.added_nanoseconds / run, 1 + (double)plan.bound_nanoseconds / run, plan.peak_bytes,
           milliseconds, plan.strategy);
    plan_release(&plan);
}

/* resnet:BLOCKS, recurrent:STEPS, chain:STEPS and random-chain:STEPS are made here, anything else is a file. */
static bool load(const char *name, struct text_problem *text, char *why, size_t why_bytes)
{
    const char *colon = strchr(name, ':');
    uint32_t size = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
    struct problem_builder *b = &text->builder;
    *text = (struct text_problem){0};
    if (size && strncmp(name, "resnet:", 7) == 0)
        generate_resnet(b, &(struct generate_resnet){.blocks = size,
                                                     .activation_bytes = 1 << 20,
                                                     .weight_bytes = 10000,
                                                     .convolution_ns = 1000000,
                                                     .pointwise_ns = 20000});
    else if (size && strncmp(name, "recurrent:", 10) == 0)
        generate_recurrent(b, size, 65536, 300000);
    else if (size && strncmp(name, "chain:", 6) == 0)
        generate_chain(b, size, 1000, 1000, 2000);
    else if (size && strncmp(name, "random-chain:", 13) == 0)
        generate_random_chain(b, size, 7);
    else {
        FILE *input = fopen(name, "r");
        if (!input) {
            snprintf(why, why_bytes, "cannot be opened");
            return false;
        }
        bool is_read = text_read(input, text, why, why_bytes);
        fclose(input);
        return is_read;
    }
    if (b->has_failed)
        snprintf(why, why_bytes, "out of memory");
    return !b->has_failed;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_policy PROBLEM [--deadline MS] [--strategy NAME] [--swap] [--no-replay] RATIO...\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct text_problem text;
    struct graph graph;
    struct policy_options options = {0};
    char why[256];
    if (argc < 2)
        return usage();
    if (!load(argv[1], &text, why, sizeof why)) {
        fprintf(stderr, "%s: %s\n", argv[1], why);
        return 2;
    }
    if (!graph_build(&graph, &text.builder.problem))
        return 2;
    uint64_t peak = graph_undropped_peak(&graph, NULL);
    printf("# %s: %u operations, peak %" PRIu64 ", floor %" PRIu64 ", run %" PRIu64 " ns\n", argv[1],
           text.builder.problem.operation_count, peak, policy_floor_bytes(&text.builder.problem),
           graph.clock[text.builder.problem.operation_count]);
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
