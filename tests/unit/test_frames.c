/* links: tests/unit/fake_%.c shim/frames.c shim/frames_assign.c policy/assign.c shim/streams.c shim/store.c shim/say.c
 */
#include "tests/unit/core.h"

#define PLACES 24u
#define CAP    40u

static struct place places[PLACES];
static uint64_t values[PLACES]; /* what a resident place was filled with; 0: not resident */

/* Places side by side; place i has 1 + i % 6 pages. */
static void make_places(void)
{
    CUdeviceptr begin, end;
    frames_arena(&begin, &end);
    uint32_t next = 3;
    for (uint32_t i = 0; i < PLACES; i++) {
        uint32_t pages = 1 + i % 6;
        places[i] = (struct place){.base = begin + (uint64_t)next * CORE_FRAME,
                                   .bytes = (uint64_t)pages * CORE_FRAME,
                                   .first_page = next,
                                   .page_count = pages,
                                   .last = {.stream = STREAMS_NONE}};
        next += pages;
    }
}

static void open_frames(uint32_t device, uint32_t cap, bool is_strict, enum fake_order order)
{
    core_open_device(device, cap, is_strict, order);
    make_places();
}

static void use(struct place *place, uint64_t value, uint32_t stream)
{
    streams_order(place->last.streams, stream);
    core_fill(place->base, place->bytes, value, stream);
    last_use_note(&place->last, stream);
}

static uint32_t resident_pages(void)
{
    uint32_t pages = 0;
    for (uint32_t i = 0; i < PLACES; i++) {
        pages += places[i].is_resident ? places[i].page_count : 0;
    }
    return pages;
}

static void check_all(uint32_t charged, uint32_t cap)
{
    struct frames_counts counts = frames_count();
    REQUIRE(frames_is_valid());
    REQUIRE_EQUAL(counts.charged_frames, charged);
    REQUIRE(counts.created_frames + counts.charged_frames <= cap);
    REQUIRE_EQUAL(counts.created_frames - counts.free_frames, resident_pages());
    REQUIRE_EQUAL(frames_available(), cap - resident_pages() - charged);
    REQUIRE_EQUAL(fake_count().frames, counts.created_frames);
    REQUIRE(fake_count().frames + charged <= cap);
    REQUIRE(counts.peak_frames <= cap);
}

static void check_contents(void)
{
    driver.cuCtxSynchronize();
    for (uint32_t i = 0; i < PLACES; i++) {
        REQUIRE(!places[i].is_resident || core_is_filled(places[i].base, places[i].bytes, values[i]));
    }
}

/* ---- single facts ---- */

