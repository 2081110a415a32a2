/* links: shim/code.c shim/code_text.c shim/code_steps.c shim/code_flow.c shim/fatbin.c */
#include "shim/code.h"
#include "shim/launch.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What is expected of each kernel of samples/code.cu. One character per word of the parameters:
 * . untouched   l loaded through   s stored through   b both */
struct expectation {
    const char *kernel, *words;
    const char *flags;  /* L indirect load, S indirect store, M module memory */
    const char *impure; /* part of the reason; NULL: pure */
};

static const struct expectation expectations[] = {
    {"axpy", ".ls.", "", NULL},
    {"in_place", "b.", "", NULL},
    {"conditional", "lss.", "", NULL},
    {"by_value", "sl...", "", NULL},
    {"indexed_list", "bbbbbbbb", "", NULL}, /* indexed parameters are taken as one */
    {"choose", "ss..", "", NULL},
    {"local_table", "sss.", "", NULL},
    {"gather", "sll.", "", NULL},
    {"gather_narrow", "sll", "", NULL},
    {"through_memory", "l..", "S", NULL},
    {"read_through_memory", "l.s", "L", NULL},
    {"through_halves", "l..", "S", NULL},
    {"calls", "sl", "", NULL},
    {"recursive", "ls.", "", NULL},
    {"shared_copy", "ls", "", NULL},
    {"shared_pointer", "ss.", "", NULL},
    {"shared_histogram", "ls", "", NULL},
    {"shared_slot", "ls", "", "result of an atomic"},
    {"shared_float_sum", "ls", "", "floating-point"},
    {"integer_sum", "lb", "", NULL},
    {"integer_max", "lb", "", NULL},
    {"float_sum", "lb", "", "floating-point"},
    {"double_sum", "lb", "", "floating-point"},
    {"slot", "bs", "", "result of an atomic"},
    {"swap_cell", "b", "", "exchanges"},
    {"compare_swap", "b.", "", "exchanges"},
    {"clock_reader", "s", "", "clock"},
    {"timer", "s", "", "clock"},
    {"processor", "s", "", "multiprocessor"},
    {"module_counter", "s", "M", "module variable"},
    {"module_writer", ".", "", "writes a module variable"},
    {"module_reader", "s", "M", "reads a module variable"},
    {"module_pointer", ".", "SM", "module variable"},
    {"constant_reader", "s", "M", NULL},
    {"sine", "ls", "M", NULL},
    {"printer", "l", "", "prints"},
    {"allocator", "s", "", "allocates"},
    {"grid_sync", "bs", "", NULL},
    {"shuffle", "ls", "", NULL},
    {"async_copy", "ls", "", NULL},
    {"bulk_store", "s", "", NULL},
    {"bulk_reduce", "b", "", "floating-point"},
    {"tensor_load",
     "llllllllllllllll"
     "s.",
     "", NULL},
    {"tensor_store",
     "ssssssssssssssss"
     ".",
     "", NULL},
    {"texture", "s.", "L", NULL},
    {"surface", ".", "LS", NULL},
    {"byte_store", "sl.", "", NULL},
    {"strided", "sl.", "", NULL},
    {"address_of_param", "s......", "", NULL},
    {"scoped_asm", "s", "", NULL},
    {"nothing", "", "", NULL},
};

static char *sample;
static size_t sample_bytes;
static struct code *code;

static int read_sample(void **state)
{
    (void)state;
    FILE *file = fopen("tests/unit/samples/code.ptx", "rb");
    if (!file)
        return -1;
    sample = calloc(1, 1 << 20);
    sample_bytes = fread(sample, 1, (1 << 20) - 1, file);
    fclose(file);
    code = code_read(sample, sample_bytes);
    return code ? 0 : -1;
}

static int release_sample(void **state)
{
    (void)state;
    code_release(code);
    free(sample);
    return 0;
}

static bool has_word(const uint64_t *words, uint32_t word)
{
    return words[word / 64] >> (word % 64) & 1;
}

