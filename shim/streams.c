#include "shim/streams.h"

#include "shim/driver.h"
#include "shim/say.h"

#include <stddef.h>

#include "shim/inside.h"

#define MARKERS      128
#define MARKER_EVERY 16

struct marker {
    CUevent event;
    uint64_t sequence; /* everything up to here is done once the event is */
};

struct stream {
    CUstream handle;
    bool is_used, is_gone;
    bool is_ours; /* marked at every submission */
    uint64_t submitted, finished;
    uint64_t seen[STREAMS_MAX + 1]; /* of each other stream: the count this one has been made to wait for */
    struct marker markers[MARKERS];
    uint32_t next_marker;
    CUevent order_event;
};

static struct {
    struct stream streams[STREAMS_MAX + 1];
    uint32_t count;
    uint32_t last;
    uint64_t host_waits;
} state;

uint32_t streams_number(CUstream stream)
{
    if (state.last < state.count && state.streams[state.last].handle == stream && !state.streams[state.last].is_gone) {
        return state.last;
    }
    for (uint32_t i = 0; i < state.count; i++) {
        if (state.streams[i].handle == stream && !state.streams[i].is_gone) {
            return state.last = i;
        }
    }
    if (state.count == STREAMS_MAX) {
        state.streams[STREAMS_MAX].handle = stream;
        return STREAMS_MAX;
    }
    struct stream *fresh = &state.streams[state.count];
    fresh->handle = stream;
    fresh->is_used = true;
    return state.last = state.count++;
}

CUstream streams_handle(uint32_t number)
{
    return state.streams[number].handle;
}

static void make_event(CUevent *event)
{
    if (*event == NULL && driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        *event = NULL;
    }
}

static bool mark(struct stream *stream)
{
    struct marker *marker = &stream->markers[stream->next_marker];
    make_event(&marker->event);
    if (marker->event == NULL || driver.cuEventRecord(marker->event, stream->handle) != CUDA_SUCCESS) {
        return false;
    }
    marker->sequence = stream->submitted;
    stream->next_marker = (stream->next_marker + 1) % MARKERS;
    return true;
}

void streams_submitted(uint32_t number)
{
    struct stream *stream = &state.streams[number];
    stream->submitted++;
    if ((stream->is_ours || stream->submitted % MARKER_EVERY == 0) && number < STREAMS_MAX) {
        mark(stream);
    }
}

uint32_t streams_make(void)
{
    CUstream handle;
    if (state.count >= STREAMS_MAX || driver.cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        return STREAMS_NONE;
    }
    uint32_t number = streams_number(handle);
    state.streams[number].is_ours = true;
    return number;
}

void last_use_note(struct last_use *use, uint32_t number)
{
    use->streams |= 1ull << number;
    use->stream = number;
    use->sequence = state.streams[number].submitted;
}

void last_use_merge(struct last_use *use, const struct last_use *other)
{
    if (other->streams == 0) {
        return;
    }
    if (use->streams == 0) {
        *use = *other;
        return;
    }
    use->streams |= other->streams;
    if (use->stream != other->stream) {
        use->stream = STREAMS_NONE; /* no one number stands for both: all that was submitted counts */
    } else if (other->sequence > use->sequence) {
        use->sequence = other->sequence;
    }
}

static void drain_context(void)
{
    state.host_waits++;
    driver.cuCtxSynchronize();
}

static void order_one(uint32_t earlier, uint32_t waiter)
{
    struct stream *from = &state.streams[earlier], *to = &state.streams[waiter];
    if (from->is_gone) {
        return; /* its work was waited for when it was destroyed */
    }
    if (earlier == STREAMS_MAX || waiter == STREAMS_MAX) {
        drain_context();
        return;
    }
    if (to->seen[earlier] == from->submitted) {
        return;
    }
    make_event(&from->order_event);
    if (from->order_event == NULL || driver.cuEventRecord(from->order_event, from->handle) != CUDA_SUCCESS ||
        driver.cuStreamWaitEvent(to->handle, from->order_event, 0) != CUDA_SUCCESS) {
        drain_context();
    }
    to->seen[earlier] = from->submitted;
}

