/* Streams as the engine sees them: a small number each, a count of what was submitted, and the waits that
 * keep the owners of a frame apart.
 *
 * Invariants
 * - A stream's sequence number grows by one with every submission; work with a smaller number on the same
 *   stream is done first.
 * - streams_order(mask, w) makes everything submitted so far on the streams in `mask` happen before whatever
 *   is submitted to w afterwards; it never blocks the host.
 * - streams_follow(use, w) does so for what used one thing, as exactly as its last stream was marked, and afterwards
 *   w alone stands for all of them.
 * - CU_STREAM_PER_THREAD has a number for each thread that uses it; it is one queue for all who act on that number.
 * - streams_finished waits on the host, and only for what last used something, by events that were recorded
 *   every few submissions: so a queue that runs far ahead is not drained.
 * Callers hold the engine's turn. */
#pragma once
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define STREAMS_MAX  63 /* more than these share one number, and are waited for by context */
#define STREAMS_NONE UINT32_MAX

struct last_use {
    uint64_t streams;  /* bit per stream number that used it since it was taken */
    uint64_t sequence; /* of the last submission, on `stream` */
    uint32_t stream;   /* the last stream; STREAMS_NONE if none */
};

uint32_t streams_number(CUstream stream);
CUstream streams_handle(uint32_t number);
void streams_submitted(uint32_t number);
void last_use_note(struct last_use *use, uint32_t number);
void last_use_merge(struct last_use *use, const struct last_use *other); /* covers both afterwards */
void streams_order_others(uint64_t mask, uint32_t waiter); /* the same, where `mask` holds others than `waiter` */
static inline void streams_order(uint64_t mask, uint32_t waiter)
{
    mask &= ~(1ull << waiter);
    if (mask != 0) {
        streams_order_others(mask, waiter);
    }
}
void streams_order_use(const struct last_use *use,
                       uint32_t waiter); /* after that use, not all that was submitted since */
void streams_follow(struct last_use *use, uint32_t waiter);
/* A stream of our own, each submission of which can be waited for by itself. STREAMS_NONE: none could be made. */
uint32_t streams_make(void);
void streams_finished(const struct last_use *use);
void streams_drain(uint32_t number);  /* host waits for all work of one stream */
void streams_forget(CUstream stream); /* it is about to be destroyed */
/* Between two events that have both happened, by the driver's clock. False: they cannot be compared. */
bool streams_elapsed(CUevent begin, CUevent end, uint64_t *nanoseconds);
uint64_t streams_host_waits(void); /* how often the host really waited */
