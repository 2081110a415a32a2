#include "tests/apps/elementwise.h"
#include "tests/apps/device.h"

#define BLOCK 128

static __device__ size_t element_index(void)
{
    return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

static __global__ void relu_forward_kernel(float *y, const float *x, size_t count)
{
    size_t i = element_index();
    if (i < count)
        y[i] = fmaxf(x[i], 0.0f);
}

static __global__ void relu_backward_kernel(float *dx, const float *dy, const float *y, size_t count)
{
    size_t i = element_index();
    if (i < count)
        dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

static __device__ float gelu_inner(float x)
{
    return tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
}

static __global__ void gelu_forward_kernel(float *y, const float *x, size_t count)
{
    size_t i = element_index();
    if (i < count)
        y[i] = 0.5f * x[i] * (1.0f + gelu_inner(x[i]));
}

static __global__ void gelu_backward_kernel(float *dx, const float *dy, const float *x, size_t count)
{
    size_t i = element_index();
    if (i >= count)
        return;
    float t = gelu_inner(x[i]);
    float inner_slope = 0.7978845608f * (1.0f + 3.0f * 0.044715f * x[i] * x[i]);
    dx[i] = dy[i] * (0.5f * (1.0f + t) + 0.5f * x[i] * (1.0f - t * t) * inner_slope);
}

static __global__ void add_kernel(float *sum, const float *a, const float *b, size_t count)
{
    size_t i = element_index();
    if (i < count)
        sum[i] = a[i] + b[i];
}

static __global__ void accumulate_kernel(float *total, const float *term, size_t count)
{
    size_t i = element_index();
    if (i < count)
        total[i] += term[i];
}

void relu_forward(float *y, const float *x, size_t count)
{
    relu_forward_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(y, x, count);
    device_launched("relu_forward");
}

void relu_in_place(float *y, size_t count)
{
    relu_forward_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(y, y, count);
    device_launched("relu_in_place");
}

void relu_backward(float *dx, const float *dy, const float *y, size_t count)
{
    relu_backward_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(dx, dy, y, count);
    device_launched("relu_backward");
}

void gelu_forward(float *y, const float *x, size_t count)
{
    gelu_forward_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(y, x, count);
    device_launched("gelu_forward");
}

void gelu_backward(float *dx, const float *dy, const float *x, size_t count)
{
    gelu_backward_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(dx, dy, x, count);
    device_launched("gelu_backward");
}

void add(float *sum, const float *a, const float *b, size_t count)
{
    add_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(sum, a, b, count);
    device_launched("add");
}

void accumulate(float *total, const float *term, size_t count)
{
    accumulate_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(total, term, count);
    device_launched("accumulate");
}
