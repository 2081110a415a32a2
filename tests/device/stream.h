/* Streams, the work queued on them, and fences.
 *
 * The order rules, all decided from the heads of the queues (every piece of work carries the number of its
 * submission, `order`):
 *   - a stream runs its work in order, one at a time;
 *   - the head of a context's legacy stream waits for all earlier work of the context's blocking streams;
 *   - the head of a blocking stream waits for all earlier work of the legacy stream;
 *   - a WAIT waits for its fence; a VALUE_WAIT for its word.
 * Otherwise any order is legal; with CPUDEV_JITTER it is chosen against the program.
 *
 * Locking: queue_lock guards queues, fences' holders and waiters. It is never held while work runs or memory_lock
 * is taken. Streams' memory is never returned, so that a stale handle is recognised by its first word. */
#pragma once
#include "tests/device/program.h"

struct context;
struct stream;
struct function;
struct capture;
struct graph_memory;

struct waiter {
    _Atomic uint32_t is_released;
    uint64_t completed; /* for a stream: released when so many pieces of work are complete */
    struct waiter *next;
};

/* Passed once the work before it is done. */
struct fence {
    _Atomic uint32_t is_passed;
    uint32_t holders;
    uint64_t nanoseconds; /* when it was passed */
    struct waiter *waiters;
};

enum work_kind {
    WORK_GRID,
    WORK_COPY,
    WORK_FILL,
    WORK_RECORD,
    WORK_WAIT,
    WORK_HOST,
    WORK_CALLBACK,
    WORK_RELEASE,
    WORK_VALUE_WRITE,
    WORK_VALUE_WAIT,
    WORK_BRING, /* memory of a graph */
    WORK_DROP,
    WORK_NOTHING
};

struct grid_work {
    struct function *function;
    struct program_grid grid;
    uint64_t blocks;
    uint64_t barrier[8]; /* of a cooperative grid; zeros when it starts */
};

/* Rows of `width` bytes; height and depth are 1 for a plain copy. */
struct copy_work {
    uint64_t destination, source;
    size_t width, height, depth;
    size_t destination_pitch, source_pitch, destination_slice, source_slice;
    bool is_to_host;
    bool is_staged; /* the source is in the work's own room */
};

struct fill_work {
    uint64_t destination;
    size_t pitch, width, height; /* width in elements */
    uint32_t element_bytes, value;
};

#define VALUE_RISES 0x80000000u /* a flag of our own: a wide write that leaves a greater value as it is */

struct value_work {
    uint64_t address, value;
    uint32_t flags;
    bool is_wide;
};

#define WORK_INLINE_BYTES 320

struct work {
    struct work *next;
    struct stream *stream;
    uint64_t order;
    enum work_kind kind;
    union {
        struct grid_work grid;
        struct copy_work copy;
        struct fill_work fill;
        struct value_work value;
        struct fence *fence; /* RECORD, WAIT: one hold */
        struct {
            CUhostFn function;
            void *data;
        } host;
        struct {
            CUstreamCallback function;
            void *data;
        } callback;
        CUdeviceptr release;
        struct graph_memory *graph_memory; /* BRING, DROP: one hold */
    };
    void *payload; /* freed with the work; arguments or staged bytes longer than inline_bytes */
    size_t payload_bytes;
    _Alignas(16) unsigned char inline_bytes[WORK_INLINE_BYTES];
};

#define STREAM_ATTRIBUTES 32 /* more than there are kinds of */

struct stream {
    enum handle_kind magic;
    struct context *context;
    uint64_t id;
    uint32_t flags;
    int priority;
    CUstreamAttrValue *attributes; /* STREAM_ATTRIBUTES of them, by number; NULL: none was set */
    bool is_legacy, is_blocking, is_thread_owned;
    _Atomic(struct capture *) capture; /* work goes into its graph instead (capture.h) */
    bool is_running;                   /* its head runs now */
    bool is_dying;                     /* destroyed by the program; goes when its queue is empty */
    struct work *head, *tail;
    uint64_t submitted, completed;
    struct waiter *waiters;
    struct stream *next; /* of the context, or in the spare list */
};

void queue_lock(void);
void queue_unlock(void);

struct stream *stream_create(struct context *context, uint32_t flags, int priority);
void stream_destroy(struct stream *stream); /* at once if idle, else when drained */

/* The stream a program means by its handle: NULL and CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, or one of its own. */
CUresult stream_find(struct context *context, CUstream handle, struct stream **out);
/* Looks at the handle alone: a context is not needed, nor made. False for the two special ones and NULL. */
bool stream_is_handle(CUstream handle);

/* A fresh piece of work, only kind, payload and the kind's part to be set. Never NULL. */
struct work *work_new(enum work_kind kind);
/* Room of `bytes` that lives as long as the work. */
void *work_room(struct work *work, size_t bytes);
/* The same chain of work (linked by next) once more. */
struct work *work_copy(const struct work *work);
/* Hands the work to the device; a whole chain (linked by next) in one step. */
void work_submit(struct stream *stream, struct work *work);
void work_submit_chain(struct stream *stream, struct work *first);
/* Submits the chain, or puts it into the graph that the stream is capturing, as one node. Consumes the work either
 * way. */
CUresult work_take(struct stream *stream, struct work *work);
void work_discard(struct work *work); /* a chain that was never submitted */

/* Under queue_lock: the head is complete. False if the queue is empty now (the stream may be gone). */
bool stream_finish_head(struct stream *stream);

/* Blocks until everything submitted so far is complete. */
void stream_wait(struct stream *stream);
bool stream_is_idle(struct stream *stream);

struct fence *fence_new(void); /* one hold */
void fence_hold(struct fence *fence);
void fence_let_go(struct fence *fence);
void fence_drop(struct fence *fence); /* the same, under queue_lock */
bool fence_is_passed(const struct fence *fence);
void fence_wait(struct fence *fence);
void fence_pass(struct fence *fence, uint64_t nanoseconds); /* under queue_lock */
