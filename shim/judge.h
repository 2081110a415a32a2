/* What an operation touches, and what may be said of each touch before it runs: by the kernel's code where that was
 * read, exactly for copies and sets. Callers hold the engine's turn. */
#pragma once
#include "shim/learn.h"

/* Groups the uses by allocation. */
void judge_touches(const struct operation *operation, struct touches *touches);

/* The operation's identity within an iteration: launch_signature, and the size of every allocation touched with the
 * place of its address in the arguments and in the allocation. */
uint64_t judge_signature(const struct operation *operation, const struct touches *touches);
