/* links: trace/ring.c */
#include "trace/ring.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES 4096u

static _Alignas(8) unsigned char memory[BYTES];

/* A record whose body says its number, over and over. */
static bool put(struct ring *ring, uint64_t number, size_t words)
{
    uint64_t *body = ring_reserve(ring, TRACE_FREED, words * 8);
    for (size_t i = 0; body && i < words; i++)
        body[i] = number;
    if (body)
        ring_commit(ring);
    return body != NULL;
}

static uint64_t take(struct ring *ring, uint64_t limit)
{
    const struct trace_record *record = ring_front(ring, limit);
    if (!record)
        return UINT64_MAX;
    const uint64_t *body = (const void *)(record + 1);
    uint64_t number = body[0];
    for (uint32_t i = 0; i < (record->bytes - sizeof *record) / 8; i++)
        assert_int_equal(body[i], number);
    ring_drop(ring, record);
    return number;
}

static void test_first_in_first_out(void **state)
{
    (void)state;
    struct ring ring;
    uint64_t in = 0, out = 0;
    ring_open(&ring, memory, BYTES);
    for (int round = 0; round < 5000; round++) {
        for (int i = 0; i < round % 4; i++)
            in += put(&ring, in, 1 + in % 50);
        uint64_t limit = ring_limit(&ring);
        for (int i = 0; i < round % 5; i++) {
            uint64_t number = take(&ring, limit);
            if (number == UINT64_MAX)
                break;
            assert_int_equal(number, out++);
        }
    }
    assert_true(out > 5000);
}

static void test_what_finds_no_room_is_counted(void **state)
{
    (void)state;
    struct ring ring;
    uint64_t held = 0;
    ring_open(&ring, memory, BYTES);
    while (put(&ring, held, 3))
        held++;
    assert_int_equal(held, BYTES / 32);
    assert_int_equal(atomic_load(&ring.lost), 1);
    assert_true(ring_is_filling(&ring));
    assert_false(put(&ring, 0, 3));
    assert_int_equal(atomic_load(&ring.lost), 2);
    assert_int_equal(take(&ring, ring_limit(&ring)), 0);
    assert_true(put(&ring, held, 3));
    assert_false(put(&ring, 0, BYTES)); /* longer than the ring */
    for (uint64_t i = 1; i <= held; i++)
        assert_int_equal(take(&ring, ring_limit(&ring)), i);
    assert_int_equal(take(&ring, ring_limit(&ring)), UINT64_MAX);
}

static void test_a_limit_holds(void **state)
{
    (void)state;
    struct ring ring;
    ring_open(&ring, memory, BYTES);
    put(&ring, 0, 1);
    uint64_t limit = ring_limit(&ring);
    put(&ring, 1, 1);
    assert_int_equal(take(&ring, limit), 0);
    assert_int_equal(take(&ring, limit), UINT64_MAX);
    assert_int_equal(take(&ring, ring_limit(&ring)), 1);
}

#define SENT 2000000u

static void *send(void *opaque)
{
    struct ring *ring = opaque;
    for (uint64_t i = 0; i < SENT; i++)
        put(ring, i, 1 + i % 9);
    return NULL;
}

/* One puts, one takes, at full speed: what arrives is whole and in order, what does not was counted. */
static void test_two_threads(void **state)
{
    (void)state;
    struct ring ring;
    pthread_t sender;
    uint64_t received = 0, next = 0;
    ring_open(&ring, memory, BYTES);
    assert_int_equal(pthread_create(&sender, NULL, send, &ring), 0);
    while (next < SENT && received + atomic_load(&ring.lost) < SENT) {
        uint64_t limit = ring_limit(&ring);
        for (uint64_t number; (number = take(&ring, limit)) != UINT64_MAX; received++) {
            assert_true(number >= next);
            next = number + 1;
        }
    }
    pthread_join(sender, NULL);
    while (take(&ring, ring_limit(&ring)) != UINT64_MAX)
        received++;
    assert_int_equal(received + atomic_load(&ring.lost), SENT);
    assert_true(received > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_in_first_out),
        cmocka_unit_test(test_what_finds_no_room_is_counted),
        cmocka_unit_test(test_a_limit_holds),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
