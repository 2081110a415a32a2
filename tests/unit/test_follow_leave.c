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

static const struct step counting[] = {{COUNT, 3, 0, 2, 0}, {MIX, 4, 3, 1, 0}, {MIX, 5, 4, 3, 0}};

/* ---- leaving ---- */

struct departure {
    const struct step *steps;
    uint32_t step_count;
    const struct plan_item *items;
    uint32_t item_count, after; /* steps that are followed */
    enum fake_order order;
    uint32_t frames; /* beside what is given; 0: plenty */
};

static void leaving_restores_everything(const void *argument)
{
    const struct departure *d = argument;
    steps_open(100, d->order);
    steps_install(d->steps, d->step_count, d->items, d->item_count, true);
    if (d->frames != 0) {
        REQUIRE(frames_charge(frames_available() - d->frames));
    }
    uint32_t before = steps_frames_in_use();
    steps_follow_all();
    steps_free_all();
    follow_end_probation();
    steps_begin();
    for (uint32_t i = 0; i < d->after; i++) {
        REQUIRE(steps_follow_one(&d->steps[i]));
    }
    follow_leave();
    REQUIRE(!follow_is_on());
    REQUIRE(frames_is_valid() && space_is_valid());
    REQUIRE(follow_trouble() != NULL);
    steps_check_held();
    proven_look(follow_script());
    steps_free_all();
    REQUIRE(steps_frames_in_use() <= before);
    steps_follow_all(); /* and it can be followed again */
    steps_check_held();
}

static void leave_everywhere(struct departure departure)
{
    for (departure.after = 0; departure.after <= departure.step_count; departure.after++) {
        for (departure.order = FAKE_AT_ONCE; departure.order <= FAKE_LATE; departure.order++) {
            assert_child(leaving_restores_everything, &departure);
        }
    }
}

#define DEPARTURE(s, p, count)                                                                                         \
    (struct departure)                                                                                                 \
    {                                                                                                                  \
        .steps = s, .step_count = sizeof(s) / sizeof *(s), .items = p, .item_count = sizeof(p) / sizeof *(p),          \
        .frames = count                                                                                                \
    }

static void test_a_chain_can_be_left_anywhere(void **unused)
{
    (void)unused;
    leave_everywhere(DEPARTURE(chain, chain_plan, 0));
}

static void test_changes_in_place_can_be_left_anywhere(void **unused)
{
    (void)unused;
    static const struct step steps[] = {
        {MIX, 3, 0, 1, 0},    {CHANGE, 3, 0, 0, 0}, {CHANGE, 3, 0, 0, 0}, {MIX, 4, 3, 1, 0},
        {CHANGE, 4, 0, 0, 0}, {MIX, 5, 4, 1, 0},    {MIX, 6, 5, 3, 0},    {MIX, 7, 6, 4, 1u << 3 | 1u << 5}};
    static const struct plan_item items[] = {{PLAN_RUN, 0},    {PLAN_RUN, 1},    {PLAN_RUN, 2},    {PLAN_RUN, 3},
                                             {PLAN_DROP, 2},   {PLAN_RUN, 4},    {PLAN_RUN, 5},    {PLAN_DROP, 4},
                                             {PLAN_REPLAY, 0}, {PLAN_REPLAY, 1}, {PLAN_REPLAY, 2}, {PLAN_RUN, 6},
                                             {PLAN_REPLAY, 3}, {PLAN_REPLAY, 4}, {PLAN_DROP, 2},   {PLAN_RUN, 7}};
    leave_everywhere(DEPARTURE(steps, items, 0));
    leave_everywhere(DEPARTURE(steps, items, 4 * LARGE / CORE_FRAME));
}

static void test_counting_can_be_left_anywhere(void **unused)
{
    (void)unused;
    static const struct plan_item items[] = {{PLAN_RUN, 0},  {PLAN_DROP, 0},   {PLAN_REPLAY, 0}, {PLAN_RUN, 1},
                                             {PLAN_DROP, 0}, {PLAN_REPLAY, 0}, {PLAN_RUN, 2}};
    leave_everywhere(DEPARTURE(counting, items, 0));
}

