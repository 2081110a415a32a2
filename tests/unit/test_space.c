/* links: tests/unit/fake_%.c shim/space.c shim/frames.c shim/frames_assign.c policy/assign.c shim/streams.c
 * shim/store.c shim/say.c */
#include "tests/unit/core.h"

#include "shim/space.h"

#define UNIT     512u /* the driver's promise */
#define MAX_HELD 400u

static void open_space(uint32_t cap)
{
    core_open_device(cap, cap, false, FAKE_AT_ONCE);
    REQUIRE(space_open());
}

static uint32_t allocate(uint64_t bytes)
{
    CUresult result;
    uint32_t index = space_allocate(bytes, 0, &result);
    REQUIRE(index != SPACE_NONE);
    REQUIRE_EQUAL(result, CUDA_SUCCESS);
    REQUIRE(space_is_valid());
    return index;
}

static void give_up(uint32_t index)
{
    space_give_place(space_end(index));
    REQUIRE(space_is_valid());
    REQUIRE(frames_is_valid());
}

static CUdeviceptr base_of(uint32_t index)
{
    return space_get(index)->base;
}

/* ---- allocations ---- */

static void a_fresh_allocation_has_nothing_yet(const void *argument)
{
    (void)argument;
    open_space(64);
    uint32_t index = allocate(10 * CORE_FRAME);
    const struct allocation *allocation = space_get(index);
    const struct place *home = space_place(allocation->home);
    REQUIRE(allocation->is_live && allocation->is_fresh && !allocation->is_pinned && !allocation->is_dropped);
    REQUIRE(allocation->host == NULL);
    REQUIRE_EQUAL(allocation->index, index);
    REQUIRE_EQUAL(allocation->bytes, 10 * CORE_FRAME);
    REQUIRE_EQUAL(allocation->base, home->base);
    REQUIRE_EQUAL(home->page_count, 10);
    REQUIRE(!home->is_resident);
    REQUIRE_EQUAL(fake_count().frames, 0);
}
core_test(a_fresh_allocation_has_nothing_yet)

    static void half_a_frame_is_where_pages_begin(const void *argument)
{
    (void)argument;
    open_space(64);
    REQUIRE(space_is_small(1) && space_is_small(CORE_FRAME / 2 - 1));
    REQUIRE(!space_is_small(CORE_FRAME / 2));
    REQUIRE_EQUAL(space_place(space_get(allocate(CORE_FRAME / 2 - 1))->home)->page_count, 0);
    REQUIRE_EQUAL(space_place(space_get(allocate(CORE_FRAME / 2))->home)->page_count, 1);
    REQUIRE_EQUAL(space_place(space_get(allocate(CORE_FRAME + 1))->home)->page_count, 2);
}
core_test(half_a_frame_is_where_pages_begin)

    static void footprints_are_what_is_taken(const void *argument)
{
    (void)argument;
    open_space(64);
    REQUIRE_EQUAL(space_allocation_footprint(1), UNIT);
    REQUIRE_EQUAL(space_allocation_footprint(UNIT), UNIT);
    REQUIRE_EQUAL(space_allocation_footprint(UNIT + 1), 2 * UNIT);
    REQUIRE_EQUAL(space_allocation_footprint(CORE_FRAME / 2), CORE_FRAME);
    REQUIRE_EQUAL(space_allocation_footprint(CORE_FRAME), CORE_FRAME);
    REQUIRE_EQUAL(space_allocation_footprint(CORE_FRAME + 1), 2 * CORE_FRAME);
}
core_test(footprints_are_what_is_taken)

    static void addresses_lead_to_their_allocation(const void *argument)
{
    (void)argument;
    open_space(64);
    uint32_t large = allocate(3 * CORE_FRAME), small = allocate(700), last = allocate(UNIT);
    REQUIRE_EQUAL(space_find(base_of(large)), large);
    REQUIRE_EQUAL(space_find(base_of(large) + 3 * CORE_FRAME - 1), large);
    REQUIRE_EQUAL(space_find(base_of(small)), small);
    REQUIRE_EQUAL(space_find(base_of(small) + 699), small);
    REQUIRE_EQUAL(space_find(base_of(last) + UNIT - 1), last);
    CUdeviceptr begin, end;
    frames_arena(&begin, &end);
    REQUIRE_EQUAL(space_find(begin - 1), SPACE_NONE);
    REQUIRE_EQUAL(space_find(end), SPACE_NONE);
    REQUIRE_EQUAL(space_find(end - 1), SPACE_NONE);
    REQUIRE_EQUAL(space_find(0), SPACE_NONE);
    CUdeviceptr was = base_of(large);
    give_up(large);
    REQUIRE_EQUAL(space_find(was), SPACE_NONE);
}
core_test(addresses_lead_to_their_allocation)

    static void places_are_not_allocations(const void *argument)
{
    (void)argument;
    open_space(64);
    CUresult result;
    uint32_t large = space_take_place(2 * CORE_FRAME, 0, &result), small = space_take_place(100, 0, &result);
    REQUIRE(large != SPACE_NONE && small != SPACE_NONE);
    REQUIRE(!space_place(large)->is_resident && space_place(small)->is_resident);
    REQUIRE_EQUAL(space_find(space_place(large)->base), SPACE_NONE);
    REQUIRE_EQUAL(space_find(space_place(small)->base), SPACE_NONE);
    space_give_place(large);
    space_give_place(small);
    REQUIRE_EQUAL(space_slab_frames(), 0);
    REQUIRE(frames_is_valid());
}
core_test(places_are_not_allocations)

    static void a_detached_home_outlives_its_allocation(const void *argument)
{
    (void)argument;
    open_space(64);
    CUresult result;
    uint32_t index = allocate(2 * CORE_FRAME);
    CUdeviceptr base = base_of(index);
    REQUIRE(frames_acquire(space_place(space_get(index)->home), 0, &result));
    core_fill(base, 2 * CORE_FRAME, 5, 0);
    uint32_t place = space_end(index);
    REQUIRE(space_place(place)->is_resident);
    uint32_t next = allocate(2 * CORE_FRAME);
    REQUIRE(base_of(next) != base); /* the addresses are not free */
    REQUIRE(core_is_filled(base, 2 * CORE_FRAME, 5));
    space_give_place(place);
    REQUIRE_EQUAL(base_of(allocate(2 * CORE_FRAME)), base);
}
core_test(a_detached_home_outlives_its_allocation)

    static void serials_are_never_used_again(const void *argument)
{
    (void)argument;
    open_space(64);
    uint64_t last = 0;
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t index = allocate(100 + i * 100);
        REQUIRE(space_get(index)->serial > last);
        last = space_get(index)->serial;
        give_up(index);
    }
    REQUIRE_EQUAL(space_count(), 1);
}
core_test(serials_are_never_used_again)

    /* ---- slabs ---- */

    static void small_ones_share_frames(const void *argument)
{
    (void)argument;
    open_space(64);
    uint32_t held[24];
    for (uint32_t i = 0; i < 24; i++) {
        held[i] = allocate(UNIT);
    }
    REQUIRE_EQUAL(space_slab_frames(), 3); /* 8 units to a frame */
    REQUIRE_EQUAL(fake_count().frames, 3);
    for (uint32_t i = 0; i < 24; i += 2) {
        give_up(held[i]);
    }
    REQUIRE_EQUAL(space_slab_frames(), 3); /* while any piece is in use */
    for (uint32_t i = 0; i < 12; i++) {
        allocate(UNIT);
    }
    REQUIRE_EQUAL(space_slab_frames(), 3); /* the holes were used */
    for (uint32_t i = 0; i < space_count(); i++) {
        if (space_get(i)->is_live) {
            give_up(i);
        }
    }
    REQUIRE_EQUAL(space_slab_frames(), 0);
    REQUIRE_EQUAL(frames_available(), 64);
}
core_test(small_ones_share_frames)

    static void pieces_of_several_units_do_not_cross_frames(const void *argument)
{
    (void)argument;
    open_space(64);
    for (uint32_t i = 0; i < 9; i++) {
        CUdeviceptr base = base_of(allocate(3 * UNIT));
        REQUIRE_EQUAL(base / CORE_FRAME, (base + 3 * UNIT - 1) / CORE_FRAME);
    }
    REQUIRE_EQUAL(space_slab_frames(), 5); /* two to a frame, two units left in each */
    for (uint32_t i = 0; i < 5; i++) {
        allocate(2 * UNIT);
    }
    REQUIRE_EQUAL(space_slab_frames(), 5);
}
core_test(pieces_of_several_units_do_not_cross_frames)

    static void no_frame_for_a_slab_is_out_of_memory(const void *argument)
{
    (void)argument;
    open_space(2);
    CUresult result;
    for (uint32_t i = 0; i < 16; i++) {
        allocate(UNIT);
    }
    REQUIRE_EQUAL(space_allocate(UNIT, 0, &result), SPACE_NONE);
    REQUIRE_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(space_is_valid());
    give_up(5);
    allocate(UNIT);
}
core_test(no_frame_for_a_slab_is_out_of_memory)

    /* A freed piece is used again on another stream only behind what the first stream did with it. */
    static void a_piece_changes_streams_in_order(const void *argument)
{
    (void)argument;
    core_open_device(8, 8, false, FAKE_LATE);
    REQUIRE(space_open());
    uint32_t a = streams_number(fake_stream()), b = streams_number(fake_stream());
    CUresult result;
    uint32_t first = space_allocate(UNIT, a, &result), keeper = space_allocate(UNIT, a, &result);
    CUdeviceptr base = base_of(first);
    REQUIRE(keeper != SPACE_NONE);
    core_fill(base, UNIT, 1, a);
    last_use_note(&space_place(space_get(first)->home)->last, a);
    give_up(first);
    uint32_t second = space_allocate(UNIT, b, &result);
    REQUIRE_EQUAL(base_of(second), base);
    core_fill(base, UNIT, 1000, b);
    streams_drain(b);
    driver.cuCtxSynchronize();
    REQUIRE(core_is_filled(base, UNIT, 1000));
}
core_test(a_piece_changes_streams_in_order)

    /* ---- the live set ---- */

    static void the_signature_does_not_depend_on_order(const void *argument)
{
    (void)argument;
    open_space(64);
    static const uint64_t sizes[] = {100, 5000, 100, 70000, 8192, 12000};
    uint64_t empty = space_live_signature(), forward, backward;
    uint32_t held[6];
    for (uint32_t i = 0; i < 6; i++) {
        held[i] = allocate(sizes[i]);
    }
    forward = space_live_signature();
    REQUIRE(forward != empty);
    for (uint32_t i = 0; i < 6; i++) {
        give_up(held[(i * 5 + 2) % 6]);
    }
    REQUIRE_EQUAL(space_live_signature(), empty);
    REQUIRE_EQUAL(space_live_bytes(), 0);
    for (uint32_t i = 6; i-- > 0;) {
        allocate(sizes[i]);
    }
    backward = space_live_signature();
    REQUIRE_EQUAL(forward, backward);
    allocate(100);
    REQUIRE(space_live_signature() != forward); /* how many of a size counts */
}
core_test(the_signature_does_not_depend_on_order)

    static void pinned_pages_and_slabs_are_unmovable(const void *argument)
{
    (void)argument;
    open_space(64);
    uint32_t large = allocate(5 * CORE_FRAME), small = allocate(100);
    REQUIRE_EQUAL(space_unmovable_frames(), 1);
    space_pin(space_get(large), "a test");
    space_pin(space_get(large), "again");
    space_pin(space_get(small), "a test");
    REQUIRE_EQUAL(space_unmovable_frames(), 6);
    REQUIRE_EQUAL(strcmp(space_get(large)->pin_reason, "a test"), 0);
    give_up(large);
    REQUIRE_EQUAL(space_unmovable_frames(), 1);
    give_up(small);
    REQUIRE_EQUAL(space_unmovable_frames(), 0);
}
core_test(pinned_pages_and_slabs_are_unmovable)

    /* ---- the order of use ---- */

    static void expect_order(const uint32_t *expected, uint32_t count)
{
    uint32_t at = space_oldest();
    for (uint32_t i = 0; i < count; i++) {
        REQUIRE_EQUAL(at, expected[i]);
        at = space_next_newer(at);
    }
    REQUIRE_EQUAL(at, SPACE_NONE);
}

