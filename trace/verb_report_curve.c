#include "trace/verb_report.h"
#include "trace/verb.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POINTS           32
#define PLAN_NANOSECONDS 3000000000ull
#define MOST_SECONDS     6  /* of the processor */
#define MOST_PATIENCE    60 /* seconds, on a machine that has little time for us */
#define MOST_BYTES       ((rlim_t)700 << 20)

/* What the child answers: the curve's strings are the program's own, and are where they are in the parent. */
struct answer {
    enum curve_result result;
    struct curve curve;
    char why[256];
};

static void limit(void)
{
    const struct rlimit seconds = {MOST_SECONDS, MOST_SECONDS};
    setrlimit(RLIMIT_CPU, &seconds);
#ifndef __SANITIZE_ADDRESS__
    const struct rlimit bytes = {MOST_BYTES, MOST_BYTES};
    setrlimit(RLIMIT_DATA, &bytes);
#endif
}

static void plan(const struct model *model, int out)
{
    static struct answer answer;
    const struct curve_request request = {
        .points = POINTS, .nanoseconds = PLAN_NANOSECONDS, .may_swap = true, .has_marks = true};
    struct policy_problem problem;
    limit();
    answer.result = CURVE_NO_MEMORY;
    if (verb_problem(model->trace, model->recorded, &problem))
        answer.result = curve_make(&problem, &request, &answer.curve, answer.why, sizeof answer.why);
    const char *from = (const char *)&answer;
    for (size_t left = sizeof answer; left > 0;) {
        ssize_t done = write(out, from, left);
        if (done <= 0)
            _exit(1);
        from += done;
        left -= (size_t)done;
    }
    _exit(0);
}

static long milliseconds_left(const struct timespec *begun)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return MOST_PATIENCE * 1000L - ((now.tv_sec - begun->tv_sec) * 1000 + (now.tv_nsec - begun->tv_nsec) / 1000000);
}

/* False if it does not come whole and in time. */
static bool receive(int in, struct answer *answer)
{
    struct timespec begun;
    size_t count = 0;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    while (count < sizeof *answer) {
        struct pollfd wait = {.fd = in, .events = POLLIN};
        long left = milliseconds_left(&begun);
        int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t done = ready > 0 ? read(in, (char *)answer + count, sizeof *answer - count) : 0;
        if (done <= 0)
            return false;
        count += (size_t)done;
    }
    return true;
}

bool report_plan_curve(const struct model *model, struct curve *out, char *why, size_t why_bytes)
{
    static struct answer answer;
    int ends[2];
    if (!model->recorded)
        return snprintf(why, why_bytes, "no iteration was analysed"), false;
    if (pipe(ends) != 0)
        return snprintf(why, why_bytes, "%s", strerror(errno)), false;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        plan(model, ends[1]);
    }
    close(ends[1]);
    bool is_whole = child > 0 && receive(ends[0], &answer);
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    if (!is_whole)
        snprintf(why, why_bytes, "planning took more than %d s; reprise curve takes its time", MOST_SECONDS);
    else if (answer.result == CURVE_BAD_PROBLEM)
        snprintf(why, why_bytes, "%s", answer.why);
    else if (answer.result == CURVE_NO_MEMORY)
        snprintf(why, why_bytes, "planning takes much memory; reprise curve may take it");
    *out = answer.curve;
    return is_whole && answer.result == CURVE_DONE;
}
