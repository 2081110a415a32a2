/* links: tests/unit/policy_exhaustive.c policy/%.c */
#include "policy/floor.h"
#include "policy/generate.h"
#include "policy/impossible.h"
#include "policy/plan.h"
#include "tests/unit/policy_exhaustive.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

struct tally {
    uint32_t infeasible, simple, proven; /* caps under which no plan exists; of these by the simple floor; in all */
};

static bool has_plan(const struct policy_problem *problem, uint64_t cap)
{
    return exhaustive_added_ns(problem, cap) != EXHAUSTIVE_NONE;
}

static uint64_t least_cap(const struct policy_problem *problem, uint64_t low, uint64_t high)
{
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (has_plan(problem, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

/* Nothing is called impossible that is possible; the bytes named are needed indeed. */
static void check_problem(const struct policy_problem *problem, uint64_t seed, struct tally *t)
{
    struct graph graph;
    uint32_t operation;
    assert_true(graph_build(&graph, problem));
    uint64_t simple = floor_of_operations(&graph, false, &operation);
    uint64_t least = least_cap(problem, 0, graph_undropped_peak(&graph, NULL));
    if (policy_floor_bytes(problem) > least)
        fail_msg("seed %llu: floor %llu, but %llu will do", (unsigned long long)seed,
                 (unsigned long long)policy_floor_bytes(problem), (unsigned long long)least);
    for (uint64_t cap = simple > 3 ? simple - 3 : 0; cap < least + 2; cap++) {
        struct impossible found;
        bool is_proven = impossible_under(&graph, cap, &found) == IMPOSSIBLE_PROVEN;
        if (is_proven && (cap >= least || found.bytes > least))
            fail_msg("seed %llu, cap %llu: called impossible below %llu, but %llu will do", (unsigned long long)seed,
                     (unsigned long long)cap, (unsigned long long)found.bytes, (unsigned long long)least);
        assert_true(!is_proven || (found.bytes > cap && found.operation <= problem->operation_count));
        t->infeasible += cap < least;
        t->simple += cap < simple;
        t->proven += is_proven;
    }
    graph_release(&graph);
}

static void check_random(uint64_t seed, struct tally *t)
{
    struct problem_builder b = {0};
    struct generate_random shape = {.operations = 6 + (uint32_t)(seed % 6),
                                    .inputs = (uint32_t)(seed % 3),
                                    .max_reads = 3,
                                    .max_writes = seed % 3 ? 1 : 2,
                                    .max_bytes = 20,
                                    .max_ns = 30,
                                    .seed = seed,
                                    .per_mille_kept = 100};
    shape.per_mille_in_place = seed % 5 ? 0 : 250;
    shape.per_mille_fixed = seed % 7 ? 0 : 200;
    shape.per_mille_pinned = seed % 6 ? 0 : 200;
    if (seed % 4)
        generate_random(&b, &shape);
    else
        generate_training(&b, 3, seed);
    assert_false(b.has_failed);
    if (b.problem.version_count <= 14)
        check_problem(&b.problem, seed, t);
    builder_release(&b);
}

static void test_never_wrong(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 1; seed <= 800; seed++)
        check_random(seed, &tally);
    printf("  %u caps without a plan: %u by the greatest operation, %u proven in all\n", tally.infeasible, tally.simple,
           tally.proven);
    assert_true(tally.infeasible > 3000);
    assert_true(tally.proven > tally.simple + 300);
    assert_true(tally.proven * 100 > tally.infeasible * 75);
}

/* Two results of 30 are read together, 61 bytes with what comes of them; but either was made last, from 10 bytes beside
 * the other. The 10 bytes can be made again only from 50 that do not fit. */
static void test_made_last(void **state)
{
    (void)state;
    struct problem_builder b = {0};
    uint32_t made[2];
    builder_operation(&b, 1);
    uint32_t large = builder_write(&b, 50);
    builder_operation(&b, 1);
    builder_read(&b, large);
    uint32_t small = builder_write(&b, 10);
    for (int k = 0; k < 2; k++) {
        builder_operation(&b, 1);
        builder_read(&b, small);
        made[k] = builder_write(&b, 30);
    }
    builder_operation(&b, 1);
    builder_read(&b, made[0]);
    builder_read(&b, made[1]);
    builder_write(&b, 1);
    assert_false(b.has_failed);
    struct graph graph;
    uint32_t operation;
    assert_true(graph_build(&graph, &b.problem));
    assert_int_equal(floor_of_operations(&graph, false, &operation), 61);
    assert_int_equal(least_cap(&b.problem, 0, 200), 70);
    assert_int_equal(policy_floor_bytes(&b.problem), 70);
    struct plan plan;
    char why[256];
    struct policy_options options = {.cap_bytes = 69};
    assert_int_equal(policy_make_plan(&b.problem, &options, &plan, NULL, why, sizeof why), POLICY_INFEASIBLE);
    assert_int_equal(plan.needed_bytes, 70);
    assert_int_equal(plan.needing_operation, 4);
    assert_true(plan.bound_nanoseconds == UINT64_MAX);
    graph_release(&graph);
    builder_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_wrong), cmocka_unit_test(test_made_last)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
