/* links: trace/file.c trace/records.c trace/records_events.c */
/* The stream of events: written, read, and what the reader refuses. */
#include "trace/file.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/test_trace_events.XXXXXX";
static struct trace trace;
static char why[300];

static int make_file(void **state)
{
    (void)state;
    int descriptor = mkstemp(path);
    return descriptor < 0 ? -1 : close(descriptor);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static struct trace_writer *begin(void)
{
    struct trace_writer *writer = trace_writer_open(path);
    assert_non_null(writer);
    trace_writer_run(
        writer, &(struct trace_run){
                    .frame_bytes = 65536, .program = trace_writer_name(writer, "program"), .process = 7, .rank = 3});
    trace_writer_module(
        writer,
        &(struct trace_module){
            .number = 1, .path = trace_writer_name(writer, "/lib/a.so"), .bias = 4096, .begin = 4096, .end = 8192});
    for (uint32_t i = 1; i <= 2; i++) {
        struct trace_frame frames[2] = {{.module = 1, .offset = 100 * i},
                                        {.kind = TRACE_PYTHON, .function = 1, .file = 2, .line = i}};
        trace_writer_stack(writer, &(struct trace_stack){.number = i, .frame_count = i}, frames);
        trace_writer_thread(writer, &(struct trace_thread){.number = i, .id = 100 + i});
    }
    return writer;
}

static struct trace_event at(uint64_t sequence)
{
    return (struct trace_event){sequence, 1000 * sequence, 1 + (uint32_t)(sequence % 2), (uint32_t)(sequence % 3)};
}

static void hold(struct trace_writer *writer, uint64_t sequence, uint64_t id)
{
    struct trace_held held = {.event = at(sequence), .id = id, .bytes = 100 * id, .footprint_bytes = 512 * id};
    trace_writer_event(writer, TRACE_HELD, &held, sizeof held);
}

static void let_go(struct trace_writer *writer, uint64_t sequence, uint64_t id)
{
    struct trace_freed freed = {at(sequence), id};
    trace_writer_event(writer, TRACE_FREED, &freed, sizeof freed);
}

static void run(struct trace_writer *writer, uint64_t sequence, uint64_t number, uint32_t is_replay, uint64_t id)
{
    struct {
        struct trace_ran ran;
        struct trace_touch touch;
    } body = {{.event = at(sequence), .number = number, .kind = TRACE_LAUNCH, .is_replay = is_replay, .touch_count = 1},
              {id, TRACE_MAY_READ, 0}};
    trace_writer_event(writer, TRACE_RAN, &body, sizeof body);
}

static bool end(struct trace_writer *writer, bool is_cut)
{
    trace_writer_flush(writer);
    assert_int_equal(trace_writer_error(writer), 0);
    if (is_cut)
        trace_writer_abandon(writer);
    else
        assert_int_equal(trace_writer_close(writer), 0);
    return trace_read(path, &trace, why, sizeof why);
}

static void refused(struct trace_writer *writer, const char *reason)
{
    assert_false(end(writer, false));
    assert_non_null(strstr(why, reason));
    assert_null(strchr(why, '\n'));
}

static void test_round_trip(void **state)
{
    (void)state;
    struct trace_writer *writer = begin();
    hold(writer, 0, 1);
    hold(writer, 1, 5);
    run(writer, 2, 1, 0, 1);
    run(writer, 3, 0, 1, 5);
    run(writer, 4, 2, 0, 5);
    let_go(writer, 5, 1);
    struct trace_timed timed = {at(6), 2, 777};
    trace_writer_event(writer, TRACE_TIMED, &timed, sizeof timed);
    struct trace_moved moved = {at(7), 5, 500, TRACE_SWAP_OUT, 0};
    trace_writer_event(writer, TRACE_MOVED, &moved, sizeof moved);
    struct trace_phase_change phase = {at(8), TRACE_RECORDING, 0};
    trace_writer_event(writer, TRACE_PHASE, &phase, sizeof phase);
    struct trace_boundary boundary = {at(9), 0, 1, 3, TRACE_RECORDING, 0};
    trace_writer_event(writer, TRACE_BOUNDARY, &boundary, sizeof boundary);
    struct trace_resident resident = {at(10), 1, 2, 3, 4};
    trace_writer_event(writer, TRACE_RESIDENT, &resident, sizeof resident);
    assert_true(end(writer, false));
    assert_false(trace.is_cut);
    assert_int_equal(trace.run.rank, 3);
    assert_int_equal(trace.life_count, 2);
    assert_int_equal(trace.lives[0].freed_at, 5000);
    assert_int_equal(trace.lives[1].freed_at, TRACE_NEVER);
    assert_int_equal(trace.lives[1].footprint_bytes, 2560);
    assert_int_equal(trace.submitted_count, 3);
    assert_true(trace.submitted[1].is_replay);
    assert_int_equal(trace.submitted[2].nanoseconds, 777);
    assert_int_equal(trace.touches[trace.submitted[2].first_touch].life, 1);
    assert_int_equal(trace.shifts[0].life, 1);
    assert_int_equal(trace.phases[0].phase, TRACE_RECORDING);
    assert_int_equal(trace.boundaries[0].end, 3);
    assert_int_equal(trace.residents[0].demand_bytes, 4);
    assert_int_equal(trace.end_at, 10000);
    assert_int_equal(trace.stack_count, 3);
    assert_int_equal(trace.stacks[2].count, 2);
    assert_int_equal(trace.stacks[2].frames[1].line, 2);
    assert_int_equal(trace.threads[2].id, 102);
    assert_int_equal(trace.modules[1].bias, 4096);
    assert_int_equal(trace_find_life(&trace, 5), 1);
    assert_int_equal(trace_find_life(&trace, 4), TRACE_NONE);
    assert_int_equal(trace_find_submitted(&trace, 2), 2);
    assert_int_equal(trace_find_submitted(&trace, 3), TRACE_NONE);
    trace_release(&trace);
}

/* One thread's events after another's: told apart by their sequence. */
static void test_order_is_that_of_the_sequence(void **state)
{
    (void)state;
    struct trace_writer *writer = begin();
    let_go(writer, 5, 2);
    run(writer, 3, 1, 0, 2);
    run(writer, 4, 2, 0, 3);
    hold(writer, 1, 2);
    hold(writer, 0, 1);
    hold(writer, 2, 3);
    assert_true(end(writer, false));
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(trace.lives[i].id, i + 1);
    assert_int_equal(trace.lives[1].freed_sequence, 5);
    assert_int_equal(trace.touches[trace.submitted[0].first_touch].life, 1);
    assert_int_equal(trace.touches[trace.submitted[1].first_touch].life, 2);
    trace_release(&trace);
}

static void test_finds_among_many_replays(void **state)
{
    (void)state;
    struct trace_writer *writer = begin();
    uint64_t sequence = 0, number = 0, random = 3;
    hold(writer, sequence++, 1);
    for (int i = 0; i < 5000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        bool is_replay = i < 400 || i > 4600 || (random >> 40) % 3;
        number += !is_replay;
        run(writer, sequence++, is_replay ? random % 50 : number * 2, is_replay, 1);
    }
    assert_true(end(writer, false));
    for (uint64_t i = 1; i <= number; i++) {
        uint32_t found = trace_find_submitted(&trace, i * 2);
        assert_true(found != TRACE_NONE && !trace.submitted[found].is_replay);
        assert_int_equal(trace.submitted[found].number, i * 2);
        assert_int_equal(trace_find_submitted(&trace, i * 2 + 1), TRACE_NONE);
    }
    trace_release(&trace);
}

static void test_what_is_missing_is_missing_only_where_it_may(void **state)
{
    (void)state;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        for (int is_lossy = 0; is_lossy < 2; is_lossy++) {
            struct trace_writer *writer = begin();
            hold(writer, 0, 1);
            run(writer, 1, 1, 0, 9);
            let_go(writer, 2, 8);
            struct trace_lost lost = {at(3), 4};
            if (is_lossy)
                trace_writer_event(writer, TRACE_LOST, &lost, sizeof lost);
            bool is_read = end(writer, is_cut);
            assert_true(is_read == (is_cut || is_lossy));
            if (!is_read)
                continue;
            assert_int_equal(trace.lost_count, 2 + 4 * is_lossy);
            assert_true(trace.is_cut == is_cut);
            assert_int_equal(trace.touches[0].life, TRACE_NONE);
            trace_release(&trace);
        }
    }
}

