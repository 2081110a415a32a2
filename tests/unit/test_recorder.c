/* links: shim/recorder.c shim/recorder_file.c shim/python.c shim/say.c shim/store.c trace/size.c trace/file.c
 * trace/records.c trace/records_events.c trace/definitions.c trace/ring.c trace/stack.c */
/* Threads that record at full speed; what stands in the file afterwards is what they told, or is counted as lost. Each
 * case runs in a child process: a process records once. */
#include "shim/config.h"
#include "shim/driver.h"
#include "shim/recorder.h"
#include "shim/say.h"
#include "trace/file.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 6u

static char path[] = "/tmp/test_recorder.XXXXXX";
static struct config settings;
static uint32_t rounds;
static _Atomic uint64_t next_id, told;

const struct config *config(void)
{
    return &settings;
}

void *driver_dlopen(const char *name, int flags)
{
    return dlopen(name, flags);
}

void *driver_dlsym(void *handle, const char *name)
{
    return dlsym(handle, name);
}

static void tell_held(uint64_t id, uint32_t stack)
{
    struct trace_held *held = recorder_event(TRACE_HELD, sizeof *held, stack);
    if (held == NULL)
        return;
    struct trace_event head = held->event;
    *held = (struct trace_held){.event = head, .id = id, .bytes = id, .what = recorder_name("something")};
    recorder_commit();
    atomic_fetch_add(&told, 1);
}

static void tell_freed(uint64_t id)
{
    struct trace_freed *freed = recorder_event(TRACE_FREED, sizeof *freed, 0);
    if (freed == NULL)
        return;
    freed->id = id;
    recorder_commit();
    atomic_fetch_add(&told, 1);
}

/* Ids grow with the sequence, as the engine's do: its turn, or here a lock, sees to that. */
static void *record(void *unused)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    (void)unused;
    for (uint32_t i = 0; i < rounds; i++) {
#ifdef __SANITIZE_THREAD__
        uint32_t stack = 0; /* see test_stack.c */
#else
        uint32_t stack = recorder_stack();
#endif
        pthread_mutex_lock(&turn);
        uint64_t id = atomic_fetch_add(&next_id, 1) + 1;
        tell_held(id, stack);
        pthread_mutex_unlock(&turn);
        tell_freed(id);
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, record, NULL);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* In a child: records, and ends as `finishes` says. Exit status 0: as many were told or lost as should. */
static void record_in_child(uint64_t ring_bytes, uint32_t times, bool finishes)
{
    pid_t child = fork();
    if (child == 0) {
        settings = (struct config){
            .trace_path = path, .trace_ring_bytes = ring_bytes, .rank = UINT32_MAX, .log_level = SAY_ERROR};
        rounds = times;
        bool is_open = recorder_open(&(struct trace_run){.program = recorder_name("program"), .frame_bytes = 65536});
        recorder_stack(); /* who comes while libunwind is opened gets none */
        run_threads();
        run_threads(); /* others, who take over the rings of the first */
        bool is_right = is_open && atomic_load(&told) + recorder_lost() == 4ull * THREADS * times;
        if (finishes)
            recorder_finish();
        _exit(is_right ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static struct trace read_file(void)
{
    struct trace trace;
    char why[300] = "";
    if (!trace_read(path, &trace, why, sizeof why))
        fail_msg("%s", why);
    return trace;
}

static void test_all_arrives(void **state)
{
    (void)state;
    record_in_child(8u << 20, 5000, true);
    struct trace trace = read_file();
    assert_false(trace.is_cut);
    assert_int_equal(trace.lost_count, 0);
    assert_int_equal(trace.life_count, 2 * THREADS * 5000);
    for (uint32_t i = 0; i < trace.life_count; i++) {
        assert_int_equal(trace.lives[i].id, i + 1);
        assert_true(trace.lives[i].freed_sequence > trace.lives[i].held_sequence &&
                    trace.lives[i].freed_sequence != TRACE_NEVER);
        assert_true(trace.lives[i].thread > 0);
#ifndef __SANITIZE_THREAD__
        assert_true(trace.lives[i].stack > 0);
#endif
        assert_string_equal(trace.names[trace.lives[i].what], "something");
    }
    assert_true(trace.thread_count > THREADS);
    trace_release(&trace);
}

static void test_what_is_lost_is_counted(void **state)
{
    (void)state;
    record_in_child(4096, 20000, true);
    struct trace trace = read_file();
    uint64_t lost = 0, freed = 0;
    for (uint32_t i = 0; i < trace.loss_count; i++)
        lost += trace.losses[i].count;
    for (uint32_t i = 0; i < trace.life_count; i++)
        freed += trace.lives[i].freed_at != TRACE_NEVER;
    assert_false(trace.is_cut);
    assert_true(lost > 0);
    /* What was told is there; frees of what was lost have no place, and are in lost_count as well. */
    assert_int_equal(trace.life_count + freed + trace.lost_count, 4ull * THREADS * 20000);
    trace_release(&trace);
}

/* The process is gone from one moment to the next. */
static void test_without_an_end(void **state)
{
    (void)state;
    record_in_child(8u << 20, 20000, false);
    struct trace trace = read_file();
    assert_true(trace.is_cut);
    assert_true(trace.life_count <= 2 * THREADS * 20000);
    trace_release(&trace);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_arrives),
        cmocka_unit_test(test_what_is_lost_is_counted),
        cmocka_unit_test(test_without_an_end),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
