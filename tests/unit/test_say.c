/* links: shim/say.c shim/config.c trace/size.c */
#include "shim/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Everything that we know must look as printf's. */
#define SAME(...)                                                                                                      \
    do {                                                                                                               \
        char ours[256], theirs[256];                                                                                   \
        size_t length = say_format(ours, sizeof ours, __VA_ARGS__);                                                    \
        snprintf(theirs, sizeof theirs, __VA_ARGS__);                                                                  \
        assert_string_equal(ours, theirs);                                                                             \
        assert_int_equal(length, strlen(theirs));                                                                      \
    } while (0)

static void test_as_printf(void **state)
{
    (void)state;
    SAME("nothing");
    SAME("%s and %s, 100%%", "one", "");
    SAME("%d %d %d %d", 0, -1, INT_MAX, INT_MIN);
    SAME("%u %u", 0u, UINT_MAX);
    SAME("%ld %lu %lld %llu", LONG_MIN, ULONG_MAX, LLONG_MIN, ULLONG_MAX);
    SAME("%zu", SIZE_MAX);
    SAME("%x %lx %llx", 0xabcdu, 0xfedcba987654ul, 0x1ull);
    SAME("%5d|%05d|%3u|%08x", 42, 42, 12345u, 0xbeefu);
    SAME("%5d|%05d", -42, -42);
    SAME("%c%c", 'a', 'z');
    SAME("%.3f %.1f %.0f %.9f", 1.5, 0.25 + 0.01, 3.0, 0.000000125);
    SAME("%8.3f|%.2f", 12.3456, -7.891);
    SAME("%p", (void *)0x1234);
}

static void test_odd_numbers(void **state)
{
    char text[64];
    (void)state;
    say_format(text, sizeof text, "%.2f", NAN);
    assert_string_equal(text, "nan");
    say_format(text, sizeof text, "%.2f %.2f", 1e30, -HUGE_VAL);
    assert_string_equal(text, "big -big");
    const char *volatile nothing = NULL;
    say_format(text, sizeof text, "%s", nothing);
    assert_string_equal(text, "(null)");
}

static void test_cut(void **state)
{
    char text[8] = "XXXXXXX";
    (void)state;
    assert_int_equal(say_format(text, 5, "%s", "abcdefgh"), 4);
    assert_string_equal(text, "abcd");
    assert_int_equal(text[5], 'X');
    assert_int_equal(say_format(text, 1, "%d", 7), 0);
    assert_string_equal(text, "");
    text[0] = 'X';
    assert_int_equal(say_format(text, 0, "%d", 7), 0);
    assert_int_equal(text[0], 'X');
}

/* A line to stderr: one write, prefix and newline included, however long. */
static void test_line(void **state)
{
    int ends[2], saved = dup(STDERR_FILENO);
    char long_text[3 * SAY_MAX], seen[2 * SAY_MAX] = {0};
    (void)state;
    memset(long_text, 'y', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    errno = 5;
    say(SAY_ERROR, "%s is %d", "this", 1);
    say(SAY_DEBUG, "not asked for");
    int after = errno;
    ssize_t first = read(ends[0], seen, sizeof seen - 1);
    say(SAY_WARNING, "%s", long_text);
    char rest[2 * SAY_MAX];
    ssize_t second = read(ends[0], rest, sizeof rest);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(after, 5);
    assert_int_equal(first, strlen("reprise: this is 1\n"));
    assert_string_equal(seen, "reprise: this is 1\n");
    assert_in_range(second, SAY_MAX - 8, SAY_MAX);
    assert_int_equal(rest[second - 1], '\n');
}

static void test_write_refused(void **state)
{
    (void)state;
    assert_false(say_write(-1, "x", 1));
    assert_true(say_write(-1, "x", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_printf), cmocka_unit_test(test_odd_numbers),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_line),      cmocka_unit_test(test_write_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
