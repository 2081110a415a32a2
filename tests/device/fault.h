/* Running device work on a host thread so that a bad access ends the work, not the process.
 *
 * While a thread is inside fault_guard, SIGSEGV, SIGBUS and SIGFPE on it end the body with a CUresult; on any
 * other thread, or outside, the signal goes to whoever handled it before us. The body must hold no lock and
 * own no memory that is lost when it is left in the middle. */
#pragma once
#include "tests/device/driver.h"

/* Installs the handlers; again later if the program has put others in their place. */
void fault_install(void);

/* Runs body(argument). CUDA_SUCCESS, or what ended it. Guards nest. */
CUresult fault_guard(void (*body)(void *), void *argument);

/* Ends the body that this thread is running. */
_Noreturn void fault_raise(CUresult code);