static void test_disorder_is_refused(void **state)
{
    (void)state;
    struct trace_writer *writer = begin();
    hold(writer, 0, 1);
    let_go(writer, 1, 1);
    let_go(writer, 2, 1);
    refused(writer, "freed twice");
    writer = begin();
    hold(writer, 1, 1);
    let_go(writer, 0, 1);
    refused(writer, "before it was held");
    writer = begin();
    hold(writer, 0, 1);
    hold(writer, 0, 2);
    refused(writer, "one place in the sequence");
    writer = begin();
    hold(writer, 0, 1);
    run(writer, 0, 1, 0, 1);
    refused(writer, "there twice");
    writer = begin();
    hold(writer, 0, 1);
    hold(writer, 2, 2);
    refused(writer, "events are missing");
    writer = begin();
    hold(writer, 0, 2);
    hold(writer, 1, 1);
    refused(writer, "ids of allocations do not grow");
    writer = begin();
    hold(writer, 0, 1);
    run(writer, 1, 5, 0, 1);
    run(writer, 2, 5, 0, 1);
    refused(writer, "numbers of operations do not grow");
    writer = begin();
    struct trace_freed freed = {{.sequence = 0, .thread = 3}, 1};
    trace_writer_event(writer, TRACE_FREED, &freed, sizeof freed);
    refused(writer, "a thread or a stack that is not there");
    writer = begin();
    trace_writer_event(writer, TRACE_FREED, &freed, sizeof freed - 8);
    refused(writer, "not");
    writer = begin();
    trace_writer_iteration(writer, &(struct trace_iteration){.operation_count = 1});
    trace_writer_event(writer, TRACE_FREED, &freed, sizeof freed);
    assert_int_equal(trace_writer_error(writer), 22); /* EINVAL: within an iteration */
    trace_writer_abandon(writer);
}

static void test_many_events(void **state)
{
    (void)state;
    struct trace_writer *writer = begin();
    for (uint64_t i = 0; i < 100000; i += 4) {
        hold(writer, i, i + 1);
        run(writer, i + 1, i + 1, 0, i + 1);
        run(writer, i + 2, 0, 1, i + 1);
        let_go(writer, i + 3, i + 1);
    }
    assert_true(end(writer, false));
    assert_int_equal(trace.life_count, 25000);
    for (uint32_t i = 0; i < trace.life_count; i++) {
        assert_int_equal(trace.lives[i].freed_sequence - trace.lives[i].held_sequence, 3);
        assert_int_equal(trace.touches[2 * i].life, i);
    }
    trace_release(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_order_is_that_of_the_sequence),
        cmocka_unit_test(test_finds_among_many_replays),
        cmocka_unit_test(test_what_is_missing_is_missing_only_where_it_may),
        cmocka_unit_test(test_disorder_is_refused),
        cmocka_unit_test(test_many_events),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