static void describe(const struct code_facts *facts, char *words, char *flags)
{
    for (uint32_t word = 0; word < facts->word_count; word++) {
        bool is_loaded = has_word(facts->loaded_words, word), is_stored = has_word(facts->stored_words, word);
        *words++ = is_loaded && is_stored ? 'b' : is_loaded ? 'l' : is_stored ? 's' : '.';
    }
    *words = '\0';
    snprintf(flags, 4, "%s%s%s", facts->has_indirect_load ? "L" : "", facts->has_indirect_store ? "S" : "",
             facts->reads_module_memory ? "M" : "");
}

static void test_what_nvcc_writes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
        const struct expectation *expected = &expectations[i];
        char words[128], flags[4];
        const struct code_facts *facts = code_find(code, expected->kernel);
        assert_non_null(facts);
        assert_string_equal(facts->name, expected->kernel);
        assert_null(facts->unreadable_reason);
        describe(facts, words, flags);
        assert_string_equal(words, expected->words);
        assert_string_equal(flags, expected->flags);
        assert_int_equal(facts->impure_reason != NULL, expected->impure != NULL);
        if (expected->impure)
            assert_non_null(strstr(facts->impure_reason, expected->impure));
        assert_ptr_equal(code_find(code, expected->kernel), facts);
    }
}

static void test_unreadable(void **state)
{
    (void)state;
    const struct code_facts *facts = code_find(code, "indirect_call");
    assert_non_null(facts);
    assert_non_null(strstr(facts->unreadable_reason, "function pointer"));
    facts = code_find(code, "unknown_instruction");
    assert_non_null(strstr(facts->unreadable_reason, "not understood"));
    assert_null(code_find(code, "no_such_kernel"));
    assert_null(code_find(code, "put")); /* a function, not a kernel */
}

static void test_params(void **state)
{
    (void)state;
    const struct code_facts *facts = code_find(code, "by_value");
    assert_int_equal(facts->param_count, 1);
    assert_int_equal(facts->params[0].bytes, 40);
    facts = code_find(code, "tensor_load");
    assert_int_equal(facts->param_count, 3);
    assert_int_equal(facts->params[0].bytes, 128);
    assert_int_equal(facts->params[1].offset, 128);
    assert_int_equal(facts->params[2].offset, 136);
    assert_int_equal(facts->params[2].bytes, 4);
    assert_int_equal(facts->params[2].first_word, 17);
}

