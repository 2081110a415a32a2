/* links: tests/unit/fake_%.c shim/swap.c shim/frames.c shim/frames_assign.c policy/assign.c shim/streams.c shim/store.c
 * shim/say.c */
#include "tests/unit/core.h"

#include "shim/swap.h"

#define BYTES 3000u

static uint64_t device[4][1024]; /* stands for device memory: the driver takes any address */

static uint64_t address_of(uint32_t index)
{
    return (uint64_t)(uintptr_t)device[index];
}

static void open_device(enum fake_order order)
{
    fake_open(&(struct fake_settings){.memory_bytes = 1 << 20, .granularity = CORE_FRAME, .order = order, .seed = 2});
}

static void contents_come_back(const void *argument)
{
    open_device(*(const enum fake_order *)argument);
    uint32_t a = streams_number(fake_stream());
    core_fill(address_of(0), BYTES, 7, a);
    struct host_copy *copy = swap_out(address_of(0), BYTES, a, SWAP_TRAFFIC);
    REQUIRE(copy != NULL);
    REQUIRE(fake_is_pinned(copy->memory, BYTES));
    core_fill(address_of(0), BYTES, 999, a); /* the frame has a new owner */
    REQUIRE(swap_in(copy, address_of(1), a, SWAP_TRAFFIC));
    streams_drain(a);
    REQUIRE(core_is_filled(address_of(1), BYTES, 7));
    REQUIRE(core_is_filled(address_of(0), BYTES, 999));
    swap_release(copy);
    REQUIRE_EQUAL(swap_count().out_bytes, BYTES);
    REQUIRE_EQUAL(swap_count().in_bytes, BYTES);
    REQUIRE_EQUAL(swap_count().audited_bytes, 0);
}

static void test_contents_come_back(void **state)
{
    (void)state;
    for (enum fake_order order = FAKE_AT_ONCE; order <= FAKE_MIXED; order++) {
        assert_child(contents_come_back, &order);
    }
}

static void another_stream_brings_in_behind_the_copy_out(const void *argument)
{
    (void)argument;
    open_device(FAKE_LATE);
    uint32_t a = streams_number(fake_stream()), b = streams_number(fake_stream());
    core_fill(address_of(0), BYTES, 7, a);
    struct host_copy *copy = swap_out(address_of(0), BYTES, a, SWAP_TRAFFIC);
    REQUIRE(swap_in(copy, address_of(1), b, SWAP_TRAFFIC));
    streams_drain(b);
    REQUIRE(core_is_filled(address_of(1), BYTES, 7));
}
core_test(another_stream_brings_in_behind_the_copy_out)

    /* The buffer of a copy that is still read must not be written by the next one. */
    static void pooled_buffers_are_reused_in_order(const void *argument)
{
    bool is_same_stream = *(const bool *)argument;
    open_device(FAKE_LATE);
    uint32_t a = streams_number(fake_stream()), b = is_same_stream ? a : streams_number(fake_stream());
    core_fill(address_of(0), BYTES, 7, a);
    struct host_copy *copy = swap_out(address_of(0), BYTES, a, SWAP_TRAFFIC);
    REQUIRE(swap_in(copy, address_of(1), a, SWAP_TRAFFIC));
    void *memory = copy->memory;
    swap_release(copy);
    core_fill(address_of(2), BYTES, 1000, b);
    struct host_copy *next = swap_out(address_of(2), BYTES, b, SWAP_TRAFFIC);
    REQUIRE(next->memory == memory);
    streams_drain(b);
    driver.cuCtxSynchronize();
    REQUIRE(core_is_filled(address_of(1), BYTES, 7));
    REQUIRE(core_is_filled((uint64_t)(uintptr_t)next->memory, BYTES, 1000));
}

static void test_pooled_buffers_are_reused_in_order(void **state)
{
    (void)state;
    const bool modes[] = {true, false};
    assert_child(pooled_buffers_are_reused_in_order, &modes[0]);
    assert_child(pooled_buffers_are_reused_in_order, &modes[1]);
}

