/* links: tests/unit/fake_%.c tests/unit/steps.c shim/follow.c shim/away.c shim/replay.c shim/leave.c shim/proven.c
 * shim/reside.c shim/swap.c shim/hidden.c shim/learn.c shim/compose.c shim/annotate.c shim/proof.c shim/space.c
 * shim/frames.c shim/streams.c shim/store.c shim/launch.c shim/say.c policy/%.c */
#include "tests/unit/steps.h"

#include "shim/proof.h"
#include "shim/proven.h"
#include "shim/reside.h"
#include "shim/swap.h"

/* ---- a chain: 3 = f(0,1), 4 = f(3,1), 5 = f(4,2), 6 = f(5,3): 3 is wanted again late ---- */

static const struct step chain[] = {{MIX, 3, 0, 1, 0}, {MIX, 4, 3, 1, 0}, {MIX, 5, 4, 2, 0}, {MIX, 6, 5, 3, 0}};

/* Versions are numbered as their producers. */
static const struct plan_item chain_plan[] = {{PLAN_RUN, 0}, {PLAN_RUN, 1},    {PLAN_DROP, 0},
                                              {PLAN_RUN, 2}, {PLAN_REPLAY, 0}, {PLAN_RUN, 3}};

static void a_dropped_version_is_gone_and_comes_back(const void *argument)
{
    steps_open(100, *(const enum fake_order *)argument);
    INSTALL(chain, chain_plan, true);
    for (uint32_t iteration = 0; iteration < 3; iteration++) {
        steps_begin();
        REQUIRE(steps_follow_one(&chain[0]) && steps_follow_one(&chain[1]));
        REQUIRE(steps_is_resident(3));
        uint32_t used = steps_frames_in_use();
        REQUIRE(steps_follow_one(&chain[2]));
        REQUIRE(!steps_is_resident(3) && steps_buffer(3)->is_dropped);
        REQUIRE_EQUAL(steps_frames_in_use(), used);                        /* one dropped, one new */
        REQUIRE_EQUAL(fake_mapped_pages(steps_buffer(3)->base, LARGE), 0); /* strict */
        REQUIRE(steps_follow_one(&chain[3]));
        REQUIRE(steps_is_resident(3) && !steps_buffer(3)->is_dropped);
        follow_finish();
        steps_check_held();
        REQUIRE_EQUAL(follow_count().replayed, iteration + 1);
        REQUIRE_EQUAL(proven_count().verified, iteration + 1);
        REQUIRE_EQUAL(proven_count().mismatched, 0);
        steps_free_all();
    }
    REQUIRE_EQUAL(swap_count().out_bytes + swap_count().in_bytes, 0);
    REQUIRE_EQUAL(swap_count().audited_bytes, 3 * LARGE);
}

static void test_a_dropped_version_is_gone_and_comes_back(void **unused)
{
    (void)unused;
    for (enum fake_order order = FAKE_AT_ONCE; order <= FAKE_MIXED; order++) {
        assert_child(a_dropped_version_is_gone_and_comes_back, &order);
    }
}

