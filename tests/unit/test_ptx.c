/* links: tests/device/ptx_%.c tests/device/program.c */
#include "tests/device/program.h"
#include "tests/device/ptx.h"
#include "tests/device/ptx_fold.h"
#include "tests/device/ptx_lex.h"
#include "tests/device/ptx_print.h"
#include "tests/device/ptx_schedule.h"
#include "tests/device/ptx_shape.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static char why[400];

static struct program *parse(const char *text)
{
    CUresult error;
    return program_parse(text, strlen(text), &error, why, sizeof why);
}

static void expect_refused(const char *text, CUresult code, const char *reason)
{
    CUresult error = CUDA_SUCCESS;
    assert_null(program_parse(text, strlen(text), &error, why, sizeof why));
    assert_int_equal(error, code);
    if (!strstr(why, reason))
        fail_msg("'%s' does not hold '%s'", why, reason);
}

/* ---- words ---- */

static void lexer_reads_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum ptx_token_kind kind;
        uint64_t bits;
    } cases[] = {
        {"0", PTX_TOKEN_INT, 0},
        {"42U", PTX_TOKEN_INT, 42},
        {"0x1F", PTX_TOKEN_INT, 31},
        {"017", PTX_TOKEN_INT, 15},
        {"0b101", PTX_TOKEN_INT, 5},
        {"0f3F800000", PTX_TOKEN_F32, 0x3f800000},
        {"0d3FF0000000000000", PTX_TOKEN_F64, 0x3ff0000000000000},
        {"1.5", PTX_TOKEN_F64, 0x3ff8000000000000},
        {"2e1", PTX_TOKEN_F64, 0x4034000000000000},
        {"0f3F", PTX_TOKEN_BAD, 0x3f},
        {"18446744073709551615", PTX_TOKEN_INT, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ptx_lexer lexer;
        ptx_lex_start(&lexer, cases[i].text, strlen(cases[i].text));
        struct ptx_token token = ptx_lex_next(&lexer);
        assert_int_equal(token.kind, cases[i].kind);
        assert_true(token.bits == cases[i].bits);
        assert_int_equal(token.bytes, strlen(cases[i].text));
        assert_int_equal(ptx_lex_next(&lexer).kind, PTX_TOKEN_END);
    }
}

static void lexer_skips_comments_and_counts_lines(void **state)
{
    (void)state;
    static const char text[] = "a // b\n/* c\n d */ .shared::cta e";
    struct ptx_lexer lexer;
    ptx_lex_start(&lexer, text, sizeof text - 1);
    assert_int_equal(ptx_lex_next(&lexer).line, 1);
    struct ptx_token dot = ptx_lex_next(&lexer);
    assert_int_equal(dot.kind, PTX_TOKEN_DOT);
    assert_int_equal(dot.line, 3);
    assert_memory_equal(dot.text, "shared::cta", dot.bytes);
    assert_int_equal(ptx_lex_next(&lexer).kind, PTX_TOKEN_NAME);
    ptx_lex_start(&lexer, "/* never closed", 15);
    assert_int_equal(ptx_lex_next(&lexer).kind, PTX_TOKEN_END);
}

/* ---- modules ---- */

static void entry_is_described(void **state)
{
    (void)state;
    struct program *program =
        parse(HEAD ".visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 4 b, .param .align 8 .b8 c[12], "
                   ".param .u32 d)\n"
                   ".maxntid 128, 2, 1 .minnctapersm 2 { .shared .align 8 .b8 s[20]; .shared .f32 unused; .reg .b32 %r;"
                   " mov.u32 %r, s; ret; }");
    assert_non_null(program);
    assert_int_equal(program_entry_count(program), 1);
    const struct program_entry *entry = program_entry(program, 0);
    assert_string_equal(entry->name, "k");
    static const struct program_param expected[] = {{0, 1, 1}, {8, 8, 8}, {16, 12, 8}, {28, 4, 4}};
    assert_int_equal(entry->param_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(entry->params[i].offset, expected[i].offset);
        assert_int_equal(entry->params[i].bytes, expected[i].bytes);
    }
    assert_int_equal(entry->param_bytes, 32);
    assert_int_equal(entry->max_threads, 256);
    assert_int_equal(entry->shared_bytes, 20);
    program_release(program);
}

