/* Tests of modules with static state: every test runs in a child of its own.
 *
 * In the child, REQUIRE takes the place of cmocka's assertions: it says what does not hold and ends the child. */
#pragma once
#include <stdarg.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CHILD_SECONDS 180

#define REQUIRE(condition)  ((condition) ? (void)0 : child_fail(#condition, __FILE__, __LINE__, __func__))
#define REQUIRE_EQUAL(a, b) child_equal((uint64_t)(a), (uint64_t)(b), #a " == " #b, __FILE__, __LINE__)

__attribute__((noreturn)) static inline void child_fail(const char *condition, const char *file, int line,
                                                        const char *function)
{
    fprintf(stderr, "%s:%d: %s: does not hold: %s\n", file, line, function, condition);
    fflush(NULL);
    _exit(100);
}

static inline void child_equal(uint64_t a, uint64_t b, const char *what, const char *file, int line)
{
    if (a != b) {
        fprintf(stderr, "%s:%d: %s: %llu and %llu\n", file, line, what, (unsigned long long)a, (unsigned long long)b);
        fflush(NULL);
        _exit(100);
    }
}

/* The child's exit status, or 1000 + the signal that ended it. */
static inline int child_run(void (*body)(const void *), const void *argument)
{
    fflush(NULL);
    if (getenv("UNITS_HERE") != NULL) { /* for a debugger */
        body(argument);
        _exit(0);
    }
    pid_t child = fork();
    if (child == 0) {
        static const int faults[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
            signal(faults[i], SIG_DFL); /* cmocka's handlers would go on with the next test, in the child */
        }
        alarm(CHILD_SECONDS);
        body(argument);
        fflush(NULL);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline void assert_child(void (*body)(const void *), const void *argument)
{
    int status = child_run(body, argument);
    if (status != 0) {
        fail_msg("the child ended with status %d (signal %d)", status, status > 1000 ? status - 1000 : 0);
    }
}