static void after_probation_no_copy_is_kept(const void *argument)
{
    (void)argument;
    steps_open(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    steps_follow_all();
    steps_free_all();
    follow_end_probation();
    uint64_t audited = swap_count().audited_bytes;
    for (uint32_t i = 0; i < 5; i++) {
        steps_follow_all();
        steps_check_held();
        steps_free_all();
    }
    proven_look(follow_script());
    REQUIRE_EQUAL(proven_count().verified, 6);              /* by fingerprint */
    REQUIRE(swap_count().audited_bytes <= audited + LARGE); /* a random share */
}
core_test(after_probation_no_copy_is_kept)

    /* The recipe is replayed although the program has freed what it needs: the plan keeps that, or rebuilds it aside.
     */
    static const struct step freeing[] = {
        {MIX, 3, 0, 1, 0}, {MIX, 4, 3, 1, 0}, {MIX, 5, 4, 2, 1u << 3}, {MIX, 6, 5, 4, 0}, {MIX, 7, 6, 2, 0}};

static void what_the_program_freed_may_be_kept_for_a_recipe(const void *argument)
{
    (void)argument;
    static const struct plan_item items[] = {{PLAN_RUN, 0},    {PLAN_RUN, 1},  {PLAN_RUN, 2}, {PLAN_DROP, 1},
                                             {PLAN_REPLAY, 1}, {PLAN_DROP, 0}, {PLAN_RUN, 3}, {PLAN_RUN, 4}};
    steps_open(100, FAKE_LATE);
    INSTALL(freeing, items, true);
    uint32_t before = steps_frames_in_use();
    for (uint32_t i = 0; i < 3; i++) {
        steps_follow_all();
        steps_check_held();
        steps_free_all();
        REQUIRE_EQUAL(steps_frames_in_use(), before);
    }
    REQUIRE_EQUAL(follow_count().replayed, 3);
}
core_test(what_the_program_freed_may_be_kept_for_a_recipe)

    static void what_the_program_freed_may_be_rebuilt_aside(const void *argument)
{
    (void)argument;
    static const struct plan_item items[] = {{PLAN_RUN, 0},    {PLAN_RUN, 1},    {PLAN_DROP, 0},   {PLAN_DROP, 1},
                                             {PLAN_REPLAY, 0}, {PLAN_REPLAY, 1}, {PLAN_RUN, 2},    {PLAN_DROP, 0},
                                             {PLAN_DROP, 1},   {PLAN_REPLAY, 0}, {PLAN_REPLAY, 1}, {PLAN_DROP, 0},
                                             {PLAN_RUN, 3},    {PLAN_RUN, 4}};
    steps_open(100, FAKE_LATE);
    INSTALL(freeing, items, true);
    uint32_t before = steps_frames_in_use();
    for (uint32_t i = 0; i < 3; i++) {
        steps_follow_all();
        steps_check_held();
        steps_free_all();
        REQUIRE_EQUAL(steps_frames_in_use(), before);
    }
    REQUIRE_EQUAL(follow_count().replayed, 12);
}
core_test(what_the_program_freed_may_be_rebuilt_aside)

    /* ---- writes that a replay does not want ---- */

    static const struct step counting[] = {{COUNT, 3, 0, 2, 0}, {MIX, 4, 3, 1, 0}, {MIX, 5, 4, 3, 0}};

static void statistics_are_not_updated_twice(const void *argument)
{
    (void)argument;
    static const struct plan_item items[] = {
        {PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_DROP, 0}, {PLAN_REPLAY, 0}, {PLAN_RUN, 2}};
    steps_open(100, FAKE_LATE);
    INSTALL(counting, items, true);
    for (uint32_t i = 0; i < 4; i++) {
        steps_follow_all();
        steps_check_held(); /* buffer 2 among them */
        steps_free_all();
    }
    REQUIRE_EQUAL(follow_count().replayed, 4);
}
core_test(statistics_are_not_updated_twice)

    /* An output that is still there is not written by a replay for another one. */
    static void changes_in_place_are_replayed_in_order(const void *argument)
{
    (void)argument;
    static const struct step steps[] = {{MIX, 3, 0, 1, 0}, {CHANGE, 3, 0, 0, 0}, {CHANGE, 3, 0, 0, 0},
                                        {MIX, 4, 3, 1, 0}, {MIX, 5, 4, 1, 0},    {MIX, 6, 5, 3, 0}};
    static const struct plan_item items[] = {{PLAN_RUN, 0},    {PLAN_RUN, 1}, {PLAN_RUN, 2},    {PLAN_RUN, 3},
                                             {PLAN_DROP, 2},   {PLAN_RUN, 4}, {PLAN_REPLAY, 0}, {PLAN_REPLAY, 1},
                                             {PLAN_REPLAY, 2}, {PLAN_RUN, 5}};
    steps_open(100, FAKE_LATE);
    INSTALL(steps, items, true);
    for (uint32_t i = 0; i < 3; i++) {
        steps_follow_all();
        steps_check_held();
        steps_free_all();
    }
}
core_test(changes_in_place_are_replayed_in_order)

    /* ---- swapping ---- */

    static void a_plan_may_swap(const void *argument)
{
    (void)argument;
    static const struct plan_item items[] = {{PLAN_RUN, 0}, {PLAN_RUN, 1},     {PLAN_SWAP_OUT, 0},
                                             {PLAN_RUN, 2}, {PLAN_SWAP_IN, 0}, {PLAN_RUN, 3}};
    steps_open(100, FAKE_LATE);
    INSTALL(chain, items, true);
    for (uint32_t i = 0; i < 3; i++) {
        steps_begin();
        REQUIRE(steps_follow_one(&chain[0]) && steps_follow_one(&chain[1]) && steps_follow_one(&chain[2]));
        REQUIRE(!steps_is_resident(3));
        REQUIRE(steps_follow_one(&chain[3]));
        follow_finish();
        steps_check_held();
        steps_free_all();
    }
    REQUIRE_EQUAL(swap_count().out_bytes, 3 * LARGE);
    REQUIRE_EQUAL(swap_count().in_bytes, 3 * LARGE);
}
core_test(a_plan_may_swap)

    /* 3 is wanted again late; the steps between take as long as its copies. */
    static const struct step deep[] = {{MIX, 3, 0, 1, 0}, {MIX, 4, 3, 1, 0}, {MIX, 5, 4, 2, 0}, {MIX, 6, 5, 0, 0},
                                       {MIX, 7, 6, 1, 0}, {MIX, 8, 7, 2, 0}, {MIX, 9, 8, 3, 0}};

/* Virtual time of one iteration, from before its first step to after its last. */
static uint64_t time_of_iteration(const struct step *steps, uint32_t count)
{
    CUevent begin, end;
    uint64_t nanoseconds;
    CUstream stream = streams_handle(state.stream);
    REQUIRE(driver.cuEventCreate(&begin, 0) == CUDA_SUCCESS && driver.cuEventCreate(&end, 0) == CUDA_SUCCESS);
    steps_begin();
    REQUIRE_EQUAL(driver.cuEventRecord(begin, stream), CUDA_SUCCESS);
    for (uint32_t i = 0; i < count; i++) {
        REQUIRE(steps_follow_one(&steps[i]));
    }
    REQUIRE_EQUAL(driver.cuEventRecord(end, stream), CUDA_SUCCESS);
    follow_finish();
    steps_check_held();
    steps_free_all();
    REQUIRE(streams_elapsed(begin, end, &nanoseconds));
    return nanoseconds;
}

/* Copies that a plan foresees go beside the kernels: they cost nothing where there is time for them. */
static void foreseen_copies_go_beside_the_kernels(const void *argument)
{
    static const struct plan_item items[] = {{PLAN_RUN, 0},     {PLAN_RUN, 1}, {PLAN_SWAP_OUT, 0},
                                             {PLAN_RUN, 2},     {PLAN_RUN, 3}, {PLAN_RUN, 4},
                                             {PLAN_SWAP_IN, 0}, {PLAN_RUN, 5}, {PLAN_RUN, 6}};
    (void)argument;
    steps_open_at(100, FAKE_LATE, LARGE / 900.0); /* a copy takes 900 ns, a step 1000 */
    INSTALL(deep, items, false);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t nanoseconds = time_of_iteration(deep, 7);
        REQUIRE(nanoseconds >= 7000 && nanoseconds < 7300);
    }
    REQUIRE_EQUAL(swap_count().out_bytes, 3 * LARGE);
    REQUIRE_EQUAL(swap_count().in_bytes, 3 * LARGE);
}
core_test(foreseen_copies_go_beside_the_kernels)

    /* ---- copies under way: whoever reads, replaces or leaves waits for them ---- */

    static const struct step reread[] = {{MIX, 3, 0, 1, 0}, {MIX, 4, 3, 1, 0}, {MIX, 5, 4, 2, 0}, {MIX, 6, 5, 4, 0}};