static void nothing_is_taken_at_the_start(const void *argument)
{
    (void)argument;
    open_frames(CAP, CAP, false, FAKE_AT_ONCE);
    CUdeviceptr begin, end;
    frames_arena(&begin, &end);
    REQUIRE(frames_are_open());
    REQUIRE_EQUAL(begin % CORE_FRAME, 0);
    REQUIRE_EQUAL((end - begin) / CORE_FRAME, frames_arena_pages());
    REQUIRE(end - begin >= 32ull * CAP * CORE_FRAME);
    REQUIRE_EQUAL(fake_count().frames, 0);
    REQUIRE_EQUAL(frames_count().frame_bytes, CORE_FRAME);
    REQUIRE_EQUAL(frames_count().cap_frames, CAP);
    REQUIRE_EQUAL(frames_available(), CAP);
}
core_test(nothing_is_taken_at_the_start)

    static void the_cap_is_at_most_the_device(const void *argument)
{
    (void)argument;
    open_frames(10, 1000, false, FAKE_AT_ONCE);
    REQUIRE_EQUAL(frames_count().cap_frames, 10);
}
core_test(the_cap_is_at_most_the_device)

    static void no_cap_is_the_device(const void *argument)
{
    (void)argument;
    open_frames(12, 0, false, FAKE_AT_ONCE);
    REQUIRE_EQUAL(frames_count().cap_frames, 12);
}
core_test(no_cap_is_the_device)

    static void an_odd_cap_is_rounded_down(const void *argument)
{
    (void)argument;
    fake_open(&(struct fake_settings){.memory_bytes = 64 * CORE_FRAME, .granularity = CORE_FRAME});
    REQUIRE(frames_open(0, 10 * CORE_FRAME + CORE_FRAME - 1, false));
    REQUIRE_EQUAL(frames_count().cap_frames, 10);
}
core_test(an_odd_cap_is_rounded_down)

    static void an_odd_granularity_is_refused(const void *argument)
{
    (void)argument;
    fake_open(&(struct fake_settings){.memory_bytes = 64 * CORE_FRAME, .granularity = CORE_FRAME * 3});
    REQUIRE(!frames_open(0, 10 * CORE_FRAME, false));
    REQUIRE(!frames_are_open());
}
core_test(an_odd_granularity_is_refused)

    static void too_much_changes_nothing(const void *argument)
{
    (void)argument;
    open_frames(CAP, 8, false, FAKE_AT_ONCE);
    CUresult result;
    REQUIRE(frames_acquire(&places[5], 0, &result)); /* 6 pages */
    uint64_t calls = fake_count().calls;
    REQUIRE(!frames_acquire(&places[2], 0, &result)); /* 3 more */
    REQUIRE_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE_EQUAL(fake_count().calls, calls);
    REQUIRE(!places[2].is_resident);
    REQUIRE(frames_acquire(&places[1], 0, &result)); /* 2 fit exactly */
    REQUIRE_EQUAL(frames_available(), 0);
    check_all(0, 8);
}
core_test(too_much_changes_nothing)

    static void frames_that_are_still_mapped_cost_no_call(const void *argument)
{
    (void)argument;
    open_frames(CAP, CAP, false, FAKE_AT_ONCE);
    CUresult result;
    REQUIRE(frames_acquire(&places[5], 0, &result) && frames_acquire(&places[4], 0, &result));
    for (uint32_t round = 0; round < 10; round++) {
        uint64_t calls = fake_count().calls;
        frames_release(&places[5]);
        frames_release(&places[4]);
        REQUIRE(frames_acquire(&places[4], 0, &result));
        REQUIRE(frames_acquire(&places[5], 0, &result));
        REQUIRE_EQUAL(fake_count().calls, calls);
    }
    REQUIRE_EQUAL(frames_count().driver_calls, fake_count().memory_calls);
}
core_test(frames_that_are_still_mapped_cost_no_call)

    static void acquiring_twice_is_acquiring_once(const void *argument)
{
    (void)argument;
    open_frames(CAP, CAP, false, FAKE_AT_ONCE);
    CUresult result;
    REQUIRE(frames_acquire(&places[3], 0, &result) && frames_acquire(&places[3], 0, &result));
    REQUIRE_EQUAL(frames_available(), CAP - 4);
    frames_release(&places[3]);
    frames_release(&places[3]);
    REQUIRE_EQUAL(frames_available(), CAP);
    REQUIRE(frames_is_valid());
}
core_test(acquiring_twice_is_acquiring_once)

    static void strict_mode_unmaps_what_is_released(const void *argument)
{
    (void)argument;
    open_frames(CAP, CAP, true, FAKE_LATE);
    uint32_t stream = streams_number(fake_stream());
    CUresult result;
    REQUIRE(frames_acquire(&places[5], stream, &result));
    REQUIRE_EQUAL(fake_mapped_pages(places[5].base, places[5].bytes), 6);
    use(&places[5], 9, stream); /* still queued: the unmapping must wait for it */
    frames_release(&places[5]);
    REQUIRE_EQUAL(fake_mapped_pages(places[5].base, places[5].bytes), 0);
    REQUIRE_EQUAL(fake_count().queued, 0);
    REQUIRE_EQUAL(fake_count().mappings, 0);
}
core_test(strict_mode_unmaps_what_is_released)

    /* Frames go from one stream's place to another's: the later work must not overtake the earlier. */
    static void frames_change_streams_in_order(const void *argument)
{
    (void)argument;
    open_frames(CAP, 6, false, FAKE_LATE);
    uint32_t a = streams_number(fake_stream()), b = streams_number(fake_stream());
    CUresult result;
    REQUIRE(frames_acquire(&places[5], a, &result));
    use(&places[5], 1, a);
    frames_release(&places[5]);
    REQUIRE(frames_acquire(&places[11], b, &result));
    use(&places[11], 1000, b);
    streams_drain(b);
    REQUIRE(core_is_filled(places[11].base, places[11].bytes, 1000));
    driver.cuCtxSynchronize();
    REQUIRE(core_is_filled(places[11].base, places[11].bytes, 1000));
}
core_test(frames_change_streams_in_order)

    /* The stream between them took the frames and did nothing with them. */
    static void frames_pass_an_idle_stream_in_order(const void *argument)
{
    (void)argument;
    open_frames(CAP, 6, false, FAKE_LATE);
    uint32_t a = streams_number(fake_stream()), b = streams_number(fake_stream()), c = streams_number(fake_stream());
    CUresult result;
    REQUIRE(frames_acquire(&places[5], a, &result));
    use(&places[5], 1, a);
    frames_release(&places[5]);
    streams_submitted(b);
    streams_order(1ull << b, c); /* c has seen all that b did so far */
    REQUIRE(frames_acquire(&places[11], b, &result));
    frames_release(&places[11]);
    REQUIRE(frames_acquire(&places[17], c, &result));
    use(&places[17], 1000, c);
    streams_drain(c);
    driver.cuCtxSynchronize();
    REQUIRE(core_is_filled(places[17].base, places[17].bytes, 1000));
}
core_test(frames_pass_an_idle_stream_in_order)

    static void a_move_takes_the_bytes_along(const void *argument)
{
    (void)argument;
    open_frames(CAP, 12, *(const bool *)argument, FAKE_LATE);
    uint32_t a = streams_number(fake_stream()), b = streams_number(fake_stream());
    CUresult result;
    REQUIRE(frames_acquire(&places[5], a, &result));
    use(&places[5], 77, a);
    uint32_t available = frames_available();
    REQUIRE(frames_move(&places[5], &places[11], b, &result));
    REQUIRE(!places[5].is_resident && places[11].is_resident);
    REQUIRE_EQUAL(frames_available(), available);
    REQUIRE(frames_is_valid());
    streams_drain(b);
    streams_finished(&places[11].last);
    REQUIRE(core_is_filled(places[11].base, places[11].bytes, 77));
    REQUIRE(frames_move(&places[11], &places[5], a, &result)); /* and back, over the stale mapping */
    driver.cuCtxSynchronize();
    REQUIRE(core_is_filled(places[5].base, places[5].bytes, 77));
    REQUIRE(frames_is_valid());
}