static void globals_hold_addresses(void **state)
{
    (void)state;
    struct program *program =
        parse(HEAD ".global .align 8 .u64 p = generic(q)+4;\n.global .align 4 .u32 q[2] = {7, 8};\n"
                   ".const .f32 c = 1.5;\n.global .align 1 .b8 b[4] = {0xFF(q), 0xFF00(q), 0xFF0000(q), "
                   "0xFF000000(q)};\n.global .b8 z[3];");
    assert_non_null(program);
    assert_int_equal(program_global_count(program), 5);
    uint64_t memory[5] = {1, 1, 1, 1, 1};
    for (size_t i = 0; i < 5; i++)
        program_global(program, i)->address = &memory[i];
    program_initialise_globals(program);
    assert_true(memory[0] == (uint64_t)(uintptr_t)&memory[1] + 4);
    assert_true(memory[1] == 0x0000000800000007);
    assert_true((uint32_t)memory[2] == 0x3fc00000);
    assert_true((uint32_t)memory[3] == (uint32_t)(uintptr_t)&memory[1]);
    assert_true((memory[4] & 0xffffff) == 0);
    assert_true(program_global(program, 2)->is_constant);
    assert_false(program_global(program, 1)->is_constant);
    program_release(program);
}

static void bad_modules_are_refused(void **state)
{
    (void)state;
    expect_refused("", CUDA_ERROR_INVALID_PTX, "no .version");
    expect_refused(".version 99.0\n", CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "version");
    expect_refused(HEAD ".address_size 32", CUDA_ERROR_INVALID_PTX, "line 4");
    expect_refused(HEAD ".entry k() {\n add.u32 %r, 1, 2;\n", CUDA_ERROR_INVALID_PTX, "line 6: expected '}'");
    expect_refused(HEAD ".entry k() { .reg .b32 %r; bra NOWHERE; }", CUDA_ERROR_INVALID_PTX, "unknown name NOWHERE");
    expect_refused(HEAD ".entry k() { .reg .b32 %r<5>; mov.u32 %r5, 1; ret", CUDA_ERROR_INVALID_PTX, "line 4");
    expect_refused(HEAD ".entry k() { .reg .b32 %r<999999999>; }", CUDA_ERROR_INVALID_PTX, "too many registers");
    expect_refused(HEAD ".global .align 3 .b8 x[2];", CUDA_ERROR_INVALID_PTX, "power of two");
    expect_refused(HEAD ".global .u32 x[1] = {1, 2};", CUDA_ERROR_INVALID_PTX, "more initial values");
    expect_refused(HEAD ".global .u64 x = nothing;", CUDA_ERROR_INVALID_PTX, "nothing");
    expect_refused(HEAD ".extern .global .u32 x;", CUDA_ERROR_INVALID_PTX, "x is not defined");
    expect_refused(HEAD ".entry k() { ret; } .entry k() { ret; }", CUDA_ERROR_INVALID_PTX, "two bodies");
    expect_refused(HEAD ".entry k() { .reg .b32 %r; mov.b32 {{{{{%r}}}}}, 1; }", CUDA_ERROR_INVALID_PTX, "too deep");
}

/* What a fuzzer has found: undefined behaviour each, under the sanitizers. */
static void texts_that_broke_the_reader(void **state)
{
    (void)state;
    static const char *const texts[] = {
        HEAD ".global .align 16 .b128 x = 5;",
        HEAD ".entry a() { bar.sync 0; ret; } .entry b() { call a; ret; }",
        HEAD ".entry k() { .reg .b32 %t, %u; mov.u32 %t, %tid.x; sub.u32 %u, 5, %t; shl.b32 %u, %u, 3; st.shared.u32 "
             "[%u], %t;"
             " ret; }",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CUresult error;
        struct ptx_module *module = ptx_parse(texts[i], strlen(texts[i]), &error, why, sizeof why);
        assert_non_null(module);
        struct ptx_text c = {0};
        for (struct ptx_function *f = module->functions; f; f = f->next)
            ptx_emit_entry(module, f, &c, why, sizeof why);
        text_release(&c);
        ptx_module_release(module);
    }
}

/* ---- passes ---- */

static struct ptx_function *only_function(struct ptx_module **module, const char *text)
{
    CUresult error;
    *module = ptx_parse(text, strlen(text), &error, why, sizeof why);
    assert_non_null(*module);
    return (*module)->functions;
}

