/* links: policy/builder.c policy/check.c policy/graph.c policy/residency.c policy/simulate.c */
#include "policy/builder.h"
#include "policy/check.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* in 0 (10 bytes); op 0: reads 0, makes 1 (20); op 1: reads 1, makes 2 in place; op 2: reads 0 and 2, makes 3 (5). */
static struct problem_builder b;
static struct graph graph;

static int set_up(void **state)
{
    (void)state;
    b = (struct problem_builder){0};
    uint32_t input = builder_input(&b, 10);
    builder_operation(&b, 100);
    builder_read(&b, input);
    uint32_t first = builder_write(&b, 20);
    builder_operation(&b, 50);
    uint32_t second = builder_replace(&b, first);
    builder_operation(&b, 30);
    builder_read(&b, input);
    builder_read(&b, second);
    uint32_t last = builder_write(&b, 5);
    b.problem.versions[last].is_kept = true;
    b.problem.versions[second].droppable_from = 2;
    b.problem.versions[input].is_swappable = true;
    b.problem.operations[1].replayable_until = 2;
    b.problem.out_bytes_per_ns = b.problem.in_bytes_per_ns = 0.1;
    return graph_build(&graph, &b.problem) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    graph_release(&graph);
    builder_release(&b);
    return 0;
}

#define CHECK_ITEMS(cap, found, why, ...)                                                                              \
    check_plan(&graph, (const struct plan_item[]){__VA_ARGS__},                                                        \
               sizeof((const struct plan_item[]){__VA_ARGS__}) / sizeof(struct plan_item), cap, found, why,            \
               sizeof why)

static void test_plain_run(void **state)
{
    (void)state;
    struct simulation found;
    char why[200];
    assert_true(CHECK_ITEMS(35, &found, why, {PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_RUN, 2}));
    assert_int_equal(found.peak_bytes, 35);
    assert_int_equal(found.run_nanoseconds, 180);
    assert_int_equal(found.added_nanoseconds, 0);
}

static void test_replay_in_place(void **state)
{
    (void)state;
    struct simulation found;
    char why[200];
    assert_true(CHECK_ITEMS(35, &found, why, {PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_DROP, 2}, {PLAN_REPLAY, 0},
                            {PLAN_REPLAY, 1}, {PLAN_RUN, 2}));
    assert_int_equal(found.added_nanoseconds, 150);
    assert_int_equal(found.replay_count, 2);
}

static void test_swap_waits(void **state)
{
    (void)state;
    struct simulation found;
    char why[200];
    /* out: starts at 100, 100 ns; in: starts when the copy is there at 200, done at 300; op 2 waits for it */
    assert_true(CHECK_ITEMS(35, &found, why, {PLAN_RUN, 0}, {PLAN_SWAP_OUT, 0}, {PLAN_SWAP_IN, 0}, {PLAN_RUN, 1},
                            {PLAN_RUN, 2}));
    assert_int_equal(found.added_nanoseconds, 330 - 180);
    assert_int_equal(found.swapped_out_bytes, 10);
}

/* A copy that is on the host already costs nothing more, and is not counted twice; the iteration lasts until the last
 * copy has arrived. */
static void test_swap_counts(void **state)
{
    (void)state;
    struct simulation found;
    char why[200];
    assert_true(CHECK_ITEMS(35, &found, why, {PLAN_RUN, 0}, {PLAN_SWAP_OUT, 0}, {PLAN_SWAP_IN, 0}, {PLAN_SWAP_OUT, 0},
                            {PLAN_SWAP_IN, 0}, {PLAN_RUN, 1}, {PLAN_RUN, 2}));
    assert_int_equal(found.swapped_out_bytes, 10);
    assert_int_equal(found.swapped_in_bytes, 20);
    /* out 100 to 200, in to 300, in again to 400; op 1 runs beside, op 2 waits */
    assert_int_equal(found.added_nanoseconds, 430 - 180);
    assert_true(CHECK_ITEMS(35, &found, why, {PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_RUN, 2}, {PLAN_SWAP_OUT, 0}));
    assert_int_equal(found.added_nanoseconds, 100); /* the copy that goes out at the end */
}

/* A swap-in that looks ahead does not forget a copy that is still under way for the operation before it. */
static void test_swap_looks_ahead(void **state)
{
    (void)state;
    struct problem_builder p = {0};
    struct graph g;
    struct simulation found;
    char why[200];
    uint32_t first = builder_input(&p, 10), second = builder_input(&p, 10);
    builder_operation(&p, 10);
    builder_operation(&p, 10);
    builder_write(&p, 20);
    builder_operation(&p, 10);
    builder_read(&p, second);
    p.problem.versions[first].is_swappable = p.problem.versions[second].is_swappable = true;
    p.problem.out_bytes_per_ns = p.problem.in_bytes_per_ns = 0.1;
    assert_true(graph_build(&g, &p.problem));
    static const struct plan_item items[] = {{PLAN_SWAP_OUT, 1}, {PLAN_SWAP_OUT, 0}, {PLAN_SWAP_IN, 1}, {PLAN_RUN, 0},
                                             {PLAN_RUN, 1},      {PLAN_DROP, 2},     {PLAN_RUN, 2}};
    /* out 0 to 100 and 100 to 200; in 100 to 200; operation 1 needs all 30 bytes: from 200 on */
    assert_true(check_plan(&g, items, sizeof items / sizeof *items, 30, &found, why, sizeof why));
    assert_int_equal(found.added_nanoseconds, 220 - 30);
    graph_release(&g);
    builder_release(&p);
}

