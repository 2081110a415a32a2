/* links: tests/device/settings.c */
#include "tests/device/settings.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* Settings are read once a process: each case has its own. Returns what `holds` says there. */
static int in_child(const char *name, const char *value, bool (*holds)(void))
{
    pid_t child = fork();
    if (child == 0) {
        clearenv();
        if (value != NULL)
            setenv(name, value, 1);
        close(2);
        _exit(!settings_are_valid() ? 2 : holds == NULL || holds() ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_default(void)
{
    return settings()->memory_bytes == (size_t)1 << 30 && settings()->frame_bytes == 65536 &&
           settings()->capability == 121 && settings()->jitter == 0 && settings()->threads >= 1;
}

static bool is_3_gib(void)
{
    return settings()->memory_bytes == (size_t)3 << 30;
}

/* Cut to whole frames. */
static bool is_two_frames(void)
{
    return settings()->memory_bytes == 131072;
}

static bool is_90(void)
{
    return settings()->capability == 90;
}

static bool is_seed_7(void)
{
    return settings()->jitter == 7;
}

static void sizes_are_read(void **unused)
{
    (void)unused;
    assert_int_equal(in_child("CPUDEV_MEMORY", NULL, is_default), 0);
    assert_int_equal(in_child("CPUDEV_MEMORY", "3GiB", is_3_gib), 0);
    assert_int_equal(in_child("CPUDEV_MEMORY", "3072M", is_3_gib), 0);
    assert_int_equal(in_child("CPUDEV_MEMORY", "140000", is_two_frames), 0);
    assert_int_equal(in_child("CPUDEV_CAPABILITY", "9.0", is_90), 0);
    assert_int_equal(in_child("CPUDEV_JITTER", "7", is_seed_7), 0);
}

static void nonsense_is_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *name, *value;
    } cases[] = {
        {"CPUDEV_MEMORY", ""},     {"CPUDEV_MEMORY", "0"},         {"CPUDEV_MEMORY", "-1"},
        {"CPUDEV_MEMORY", "1GB"},  {"CPUDEV_MEMORY", "1 GiB"},     {"CPUDEV_MEMORY", "99999999999GiB"},
        {"CPUDEV_MEMORY", "4096"}, {"CPUDEV_GRANULARITY", "3000"}, {"CPUDEV_GRANULARITY", "96KiB"},
        {"CPUDEV_THREADS", "0"},   {"CPUDEV_THREADS", "two"},      {"CPUDEV_JITTER", "x"},
        {"CPUDEV_JITTER", "1x"},   {"CPUDEV_CAPABILITY", "9"},     {"CPUDEV_CAPABILITY", "9.0a"},
        {"CPUDEV_CLOCK", "cpu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(in_child(cases[i].name, cases[i].value, NULL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
