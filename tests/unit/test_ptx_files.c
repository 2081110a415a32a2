/* links: tests/ptx/conformance.c tests/device/ptx_%.c tests/device/program.c */
/* Every file in tests/ptx, a test each; with arguments: those files. */
#include "tests/ptx/conformance.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define FILES_MOST 64

static void file_agrees(void **state)
{
    unsigned checked, failures = conformance_run(*state, &checked);
    assert_int_equal(failures, 0);
    assert_true(checked > 0);
}

static int run_arguments(int count, char **paths)
{
    unsigned failures = 0;
    for (int i = 1; i < count; i++) {
        unsigned checked, differences = conformance_run(paths[i], &checked);
        printf("%s: %u checks, %u failures\n", paths[i], checked, differences);
        failures += differences;
    }
    return failures != 0;
}

int main(int count, char **paths)
{
    if (count > 1)
        return run_arguments(count, paths);
    glob_t files;
    if (glob("tests/ptx/*.ptx", 0, NULL, &files) != 0 || files.gl_pathc > FILES_MOST) {
        fprintf(stderr, "no PTX files under tests/ptx: run from the root\n");
        return 2;
    }
    struct CMUnitTest tests[FILES_MOST];
    for (size_t i = 0; i < files.gl_pathc; i++)
        tests[i] = (struct CMUnitTest){
            .name = files.gl_pathv[i], .test_func = file_agrees, .initial_state = files.gl_pathv[i]};
    int failed = _cmocka_run_group_tests("ptx files", tests, files.gl_pathc, NULL, NULL);
    globfree(&files);
    return failed;
}