static void test_a_move_takes_the_bytes_along(void **state)
{
    (void)state;
    const bool modes[] = {false, true};
    assert_child(a_move_takes_the_bytes_along, &modes[0]);
    assert_child(a_move_takes_the_bytes_along, &modes[1]);
}

/* Whichever call of a move is refused: nothing is lost, and it can be made again. */
static void a_refused_move_changes_nothing(const void *argument)
{
    bool is_strict = *(const bool *)argument;
    open_frames(CAP, 12, is_strict, FAKE_AT_ONCE);
    CUresult result;
    REQUIRE(frames_acquire(&places[5], 0, &result));
    use(&places[5], 77, 0);
    for (uint64_t nth = 1;; nth++) {
        fake_fail(nth, false);
        bool is_moved = frames_move(&places[5], &places[11], 0, &result);
        bool has_failed = fake_has_failed();
        fake_fail(0, false);
        REQUIRE(frames_is_valid());
        if (is_moved) {
            REQUIRE(core_is_filled(places[11].base, places[11].bytes, 77));
            REQUIRE(!has_failed || is_strict); /* unmapping the old place may fail: it is not used any more */
            if (!has_failed) {
                break;
            }
            REQUIRE(frames_move(&places[11], &places[5], 0, &result));
        }
        REQUIRE(places[5].is_resident);
        REQUIRE(core_is_filled(places[5].base, places[5].bytes, 77));
    }
    frames_release(&places[11]);
    REQUIRE_EQUAL(frames_available(), 12);
}

