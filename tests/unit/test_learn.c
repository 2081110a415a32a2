/* links: tests/unit/fake_%.c shim/learn.c shim/compose.c shim/annotate.c shim/proof.c shim/space.c shim/frames.c
 * shim/frames_assign.c policy/assign.c shim/streams.c shim/store.c shim/say.c policy/%.c */
#include "tests/unit/recorder.h"

/* ---- what a script says ---- */

static void a_chain_has_one_version_each(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    REQUIRE(learn_is_on());
    uint32_t a = allocate(LARGE);
    RUN(0, {a, WRITES}, {weight, READS});
    uint32_t b = allocate(2 * LARGE);
    RUN(1, {b, WRITES}, {a, READS});
    uint32_t c = allocate(LARGE);
    RUN(2, {c, WRITES}, {a, READS}, {b, READS});
    give_up(a);
    RUN(3, {c, READS}, {b, READS});
    give_up(b);
    make(0, 4);
    REQUIRE_EQUAL(state.script.version_count, 3);
    REQUIRE_EQUAL(slot(0, 1)->kind, SLOT_GIVEN);
    REQUIRE_EQUAL(slot(0, 0)->kind, SLOT_PLANNED);
    REQUIRE_EQUAL(touch(0, 0)->writes, 0);
    REQUIRE_EQUAL(touch(0, 0)->reads, SCRIPT_NONE);
    REQUIRE_EQUAL(touch(0, 1)->reads, SCRIPT_NONE);
    REQUIRE_EQUAL(touch(1, 1)->reads, 0);
    REQUIRE_EQUAL(touch(2, 1)->reads, 0);
    REQUIRE_EQUAL(touch(2, 2)->reads, 1);
    REQUIRE_EQUAL(touch(3, 0)->reads, 2);
    REQUIRE_EQUAL(slot(0, 0)->ends, 3); /* freed before operation 3 */
    REQUIRE_EQUAL(slot(1, 0)->ends, 4);
    REQUIRE_EQUAL(slot(2, 0)->ends, SCRIPT_NONE);
    REQUIRE(!version(0)->is_kept && !version(1)->is_kept && version(2)->is_kept);
    REQUIRE_EQUAL(version(1)->bytes, space_allocation_footprint(2 * LARGE));
    REQUIRE_EQUAL(version(0)->droppable_from, 0);
    for (uint32_t i = 0; i < 3; i++) {
        REQUIRE(is_replayable(i));
        REQUIRE_EQUAL(version(i)->producer, i);
        REQUIRE_EQUAL(version(i)->replaces, POLICY_NONE);
    }
    REQUIRE_EQUAL(state.script.given_page_bytes, LARGE);
}
core_test(a_chain_has_one_version_each)

    static void uses_keep_their_places(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE);
    RUN(0, {weight, READS}, {a, WRITES});
    RUN(1, {a, READS}, {weight, READS});
    make(0, 2);
    REQUIRE_EQUAL(state.script.use_count, 4);
    const struct script_operation *second = &state.script.operations[1];
    REQUIRE_EQUAL(second->use_count, 2);
    REQUIRE_EQUAL(state.script.uses[second->first_use].where, 0);
    REQUIRE_EQUAL(state.script.uses[second->first_use + 1].where, 8);
    REQUIRE_EQUAL(state.script.uses[second->first_use + 1].touch, 1);
    REQUIRE_EQUAL(state.script.uses[second->first_use + 1].offset, 0);
}
core_test(uses_keep_their_places)

    static void a_change_in_place_replaces(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE), b = allocate(LARGE);
    RUN(0, {a, WRITES}, {weight, READS});
    RUN(1, {a, CHANGES});
    RUN(2, {a, CHANGES}, {b, WRITES}); /* b may depend on what a was */
    RUN(3, {a, READS}, {b, READS});
    give_up(a);
    give_up(b);
    make(0, 4);
    REQUIRE_EQUAL(state.script.version_count, 4);
    uint32_t first = touch(0, 0)->writes, second = touch(1, 0)->writes, third = touch(2, 0)->writes;
    REQUIRE_EQUAL(version(second)->replaces, first);
    REQUIRE_EQUAL(version(third)->replaces, second);
    REQUIRE_EQUAL(touch(1, 0)->reads, first);
    REQUIRE_EQUAL(state.problem.operations[1].read_count, 0); /* `replaces` says it */
    REQUIRE_EQUAL(state.problem.operations[2].read_count, 1);
    REQUIRE_EQUAL(state.problem.reads[state.problem.operations[2].first_read], second);
    REQUIRE_EQUAL(touch(3, 0)->reads, third);
}
core_test(a_change_in_place_replaces)

    static void a_set_begins_anew(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE);
    RUN(0, {a, WRITES}, {weight, READS});
    RUN(1, {a, READS});
    record((struct operation){.kind = OPERATION_SET}, true, TO({a, SETS}));
    RUN(2, {a, READS});
    give_up(a);
    make(0, 4);
    uint32_t fresh = touch(2, 0)->writes;
    REQUIRE_EQUAL(touch(2, 0)->reads, SCRIPT_NONE);
    REQUIRE_EQUAL(version(fresh)->replaces, POLICY_NONE);
    REQUIRE(!version(touch(0, 0)->writes)->is_kept);
    REQUIRE(is_replayable(2));
}
core_test(a_set_begins_anew)

    static void what_comes_from_the_host_has_no_recipe(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE), b = allocate(LARGE);
    copy_to_device(a);
    RUN(0, {b, WRITES}, {a, READS}, {weight, READS});
    give_up(a);
    RUN(1, {b, READS});
    give_up(b);
    make(0, 3);
    REQUIRE(!is_replayable(0) && is_replayable(1));
    REQUIRE_EQUAL(version(touch(0, 0)->writes)->droppable_from, 2); /* when the program frees it */
    REQUIRE(version(touch(0, 0)->writes)->is_swappable);
    REQUIRE(state.script.operations[0].function == NULL);
}
core_test(what_comes_from_the_host_has_no_recipe)

    static void a_recipe_holds_until_its_input_is_overwritten(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE), other = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE), b = allocate(LARGE);
    RUN(0, {a, WRITES}, {weight, READS});
    RUN(1, {b, WRITES}, {other, READS});
    RUN(2, {a, READS}, {b, READS});
    RUN(3, {weight, CHANGES}, {a, READS});
    RUN(4, {b, READS});
    make(0, 5);
    REQUIRE_EQUAL(state.problem.operations[0].replayable_until, 3);
    REQUIRE_EQUAL(state.problem.operations[1].replayable_until, 5);
}
core_test(a_recipe_holds_until_its_input_is_overwritten)

    static void a_recipe_holds_until_its_input_is_freed(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t given = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE);
    RUN(0, {a, WRITES}, {given, READS});
    RUN(1, {a, READS});
    give_up(given);
    RUN(2, {a, READS});
    RUN(3, {a, READS});
    make(0, 4);
    REQUIRE_EQUAL(slot(0, 1)->ends, 2);
    REQUIRE_EQUAL(state.problem.operations[0].replayable_until, 1);
}
core_test(a_recipe_holds_until_its_input_is_freed)

    /* Running statistics: the write of a replay is unwanted, and needs memory. */
    static void a_change_of_what_is_given_costs_scratch(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE), statistics = allocate_filled(2 * LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE);
    RUN(0, {a, WRITES}, {weight, READS}, {statistics, CHANGES});
    RUN(1, {a, READS});
    make(0, 2);
    REQUIRE(is_replayable(0));
    REQUIRE_EQUAL(state.problem.operations[0].scratch_bytes, 2 * LARGE);
    REQUIRE(touch(0, 2)->is_written && touch(0, 2)->is_loaded);
    REQUIRE_EQUAL(touch(0, 2)->writes, SCRIPT_NONE);
    REQUIRE_EQUAL(state.script.version_count, 1);
}
core_test(a_change_of_what_is_given_costs_scratch)

    static void what_changed_unseen_is_left_alone(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE), b = allocate(LARGE);
    RUN(0, {a, WRITES}, {weight, READS});
    core_fill(space_get(a)->base, 64, 4711, state.stream); /* somebody we do not see */
    RUN(1, {b, WRITES}, {a, READS});
    RUN(2, {b, READS}, {weight, READS});
    make(0, 3);
    REQUIRE_EQUAL(slot(0, 0)->kind, SLOT_FIXED);
    REQUIRE(!is_replayable(0) && !is_replayable(1) && is_replayable(2));
}
core_test(what_changed_unseen_is_left_alone)

    static void what_is_read_before_it_is_written_is_fixed(const void *argument)
{
    (void)argument;
    open_memory();
    learn_begin();
    uint32_t a = allocate(LARGE), b = allocate(LARGE);
    RUN(0, {a, READS}, {b, WRITES});
    RUN(1, {b, READS});
    make(0, 2);
    REQUIRE_EQUAL(slot(0, 0)->kind, SLOT_FIXED);
    REQUIRE_EQUAL(slot(0, 1)->kind, SLOT_PLANNED);
    REQUIRE_EQUAL(state.script.version_count, 2); /* a fixed slot's bytes are a version too */
    REQUIRE_EQUAL(touch(0, 0)->writes, SCRIPT_NONE);
}
core_test(what_is_read_before_it_is_written_is_fixed)

    static void what_is_reached_through_memory_is_fixed(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t table = allocate_filled(512);
    learn_begin();
    uint32_t a = allocate(LARGE), b = allocate(LARGE);
    RUN(0, {a, WRITES}, {table, READS});
    RUN(1, {b, WRITES}, {table, READS}, {a, REACHES});
    make(0, 2);
    REQUIRE_EQUAL(slot(1, 2)->kind, SLOT_FIXED);
    REQUIRE(touch(1, 2)->is_hidden);
    REQUIRE(is_replayable(1)); /* it reads what stays where it is */
}
core_test(what_is_reached_through_memory_is_fixed)

    static void marks_of_an_allocation_count(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t pinned = allocate(LARGE), foreign = allocate(LARGE);
    RUN(0, {pinned, WRITES}, {weight, READS});
    RUN(1, {foreign, WRITES}, {weight, READS});
    space_pin(space_get(pinned), "a test");
    space_get(foreign)->is_foreign = true;
    RUN(2, {pinned, READS});
    give_up(foreign); /* noted at the end too */
    make(0, 3);
    REQUIRE_EQUAL(slot(0, 0)->kind, SLOT_FIXED);
    REQUIRE_EQUAL(slot(1, 0)->kind, SLOT_FIXED);
    REQUIRE(is_replayable(0) && !is_replayable(1)); /* others write what is foreign */
}
core_test(marks_of_an_allocation_count)

    static void impure_and_rejected_kernels_have_no_recipe(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    state.facts[1].is_readable = state.facts[1].is_impure = true;
    state.facts[1].impure_reason = "it reads a clock";
    learn_begin();
    uint32_t a = allocate(LARGE), b = allocate(LARGE), c = allocate(LARGE);
    RUN(0, {a, WRITES}, {weight, READS});
    RUN(1, {b, WRITES}, {weight, READS});
    RUN(2, {c, WRITES}, {weight, READS});
    learn_reject(state.facts[2].function, "kernel", "a test");
    learn_reject(state.facts[2].function, "kernel", "again");
    REQUIRE_EQUAL(learn_rejected(), 1);
    make(0, 3);
    REQUIRE(is_replayable(0) && !is_replayable(1) && !is_replayable(2));
    REQUIRE_EQUAL(learn_rejected(), 2); /* the impure one is counted */
    REQUIRE(learn_is_rejected(state.facts[1].function) && !learn_is_rejected(state.facts[0].function));
    REQUIRE(version(touch(1, 0)->writes)->is_swappable);
}
core_test(impure_and_rejected_kernels_have_no_recipe)

    static void unreadable_operations_have_no_recipe(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE);
    record((struct operation){.kind = OPERATION_LAUNCH, .facts = &state.facts[0], .is_cooperative_multi = true}, false,
           TO({a, WRITES}, {weight, READS}));
    make(0, 1);
    REQUIRE(!is_replayable(0));
}
core_test(unreadable_operations_have_no_recipe)

    static void small_ones_are_not_dropped(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t small = allocate(600);
    RUN(0, {small, WRITES}, {weight, READS});
    RUN(1, {small, READS});
    give_up(small);
    make(0, 2);
    REQUIRE_EQUAL(version(0)->droppable_from, 2);
    REQUIRE(!version(0)->is_swappable);
    REQUIRE_EQUAL(version(0)->bytes, 1024);
}
core_test(small_ones_are_not_dropped)

    static void a_window_may_begin_later(const void *argument)
{
    (void)argument;
    open_memory();
    learn_begin();
    uint32_t early = allocate(LARGE), gone = allocate(LARGE);
    RUN(0, {early, WRITES}, {gone, WRITES});
    give_up(gone);
    uint32_t a = allocate(LARGE);
    RUN(1, {a, WRITES}, {early, READS});
    RUN(2, {a, READS});
    give_up(a);
    RUN(0, {early, CHANGES});
    make(1, 2);
    REQUIRE_EQUAL(slot(0, 1)->kind, SLOT_GIVEN);
    REQUIRE_EQUAL(slot(0, 1)->allocation, early);
    REQUIRE_EQUAL(slot(0, 1)->serial, space_get(early)->serial);
    REQUIRE_EQUAL(slot(0, 0)->kind, SLOT_PLANNED);
    REQUIRE_EQUAL(slot(0, 0)->ends, 2);
    REQUIRE_EQUAL(state.script.version_count, 1);
    REQUIRE_EQUAL(state.script.given_page_bytes, LARGE);
    REQUIRE_EQUAL(state.script.operations[0].signature, 0x1001);
    REQUIRE(!learn_make(1, 2, 3, state.stream, &state.script, &state.problem)); /* beyond the recording */
}
core_test(a_window_may_begin_later)

    static void durations_are_measured(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    RUN(0, {weight, CHANGES}); /* one fill of 1000 ns */
    RUN(0, {weight, READS});
    make(0, 2);
    REQUIRE(state.script.operations[0].nanoseconds >= 1000);
    REQUIRE(state.script.operations[0].nanoseconds < 1100);
    REQUIRE(state.script.operations[1].nanoseconds >= 1);
    REQUIRE_EQUAL(state.problem.operations[0].nanoseconds, state.script.operations[0].nanoseconds);
}
core_test(durations_are_measured)

    /* ---- what a plan adds to it ---- */

    static void a_plan_says_what_is_compared(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE), b = allocate(LARGE), c = allocate(LARGE);
    RUN(0, {a, WRITES}, {weight, READS});
    RUN(1, {b, WRITES}, {a, READS});
    RUN(2, {c, WRITES}, {weight, READS});
    RUN(3, {b, READS}, {c, READS});
    make(0, 4);
    uint32_t va = touch(0, 0)->writes, vb = touch(1, 0)->writes, vc = touch(2, 0)->writes;
    struct plan_item items[] = {{PLAN_RUN, 0},    {PLAN_RUN, 1},    {PLAN_DROP, va}, {PLAN_DROP, vb}, {PLAN_RUN, 2},
                                {PLAN_REPLAY, 0}, {PLAN_REPLAY, 1}, {PLAN_DROP, va}, {PLAN_RUN, 3}};
    annotate(items, sizeof items / sizeof items[0]);
    const struct script_version *versions = state.script.versions;
    REQUIRE(versions[va].is_rebuilt && versions[vb].is_rebuilt && !versions[vc].is_rebuilt);
    REQUIRE(versions[vb].is_checked); /* the program reads it; a only serves to rebuild b, unless it is kept */
    REQUIRE_EQUAL(versions[va].last_item, 7);
    REQUIRE_EQUAL(versions[vb].last_item, 8);
    REQUIRE_EQUAL(state.script.print_count, 2);
    REQUIRE(versions[va].print < 2 && versions[vb].print < 2 && versions[va].print != versions[vb].print);
    REQUIRE_EQUAL(versions[vc].print, SCRIPT_NONE);
    REQUIRE(state.script.operations[0].is_replayed && state.script.operations[1].is_replayed);
    REQUIRE(!state.script.operations[2].is_replayed);
}
core_test(a_plan_says_what_is_compared)

    /* What is written in pieces holds unwritten bytes between the first and the last: a version of it that is rebuilt
     * must hold the same there. */
    static void what_is_written_in_pieces_is_filled_if_rebuilt(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE), b = allocate(LARGE);
    RUN(0, {a, BEGINS}, {weight, READS});
    RUN(1, {b, WRITES}, {weight, READS});
    RUN(2, {a, CHANGES}, {weight, READS});
    RUN(3, {a, READS}, {b, READS});
    make(0, 4);
    REQUIRE(slot(0, 0)->is_partly_written && !slot(1, 0)->is_partly_written);
    uint32_t begun = touch(0, 0)->writes, done = touch(2, 0)->writes, vb = touch(1, 0)->writes;
    struct plan_item begun_items[] = {{PLAN_RUN, 0},    {PLAN_DROP, begun}, {PLAN_RUN, 1},
                                      {PLAN_REPLAY, 0}, {PLAN_RUN, 2},      {PLAN_RUN, 3}};
    annotate(begun_items, sizeof begun_items / sizeof begun_items[0]);
    REQUIRE(slot(0, 0)->is_filled && !slot(1, 0)->is_filled);
    make(0, 4);
    struct plan_item done_items[] = {{PLAN_RUN, 0},    {PLAN_RUN, 1},    {PLAN_RUN, 2}, {PLAN_DROP, done},
                                     {PLAN_REPLAY, 0}, {PLAN_REPLAY, 2}, {PLAN_RUN, 3}};
    annotate(done_items, sizeof done_items / sizeof done_items[0]);
    REQUIRE(slot(0, 0)->is_filled);
    make(0, 4);
    struct plan_item other_items[] = {{PLAN_RUN, 0}, {PLAN_RUN, 1},    {PLAN_DROP, vb},
                                      {PLAN_RUN, 2}, {PLAN_REPLAY, 1}, {PLAN_RUN, 3}};
    annotate(other_items, sizeof other_items / sizeof other_items[0]);
    REQUIRE(!slot(0, 0)->is_filled && !slot(1, 0)->is_filled); /* a is not dropped: nothing to compare */
}
core_test(what_is_written_in_pieces_is_filled_if_rebuilt)

    /* What nobody wrote of a may be copied to b: when b is rebuilt, a begins with the same bytes as at first, though a
     * itself was replaced and not dropped; so it is if the plan is left, and b rebuilt then. */
    static void what_a_rebuild_starts_from_is_filled(const void *argument)
{
    (void)argument;
    open_memory();
    uint32_t weight = allocate_filled(LARGE);
    learn_begin();
    uint32_t a = allocate(LARGE), b = allocate(LARGE), c = allocate(LARGE);
    RUN(0, {a, BEGINS}, {weight, READS});
    RUN(1, {c, BEGINS}, {weight, READS});
    RUN(2, {b, WRITES}, {a, READS});
    RUN(3, {a, CHANGES});
    RUN(4, {c, READS}, {a, READS});
    RUN(5, {b, READS});
    make(0, 6);
    uint32_t vb = touch(2, 0)->writes;
    struct plan_item items[] = {{PLAN_RUN, 0}, {PLAN_RUN, 1},  {PLAN_RUN, 2},    {PLAN_DROP, vb},  {PLAN_RUN, 3},
                                {PLAN_RUN, 4}, {PLAN_DROP, 1}, {PLAN_REPLAY, 0}, {PLAN_REPLAY, 2}, {PLAN_RUN, 5}};
    for (uint32_t has_replays = 0; has_replays < 2; has_replays++) {
        make(0, 6);
        REQUIRE(slot(0, 0)->is_partly_written && slot(1, 0)->is_partly_written && !slot(2, 0)->is_partly_written);
        annotate(items, has_replays ? 10 : 6);
        REQUIRE(slot(0, 0)->is_filled && !slot(2, 0)->is_filled);
        REQUIRE_EQUAL(slot(1, 0)->is_filled, has_replays); /* c is dropped then */
    }
}
core_test(what_a_rebuild_starts_from_is_filled)

    static void single_unwritten_bytes_show(const void *argument)
{
    (void)argument;
    static const uint64_t sizes[] = {LARGE, LARGE - 2, LARGE - 4, LARGE + 2};
    open_memory();
    learn_begin();
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t a = allocate(sizes[i]), b = allocate(sizes[i]), c = allocate(sizes[i]);
        RUN(0, {a, SPARES_LAST});
        RUN(1, {b, SPARES_ODD});
        record((struct operation){.kind = OPERATION_SET}, true, TO({c, SETS}));
        give_up(a);
        give_up(b);
        give_up(c);
    }
    make(0, 12);
    for (uint32_t i = 0; i < 12; i += 3) {
        REQUIRE(slot(i, 0)->is_partly_written && slot(i + 1, 0)->is_partly_written);
        REQUIRE(!slot(i + 2, 0)->is_partly_written);
    }
}
core_test(single_unwritten_bytes_show)

    /* One byte in 256 is by chance as it was filled: that alone is no reason to fill it in every iteration. */
    static void what_is_written_as_a_whole_is_not_suspected(const void *argument)
{
    (void)argument;
    uint32_t suspected = 0;
    open_memory();
    learn_begin();
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t a = allocate(LARGE + 64 * i);
        RUN(0, {a, WRITES});
        give_up(a);
    }
    make(0, 64);
    for (uint32_t i = 0; i < 64; i++) {
        suspected += slot(i, 0)->is_partly_written;
    }
    REQUIRE(suspected <= 3);
}
core_test(what_is_written_as_a_whole_is_not_suspected)

    /* ---- random ---- */

    /* Whatever a program does, the planner gets a well-formed problem (make checks it), and script and problem agree.
     */
    static void any_program_makes_a_problem(const void *argument)
{
    uint64_t random = 1 + *(const uint64_t *)argument;
    uint32_t held[10], given[3];
    bool is_written[10] = {false};
    open_memory();
    for (uint32_t i = 0; i < 3; i++) {
        given[i] = allocate_filled(CORE_FRAME * (1 + i));
    }
    learn_begin();
    for (uint32_t i = 0; i < 10; i++) {
        held[i] = allocate(256 * (1 + core_below(&random, 40)));
    }
    for (uint32_t step = 0; step < 120; step++) {
        struct access_to list[4];
        uint32_t first = core_below(&random, 10), count = 1 + core_below(&random, 4);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t which = (first + i) % 10;
            bool is_read = is_written[which] && core_below(&random, 2) == 0;
            list[i] = (struct access_to){held[which], is_read ? READS : CHANGES};
            is_written[which] = true;
        }
        if (core_below(&random, 3) == 0) {
            list[0] = (struct access_to){given[core_below(&random, 3)], core_below(&random, 5) == 0 ? CHANGES : READS};
        }
        record((struct operation){.kind = OPERATION_LAUNCH, .facts = &state.facts[step % 8]}, false, list, count);
        if (core_below(&random, 4) == 0) {
            uint32_t which = core_below(&random, 10);
            give_up(held[which]);
            held[which] = allocate(256 * (1 + core_below(&random, 40)));
            is_written[which] = false;
        }
    }
    for (uint32_t first = 0; first < 100; first += 33) {
        make(first, 20);
        for (uint32_t v = 0; v < state.script.version_count; v++) {
            REQUIRE_EQUAL(state.script.versions[v].producer, version(v)->producer);
            REQUIRE(state.script.slots[state.script.versions[v].slot].kind != SLOT_GIVEN);
        }
    }
}

