/* The body of a matrix product, for kernels: each thread makes one 4 x 4 tile of C. */
#pragma once
#include "tests/apps/matmul.h"

#define MATMUL_TILE  4
#define MATMUL_BLOCK 64

static __device__ inline void matmul_store(const struct matmul &p, float *c, int row, int column,
                                           const float sum[MATMUL_TILE][MATMUL_TILE])
{
    for (int i = 0; i < MATMUL_TILE && row + i < p.m; i++)
        for (int j = 0; j < MATMUL_TILE && column + j < p.n; j++) {
            float value = p.alpha * sum[i][j];
            c[(row + i) * p.c_row + column + j] = p.bias ? value + p.bias[column + j] : value;
        }
}

static __device__ inline void matmul_tile(const struct matmul &p)
{
    int columns = (p.n + MATMUL_TILE - 1) / MATMUL_TILE;
    int tile = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    int row = tile / columns * MATMUL_TILE, column = tile % columns * MATMUL_TILE;
    if (row >= p.m)
        return;
    int outer = static_cast<int>(blockIdx.z) / p.inner, inner = static_cast<int>(blockIdx.z) % p.inner;
    int first = static_cast<int>(blockIdx.y) * p.chunk, last = min(first + p.chunk, p.k);
    const float *a[MATMUL_TILE], *b[MATMUL_TILE];
    float sum[MATMUL_TILE][MATMUL_TILE] = {};
#pragma unroll
    for (int i = 0; i < MATMUL_TILE; i++) {
        a[i] = p.a + outer * p.a_outer + inner * p.a_inner + min(row + i, p.m - 1) * p.a_row + first * p.a_column;
        b[i] = p.b + outer * p.b_outer + inner * p.b_inner + min(column + i, p.n - 1) * p.b_column + first * p.b_row;
    }
    for (int k = first; k < last; k++) {
        float left[MATMUL_TILE], right[MATMUL_TILE];
#pragma unroll
        for (int i = 0; i < MATMUL_TILE; i++) {
            left[i] = *a[i];
            right[i] = *b[i];
            a[i] += p.a_column;
            b[i] += p.b_row;
        }
#pragma unroll
        for (int i = 0; i < MATMUL_TILE; i++)
#pragma unroll
            for (int j = 0; j < MATMUL_TILE; j++)
                sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
    }
    float *c = p.c + outer * p.c_outer + inner * p.c_inner + static_cast<size_t>(blockIdx.y) * p.m * p.n;
    matmul_store(p, c, row, column, sum);
}

/* The launch shape that matmul_tile expects. */
static inline dim3 matmul_grid(const struct matmul &p)
{
    size_t tiles = static_cast<size_t>((p.m + MATMUL_TILE - 1) / MATMUL_TILE) * ((p.n + MATMUL_TILE - 1) / MATMUL_TILE);
    return dim3(blocks_for(tiles, MATMUL_BLOCK), static_cast<unsigned>((p.k + p.chunk - 1) / p.chunk),
                static_cast<unsigned>(p.batches));
}
