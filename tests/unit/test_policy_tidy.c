/* links: policy/%.c */
/* Tidying and prefetching: what they change for the better, and what they must leave. */
#include "policy/check.h"
#include "policy/generate.h"
#include "policy/plan.h"
#include "policy/prefetch.h"
#include "policy/tidy.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void copy_items(struct item_list *out, const struct plan_item *items, uint32_t count)
{
    *out = (struct item_list){0};
    for (uint32_t k = 0; k < count; k++)
        assert_true(items_append(out, (enum plan_verb)items[k].verb, items[k].index));
}

static uint32_t count_verb(const struct item_list *items, uint32_t verb)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < items->count; k++)
        count += items->items[k].verb == verb;
    return count;
}

/* Operation 0 makes 10 bytes that operation 2 reads; operation 1 makes 30 and holds them until its end. */
static void make_gap(struct problem_builder *b, struct graph *graph)
{
    *b = (struct problem_builder){0};
    builder_operation(b, 7);
    uint32_t first = builder_write(b, 10);
    builder_operation(b, 5);
    builder_write(b, 30);
    builder_operation(b, 5);
    builder_read(b, first);
    assert_true(graph_build(graph, &b->problem));
}

/* A version is kept through a gap exactly where there is room for it. */
static void test_fills_where_there_is_room(void **state)
{
    (void)state;
    static const struct plan_item items[] = {{PLAN_RUN, 0},  {PLAN_DROP, 0},   {PLAN_RUN, 1},
                                             {PLAN_DROP, 1}, {PLAN_REPLAY, 0}, {PLAN_RUN, 2}};
    struct problem_builder b;
    struct graph graph;
    make_gap(&b, &graph);
    for (uint64_t cap = 30; cap <= 50; cap++) {
        struct item_list plan;
        struct simulation found;
        uint64_t added = 0;
        copy_items(&plan, items, 6);
        assert_true(tidy_plan(&graph, cap, &plan, &added));
        assert_true(check_plan(&graph, plan.items, plan.count, cap, &found, NULL, 0));
        assert_int_equal(count_verb(&plan, PLAN_REPLAY), cap < 40);
        assert_int_equal(found.added_nanoseconds, cap < 40 ? 7 : 0);
        assert_int_equal(added, found.added_nanoseconds);
        items_release(&plan);
    }
    graph_release(&graph);
    builder_release(&b);
}

/* Of two gaps one has room: filling the other must not spoil it. */
static void test_fills_one_of_two(void **state)
{
    (void)state;
    static const struct plan_item items[] = {{PLAN_RUN, 0},    {PLAN_DROP, 0},   {PLAN_RUN, 1},  {PLAN_DROP, 1},
                                             {PLAN_REPLAY, 0}, {PLAN_RUN, 2},    {PLAN_DROP, 0}, {PLAN_RUN, 3},
                                             {PLAN_DROP, 2},   {PLAN_REPLAY, 0}, {PLAN_RUN, 4}};
    struct problem_builder b = {0};
    struct graph graph;
    builder_operation(&b, 7);
    uint32_t first = builder_write(&b, 10);
    for (uint32_t k = 0; k < 2; k++) {
        builder_operation(&b, 5);
        builder_write(&b, k ? 20 : 30); /* in the first gap there is no room, in the second there is */
        builder_operation(&b, 5);
        builder_read(&b, first);
    }
    assert_true(graph_build(&graph, &b.problem));
    for (uint64_t cap = 30; cap < 40; cap++) {
        struct item_list plan;
        uint64_t added = 0;
        copy_items(&plan, items, sizeof items / sizeof *items);
        assert_true(tidy_plan(&graph, cap, &plan, &added));
        assert_int_equal(added, 7);
        assert_int_equal(count_verb(&plan, PLAN_REPLAY), 1);
        items_release(&plan);
    }
    graph_release(&graph);
    builder_release(&b);
}

/* A replay that nobody uses goes, and so does what was made for it; drops come as early as they may. */
static void test_removes_what_nobody_uses(void **state)
{
    (void)state;
    static const struct plan_item items[] = {{PLAN_RUN, 0},    {PLAN_DROP, 0}, {PLAN_RUN, 1}, {PLAN_REPLAY, 0},
                                             {PLAN_REPLAY, 1}, {PLAN_RUN, 2},  {PLAN_DROP, 1}};
    struct problem_builder b;
    struct graph graph;
    struct item_list plan;
    uint64_t peak;
    make_gap(&b, &graph);
    copy_items(&plan, items, 7);
    assert_true(tidy_drops(&graph, &plan, &peak));
    assert_int_equal(count_verb(&plan, PLAN_REPLAY), 1);
    assert_int_equal(peak, 30);
    items_release(&plan);
    graph_release(&graph);
    builder_release(&b);
}

