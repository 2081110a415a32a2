/* C text to a loaded shared object, through a cache on disk that several processes may share.
 *
 * The cache is $CPUDEV_CACHE, else $XDG_CACHE_HOME/reprise-cpudev, else ~/.cache/reprise-cpudev; it is made with mode
 * 0700 and refused if it belongs to somebody else or others may write to it. A file in it is named by a hash over the
 * text, the flags, the compiler (its file's identity) and the processor, and appears there complete, by rename. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* The handle of dlopen, or NULL with why. Thread-safe. */
void *ptx_compile(const char *text, size_t bytes, bool *was_compiled, char *why, size_t why_bytes);

/* The head of every emitted file. */
extern const char ptx_head[], ptx_head_end[];
/* To be put before what uses matrix operations. */
extern const char ptx_matrix_head[], ptx_matrix_head_end[];
