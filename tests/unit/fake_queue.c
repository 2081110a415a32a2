/* Streams and events of the fake driver. Every stream is a list of items; item i of a stream is done once i < done. */
#include "tests/unit/fake_inside.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STREAMS 256

enum item_kind { ITEM_RUN, ITEM_RECORD, ITEM_WAIT };

struct item {
    enum item_kind kind;
    fake_work *run;
    void *arguments; /* own copy */
    uint64_t nanoseconds;
    struct CUevent_st *event; /* RECORD */
    uint32_t other;           /* WAIT: until this stream ... */
    uint64_t until;           /* ... has done as many items */
    uint64_t ended;           /* the stream's clock then */
};

struct stream {
    struct item *items;
    uint64_t count, done, capacity;
    uint64_t clock; /* virtual nanoseconds */
    bool is_running;
};

struct CUevent_st {
    bool is_recorded;
    uint32_t stream;
    uint64_t position; /* done once the stream has done as many items */
    uint64_t clock;
};

/* Number 0 is the legacy default stream, 1 the first thread's own; fake_stream makes the others. */
static struct {
    struct stream streams[MAX_STREAMS];
    uint32_t count;
    uint64_t random;
} state;

struct CUstream_st {
    uint32_t number;
};

static uint32_t new_stream(void)
{
    if (state.count == MAX_STREAMS) {
        fake_die("too many streams");
    }
    return state.count++;
}

CUstream fake_stream(void)
{
    struct CUstream_st *stream = malloc(sizeof *stream);
    if (stream == NULL) {
        fake_die("no memory");
    }
    stream->number = new_stream();
    return stream;
}

/* Another one in each thread; the first thread's is 1. */
static uint32_t number_per_thread(void)
{
    static uint32_t threads;
    static __thread uint32_t number;
    if (number == 0) {
        number = threads++ == 0 ? 1 : new_stream();
    }
    return number;
}

static uint32_t number_of(CUstream stream)
{
    if (stream == NULL || stream == CU_STREAM_LEGACY) {
        return 0;
    }
    return stream == CU_STREAM_PER_THREAD ? number_per_thread() : stream->number;
}

static uint64_t next_random(void)
{
    state.random = state.random * 6364136223846793005ull + 1442695040888963407ull;
    return state.random >> 33;
}

/* ---- running ---- */

static void run_until(uint32_t number, uint64_t count);

static void run_next(struct stream *stream)
{
    struct item *item = &stream->items[stream->done];
    switch (item->kind) {
    case ITEM_RUN:
        item->run(item->arguments);
        stream->clock += item->nanoseconds;
        free(item->arguments);
        item->arguments = NULL;
        break;
    case ITEM_RECORD:
        item->event->clock = stream->clock;
        break;
    case ITEM_WAIT:
        run_until(item->other, item->until);
        uint64_t ended = state.streams[item->other].items[item->until - 1].ended;
        stream->clock = stream->clock < ended ? ended : stream->clock;
        break;
    }
    stream->items[stream->done].ended = stream->clock;
    stream->done++;
    fake_counts()->queued--;
}

static void run_until(uint32_t number, uint64_t count)
{
    struct stream *stream = &state.streams[number];
    while (stream->done < count) {
        if (stream->is_running) {
            fake_die("streams wait for each other in a circle");
        }
        stream->is_running = true;
        run_next(stream);
        stream->is_running = false;
    }
}

static void run_some(void)
{
    if (fake_settings()->order == FAKE_AT_ONCE) {
        for (uint32_t i = 0; i < state.count; i++) {
            run_until(i, state.streams[i].count);
        }
    }
    if (fake_settings()->order == FAKE_MIXED) {
        uint32_t number = (uint32_t)(next_random() % state.count);
        struct stream *stream = &state.streams[number];
        uint64_t left = stream->count - stream->done;
        run_until(number, stream->done + (left == 0 ? 0 : next_random() % (left + 1)));
    }
}

/* ---- putting ---- */

static struct item *append(uint32_t number, enum item_kind kind)
{
    struct stream *stream = &state.streams[number];
    if (stream->count == stream->capacity) {
        stream->capacity = stream->capacity == 0 ? 1024 : 2 * stream->capacity;
        stream->items = realloc(stream->items, stream->capacity * sizeof *stream->items);
        if (stream->items == NULL) {
            fake_die("no memory");
        }
    }
    struct item *item = &stream->items[stream->count++];
    memset(item, 0, sizeof *item);
    item->kind = kind;
    fake_counts()->queued++;
    return item;
}

static void append_wait(uint32_t number, uint32_t other, uint64_t until)
{
    if (number != other && until > 0) {
        struct item *item = append(number, ITEM_WAIT);
        item->other = other;
        item->until = until;
    }
}

