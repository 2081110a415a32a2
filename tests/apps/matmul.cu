#include "tests/apps/matmul.h"
#include "tests/apps/device.h"
#include "tests/apps/matmul.cuh"
#include "tests/apps/reduce.h"

#define ROWS_PER_CHUNK 128

static __global__ void matmul_kernel(const struct matmul product)
{
    matmul_tile(product);
}

void matmul_run(struct matmul product)
{
    if (!product.chunk)
        product.chunk = product.k;
    matmul_kernel<<<matmul_grid(product), MATMUL_BLOCK>>>(product);
    device_launched("matmul");
}

static struct matmul single(const float *a, const float *b, float *c, int m, int n, int k)
{
    struct matmul product = {};
    product.a = a;
    product.b = b;
    product.c = c;
    product.m = m;
    product.n = n;
    product.k = k;
    product.c_row = n;
    product.batches = product.inner = 1;
    product.alpha = 1.0f;
    return product;
}

void linear_forward(float *y, const float *x, const float *w, const float *bias, int rows, int in, int out)
{
    struct matmul product = single(x, w, y, rows, out, in);
    product.a_row = product.b_column = in;
    product.a_column = product.b_row = 1;
    product.bias = bias;
    matmul_run(product);
}

void linear_backward_input(float *dx, const float *dy, const float *w, int rows, int in, int out)
{
    struct matmul product = single(dy, w, dx, rows, in, out);
    product.a_row = out;
    product.a_column = product.b_column = 1;
    product.b_row = in;
    matmul_run(product);
}

float *linear_backward_weight(const float *dy, const float *x, int rows, int in, int out)
{
    int chunks = (rows + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK;
    size_t count = static_cast<size_t>(in) * out;
    float *partial = device_make<float>(count * chunks);
    struct matmul product = single(dy, x, partial, out, in, rows);
    product.a_row = product.b_column = 1;
    product.a_column = out;
    product.b_row = in;
    product.chunk = ROWS_PER_CHUNK;
    matmul_run(product);
    float *dw = device_make<float>(count);
    sum_chunks(dw, partial, chunks, count);
    device_free(partial);
    return dw;
}

float *linear_backward_bias(const float *dy, int rows, int out)
{
    float *dbias = device_make<float>(static_cast<size_t>(out));
    sum_columns(dbias, dy, rows, out);
    return dbias;
}