/* Kernels as other compilers and hands write them. */
static const char head[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

static struct code *read_text(const char *body)
{
    static char text[8192];
    int length = snprintf(text, sizeof text, "%s%s", head, body);
    return code_read(text, (size_t)length);
}

static void expect_text(const char *body, const char *words, const char *flags, const char *impure)
{
    struct code *own = read_text(body);
    char got_words[256], got_flags[4];
    assert_non_null(own);
    const struct code_facts *facts = code_find(own, "k");
    assert_non_null(facts);
    assert_null(facts->unreadable_reason);
    describe(facts, got_words, got_flags);
    assert_string_equal(got_words, words);
    assert_string_equal(got_flags, flags);
    assert_int_equal(facts->impure_reason != NULL, impure != NULL);
    if (impure)
        assert_non_null(strstr(facts->impure_reason, impure));
    code_release(own);
}

static void test_other_hands(void **state)
{
    (void)state;
    /* registers without %, comments everywhere, a pointer mark with an alignment */
    expect_text(".visible .entry k(.param .u64 .ptr .global .align 16 a, /* , .param */ .param .u32 n) // )\n"
                ".maxntid 128, 1, 1 .minnctapersm 1\n{ .reg .b64 r<3>; .reg .b32 v;\n ld.param.u64 r1, [a]; // {\n"
                " mov.u32 v, 1; st.global.b32 [r1+-4], v; ret; }",
                "s.", "", NULL);
    /* two halves of a pointer from parameters */
    expect_text(".entry k(.param .align 4 .b8 p[8]) { .reg .b32 a, b; .reg .b64 c; ld.param.u32 a, [p];\n"
                "ld.param.u32 b, [p+4]; mov.b64 c, {a, b}; st.global.u32 [c], a; ret; }",
                "s", "", NULL);
    /* bytes of a packed pointer */
    expect_text(".entry k(.param .align 1 .b8 p[16]) { .reg .b64 a, b, c; ld.param.u8 a, [p+7]; ld.param.u8 b, [p+8];\n"
                "shl.b64 b, b, 8; or.b64 c, a, b; st.global.u64 [c], a; ret; }",
                "ss", "", NULL);
    /* an atomic without destination use is a reduction, also with the sink */
    expect_text(
        ".entry k(.param .u64 p) { .reg .b64 a; .reg .b32 b; ld.param.u64 a, [p]; atom.global.add.u32 b, [a], 1;\n"
        "atom.global.or.b32 _, [a], 1; red.global.max.s32 [a], 3; ret; }",
        "b", "", NULL);
    expect_text(".entry k(.param .u64 p) { .reg .b64 a; .reg .b32 b; ld.param.u64 a, [p];\n"
                "red.global.add.noftz.bf16x2 [a], b; ret; }",
                "b", "", "floating-point");
    /* cvta of a parameter's address and a load through it */
    expect_text(".entry k(.param .align 8 .b8 p[24]) { .reg .b64 a, b, c; mov.b64 a, p; cvta.param.u64 b, a;\n"
                "ld.u64 c, [b+8]; st.u32 [c], 1; ret; }",
                ".s.", "", NULL);
    /* vectors of pointers */
    expect_text(".entry k(.param .align 16 .b8 p[32]) { .reg .b64 a, b; ld.param.v2.u64 {a, b}, [p+16];\n"
                "ld.global.u32 %r1, [a]; st.global.u32 [b], %r1; ret; }",
                "..ls", "", NULL);
    /* an address out of nothing */
    expect_text(".entry k() { .reg .b64 a; mov.u64 a, 4096; st.global.u32 [a], 1; ret; }", "", "S", NULL);
    /* symbols as addresses */
    expect_text(".global .align 4 .u32 g; .const .u32 c = 1; .extern .shared .align 16 .b8 s[];\n"
                ".entry k() { ld.const.u32 %r1, [c]; st.shared.u32 [s+4], %r1; ret; }",
                "", "M", NULL);
    expect_text(".global .align 4 .u32 g; .entry k() { red.global.add.u32 [g], 1; ret; }", "", "M", "module variable");
    /* switch tables, predicates, labels, line marks */
    expect_text(".entry k(.param .u64 p, .param .u32 n) { .reg .pred q; .loc 1 2 3\n ld.param.u32 %r1, [n];\n"
                "ts: .branchtargets L0, L1;\n brx.idx %r1, ts; L0: L1: ld.param.u64 %rd1, [p];\n"
                "@!q st.global.u32 [%rd1], %r1;\n.loc 1 3 1, function_name f, inlined_at 1 2 3\n @q ret; ret; }",
                "s.", "", NULL);
    expect_text(".entry k(.param .u64 p) { ld.param.u64 %rd1, [p]; activemask.b32 %r1; st.global.u32 [%rd1], %r1; }",
                "s", "", "run together");
    expect_text(".entry k(.param .u64 p) { ld.param.u64 %rd1, [p]; wmma.load.a.sync.aligned.row.m16n16k16.global.f16\n"
                "{%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1], 16; }",
                "l", "", NULL);
    expect_text(
        ".entry k(.param .u64 p) { ld.param.u64 %rd1, [p]; tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1}]; }", ".",
        "L", NULL);
}

static void expect_unreadable(const char *body, const char *reason)
{
    struct code *own = read_text(body);
    assert_non_null(own);
    const struct code_facts *facts = code_find(own, "k");
    assert_non_null(facts);
    assert_non_null(facts->unreadable_reason);
    assert_non_null(strstr(facts->unreadable_reason, reason));
    code_release(own);
}

static void test_not_understood(void **state)
{
    (void)state;
    expect_unreadable(".entry k() { frobnicate.b32 %r1, %r2; ret; }", "not understood");
    expect_unreadable(".entry k() { call.uni (%r1), %rd1, (%r2), proto; ret; }", "function pointer");
    expect_unreadable(
        ".extern .func cudaLaunchDeviceV2(.param .b64 a); .entry k() { call cudaLaunchDeviceV2, (%rd1); }",
        "not in the module");
    expect_unreadable(".entry k() { mov.u32 %r1, 1 }", "breaks off");
    assert_null(read_text(".entry k() { mov.u32 %r1, 1;"));
    assert_null(code_read("", 0));
    assert_null(code_read("hello", 5));
    assert_null(read_text(".entry k("));
    assert_null(read_text("}"));
}

static void test_layout_by_the_driver(void **state)
{
    (void)state;
    struct function_facts out = {.argument_bytes = 1};
    /* params: out, in.. of by_value moved to an odd place */
    const struct code_facts *facts = code_find(code, "by_value");
    uint32_t offset = 32, size = 40;
    assert_true(code_fill_facts(facts, 1, &offset, &size, &out));
    assert_true(out.is_readable);
    assert_false(out.is_impure);
    assert_int_equal(out.stored_words[0], 1 << 4);
    assert_int_equal(out.loaded_words[0], 1 << 5);
    assert_int_equal(out.argument_bytes, 1);
    offset = 4; /* not aligned: the words overlapped count */
    assert_true(code_fill_facts(facts, 1, &offset, &size, &out));
    assert_int_equal(out.stored_words[0], 3 << 0);
    assert_int_equal(out.loaded_words[0], 3 << 1);
    offset = 8 * 511; /* beyond the bitmap: no bit, no overrun */
    assert_true(code_fill_facts(facts, 1, &offset, &size, &out));
    assert_int_equal(out.stored_words[7] >> 63, 1);
    assert_int_equal(out.loaded_words[7], 0);
    size = 32;
    assert_false(code_fill_facts(facts, 1, &offset, &size, &out));
    assert_false(out.is_readable);
    assert_int_equal(out.stored_words[7], 0);
    uint32_t none[1] = {0};
    assert_false(code_fill_facts(facts, 0, none, none, &out));
    assert_true(code_fill_facts(code_find(code, "slot"), 2, (uint32_t[]){0, 8}, (uint32_t[]){8, 8}, &out));
    assert_true(out.is_impure);
    assert_non_null(out.impure_reason);
    assert_true(
        code_fill_facts(code_find(code, "through_memory"), 3, (uint32_t[]){0, 8, 12}, (uint32_t[]){8, 4, 4}, &out));
    assert_true(out.has_indirect_access && out.has_indirect_store);
    assert_true(code_fill_facts(code_find(code, "texture"), 2, (uint32_t[]){0, 8}, (uint32_t[]){8, 8}, &out));
    assert_true(out.has_indirect_access && !out.has_indirect_store);
    assert_false(code_fill_facts(code_find(code, "unknown_instruction"), 1, (uint32_t[]){0}, (uint32_t[]){8}, &out));
}

static size_t add(const void *owner, const char *body)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s", head, body);
    return code_add_module(owner, text);
}