/* 4 depends on what 3 was before the same operation changed it. */
static void test_what_an_operation_changes_beside_can_be_left_anywhere(void **unused)
{
    (void)unused;
    static const struct step steps[] = {{MIX, 3, 0, 1, 0}, {TURN, 4, 0, 3, 0}, {MIX, 5, 3, 1, 0}, {MIX, 6, 4, 5, 0}};
    enum { THREE, FOUR, THREE_TURNED }; /* versions */
    static const struct plan_item drops[] = {{PLAN_RUN, 0},    {PLAN_RUN, 1},    {PLAN_DROP, FOUR}, {PLAN_RUN, 2},
                                             {PLAN_REPLAY, 0}, {PLAN_REPLAY, 1}, {PLAN_RUN, 3}};
    static const struct plan_item swaps[] = {{PLAN_RUN, 0},
                                             {PLAN_RUN, 1},
                                             {PLAN_DROP, FOUR},
                                             {PLAN_SWAP_OUT, THREE_TURNED},
                                             {PLAN_SWAP_IN, THREE_TURNED},
                                             {PLAN_RUN, 2},
                                             {PLAN_SWAP_OUT, THREE_TURNED},
                                             {PLAN_REPLAY, 0},
                                             {PLAN_REPLAY, 1},
                                             {PLAN_RUN, 3}};
    static const struct plan_item both[] = {
        {PLAN_RUN, 0},    {PLAN_RUN, 1},    {PLAN_DROP, FOUR}, {PLAN_DROP, THREE_TURNED},
        {PLAN_REPLAY, 0}, {PLAN_REPLAY, 1}, {PLAN_RUN, 2},     {PLAN_RUN, 3}};
    leave_everywhere(DEPARTURE(steps, drops, 0));
    leave_everywhere(DEPARTURE(steps, swaps, 0));
    leave_everywhere(DEPARTURE(steps, both, 0));
}

/* 3 is dropped for good, though the program holds it still, and can no longer be computed: 0 has changed. */
static void an_expired_recipe(const void *mode)
{
    static const struct step steps[] = {{MIX, 3, 0, 1, 0}, {MIX, 4, 3, 1, 0}, {CHANGE, 0, 0, 0, 0}, {MIX, 5, 4, 1, 0}};
    static const struct plan_item items[] = {
        {PLAN_RUN, 0}, {PLAN_RUN, 1}, {PLAN_DROP, 0}, {PLAN_RUN, 2}, {PLAN_RUN, 3}};
    fake_config.verify_mode = *(const enum verify_mode *)mode;
    steps_open(100, FAKE_AT_ONCE);
    INSTALL(steps, items, false);
    steps_begin();
    REQUIRE(steps_follow_one(&steps[0]) && steps_follow_one(&steps[1]) && steps_follow_one(&steps[2]));
    REQUIRE(steps_buffer(3)->is_dropped);
    follow_leave();
    driver.cuCtxSynchronize();
    proven_look(follow_script());
    REQUIRE(false);
}

static void test_an_expired_recipe_stops_the_process(void **unused)
{
    (void)unused;
    for (enum verify_mode mode = VERIFY_ALWAYS; mode <= VERIFY_SAMPLE; mode++) {
        assert_int_equal(child_run(an_expired_recipe, &mode), STOPPED_STATUS);
    }
}

