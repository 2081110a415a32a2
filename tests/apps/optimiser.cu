#include "tests/apps/optimiser.h"
#include "tests/apps/device.h"
#include "tests/apps/parameter.h"

#define BLOCK 128

static __global__ void sgd_kernel(float *value, float *moment, const float *gradient, size_t count, float rate,
                                  float momentum)
{
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    moment[i] = fmaf(momentum, moment[i], gradient[i]);
    value[i] = fmaf(-rate, moment[i], value[i]);
}

static __global__ void adam_kernel(float *value, float *first, float *second, const float *gradient, size_t count,
                                   float rate, int step)
{
    const float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float correction1 = 1.0f - powf(beta1, static_cast<float>(step));
    float correction2 = 1.0f - powf(beta2, static_cast<float>(step));
    first[i] = beta1 * first[i] + (1.0f - beta1) * gradient[i];
    second[i] = beta2 * second[i] + (1.0f - beta2) * gradient[i] * gradient[i];
    value[i] -= rate * (first[i] / correction1) / (sqrtf(second[i] / correction2) + epsilon);
}

void sgd_step(float rate, float momentum)
{
    for (struct parameter *p : parameters()) {
        if (!p->gradient)
            continue;
        sgd_kernel<<<blocks_for(p->count, BLOCK), BLOCK>>>(p->value, p->moment[0], p->gradient, p->count, rate,
                                                           momentum);
        device_launched("sgd_step");
    }
    parameters_drop_gradients();
}

void adam_step(float rate, int step)
{
    for (struct parameter *p : parameters()) {
        if (!p->gradient)
            continue;
        adam_kernel<<<blocks_for(p->count, BLOCK), BLOCK>>>(p->value, p->moment[0], p->moment[1], p->gradient, p->count,
                                                            rate, step);
        device_launched("adam_step");
    }
    parameters_drop_gradients();
}
