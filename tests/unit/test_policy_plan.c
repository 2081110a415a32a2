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

/* What the plan says of itself is what the interpreter finds; the checker agrees, and no certificate is above it. */
static void assert_plan_is_right(const struct policy_problem *problem, const struct plan *plan,
                                 const struct policy_options *options)
{
    struct interpreted found;
    struct simulation simulated;
    struct graph graph;
    char why[256] = "";
    const char *wrong = interpret_plan(problem, plan->items, plan->item_count, options->cap_bytes, &found);
    if (wrong)
        fail_msg("plan by %s: %s", plan->strategy, wrong);
    assert_true(graph_build(&graph, problem));
    bool is_legal = check_plan(&graph, plan->items, plan->item_count, options->cap_bytes, &simulated, why, sizeof why);
    graph_release(&graph);
    if (!is_legal)
        fail_msg("plan by %s: the checker: %s", plan->strategy, why);
    assert_int_equal(found.peak_bytes, plan->peak_bytes);
    assert_int_equal(found.added_nanoseconds, plan->added_nanoseconds);
    assert_int_equal(found.replay_count, simulated.replay_count);
    assert_int_equal(found.swapped_out_bytes, simulated.swapped_out_bytes);
    assert_int_equal(found.swapped_in_bytes, simulated.swapped_in_bytes);
    if (!options->may_swap) {
        assert_int_equal(count_verb(plan, PLAN_SWAP_OUT) + count_verb(plan, PLAN_SWAP_IN), 0);
        assert_true(plan->bound_nanoseconds <= plan->added_nanoseconds);
    }
    if (options->may_not_replay)
        assert_int_equal(count_verb(plan, PLAN_REPLAY), 0);
}