static void flow_finds_what_lives_across_barriers(void **state)
{
    (void)state;
    struct ptx_module *module;
    struct ptx_function *f = only_function(&module, HEAD ".entry k() { .reg .b32 %a, %b, %c; .reg .pred %p;"
                                                         " mov.u32 %a, %tid.x; mov.u32 %b, %tid.x; L: add.u32 %c, %a, "
                                                         "%b; bar.sync 0; setp.lt.u32 %p, %a, %c; @%p bra L; ret; }");
    struct ptx_flow *flow = ptx_flow_build(&module->arena, f);
    assert_int_equal(flow->sync_count, 1);
    const struct ptx_block_of_code *behind = &flow->blocks[flow->blocks[flow->syncs[0]].resume];
    assert_true(behind->live_in[0] == 7); /* a, b (for the next round), c; not p */
    ptx_module_release(module);
}

static void constants_replace_registers(void **state)
{
    (void)state;
    struct ptx_module *module;
    struct ptx_function *f =
        only_function(&module, HEAD ".entry k() { .reg .b32 %a, %b, %c; mov.u32 %a, -1; mov.u32 %b, 2; mov.u32 %b, 3;"
                                    " add.u32 %c, %a, %b; ret; }");
    ptx_fold_constants(&module->arena, f);
    assert_int_equal(f->insns[3].operands[1].kind, PTX_OP_F32);
    assert_true(f->insns[3].operands[1].bits == 0xffffffff);
    assert_int_equal(f->insns[3].operands[2].kind, PTX_OP_REG); /* set twice */
    ptx_module_release(module);
}

static void shapes_follow_the_thread_index(void **state)
{
    (void)state;
    struct ptx_module *module;
    struct ptx_function *f = only_function(
        &module, HEAD ".entry k(.param .u64 q) { .reg .b32 %t, %c, %i, %m; .reg .b64 %w, %q, %a; .reg .pred %p, %v;"
                      " ld.param.u64 %q, [q]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %i, %c, 256, %t; "
                      "mul.wide.s32 %w, %i, 8; add.s64 %a, %q, %w;"
                      " setp.lt.u32 %p, %i, 5; and.b32 %m, %i, 31; setp.eq.u32 %v, %m, 0; ret; }");
    struct ptx_shape *shapes = ptx_find_shapes(&module->arena, f);
    enum { T, C, I, M, W, Q, A, P, V };
    assert_int_equal(shapes[C].kind, PTX_UNIFORM);
    assert_int_equal(shapes[Q].kind, PTX_UNIFORM);
    assert_int_equal(shapes[T].kind, PTX_AFFINE);
    assert_int_equal(shapes[I].step, 1);
    assert_int_equal(shapes[W].step, 8);
    assert_int_equal(shapes[A].step, 8);
    assert_int_equal(shapes[P].kind, PTX_UNIFORM);
    assert_int_equal(shapes[M].kind, PTX_VARYING);
    assert_int_equal(shapes[V].kind, PTX_VARYING);
    ptx_module_release(module);
}

/* ---- compiling ---- */

static const char simple[] =
    HEAD ".visible .entry k(.param .u64 o) { .reg .b64 %o, %a; .reg .b32 %t; ld.param.u64 %o, [o]; mov.u32 %t, %tid.x;"
         " mul.wide.u32 %a, %t, 4; add.u64 %o, %o, %a; st.global.u32 [%o], %t; ret; }"
         " .visible .entry bad() { .reg .b32 %r; add.sat.u16 %r, %r, 1; ret; }";

static char cache[64];

static int make_cache(void **state)
{
    (void)state;
    strcpy(cache, "/tmp/test_ptx.XXXXXX");
    return mkdtemp(cache) && setenv("CPUDEV_CACHE", cache, 1) == 0 ? 0 : -1;
}

static int remove_cache(void **state)
{
    (void)state;
    char command[128];
    unsetenv("CPUDEV_CC");
    snprintf(command, sizeof command, "rm -rf '%s'", cache);
    return system(command);
}

static void second_start_compiles_nothing(void **state)
{
    (void)state;
    for (int start = 0; start < 2; start++) {
        struct program *program = parse(simple);
        bool was_compiled;
        assert_true(program_prepare(program, 0, &was_compiled, why, sizeof why));
        assert_int_equal(was_compiled, start == 0);
        assert_true(program_prepare(program, 0, &was_compiled, why, sizeof why));
        assert_false(was_compiled);
        program_release(program);
    }
}

static void refused_entry_leaves_others(void **state)
{
    (void)state;
    struct program *program = parse(simple);
    bool was_compiled;
    assert_false(program_prepare(program, 1, &was_compiled, why, sizeof why));
    assert_non_null(strstr(why, "line 4, bad: add.sat.u16"));
    assert_true(program_prepare(program, 0, &was_compiled, why, sizeof why));
    program_release(program);
}

