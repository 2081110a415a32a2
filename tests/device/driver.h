/* The driver's own view of cuda.h: every version of every function is declared, and what we define of it is
 * exported. First include of every file of the CPU device's driver. */
#pragma once
#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
/* cudaProfiler.h is not in every package of the toolkit. */
CUresult CUDAAPI cuProfilerInitialize(const char *configuration, const char *output, int mode);
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);
#pragma GCC visibility pop
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRIVER_VERSION 13000

/* Handles are addresses of objects that start with one of these words, so that a wrong one is refused. */
enum handle_kind {
    HANDLE_DEAD = 0,
    HANDLE_CONTEXT = 0x43505531,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_LIBRARY,
    HANDLE_PHYSICAL,
    HANDLE_POOL,
    HANDLE_LINK,
    HANDLE_GRAPH,
    HANDLE_NODE,
    HANDLE_GRAPH_EXEC,
    HANDLE_ARRAY,
    HANDLE_MIPMAP,
    HANDLE_USER_OBJECT
};

/* Thread-locals are reached from signal handlers and on every call. */
#define THREAD_LOCAL __attribute__((tls_model("initial-exec"))) _Thread_local

/* The plain functions' NULL is the legacy stream, the _ptsz/_ptds functions' NULL the thread's own. */
static inline CUstream per_thread(CUstream stream)
{
    return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

/* A function and its per-thread-stream twin differ in what a NULL stream means: `arguments` hold per_thread(stream). */
#define TWIN(name, suffix, parameters, arguments)                                                                      \
    CUresult name##suffix parameters                                                                                   \
    {                                                                                                                  \
        return name arguments;                                                                                         \
    }
