#include "tests/apps/hostile_buffers.h"
#include "tests/apps/device.h"
#include <vector>

#define BLOCK         128
#define TERMS_PER_SUM 6

static __device__ size_t thread_index(void)
{
    return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

static __device__ uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 31)) * 0x7fb5d329728ea185u;
    z = (z ^ (z >> 27)) * 0x81dadef4bc2dd44du;
    return z ^ (z >> 33);
}

static __global__ void hand_out_slots_kernel(uint32_t *entries, unsigned *counter, size_t count)
{
    size_t i = thread_index();
    if (i < count)
        entries[atomicAdd(counter, 1u)] = static_cast<uint32_t>(i);
}

static __global__ void read_clock_kernel(uint32_t *out, size_t count)
{
    size_t i = thread_index();
    if (i < count)
        out[i] = static_cast<uint32_t>(mix(static_cast<uint64_t>(clock64()) + i));
}

/* Term j of sum i comes from another block than term j + 1. */
static __global__ void add_terms_kernel(float *sums, size_t count, uint64_t seed)
{
    size_t i = thread_index();
    if (i >= count * TERMS_PER_SUM)
        return;
    float term = static_cast<float>(static_cast<int32_t>(mix(seed + i) >> 32)) * 1e-6f;
    atomicAdd(&sums[i % count], term);
}

static __global__ void store_pointer_kernel(uint32_t **holder, uint32_t *data)
{
    *holder = data;
}

static __global__ void fill_through_kernel(uint32_t *const *holder, size_t count, uint64_t seed)
{
    size_t i = thread_index();
    if (i < count)
        (*holder)[i] = static_cast<uint32_t>(mix(seed + i));
}

/* One word per block; integer sums, so that no order matters. */
static __device__ void digest_block(uint64_t *digests, const uint32_t *data, size_t count)
{
    __shared__ unsigned long long total;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    size_t i = thread_index();
    if (i < count)
        atomicAdd(&total, static_cast<unsigned long long>(mix((static_cast<uint64_t>(i) << 32) + data[i])));
    __syncthreads();
    if (threadIdx.x == 0)
        digests[blockIdx.x] = total;
}

static __global__ void digest_kernel(uint64_t *digests, const uint32_t *data, size_t count)
{
    digest_block(digests, data, count);
}

static __global__ void digest_through_kernel(uint64_t *digests, uint32_t *const *holder, size_t count)
{
    digest_block(digests, *holder, count);
}

const char *hostile_name(enum hostile_kind kind)
{
    static const char *const names[HOSTILE_KINDS] = {"atomics", "clock", "sum", "pointer"};
    return names[kind];
}

static uint64_t digest_of(const struct hostile_buffer *buffer)
{
    unsigned blocks = blocks_for(buffer->count, BLOCK);
    uint64_t *digests = device_make<uint64_t>(blocks);
    if (buffer->kind == HOSTILE_POINTER)
        digest_through_kernel<<<blocks, BLOCK>>>(digests, buffer->holder, buffer->count);
    else
        digest_kernel<<<blocks, BLOCK>>>(digests, buffer->data, buffer->count);
    device_launched("digest");
    std::vector<uint64_t> host(blocks);
    device_read(host.data(), digests, blocks);
    device_free(digests);
    uint64_t total = 0;
    for (uint64_t digest : host)
        total = total * 0x9e3779b97f4a7c15u + digest;
    return total;
}

static void fill_atomics(struct hostile_buffer *buffer)
{
    unsigned *counter = device_make<unsigned>(1);
    device_clear(counter, 1);
    hand_out_slots_kernel<<<blocks_for(buffer->count, BLOCK), BLOCK>>>(buffer->data, counter, buffer->count);
    device_launched("hand_out_slots");
    device_free(counter);
}

static void fill_sum(struct hostile_buffer *buffer, uint64_t seed)
{
    device_clear(buffer->data, buffer->count);
    add_terms_kernel<<<blocks_for(buffer->count * TERMS_PER_SUM, BLOCK), BLOCK>>>(
        reinterpret_cast<float *>(buffer->data), buffer->count, seed);
    device_launched("add_terms");
}

static void fill_pointer(struct hostile_buffer *buffer, uint64_t seed)
{
    buffer->holder = device_make<uint32_t *>(1);
    store_pointer_kernel<<<1, 1>>>(buffer->holder, buffer->data);
    device_launched("store_pointer");
    fill_through_kernel<<<blocks_for(buffer->count, BLOCK), BLOCK>>>(buffer->holder, buffer->count, seed);
    device_launched("fill_through");
}

struct hostile_buffer hostile_make(enum hostile_kind kind, size_t count, int iteration)
{
    struct hostile_buffer buffer = {kind, device_make<uint32_t>(count), nullptr, count, 0};
    uint64_t seed = static_cast<uint64_t>(iteration) << 32;
    switch (kind) {
    case HOSTILE_ATOMICS:
        fill_atomics(&buffer);
        break;
    case HOSTILE_CLOCK:
        read_clock_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(buffer.data, count);
        device_launched("read_clock");
        break;
    case HOSTILE_SUM:
        fill_sum(&buffer, seed);
        break;
    default:
        fill_pointer(&buffer, seed);
        break;
    }
    buffer.digest = digest_of(&buffer);
    return buffer;
}

bool hostile_verify(struct hostile_buffer *buffer)
{
    bool is_same = digest_of(buffer) == buffer->digest;
    device_free(buffer->data);
    device_free(buffer->holder);
    return is_same;
}
