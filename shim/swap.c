#include "shim/swap.h"

#include "shim/driver.h"
#include "shim/say.h"
#include "shim/store.h"

#include "shim/inside.h"

#define MAX_COPIES (1u << 20)
#define SIZE_UNIT  4096u
#define BUCKETS    1024u

#define MEASURED_COPIES 4 /* in a row */
#define MEASURED_ROUNDS 3

static struct {
    struct host_copy *copies;
    uint32_t copy_count;
    struct host_copy *pooled[BUCKETS];
    struct swap_counts counts;
    bool has_streams; /* they were asked for */
    uint32_t streams[2];
} state;

static uint64_t capacity_for(uint64_t bytes)
{
    return (bytes + SIZE_UNIT - 1) / SIZE_UNIT * SIZE_UNIT;
}

static struct host_copy **bucket(uint64_t capacity)
{
    return &state.pooled[capacity / SIZE_UNIT % BUCKETS];
}

static struct host_copy *take_pooled(uint64_t capacity, uint32_t stream)
{
    for (struct host_copy **link = bucket(capacity); *link != NULL; link = &(*link)->next) {
        struct host_copy *copy = *link;
        if (copy->capacity == capacity) {
            *link = copy->next;
            streams_order_use(&copy->last, stream);
            return copy;
        }
    }
    return NULL;
}

static struct host_copy *make_copy(uint64_t capacity)
{
    if (state.copies == NULL) {
        state.copies = store_reserve(sizeof *state.copies * MAX_COPIES, "host copies");
    }
    if (state.copies == NULL || state.copy_count == MAX_COPIES) {
        return NULL;
    }
    struct host_copy *copy = &state.copies[state.copy_count];
    CUresult result = driver.cuMemHostAlloc(&copy->memory, capacity, CU_MEMHOSTALLOC_PORTABLE);
    if (result != CUDA_SUCCESS) {
        say(SAY_ERROR, "no %llu bytes of pinned host memory (error %d)", (unsigned long long)capacity, (int)result);
        return NULL;
    }
    state.copy_count++;
    copy->capacity = capacity;
    copy->last = (struct last_use){.stream = STREAMS_NONE};
    return copy;
}

struct host_copy *swap_out(CUdeviceptr address, uint64_t bytes, uint32_t stream, enum swap_reason reason)
{
    uint64_t capacity = capacity_for(bytes);
    struct host_copy *copy = take_pooled(capacity, stream);
    if (copy == NULL && (copy = make_copy(capacity)) == NULL) {
        return NULL;
    }
    copy->bytes = bytes;
    CUresult result = driver.cuMemcpyDtoHAsync_v2(copy->memory, address, bytes, streams_handle(stream));
    if (result != CUDA_SUCCESS) {
        swap_release(copy);
        return NULL;
    }
    streams_submitted(stream);
    copy->last = (struct last_use){.stream = STREAMS_NONE};
    last_use_note(&copy->last, stream);
    *(reason == SWAP_AUDIT ? &state.counts.audited_bytes : &state.counts.out_bytes) += bytes;
    return copy;
}

bool swap_in(struct host_copy *copy, CUdeviceptr address, uint32_t stream, enum swap_reason reason)
{
    streams_order_use(&copy->last, stream);
    CUresult result = driver.cuMemcpyHtoDAsync_v2(address, copy->memory, copy->bytes, streams_handle(stream));
    if (result != CUDA_SUCCESS) {
        return false;
    }
    streams_submitted(stream);
    last_use_note(&copy->last, stream);
    *(reason == SWAP_AUDIT ? &state.counts.audited_bytes : &state.counts.in_bytes) += copy->bytes;
    return true;
}

void swap_release(struct host_copy *copy)
{
    if (copy != NULL) {
        struct host_copy **list = bucket(copy->capacity);
        copy->next = *list;
        *list = copy;
    }
}

uint32_t swap_stream(enum swap_direction direction, uint32_t otherwise)
{
    if (!state.has_streams) {
        state.has_streams = true;
        state.streams[SWAP_OUT] = streams_make();
        state.streams[SWAP_IN] = streams_make();
    }
    return state.streams[direction] == STREAMS_NONE ? otherwise : state.streams[direction];
}

void swap_finish(const struct host_copy *copy)
{
    streams_finished(&copy->last);
}

/* One turn: out, in, with events around. Copies in a row, so that what it costs to begin one does not count. */
static bool time_copies(CUdeviceptr address, const struct host_copy *copy, const CUevent events[3], uint32_t stream)
{
    CUstream handle = streams_handle(stream);
    bool is_done = driver.cuEventRecord(events[0], handle) == CUDA_SUCCESS;
    for (int i = 0; i < MEASURED_COPIES && is_done; i++) {
        is_done = driver.cuMemcpyDtoHAsync_v2(copy->memory, address, copy->bytes, handle) == CUDA_SUCCESS;
    }
    is_done = is_done && driver.cuEventRecord(events[1], handle) == CUDA_SUCCESS;
    for (int i = 0; i < MEASURED_COPIES && is_done; i++) {
        is_done = driver.cuMemcpyHtoDAsync_v2(address, copy->memory, copy->bytes, handle) == CUDA_SUCCESS;
    }
    is_done = is_done && driver.cuEventRecord(events[2], handle) == CUDA_SUCCESS;
    streams_submitted(stream);
    streams_drain(stream);
    return is_done;
}

static void note_speed(CUevent begin, CUevent end, uint64_t bytes, double *best)
{
    uint64_t nanoseconds;
    if (streams_elapsed(begin, end, &nanoseconds) && nanoseconds > 0) {
        double speed = (double)bytes / (double)nanoseconds;
        *best = speed > *best ? speed : *best;
    }
}

bool swap_measure(CUdeviceptr address, uint64_t bytes, uint32_t stream, struct swap_speed *speed)
{
    CUevent events[3] = {NULL};
    uint32_t made = 0;
    uint64_t capacity = capacity_for(bytes);
    struct host_copy *copy = take_pooled(capacity, stream);
    *speed = (struct swap_speed){0};
    if (copy == NULL && (copy = make_copy(capacity)) == NULL) {
        return false;
    }
    copy->bytes = bytes;
    while (made < 3 && driver.cuEventCreate(&events[made], CU_EVENT_DEFAULT) == CUDA_SUCCESS) {
        made++;
    }
    for (int round = 0; made == 3 && round < MEASURED_ROUNDS && time_copies(address, copy, events, stream); round++) {
        note_speed(events[0], events[1], MEASURED_COPIES * bytes, &speed->out_bytes_per_ns);
        note_speed(events[1], events[2], MEASURED_COPIES * bytes, &speed->in_bytes_per_ns);
    }
    while (made > 0) {
        driver.cuEventDestroy_v2(events[--made]);
    }
    swap_release(copy);
    if (speed->out_bytes_per_ns > 0 && speed->in_bytes_per_ns > 0) {
        return true;
    }
    *speed = (struct swap_speed){0};
    return false;
}

struct swap_counts swap_count(void)
{
    return state.counts;
}