static void cache_of_others_is_refused(void **state)
{
    (void)state;
    struct program *program = parse(simple);
    bool was_compiled;
    assert_int_equal(chmod(cache, 0777), 0);
    assert_false(program_prepare(program, 0, &was_compiled, why, sizeof why));
    assert_non_null(strstr(why, cache));
    assert_int_equal(chmod(cache, 0700), 0);
    assert_true(program_prepare(program, 0, &was_compiled, why, sizeof why));
    program_release(program);
}

static void missing_compiler_is_named(void **state)
{
    (void)state;
    struct program *program = parse(simple);
    bool was_compiled;
    setenv("CPUDEV_CC", "no-such-compiler", 1);
    assert_false(program_prepare(program, 0, &was_compiled, why, sizeof why));
    assert_non_null(strstr(why, "no C compiler"));
    setenv("CPUDEV_CC", "false", 1);
    assert_false(program_prepare(program, 0, &was_compiled, why, sizeof why));
    assert_non_null(strstr(why, "failed"));
    program_release(program);
}

static void damaged_cache_file_is_made_anew(void **state)
{
    (void)state;
    struct program *program = parse(simple);
    bool was_compiled;
    assert_true(program_prepare(program, 0, &was_compiled, why, sizeof why));
    program_release(program);
    char command[160];
    snprintf(command, sizeof command, "for f in '%s'/*.so; do echo broken > \"$f.new\"; mv \"$f.new\" \"$f\"; done",
             cache);
    assert_int_equal(system(command), 0);
    program = parse(simple);
    assert_true(program_prepare(program, 0, &was_compiled, why, sizeof why));
    assert_true(was_compiled);
    program_release(program);
}

/* ---- grids whose blocks wait for each other ---- */

#define BLOCKS 3

/* The barrier that nvcc writes for grid.sync(): thread 0 adds, the first block so much that the sign flips when all are
 * in. */
static const char together[] = HEAD
    ".visible .entry k(.param .u64 o) { .reg .b64 %o, %a, %b, %h; .reg .b32 %l, %u, %t, %c, %v, %w, %n; .reg .pred %p;"
    " mov.u32 %l, %envreg2; mov.u32 %u, %envreg1; cvt.u64.u32 %b, %l; cvt.u64.u32 %h, %u; bfi.b64 %b, %h, %b, 32, 32; "
    "ld.param.u64 %o, [o];"
    " mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %nctaid.x; setp.ne.u32 %p, %t, 0; @%p bra WAIT; "
    "mul.wide.u32 %a, %c, 4; add.u64 %a, %o, %a;"
    " add.u32 %v, %c, 10; st.global.u32 [%a], %v; setp.eq.u32 %p, %c, 0; sub.u32 %w, 0x80000001, %n; selp.b32 %w, %w, "
    "1, %p;"
    " atom.add.release.gpu.global.u32 %v, [%b+4], %w; L: ld.acquire.gpu.global.u32 %w, [%b+4]; xor.b32 %w, %w, %v; "
    "setp.gt.s32 %p, %w, -1; @%p bra L;"
    " WAIT: barrier.sync 0; add.u32 %c, %c, 1; rem.u32 %c, %c, %n; mul.wide.u32 %a, %c, 4; add.u64 %a, %o, %a; "
    "ld.global.u32 %v, [%a];"
    " mov.u32 %c, %ctaid.x; mul.wide.u32 %a, %c, 4; add.u64 %a, %o, %a; @!%p st.global.u32 [%a+64], %v; ret; }";

struct meeting {
    struct program *program;
    struct program_grid grid;
    uint64_t index;
    struct program_worker worker;
};

static void *run_meeting(void *context)
{
    struct meeting *m = context;
    program_run_block(m->program, 0, &m->grid, m->index, &m->worker);
    free(m->worker.scratch);
    return NULL;
}

