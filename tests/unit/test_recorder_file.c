/* links: shim/recorder_file.c shim/config.c shim/say.c trace/size.c trace/file.c */
/* Which file a process records into. */
#include "shim/recorder_file.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        uint32_t rank;
        const char *name; /* NULL: refused */
        bool is_whole;
    } cases[] = {
        {"trace", TRACE_NONE, "trace", false},
        {"trace", 0, "trace.rank0", false},
        {"/a/b c", 12, "/a/b c.rank12", false},
        {"t.%p", TRACE_NONE, "t.77", true},
        {"t.%p", 3, "t.77", true},
        {"%r/t", 3, "3/t", true},
        {"%r/t", TRACE_NONE, "0/t", true},
        {"%r.%p.%r", 4, "4.77.4", true},
        {"100%%", TRACE_NONE, "100%", false},
        {"100%%", 1, "100%.rank1", false},
        {"t%", TRACE_NONE, NULL, false},
        {"t%d", TRACE_NONE, NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[RECORDER_PATH_MOST];
        bool is_whole;
        assert_true(recorder_file_name(cases[i].pattern, cases[i].rank, 77, name, &is_whole) ==
                    (cases[i].name != NULL));
        if (cases[i].name) {
            assert_string_equal(name, cases[i].name);
            assert_true(is_whole == cases[i].is_whole);
        }
    }
}

static void test_too_long(void **state)
{
    (void)state;
    char pattern[RECORDER_PATH_MOST + 10], name[RECORDER_PATH_MOST];
    bool is_whole;
    memset(pattern, 'x', sizeof pattern);
    pattern[RECORDER_PATH_MOST - 1] = '\0';
    assert_true(recorder_file_name(pattern, TRACE_NONE, 1, name, &is_whole));
    assert_string_equal(name, pattern);
    assert_false(recorder_file_name(pattern, 1, 1, name, &is_whole));
    pattern[RECORDER_PATH_MOST - 1] = 'x';
    pattern[RECORDER_PATH_MOST] = '\0';
    assert_false(recorder_file_name(pattern, TRACE_NONE, 1, name, &is_whole));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_too_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
