/* links: policy/%.c */
/* Damaged problems into the reader of the text form. What it takes is written and read again, and small ones are
 * planned: the plan must keep to the cap, its certificate to the plan, and its explanation must add up. */
#include "policy/explain.h"
#include "policy/generate.h"
#include "policy/text.h"
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>
#include <string.h>

const char *const fuzz_tokens[] = {"reprise-problem 1\n",
                                   "fixed ",
                                   "frame ",
                                   "bandwidth 1 2\n",
                                   "\nin 5 host swappable",
                                   "\nop 7 : 0 1",
                                   "\nout 3",
                                   " kept",
                                   " swappable",
                                   " host",
                                   " droppable=",
                                   " replaces=0",
                                   " workspace=9",
                                   " scratch=",
                                   " until=never",
                                   " until=3",
                                   " name=x",
                                   "#",
                                   "\nend\n",
                                   "0",
                                   "1e308",
                                   "nan",
                                   "-1",
                                   "4294967295",
                                   "18446744073709551615",
                                   NULL};

enum { MOST_PLANNED = 24 };

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

static void explain(const struct graph *graph, const struct plan *plan)
{
    uint32_t count = graph->problem->operation_count;
    uint32_t *group_of = calloc((size_t)count + 1, sizeof *group_of);
    struct explain_group *groups = calloc((size_t)count + 2, sizeof *groups);
    uint64_t sum = 0, replayed = 0;
    for (uint32_t o = 0; o < count; o++)
        group_of[o] = o;
    require(explain_plan(graph, plan, group_of, count, groups));
    for (uint32_t g = 0; g <= count; g++)
        sum += groups[g].replay_ns;
    for (uint32_t k = 0; k < plan->item_count; k++)
        replayed +=
            plan->items[k].verb == PLAN_REPLAY ? graph->problem->operations[plan->items[k].index].nanoseconds : 0;
    require(sum == replayed);
    free(group_of);
    free(groups);
}

static void plan(const struct policy_problem *problem)
{
    struct graph graph;
    require(graph_build(&graph, problem));
    uint64_t floor = policy_floor_bytes(problem), peak = graph_undropped_peak(&graph, NULL);
    for (int swap = 0; swap < 2; swap++) {
        struct policy_options options = {
            .cap_bytes = floor + (peak > floor ? (peak - floor) / 2 : 0), .deadline_ns = 300000, .may_swap = swap};
        struct plan found;
        char why[256];
        if (policy_make_plan(problem, &options, &found, NULL, why, sizeof why) != POLICY_OK)
            continue;
        require(found.peak_bytes <= options.cap_bytes);
        require(swap || found.bound_nanoseconds <= found.added_nanoseconds);
        explain(&graph, &found);
        plan_release(&found);
    }
    graph_release(&graph);
}

static char *write_again(const struct text_problem *text, size_t *bytes)
{
    char *written = NULL;
    FILE *out = open_memstream(&written, bytes);
    require(out && text_write(out, &text->builder.problem, text->names) && fclose(out) == 0);
    return written;
}

static bool read_bytes(const void *bytes, size_t count, struct text_problem *out)
{
    char why[256] = "";
    FILE *in = fmemopen((void *)(uintptr_t)bytes, count, "r");
    require(in);
    bool is_read = text_read(in, out, why, sizeof why);
    fclose(in);
    require(is_read || (*why >= '1' && *why <= '9' && !strchr(why, '\n')));
    return is_read;
}

void fuzz_feed(const unsigned char *bytes, size_t count)
{
    struct text_problem first, second;
    size_t first_bytes, second_bytes;
    if (!count || !read_bytes(bytes, count, &first))
        return;
    char *written = write_again(&first, &first_bytes);
    require(read_bytes(written, first_bytes, &second));
    char *again = write_again(&second, &second_bytes);
    require(first_bytes == second_bytes && memcmp(written, again, first_bytes) == 0);
    const struct policy_problem *problem = &first.builder.problem;
    if (problem->operation_count <= MOST_PLANNED && problem->version_count <= 2 * MOST_PLANNED)
        plan(problem);
    free(written);
    free(again);
    text_release(&first);
    text_release(&second);
}

void fuzz_write_samples(const char *directory)
{
    static const char *const names[] = {"chain:5", "random:8:4", "random:12:5", "random:10:20", "training:5:3"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct problem_builder b = {0};
        char why[200], file[32], *text = NULL;
        size_t bytes;
        require(generate_named(&b, names[k], why, sizeof why));
        for (uint32_t v = 0; v < b.problem.version_count; v += 3)
            b.problem.versions[v].is_swappable = true;
        if (k % 2)
            b.problem.out_bytes_per_ns = b.problem.in_bytes_per_ns = 0.25;
        FILE *out = open_memstream(&text, &bytes);
        require(out && text_write(out, &b.problem, NULL) && fclose(out) == 0);
        snprintf(file, sizeof file, "problem%zu", k);
        fuzz_write_file(directory, file, text, bytes);
        free(text);
        builder_release(&b);
    }
}
