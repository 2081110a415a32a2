/* Contexts, and which one a thread has current.
 *
 * A context's `error` is sticky: once work of it has faulted, every call that needs the context answers with it,
 * and work still queued is passed over. Its streams list is guarded by queue_lock, the rest by context.c's lock. */
#pragma once
#include "tests/device/stream.h"

struct context {
    enum handle_kind magic;
    uint64_t id;
    int device;
    uint32_t flags;
    uint32_t api_version;
    bool is_primary;
    _Atomic CUresult error;
    struct stream *legacy;
    struct stream *streams;
    _Atomic uint32_t capturing_streams; /* blocking ones, under capture */
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache_config;
    _Atomic uint32_t peers;     /* a bit per device whose memory it may reach besides its own */
    struct fence *held_back_by; /* what streams made later wait for; under queue_lock */
    uint32_t attachments;       /* cuCtxAttach, less cuCtxDetach */
    struct context *next;
};

/* The calling thread's context, ready for work: not initialised, none current, destroyed, or its sticky error. */
CUresult context_enter(struct context **out);
/* Initialised, and not a forked child. */
CUresult device_enter(void);
/* device_enter, and the device's memory and threads are there (they come with the first context otherwise). */
CUresult device_open(void);
/* device_enter, and a device that there is. */
CUresult device_check(CUdevice device);
/* A handle of the program's: CUDA_ERROR_INVALID_CONTEXT if there is no such context. */
CUresult context_find(CUcontext handle, struct context **out);
/* The current context whatever its state; NULL if none. */
struct context *context_current(void);

/* context_enter and stream_find in one. */
CUresult stream_enter(CUstream handle, struct context **context, struct stream **stream);

/* The thread's own default stream in the context; made at first use, destroyed with the thread. */
struct stream *context_thread_stream(struct context *context);

/* Work of the context ended with this; the first one stays. */
void context_fail(struct context *context, CUresult error);

/* Waits for everything submitted to any stream of the context / of all contexts. */
void context_wait(struct context *context);
void device_wait(void);

/* The stream waits for everything submitted to any other stream of the context so far. */
void context_gather(struct context *context, struct stream *stream);
/* Whatever is submitted to the context from now on waits for the fence. */
void context_hold_back(struct context *context, struct fence *fence);
bool context_is_capturing(struct context *context);
/* For a stream that was just made. */
void context_begin_stream(struct context *context, struct stream *stream);

/* Called by a library that goes with its context (modules). */
void context_on_destroy(void (*forget)(struct context *context));