#define STORES ".entry k(.param .u64 p) { ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 1; ret; }"
#define LOADS  ".entry k(.param .u64 p) { ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; ret; }"

static void test_variables_take_memory(void **state)
{
    int owner = 1, other = 2;
    (void)state;
    assert_int_equal(code_module_variable_bytes(&owner), 0);
    assert_int_equal(add(&owner, ".global .align 4 .u32 counter;\n.visible .const .align 8 .b64 table[5] = {1, 2};\n"
                                 ".global .v2 .f32 pairs[3][2];\n" STORES),
                     1);
    assert_int_equal(add(&other, ".shared .b8 not_here[1000];\n" LOADS), 1);
    assert_int_equal(code_module_variable_bytes(&owner), 4 + 40 + 48);
    assert_int_equal(code_module_variable_bytes(&other), 0);
    code_drop_module(&owner);
    code_drop_module(&other);
    assert_int_equal(code_module_variable_bytes(&owner), 0);
}

static void test_modules(void **state)
{
    (void)state;
    int first = 1, second = 2, third = 3;
    assert_int_equal(add(&first, STORES), 1);
    assert_int_equal(add(&second, LOADS ".entry only_here() { ret; }"), 1);
    const struct code_facts *facts = code_lookup(&first, "k");
    assert_non_null(facts);
    assert_true(has_word(facts->stored_words, 0));
    facts = code_lookup(&second, "k");
    assert_false(has_word(facts->stored_words, 0));
    assert_true(has_word(facts->loaded_words, 0));
    assert_null(code_lookup(NULL, "k")); /* two that differ */
    assert_non_null(code_lookup(NULL, "only_here"));
    assert_null(code_lookup(&first, "only_here"));
    assert_null(code_lookup(&third, "k"));
    code_drop_module(&second);
    assert_null(code_lookup(&second, "k"));
    assert_null(code_lookup(NULL, "only_here"));
    assert_non_null(code_lookup(NULL, "k"));
    assert_int_equal(add(&first, LOADS), 1); /* the handle was used again */
    assert_false(has_word(code_lookup(&first, "k")->stored_words, 0));
    assert_int_equal(add(&third, LOADS), 1);
    assert_non_null(code_lookup(NULL, "k")); /* two that agree */
    assert_int_equal(code_add_module(&third, "\177ELF"), 0);
    assert_null(code_lookup(&third, "k"));
    code_drop_module(&first);
    code_drop_module(&third);
    code_drop_module(&third);
}