/* The legacy default stream waits for all others, and they for it. */
static void order_with_legacy(uint32_t number)
{
    if (number != 0) {
        append_wait(number, 0, state.streams[0].count);
        return;
    }
    for (uint32_t i = 1; i < state.count; i++) {
        append_wait(0, i, state.streams[i].count);
    }
}

void fake_put(CUstream stream, fake_work *run, const void *arguments, size_t bytes, uint64_t nanoseconds)
{
    uint32_t number = number_of(stream);
    order_with_legacy(number);
    struct item *item = append(number, ITEM_RUN);
    item->run = run;
    item->arguments = malloc(bytes + 1);
    if (item->arguments == NULL) {
        fake_die("no memory");
    }
    memcpy(item->arguments, arguments, bytes);
    item->nanoseconds = nanoseconds;
    run_some();
}

/* ---- waiting ---- */

void fake_finish_stream(CUstream stream)
{
    uint32_t number = number_of(stream);
    order_with_legacy(number);
    run_until(number, state.streams[number].count);
}

void fake_finish_all(void)
{
    for (uint32_t i = 0; i < state.count; i++) {
        run_until(i, state.streams[i].count);
    }
}

/* A synchronisation that is refused has waited all the same: it passes on an error of earlier work. */
static CUresult fake_cuStreamSynchronize(CUstream stream)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    fake_counts()->host_waits++;
    fake_finish_stream(stream);
    return entered;
}

static CUresult fake_cuCtxSynchronize(void)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    fake_counts()->host_waits++;
    fake_finish_all();
    return entered;
}

/* ---- events ---- */

static CUresult fake_cuEventCreate(CUevent *out, unsigned flags)
{
    ENTER(CUDA_ERROR_OUT_OF_MEMORY);
    (void)flags;
    if (entered == CUDA_SUCCESS) {
        *out = calloc(1, sizeof **out);
    }
    return entered;
}

static CUresult fake_cuStreamCreate(CUstream *stream, unsigned flags)
{
    ENTER(CUDA_ERROR_OUT_OF_MEMORY);
    (void)flags;
    if (entered == CUDA_SUCCESS) {
        *stream = fake_stream();
    }
    return entered;
}

static CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    uint32_t number = number_of(stream);
    order_with_legacy(number);
    append(number, ITEM_RECORD)->event = event;
    event->is_recorded = true;
    event->stream = number;
    event->position = state.streams[number].count;
    run_some();
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    (void)flags;
    if (entered == CUDA_SUCCESS && event->is_recorded) {
        append_wait(number_of(stream), event->stream, event->position);
        run_some();
    }
    return entered;
}

static CUresult fake_cuEventQuery(CUevent event)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    if (entered == CUDA_SUCCESS && event->is_recorded && state.streams[event->stream].done < event->position) {
        return CUDA_ERROR_NOT_READY;
    }
    return entered;
}

static CUresult fake_cuEventSynchronize(CUevent event)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    fake_counts()->host_waits++;
    if (event->is_recorded) {
        run_until(event->stream, event->position);
    }
    return entered;
}

static CUresult fake_cuEventDestroy(CUevent event)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    if (entered == CUDA_SUCCESS && event->is_recorded) {
        run_until(event->stream, event->position);
    }
    if (entered == CUDA_SUCCESS) {
        free(event);
    }
    return entered;
}

static CUresult not_supported(float *milliseconds, CUevent begin, CUevent end)
{
    (void)milliseconds, (void)begin, (void)end;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult fake_cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    if (!begin->is_recorded || !end->is_recorded) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (state.streams[begin->stream].done < begin->position || state.streams[end->stream].done < end->position) {
        return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = (float)((double)(end->clock - begin->clock) / 1e6);
    return CUDA_SUCCESS;
}

void fake_open_queue(void)
{
    state.count = 2;
    state.random = fake_settings()->seed;
    driver.cuStreamSynchronize = fake_cuStreamSynchronize;
    driver.cuCtxSynchronize = fake_cuCtxSynchronize;
    driver.cuStreamCreate = fake_cuStreamCreate;
    driver.cuEventCreate = fake_cuEventCreate;
    driver.cuEventRecord = fake_cuEventRecord;
    driver.cuEventQuery = fake_cuEventQuery;
    driver.cuEventSynchronize = fake_cuEventSynchronize;
    driver.cuEventDestroy_v2 = fake_cuEventDestroy;
    driver.cuEventElapsedTime = fake_cuEventElapsedTime;
    driver.cuEventElapsedTime_v2 = fake_settings()->is_old ? not_supported : fake_cuEventElapsedTime;
    driver.cuStreamWaitEvent = fake_cuStreamWaitEvent;
}
