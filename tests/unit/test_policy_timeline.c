/* links: policy/%.c */
#include "policy/generate.h"
#include "policy/plan.h"
#include "policy/simulate.h"
#include "policy/timeline.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* What the timeline says of itself must be what the simulator finds in the plan that it writes. */
static void assert_agrees(const struct timeline *t)
{
    struct item_list items = {0};
    struct simulation found;
    assert_true(timeline_write(t, &items));
    assert_int_equal(simulate_plan(t->graph, items.items, items.count, UINT64_MAX, &found, NULL), SIMULATION_DONE);
    assert_int_equal(found.added_nanoseconds, t->cost);
    assert_int_equal(found.peak_bytes, timeline_peak(t));
    items_release(&items);
}

static uint32_t draw(uint64_t *seed, uint32_t limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*seed >> 33) % limit);
}

/* Takes replays out and puts others in, each where its inputs can be had. */
static uint32_t edit(struct timeline *t, uint64_t seed)
{
    uint32_t edits = 0;
    for (uint32_t k = 0; k < 30 && t->replay_count; k++) {
        uint32_t x = t->replays[draw(&seed, t->replay_count)], o = t->executions[x].operation;
        uint32_t gap = t->executions[x].gap, slot = t->executions[x].slot;
        if (!t->is_movable[o])
            continue;
        timeline_remove(t, x);
        assert_agrees(t);
        if (draw(&seed, 3)) {
            timeline_insert(t, o, t->gaps[gap].executions[slot]);
            assert_agrees(t);
        }
        edits++;
    }
    return edits;
}

static void test_edits(void **state)
{
    (void)state;
    uint32_t edits = 0, unfit = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct problem_builder b = {0};
        generate_random(&b, &(struct generate_random){.operations = 10 + (uint32_t)(seed % 50),
                                                      .inputs = 3,
                                                      .max_reads = 4,
                                                      .max_writes = 3,
                                                      .max_bytes = 50,
                                                      .max_ns = 30,
                                                      .per_mille_in_place = seed % 3 ? 0 : 150,
                                                      .per_mille_fixed = seed % 5 ? 0 : 150,
                                                      .per_mille_pinned = seed % 2 ? 100 : 0,
                                                      .per_mille_kept = 100,
                                                      .seed = seed});
        struct graph graph;
        struct plan plan;
        struct timeline t;
        assert_true(graph_build(&graph, &b.problem));
        uint64_t peak = graph_undropped_peak(&graph, NULL), floor = policy_floor_bytes(&b.problem);
        struct policy_options options = {.cap_bytes = floor + (peak - floor) / 2, .only_strategy = "greedy"};
        if (policy_make_plan(&b.problem, &options, &plan, NULL, NULL, 0) == POLICY_OK) {
            struct item_list items = {plan.items, plan.item_count, plan.item_count};
            enum timeline_result result = timeline_begin(&t, &graph, options.cap_bytes, &items);
            assert_int_not_equal(result, TIMELINE_NO_MEMORY);
            unfit += result == TIMELINE_UNFIT;
            if (result == TIMELINE_MADE) {
                assert_agrees(&t);
                edits += edit(&t, seed);
                timeline_end(&t);
            }
            plan_release(&plan);
        }
        graph_release(&graph);
        builder_release(&b);
    }
    assert_true(edits > 300 && unfit < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_edits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
