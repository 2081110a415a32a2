#include "tests/device/fault.h"
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct fault_point {
    sigjmp_buf jump;
    struct fault_point *outer;
    volatile CUresult code;
};

static THREAD_LOCAL struct fault_point *innermost;

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE};
#define CAUGHT (sizeof caught / sizeof *caught)
static struct sigaction previous[CAUGHT];

_Noreturn void fault_raise(CUresult code)
{
    struct fault_point *point = innermost;
    if (point == NULL)
        abort();
    point->code = code;
    siglongjmp(point->jump, 1);
}

static void pass_on(int number, siginfo_t *info, void *where)
{
    const struct sigaction *action = NULL;
    for (size_t i = 0; i < CAUGHT; i++)
        if (caught[i] == number)
            action = &previous[i];
    if (action == NULL || (!(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN))
        return;
    if (action->sa_flags & SA_SIGINFO) {
        action->sa_sigaction(number, info, where);
    } else if (action->sa_handler != SIG_DFL) {
        action->sa_handler(number);
    } else {
        /* Returning runs the faulting instruction again, now with the default action. */
        signal(number, SIG_DFL);
    }
}

static void on_signal(int number, siginfo_t *info, void *where)
{
    if (innermost != NULL)
        fault_raise(number == SIGFPE ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_ILLEGAL_ADDRESS);
    pass_on(number, info, where);
}

static bool is_installed(void)
{
    struct sigaction now;
    return sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal;
}

void fault_install(void)
{
    if (is_installed())
        return;
    for (size_t i = 0; i < CAUGHT; i++) {
        struct sigaction now;
        if (sigaction(caught[i], NULL, &now) != 0)
            continue;
        if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal)
            continue;
        previous[i] = now;
        struct sigaction ours;
        memset(&ours, 0, sizeof ours);
        ours.sa_sigaction = on_signal;
        /* Left by a jump: the signal must not stay blocked. */
        ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
        sigaction(caught[i], &ours, NULL);
    }
}

CUresult fault_guard(void (*body)(void *), void *argument)
{
    struct fault_point point;
    point.outer = innermost;
    point.code = CUDA_SUCCESS;
    if (sigsetjmp(point.jump, 0) == 0) {
        innermost = &point;
        body(argument);
    }
    innermost = point.outer;
    return point.code;
}
