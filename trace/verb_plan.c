#include "policy/curve.h"
#include "policy/explain.h"
#include "policy/graph.h"
#include "policy/plan.h"
#include "trace/report.h"
#include "trace/size.h"
#include "trace/verb.h"
#include "trace/verb_input.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_SHOWN = 12, NAME_WIDTH = 30, SITE_INDENT = 13, LINE_WIDTH = 80, COARSE_POINTS = 12, BISECTIONS = 6 };

static const uint64_t COARSE_NS = 500000000; /* planning time for the question whether it is worth it */
static const double WORTH_RATIO = 2;         /* from here on half of the time goes into rebuilding */
static const double NOTABLE = 1.005;         /* swapping is called cheaper from this factor on */

struct planned {
    const struct verb_input *input;
    struct graph graph;
    struct plan plan;
    uint64_t cap, bare_peak;
    double ratio, bound; /* bound 0: none */
    struct explain_group *groups;
    uint32_t *order; /* of the groups that save something, the most bytes for their time first */
    uint32_t row_count;
    uint64_t saved; /* by all groups */
};

static uint64_t bytes_per_second_key(const struct explain_group *group)
{
    double per_ns = (double)group->saved_bytes / ((double)group->replay_ns + 1);
    return per_ns > 9e12 ? (uint64_t)9e18 : (uint64_t)(per_ns * 1e6);
}

static const struct explain_group *compared; /* qsort has no context */

static int by_worth(const void *left, const void *right)
{
    const struct explain_group *a = &compared[*(const uint32_t *)left], *b = &compared[*(const uint32_t *)right];
    uint64_t x = bytes_per_second_key(a), y = bytes_per_second_key(b);
    if (x != y)
        return x < y ? 1 : -1;
    return a->saved_bytes != b->saved_bytes ? (a->saved_bytes < b->saved_bytes ? 1 : -1) : (a > b) - (a < b);
}

static bool explain(struct planned *p)
{
    uint32_t count = p->input->group_count;
    p->groups = calloc((size_t)count + 1, sizeof *p->groups);
    p->order = calloc((size_t)count + 1, sizeof *p->order);
    if (!p->groups || !p->order || !explain_plan(&p->graph, &p->plan, p->input->group_of, count, p->groups))
        return false;
    for (uint32_t g = 0; g <= count; g++)
        if (p->groups[g].dropped_count || p->groups[g].saved_bytes) {
            p->saved += p->groups[g].saved_bytes;
            p->order[p->row_count++] = g;
        }
    compared = p->groups;
    qsort(p->order, p->row_count, sizeof *p->order, by_worth);
    return true;
}

static void write_head(const struct planned *p)
{
    char size[16];
    const struct plan *plan = &p->plan;
    printf("%s\n\n", p->input->heading);
    printf("Cap         %s\n", report_size(p->cap, size));
    printf("Peak        %s", report_size(plan->peak_bytes, size));
    printf(" (without dropping %s;", report_size(p->bare_peak, size));
    printf(" floor %s)\n", report_size(policy_floor_bytes(p->input->problem), size));
    if (p->input->demand_peak_bytes > p->bare_peak) {
        printf("For nothing %s", report_size(p->input->demand_peak_bytes - p->bare_peak, size));
        printf(" of the %s that the program holds: never read again\n", report_size(p->input->demand_peak_bytes, size));
    }
    printf("Time        %.3f ms + %.3f ms = %.4f x\n", (double)plan->run_nanoseconds / 1e6,
           (double)plan->added_nanoseconds / 1e6, p->ratio);
    if (p->bound > 0)
        printf("Bound       no plan without swapping is below %.4f x: within %.1f %% of it\n", p->bound,
               100 * (p->ratio / p->bound - 1));
    printf("Made by     %s\n", plan->strategy);
}