static void test_any_program_makes_a_problem(void **unused)
{
    (void)unused;
    for (uint64_t seed = 0; seed < 6; seed++) {
        assert_child(any_program_makes_a_problem, &seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_chain_has_one_version_each),
        cmocka_unit_test(test_uses_keep_their_places),
        cmocka_unit_test(test_a_change_in_place_replaces),
        cmocka_unit_test(test_a_set_begins_anew),
        cmocka_unit_test(test_what_comes_from_the_host_has_no_recipe),
        cmocka_unit_test(test_a_recipe_holds_until_its_input_is_overwritten),
        cmocka_unit_test(test_a_recipe_holds_until_its_input_is_freed),
        cmocka_unit_test(test_a_change_of_what_is_given_costs_scratch),
        cmocka_unit_test(test_what_changed_unseen_is_left_alone),
        cmocka_unit_test(test_what_is_read_before_it_is_written_is_fixed),
        cmocka_unit_test(test_what_is_reached_through_memory_is_fixed),
        cmocka_unit_test(test_marks_of_an_allocation_count),
        cmocka_unit_test(test_impure_and_rejected_kernels_have_no_recipe),
        cmocka_unit_test(test_unreadable_operations_have_no_recipe),
        cmocka_unit_test(test_small_ones_are_not_dropped),
        cmocka_unit_test(test_a_window_may_begin_later),
        cmocka_unit_test(test_durations_are_measured),
        cmocka_unit_test(test_a_plan_says_what_is_compared),
        cmocka_unit_test(test_what_is_written_in_pieces_is_filled_if_rebuilt),
        cmocka_unit_test(test_what_a_rebuild_starts_from_is_filled),
        cmocka_unit_test(test_single_unwritten_bytes_show),
        cmocka_unit_test(test_what_is_written_as_a_whole_is_not_suspected),
        cmocka_unit_test(test_any_program_makes_a_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