/* Against a plain list. */
static void the_list_is_in_order_of_use(const void *argument)
{
    (void)argument;
    open_space(64);
    uint32_t list[12], count = 0;
    uint64_t random = 5;
    for (uint32_t i = 0; i < 12; i++) {
        allocate(CORE_FRAME);
    }
    for (uint32_t step = 0; step < 2000; step++) {
        uint32_t index = core_below(&random, 12);
        bool is_touched = core_below(&random, 3) != 0;
        is_touched ? space_touch(space_get(index)) : space_untrack(space_get(index));
        for (uint32_t i = 0; i < count; i++) {
            if (list[i] == index) {
                memmove(&list[i], &list[i + 1], (count - i - 1) * sizeof *list);
                count--;
                break;
            }
        }
        if (is_touched) {
            list[count++] = index;
        }
        expect_order(list, count);
        REQUIRE(space_is_valid());
    }
}
core_test(the_list_is_in_order_of_use)

    static void a_freed_allocation_is_not_listed(const void *argument)
{
    (void)argument;
    open_space(64);
    uint32_t a = allocate(CORE_FRAME), b = allocate(CORE_FRAME), c = allocate(CORE_FRAME);
    space_touch(space_get(a));
    space_touch(space_get(b));
    space_touch(space_get(c));
    give_up(b);
    expect_order((uint32_t[]){a, c}, 2);
    give_up(c);
    expect_order(&a, 1);
    give_up(a);
    expect_order(NULL, 0);
}
core_test(a_freed_allocation_is_not_listed)

    /* ---- random ---- */

    struct held {
    uint32_t index;
    uint64_t bytes, base, serial;
};

