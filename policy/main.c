/* reprise-policy: plans for a problem in its text form (policy/text.h).
 *
 *     reprise-policy plan FILE --cap SIZE [--swap] [--strategy NAME] [--deadline MS] [--items]
 *     reprise-policy curve FILE [--swap] [--deadline MS]
 *     reprise-policy floor FILE
 *     reprise-policy generate KIND:SIZE[:SEED]      writes a problem (policy/generate.h)
 *
 * FILE may be - for standard input. SIZE is bytes, with KiB, MiB or GiB if wanted. Exit status: 0, 1 where no plan
 * holds the cap, 2 for bad input. */
#include "policy/curve.h"
#include "policy/generate.h"
#include "policy/graph.h"
#include "policy/plan.h"
#include "policy/text.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CURVE_POINTS = 20 };

struct request {
    const char *verb, *path;
    struct policy_options options;
    bool has_cap, shows_items;
};

static int refuse(const char *what, const char *which)
{
    fprintf(stderr, "reprise-policy: %s%s%s\n", what, which ? ": " : "", which ? which : "");
    return 2;
}

static bool parse_size(const char *word, uint64_t *out)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1}, {"KiB", 1u << 10}, {"MiB", 1u << 20}, {"GiB", 1u << 30}};
    char *end;
    errno = 0;
    double value = strtod(word, &end);
    if (errno || end == word || !(value >= 0))
        return false;
    for (size_t k = 0; k < sizeof units / sizeof units[0]; k++) {
        double bytes = value * (double)units[k].bytes;
        if (strcmp(end, units[k].unit) != 0 || bytes >= 9e18)
            continue;
        *out = (uint64_t)bytes;
        return true;
    }
    return false;
}

static bool parse_milliseconds(const char *word, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(word, &end, 10);
    if (errno || *word < '0' || *word > '9' || *end || !value || value > 3600000)
        return false;
    *out = value * 1000000;
    return true;
}

/* True when all arguments are understood; otherwise one line has been said. */
static bool read_arguments(int argc, char **argv, struct request *r)
{
    *r = (struct request){.verb = argc > 1 ? argv[1] : "", .path = argc > 2 ? argv[2] : NULL};
    if (strcmp(r->verb, "plan") != 0 && strcmp(r->verb, "curve") != 0 && strcmp(r->verb, "floor") != 0)
        return refuse("usage: reprise-policy generate KIND:SIZE[:SEED] | plan|curve|floor FILE [--cap SIZE] [--swap] "
                      "[--strategy NAME] "
                      "[--deadline MS] [--items]",
                      NULL) == 0;
    if (!r->path)
        return refuse("no file was named", NULL) == 0;
    for (int k = 3; k < argc; k++) {
        const char *value = k + 1 < argc ? argv[k + 1] : NULL;
        bool takes_value =
            strcmp(argv[k], "--cap") == 0 || strcmp(argv[k], "--strategy") == 0 || strcmp(argv[k], "--deadline") == 0;
        if (takes_value && !value)
            return refuse("a value is missing", argv[k]) == 0;
        if (strcmp(argv[k], "--swap") == 0)
            r->options.may_swap = true;
        else if (strcmp(argv[k], "--items") == 0)
            r->shows_items = true;
        else if (strcmp(argv[k], "--strategy") == 0)
            r->options.only_strategy = value;
        else if (strcmp(argv[k], "--cap") == 0 && parse_size(value, &r->options.cap_bytes))
            r->has_cap = true;
        else if (strcmp(argv[k], "--deadline") != 0 || !parse_milliseconds(value, &r->options.deadline_ns))
            return refuse("not understood", takes_value ? value : argv[k]) == 0;
        k += takes_value;
    }
    if (strcmp(r->verb, "plan") == 0 && !r->has_cap)
        return refuse("plan needs --cap SIZE", NULL) == 0;
    return true;
}

static void write_items(const struct plan *plan, const struct text_problem *text)
{
    static const char *const verbs[] = {"run", "replay", "drop", "out", "in"};
    for (uint32_t k = 0; k < plan->item_count; k++) {
        struct plan_item item = plan->items[k];
        bool is_operation = item.verb == PLAN_RUN || item.verb == PLAN_REPLAY;
        const char *name = is_operation && item.index < text->name_count ? text->names[item.index] : NULL;
        printf("%s %" PRIu32 "%s%s\n", verbs[item.verb], item.index, name ? " " : "", name ? name : "");
    }
}

