#include "tests/apps/elementwise.h"
#include "tests/apps/device.h"

#define BLOCK      128
#define PER_THREAD 4

struct relu {
    __device__ float operator()(float x) const
    {
        return fmaxf(x, 0.0f);
    }
};

struct relu_slope {
    __device__ float operator()(float dy, float y) const
    {
        return y > 0.0f ? dy : 0.0f;
    }
};

static __device__ float gelu_inner(float x)
{
    return tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
}

struct gelu {
    __device__ float operator()(float x) const
    {
        return 0.5f * x * (1.0f + gelu_inner(x));
    }
};

struct gelu_slope {
    __device__ float operator()(float dy, float x) const
    {
        float t = gelu_inner(x);
        float inner_slope = 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
        return dy * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner_slope);
    }
};

struct sum {
    __device__ float operator()(float a, float b) const
    {
        return a + b;
    }
};

static __device__ size_t first_element(void)
{
    return (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * PER_THREAD;
}

/* Four adjacent elements per thread, as one vector where all four exist. */
template <typename Operation>
static __global__ void map_kernel(float *out, const float *in, size_t count, Operation operation)
{
    size_t i = first_element();
    if (i + PER_THREAD <= count) {
        float4 x = *reinterpret_cast<const float4 *>(in + i);
        *reinterpret_cast<float4 *>(out + i) =
            make_float4(operation(x.x), operation(x.y), operation(x.z), operation(x.w));
        return;
    }
    for (; i < count; i++)
        out[i] = operation(in[i]);
}

template <typename Operation>
static __global__ void zip_kernel(float *out, const float *a, const float *b, size_t count, Operation operation)
{
    size_t i = first_element();
    if (i + PER_THREAD <= count) {
        float4 x = *reinterpret_cast<const float4 *>(a + i), y = *reinterpret_cast<const float4 *>(b + i);
        *reinterpret_cast<float4 *>(out + i) =
            make_float4(operation(x.x, y.x), operation(x.y, y.y), operation(x.z, y.z), operation(x.w, y.w));
        return;
    }
    for (; i < count; i++)
        out[i] = operation(a[i], b[i]);
}

template <typename Operation>
static void map(const char *name, float *out, const float *in, size_t count, Operation operation)
{
    map_kernel<<<blocks_for(count, BLOCK * PER_THREAD), BLOCK>>>(out, in, count, operation);
    device_launched(name);
}

template <typename Operation>
static void zip(const char *name, float *out, const float *a, const float *b, size_t count, Operation operation)
{
    zip_kernel<<<blocks_for(count, BLOCK * PER_THREAD), BLOCK>>>(out, a, b, count, operation);
    device_launched(name);
}

void relu_forward(float *y, const float *x, size_t count)
{
    map("relu_forward", y, x, count, relu());
}

void relu_in_place(float *y, size_t count)
{
    map("relu_in_place", y, y, count, relu());
}

void relu_backward(float *dx, const float *dy, const float *y, size_t count)
{
    zip("relu_backward", dx, dy, y, count, relu_slope());
}

void gelu_forward(float *y, const float *x, size_t count)
{
    map("gelu_forward", y, x, count, gelu());
}

void gelu_backward(float *dx, const float *dy, const float *x, size_t count)
{
    zip("gelu_backward", dx, dy, x, count, gelu_slope());
}

void add(float *sum_out, const float *a, const float *b, size_t count)
{
    zip("add", sum_out, a, b, count, sum());
}

void accumulate(float *total, const float *term, size_t count)
{
    zip("accumulate", total, total, term, count, sum());
}