static void other_sizes_do_not_share_buffers(const void *argument)
{
    (void)argument;
    open_device(FAKE_AT_ONCE);
    uint32_t a = streams_number(fake_stream());
    struct host_copy *small = swap_out(address_of(0), 100, a, SWAP_TRAFFIC);
    void *memory = small->memory;
    swap_release(small);
    struct host_copy *large = swap_out(address_of(0), 8000, a, SWAP_TRAFFIC);
    REQUIRE(large->memory != memory);
    REQUIRE(large->capacity >= 8000);
    REQUIRE(swap_out(address_of(0), 200, a, SWAP_TRAFFIC)->memory == memory);
}
core_test(other_sizes_do_not_share_buffers)

    static void finish_waits_until_the_bytes_are_there(const void *argument)
{
    (void)argument;
    open_device(FAKE_LATE);
    uint32_t a = streams_number(fake_stream());
    core_fill(address_of(0), BYTES, 31, a);
    struct host_copy *copy = swap_out(address_of(0), BYTES, a, SWAP_AUDIT);
    REQUIRE(!core_is_filled((uint64_t)(uintptr_t)copy->memory, BYTES, 31));
    swap_finish(copy);
    REQUIRE(core_is_filled((uint64_t)(uintptr_t)copy->memory, BYTES, 31));
    REQUIRE_EQUAL(swap_count().audited_bytes, BYTES);
    REQUIRE_EQUAL(swap_count().out_bytes, 0);
}
core_test(finish_waits_until_the_bytes_are_there)

    static void what_is_refused_is_not_counted(const void *argument)
{
    (void)argument;
    open_device(FAKE_AT_ONCE);
    uint32_t a = streams_number(fake_stream());
    for (uint64_t nth = 1; nth <= 2; nth++) { /* the buffer, then the copy */
        fake_fail(1, false);
        REQUIRE(swap_out(address_of(0), BYTES, a, SWAP_TRAFFIC) == NULL);
        struct host_copy *copy = nth == 1 ? swap_out(address_of(0), BYTES, a, SWAP_TRAFFIC) : NULL;
        swap_release(copy);
    }
    REQUIRE_EQUAL(swap_count().out_bytes, BYTES);
    struct host_copy *copy = swap_out(address_of(0), BYTES, a, SWAP_TRAFFIC);
    fake_fail(1, false);
    REQUIRE(!swap_in(copy, address_of(1), a, SWAP_TRAFFIC));
    REQUIRE_EQUAL(swap_count().in_bytes, 0);
    REQUIRE(swap_in(copy, address_of(1), a, SWAP_TRAFFIC)); /* the copy is still there */
    swap_release(NULL);
}
core_test(what_is_refused_is_not_counted)

    /* Also by a driver that has only the older way to ask for times. The content is as before. */
    static void speeds_are_measured(const void *argument)
{
    fake_open(&(struct fake_settings){.memory_bytes = 1 << 20,
                                      .granularity = CORE_FRAME,
                                      .order = FAKE_LATE,
                                      .copy_bytes_per_ns = 0.25,
                                      .is_old = *(const bool *)argument});
    uint32_t a = streams_number(fake_stream());
    struct swap_speed speed;
    core_fill(address_of(0), BYTES, 7, a);
    REQUIRE(swap_measure(address_of(0), BYTES, a, &speed));
    REQUIRE(speed.out_bytes_per_ns > 0.24 && speed.out_bytes_per_ns < 0.26);
    REQUIRE(speed.in_bytes_per_ns > 0.24 && speed.in_bytes_per_ns < 0.26);
    REQUIRE(core_is_filled(address_of(0), BYTES, 7));
    REQUIRE_EQUAL(swap_count().out_bytes + swap_count().in_bytes + swap_count().audited_bytes, 0);
}

static void test_speeds_are_measured(void **state)
{
    (void)state;
    const bool is_old[] = {false, true};
    assert_child(speeds_are_measured, &is_old[0]);
    assert_child(speeds_are_measured, &is_old[1]);
}

/* A refused call of the driver's costs the measurement, nothing else. */
static void a_failed_measurement_says_so(const void *argument)
{
    (void)argument;
    open_device(FAKE_AT_ONCE);
    uint32_t a = streams_number(fake_stream());
    struct swap_speed speed;
    core_fill(address_of(0), BYTES, 7, a);
    for (uint64_t nth = 1; nth <= 4; nth++) { /* memory, three events */
        fake_fail(nth, true);
        REQUIRE(!swap_measure(address_of(0), BYTES, a, &speed));
        REQUIRE(speed.out_bytes_per_ns <= 0 && speed.in_bytes_per_ns <= 0);
        fake_fail(0, false);
    }
    REQUIRE(swap_measure(address_of(0), BYTES, a, &speed));
    REQUIRE(core_is_filled(address_of(0), BYTES, 7));
}
core_test(a_failed_measurement_says_so)

    int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contents_come_back),
        cmocka_unit_test(test_another_stream_brings_in_behind_the_copy_out),
        cmocka_unit_test(test_pooled_buffers_are_reused_in_order),
        cmocka_unit_test(test_other_sizes_do_not_share_buffers),
        cmocka_unit_test(test_finish_waits_until_the_bytes_are_there),
        cmocka_unit_test(test_what_is_refused_is_not_counted),
        cmocka_unit_test(test_speeds_are_measured),
        cmocka_unit_test(test_a_failed_measurement_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