static double ratio_of(uint64_t added, const struct plan *plan)
{
    return 1 + (double)added / (double)(plan->run_nanoseconds ? plan->run_nanoseconds : 1);
}

static int plan_once(const struct text_problem *text, const struct request *r)
{
    struct plan plan;
    char why[256] = "";
    uint64_t floor = 0;
    enum policy_status status = policy_make_plan(&text->builder.problem, &r->options, &plan, &floor, why, sizeof why);
    if (status != POLICY_OK) {
        refuse(status == POLICY_NO_MEMORY ? "out of memory" : why, NULL);
        return status == POLICY_INFEASIBLE ? 1 : 2;
    }
    uint32_t counts[PLAN_SWAP_IN + 1] = {0};
    for (uint32_t k = 0; k < plan.item_count; k++)
        counts[plan.items[k].verb]++;
    printf("time %.4fx, bound %.4fx, peak %" PRIu64 " bytes, by %s\n", ratio_of(plan.added_nanoseconds, &plan),
           ratio_of(plan.bound_nanoseconds, &plan), plan.peak_bytes, plan.strategy);
    printf("%" PRIu32 " operations, %" PRIu32 " replays, %" PRIu32 " drops, %" PRIu32 " swaps out, %" PRIu32 " in\n",
           counts[PLAN_RUN], counts[PLAN_REPLAY], counts[PLAN_DROP], counts[PLAN_SWAP_OUT], counts[PLAN_SWAP_IN]);
    if (r->shows_items)
        write_items(&plan, text);
    plan_release(&plan);
    return 0;
}

static int write_curve(const struct text_problem *text, const struct request *r)
{
    struct curve_request request = {
        .points = CURVE_POINTS, .nanoseconds = r->options.deadline_ns * CURVE_POINTS, .may_swap = r->options.may_swap};
    struct curve curve;
    char why[256] = "";
    enum curve_result result = curve_make(&text->builder.problem, &request, &curve, why, sizeof why);
    if (result != CURVE_DONE)
        return refuse(result == CURVE_NO_MEMORY ? "out of memory" : why, NULL);
    printf("cap_bytes\tof_peak\ttime\tbound\twith_swaps\tstrategy\n");
    for (uint32_t k = 0; k < curve.point_count; k++) {
        const struct curve_point *point = &curve.points[k];
        printf("%" PRIu64 "\t%.4f\t%.4f\t%.4f\t%.4f\t%s\n", point->cap_bytes,
               (double)point->cap_bytes / (double)curve.bare_peak_bytes, point->alone, point->bound, point->swapping,
               point->strategy ? point->strategy : "-");
    }
    return 0;
}

static int answer(const struct text_problem *text, const struct request *r)
{
    struct graph graph;
    if (!graph_build(&graph, &text->builder.problem))
        return refuse("out of memory", NULL);
    uint64_t peak = graph_undropped_peak(&graph, NULL);
    graph_release(&graph);
    if (strcmp(r->verb, "plan") == 0)
        return plan_once(text, r);
    if (strcmp(r->verb, "curve") == 0)
        return write_curve(text, r);
    printf("floor %" PRIu64 " bytes, peak without dropping %" PRIu64 " bytes\n",
           policy_floor_bytes(&text->builder.problem), peak);
    return 0;
}

static int generate(const char *name)
{
    struct problem_builder b = {0};
    char why[256] = "";
    if (!generate_named(&b, name, why, sizeof why)) {
        builder_release(&b);
        return refuse(why, NULL);
    }
    bool is_written = text_write(stdout, &b.problem, NULL) && fflush(stdout) == 0;
    builder_release(&b);
    return is_written ? 0 : refuse("standard output", strerror(errno));
}

int main(int argc, char **argv)
{
    struct request r;
    struct text_problem text;
    char why[256] = "";
    if (argc == 3 && strcmp(argv[1], "generate") == 0)
        return generate(argv[2]);
    if (!read_arguments(argc, argv, &r))
        return 2;
    FILE *input = strcmp(r.path, "-") == 0 ? stdin : fopen(r.path, "r");
    if (!input)
        return refuse(strerror(errno), r.path);
    bool is_read = text_read(input, &text, why, sizeof why);
    if (input != stdin)
        fclose(input);
    if (!is_read) {
        fprintf(stderr, "reprise-policy: %s:%s\n", r.path, why);
        return 2;
    }
    int status = answer(&text, &r);
    text_release(&text);
    if (fflush(stdout) != 0)
        return refuse("standard output", strerror(errno));
    return status;
}
