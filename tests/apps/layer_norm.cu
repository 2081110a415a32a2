#include "tests/apps/device.h"
#include "tests/apps/norm.h"
#include "tests/apps/reduce.h"

#define BLOCK          64
#define EPSILON        1e-5f
#define ROWS_PER_CHUNK 128

/* One thread per row. */
static __global__ void layer_norm_forward_kernel(float *y, float *mean_out, float *inverse_std_out, const float *x,
                                                 const float *gamma, const float *beta, int rows, int columns)
{
    int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= rows)
        return;
    x += static_cast<size_t>(row) * columns;
    y += static_cast<size_t>(row) * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int c = 0; c < columns; c++)
        sum += x[c];
    float mean = sum / static_cast<float>(columns);
    for (int c = 0; c < columns; c++)
        squares = fmaf(x[c] - mean, x[c] - mean, squares);
    float inverse_std = rsqrtf(squares / static_cast<float>(columns) + EPSILON);
    for (int c = 0; c < columns; c++)
        y[c] = fmaf((x[c] - mean) * inverse_std, gamma[c], beta[c]);
    mean_out[row] = mean;
    inverse_std_out[row] = inverse_std;
}

static __global__ void layer_norm_backward_kernel(float *dx, const float *dy, const float *x, const float *gamma,
                                                  const float *mean_in, const float *inverse_std_in, int rows,
                                                  int columns)
{
    int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= rows)
        return;
    x += static_cast<size_t>(row) * columns;
    dx += static_cast<size_t>(row) * columns;
    dy += static_cast<size_t>(row) * columns;
    float mean = mean_in[row], inverse_std = inverse_std_in[row];
    float sum = 0.0f, product = 0.0f;
    for (int c = 0; c < columns; c++) {
        float d = dy[c] * gamma[c];
        sum += d;
        product = fmaf(d, (x[c] - mean) * inverse_std, product);
    }
    sum /= static_cast<float>(columns);
    product /= static_cast<float>(columns);
    for (int c = 0; c < columns; c++)
        dx[c] = inverse_std * (dy[c] * gamma[c] - sum - (x[c] - mean) * inverse_std * product);
}

/* partial holds one plane of dgamma and then one of dbeta per chunk of rows. */
static __global__ void affine_partial_kernel(float *partial, const float *dy, const float *x, const float *mean,
                                             const float *inverse_std, int rows, int columns)
{
    int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    int column = index % columns, chunk = index / columns;
    int first = chunk * ROWS_PER_CHUNK, last = min(first + ROWS_PER_CHUNK, rows);
    if (first >= rows)
        return;
    float dgamma = 0.0f, dbeta = 0.0f;
    for (int row = first; row < last; row++) {
        size_t at = static_cast<size_t>(row) * columns + column;
        dgamma = fmaf(dy[at], (x[at] - mean[row]) * inverse_std[row], dgamma);
        dbeta += dy[at];
    }
    int chunks = (rows + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK;
    partial[index] = dgamma;
    partial[chunks * columns + index] = dbeta;
}

void layer_norm_forward(float *y, float *mean, float *inverse_std, const float *x, const float *gamma,
                        const float *beta, int rows, int columns)
{
    layer_norm_forward_kernel<<<blocks_for(static_cast<size_t>(rows), BLOCK), BLOCK>>>(y, mean, inverse_std, x, gamma,
                                                                                       beta, rows, columns);
    device_launched("layer_norm_forward");
}

void layer_norm_backward(float *dx, const float *dy, const float *x, const float *gamma, const float *mean,
                         const float *inverse_std, int rows, int columns)
{
    layer_norm_backward_kernel<<<blocks_for(static_cast<size_t>(rows), BLOCK), BLOCK>>>(dx, dy, x, gamma, mean,
                                                                                        inverse_std, rows, columns);
    device_launched("layer_norm_backward");
}

void layer_norm_backward_affine(float *dgamma, float *dbeta, const float *dy, const float *x, const float *mean,
                                const float *inverse_std, int rows, int columns)
{
    int chunks = (rows + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK;
    size_t items = static_cast<size_t>(chunks) * columns;
    float *partial = device_make<float>(items * 2);
    affine_partial_kernel<<<blocks_for(items, BLOCK), BLOCK>>>(partial, dy, x, mean, inverse_std, rows, columns);
    device_launched("layer_norm_affine");
    sum_chunks(dgamma, partial, chunks, static_cast<size_t>(columns));
    sum_chunks(dbeta, partial + items, chunks, static_cast<size_t>(columns));
    device_free(partial);
}
