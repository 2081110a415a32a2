/* links: policy/%.c */
/* The curve of memory against time, and what a plan is explained with. */
#include "policy/curve.h"
#include "policy/explain.h"
#include "policy/generate.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void check_curve(const struct curve *curve)
{
    assert_true(curve->point_count > 0);
    for (uint32_t k = 0; k < curve->point_count; k++) {
        const struct curve_point *point = &curve->points[k];
        assert_true(point->alone == 0 || (point->alone >= 1 && point->peak_bytes <= point->cap_bytes));
        assert_true(point->alone == 0 || point->bound <= point->alone + 1e-12);
        assert_true((point->strategy != NULL) == (point->alone > 0));
        if (curve->has_swapping && point->alone > 0)
            assert_true(point->swapping > 0 && point->swapping <= point->alone);
        if (!k)
            continue;
        assert_true(point->cap_bytes > point[-1].cap_bytes);
        assert_true(point->bound <= point[-1].bound);
        assert_true(point[-1].alone == 0 || (point->alone > 0 && point->alone <= point[-1].alone));
        assert_true(point[-1].swapping == 0 || (point->swapping > 0 && point->swapping <= point[-1].swapping));
    }
    const struct curve_point *last = &curve->points[curve->point_count - 1];
    assert_true(last->cap_bytes == curve->bare_peak_bytes && last->alone == 1);
}

static void test_monotonic(void **state)
{
    (void)state;
    static const char *const names[] = {"chain:40",     "random-chain:30:5", "resnet:6",
                                        "recurrent:12", "revolve:30",        "training:20:3"};
    for (size_t k = 0; k < sizeof names / sizeof *names + 12; k++) {
        struct problem_builder b = {0};
        static struct curve curve;
        char why[256] = "", name[32];
        bool is_random = k >= sizeof names / sizeof *names;
        snprintf(name, sizeof name, "random:%zu:%zu", 12 + k, k);
        assert_true(generate_named(&b, is_random ? name : names[k], why, sizeof why));
        if (is_random)
            for (uint32_t v = 0; v < b.problem.version_count; v++)
                b.problem.versions[v].is_swappable = v % 2;
        b.problem.out_bytes_per_ns = b.problem.in_bytes_per_ns = 0.5;
        struct curve_request request = {.points = 12, .nanoseconds = 60000000, .may_swap = true, .has_marks = k % 2};
        assert_int_equal(curve_make(&b.problem, &request, &curve, why, sizeof why), CURVE_DONE);
        check_curve(&curve);
        builder_release(&b);
    }
}

/* Both forms of Chen's rule have a place on the chain of equal steps: about one more forward pass, and about log n. */
static void test_marks(void **state)
{
    (void)state;
    struct problem_builder b = {0};
    static struct curve curve;
    generate_chain(&b, 100, 1000, 1000, 2000);
    struct curve_request request = {.points = 20, .nanoseconds = 300000000, .has_marks = true};
    assert_int_equal(curve_make(&b.problem, &request, &curve, NULL, 0), CURVE_DONE);
    bool has_root = false, has_log = false;
    for (uint32_t k = 0; k < curve.mark_count; k++) {
        const struct curve_mark *mark = &curve.marks[k];
        if (mark->letter == 'S') {
            has_root = true;
            assert_true(mark->ratio > 1.1 && mark->ratio <= 1.34 && mark->peak_bytes <= 45000);
        } else if (mark->letter == 'L') {
            has_log = true;
            assert_true(mark->peak_bytes <= 15000);
        }
        for (uint32_t i = 0; i < curve.point_count; i++) /* ours is at least as good, wherever it fits */
            if (curve.points[i].cap_bytes >= mark->peak_bytes)
                assert_true(curve.points[i].alone <= mark->ratio);
    }
    assert_true(has_root && has_log);
    builder_release(&b);
}

/* Every named method has a place on the curve of a network with skip connections, whose values cross several stages. */
static void test_marks_of_networks(void **state)
{
    (void)state;
    static const char *const names[] = {"resnet:15", "random-chain:30:4"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct problem_builder b = {0};
        static struct curve curve;
        char why[256] = "";
        assert_true(generate_named(&b, names[k], why, sizeof why));
        struct curve_request request = {.points = 20, .nanoseconds = 300000000, .has_marks = true};
        assert_int_equal(curve_make(&b.problem, &request, &curve, NULL, 0), CURVE_DONE);
        check_curve(&curve);
        for (const char *letter = "SLRD"; *letter; letter++) {
            bool is_there = false;
            for (uint32_t m = 0; m < curve.mark_count; m++)
                is_there |= curve.marks[m].letter == *letter;
            if (!is_there)
                fail_msg("%s has no mark %c", names[k], *letter);
        }
        builder_release(&b);
    }
}