/* 3 comes back only for the replay that makes 4. */
static void a_replay_waits_for_what_comes_in(const void *argument)
{
    static const struct plan_item items[] = {{PLAN_RUN, 0},  {PLAN_RUN, 1},     {PLAN_SWAP_OUT, 0}, {PLAN_RUN, 2},
                                             {PLAN_DROP, 1}, {PLAN_SWAP_IN, 0}, {PLAN_REPLAY, 1},   {PLAN_RUN, 3}};
    steps_open(100, *(const enum fake_order *)argument);
    INSTALL(reread, items, true);
    for (uint32_t i = 0; i < 6; i++) {
        steps_follow_all();
        steps_check_held();
        steps_free_all();
        REQUIRE_EQUAL(proven_count().mismatched, 0);
        if (i == 2) {
            follow_end_probation();
        }
    }
    REQUIRE_EQUAL(proven_count().verified, 6);
}

static void test_a_replay_waits_for_what_comes_in(void **unused)
{
    (void)unused;
    for (enum fake_order order = FAKE_AT_ONCE; order <= FAKE_MIXED; order++) {
        assert_child(a_replay_waits_for_what_comes_in, &order);
    }
}

/* What comes in at the end, or is on its way when the plan is left, is behind the program's own stream: the program
 * may hand it to another one by an event of its own. */
