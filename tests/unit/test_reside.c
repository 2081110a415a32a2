/* links: tests/unit/fake_%.c shim/reside.c shim/hidden.c shim/proof.c shim/swap.c shim/space.c shim/frames.c
 * shim/streams.c shim/store.c shim/say.c */
#include "tests/unit/core.h"

#include "shim/reside.h"
#include "shim/swap.h"

#define COUNT 16u

static uint32_t held[COUNT];
static uint64_t values[COUNT];

static void open_memory(uint32_t cap, bool is_strict, enum fake_order order)
{
    core_open_device(cap, cap, is_strict, order);
    REQUIRE(space_open());
}

static struct allocation *at(uint32_t i)
{
    return space_get(held[i]);
}

static void allocate(uint32_t i, uint64_t bytes)
{
    CUresult result;
    held[i] = space_allocate(bytes, 0, &result);
    REQUIRE(held[i] != SPACE_NONE);
}

static bool bring(uint32_t i, uint32_t stream)
{
    CUresult result;
    bool is_done = reside_content(at(i), stream, &result);
    REQUIRE(frames_is_valid() && space_is_valid());
    REQUIRE_EQUAL(is_done, result == CUDA_SUCCESS);
    return is_done;
}

static void write_to(uint32_t i, uint64_t value, uint32_t stream)
{
    struct place *home = space_place(at(i)->home);
    streams_order(home->last.streams, stream);
    core_fill(at(i)->base, at(i)->bytes, value, stream);
    last_use_note(&home->last, stream);
    at(i)->is_fresh = false;
    values[i] = value;
}

static bool is_resident(uint32_t i)
{
    return space_place(at(i)->home)->is_resident;
}

/* `count` allocations of `pages` pages each, all written, under a cap of `cap` frames. */
static void fill_memory(uint32_t cap, uint32_t count, uint32_t pages)
{
    open_memory(cap, false, FAKE_AT_ONCE);
    for (uint32_t i = 0; i < count; i++) {
        allocate(i, pages * CORE_FRAME);
        REQUIRE(bring(i, 0));
        write_to(i, i * 1000 + 1, 0);
    }
}

static void the_longest_unused_goes_first(const void *argument)
{
    (void)argument;
    fill_memory(12, 4, 3);
    REQUIRE(bring(0, 0)); /* now 1 is the oldest */
    allocate(4, 3 * CORE_FRAME);
    REQUIRE(bring(4, 0));
    REQUIRE(is_resident(0) && !is_resident(1) && is_resident(2) && is_resident(3));
    REQUIRE(at(1)->host != NULL);
    REQUIRE_EQUAL(swap_count().out_bytes, 3 * CORE_FRAME);
    REQUIRE(bring(1, 0)); /* 2 goes */
    REQUIRE(!is_resident(2) && is_resident(1) && at(1)->host == NULL);
    REQUIRE(core_is_filled(at(1)->base, at(1)->bytes, 1001));
    REQUIRE_EQUAL(swap_count().in_bytes, 3 * CORE_FRAME);
}
core_test(the_longest_unused_goes_first)

    static void no_more_goes_than_is_needed(const void *argument)
{
    (void)argument;
    fill_memory(12, 4, 3);
    REQUIRE(reside_make_room(2, 0));
    REQUIRE_EQUAL(frames_available(), 3);
    REQUIRE(reside_make_room(3, 0));
    REQUIRE_EQUAL(frames_available(), 3);
    REQUIRE(reside_make_room(12, 0));
    REQUIRE_EQUAL(frames_available(), 12);
    REQUIRE(!reside_make_room(13, 0));
}
core_test(no_more_goes_than_is_needed)

    static void what_is_fresh_costs_no_copy(const void *argument)
{
    (void)argument;
    open_memory(12, false, FAKE_AT_ONCE);
    allocate(0, 3 * CORE_FRAME);
    REQUIRE(bring(0, 0));
    REQUIRE(is_resident(0));
    REQUIRE_EQUAL(swap_count().in_bytes, 0);
    REQUIRE(bring(0, 0));
    REQUIRE_EQUAL(frames_available(), 9);
}
core_test(what_is_fresh_costs_no_copy)

    static void locked_and_pinned_contents_stay(const void *argument)
{
    (void)argument;
    fill_memory(12, 4, 3);
    at(0)->locks = 1;
    space_pin(at(1), "a test");
    allocate(4, 3 * CORE_FRAME);
    REQUIRE(bring(4, 0));
    REQUIRE(is_resident(0) && is_resident(1) && !is_resident(2));
    REQUIRE_EQUAL(reside_unmovable_bytes(), 6 * CORE_FRAME);
    REQUIRE(!reside_make_room(7, 0));
    at(0)->locks = 0;
    REQUIRE(reside_make_room(7, 0));
    REQUIRE(!is_resident(0));
    REQUIRE_EQUAL(reside_unmovable_bytes(), 3 * CORE_FRAME);
}
core_test(locked_and_pinned_contents_stay)

    static void pieces_of_slabs_stay(const void *argument)
{
    (void)argument;
    fill_memory(4, 1, 3);
    allocate(1, 64);
    REQUIRE(bring(1, 0));
    write_to(1, 5, 0);
    REQUIRE(!reside_make_room(4, 0));
    REQUIRE(!is_resident(0));
    REQUIRE(core_is_filled(at(1)->base, 64, 5));
    REQUIRE_EQUAL(reside_unmovable_bytes(), CORE_FRAME);
}
core_test(pieces_of_slabs_stay)

    static void nothing_goes_while_it_is_forbidden(const void *argument)
{
    (void)argument;
    fill_memory(12, 4, 3);
    allocate(4, 3 * CORE_FRAME);
    reside_allow_eviction(false);
    CUresult result;
    REQUIRE(!reside_content(at(4), 0, &result));
    REQUIRE_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE_EQUAL(swap_count().out_bytes, 0);
    REQUIRE(bring(2, 0)); /* what is there is there */
    reside_allow_eviction(true);
    REQUIRE(bring(4, 0));
}
core_test(nothing_goes_while_it_is_forbidden)

    static void the_device_may_have_less_than_the_cap(const void *argument)
{
    (void)argument;
    open_memory(20, false, FAKE_AT_ONCE);
    CUdeviceptr taken;
    REQUIRE_EQUAL(driver.cuMemAlloc_v2(&taken, 12 * CORE_FRAME), CUDA_SUCCESS);
    for (uint32_t i = 0; i < 6; i++) {
        allocate(i, 3 * CORE_FRAME);
        REQUIRE(bring(i, 0)); /* 8 frames are there: two fit, then others go */
        write_to(i, i * 1000 + 1, 0);
    }
    for (uint32_t i = 0; i < 6; i++) {
        REQUIRE(bring(i, 0));
        REQUIRE(core_is_filled(at(i)->base, at(i)->bytes, values[i]));
    }
}
core_test(the_device_may_have_less_than_the_cap)

    /* A copy that is refused leaves the content where it was. */
    static void refusals_lose_nothing(const void *argument)
{
    (void)argument;
    fill_memory(12, 8, 3);
    for (uint64_t round = 0, nth = 1; round < 300; round++, nth = nth % 9 + 1) {
        uint32_t i = (uint32_t)(round * 5 % 8);
        CUresult result;
        fake_fail(nth, false);
        bool is_done = reside_content(at(i), 0, &result);
        fake_fail(0, false);
        REQUIRE(frames_is_valid() && space_is_valid());
        if (!is_done) {
            REQUIRE(result != CUDA_SUCCESS);
            REQUIRE(bring(i, 0));
        }
        REQUIRE(core_is_filled(at(i)->base, at(i)->bytes, values[i]));
    }
}
core_test(refusals_lose_nothing)

    /* ---- random ---- */

    struct storm {
    enum fake_order order;
    bool is_strict;
    uint64_t seed;
};

