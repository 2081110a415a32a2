/* links: tests/unit/fake_%.c tests/unit/network%.c shim/engine.c shim/submit.c shim/judge.c shim/refuse.c shim/frames.c
 * shim/frames_assign.c policy/assign.c shim/space.c shim/streams.c shim/store.c shim/swap.c shim/reside.c shim/hidden.c
 * shim/proof.c shim/learn.c shim/compose.c shim/annotate.c shim/replay.c shim/follow.c shim/away.c shim/leave.c
 * shim/proven.c shim/iterate.c shim/stats.c shim/launch.c shim/say.c  trace/period.c policy/%.c */
/* What makes room while nothing is managed yet must not move what a pointer in memory leads to. */
#include "tests/unit/engine_calls.h"

/* The cap is used up, and what was used longest ago is reached through a pointer that a kernel stored. */
static CUdeviceptr fill_up(CUdeviceptr *holder, CUdeviceptr *list)
{
    open_device(40, 27, FAKE_LATE);
    CUdeviceptr target = allocate(LARGE);
    *holder = allocate(LARGE);
    fill(target, 50);
    fill(*holder, 60);
    REQUIRE(machine->launch(NETWORK_store_pointer, &(struct network_arguments){.pointers = {*holder, target}}));
    fill_many(list, 4);
    return target;
}

static void check_filled_up(CUdeviceptr target, CUdeviceptr holder, const CUdeviceptr *list)
{
    REQUIRE(machine->launch(NETWORK_change_through, &(struct network_arguments){.pointers = {holder}, .words = WORDS}));
    REQUIRE(!is_filled(target, 50));
    for (uint32_t i = 0; i < 4; i++) {
        REQUIRE(is_filled(list[i], i + 1));
    }
}

static void small_allocations_move_nothing_that_is_reached_unseen(const void *argument)
{
    CUdeviceptr holder, list[4], target = fill_up(&holder, list);
    (void)argument;
    for (uint32_t i = 0; i < 8; i++) {
        allocate(FRAME / 4);
    }
    check_filled_up(target, holder, list);
}
engine_test(small_allocations_move_nothing_that_is_reached_unseen)

    static void pins_move_nothing_that_is_reached_unseen(const void *argument)
{
    CUdeviceptr holder, list[4], target = fill_up(&holder, list), more = allocate(LARGE);
    (void)argument;
    REQUIRE_EQUAL(engine_pin(more, "a test"), CUDA_SUCCESS);
    fill(more, 70);
    check_filled_up(target, holder, list);
    REQUIRE(is_filled(more, 70));
}
engine_test(pins_move_nothing_that_is_reached_unseen)

    static void captured_work_moves_nothing_that_is_reached_unseen(const void *argument)
{
    CUdeviceptr holder, list[4], target = fill_up(&holder, list), more = allocate(LARGE);
    (void)argument;
    engine_machine_present(true, false);
    REQUIRE(activate(more));
    engine_machine_present(false, false);
    fill(more, 70);
    check_filled_up(target, holder, list);
    REQUIRE(is_filled(more, 70));
}
engine_test(captured_work_moves_nothing_that_is_reached_unseen)

    int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_allocations_move_nothing_that_is_reached_unseen),
        cmocka_unit_test(test_pins_move_nothing_that_is_reached_unseen),
        cmocka_unit_test(test_captured_work_moves_nothing_that_is_reached_unseen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