static void the_program_orders_by_its_own_stream(const void *argument)
{
    static const struct plan_item items[] = {{PLAN_RUN, 0},     {PLAN_RUN, 1},      {PLAN_RUN, 2},
                                             {PLAN_RUN, 3},     {PLAN_SWAP_OUT, 2}, {PLAN_RUN, 4},
                                             {PLAN_SWAP_IN, 2}, {PLAN_RUN, 5},      {PLAN_RUN, 6}};
    uint32_t left_at = *(const uint32_t *)argument;
    steps_open(100, FAKE_LATE);
    INSTALL(deep, items, true);
    for (uint32_t i = 0; i < 4; i++) {
        steps_begin();
        for (uint32_t j = 0; j < left_at; j++) {
            REQUIRE(steps_follow_one(&deep[j]));
        }
        if (left_at < 7) {
            follow_leave();
        } else {
            follow_finish();
        }
        const struct allocation *five = steps_buffer(5);
        REQUIRE_EQUAL(space_place(five->home)->last.streams, 1ull << state.stream);
        driver.cuStreamSynchronize(streams_handle(state.stream)); /* and no other */
        REQUIRE(five->host != NULL || memcmp((const void *)five->base, state.expected[5], LARGE) == 0);
        steps_free_all();
    }
}

static void test_the_program_orders_by_its_own_stream(void **unused)
{
    (void)unused;
    for (uint32_t left_at = 4; left_at <= 7; left_at++) {
        assert_child(the_program_orders_by_its_own_stream, &left_at);
    }
}

/* ---- recipes that do not hold ---- */

static const struct step noisy[] = {{NOISE, 3, 0, 0, 0}, {MIX, 4, 3, 1, 0}, {MIX, 5, 4, 1, 0}, {MIX, 6, 5, 3, 0}};

static void another_result_is_put_right_in_probation(const void *argument)
{
    (void)argument;
    static uint64_t first[WORDS];
    steps_open(100, FAKE_LATE);
    INSTALL(noisy, chain_plan, true);
    REQUIRE(!proven_wants_new_plan());
    steps_begin();
    REQUIRE(steps_follow_one(&noisy[0]));
    driver.cuCtxSynchronize();
    memcpy(first, (const void *)steps_buffer(3)->base, LARGE);
    REQUIRE(steps_follow_one(&noisy[1]) && steps_follow_one(&noisy[2]) && steps_follow_one(&noisy[3]));
    follow_finish();
    driver.cuCtxSynchronize();
    REQUIRE(memcmp(first, (const void *)steps_buffer(3)->base, LARGE) == 0);
    REQUIRE(proven_wants_new_plan() && !proven_wants_new_plan());
    REQUIRE(learn_is_rejected(state.facts[NOISE].function));
    REQUIRE_EQUAL(learn_rejected(), 1);
    REQUIRE_EQUAL(proven_count().mismatched, 1);
}
core_test(another_result_is_put_right_in_probation)

    static void another_result_stops_the_process_afterwards(const void *argument)
{
    (void)argument;
    steps_open(100, FAKE_LATE);
    INSTALL(noisy, chain_plan, false);
    steps_begin();
    for (uint32_t i = 0; i < 4; i++) {
        REQUIRE(steps_follow_one(&noisy[i]));
    }
    follow_finish();
    proven_look(follow_script()); /* the device has not got there yet: nothing has left it either */
    driver.cuCtxSynchronize();
    proven_look(follow_script());
    REQUIRE(false);
}

static void test_another_result_stops_the_process_afterwards(void **unused)
{
    (void)unused;
    assert_int_equal(child_run(another_result_stops_the_process_afterwards, NULL), STOPPED_STATUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_dropped_version_is_gone_and_comes_back),
        cmocka_unit_test(test_after_probation_no_copy_is_kept),
        cmocka_unit_test(test_what_the_program_freed_may_be_kept_for_a_recipe),
        cmocka_unit_test(test_what_the_program_freed_may_be_rebuilt_aside),
        cmocka_unit_test(test_statistics_are_not_updated_twice),
        cmocka_unit_test(test_changes_in_place_are_replayed_in_order),
        cmocka_unit_test(test_a_plan_may_swap),
        cmocka_unit_test(test_foreseen_copies_go_beside_the_kernels),
        cmocka_unit_test(test_a_replay_waits_for_what_comes_in),
        cmocka_unit_test(test_the_program_orders_by_its_own_stream),
        cmocka_unit_test(test_another_result_is_put_right_in_probation),
        cmocka_unit_test(test_another_result_stops_the_process_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