static void write_counts(const struct planned *p)
{
    uint64_t counts[PLAN_SWAP_IN + 1] = {0}, replayed = 0, out = 0, in = 0;
    const struct policy_problem *problem = p->input->problem;
    char size[16];
    for (uint32_t k = 0; k < p->plan.item_count; k++) {
        struct plan_item item = p->plan.items[k];
        counts[item.verb]++;
        replayed += item.verb == PLAN_REPLAY ? problem->operations[item.index].nanoseconds : 0;
        out += item.verb == PLAN_SWAP_OUT ? problem->versions[item.index].bytes : 0;
        in += item.verb == PLAN_SWAP_IN ? problem->versions[item.index].bytes : 0;
    }
    printf("Replays     %llu of %u operations, %.3f ms\n", (unsigned long long)counts[PLAN_REPLAY],
           problem->operation_count, (double)replayed / 1e6);
    if (!counts[PLAN_SWAP_OUT])
        return;
    printf("Swaps       %llu out, %s;", (unsigned long long)counts[PLAN_SWAP_OUT], report_size(out, size));
    printf(" %llu in, %s\n", (unsigned long long)counts[PLAN_SWAP_IN], report_size(in, size));
}

/* Broken where the next caller is named, if it must be. */
static void write_site(const char *site)
{
    const char *caller = strstr(site, " < ");
    if (caller && SITE_INDENT + strlen(site) + 3 > LINE_WIDTH)
        printf("%*sat %.*s\n%*s< %s\n", SITE_INDENT, "", (int)(caller - site), site, SITE_INDENT + 1, "", caller + 3);
    else
        printf("%*sat %s\n", SITE_INDENT, "", site);
}

static void write_row(const struct planned *p, const struct explain_group *group, const char *name, const char *site)
{
    char size[16], rate[24] = "-";
    if (group->replay_ns)
        snprintf(rate, sizeof rate, "%.1f", (double)group->saved_bytes / 1048576 / ((double)group->replay_ns / 1e6));
    printf("%10s %4.0f%% %6u %6u %9.3f %7s  %.*s%s\n", report_size(group->saved_bytes, size),
           100 * (double)group->saved_bytes / (double)(p->saved ? p->saved : 1), group->dropped_count,
           group->swapped_count, (double)group->replay_ns / 1e6, rate, NAME_WIDTH, name,
           strlen(name) > NAME_WIDTH ? "~" : "");
    if (site)
        write_site(site);
}

static void write_rows(const struct planned *p)
{
    struct explain_group rest = {0};
    if (!p->row_count)
        return;
    printf("\nWhat goes and comes back, the most memory for its time first\n");
    printf("%10s %5s %6s %6s %9s %7s  %s\n", "saved at", "", "times", "by", "costs", "MiB", "made by");
    printf("%10s %5s %6s %6s %9s %7s\n", "the peak", "share", "away", "swap", "ms", "per ms");
    for (uint32_t k = 0; k < p->row_count; k++) {
        uint32_t g = p->order[k];
        const struct explain_group *group = &p->groups[g];
        if (k < ROWS_SHOWN && g < p->input->group_count) {
            write_row(p, group, p->input->groups[g].name, p->input->groups[g].site);
        } else if (k < ROWS_SHOWN) {
            write_row(p, group, "(there when the iteration begins)", NULL);
        } else {
            rest.saved_bytes += group->saved_bytes;
            rest.dropped_count += group->dropped_count;
            rest.swapped_count += group->swapped_count;
            rest.replay_ns += group->replay_ns;
        }
    }
    char name[32];
    snprintf(name, sizeof name, "and %u more", p->row_count - ROWS_SHOWN);
    if (p->row_count > ROWS_SHOWN)
        write_row(p, &rest, name, NULL);
}

static void write_verdict(const struct planned *p)
{
    char size[16];
    uint64_t held = p->input->demand_peak_bytes ? p->input->demand_peak_bytes : p->bare_peak;
    if (p->cap >= held)
        printf("\nWorth it    not needed: the program holds at most %s, and that fits\n", report_size(held, size));
    else if (p->cap >= p->bare_peak)
        printf("\nWorth it    yes, for nothing: giving back what is never read again is enough\n");
    else if (p->ratio <= WORTH_RATIO)
        printf("\nWorth it    if memory stops the job: %.0f %% less of it for %.0f %% more time\n",
               100 * (1 - (double)p->cap / (double)p->bare_peak), 100 * (p->ratio - 1));
    else
        printf(
            "\nWorth it    no, a loss: %.2f x the time, so more than half goes into rebuilding; take a smaller batch\n",
            p->ratio);
}

