/* links: policy/builder.c policy/generate.c policy/graph.c policy/text.c policy/text_write.c */
#include "policy/generate.h"
#include "policy/text.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bool read_string(const char *string, size_t length, struct text_problem *out, char *why, size_t why_bytes)
{
    FILE *input = fmemopen((void *)(uintptr_t)string, length, "r");
    assert_non_null(input);
    bool is_read = text_read(input, out, why, why_bytes);
    fclose(input);
    return is_read;
}

static char *write_string(const struct policy_problem *problem, char *const *names, size_t *length)
{
    char *string = NULL;
    FILE *output = open_memstream(&string, length);
    assert_non_null(output);
    assert_true(text_write(output, problem, names));
    fclose(output);
    return string;
}

/* Written, read and written again: the same text. */
static void test_round_trip(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct problem_builder b = {0};
        struct text_problem text;
        size_t first_length, second_length;
        char why[200] = "";
        generate_random(&b, &(struct generate_random){.operations = 20,
                                                      .inputs = 3,
                                                      .max_reads = 4,
                                                      .max_writes = 3,
                                                      .max_bytes = 90,
                                                      .max_ns = 50,
                                                      .per_mille_in_place = 200,
                                                      .per_mille_fixed = 200,
                                                      .per_mille_pinned = 200,
                                                      .per_mille_kept = 100,
                                                      .per_mille_swappable = 300,
                                                      .seed = seed});
        char *first = write_string(&b.problem, NULL, &first_length);
        if (!read_string(first, first_length, &text, why, sizeof why))
            fail_msg("seed %llu: %s", (unsigned long long)seed, why);
        char *second = write_string(&text.builder.problem, NULL, &second_length);
        assert_string_equal(first, second);
        free(first);
        free(second);
        text_release(&text);
        builder_release(&b);
    }
}

static void test_names_and_comments(void **state)
{
    (void)state;
    static const char good[] =
        "reprise-problem 1 # a comment\n\nfixed 7\nbandwidth 2.5 3\nin 10 kept droppable=never\n"
        "op 5 name=gemm workspace=3 : 0\nout 4\nop 6 until=never : 1\nout 4 replaces=1 kept\nend # all\n\n";
    struct text_problem text;
    char why[200] = "";
    if (!read_string(good, strlen(good), &text, why, sizeof why))
        fail_msg("%s", why);
    const struct policy_problem *p = &text.builder.problem;
    assert_int_equal(p->operation_count, 2);
    assert_int_equal(p->version_count, 3);
    assert_string_equal(text.names[0], "gemm");
    assert_int_equal(p->operations[1].replayable_until, 0);
    assert_int_equal(p->versions[2].replaces, 1);
    assert_int_equal(p->versions[0].droppable_from, POLICY_NONE);
    assert_int_equal(p->fixed_bytes, 7);
    text_release(&text);
}

static void test_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } bad[] = {
        {"x", "1: not a problem file"},
        {"reprise-problem 2\n", "1: unknown version of the format"},
        {"reprise-problem 1\nout 5\n", "2: out without an operation"},
        {"reprise-problem 1\nin\n", "2: a number is expected: end of line"},
        {"reprise-problem 1\nin 99999999999999999999\n", "2: a number is expected"},
        {"reprise-problem 1\nin -4\n", "2: a number is expected: -4"},
        {"reprise-problem 1\nin 4 keept\n", "2: unknown attribute of a version: keept"},
        {"reprise-problem 1\nop 4 : 0\n", "2: no such version: 0"},
        {"reprise-problem 1\nop 4 until=x\n", "2: unknown attribute of an operation: until=x"},
        {"reprise-problem 1\nfixed 4 5\n", "2: left over: 5"},
        {"reprise-problem 1\nbandwidth 4\n", "2: a bandwidth is expected"},
        {"reprise-problem 1\nbandwidth -1 4\n", "2: a bandwidth is expected"},
        {"reprise-problem 1\nopp 4\n", "2: unknown statement: opp"},
        {"reprise-problem 1\nin 4\nop 1\nout 3 replaces=0\nend\n", "4: version 1 replaces version 0 of another size"},
        {"reprise-problem 1\nin 4\nop 1\nout 4 replaces=9\nend\n", "4: version 1 replaces unknown version"},
        {"reprise-problem 1\n\n# op in\nin 9\n op 1 : 0\nin 9223372036854775807\nop 1\nend\n",
         "6: version 1: bytes too"},
        {"reprise-problem 1\nop 1\nop 9223372036854775807 : \nin 5\nop 1\nend\n", "3: operation 1: duration too"},
        {"reprise-problem 1\nin 4\nop 1\nout 4 replaces=0\nop 1\nop 2 : 0\nop 3\nend\n",
         "6: operation 2 reads version 0"},
        {"reprise-problem 1\nin 4\nop 1 : 0\n", "3: cut off"},
        {"reprise-problem 1\nin 4\nend\nop 1 : 0\n", "4: behind the end: op"},
        {"reprise-problem 1\nend 4\n", "2: left over: 4"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        struct text_problem text;
        char why[200] = "";
        if (read_string(bad[k].text, strlen(bad[k].text), &text, why, sizeof why))
            fail_msg("\"%s\" was taken", bad[k].text);
        if (!strstr(why, bad[k].reason))
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", bad[k].text, why, bad[k].reason);
    }
}

/* Whatever bytes come: refused with a line that names the place, or a valid problem. */
static void test_mutations(void **state)
{
    (void)state;
    static const char seed_text[] = "reprise-problem 1\nfixed 7\nin 10 kept\nop 5 workspace=3 : 0\nout 4 swappable\n"
                                    "op 6 until=2 : 0 1\nout 4 replaces=1\nop 9 : 2\nout 1 kept droppable=2\nend\n";
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 3000; round++) {
        char text[sizeof seed_text], why[200] = "";
        struct text_problem read;
        memcpy(text, seed_text, sizeof text);
        for (int change = 0; change < 1 + round % 4; change++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            text[random % (sizeof text - 1)] =
                (char)(random >> 32 & 1 ? "0123456789 \n:=-"[(random >> 40) % 15] : (char)(random >> 48));
        }
        size_t length = sizeof text - 1 - (round % 5 ? 0 : random % 60);
        if (read_string(text, length, &read, why, sizeof why))
            text_release(&read);
        else
            assert_true(why[0] >= '1' && why[0] <= '9' && strstr(why, ": "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_names_and_comments),
                                       cmocka_unit_test(test_malformed), cmocka_unit_test(test_mutations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
