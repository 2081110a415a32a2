#include "shim/gate.h"

#include "shim/engine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "shim/inside.h"

enum gate_state { GATE_UNKNOWN, GATE_OPENING, GATE_ON, GATE_OFF };

static _Atomic int gate_state = GATE_UNKNOWN;
static _Atomic bool is_forked;

static __thread struct {
    bool is_inside;
    int saved_errno;
} here __attribute__((tls_model("initial-exec")));

static void switch_off_in_child(void)
{
    atomic_store(&gate_state, GATE_OFF);
    atomic_store(&is_forked, true);
    here.is_inside = false;
}

/* The first call decides; others that arrive meanwhile wait for it, on a thread that is not the first one. */
static bool open_gate(void)
{
    int expected = GATE_UNKNOWN;
    if (atomic_compare_exchange_strong(&gate_state, &expected, GATE_OPENING)) {
        bool is_on = engine_is_on();
        if (is_on)
            pthread_atfork(NULL, NULL, switch_off_in_child);
        atomic_store(&gate_state, is_on ? GATE_ON : GATE_OFF);
    }
    while (atomic_load(&gate_state) == GATE_OPENING)
        sched_yield();
    return atomic_load(&gate_state) == GATE_ON;
}

bool gate_enter(void)
{
    int state = atomic_load_explicit(&gate_state, memory_order_acquire);
    if (__builtin_expect(state == GATE_OFF || here.is_inside, 0))
        return false;
    int saved = errno;
    if (__builtin_expect(state != GATE_ON, 0)) {
        here.is_inside = true;
        bool is_on = open_gate();
        here.is_inside = false;
        if (!is_on) {
            errno = saved;
            return false;
        }
    }
    here.saved_errno = saved;
    here.is_inside = true;
    return true;
}

CUresult gate_leave(CUresult result)
{
    here.is_inside = false;
    errno = here.saved_errno;
    return result;
}

/* Late, after the program's own handlers, whose driver calls still count. */
__attribute__((destructor)) static void finish(void)
{
    if (atomic_load(&gate_state) != GATE_ON)
        return;
    here.is_inside = true;
    engine_finish();
    atomic_store(&gate_state, GATE_OFF);
}