static void check_held(const struct held *held, uint32_t count)
{
    uint64_t footprint = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct allocation *allocation = space_get(held[i].index);
        REQUIRE(allocation->is_live);
        REQUIRE_EQUAL(allocation->base, held[i].base);
        REQUIRE_EQUAL(allocation->serial, held[i].serial);
        REQUIRE_EQUAL(held[i].base % UNIT, 0);
        REQUIRE_EQUAL(space_find(held[i].base), held[i].index);
        REQUIRE_EQUAL(space_find(held[i].base + held[i].bytes - 1), held[i].index);
        REQUIRE_EQUAL(space_find(held[i].base + held[i].bytes / 2), held[i].index);
        footprint += space_allocation_footprint(held[i].bytes);
    }
    REQUIRE_EQUAL(space_live_bytes(), footprint);
}

static uint64_t random_size(uint64_t *random)
{
    switch (core_below(random, 3)) {
    case 0:
        return 1 + core_below(random, CORE_FRAME / 2);
    case 1:
        return 1 + core_below(random, 6 * CORE_FRAME);
    default:
        return UNIT * (1 + core_below(random, 4));
    }
}

static void any_sequence_keeps_addresses_apart(const void *argument)
{
    static struct held held[MAX_HELD];
    uint64_t random = 1 + *(const uint64_t *)argument;
    uint32_t count = 0;
    open_space(400);
    uint64_t empty = space_live_signature();
    for (uint32_t step = 0; step < 3000; step++) {
        if (count < MAX_HELD && core_below(&random, 100) < (step < 1500 ? 70u : 40u)) {
            uint64_t bytes = random_size(&random);
            uint32_t index = allocate(bytes);
            held[count++] = (struct held){index, bytes, base_of(index), space_get(index)->serial};
        } else if (count > 0) {
            uint32_t i = core_below(&random, count);
            give_up(held[i].index);
            held[i] = held[--count];
        }
        if (step % 20 == 0) {
            check_held(held, count);
        }
    }
    check_held(held, count);
    while (count > 0) {
        give_up(held[--count].index);
    }
    REQUIRE_EQUAL(space_live_bytes(), 0);
    REQUIRE_EQUAL(space_live_signature(), empty);
    REQUIRE_EQUAL(space_slab_frames(), 0);
    REQUIRE_EQUAL(frames_available(), 400);
}

