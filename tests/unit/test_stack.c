/* links: trace/stack.c trace/definitions.c */
/* Call stacks where they are hard to get, and the table that numbers them. */
#include "trace/definitions.h"
#include "trace/stack.h"
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST TRACE_STACK_MOST

static void *open_library(const char *name, int flags)
{
    return dlopen(name, flags);
}

static void *find_function(void *handle, const char *name)
{
    return dlsym(handle, name);
}

static const struct stack_linker linker = {open_library, find_function};
static void *addresses[MOST];
static volatile uint32_t count; /* also set by a signal handler */

__attribute__((noinline)) static void capture(void)
{
    count = stack_capture(&linker, addresses, MOST);
    __asm__ volatile(""); /* no tail call */
}

static bool is_in(void *address, void (*function)(void), size_t bytes)
{
    return (char *)address > (char *)(uintptr_t)function && (char *)address < (char *)(uintptr_t)function + bytes;
}

static void test_calls_are_seen(void **state)
{
    (void)state;
    capture();
    assert_true(stack_is_available());
    assert_true(count > 3 && count < MOST);
    assert_true(is_in(addresses[0], capture, 200) || is_in(addresses[1], capture, 200));
}

__attribute__((noinline)) static int recurse(int depth)
{
    if (depth == 0)
        capture();
    else
        recurse(depth - 1);
    __asm__ volatile("");
    return depth;
}

static void test_depth_is_limited(void **state)
{
    (void)state;
    recurse(10);
    uint32_t shallow = count;
    recurse(20);
    assert_int_equal(count, shallow + 10);
    recurse(1000);
    assert_int_equal(count, MOST);
}

static void on_signal(int number)
{
    (void)number;
    capture();
}

static void test_on_an_alternate_stack(void **state)
{
    (void)state;
    stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536}, before;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, old;
    sigaltstack(&other, &before);
    sigaction(SIGUSR1, &action, &old);
    count = 0;
    raise(SIGUSR1);
    assert_true(count >= 2 && count < MOST);
    assert_true(is_in(addresses[0], capture, 200) || is_in(addresses[1], capture, 200));
    sigaction(SIGUSR1, &old, NULL);
    before.ss_flags = SS_DISABLE;
    sigaltstack(&before, NULL);
    free(other.ss_sp);
}

#if defined(__x86_64__)
/* Code that a compiler at run time might make: no unwind information, no frame pointer, things on the stack. */
static const unsigned char foreign[] = {0x55,                               /* push %rbp */
                                        0x48, 0x83, 0xec, 0x10,             /* sub $0x10, %rsp */
                                        0x48, 0xc7, 0x04, 0x24, 1, 0, 0, 0, /* movq $1, (%rsp) */
                                        0x48, 0x31, 0xed,                   /* xor %rbp, %rbp */
                                        0xff, 0xd7,                         /* call *%rdi */
                                        0x48, 0x83, 0xc4, 0x10,             /* add $0x10, %rsp */
                                        0x5d,                               /* pop %rbp */
                                        0xc3};

static void test_code_without_unwind_information_ends_it(void **state)
{
    (void)state;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    memcpy(page, foreign, sizeof foreign);
    void (*call)(void (*)(void));
    memcpy(&call, &page, sizeof call);
    count = 0;
    for (int i = 0; i < 100; i++) /* with whatever the cache has learned */
        call(capture);
    bool is_seen = false;
    for (uint32_t i = 0; i < count; i++)
        is_seen = is_seen || (addresses[i] > page && (char *)addresses[i] < (char *)page + 4096);
    assert_true(count >= 2 && is_seen);
    munmap(page, 4096);
}
#else
static void test_code_without_unwind_information_ends_it(void **state)
{
    (void)state;
    skip();
}
#endif

static void *capture_often(void *unused)
{
    (void)unused;
    void *mine[MOST];
    for (int i = 0; i < 20000; i++)
        assert_true(stack_capture(&linker, mine, MOST) > 1);
    return NULL;
}

