/* links: tests/unit/policy_interpreter.c policy/%.c */
#include "policy/check.h"
#include "policy/generate.h"
#include "policy/plan.h"
#include "tests/unit/policy_interpreter.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t undropped_peak(const struct policy_problem *problem)
{
    struct graph graph;
    assert_true(graph_build(&graph, problem));
    uint64_t peak = graph_undropped_peak(&graph, NULL);
    graph_release(&graph);
    return peak;
}

static uint32_t count_verb(const struct plan *plan, uint32_t verb)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < plan->item_count; k++)
        count += plan->items[k].verb == verb;
    return count;
}

static void assert_plan_is_right(const struct policy_problem *problem, const struct plan *plan, uint64_t cap,
                                 bool may_swap)
{
    uint64_t peak;
    const char *wrong = interpret_plan(problem, plan->items, plan->item_count, &peak);
    if (wrong)
        fail_msg("plan by %s: %s", plan->strategy, wrong);
    assert_true(peak <= cap);
    assert_int_equal(peak, plan->peak_bytes);
    if (!may_swap)
        assert_int_equal(count_verb(plan, PLAN_SWAP_OUT) + count_verb(plan, PLAN_SWAP_IN), 0);
    uint64_t replayed = 0;
    for (uint32_t k = 0; k < plan->item_count; k++)
        if (plan->items[k].verb == PLAN_REPLAY)
            replayed += problem->operations[plan->items[k].index].nanoseconds;
    if (!may_swap)
        assert_int_equal(replayed, plan->added_nanoseconds);
}

/* Plans under one cap; where there is no plan, the floor that is named must do. */
static double try_cap(const struct policy_problem *problem, uint64_t cap, bool may_swap, uint64_t deadline)
{
    struct plan plan;
    char why[256] = "";
    uint64_t floor = 0;
    struct policy_options options = {.cap_bytes = cap, .may_swap = may_swap, .deadline_ns = deadline};
    enum policy_status status = policy_make_plan(problem, &options, &plan, &floor, why, sizeof why);
    if (status == POLICY_INFEASIBLE) {
        assert_true(floor > cap);
        assert_true(why[0]);
        options.cap_bytes = cap = floor;
        status = policy_make_plan(problem, &options, &plan, &floor, why, sizeof why);
    }
    if (status != POLICY_OK)
        fail_msg("cap %llu: status %d: %s", (unsigned long long)cap, (int)status, why);
    assert_plan_is_right(problem, &plan, cap, may_swap);
    double added = (double)plan.added_nanoseconds / (double)(plan.run_nanoseconds ? plan.run_nanoseconds : 1);
    plan_release(&plan);
    return added;
}

/* Given versions that can be swapped at any time may start on the host. */
static void free_starts(struct policy_problem *p)
{
    for (uint32_t v = 0; v < p->version_count; v++) {
        struct policy_version *version = &p->versions[v];
        version->may_start_on_host =
            version->producer == POLICY_NONE && version->is_swappable && version->droppable_from == 0;
    }
}

static void test_random_problems(void **state)
{
    (void)state;
    const char *rounds = getenv("POLICY_ROUNDS");
    uint64_t count = rounds ? strtoull(rounds, NULL, 10) : 120;
    for (uint64_t seed = 1; seed <= count; seed++) {
        struct problem_builder b = {0};
        struct generate_random shape = {.operations = 3 + (uint32_t)(seed % 40),
                                        .inputs = 1 + (uint32_t)(seed % 4),
                                        .max_reads = 4,
                                        .max_writes = 3,
                                        .max_bytes = 50,
                                        .max_ns = 30,
                                        .seed = seed};
        shape.per_mille_in_place = seed % 3 ? 200 : 0;
        shape.per_mille_fixed = seed % 5 ? 150 : 0;
        shape.per_mille_pinned = seed % 4 ? 150 : 0;
        shape.per_mille_kept = 100;
        shape.per_mille_swappable = seed % 2 ? 600 : 0;
        generate_random(&b, &shape);
        assert_false(b.has_failed);
        if (seed % 3 == 0)
            free_starts(&b.problem);
        char why[256];
        if (!policy_problem_is_valid(&b.problem, why, sizeof why))
            fail_msg("seed %llu: %s", (unsigned long long)seed, why);
        uint64_t peak = undropped_peak(&b.problem), floor = policy_floor_bytes(&b.problem);
        assert_true(floor <= peak);
        assert_true(try_cap(&b.problem, peak, seed % 2, 4000000) == 0);
        try_cap(&b.problem, floor, seed % 2, 4000000);
        try_cap(&b.problem, floor + (peak - floor) / 2, seed % 2, 4000000);
        try_cap(&b.problem, floor + (peak - floor) / 5, false, 4000000);
        builder_release(&b);
    }
}

static void report(const char *name, const struct policy_problem *problem, const double *ratios, size_t count,
                   const double *limits)
{
    uint64_t peak = undropped_peak(problem);
    for (size_t k = 0; k < count; k++) {
        double added = try_cap(problem, (uint64_t)((double)peak * ratios[k]), false, 300000000);
        printf("  %s, %u operations, cap %.3f of the peak: +%.1f %%\n", name, problem->operation_count, ratios[k],
               100 * added);
        if (added > limits[k])
            fail_msg("%s at %.3f: added %.3f, at most %.3f wanted", name, ratios[k], added, limits[k]);
    }
}

static void test_resnet(void **state)
{
    (void)state;
    struct problem_builder b = {0};
    generate_resnet(&b, &(struct generate_resnet){.blocks = 500,
                                                  .activation_bytes = 1 << 20,
                                                  .weight_bytes = 10000,
                                                  .convolution_ns = 1000000,
                                                  .pointwise_ns = 20000});
    assert_false(b.has_failed);
    report("resnet", &b.problem, (double[]){0.5, 0.33, 1 / 6.86}, 3, (double[]){0.04, 0.16, 0.27});
    builder_release(&b);
}

static void test_recurrent(void **state)
{
    (void)state;
    struct problem_builder b = {0};
    generate_recurrent(&b, 200, 65536, 300000);
    assert_false(b.has_failed);
    report("recurrent", &b.problem, (double[]){0.5, 0.33, 0.2}, 3, (double[]){0.14, 0.25, 0.36});
    builder_release(&b);
}

static void test_chain(void **state)
{
    (void)state;
    struct problem_builder b = {0};
    generate_chain(&b, 1000, 1000, 100, 200);
    report("chain", &b.problem, (double[]){0.5, 0.1, 0.045}, 3, (double[]){0.17, 0.31, 0.37});
    builder_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_problems), cmocka_unit_test(test_chain),
                                       cmocka_unit_test(test_recurrent), cmocka_unit_test(test_resnet)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
