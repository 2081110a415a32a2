/* links: tests/unit/fake_%.c shim/streams.c shim/frames.c shim/frames_assign.c policy/assign.c shim/store.c shim/say.c
 */
#include "tests/unit/core.h"

#include <pthread.h>

#define BUFFER_WORDS 64u

static uint64_t buffer[BUFFER_WORDS];

static void open_device(enum fake_order order)
{
    fake_open(&(struct fake_settings){.memory_bytes = 1 << 20, .granularity = CORE_FRAME, .order = order, .seed = 3});
}

static struct last_use unused(void)
{
    return (struct last_use){.stream = STREAMS_NONE};
}

static void fill(uint64_t value, uint32_t stream)
{
    core_fill((uint64_t)(uintptr_t)buffer, sizeof buffer, value, stream);
}

static bool is_filled(uint64_t value)
{
    return core_is_filled((uint64_t)(uintptr_t)buffer, sizeof buffer, value);
}

static void numbers_are_stable(const void *argument)
{
    (void)argument;
    open_device(FAKE_AT_ONCE);
    CUstream streams[40];
    for (uint32_t i = 0; i < 40; i++) {
        streams[i] = fake_stream();
        REQUIRE_EQUAL(streams_number(streams[i]), i);
    }
    for (uint32_t i = 40; i-- > 0;) {
        REQUIRE_EQUAL(streams_number(streams[i]), i);
        REQUIRE(streams_handle(i) == streams[i]);
    }
}
core_test(numbers_are_stable)

    static void too_many_streams_share_a_number_and_still_wait(const void *argument)
{
    (void)argument;
    open_device(FAKE_LATE);
    CUstream last = NULL;
    for (uint32_t i = 0; i < STREAMS_MAX + 5; i++) {
        last = fake_stream();
        REQUIRE_EQUAL(streams_number(last), i < STREAMS_MAX ? i : STREAMS_MAX);
    }
    fill(1, STREAMS_MAX);
    streams_order(1ull << STREAMS_MAX, 2);
    fill(100, 2);
    streams_drain(2);
    REQUIRE(is_filled(100));
    driver.cuCtxSynchronize();
    REQUIRE(is_filled(100));
    struct last_use use = unused();
    fill(7, STREAMS_MAX);
    last_use_note(&use, STREAMS_MAX);
    streams_finished(&use);
    REQUIRE(is_filled(7));
}
core_test(too_many_streams_share_a_number_and_still_wait)

    static void order_keeps_streams_apart_without_waiting(const void *argument)
{
    (void)argument;
    open_device(FAKE_LATE);
    uint32_t a = streams_number(fake_stream()), b = streams_number(fake_stream());
    fill(1, a);
    streams_order(1ull << a, b);
    fill(100, b);
    REQUIRE_EQUAL(fake_count().host_waits, 0);
    REQUIRE_EQUAL(streams_host_waits(), 0);
    driver.cuStreamSynchronize(streams_handle(b));
    REQUIRE(is_filled(100));
    driver.cuCtxSynchronize();
    REQUIRE(is_filled(100));
}
core_test(order_keeps_streams_apart_without_waiting)

    /* A stream of our own is waited for up to one use of it, not to the end of its queue. */
    static void what_is_ours_is_waited_for_exactly(const void *argument)
{
    (void)argument;
    static uint64_t first[BUFFER_WORDS];
    open_device(FAKE_LATE);
    uint32_t program = streams_number(fake_stream()), ours = streams_make();
    REQUIRE(ours != STREAMS_NONE && ours != program);
    struct last_use use = unused();
    core_fill((uint64_t)(uintptr_t)first, sizeof first, 5, ours);
    last_use_note(&use, ours);
    fill(1, ours); /* much later */
    streams_order_use(&use, program);
    streams_drain(program);
    REQUIRE(core_is_filled((uint64_t)(uintptr_t)first, sizeof first, 5));
    REQUIRE(!is_filled(1));
    uint64_t calls = fake_count().calls;
    streams_order_use(&use, program); /* it has been waited for */
    REQUIRE_EQUAL(fake_count().calls, calls);
    streams_order(1ull << ours, program);
    streams_drain(program);
    REQUIRE(is_filled(1));
    REQUIRE_EQUAL(fake_count().host_waits, 2); /* the two drains */
}
core_test(what_is_ours_is_waited_for_exactly)

    /* Who has followed all users of a thing stands for them: also for the host, and for streams that follow it. */
    static void a_follower_stands_for_all(const void *argument)
{
    bool is_marked = *(const bool *)argument; /* the follower has a marker from before it followed */
    open_device(FAKE_LATE);
    uint32_t a = streams_number(fake_stream()), b = streams_number(fake_stream()), ours = streams_make();
    for (uint32_t i = 0; i < 15 && is_marked; i++) {
        streams_submitted(a);
    }
    struct last_use use = unused(), other;
    fill(1, ours);
    last_use_note(&use, ours);
    streams_follow(&use, a);
    REQUIRE_EQUAL(use.streams, 1ull << a);
    REQUIRE(!is_filled(1));
    other = use;
    streams_order_use(&other, b);
    streams_drain(b);
    REQUIRE(is_filled(1));
    fill(100, ours);
    last_use_note(&use, ours);
    streams_follow(&use, a);
    streams_finished(&use);
    REQUIRE(is_filled(100));
    uint64_t calls = fake_count().calls;
    streams_follow(&use, a);
    REQUIRE_EQUAL(fake_count().calls, calls);
}