/* Of random plans: never more time, never above the cap. */
static void test_never_worse(void **state)
{
    (void)state;
    uint32_t better = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct problem_builder b = {0};
        struct graph graph;
        struct plan plan;
        generate_random(&b, &(struct generate_random){.operations = 6 + (uint32_t)(seed % 40),
                                                      .inputs = 3,
                                                      .max_reads = 3,
                                                      .max_writes = 3,
                                                      .max_bytes = 50,
                                                      .max_ns = 30,
                                                      .per_mille_in_place = seed % 3 ? 150 : 0,
                                                      .per_mille_pinned = seed % 2 ? 100 : 0,
                                                      .per_mille_kept = 100,
                                                      .per_mille_swappable = seed % 4 ? 0 : 500,
                                                      .seed = seed});
        assert_true(graph_build(&graph, &b.problem));
        uint64_t peak = graph_undropped_peak(&graph, NULL), floor = policy_floor_bytes(&b.problem);
        struct policy_options options = {
            .cap_bytes = floor + (peak - floor) / 3, .only_strategy = "greedy", .may_swap = seed % 4 == 0};
        if (policy_make_plan(&b.problem, &options, &plan, NULL, NULL, 0) == POLICY_OK) {
            for (uint64_t room = 0; room <= peak / 2;
                 room += peak / 8 + 1) { /* with more room, something can be kept */
                struct item_list items;
                struct simulation found;
                uint64_t added = 0, cap = options.cap_bytes + room;
                copy_items(&items, plan.items, plan.item_count);
                assert_true(tidy_plan(&graph, cap, &items, &added));
                assert_true(check_plan(&graph, items.items, items.count, cap, &found, NULL, 0));
                assert_true(found.added_nanoseconds <= plan.added_nanoseconds);
                better += found.added_nanoseconds < plan.added_nanoseconds;
                items_release(&items);
            }
            plan_release(&plan);
        }
        graph_release(&graph);
        builder_release(&b);
    }
    assert_true(better > 60);
}

/* Version 0 is away while operations 0 to 3 run (10 ns each) and is read by operation 3; a copy takes 15 ns. Operation
 * 1 makes 20 bytes, which are gone after it. */
static void make_away(struct problem_builder *b, struct graph *graph)
{
    *b = (struct problem_builder){0};
    uint32_t given = builder_input(b, 15);
    for (uint32_t o = 0; o < 4; o++) {
        builder_operation(b, 10);
        if (o == 1)
            builder_write(b, 20);
    }
    builder_read(b, given);
    b->problem.versions[given].is_swappable = true;
    b->problem.out_bytes_per_ns = b->problem.in_bytes_per_ns = 1;
    assert_true(graph_build(graph, &b->problem));
}

/* A swap-in comes so early that the copy is there in time, if memory allows, and never before the swap-out. */
static void test_prefetch(void **state)
{
    (void)state;
    static const struct plan_item items[] = {{PLAN_SWAP_OUT, 0}, {PLAN_RUN, 0},     {PLAN_RUN, 1}, {PLAN_DROP, 1},
                                             {PLAN_RUN, 2},      {PLAN_SWAP_IN, 0}, {PLAN_RUN, 3}};
    struct problem_builder b;
    struct graph graph;
    make_away(&b, &graph);
    for (uint64_t cap = 20; cap <= 60; cap++) {
        struct item_list plan;
        struct simulation before, after;
        copy_items(&plan, items, 7);
        assert_true(check_plan(&graph, plan.items, plan.count, cap, &before, NULL, 0));
        uint64_t added = before.added_nanoseconds;
        assert_true(prefetch_swaps(&graph, cap, &plan, &added));
        assert_true(check_plan(&graph, plan.items, plan.count, cap, &after, NULL, 0));
        assert_int_equal(after.added_nanoseconds, added);
        /* beside operation 2 alone where operation 1 needs the room; below 35 bytes operation 1 waits for the copy to
         * the host, below 50 it would if version 0 were back */
        uint64_t waits = cap < 35 ? 5 : 0;
        assert_int_equal(before.added_nanoseconds, 15 + waits);
        assert_int_equal(added, (cap < 50 ? 5 : 0) + waits);
        items_release(&plan);
    }
    graph_release(&graph);
    builder_release(&b);
}

/* Two copies share the channel: the second is brought in early enough for both. Where only one of them fits beside the
 * operations before, one is. */
static void test_prefetch_two(void **state)
{
    (void)state;
    static const struct plan_item items[] = {{PLAN_SWAP_OUT, 0}, {PLAN_SWAP_OUT, 1}, {PLAN_RUN, 0},
                                             {PLAN_RUN, 1},      {PLAN_RUN, 2},      {PLAN_RUN, 3},
                                             {PLAN_SWAP_IN, 0},  {PLAN_SWAP_IN, 1},  {PLAN_RUN, 4}};
    struct problem_builder b = {0};
    struct graph graph;
    builder_input(&b, 10);
    builder_input(&b, 10);
    for (uint32_t o = 0; o < 5; o++)
        builder_operation(&b, 10);
    builder_read(&b, 0);
    builder_read(&b, 1);
    b.problem.operations[2].workspace_bytes = 50;
    b.problem.versions[0].is_swappable = b.problem.versions[1].is_swappable = true;
    b.problem.out_bytes_per_ns = b.problem.in_bytes_per_ns = 1;
    assert_true(graph_build(&graph, &b.problem));
    for (uint64_t cap = 50; cap <= 70; cap += 10) {
        struct item_list plan;
        copy_items(&plan, items, sizeof items / sizeof *items);
        uint64_t added = 20;
        assert_true(prefetch_swaps(&graph, cap, &plan, &added));
        /* beside operation 3 one of them, beside operation 2 the other, if there are 60 bytes */
        assert_int_equal(added, cap < 60 ? 10 : 0);
        items_release(&plan);
    }
    graph_release(&graph);
    builder_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fills_where_there_is_room),
                                       cmocka_unit_test(test_removes_what_nobody_uses),
                                       cmocka_unit_test(test_never_worse),
                                       cmocka_unit_test(test_prefetch),
                                       cmocka_unit_test(test_prefetch_two),
                                       cmocka_unit_test(test_fills_one_of_two)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
