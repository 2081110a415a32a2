#include "tests/apps/reduce.h"
#include "tests/apps/device.h"

#define BLOCK          128
#define ROWS_PER_CHUNK 128

static __global__ void sum_chunks_kernel(float *out, const float *partial, int chunks, size_t count)
{
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float total = 0.0f;
    for (int c = 0; c < chunks; c++)
        total += partial[static_cast<size_t>(c) * count + i];
    out[i] = total;
}

static __global__ void sum_columns_partial_kernel(float *partial, const float *x, int rows, int columns)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    int chunk = i / columns, column = i % columns;
    int first = chunk * ROWS_PER_CHUNK, last = min(first + ROWS_PER_CHUNK, rows);
    if (first >= rows)
        return;
    float total = 0.0f;
    for (int row = first; row < last; row++)
        total += x[static_cast<size_t>(row) * columns + column];
    partial[i] = total;
}

static __global__ void sum_all_kernel(float *out, const float *x, int count, float scale)
{
    __shared__ float warps[BLOCK / 32];
    float total = 0.0f;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += BLOCK)
        total += x[i];
    for (int lanes = 16; lanes > 0; lanes /= 2)
        total += __shfl_down_sync(0xffffffffu, total, lanes);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    total = 0.0f;
    for (float warp : warps)
        total += warp;
    *out = scale * total;
}

void sum_chunks(float *out, const float *partial, int chunks, size_t count)
{
    sum_chunks_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(out, partial, chunks, count);
    device_launched("sum_chunks");
}

void sum_columns(float *out, const float *x, int rows, int columns)
{
    int chunks = (rows + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK;
    size_t items = static_cast<size_t>(chunks) * columns;
    float *partial = device_make<float>(items);
    sum_columns_partial_kernel<<<blocks_for(items, BLOCK), BLOCK>>>(partial, x, rows, columns);
    device_launched("sum_columns_partial");
    sum_chunks(out, partial, chunks, static_cast<size_t>(columns));
    device_free(partial);
}

void sum_all(float *out, const float *x, int count, float scale)
{
    sum_all_kernel<<<1, BLOCK>>>(out, x, count, scale);
    device_launched("sum_all");
}