static void test_any_sequence_keeps_addresses_apart(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        assert_child(any_sequence_keeps_addresses_apart, &seed);
    }
}

/* No two held allocations overlap: every byte that is written stays. */
static void contents_do_not_meet(const void *argument)
{
    (void)argument;
    open_space(200);
    uint64_t random = 11;
    uint32_t held[60];
    CUresult result;
    for (uint32_t i = 0; i < 60; i++) {
        held[i] = allocate((1 + core_below(&random, 3 * CORE_FRAME)) / 8 * 8 + 8);
        REQUIRE(frames_acquire(space_place(space_get(held[i])->home), 0, &result));
        core_fill(base_of(held[i]), space_get(held[i])->bytes, i * 1000000ull, 0);
    }
    for (uint32_t i = 0; i < 60; i++) {
        REQUIRE(core_is_filled(base_of(held[i]), space_get(held[i])->bytes, i * 1000000ull));
    }
}
core_test(contents_do_not_meet)

    int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fresh_allocation_has_nothing_yet),
        cmocka_unit_test(test_half_a_frame_is_where_pages_begin),
        cmocka_unit_test(test_footprints_are_what_is_taken),
        cmocka_unit_test(test_addresses_lead_to_their_allocation),
        cmocka_unit_test(test_places_are_not_allocations),
        cmocka_unit_test(test_a_detached_home_outlives_its_allocation),
        cmocka_unit_test(test_serials_are_never_used_again),
        cmocka_unit_test(test_small_ones_share_frames),
        cmocka_unit_test(test_pieces_of_several_units_do_not_cross_frames),
        cmocka_unit_test(test_no_frame_for_a_slab_is_out_of_memory),
        cmocka_unit_test(test_a_piece_changes_streams_in_order),
        cmocka_unit_test(test_the_signature_does_not_depend_on_order),
        cmocka_unit_test(test_pinned_pages_and_slabs_are_unmovable),
        cmocka_unit_test(test_the_list_is_in_order_of_use),
        cmocka_unit_test(test_a_freed_allocation_is_not_listed),
        cmocka_unit_test(test_any_sequence_keeps_addresses_apart),
        cmocka_unit_test(test_contents_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