/* A container with two targets whose code differs: what either does counts. */
static void test_union_over_targets(void **state)
{
    (void)state;
    static unsigned char image[8192];
    const char *const bodies[] = {LOADS, STORES};
    size_t at = 16;
    int owner = 1;
    memcpy(image, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t target = 75 + 15 * i, header = 64;
        int length = snprintf((char *)image + at + 64, 2048, "%s%s", head, bodies[i]);
        uint64_t padded = ((uint64_t)length + 8) & ~(uint64_t)7;
        memcpy(image + at, "\x01\x00\x01\x01", 4);
        memcpy(image + at + 4, &header, 4);
        memcpy(image + at + 8, &padded, 8);
        memcpy(image + at + 28, &target, 4);
        at += 64 + padded;
    }
    uint64_t body = at - 16;
    memcpy(image + 8, &body, 8);
    assert_int_equal(code_add_module(&owner, image), 2);
    const struct code_facts *facts = code_lookup(&owner, "k");
    assert_non_null(facts);
    assert_true(has_word(facts->stored_words, 0));
    assert_true(has_word(facts->loaded_words, 0));
    assert_ptr_equal(code_lookup(&owner, "k"), facts);
    code_drop_module(&owner);
}

static void look_at_all(const char *text, size_t bytes)
{
    struct code *own = code_read(text, bytes);
    for (size_t i = 0; own && i < sizeof expectations / sizeof *expectations; i++)
        code_find(own, expectations[i].kernel);
    code_release(own);
}

/* Text that is cut off or damaged is refused or analysed, never a crash. */
static void test_damaged_text(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (size_t length = 0; length < sample_bytes; length += 501) {
        char *copy = malloc(length + 1);
        memcpy(copy, sample, length);
        look_at_all(copy, length);
        free(copy);
    }
    static const char bytes[] = "{}[]();,.@%/*\"-+0 \n:|_";
    for (int round = 0; round < 150; round++) {
        char *copy = malloc(sample_bytes);
        memcpy(copy, sample, sample_bytes);
        for (int flips = 0; flips < 1 + round % 8; flips++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            copy[(random >> 20) % sample_bytes] = bytes[(random >> 50) % (sizeof bytes - 1)];
        }
        look_at_all(copy, sample_bytes);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_nvcc_writes),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_params),
        cmocka_unit_test(test_other_hands),
        cmocka_unit_test(test_not_understood),
        cmocka_unit_test(test_layout_by_the_driver),
        cmocka_unit_test(test_variables_take_memory),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_union_over_targets),
        cmocka_unit_test(test_damaged_text),
    };
    return cmocka_run_group_tests(tests, read_sample, release_sample);
}
