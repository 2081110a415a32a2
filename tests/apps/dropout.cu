#include "tests/apps/dropout.h"
#include "tests/apps/device.h"

#define BLOCK      128
#define PER_THREAD 4

static __device__ uint4 philox(uint64_t seed, uint64_t offset, uint64_t index)
{
    uint4 c = make_uint4(static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32),
                         static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32));
    uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint32_t high0 = __umulhi(0xd2511f53u, c.x), low0 = 0xd2511f53u * c.x;
        uint32_t high1 = __umulhi(0xcd9e8d57u, c.z), low1 = 0xcd9e8d57u * c.z;
        c = make_uint4(high1 ^ c.y ^ key0, low1, high0 ^ c.w ^ key1, low0);
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return c;
}

static __global__ void dropout_forward_kernel(float *y, uint8_t *mask, const float *x, size_t count, float keep,
                                              uint64_t seed, uint64_t offset)
{
    size_t group = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (group * PER_THREAD >= count)
        return;
    uint4 bits = philox(seed, offset, group);
    uint32_t draws[PER_THREAD] = {bits.x, bits.y, bits.z, bits.w};
    float scale = 1.0f / keep;
#pragma unroll
    for (int j = 0; j < PER_THREAD; j++) {
        size_t i = group * PER_THREAD + j;
        if (i >= count)
            return;
        bool is_kept = static_cast<float>(draws[j] >> 8) * (1.0f / 16777216.0f) < keep;
        mask[i] = is_kept;
        y[i] = is_kept ? x[i] * scale : 0.0f;
    }
}

static __global__ void dropout_backward_kernel(float *dx, const float *dy, const uint8_t *mask, size_t count,
                                               float keep)
{
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        dx[i] = mask[i] ? dy[i] * (1.0f / keep) : 0.0f;
}

void dropout_forward(float *y, uint8_t *mask, const float *x, size_t count, float keep, struct generator *generator)
{
    size_t groups = (count + PER_THREAD - 1) / PER_THREAD;
    dropout_forward_kernel<<<blocks_for(groups, BLOCK), BLOCK>>>(y, mask, x, count, keep, generator->seed,
                                                                 generator->offset);
    device_launched("dropout_forward");
    generator->offset++;
}

void dropout_backward(float *dx, const float *dy, const uint8_t *mask, size_t count, float keep)
{
    dropout_backward_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(dx, dy, mask, count, keep);
    device_launched("dropout_backward");
}