static void test_a_refused_move_changes_nothing(void **state)
{
    (void)state;
    const bool modes[] = {false, true};
    assert_child(a_refused_move_changes_nothing, &modes[0]);
    assert_child(a_refused_move_changes_nothing, &modes[1]);
}

/* ---- charges ---- */

static void a_charge_takes_free_frames_out_of_existence(const void *argument)
{
    (void)argument;
    open_frames(CAP, 12, false, FAKE_LATE);
    uint32_t stream = streams_number(fake_stream());
    CUresult result;
    REQUIRE(frames_acquire(&places[5], stream, &result) && frames_acquire(&places[11], stream, &result));
    use(&places[5], 5, stream);
    use(&places[11], 6, stream);
    REQUIRE(!frames_charge(1));
    frames_release(&places[5]);
    REQUIRE(!frames_charge(7));
    REQUIRE(frames_charge(4));
    check_all(4, 12);
    REQUIRE_EQUAL(fake_count().frames, 8);
    frames_refund(4);
    REQUIRE(frames_acquire(&places[5], stream, &result));
    use(&places[5], 8, stream);
    check_all(0, 12);
    driver.cuCtxSynchronize();
    REQUIRE(core_is_filled(places[11].base, places[11].bytes, 6));
    REQUIRE(core_is_filled(places[5].base, places[5].bytes, 8));
}
core_test(a_charge_takes_free_frames_out_of_existence)

    static void refunding_more_than_was_charged_stops_at_nothing(const void *argument)
{
    (void)argument;
    open_frames(CAP, 12, false, FAKE_AT_ONCE);
    REQUIRE(frames_charge(3));
    frames_refund(5);
    REQUIRE_EQUAL(frames_count().charged_frames, 0);
    REQUIRE_EQUAL(frames_available(), 12);
}
core_test(refunding_more_than_was_charged_stops_at_nothing)

    /* ---- refusals ---- */

    static void a_device_with_less_lowers_the_cap(const void *argument)
{
    (void)argument;
    open_frames(20, 20, false, FAKE_AT_ONCE);
    CUdeviceptr taken;
    REQUIRE_EQUAL(driver.cuMemAlloc_v2(&taken, 12 * CORE_FRAME), CUDA_SUCCESS); /* somebody else's */
    CUresult result;
    REQUIRE(frames_acquire(&places[5], 0, &result));
    REQUIRE(!frames_acquire(&places[11], 0, &result));
    REQUIRE_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(frames_is_valid());
    REQUIRE(frames_acquire(&places[1], 0, &result));
    use(&places[1], 3, 0);
    REQUIRE_EQUAL(frames_count().cap_frames, 8);
    REQUIRE_EQUAL(frames_available(), 0);
}
core_test(a_device_with_less_lowers_the_cap)

    static void a_refused_acquire_changes_nothing(const void *argument)
{
    bool is_strict = *(const bool *)argument;
    open_frames(CAP, 14, is_strict, FAKE_AT_ONCE);
    CUresult result;
    for (uint64_t nth = 1, round = 0; round < 200; nth = nth % 23 + 1, round++) {
        uint32_t first = (uint32_t)(round % PLACES), second = (uint32_t)((round * 7 + 5) % PLACES);
        fake_fail(nth, false);
        bool has_first = frames_acquire(&places[first], 0, &result);
        bool has_second = first != second && frames_acquire(&places[second], 0, &result);
        fake_fail(0, false);
        REQUIRE(frames_is_valid());
        REQUIRE_EQUAL(has_first, places[first].is_resident);
        if (has_first) {
            use(&places[first], round + 1, 0);
        }
        if (has_second) {
            use(&places[second], round + 1000, 0);
            REQUIRE(core_is_filled(places[second].base, places[second].bytes, round + 1000));
            frames_release(&places[second]);
        }
        if (has_first) {
            REQUIRE(core_is_filled(places[first].base, places[first].bytes, round + 1));
            frames_release(&places[first]);
        }
        REQUIRE(frames_is_valid());
        REQUIRE_EQUAL(frames_count().created_frames, frames_count().free_frames);
    }
}

static void test_a_refused_acquire_changes_nothing(void **state)
{
    (void)state;
    const bool modes[] = {false, true};
    assert_child(a_refused_acquire_changes_nothing, &modes[0]);
    assert_child(a_refused_acquire_changes_nothing, &modes[1]);
}

