#include "tests/apps/pool.h"
#include "tests/apps/device.h"
#include "tests/apps/reduce.cuh"

#define BLOCK 64

/* One block per plane. */
static __global__ void pool_forward_kernel(float *y, const float *x, int spatial)
{
    __shared__ float shared[BLOCK];
    x += static_cast<size_t>(blockIdx.x) * spatial;
    float sum = 0.0f;
    for (int i = static_cast<int>(threadIdx.x); i < spatial; i += BLOCK)
        sum += x[i];
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0)
        y[blockIdx.x] = sum / static_cast<float>(spatial);
}

static __global__ void pool_backward_kernel(float *dx, const float *dy, size_t count, int spatial)
{
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        dx[i] = dy[i / static_cast<size_t>(spatial)] / static_cast<float>(spatial);
}

void pool_forward(float *y, const float *x, int planes, int spatial)
{
    pool_forward_kernel<<<static_cast<unsigned>(planes), BLOCK>>>(y, x, spatial);
    device_launched("pool_forward");
}

void pool_backward(float *dx, const float *dy, int planes, int spatial)
{
    size_t count = static_cast<size_t>(planes) * spatial;
    pool_backward_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(dx, dy, count, spatial);
    device_launched("pool_backward");
}