static void test_from_many_threads(void **state)
{
    (void)state;
    pthread_t threads[8];
#ifdef __SANITIZE_THREAD__
    skip(); /* libunwind cleans up when a thread ends, and uses a lock when that sanitizer has ended it already */
#endif
    capture();
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, capture_often, NULL), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

static uint32_t number_of(struct definitions *definitions)
{
    struct trace_frame frames[MOST];
    uint64_t hash = stack_hash(0, addresses, count);
    uint32_t number = definitions_find_stack(definitions, hash);
    if (number)
        return number;
    for (uint32_t i = 0; i < count; i++)
        frames[i] = (struct trace_frame){.kind = TRACE_NATIVE, .offset = (uintptr_t)addresses[i]};
    return definitions_add_stack(definitions, hash, frames, count, false);
}

static void test_equal_stacks_have_one_number(void **state)
{
    (void)state;
    struct definitions *definitions = definitions_open();
    uint32_t numbers[3] = {0};
    for (int round = 0; round < 3; round++) {
        for (int depth = 0; depth < 3; depth++) {
            recurse(depth);
            uint32_t number = number_of(definitions);
            assert_true(round == 0 ? number == (uint32_t)depth + 1 : number == numbers[depth]);
            numbers[depth] = number;
        }
    }
    definitions_close(definitions);
}

/* Frames lie in modules with a build id and a path; names come before what names them. */
static void test_definitions_are_in_order(void **state)
{
    (void)state;
    struct definitions *definitions = definitions_open();
    capture();
    assert_int_equal(number_of(definitions), 1);
    assert_int_equal(definitions_thread(definitions, 77, "main"), 1);
    uint32_t name = definitions_name(definitions, "kernel");
    assert_true(name > 0);
    assert_int_equal(definitions_name(definitions, "kernel"), name);
    assert_int_equal(definitions_name(definitions, ""), 0);
    size_t bytes;
    const char *at = definitions_since(definitions, 0, &bytes), *end = at + bytes;
    uint32_t names = 0, modules = 0, stacks = 0, build_ids = 0;
    for (struct trace_record record; at < end; at += record.bytes) {
        memcpy(&record, at, sizeof record);
        const void *body = at + sizeof record;
        if (record.kind == TRACE_NAME) {
            assert_int_equal(((const struct trace_name *)body)->number, ++names);
        } else if (record.kind == TRACE_MODULE) {
            const struct trace_module *module = body;
            assert_int_equal(module->number, ++modules);
            assert_true(module->path <= names && module->begin < module->end);
            build_ids += module->build_id_bytes > 0;
        } else if (record.kind == TRACE_STACK) {
            const struct trace_frame *frames = (const void *)((const struct trace_stack *)body + 1);
            assert_int_equal(((const struct trace_stack *)body)->number, ++stacks);
            for (uint32_t i = 0; i < ((const struct trace_stack *)body)->frame_count; i++)
                assert_true(frames[i].module > 0 && frames[i].module <= modules && frames[i].offset < 1u << 30);
        }
    }
    assert_true(modules > 2 && stacks == 1 && build_ids > 0);
    definitions_close(definitions);
}

static void *name_things(void *opaque)
{
    char name[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "name %d", i);
        assert_true(definitions_name(opaque, name) > 0);
    }
    return NULL;
}

static void test_names_from_many_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    struct definitions *definitions = definitions_open();
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, name_things, definitions);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(definitions->name_count, 5000);
    definitions_close(definitions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_are_seen),           cmocka_unit_test(test_depth_is_limited),
        cmocka_unit_test(test_on_an_alternate_stack),    cmocka_unit_test(test_code_without_unwind_information_ends_it),
        cmocka_unit_test(test_from_many_threads),        cmocka_unit_test(test_equal_stacks_have_one_number),
        cmocka_unit_test(test_definitions_are_in_order), cmocka_unit_test(test_names_from_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