/* Plans under one cap; where there is no plan, the floor that is named must do. */
static double try_cap(const struct policy_problem *problem, uint64_t cap, bool may_swap, uint64_t deadline)
{
    struct plan plan;
    char why[256] = "";
    uint64_t floor = 0;
    struct policy_options options = {
        .cap_bytes = cap, .may_swap = may_swap, .deadline_ns = deadline, .is_untimed = true};
    enum policy_status status = policy_make_plan(problem, &options, &plan, &floor, why, sizeof why);
    if (status == POLICY_INFEASIBLE) {
        assert_true(floor > cap);
        assert_true(why[0]);
        options.cap_bytes = cap = floor;
        status = policy_make_plan(problem, &options, &plan, &floor, why, sizeof why);
    }
    if (status != POLICY_OK)
        fail_msg("cap %llu: status %d: %s", (unsigned long long)cap, (int)status, why);
    assert_plan_is_right(problem, &plan, &options);
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

static void make_random(struct problem_builder *b, uint64_t seed)
{
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
    *b = (struct problem_builder){0};
    generate_random(b, &shape);
    assert_false(b->has_failed);
    if (seed % 3 == 0)
        free_starts(&b->problem);
    char why[256];
    if (!policy_problem_is_valid(&b->problem, why, sizeof why))
        fail_msg("seed %llu: %s", (unsigned long long)seed, why);
}

static uint64_t rounds_or(uint64_t otherwise)
{
    const char *rounds = getenv("POLICY_ROUNDS");
    return rounds ? strtoull(rounds, NULL, 10) : otherwise;
}

static void test_random_problems(void **state)
{
    (void)state;
    uint64_t count = rounds_or(120);
    for (uint64_t seed = 1; seed <= count; seed++) {
        struct problem_builder b;
        make_random(&b, seed);
        uint64_t peak = undropped_peak(&b.problem), floor = policy_floor_bytes(&b.problem);
        assert_true(floor <= peak);
        assert_true(try_cap(&b.problem, peak, seed % 2, 4000000) == 0);
        try_cap(&b.problem, floor, seed % 2, 4000000);
        try_cap(&b.problem, floor + (peak - floor) / 2, seed % 2, 4000000);
        try_cap(&b.problem, floor + (peak - floor) / 5, false, 4000000);
        builder_release(&b);
    }
}

static const char *const alone[] = {"greedy", "swap",  "revolve", "checkpoints", "cut",
                                    "log-n",  "exact", "chain",   "chen-budget", "chen-segments"};

enum { ALONE = sizeof alone / sizeof *alone };

static void make_any(struct problem_builder *b, uint64_t seed)
{
    static const char *const kinds[] = {"training:%u:%u", "random-chain:%u:%u", "varied-chain:%u:%u"};
    char name[48], why[256] = "";
    if (seed % 4 == 0) {
        make_random(b, seed / 4);
        return;
    }
    *b = (struct problem_builder){0};
    snprintf(name, sizeof name, kinds[seed % 4 - 1], 8 + (unsigned)(seed % 30), (unsigned)seed);
    if (!generate_named(b, name, why, sizeof why))
        fail_msg("%s: %s", name, why);
    for (uint32_t v = 0; v < b->problem.version_count; v++)
        b->problem.versions[v].is_swappable = v % 3 > 0;
    b->problem.out_bytes_per_ns = 0.3 + (double)(seed % 3);
    b->problem.in_bytes_per_ns = 0.2 + (double)(seed % 5);
}

/* Each strategy by its name, with and without either means, and each of them has plans. */
static void test_each_strategy(void **state)
{
    (void)state;
    uint32_t found[ALONE] = {0};
    uint64_t count = rounds_or(48);
    for (uint64_t seed = 1; seed <= count; seed++) {
        struct problem_builder b;
        make_any(&b, seed);
        uint64_t peak = undropped_peak(&b.problem), floor = policy_floor_bytes(&b.problem);
        for (uint32_t k = 0; k < 2 * ALONE; k++) {
            struct plan plan;
            struct policy_options options = {.cap_bytes = floor + (peak - floor) * (1 + seed % 3) / 4,
                                             .deadline_ns = 1000000,
                                             .may_swap = k % 2,
                                             .may_not_replay = k % 2 && seed % 5 == 0,
                                             .is_brief = seed % 2,
                                             .only_strategy = alone[k / 2]};
            enum policy_status status = policy_make_plan(&b.problem, &options, &plan, NULL, NULL, 0);
            assert_true(status == POLICY_OK || status == POLICY_INFEASIBLE);
            if (status != POLICY_OK)
                continue;
            assert_plan_is_right(&b.problem, &plan, &options);
            plan_release(&plan);
            found[k / 2]++;
        }
        builder_release(&b);
    }
    for (uint32_t k = 0; k < ALONE; k++)
        if (!found[k])
            fail_msg("%s found no plan at all", alone[k]);
}

static uint64_t added_by(const struct policy_problem *problem, double share, const char *only)
{
    struct plan plan;
    struct policy_options options = {.cap_bytes = (uint64_t)(share * (double)undropped_peak(problem)),
                                     .deadline_ns = 100000000,
                                     .is_untimed = true,
                                     .only_strategy = only};
    if (policy_make_plan(problem, &options, &plan, NULL, NULL, 0) != POLICY_OK)
        return UINT64_MAX;
    uint64_t added = plan.added_nanoseconds;
    plan_release(&plan);
    return added;
}

/* Where there is little time for a large problem, no strategy eats up what a better one needs. */
static void test_little_time(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double share;
    } points[] = {{"resnet:1500", 0.05}, {"resnet:1500", 0.1}, {"training:5000:3", 0.2}, {"random-chain:2000:1", 0.1}};
    for (size_t k = 0; k < sizeof points / sizeof points[0]; k++) {
        struct problem_builder b = {0};
        char why[256] = "";
        assert_true(generate_named(&b, points[k].name, why, sizeof why));
        uint64_t together = added_by(&b.problem, points[k].share, NULL), best = UINT64_MAX;
        for (size_t s = 0; s < ALONE; s++) {
            uint64_t added = added_by(&b.problem, points[k].share, alone[s]);
            best = added < best ? added : best;
        }
        assert_true(best < UINT64_MAX);
        if (together > best + best / 10)
            fail_msg("%s at %g: %llu together, %llu alone", points[k].name, points[k].share,
                     (unsigned long long)together, (unsigned long long)best);
        builder_release(&b);
    }
}