/* ---- random ---- */

struct storm {
    enum fake_order order;
    bool is_strict;
    uint64_t seed;
};

static void acquire_random(uint64_t *random, uint32_t charged, uint32_t stream, uint64_t value)
{
    uint32_t i = core_below(random, PLACES);
    bool fits = places[i].is_resident || places[i].page_count <= CAP - charged - resident_pages();
    CUresult result;
    bool was_resident = places[i].is_resident;
    REQUIRE_EQUAL(frames_acquire(&places[i], stream, &result), fits);
    if (fits) {
        if (!was_resident || core_below(random, 2) == 0) {
            values[i] = value;
            use(&places[i], value, stream);
        }
    }
}

static void move_random(uint64_t *random, uint32_t stream)
{
    uint32_t from = core_below(random, PLACES), to = (from + 6 * (1 + core_below(random, 3))) % PLACES;
    CUresult result;
    if (places[from].is_resident && !places[to].is_resident && places[from].page_count == places[to].page_count) {
        REQUIRE(frames_move(&places[from], &places[to], stream, &result));
        values[to] = values[from];
    }
}

static void any_sequence_keeps_cap_and_contents(const void *argument)
{
    const struct storm *storm = argument;
    uint64_t random = storm->seed;
    uint32_t charged = 0, streams[3];
    open_frames(CAP, CAP, storm->is_strict, storm->order);
    for (uint32_t i = 0; i < 3; i++) {
        streams[i] = streams_number(fake_stream());
    }
    for (uint64_t step = 1; step < 3000; step++) {
        uint32_t stream = streams[core_below(&random, 3)], count = 1 + core_below(&random, 6);
        switch (core_below(&random, 8)) {
        case 0:
            REQUIRE_EQUAL(frames_charge(count), count <= CAP - charged - resident_pages());
            charged = frames_count().charged_frames;
            break;
        case 1:
            frames_refund(count < charged ? count : charged);
            charged -= count < charged ? count : charged;
            break;
        case 2:
            move_random(&random, stream);
            break;
        case 3:
        case 4:
            frames_release(&places[core_below(&random, PLACES)]);
            break;
        default:
            acquire_random(&random, charged, stream, step * 100000);
            break;
        }
        check_all(charged, CAP);
        if (step % 50 == 0) {
            check_contents();
        }
    }
    check_contents();
}

static void test_any_sequence_keeps_cap_and_contents(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        for (enum fake_order order = FAKE_AT_ONCE; order <= FAKE_MIXED; order++) {
            const struct storm storms[] = {{order, false, seed * 77}, {order, true, seed * 99}};
            assert_child(any_sequence_keeps_cap_and_contents, &storms[0]);
            assert_child(any_sequence_keeps_cap_and_contents, &storms[1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_taken_at_the_start),
        cmocka_unit_test(test_the_cap_is_at_most_the_device),
        cmocka_unit_test(test_no_cap_is_the_device),
        cmocka_unit_test(test_an_odd_cap_is_rounded_down),
        cmocka_unit_test(test_an_odd_granularity_is_refused),
        cmocka_unit_test(test_too_much_changes_nothing),
        cmocka_unit_test(test_frames_that_are_still_mapped_cost_no_call),
        cmocka_unit_test(test_acquiring_twice_is_acquiring_once),
        cmocka_unit_test(test_strict_mode_unmaps_what_is_released),
        cmocka_unit_test(test_frames_change_streams_in_order),
        cmocka_unit_test(test_frames_pass_an_idle_stream_in_order),
        cmocka_unit_test(test_a_move_takes_the_bytes_along),
        cmocka_unit_test(test_a_refused_move_changes_nothing),
        cmocka_unit_test(test_a_charge_takes_free_frames_out_of_existence),
        cmocka_unit_test(test_refunding_more_than_was_charged_stops_at_nothing),
        cmocka_unit_test(test_a_device_with_less_lowers_the_cap),
        cmocka_unit_test(test_a_refused_acquire_changes_nothing),
        cmocka_unit_test(test_any_sequence_keeps_cap_and_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
