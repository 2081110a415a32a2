/* Records on their way from one thread to another: one thread puts them in, one takes them out, neither ever waits.
 *
 * A ring holds whole records (struct trace_record and body, as in the file), each in one piece. begin is the place
 * where the next is taken out, end where the next is put in; both only grow. A record of kind 0 fills the rest up to
 * the end of the memory.
 *   0 <= end - begin <= bytes
 *   what lies in [begin, end) belongs to the one who takes, the rest to the one who puts */
#pragma once
#include "trace/event.h"
#include <stdatomic.h>

struct ring {
    _Atomic uint64_t end __attribute__((aligned(64)));
    _Atomic uint64_t lost; /* records that found no room, not yet told of */
    uint64_t begin_seen;   /* of the one who puts: where begin was when it last looked */
    uint64_t reserved;     /* bytes of the record being made, filling included */
    _Atomic uint64_t begin __attribute__((aligned(64)));
    unsigned char *memory __attribute__((aligned(64)));
    uint64_t bytes; /* a power of two, at least 64 */
};

/* `memory` is 8-byte aligned. */
void ring_open(struct ring *ring, void *memory, uint64_t bytes);

/* One thread. Room for a record with a body of `body` bytes, its head filled in; NULL and one more lost: there is
 * none. The record counts from ring_commit on, which
 * is sequentially consistent: who looks afterwards whether the other one sleeps is not overlooked. */
void *ring_reserve(struct ring *ring, uint32_t kind, size_t body);
void ring_commit(struct ring *ring);
/* More than half of it is in use. */
bool ring_is_filling(const struct ring *ring);

/* Another thread. The next record before `limit` (of ring_limit), head included; NULL: none. It stays until
 * ring_drop. */
uint64_t ring_limit(struct ring *ring);
const struct trace_record *ring_front(struct ring *ring, uint64_t limit);
void ring_drop(struct ring *ring, const struct trace_record *record);