static void test_a_follower_stands_for_all(void **state)
{
    (void)state;
    const bool modes[] = {false, true};
    assert_child(a_follower_stands_for_all, &modes[0]);
    assert_child(a_follower_stands_for_all, &modes[1]);
}

static void order_is_asked_for_once(const void *argument)
{
    (void)argument;
    open_device(FAKE_LATE);
    uint32_t a = streams_number(fake_stream()), b = streams_number(fake_stream());
    fill(1, a);
    streams_order(1ull << a, b);
    uint64_t calls = fake_count().calls;
    streams_order(1ull << a, b);
    streams_order(1ull << b, b);
    streams_order(0, b);
    REQUIRE_EQUAL(fake_count().calls, calls);
    fill(2, a);
    streams_order(1ull << a, b);
    REQUIRE(fake_count().calls > calls);
}
core_test(order_is_asked_for_once)

    static void order_covers_all_streams_of_the_mask(const void *argument)
{
    (void)argument;
    open_device(FAKE_LATE);
    uint32_t numbers[5];
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 5; i++) {
        numbers[i] = streams_number(fake_stream());
        fill(i, numbers[i]);
        mask |= 1ull << numbers[i];
    }
    streams_order(mask, numbers[4]);
    fill(500, numbers[4]);
    streams_drain(numbers[4]);
    driver.cuCtxSynchronize();
    REQUIRE(is_filled(500));
}
core_test(order_covers_all_streams_of_the_mask)

    static void finished_waits_for_what_it_must_and_no_more(const void *argument)
{
    (void)argument;
    static uint64_t other[BUFFER_WORDS];
    open_device(FAKE_LATE);
    uint32_t a = streams_number(fake_stream());
    struct last_use use = unused();
    fill(42, a);
    last_use_note(&use, a);
    for (uint32_t i = 0; i < 500; i++) {
        core_fill((uint64_t)(uintptr_t)other, sizeof other, i, a);
    }
    streams_finished(&use);
    REQUIRE(is_filled(42));
    REQUIRE(fake_count().queued > 300);
    uint64_t waits = streams_host_waits();
    streams_finished(&use);
    REQUIRE_EQUAL(streams_host_waits(), waits);
}
core_test(finished_waits_for_what_it_must_and_no_more)

    static void finished_on_nothing_makes_no_call(const void *argument)
{
    (void)argument;
    open_device(FAKE_LATE);
    uint32_t a = streams_number(fake_stream());
    fill(1, a);
    struct last_use use = unused();
    uint64_t calls = fake_count().calls;
    streams_finished(&use);
    REQUIRE_EQUAL(fake_count().calls, calls);
}
core_test(finished_on_nothing_makes_no_call)

    /* Random uses of slots on random streams: after streams_finished, the slot holds what was last written to it. */
    static void finished_is_never_too_early(const void *argument)
{
    static uint64_t slots[16][BUFFER_WORDS];
    struct last_use uses[16];
    uint64_t values[16] = {0}, random = 99;
    uint32_t numbers[6];
    open_device(*(const enum fake_order *)argument);
    for (uint32_t i = 0; i < 6; i++) {
        numbers[i] = streams_number(fake_stream());
    }
    for (uint32_t i = 0; i < 16; i++) {
        uses[i] = unused();
    }
    for (uint64_t round = 1; round < 4000; round++) {
        uint32_t slot = core_below(&random, 16), number = numbers[core_below(&random, 6)];
        if (core_below(&random, 4) == 0 && values[slot] != 0) {
            streams_finished(&uses[slot]);
            REQUIRE(core_is_filled((uint64_t)(uintptr_t)slots[slot], sizeof slots[slot], values[slot]));
            continue;
        }
        streams_order(uses[slot].streams, number);
        values[slot] = round * 1000;
        core_fill((uint64_t)(uintptr_t)slots[slot], sizeof slots[slot], values[slot], number);
        last_use_note(&uses[slot], number);
    }
}