/* Where the usual rounds find nothing: chains with tails, random networks, what is given and may go too early. */
static void test_near_the_floor(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double of_floor;
    } points[] = {{"resnet:20", 1.6}, {"training:100:2", 1.35}, {"recurrent:60", 1.1}};
    for (size_t k = 0; k < sizeof points / sizeof points[0]; k++) {
        struct problem_builder b = {0};
        struct plan plan;
        char why[256] = "";
        assert_true(generate_named(&b, points[k].name, why, sizeof why));
        double cap = points[k].of_floor * (double)policy_floor_bytes(&b.problem);
        struct policy_options options = {.cap_bytes = (uint64_t)cap, .is_untimed = true};
        if (policy_make_plan(&b.problem, &options, &plan, NULL, why, sizeof why) != POLICY_OK)
            fail_msg("%s at %g of its floor: %s", points[k].name, points[k].of_floor, why);
        assert_plan_is_right(&b.problem, &plan, &options);
        plan_release(&plan);
        builder_release(&b);
    }
}

/* Problems too large for the exact search, against their certificates. */
static void test_near_the_bound(void **state)
{
    (void)state;
    double sum = 0;
    uint32_t count = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct problem_builder b = {0};
        struct plan plan;
        char name[32], why[256] = "";
        snprintf(name, sizeof name, "training:40:%u", (unsigned)seed);
        assert_true(generate_named(&b, name, why, sizeof why));
        uint64_t peak = undropped_peak(&b.problem), floor = policy_floor_bytes(&b.problem);
        struct policy_options options = {
            .cap_bytes = floor + (peak - floor) / 2, .deadline_ns = 40000000, .is_untimed = true};
        if (policy_make_plan(&b.problem, &options, &plan, NULL, NULL, 0) == POLICY_OK) {
            double run = (double)plan.run_nanoseconds;
            sum += (run + (double)plan.added_nanoseconds) / (run + (double)plan.bound_nanoseconds);
            count++;
            plan_release(&plan);
        }
        builder_release(&b);
    }
    printf("  %u networks: time / bound %.4f\n", count, sum / count);
    assert_true(count >= 10 && sum / count < 1.02);
}

/* A small problem is searched to the end before it is said to have no plan: here one that only the exact search finds.
 */
static void test_only_exact(void **state)
{
    (void)state;
    struct problem_builder b = {0};
    struct policy_options options = {.cap_bytes = 1125};
    struct plan plan;
    char why[256] = "";
    assert_true(generate_named(&b, "varied-chain:7:79", why, sizeof why));
    assert_int_equal(policy_make_plan(&b.problem, &options, &plan, NULL, why, sizeof why), POLICY_OK);
    assert_int_equal(plan.added_nanoseconds, 151);
    assert_plan_is_right(&b.problem, &plan, &options);
    plan_release(&plan);
    builder_release(&b);
}