static void cooperative_blocks_meet(void **state)
{
    (void)state;
    struct program *program = parse(together);
    bool was_compiled;
    assert_non_null(program);
    assert_true(program_prepare(program, 0, &was_compiled, why, sizeof why));
    for (int round = 0; round < 20; round++) {
        uint32_t out[32] = {0};
        uint64_t barrier[8] = {0};
        void *address = out;
        struct meeting meetings[BLOCKS];
        pthread_t threads[BLOCKS];
        for (uint64_t i = 0; i < BLOCKS; i++) {
            meetings[i] = (struct meeting){.program = program,
                                           .index = i,
                                           .grid = {.grid = {BLOCKS, 1, 1},
                                                    .block = {33, 1, 1},
                                                    .params = &address,
                                                    .is_cooperative = true,
                                                    .barrier = barrier,
                                                    .seed = (uint64_t)round}};
            assert_int_equal(pthread_create(&threads[i], NULL, run_meeting, &meetings[i]), 0);
        }
        for (int i = 0; i < BLOCKS; i++)
            pthread_join(threads[i], NULL);
        for (uint32_t i = 0; i < BLOCKS; i++)
            assert_int_equal(out[16 + i], 10 + (i + 1) % BLOCKS);
    }
    program_release(program);
}

/* ---- linked texts ---- */

static void texts_are_linked(void **state)
{
    (void)state;
    struct program *program = parse(
        HEAD ".extern .global .align 4 .u32 number; .extern .func (.param .b32 r) twice(.param .b32 a);"
             " .visible .entry k(.param .u64 o) { .reg .b64 %o; .reg .b32 %v; ld.param.u64 %o, [o]; ld.global.u32 %v, "
             "[number];"
             " { .param .b32 a; .param .b32 r; st.param.b32 [a], %v; call (r), twice, (a); ld.param.b32 %v, [r]; } "
             "st.global.u32 [%o], %v; ret; }\n" HEAD ".visible .global .align 4 .u32 number = 21; .visible .func "
             "(.param .b32 r) twice(.param .b32 a) { .reg .b32 %v;"
             " ld.param.b32 %v, [a]; add.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }");
    assert_non_null(program);
    uint32_t number, out = 0;
    void *address = &out;
    assert_int_equal(program_global_count(program), 1);
    program_global(program, 0)->address = &number;
    program_initialise_globals(program);
    bool was_compiled;
    assert_true(program_prepare(program, 0, &was_compiled, why, sizeof why));
    struct meeting m = {.program = program, .grid = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params = &address}};
    run_meeting(&m);
    assert_int_equal(out, 42);
    program_release(program);
}

/* ---- printing ---- */

static void prints_packed_arguments(void **state)
{
    (void)state;
    struct {
        int32_t i;
        uint32_t u;
        double d;
        const char *s;
        int64_t l;
        int32_t c, w;
        int32_t v;
    } packed = {-5, 7, 1.5, "text", -1234567890123, 'x', 6, 42};
    char path[] = "/tmp/test_ptx_print.XXXXXX", line[200] = "";
    int saved = dup(1), fd = mkstemp(path);
    fflush(stdout);
    dup2(fd, 1);
    int count = ptx_print("%d %u %.2f|%s|%lld %c%*d 100%%\n", &packed);
    fflush(stdout);
    dup2(saved, 1);
    close(saved);
    assert_int_equal(pread(fd, line, sizeof line - 1, 0), strlen("-5 7 1.50|text|-1234567890123 x    42 100%\n"));
    assert_string_equal(line, "-5 7 1.50|text|-1234567890123 x    42 100%\n");
    assert_int_equal(count, 8);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lexer_reads_numbers),
        cmocka_unit_test(lexer_skips_comments_and_counts_lines),
        cmocka_unit_test(entry_is_described),
        cmocka_unit_test(globals_hold_addresses),
        cmocka_unit_test(bad_modules_are_refused),
        cmocka_unit_test(texts_that_broke_the_reader),
        cmocka_unit_test(flow_finds_what_lives_across_barriers),
        cmocka_unit_test(constants_replace_registers),
        cmocka_unit_test(shapes_follow_the_thread_index),
        cmocka_unit_test_setup_teardown(second_start_compiles_nothing, make_cache, remove_cache),
        cmocka_unit_test_setup_teardown(refused_entry_leaves_others, make_cache, remove_cache),
        cmocka_unit_test_setup_teardown(cache_of_others_is_refused, make_cache, remove_cache),
        cmocka_unit_test_setup_teardown(missing_compiler_is_named, make_cache, remove_cache),
        cmocka_unit_test_setup_teardown(damaged_cache_file_is_made_anew, make_cache, remove_cache),
        cmocka_unit_test_setup_teardown(cooperative_blocks_meet, make_cache, remove_cache),
        cmocka_unit_test_setup_teardown(texts_are_linked, make_cache, remove_cache),
        cmocka_unit_test(prints_packed_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