/* What started on the host must end there. */
static void test_start_on_host(void **state)
{
    (void)state;
    struct simulation found;
    char why[200] = "";
    b.problem.versions[0].may_start_on_host = b.problem.versions[0].is_kept = true;
    graph_release(&graph);
    assert_true(graph_build(&graph, &b.problem));
    assert_true(
        CHECK_ITEMS(35, &found, why, {PLAN_DROP, 0}, {PLAN_SWAP_IN, 0}, {PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_RUN, 2}));
    assert_int_equal(found.swapped_out_bytes, 0);
    assert_int_equal(found.added_nanoseconds, 100);
    struct problem_builder p = {0};
    struct graph g;
    uint32_t state_of = builder_input(&p, 10);
    builder_operation(&p, 5);
    uint32_t next = builder_replace(&p, state_of);
    p.problem.versions[state_of].is_swappable = p.problem.versions[state_of].may_start_on_host = true;
    p.problem.versions[next].is_swappable = p.problem.versions[next].is_kept = true;
    p.problem.out_bytes_per_ns = p.problem.in_bytes_per_ns = 1;
    assert_true(graph_build(&g, &p.problem));
    static const struct plan_item items[] = {{PLAN_DROP, 0}, {PLAN_SWAP_IN, 0}, {PLAN_RUN, 0}, {PLAN_SWAP_OUT, 1}};
    assert_false(check_plan(&g, items, 3, 99, NULL, why, sizeof why));
    assert_non_null(strstr(why, "must be on the host"));
    assert_true(check_plan(&g, items, 4, 99, NULL, why, sizeof why));
    graph_release(&g);
    builder_release(&p);
}

struct refusal {
    uint64_t cap;
    uint32_t count;
    struct plan_item items[6];
    const char *reason;
};

static void test_refusals(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {34, 3, {{PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_RUN, 2}}, "needs 35 bytes"},
        {99, 2, {{PLAN_RUN, 0}, {PLAN_RUN, 2}}, "in order"},
        {99, 2, {{PLAN_RUN, 0}, {PLAN_RUN, 1}}, "not every operation"},
        {99, 3, {{PLAN_RUN, 0}, {PLAN_DROP, 1}, {PLAN_RUN, 1}}, "version 1 is not present"},
        {99, 3, {{PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_DROP, 1}}, "version 1 is not present"},
        {99, 2, {{PLAN_REPLAY, 0}, {PLAN_RUN, 0}}, "cannot be replayed"},
        {99, 4, {{PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_RUN, 2}, {PLAN_REPLAY, 1}}, "cannot be replayed"},
        {99, 4, {{PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_RUN, 2}, {PLAN_DROP, 3}}, "version 3 must be present"},
        {99, 2, {{PLAN_RUN, 0}, {PLAN_SWAP_OUT, 1}}, "not swappable"},
        {99, 3, {{PLAN_RUN, 0}, {PLAN_DROP, 0}, {PLAN_SWAP_IN, 0}}, "no copy on the host"},
        {99, 2, {{PLAN_RUN, 0}, {PLAN_SWAP_IN, 0}}, "present already"},
        {99, 2, {{PLAN_RUN, 0}, {PLAN_DROP, 4}}, "no such item"},
        {99, 2, {{PLAN_RUN, 0}, {9, 0}}, "no such item"},
    };
    for (size_t k = 0; k < sizeof refusals / sizeof refusals[0]; k++) {
        char why[200] = "";
        if (check_plan(&graph, refusals[k].items, refusals[k].count, refusals[k].cap, NULL, why, sizeof why))
            fail_msg("plan %zu was taken", k);
        if (!strstr(why, refusals[k].reason))
            fail_msg("plan %zu: \"%s\" does not say \"%s\"", k, why, refusals[k].reason);
    }
}

static void test_pinned(void **state)
{
    (void)state;
    char why[200] = "";
    b.problem.versions[2].droppable_from = 3;
    assert_false(CHECK_ITEMS(99, NULL, why, {PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_DROP, 2}));
    assert_non_null(strstr(why, "not droppable before 3"));
}

static void test_bad_problems(void **state)
{
    (void)state;
    char why[200] = "";
    assert_true(policy_problem_is_valid(&b.problem, why, sizeof why));
    b.problem.versions[2].bytes = 21;
    assert_false(policy_problem_is_valid(&b.problem, why, sizeof why));
    assert_non_null(strstr(why, "another size"));
    b.problem.versions[2].bytes = 20;
    b.problem.reads[0] = 3;
    assert_false(policy_problem_is_valid(&b.problem, why, sizeof why));
    assert_non_null(strstr(why, "before it is produced"));
    b.problem.reads[0] = 77;
    assert_false(policy_problem_is_valid(&b.problem, why, sizeof why));
    assert_non_null(strstr(why, "unknown version 77"));
    b.problem.reads[0] = 0;
    b.problem.versions[1].producer = 2;
    assert_false(policy_problem_is_valid(&b.problem, why, sizeof why));
    b.problem.versions[1].producer = 0;
    b.problem.operations[2].read_count = 50;
    assert_false(policy_problem_is_valid(&b.problem, why, sizeof why));
    assert_non_null(strstr(why, "operation 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_replay_in_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_swap_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_swap_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_swap_looks_ahead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_start_on_host, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pinned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_problems, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