/* What is claimed after a search that was cut short (optimal, impossible) holds against a plan found with more time. */
static void test_claims(void **state)
{
    (void)state;
    uint64_t count = rounds_or(60);
    for (uint64_t seed = 1; seed <= count; seed++) {
        struct problem_builder b;
        struct plan longest, plan;
        make_any(&b, seed);
        uint64_t peak = undropped_peak(&b.problem), floor = policy_floor_bytes(&b.problem);
        struct policy_options options = {
            .cap_bytes = floor + (peak - floor) * (seed % 3) / 4, .deadline_ns = 30000000, .is_untimed = true};
        bool is_possible = policy_make_plan(&b.problem, &options, &longest, NULL, NULL, 0) == POLICY_OK;
        for (options.deadline_ns = 2000; is_possible && options.deadline_ns < 2000000; options.deadline_ns *= 3) {
            enum policy_status status = policy_make_plan(&b.problem, &options, &plan, NULL, NULL, 0);
            if (status == POLICY_INFEASIBLE && plan.bound_nanoseconds == UINT64_MAX)
                fail_msg("seed %llu: called impossible, but there is a plan", (unsigned long long)seed);
            if (status == POLICY_OK && plan.bound_nanoseconds > longest.added_nanoseconds)
                fail_msg("seed %llu: nothing adds less than %llu, but %llu does", (unsigned long long)seed,
                         (unsigned long long)plan.bound_nanoseconds, (unsigned long long)longest.added_nanoseconds);
            if (status == POLICY_OK)
                plan_release(&plan);
        }
        if (is_possible)
            plan_release(&longest);
        builder_release(&b);
    }
}

/* The same problem gives the same plan. */
static void test_same_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct problem_builder b;
        struct plan plans[2];
        make_any(&b, seed);
        uint64_t peak = undropped_peak(&b.problem), floor = policy_floor_bytes(&b.problem);
        struct policy_options options = {
            .cap_bytes = floor + (peak - floor) / 2, .deadline_ns = 3000000, .may_swap = seed % 3 == 0};
        enum policy_status status[2];
        for (int k = 0; k < 2; k++)
            status[k] = policy_make_plan(&b.problem, &options, &plans[k], NULL, NULL, 0);
        assert_int_equal(status[0], status[1]);
        if (status[0] == POLICY_OK) {
            assert_int_equal(plans[0].item_count, plans[1].item_count);
            assert_memory_equal(plans[0].items, plans[1].items, plans[0].item_count * sizeof *plans[0].items);
            assert_int_equal(plans[0].bound_nanoseconds, plans[1].bound_nanoseconds);
            assert_string_equal(plans[0].strategy, plans[1].strategy);
            plan_release(&plans[0]);
            plan_release(&plans[1]);
        }
        builder_release(&b);
    }
}

/* Neither means is worse for having the other as well, and without pressure neither is used. */
static void test_both_means(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct problem_builder b;
        make_any(&b, seed);
        uint64_t peak = undropped_peak(&b.problem), floor = policy_floor_bytes(&b.problem), added[3];
        for (uint64_t part = 1; part <= 4; part++) {
            for (uint32_t k = 0; k < 3; k++) { /* replays, swaps, both */
                struct plan plan;
                struct policy_options options = {.cap_bytes = floor + (peak - floor) * part / 4,
                                                 .deadline_ns = 2000000,
                                                 .may_swap = k > 0,
                                                 .may_not_replay = k == 1};
                added[k] = UINT64_MAX;
                if (policy_make_plan(&b.problem, &options, &plan, NULL, NULL, 0) != POLICY_OK)
                    continue;
                assert_plan_is_right(&b.problem, &plan, &options);
                added[k] = plan.added_nanoseconds;
                plan_release(&plan);
            }
            if (part == 4)
                assert_true(added[0] == 0 && added[1] == 0 && added[2] == 0);
            if (added[2] > added[0] || added[2] > added[1])
                fail_msg("seed %llu: %llu by replays, %llu by swaps, %llu by both", (unsigned long long)seed,
                         (unsigned long long)added[0], (unsigned long long)added[1], (unsigned long long)added[2]);
        }
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_problems), cmocka_unit_test(test_each_strategy), cmocka_unit_test(test_same_again),
        cmocka_unit_test(test_little_time),     cmocka_unit_test(test_only_exact),    cmocka_unit_test(test_claims),
        cmocka_unit_test(test_near_the_bound),  cmocka_unit_test(test_both_means),    cmocka_unit_test(test_chain),
        cmocka_unit_test(test_near_the_floor),  cmocka_unit_test(test_recurrent),     cmocka_unit_test(test_resnet)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
