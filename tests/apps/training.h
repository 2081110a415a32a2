/* The training loop that all programs share.
 *
 * Per iteration: forward, backward, step, loss read back, one line
 *     iter I loss X          (I from 1, X as %a; report() adds to the line)
 * and after the last one `state H`. With two threads a second one, alive for the whole run, does backward
 * and step while the first waits for it, as autograd engines do. */
#pragma once
#include "tests/apps/options.h"

struct training {
    float *(*forward)(int iteration); /* the loss: a fresh one-float tensor, the loop's to free */
    void (*backward)(int iteration);  /* uses up what forward kept; leaves parameter gradients */
    void (*step)(int iteration);      /* updates; no gradient is left */
    void (*report)(int iteration);    /* prints what belongs on the line, with a leading space; may be NULL */
};

/* Exit status of the program. */
int training_run(const struct run_settings *settings, const struct training *training);