/* The costs of the groups add up to the replays of the plan; what nothing rebuilt has none. */
static void test_explain_adds_up(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct problem_builder b = {0};
        struct graph graph;
        struct plan plan;
        char name[32], why[256] = "";
        snprintf(name, sizeof name, seed % 2 ? "training:12:%llu" : "random:25:%llu", (unsigned long long)seed);
        assert_true(generate_named(&b, name, why, sizeof why) && graph_build(&graph, &b.problem));
        uint32_t operations = b.problem.operation_count, *group_of = calloc(operations, sizeof *group_of), replays = 0;
        struct explain_group *groups = calloc(operations + 1, sizeof *groups);
        for (uint32_t o = 0; o < operations; o++)
            group_of[o] = o;
        uint64_t floor = policy_floor_bytes(&b.problem), peak = graph_undropped_peak(&graph, NULL), cost = 0, sum = 0;
        struct policy_options options = {.cap_bytes = floor + (peak - floor) / 2, .deadline_ns = 3000000};
        if (policy_make_plan(&b.problem, &options, &plan, NULL, NULL, 0) == POLICY_OK) {
            assert_true(explain_plan(&graph, &plan, group_of, operations, groups));
            for (uint32_t k = 0; k < plan.item_count; k++)
                if (plan.items[k].verb == PLAN_REPLAY) {
                    cost += b.problem.operations[plan.items[k].index].nanoseconds;
                    replays++;
                }
            for (uint32_t g = 0; g <= operations; g++) {
                sum += groups[g].replay_ns;
                replays -= groups[g].replay_count;
                assert_true(groups[g].dropped_count || !groups[g].replay_count || !groups[g].saved_bytes);
            }
            assert_int_equal(sum, cost);
            assert_int_equal(replays, 0);
            plan_release(&plan);
        }
        free(group_of);
        free(groups);
        graph_release(&graph);
        builder_release(&b);
    }
}

/* A version that needs another one rebuilt first pays for both. */
static void test_explain_charges_the_wanted(void **state)
{
    (void)state;
    struct problem_builder b = {0};
    struct graph graph;
    builder_input(&b, 1);
    for (uint32_t v = 0; v < 2; v++) { /* 0 makes version 1, 1 makes version 2 from it */
        builder_operation(&b, 10 + v);
        builder_read(&b, v);
        builder_write(&b, 8);
    }
    builder_operation(&b, 5);
    builder_write(&b, 16); /* version 3 */
    builder_operation(&b, 5);
    builder_read(&b, 3);
    builder_operation(&b, 5);
    builder_read(&b, 2);
    struct plan_item items[] = {{PLAN_RUN, 0}, {PLAN_RUN, 1},  {PLAN_DROP, 1},   {PLAN_DROP, 2},   {PLAN_RUN, 2},
                                {PLAN_RUN, 3}, {PLAN_DROP, 3}, {PLAN_REPLAY, 0}, {PLAN_REPLAY, 1}, {PLAN_RUN, 4}};
    struct plan plan = {.items = items, .item_count = sizeof items / sizeof *items};
    uint32_t group_of[] = {0, 1, 2, 2, 2};
    struct explain_group groups[4];
    assert_true(graph_build(&graph, &b.problem));
    assert_true(explain_plan(&graph, &plan, group_of, 3, groups));
    assert_int_equal(groups[1].replay_ns, 21);
    assert_int_equal(groups[1].replay_count, 2);
    assert_int_equal(groups[1].dropped_count, 1);
    assert_int_equal(groups[1].saved_bytes, 8);
    assert_int_equal(groups[0].replay_ns + groups[0].dropped_count + groups[0].saved_bytes, 0);
    graph_release(&graph);
    builder_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_monotonic), cmocka_unit_test(test_marks),
                                       cmocka_unit_test(test_marks_of_networks), cmocka_unit_test(test_explain_adds_up),
                                       cmocka_unit_test(test_explain_charges_the_wanted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
