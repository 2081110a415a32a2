/* Writes a recorded iteration to the trace file (--trace, trace/event.h).
 *
 * A trace that cannot be written is said once and otherwise ignored: it never disturbs the program. Callers
 * hold the engine's turn. */
#pragma once
#include "shim/script.h"

/* The iteration of `script` and `problem`, whose fixed and swap figures are set. `index` is its number within the run.
 * Makes the file whole each time it is called: the last iteration written is the one that stays. */
void tracing_write(const char *path, const struct script *script, const struct policy_problem *problem, uint64_t index);