static struct marker *oldest_marker(struct stream *stream, uint64_t sequence)
{
    struct marker *best = NULL;
    for (uint32_t i = 0; i < MARKERS; i++) {
        struct marker *marker = &stream->markers[i];
        if (marker->event != NULL && marker->sequence >= sequence &&
            (best == NULL || marker->sequence < best->sequence)) {
            best = marker;
        }
    }
    return best;
}

/* Waits for what was submitted up to `sequence`, if a marker tells where that is; else for all. */
static void order_exactly(uint32_t earlier, uint64_t sequence, uint32_t waiter)
{
    struct stream *from = &state.streams[earlier], *to = &state.streams[waiter];
    if (from->is_gone || from->finished >= sequence || to->seen[earlier] >= sequence) {
        return;
    }
    bool is_exact = earlier != STREAMS_MAX && waiter != STREAMS_MAX;
    struct marker *marker = is_exact ? oldest_marker(from, sequence) : NULL;
    if (marker == NULL || driver.cuStreamWaitEvent(to->handle, marker->event, 0) != CUDA_SUCCESS) {
        order_one(earlier, waiter);
        return;
    }
    to->seen[earlier] = marker->sequence;
}

void streams_order_use(const struct last_use *use, uint32_t waiter)
{
    uint64_t mask = use->streams & ~(1ull << waiter);
    while (mask != 0) {
        uint32_t earlier = (uint32_t)__builtin_ctzll(mask);
        mask &= mask - 1;
        if (earlier == use->stream) {
            order_exactly(earlier, use->sequence, waiter);
        } else {
            order_one(earlier, waiter);
        }
    }
}

void streams_follow(struct last_use *use, uint32_t waiter)
{
    if ((use->streams & ~(1ull << waiter)) == 0) {
        return;
    }
    streams_order_use(use, waiter);
    streams_submitted(waiter); /* the waits: a marker from before them does not stand for them */
    *use = (struct last_use){.stream = STREAMS_NONE};
    last_use_note(use, waiter);
}

void streams_order_others(uint64_t mask, uint32_t waiter)
{
    while (mask != 0) {
        uint32_t earlier = (uint32_t)__builtin_ctzll(mask);
        mask &= mask - 1;
        order_one(earlier, waiter);
    }
}

static void finish_one(uint32_t number, uint64_t sequence)
{
    struct stream *stream = &state.streams[number];
    if (stream->is_gone || stream->finished >= sequence) {
        return;
    }
    if (number == STREAMS_MAX) {
        drain_context();
        return;
    }
    struct marker *marker = oldest_marker(stream, sequence);
    if (marker == NULL) {
        if (!mark(stream)) {
            drain_context();
            return;
        }
        marker = oldest_marker(stream, sequence);
    }
    if (driver.cuEventQuery(marker->event) != CUDA_SUCCESS) {
        state.host_waits++;
        driver.cuEventSynchronize(marker->event);
    }
    stream->finished = marker->sequence;
}

void streams_finished(const struct last_use *use)
{
    uint64_t mask = use->streams;
    while (mask != 0) {
        uint32_t number = (uint32_t)__builtin_ctzll(mask);
        mask &= mask - 1;
        finish_one(number, number == use->stream ? use->sequence : state.streams[number].submitted);
    }
}

void streams_drain(uint32_t number)
{
    struct stream *stream = &state.streams[number];
    if (number == STREAMS_MAX) {
        drain_context();
        return;
    }
    state.host_waits++;
    driver.cuStreamSynchronize(stream->handle);
    stream->finished = stream->submitted;
}

void streams_forget(CUstream handle)
{
    for (uint32_t i = 0; i < state.count; i++) {
        struct stream *stream = &state.streams[i];
        if (stream->handle == handle && !stream->is_gone) {
            streams_drain(i);
            stream->is_gone = true;
        }
    }
}

bool streams_elapsed(CUevent begin, CUevent end, uint64_t *nanoseconds)
{
    float milliseconds = 0;
    CUresult result = driver.cuEventElapsedTime_v2(&milliseconds, begin, end);
    if (result == CUDA_ERROR_NOT_SUPPORTED) { /* drivers before 12.8 */
        result = driver.cuEventElapsedTime(&milliseconds, begin, end);
    }
    *nanoseconds = milliseconds > 0 ? (uint64_t)((double)milliseconds * 1e6) : 0;
    return result == CUDA_SUCCESS;
}

uint64_t streams_host_waits(void)
{
    return state.host_waits;
}