static void use_random(uint64_t *random, uint32_t stream, uint64_t value)
{
    uint32_t i = core_below(random, COUNT);
    if (held[i] == SPACE_NONE) {
        allocate(i, (1 + core_below(random, 5)) * CORE_FRAME - 8 * core_below(random, 100));
        values[i] = 0;
        return;
    }
    REQUIRE(bring(i, stream));
    if (values[i] != 0 && core_below(random, 3) == 0) {
        streams_finished(&space_place(at(i)->home)->last);
        REQUIRE(core_is_filled(at(i)->base, at(i)->bytes, values[i]));
    } else {
        write_to(i, value, stream);
    }
}

static void end_random(uint64_t *random)
{
    uint32_t i = core_below(random, COUNT);
    if (held[i] != SPACE_NONE) {
        swap_release(at(i)->host);
        space_give_place(space_end(held[i]));
        held[i] = SPACE_NONE;
    }
}

/* Far more is held than fits. Contents are kept whatever is used in which order, on whatever stream. */
static void any_use_finds_its_content(const void *argument)
{
    const struct storm *storm = argument;
    uint64_t random = storm->seed;
    uint32_t streams[3];
    open_memory(14, storm->is_strict, storm->order);
    for (uint32_t i = 0; i < COUNT; i++) {
        held[i] = SPACE_NONE;
    }
    for (uint32_t i = 0; i < 3; i++) {
        streams[i] = streams_number(fake_stream());
    }
    for (uint64_t step = 1; step < 1500; step++) {
        use_random(&random, streams[core_below(&random, 3)], step * 10000);
        if (core_below(&random, 10) == 0) {
            end_random(&random);
        }
        REQUIRE(fake_count().frames <= 14);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        if (held[i] != SPACE_NONE && values[i] != 0) {
            REQUIRE(bring(i, streams[0]));
            streams_drain(streams[0]);
            streams_finished(&space_place(at(i)->home)->last);
            REQUIRE(core_is_filled(at(i)->base, at(i)->bytes, values[i]));
        }
    }
    REQUIRE(swap_count().out_bytes > 100 * CORE_FRAME);
}

static void test_any_use_finds_its_content(void **state)
{
    (void)state;
    for (enum fake_order order = FAKE_AT_ONCE; order <= FAKE_MIXED; order++) {
        const struct storm storms[] = {{order, false, 41}, {order, true, 42}, {order, false, 43}};
        for (uint32_t i = 0; i < 3; i++) {
            assert_child(any_use_finds_its_content, &storms[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_unused_goes_first),
        cmocka_unit_test(test_no_more_goes_than_is_needed),
        cmocka_unit_test(test_what_is_fresh_costs_no_copy),
        cmocka_unit_test(test_locked_and_pinned_contents_stay),
        cmocka_unit_test(test_pieces_of_slabs_stay),
        cmocka_unit_test(test_nothing_goes_while_it_is_forbidden),
        cmocka_unit_test(test_the_device_may_have_less_than_the_cap),
        cmocka_unit_test(test_refusals_lose_nothing),
        cmocka_unit_test(test_any_use_finds_its_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
