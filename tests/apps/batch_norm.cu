#include "tests/apps/device.h"
#include "tests/apps/norm.h"
#include "tests/apps/reduce.cuh"

#define BLOCK   64
#define EPSILON 1e-5f

/* This thread's share of one channel's elements: every BLOCK-th, batch-major. */
struct channel_walk {
    size_t base, image_stride;
    int image, at, step_images, step_at, images, spatial;
};

static __device__ struct channel_walk walk_begin(const struct batch_norm &shape)
{
    struct channel_walk walk;
    walk.base = static_cast<size_t>(blockIdx.x) * shape.spatial;
    walk.image_stride = static_cast<size_t>(shape.channels) * shape.spatial;
    walk.image = static_cast<int>(threadIdx.x) / shape.spatial;
    walk.at = static_cast<int>(threadIdx.x) % shape.spatial;
    walk.step_images = BLOCK / shape.spatial;
    walk.step_at = BLOCK % shape.spatial;
    walk.images = shape.batch;
    walk.spatial = shape.spatial;
    return walk;
}

static __device__ bool walk_more(const struct channel_walk &walk)
{
    return walk.image < walk.images;
}

static __device__ size_t walk_index(const struct channel_walk &walk)
{
    return walk.base + static_cast<size_t>(walk.image) * walk.image_stride + walk.at;
}

static __device__ void walk_next(struct channel_walk &walk)
{
    walk.at += walk.step_at;
    walk.image += walk.step_images;
    if (walk.at >= walk.spatial) {
        walk.at -= walk.spatial;
        walk.image++;
    }
}

/* One block per channel. Sums are taken around the channel's first element, so that one pass is enough and a mean
 * far from zero costs no digits. */
static __global__ void batch_norm_forward_kernel(float *y, const float *x, const float *gamma, const float *beta,
                                                 float *mean_out, float *inverse_std_out, float *running_mean,
                                                 float *running_variance, struct batch_norm shape)
{
    __shared__ float shared[BLOCK];
    int channel = static_cast<int>(blockIdx.x);
    float count = static_cast<float>(shape.batch) * static_cast<float>(shape.spatial);
    float centre = x[static_cast<size_t>(channel) * shape.spatial], sum = 0.0f, squares = 0.0f;
    for (struct channel_walk walk = walk_begin(shape); walk_more(walk); walk_next(walk)) {
        float d = x[walk_index(walk)] - centre;
        sum += d;
        squares = fmaf(d, d, squares);
    }
    sum = block_sum(sum, shared);
    squares = block_sum(squares, shared);
    float mean = centre + sum / count, total = fmaxf(squares - sum * (sum / count), 0.0f);
    float inverse_std = rsqrtf(total / count + EPSILON);
    float scale = gamma[channel] * inverse_std, shift = beta[channel];
    for (struct channel_walk walk = walk_begin(shape); walk_more(walk); walk_next(walk))
        y[walk_index(walk)] = fmaf(x[walk_index(walk)] - mean, scale, shift);
    if (threadIdx.x != 0)
        return;
    mean_out[channel] = mean;
    inverse_std_out[channel] = inverse_std;
    running_mean[channel] = (1.0f - shape.momentum) * running_mean[channel] + shape.momentum * mean;
    running_variance[channel] =
        (1.0f - shape.momentum) * running_variance[channel] + shape.momentum * (total / (count - 1.0f));
}

static __global__ void batch_norm_evaluate_kernel(float *y, const float *x, const float *gamma, const float *beta,
                                                  const float *running_mean, const float *running_variance,
                                                  struct batch_norm shape)
{
    int channel = static_cast<int>(blockIdx.x);
    float mean = running_mean[channel];
    float scale = gamma[channel] * rsqrtf(running_variance[channel] + EPSILON), shift = beta[channel];
    for (struct channel_walk walk = walk_begin(shape); walk_more(walk); walk_next(walk))
        y[walk_index(walk)] = fmaf(x[walk_index(walk)] - mean, scale, shift);
}

static __global__ void batch_norm_backward_kernel(float *dx, float *dgamma, float *dbeta, const float *dy,
                                                  const float *x, const float *gamma, const float *mean_in,
                                                  const float *inverse_std_in, struct batch_norm shape)
{
    __shared__ float shared[BLOCK];
    int channel = static_cast<int>(blockIdx.x);
    float count = static_cast<float>(shape.batch) * static_cast<float>(shape.spatial);
    float mean = mean_in[channel], inverse_std = inverse_std_in[channel];
    float sum = 0.0f, product = 0.0f;
    for (struct channel_walk walk = walk_begin(shape); walk_more(walk); walk_next(walk)) {
        float d = dy[walk_index(walk)];
        sum += d;
        product = fmaf(d, (x[walk_index(walk)] - mean) * inverse_std, product);
    }
    sum = block_sum(sum, shared);
    product = block_sum(product, shared);
    float scale = gamma[channel] * inverse_std;
    for (struct channel_walk walk = walk_begin(shape); walk_more(walk); walk_next(walk)) {
        float normal = (x[walk_index(walk)] - mean) * inverse_std;
        dx[walk_index(walk)] = scale * (dy[walk_index(walk)] - sum / count - normal * (product / count));
    }
    if (threadIdx.x != 0)
        return;
    dgamma[channel] = product;
    dbeta[channel] = sum;
}

void batch_norm_forward(float *y, const float *x, const float *gamma, const float *beta, float *mean,
                        float *inverse_std, float *running_mean, float *running_variance, struct batch_norm shape)
{
    batch_norm_forward_kernel<<<static_cast<unsigned>(shape.channels), BLOCK>>>(y, x, gamma, beta, mean, inverse_std,
                                                                                running_mean, running_variance, shape);
    device_launched("batch_norm_forward");
}

void batch_norm_evaluate(float *y, const float *x, const float *gamma, const float *beta, const float *running_mean,
                         const float *running_variance, struct batch_norm shape)
{
    batch_norm_evaluate_kernel<<<static_cast<unsigned>(shape.channels), BLOCK>>>(y, x, gamma, beta, running_mean,
                                                                                 running_variance, shape);
    device_launched("batch_norm_evaluate");
}

void batch_norm_backward(float *dx, float *dgamma, float *dbeta, const float *dy, const float *x, const float *gamma,
                         const float *mean, const float *inverse_std, struct batch_norm shape)
{
    batch_norm_backward_kernel<<<static_cast<unsigned>(shape.channels), BLOCK>>>(dx, dgamma, dbeta, dy, x, gamma, mean,
                                                                                 inverse_std, shape);
    device_launched("batch_norm_backward");
}
