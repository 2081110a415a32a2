/* links: tests/unit/policy_exhaustive.c policy/%.c */
#include "policy/cut.h"
#include "policy/cut_pair.h"
#include "policy/generate.h"
#include "policy/graph.h"
#include "policy/plan.h"
#include "tests/unit/policy_exhaustive.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

struct tally {
    uint32_t points, equal, missed; /* missed: a plan exists and none was found */
    uint32_t bound_broken;
    double sum, worst; /* of (time of ours) / (least time) */
    uint64_t worst_seed;
};

/* So do cuts at two positions, whatever the prices to start from. */
static void check_pairs(const struct graph *graph, uint64_t cap, uint64_t least, struct tally *t)
{
    uint64_t steps = 0;
    for (uint32_t second = 1; second < graph->problem->operation_count; second++)
        for (uint32_t first = 0; first < second; first++) {
            struct cut_pair_request request = {.first = first,
                                               .second = second,
                                               .first_price = 1 + first % 3,
                                               .second_price = 1 + second % 4,
                                               .cap = cap};
            t->bound_broken += cut_pair_bound(graph, &request, &steps) > least;
        }
}

/* The cut at any position bounds every plan from below. */
static void check_bounds(const struct policy_problem *problem, uint64_t cap, uint64_t least, struct tally *t)
{
    struct graph graph;
    assert_true(graph_build(&graph, problem));
    for (uint32_t position = 0; position < problem->operation_count; position++) {
        struct cut cut;
        assert_true(cut_solve(&graph, position, cap, &cut));
        t->bound_broken += cut.bound_ns > least;
        cut_release(&cut);
    }
    check_pairs(&graph, cap, least, t);
    graph_release(&graph);
}

static void compare_at(const struct policy_problem *problem, uint64_t cap, uint64_t seed, struct tally *t)
{
    struct plan plan;
    uint64_t least = exhaustive_added_ns(problem, cap);
    struct policy_options options = {.cap_bytes = cap, .deadline_ns = 4000000, .is_untimed = true};
    enum policy_status status = policy_make_plan(problem, &options, &plan, NULL, NULL, 0);
    assert_true(status == POLICY_OK || status == POLICY_INFEASIBLE);
    if (least == EXHAUSTIVE_NONE) {
        assert_int_equal(status, POLICY_INFEASIBLE);
        return;
    }
    t->points++;
    check_bounds(problem, cap, least, t);
    if (status != POLICY_OK) {
        t->missed++;
        if (getenv("POLICY_VERBOSE"))
            printf("  seed %llu cap %llu: missed\n", (unsigned long long)seed, (unsigned long long)cap);
        return;
    }
    double run = (double)plan.run_nanoseconds + 1e-9,
           ratio = (run + (double)plan.added_nanoseconds) / (run + (double)least);
    assert_true(plan.added_nanoseconds >= least);
    t->bound_broken += plan.bound_nanoseconds > least;
    t->equal += plan.added_nanoseconds == least;
    t->sum += ratio;
    if (ratio > t->worst) {
        t->worst = ratio;
        t->worst_seed = seed;
    }
    plan_release(&plan);
}

static void compare(const struct policy_problem *problem, uint64_t seed, struct tally *t)
{
    struct graph graph;
    assert_true(graph_build(&graph, problem));
    uint64_t peak = graph_undropped_peak(&graph, NULL), floor = policy_floor_bytes(problem);
    graph_release(&graph);
    for (uint64_t part = 0; part < 4; part++)
        compare_at(problem, floor + (peak - floor) * part / 4, seed, t);
}

static void print_tally(const char *name, const struct tally *t)
{
    printf("  %s: %u points, %u optimal, %u missed, mean %.4f, worst %.4f (seed %llu)\n", name, t->points, t->equal,
           t->missed, t->sum / (t->points - t->missed), t->worst, (unsigned long long)t->worst_seed);
}

static void test_random_graphs(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct problem_builder b = {0};
        struct generate_random shape = {.operations = 6 + (uint32_t)(seed % 5),
                                        .inputs = 1,
                                        .max_reads = 3,
                                        .max_writes = seed % 3 ? 1 : 2,
                                        .max_bytes = 20,
                                        .max_ns = 30,
                                        .seed = seed,
                                        .per_mille_kept = 100};
        shape.per_mille_in_place = seed % 4 ? 0 : 200;
        shape.per_mille_fixed = seed % 5 ? 0 : 200;
        generate_random(&b, &shape);
        if (b.problem.version_count <= 14)
            compare(&b.problem, seed, &tally);
        builder_release(&b);
    }
    print_tally("random graphs", &tally);
    assert_int_equal(tally.bound_broken, 0);
    assert_true(tally.points > 300);
    assert_true(tally.missed * 50 <= tally.points);
    assert_true(tally.sum / (tally.points - tally.missed) <= 1.03);
}

static void test_random_chains(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct problem_builder b = {0};
        generate_random_chain(&b, 3 + (uint32_t)(seed % 5), seed);
        compare(&b.problem, seed, &tally);
        builder_release(&b);
    }
    print_tally("random chains", &tally);
    assert_int_equal(tally.bound_broken, 0);
    assert_true(tally.missed * 50 <= tally.points);
    assert_true(tally.sum / (tally.points - tally.missed) <= 1.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_random_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
