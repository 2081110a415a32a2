#include "policy/plan.h"
#include "trace/report.h"
#include "trace/size.h"
#include "trace/verb.h"

struct tally {
    uint64_t replays, drops, outs, ins, replayed_ns, out_bytes, in_bytes;
};

static struct tally count_items(const struct policy_problem *problem, const struct plan *plan)
{
    struct tally tally = {0};
    for (uint32_t i = 0; i < plan->item_count; i++) {
        uint32_t index = plan->items[i].index;
        switch (plan->items[i].verb) {
        case PLAN_REPLAY:
            tally.replays++;
            tally.replayed_ns += problem->operations[index].nanoseconds;
            break;
        case PLAN_DROP:
            tally.drops++;
            break;
        case PLAN_SWAP_OUT:
            tally.outs++;
            tally.out_bytes += problem->versions[index].bytes;
            break;
        case PLAN_SWAP_IN:
            tally.ins++;
            tally.in_bytes += problem->versions[index].bytes;
            break;
        default:
            break;
        }
    }
    return tally;
}

static void write_plan(const struct policy_problem *problem, const struct plan *plan, uint64_t cap, uint64_t bare_peak)
{
    struct tally tally = count_items(problem, plan);
    char size[16];
    double run = plan->run_nanoseconds ? (double)plan->run_nanoseconds : 1;
    printf("Cap         %s\n", report_size(cap, size));
    printf("Peak        %s", report_size(plan->peak_bytes, size));
    printf(" (without a plan %s)\n", report_size(bare_peak, size));
    printf("Strategy    %s\n", plan->strategy);
    printf("Time        %.3f ms + %.3f ms = %.4f x\n", (double)plan->run_nanoseconds / 1e6,
           (double)plan->added_nanoseconds / 1e6, 1 + (double)plan->added_nanoseconds / run);
    if (plan->bound_nanoseconds)
        printf("Bound       no plan is below %.4f x\n", 1 + (double)plan->bound_nanoseconds / run);
    printf("Replays     %llu of %u operations, %.3f ms\n", (unsigned long long)tally.replays, problem->operation_count,
           (double)tally.replayed_ns / 1e6);
    printf("Drops       %llu\n", (unsigned long long)tally.drops);
    printf("Swaps       %llu out, %s;", (unsigned long long)tally.outs, report_size(tally.out_bytes, size));
    printf(" %llu in, %s\n", (unsigned long long)tally.ins, report_size(tally.in_bytes, size));
}

static int plan_under(const struct policy_problem *problem, uint64_t cap, const char *path)
{
    struct plan bare, plan;
    char why[256] = "", size[16];
    uint64_t floor = 0;
    struct policy_options options = {.cap_bytes = UINT64_MAX / 2};
    if (policy_make_plan(problem, &options, &bare, NULL, why, sizeof why) != POLICY_OK)
        return verb_refuse("%s: %s", path, why);
    uint64_t bare_peak = bare.peak_bytes;
    plan_release(&bare);
    options = (struct policy_options){.cap_bytes = cap};
    enum policy_status status = policy_make_plan(problem, &options, &plan, &floor, why, sizeof why);
    if (status == POLICY_INFEASIBLE &&
        problem->out_bytes_per_ns > 0) { /* as the library does: swap only what must be */
        options.may_swap = true;
        status = policy_make_plan(problem, &options, &plan, &floor, why, sizeof why);
    }
    if (status == POLICY_INFEASIBLE) {
        fprintf(stderr, "reprise: plan: no plan under this cap; the smallest that would do is %s (%llu bytes): %s\n",
                report_size(floor, size), (unsigned long long)floor, why);
        return 1;
    }
    if (status != POLICY_OK)
        return verb_refuse("%s: %s", path, status == POLICY_NO_MEMORY ? "there is no memory to plan it" : why);
    write_plan(problem, &plan, cap, bare_peak);
    plan_release(&plan);
    return 0;
}

int verb_plan(int argc, char **argv)
{
    const char *path, *cap_text = NULL;
    const struct verb_option options[] = {{"--cap", &cap_text}, {NULL, NULL}};
    struct trace trace;
    struct policy_problem problem;
    uint64_t cap;
    if (!verb_arguments("plan", argc, argv, &path, options))
        return 2;
    if (!cap_text)
        return verb_refuse("plan: --cap SIZE is needed");
    if (!size_parse(cap_text, &cap))
        return verb_refuse("plan: --cap %s is not a size such as 7GiB, 500MiB or 1.5GB", cap_text);
    const struct trace_recorded *recorded = verb_open(path, &trace);
    if (!recorded)
        return 2;
    int status = 2;
    if (verb_problem(&trace, recorded, &problem)) {
        status = plan_under(&problem, cap, path);
        verb_problem_release(&problem);
    } else {
        verb_refuse("%s: there is no memory for it", path);
    }
    trace_release(&trace);
    return status;
}
