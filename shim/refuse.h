/* Out of memory, said in one line: which operation needs how many bytes, and the smallest cap that would do for it.
 * Callers hold the engine's turn. */
#pragma once
#include "shim/learn.h"

/* `what` needs `needed` bytes beside `elsewhere` that cannot go. */
void refuse_memory(const char *what, uint64_t needed, uint64_t elsewhere);

/* The operation's allocations do not fit beside what cannot go. Returns CUDA_ERROR_OUT_OF_MEMORY. */
CUresult refuse_operation(const struct operation *operation, const struct touches *touches);