static void another_operation_leaves(const void *argument)
{
    (void)argument;
    steps_open(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    steps_begin();
    REQUIRE(steps_follow_one(&chain[0]) && steps_follow_one(&chain[1]));
    static const struct step other = {CHANGE, 4, 0, 0, 0};
    REQUIRE(!steps_follow_one(&other));
    REQUIRE(!follow_is_on());
    steps_check_held();
}
core_test(another_operation_leaves)

    /* The same operation on other buffers than in the recording is another operation. */
    static void other_buffers_leave(const void *argument)
{
    (void)argument;
    steps_open(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    steps_begin();
    REQUIRE(steps_follow_one(&chain[0]) && steps_follow_one(&chain[1]));
    static const struct step other = {MIX, 5, 3, 2, 0}; /* reads 3 where the recording read 4 */
    REQUIRE(!steps_follow_one(&other));
    REQUIRE(!follow_is_on());
    steps_check_held();
}
core_test(other_buffers_leave)

    static void pinning_what_a_plan_drops_leaves(const void *argument)
{
    (void)argument;
    steps_open(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    steps_begin();
    REQUIRE(steps_follow_one(&chain[0]) && steps_follow_one(&chain[1]));
    space_pin(steps_buffer(3), "a test");
    REQUIRE(!steps_follow_one(&chain[2]));
    REQUIRE_EQUAL(strcmp(follow_trouble(), FOLLOW_PINNED), 0);
    REQUIRE(steps_is_resident(3));
    steps_check_held();
}
core_test(pinning_what_a_plan_drops_leaves)

    static void an_iteration_begins_only_where_it_did(const void *argument)
{
    (void)argument;
    steps_open(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    uint64_t signature = state.script.operations[0].signature;
    REQUIRE(!follow_matches_start(signature)); /* the live set lacks the first output */
    steps_hold(3);
    REQUIRE(follow_matches_start(signature));
    REQUIRE(!follow_matches_start(signature + 1));
    REQUIRE(follow_begin(state.stream));
    REQUIRE(!follow_matches_start(signature)); /* one is on */
    follow_leave();
    follow_install(NULL, false, false);
    REQUIRE(!follow_matches_start(signature));
    REQUIRE(follow_script() == NULL);
}
core_test(an_iteration_begins_only_where_it_did)

    static void what_is_given_comes_in_at_the_beginning(const void *argument)
{
    (void)argument;
    steps_open(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    REQUIRE(reside_evict(steps_buffer(1), state.stream));
    REQUIRE(!steps_is_resident(1));
    steps_follow_all();
    REQUIRE(steps_is_resident(1) && steps_buffer(1)->host == NULL);
    steps_check_held();
}
core_test(what_is_given_comes_in_at_the_beginning)

    /* 0 counts in what is given: its replay works on a copy of that, in memory that is given back when a call is
       refused. */
    static const struct step counted[] = {{COUNT, 3, 0, 1, 0}, {MIX, 4, 3, 2, 0}, {MIX, 5, 4, 2, 0}, {MIX, 6, 5, 3, 0}};

static void a_refused_replay_is_undone(const void *argument)
{
    static const struct plan_item items[] = {{PLAN_RUN, 0}, {PLAN_RUN, 1},    {PLAN_DROP, 0},
                                             {PLAN_RUN, 2}, {PLAN_REPLAY, 0}, {PLAN_RUN, 3}};
    steps_open(100, FAKE_LATE);
    INSTALL(counted, items, true);
    steps_begin();
    REQUIRE(steps_follow_one(&counted[0]) && steps_follow_one(&counted[1]) && steps_follow_one(&counted[2]));
    fake_fail(*(const uint64_t *)argument, false);
    bool is_done = steps_follow_one(&counted[3]);
    bool has_failed = fake_has_failed();
    fake_fail(0, false);
    REQUIRE(is_done || has_failed);
    driver.cuCtxSynchronize(); /* what was under way has somewhere to go */
    if (is_done) {
        follow_finish();
    }
    steps_check_held();
    _exit(has_failed ? 0 : 99);
}

static void test_a_refused_replay_is_undone(void **unused)
{
    (void)unused;
    int status = 0;
    uint64_t nth = 1;
    for (; nth < 200 && status != 99; nth++) {
        status = child_run(a_refused_replay_is_undone, &nth);
        if (status != 0 && status != 99 && status != STOPPED_STATUS && status != REFUSED_STATUS)
            fail_msg("call %llu refused: status %d", (unsigned long long)nth, status);
    }
    assert_in_range(nth, 8, 199);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_chain_can_be_left_anywhere),
        cmocka_unit_test(test_changes_in_place_can_be_left_anywhere),
        cmocka_unit_test(test_counting_can_be_left_anywhere),
        cmocka_unit_test(test_what_an_operation_changes_beside_can_be_left_anywhere),
        cmocka_unit_test(test_an_expired_recipe_stops_the_process),
        cmocka_unit_test(test_another_operation_leaves),
        cmocka_unit_test(test_other_buffers_leave),
        cmocka_unit_test(test_pinning_what_a_plan_drops_leaves),
        cmocka_unit_test(test_an_iteration_begins_only_where_it_did),
        cmocka_unit_test(test_what_is_given_comes_in_at_the_beginning),
        cmocka_unit_test(test_a_refused_replay_is_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
