#include "trace/ring.h"

void ring_open(struct ring *ring, void *memory, uint64_t bytes)
{
    *ring = (struct ring){.memory = memory, .bytes = bytes};
}

static bool has_room(struct ring *ring, uint64_t end, uint64_t needed)
{
    if (end + needed - ring->begin_seen <= ring->bytes)
        return true;
    ring->begin_seen = atomic_load_explicit(&ring->begin, memory_order_acquire);
    return end + needed - ring->begin_seen <= ring->bytes;
}

void *ring_reserve(struct ring *ring, uint32_t kind, size_t body)
{
    uint64_t end = atomic_load_explicit(&ring->end, memory_order_relaxed), at = end & (ring->bytes - 1);
    uint64_t bytes = (sizeof(struct trace_record) + body + 7) & ~(uint64_t)7;
    uint64_t filling = ring->bytes - at < bytes ? ring->bytes - at : 0;
    if (bytes > ring->bytes || !has_room(ring, end, filling + bytes)) {
        atomic_fetch_add_explicit(&ring->lost, 1, memory_order_release); /* who takes the ring over sees all of ours */
        return NULL;
    }
    if (filling) {
        *(struct trace_record *)(void *)(ring->memory + at) = (struct trace_record){0, (uint32_t)filling};
        at = 0;
    }
    struct trace_record *record = (void *)(ring->memory + at);
    *record = (struct trace_record){kind, (uint32_t)bytes};
    if (bytes > sizeof *record + body)
        *(uint64_t *)(void *)(ring->memory + at + bytes - 8) = 0;
    ring->reserved = filling + bytes;
    return record + 1;
}

void ring_commit(struct ring *ring)
{
    uint64_t end = atomic_load_explicit(&ring->end, memory_order_relaxed);
    atomic_store(&ring->end, end + ring->reserved); /* in one order with what its user looks at next */
}

bool ring_is_filling(const struct ring *ring)
{
    return atomic_load_explicit(&ring->end, memory_order_relaxed) - ring->begin_seen > ring->bytes / 2;
}

uint64_t ring_limit(struct ring *ring)
{
    return atomic_load_explicit(&ring->end, memory_order_acquire);
}

const struct trace_record *ring_front(struct ring *ring, uint64_t limit)
{
    uint64_t begin = atomic_load_explicit(&ring->begin, memory_order_relaxed);
    if (begin == limit)
        return NULL;
    const struct trace_record *record = (const void *)(ring->memory + (begin & (ring->bytes - 1)));
    if (record->kind != 0)
        return record;
    atomic_store_explicit(&ring->begin, begin + record->bytes, memory_order_release);
    return (const void *)ring->memory; /* filling is always followed by the record that it made way for */
}

void ring_drop(struct ring *ring, const struct trace_record *record)
{
    uint64_t begin = atomic_load_explicit(&ring->begin, memory_order_relaxed);
    atomic_store_explicit(&ring->begin, begin + record->bytes, memory_order_release);
}