static void test_finished_is_never_too_early(void **state)
{
    (void)state;
    for (enum fake_order order = FAKE_AT_ONCE; order <= FAKE_MIXED; order++) {
        assert_child(finished_is_never_too_early, &order);
    }
}

static void a_destroyed_stream_was_waited_for(const void *argument)
{
    (void)argument;
    open_device(FAKE_LATE);
    CUstream stream = fake_stream();
    uint32_t a = streams_number(stream);
    struct last_use use = unused();
    fill(5, a);
    last_use_note(&use, a);
    streams_forget(stream);
    REQUIRE(is_filled(5));
    uint64_t calls = fake_count().calls;
    streams_finished(&use);
    streams_order(use.streams, streams_number(fake_stream()));
    REQUIRE_EQUAL(fake_count().calls, calls);
    REQUIRE(streams_number(stream) != a); /* the handle may come back as another stream */
}
core_test(a_destroyed_stream_was_waited_for)

    /* Where an event cannot be had, the device is waited for instead. */
    static void refused_events_are_replaced_by_waiting(const void *argument)
{
    (void)argument;
    for (uint64_t nth = 1; nth < 8; nth++) {
        struct last_use use = unused();
        static bool is_open;
        if (!is_open) {
            open_device(FAKE_LATE);
            is_open = true;
        }
        uint32_t a = streams_number(fake_stream()), b = streams_number(fake_stream());
        fill(nth, a);
        last_use_note(&use, a);
        fake_fail(nth, false);
        streams_order(1ull << a, b);
        fake_fail(0, false);
        fill(nth * 100, b);
        last_use_note(&use, b);
        fake_fail(nth, false);
        streams_finished(&use);
        fake_fail(0, false);
        REQUIRE(is_filled(nth * 100));
        driver.cuCtxSynchronize();
        REQUIRE(is_filled(nth * 100));
    }
}
core_test(refused_events_are_replaced_by_waiting)

    /* ---- CU_STREAM_PER_THREAD is another stream in each thread ---- */

    struct order {
    uint64_t value;
    uint32_t number; /* STREAMS_NONE: the thread's own */
};

static void *fill_in_order(void *argument)
{
    struct order *order = argument;
    if (order->number == STREAMS_NONE) {
        order->number = streams_number(CU_STREAM_PER_THREAD);
    }
    fill(order->value, order->number);
    return NULL;
}

/* In another thread; the queue's number. */
static uint32_t fill_elsewhere(uint64_t value, uint32_t number)
{
    struct order order = {value, number};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, fill_in_order, &order) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    return order.number;
}

