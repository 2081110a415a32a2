#include "shim/swap.h"

#include "shim/driver.h"
#include "shim/say.h"
#include "shim/store.h"

#include "shim/inside.h"

#define MAX_COPIES (1u << 20)
#define SIZE_UNIT  4096u
#define BUCKETS    1024u

static struct {
    struct host_copy *copies;
    uint32_t copy_count;
    struct host_copy *pooled[BUCKETS];
    struct swap_counts counts;
} state;

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
            if (copy->last.streams & ~(1ull << stream)) {
                streams_finished(&copy->last);
            }
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
    uint64_t capacity = (bytes + SIZE_UNIT - 1) / SIZE_UNIT * SIZE_UNIT;
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
    streams_order(copy->last.streams, stream);
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

void swap_finish(const struct host_copy *copy)
{
    streams_finished(&copy->last);
}

struct swap_counts swap_count(void)
{
    return state.counts;
}
