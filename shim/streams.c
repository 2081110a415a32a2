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
    bool is_gone;
    bool is_ours;       /* marked at every submission */
    uint64_t owner, at; /* of a per-thread stream: whose it is; whose the last submission went to. Else 0 */
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
    uint64_t threads; /* that have used a per-thread stream */
} state;

static void drain_context(void)
{
    state.host_waits++;
    driver.cuCtxSynchronize();
}

/* Unique for ever, as the system's numbers of threads are not. */
static uint64_t this_thread(void)
{
    static __thread uint64_t number;
    if (number == 0) {
        number = ++state.threads;
    }
    return number;
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

static bool is_elsewhere(const struct stream *stream)
{
    return stream->owner != 0 && stream->at != this_thread();
}

/* CU_STREAM_PER_THREAD means another stream in each thread. What one thread submits to the stream of another goes to
 * its own, behind what is there; whoever comes next waits for that. So it is one queue, whoever acts. */
static void come_here(struct stream *stream)
{
    if (!is_elsewhere(stream)) {
        return;
    }
    struct marker *last = oldest_marker(stream, stream->submitted);
    if (stream->finished < stream->submitted &&
        (last == NULL || driver.cuStreamWaitEvent(stream->handle, last->event, 0) != CUDA_SUCCESS)) {
        drain_context();
    }
    stream->at = this_thread();
}

static bool is_idle(struct stream *stream)
{
    struct marker *last = oldest_marker(stream, stream->submitted);
    return stream->finished == stream->submitted || (last != NULL && driver.cuEventQuery(last->event) == CUDA_SUCCESS);
}

/* The number of a per-thread stream whose thread may have ended: with no work left it is as good as new. */
static uint32_t take_over(void)
{
    for (uint32_t i = 0; i < state.count; i++) {
        struct stream *stream = &state.streams[i];
        if (stream->owner != 0 && is_idle(stream)) {
            stream->finished = stream->submitted;
            stream->owner = stream->at = this_thread();
            return state.last = i;
        }
    }
    return STREAMS_MAX;
}

static bool is_it(const struct stream *known, CUstream stream, uint64_t owner)
{
    return known->handle == stream && known->owner == owner && !known->is_gone;
}

uint32_t streams_number(CUstream stream)
{
    uint64_t owner = stream == CU_STREAM_PER_THREAD ? this_thread() : 0;
    uint32_t number = state.last;
    if (number >= state.count || !is_it(&state.streams[number], stream, owner)) {
        for (number = 0; number < state.count && !is_it(&state.streams[number], stream, owner);) {
            number++;
        }
    }
    if (number < state.count) {
        come_here(&state.streams[number]);
        return state.last = number;
    }
    if (state.count == STREAMS_MAX) {
        number = owner != 0 ? take_over() : STREAMS_MAX;
        state.streams[number].handle = stream;
        return number;
    }
    struct stream *fresh = &state.streams[state.count];
    fresh->handle = stream;
    fresh->owner = fresh->at = owner;
    return state.last = state.count++;
}

CUstream streams_handle(uint32_t number)
{
    come_here(&state.streams[number]);
    return state.streams[number].handle;
}

static void make_event(CUevent *event)
{
    if (*event == NULL && driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        *event = NULL;
    }
}

/* Just after a submission, or where all is waited for: the calling thread is where the stream is. */
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
    bool is_shared = stream->owner != 0 && state.threads > 1; /* another thread cannot mark it */
    if ((stream->is_ours || is_shared || stream->submitted % MARKER_EVERY == 0) && number < STREAMS_MAX) {
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

/* A wait in a per-thread stream counts as a submission: who takes the queue on elsewhere goes by the last marker. */
static bool wait_for_event(uint32_t waiter, CUevent event)
{
    if (driver.cuStreamWaitEvent(streams_handle(waiter), event, 0) != CUDA_SUCCESS) {
        return false;
    }
    if (state.streams[waiter].owner != 0) {
        streams_submitted(waiter);
    }
    return true;
}

/* An event behind everything submitted so far; NULL: none can be had. */
static CUevent event_at_end(struct stream *stream)
{
    if (is_elsewhere(stream)) {
        struct marker *marker = oldest_marker(stream, stream->submitted);
        return marker == NULL ? NULL : marker->event;
    }
    make_event(&stream->order_event);
    bool is_recorded =
        stream->order_event != NULL && driver.cuEventRecord(stream->order_event, stream->handle) == CUDA_SUCCESS;
    return is_recorded ? stream->order_event : NULL;
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
    uint64_t submitted = from->submitted;
    CUevent event = event_at_end(from);
    if (event == NULL || !wait_for_event(waiter, event)) {
        drain_context();
    }
    to->seen[earlier] = submitted;
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
    uint64_t marked = marker == NULL ? 0 : marker->sequence;
    if (marker == NULL || !wait_for_event(waiter, marker->event)) {
        order_one(earlier, waiter);
        return;
    }
    to->seen[earlier] = marked;
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
    streams_order_use(&(struct last_use){.streams = mask, .stream = STREAMS_NONE}, waiter);
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
    if (marker == NULL && !is_elsewhere(stream) && mark(stream)) {
        marker = oldest_marker(stream, sequence);
    }
    if (marker == NULL) {
        drain_context();
        return;
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
    driver.cuStreamSynchronize(streams_handle(number));
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