static void another_threads_stream_is_waited_for(const void *argument)
{
    (void)argument;
    open_device(FAKE_LATE);
    uint32_t own = streams_number(CU_STREAM_PER_THREAD), plain = streams_number(fake_stream());
    uint32_t other = fill_elsewhere(1000, STREAMS_NONE);
    REQUIRE(other != own);
    REQUIRE_EQUAL(streams_number(CU_STREAM_PER_THREAD), own);
    streams_order(1ull << other, plain);
    REQUIRE_EQUAL(fake_count().host_waits, 0);
    REQUIRE(!is_filled(1000));
    driver.cuStreamSynchronize(streams_handle(plain));
    REQUIRE(is_filled(1000));
    struct last_use use = unused();
    other = fill_elsewhere(2000, STREAMS_NONE);
    last_use_note(&use, other);
    streams_finished(&use);
    REQUIRE(is_filled(2000));
    other = fill_elsewhere(3000, STREAMS_NONE);
    streams_drain(other);
    REQUIRE(is_filled(3000));
}
core_test(another_threads_stream_is_waited_for)

    /* Whoever acts on it, in whatever order, and whatever it was made to wait for in between: one queue. */
    static void a_per_thread_stream_is_one_queue(const void *argument)
{
    uint64_t random = 5 + *(const uint64_t *)argument, value = 0;
    open_device(random % 2 ? FAKE_LATE : FAKE_MIXED);
    uint32_t own = streams_number(CU_STREAM_PER_THREAD), plain = streams_number(fake_stream());
    uint32_t other = fill_elsewhere(value += 1000, STREAMS_NONE), queues[] = {own, plain, other}, last = other;
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t queue = queues[core_below(&random, 3)];
        streams_order(1ull << last, queue);
        value += 1000;
        if (core_below(&random, 2) == 0) {
            fill_elsewhere(value, queue);
        } else {
            fill(value, queue);
        }
        last = queue;
        if (core_below(&random, 20) == 0) {
            streams_drain(last);
            REQUIRE(is_filled(value));
        }
    }
    streams_drain(last);
    REQUIRE(is_filled(value));
    driver.cuCtxSynchronize();
    REQUIRE(is_filled(value));
}

static void test_a_per_thread_stream_is_one_queue(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_child(a_per_thread_stream_is_one_queue, &seed);
    }
}

/* A program that starts a thread for everything: numbers of streams that have nothing left to do are used again. */
static void threads_may_come_and_go(const void *argument)
{
    (void)argument;
    open_device(FAKE_LATE);
    struct last_use use = unused();
    streams_number(CU_STREAM_PER_THREAD);
    for (uint32_t i = 0; i < 60; i++) {
        REQUIRE(fill_elsewhere(1000 * i, STREAMS_NONE) < STREAMS_MAX);
    }
    driver.cuCtxSynchronize();
    for (uint64_t i = 0; i < 8; i++) {
        uint32_t number = fill_elsewhere(1000 * i, STREAMS_NONE);
        REQUIRE(number < STREAMS_MAX);
        last_use_note(&use, number);
        streams_finished(&use);
        REQUIRE(is_filled(1000 * i));
    }
}
core_test(threads_may_come_and_go)

    int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_stable),
        cmocka_unit_test(test_too_many_streams_share_a_number_and_still_wait),
        cmocka_unit_test(test_order_keeps_streams_apart_without_waiting),
        cmocka_unit_test(test_order_is_asked_for_once),
        cmocka_unit_test(test_what_is_ours_is_waited_for_exactly),
        cmocka_unit_test(test_a_follower_stands_for_all),
        cmocka_unit_test(test_order_covers_all_streams_of_the_mask),
        cmocka_unit_test(test_finished_waits_for_what_it_must_and_no_more),
        cmocka_unit_test(test_finished_on_nothing_makes_no_call),
        cmocka_unit_test(test_finished_is_never_too_early),
        cmocka_unit_test(test_a_destroyed_stream_was_waited_for),
        cmocka_unit_test(test_refused_events_are_replaced_by_waiting),
        cmocka_unit_test(test_another_threads_stream_is_waited_for),
        cmocka_unit_test(test_a_per_thread_stream_is_one_queue),
        cmocka_unit_test(test_threads_may_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
