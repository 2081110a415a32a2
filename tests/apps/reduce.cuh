/* Block-wide sums for kernels; every thread of the block calls them, blockDim.x a power of two. */
#pragma once

/* `shared` holds blockDim.x floats; free for reuse on return. */
static __device__ inline float block_sum(float value, float *shared)
{
    shared[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    float total = shared[0];
    __syncthreads();
    return total;
}