/* Time by recomputation alone under this cap; 0 where no plan is found. */
static double ratio_under(const struct policy_problem *problem, uint64_t cap)
{
    struct policy_options options = {.cap_bytes = cap, .deadline_ns = COARSE_NS / COARSE_POINTS};
    struct plan plan;
    if (policy_make_plan(problem, &options, &plan, NULL, NULL, 0) != POLICY_OK)
        return 0;
    double run = plan.run_nanoseconds ? (double)plan.run_nanoseconds : 1;
    double ratio = 1 + (double)plan.added_nanoseconds / run;
    plan_release(&plan);
    return ratio;
}

/* The least cap found with a plan that takes at most `most`: between the points of the curve by bisection. */
static uint64_t find_least(const struct policy_problem *problem, const struct curve *curve, double most)
{
    uint32_t k = curve->point_count;
    while (k && curve->points[k - 1].alone > 0 && curve->points[k - 1].alone <= most)
        k--;
    if (k == curve->point_count)
        return 0;
    uint64_t high = curve->points[k].cap_bytes, low = k ? curve->points[k - 1].cap_bytes : curve->floor_bytes;
    for (uint32_t step = 0; k && step < BISECTIONS && high - low > 1; step++) {
        uint64_t middle = low + (high - low) / 2;
        double ratio = ratio_under(problem, middle);
        if (ratio > 0 && ratio <= most)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Where it becomes a loss, where there is no plan any more, and from where on swapping as well is cheaper. The plan at
 * hand is one more point: what it holds is no loss. */
static void write_limits(const struct planned *p, const struct curve *curve)
{
    const struct curve_point *swaps = NULL;
    char size[16], least_size[16];
    uint64_t worth = find_least(p->input->problem, curve, WORTH_RATIO);
    uint64_t least = find_least(p->input->problem, curve, HUGE_VAL);
    if (p->bound > 0 && p->plan.peak_bytes < least)
        least = p->plan.peak_bytes;
    if (p->bound > 0 && p->ratio <= WORTH_RATIO && p->plan.peak_bytes < worth)
        worth = p->plan.peak_bytes;
    for (uint32_t k = curve->point_count; k-- > 0;) {
        const struct curve_point *point = &curve->points[k];
        if (!swaps && point->swapping > 0 && (point->alone <= 0 || point->alone > point->swapping * NOTABLE))
            swaps = point;
    }
    report_size(least, least_size);
    if (worth > least && strcmp(report_size(worth, size), least_size) != 0)
        printf("            below %s recomputation alone is a loss: over %.0f x the time\n"
               "            below %s no plan is found by recomputation alone\n",
               size, WORTH_RATIO, least_size);
    else if (least == curve->floor_bytes)
        printf("            down to the floor it stays below %.0f x the time\n", WORTH_RATIO);
    else
        printf("            down to %s it stays below %.0f x the time; below that no plan is\n"
               "            found by recomputation alone\n",
               least_size, WORTH_RATIO);
    if (swaps && swaps->alone > 0)
        printf("            from %s down copies to the host cost less: %.2f x, not %.2f x\n",
               report_size(swaps->cap_bytes, size), swaps->swapping, swaps->alone);
    else if (swaps)
        printf("            at %s and below only copies to the host help: %.2f x\n",
               report_size(swaps->cap_bytes, size), swaps->swapping);
}

static int tell(struct planned *p, const char *path)
{
    struct curve curve;
    char why[256] = "";
    if (!explain(p))
        return verb_refuse("%s: there is no memory for it", path);
    write_head(p);
    write_counts(p);
    write_rows(p);
    write_verdict(p);
    struct curve_request request = {.points = COARSE_POINTS, .nanoseconds = COARSE_NS, .may_swap = true};
    if (curve_make(p->input->problem, &request, &curve, why, sizeof why) != CURVE_DONE)
        return verb_refuse("%s: there is no memory for it", path);
    write_limits(p, &curve);
    return fflush(stdout) == 0 ? 0 : verb_refuse("plan: it could not be written: %s", strerror(errno));
}

/* As the library does: what recomputation can hold is not swapped. */
static enum policy_status make_plan(struct planned *p, uint64_t *floor, char *why, size_t why_bytes)
{
    const struct policy_problem *problem = p->input->problem;
    struct policy_options options = {.cap_bytes = p->cap};
    enum policy_status status = policy_make_plan(problem, &options, &p->plan, floor, why, why_bytes);
    if (status == POLICY_INFEASIBLE && problem->out_bytes_per_ns > 0) {
        options.may_swap = true;
        status = policy_make_plan(problem, &options, &p->plan, floor, why, why_bytes);
    }
    if (status != POLICY_OK)
        return status;
    double run = p->plan.run_nanoseconds ? (double)p->plan.run_nanoseconds : 1;
    p->ratio = 1 + (double)p->plan.added_nanoseconds / run;
    p->bound = options.may_swap ? 0 : 1 + (double)p->plan.bound_nanoseconds / run;
    return status;
}

/* Where it is proven that there is no plan without swapping, and swapping is not to be had: why. */
static void refuse_cap(const struct planned *p, uint64_t floor)
{
    char size[16], needed[16];
    const struct verb_input *input = p->input;
    uint32_t operation = p->plan.needing_operation;
    if (!p->plan.needed_bytes)
        fprintf(stderr, "reprise: plan: no plan under this cap;");
    else if (operation < input->problem->operation_count)
        fprintf(
            stderr,
            "reprise: plan: no plan is possible under this cap: operation %u (%s), and what it takes to make what it "
            "reads, needs %s (%llu bytes) at least;",
            operation, input->groups[input->group_of[operation]].name, report_size(p->plan.needed_bytes, needed),
            (unsigned long long)p->plan.needed_bytes);
    else if (operation == POLICY_NONE)
        fprintf(stderr, "reprise: plan: no plan is possible under this cap: all there are were searched;");
    else
        fprintf(
            stderr,
            "reprise: plan: no plan is possible under this cap: what must be there at the end needs %s (%llu bytes) at "
            "least;",
            report_size(p->plan.needed_bytes, needed), (unsigned long long)p->plan.needed_bytes);
    fprintf(stderr, " the smallest that would do is %s (%llu bytes)\n", report_size(floor, size),
            (unsigned long long)floor);
}

static int plan_under(struct planned *p, const char *path)
{
    char why[256] = "";
    uint64_t floor = 0;
    if (!graph_build(&p->graph, p->input->problem))
        return verb_refuse("%s: there is no memory for it", path);
    p->bare_peak = graph_undropped_peak(&p->graph, NULL);
    enum policy_status status = make_plan(p, &floor, why, sizeof why);
    int exit_status;
    if (status == POLICY_OK) {
        exit_status = tell(p, path);
    } else if (status == POLICY_INFEASIBLE) {
        refuse_cap(p, floor);
        exit_status = 1;
    } else {
        exit_status = verb_refuse("%s: %s", path, status == POLICY_NO_MEMORY ? "there is no memory to plan it" : why);
    }
    plan_release(&p->plan);
    graph_release(&p->graph);
    free(p->groups);
    free(p->order);
    return exit_status;
}

int verb_plan(int argc, char **argv)
{
    const char *path, *cap_text = NULL;
    const struct verb_option options[] = {{"--cap", &cap_text}, {NULL, NULL}};
    struct verb_input input;
    struct planned planned = {.input = &input};
    if (!verb_arguments("plan", argc, argv, &path, options))
        return 2;
    if (!cap_text)
        return verb_refuse("plan: --cap SIZE is needed");
    if (!size_parse(cap_text, &planned.cap))
        return verb_refuse("plan: --cap %s is not a size such as 7GiB, 500MiB or 1.5GB", cap_text);
    if (!verb_input_open(path, &input))
        return 2;
    int status = plan_under(&planned, path);
    verb_input_close(&input);
    return status;
}
