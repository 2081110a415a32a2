#include "tests/apps/device.h"
#include "tests/apps/norm.h"
#include "tests/apps/reduce.cuh"

#define BLOCK   64
#define EPSILON 1e-5f

/* WIDTH adjacent elements, moved as one vector. */
template <int WIDTH> struct __align__(WIDTH * 4) pack
{
    float at[WIDTH];
};

template <int WIDTH> static __device__ struct pack<WIDTH> load(const float *x, size_t index) {
    return *reinterpret_cast<const struct pack<WIDTH> *>(x + index);
}

template <int WIDTH>
static __device__ void store(float *y, size_t index, struct pack<WIDTH> elements)
{
    *reinterpret_cast<struct pack<WIDTH> *>(y + index) = elements;
}

/* This thread's share of one channel: every BLOCK-th pack, image by image. */
struct channel_walk {
    size_t base, image_stride;
    int image, at, step_images, step_at, images, spatial;
};

template <int WIDTH> static __device__ struct channel_walk walk_begin(const struct batch_norm &shape)
{
    struct channel_walk walk;
    walk.base = static_cast<size_t>(blockIdx.x) * shape.spatial;
    walk.image_stride = static_cast<size_t>(shape.channels) * shape.spatial;
    walk.image = static_cast<int>(threadIdx.x) * WIDTH / shape.spatial;
    walk.at = static_cast<int>(threadIdx.x) * WIDTH % shape.spatial;
    walk.step_images = BLOCK * WIDTH / shape.spatial;
    walk.step_at = BLOCK * WIDTH % shape.spatial;
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

template <int WIDTH>
static __device__ void normalise(float *y, const float *x, size_t index, float mean, float scale, float shift)
{
    struct pack<WIDTH> elements = load<WIDTH>(x, index);
    for (float &element : elements.at)
        element = fmaf(element - mean, scale, shift);
    store<WIDTH>(y, index, elements);
}

/* One block per channel. Sums are taken around the channel's first element, so that one pass is enough and a mean
 * far from zero costs no digits. */
template <int WIDTH>
static __global__ void batch_norm_forward_kernel(float *y, const float *x, const float *gamma, const float *beta,
                                                 float *mean_out, float *inverse_std_out, float *running_mean,
                                                 float *running_variance, struct batch_norm shape)
{
    __shared__ float shared[BLOCK];
    int channel = static_cast<int>(blockIdx.x);
    float count = static_cast<float>(shape.batch) * static_cast<float>(shape.spatial);
    float centre = x[static_cast<size_t>(channel) * shape.spatial], sum = 0.0f, squares = 0.0f;
    for (struct channel_walk walk = walk_begin<WIDTH>(shape); walk_more(walk); walk_next(walk)) {
        struct pack<WIDTH> in = load<WIDTH>(x, walk_index(walk));
        for (float element : in.at) {
            float d = element - centre;
            sum += d;
            squares = fmaf(d, d, squares);
        }
    }
    sum = block_sum(sum, shared);
    squares = block_sum(squares, shared);
    float mean = centre + sum / count, total = fmaxf(squares - sum * (sum / count), 0.0f);
    float inverse_std = rsqrtf(total / count + EPSILON);
    float scale = gamma[channel] * inverse_std, shift = beta[channel];
    for (struct channel_walk walk = walk_begin<WIDTH>(shape); walk_more(walk); walk_next(walk))
        normalise<WIDTH>(y, x, walk_index(walk), mean, scale, shift);
    if (threadIdx.x != 0)
        return;
    mean_out[channel] = mean;
    inverse_std_out[channel] = inverse_std;
    running_mean[channel] = (1.0f - shape.momentum) * running_mean[channel] + shape.momentum * mean;
    running_variance[channel] =
        (1.0f - shape.momentum) * running_variance[channel] + shape.momentum * (total / (count - 1.0f));
}

template <int WIDTH>
static __global__ void batch_norm_evaluate_kernel(float *y, const float *x, const float *gamma, const float *beta,
                                                  const float *running_mean, const float *running_variance,
                                                  struct batch_norm shape)
{
    int channel = static_cast<int>(blockIdx.x);
    float mean = running_mean[channel];
    float scale = gamma[channel] * rsqrtf(running_variance[channel] + EPSILON), shift = beta[channel];
    for (struct channel_walk walk = walk_begin<WIDTH>(shape); walk_more(walk); walk_next(walk))
        normalise<WIDTH>(y, x, walk_index(walk), mean, scale, shift);
}

template <int WIDTH>
static __global__ void batch_norm_backward_kernel(float *dx, float *dgamma, float *dbeta, const float *dy,
                                                  const float *x, const float *gamma, const float *mean_in,
                                                  const float *inverse_std_in, struct batch_norm shape)
{
    __shared__ float shared[BLOCK];
    int channel = static_cast<int>(blockIdx.x);
    float count = static_cast<float>(shape.batch) * static_cast<float>(shape.spatial);
    float mean = mean_in[channel], inverse_std = inverse_std_in[channel];
    float sum = 0.0f, product = 0.0f;
    for (struct channel_walk walk = walk_begin<WIDTH>(shape); walk_more(walk); walk_next(walk)) {
        struct pack<WIDTH> in = load<WIDTH>(x, walk_index(walk)), slope = load<WIDTH>(dy, walk_index(walk));
        for (int j = 0; j < WIDTH; j++) {
            sum += slope.at[j];
            product = fmaf(slope.at[j], (in.at[j] - mean) * inverse_std, product);
        }
    }
    sum = block_sum(sum, shared);
    product = block_sum(product, shared);
    float scale = gamma[channel] * inverse_std;
    for (struct channel_walk walk = walk_begin<WIDTH>(shape); walk_more(walk); walk_next(walk)) {
        struct pack<WIDTH> in = load<WIDTH>(x, walk_index(walk)), slope = load<WIDTH>(dy, walk_index(walk));
        for (int j = 0; j < WIDTH; j++)
            slope.at[j] = scale * (slope.at[j] - sum / count - (in.at[j] - mean) * inverse_std * (product / count));
        store<WIDTH>(dx, walk_index(walk), slope);
    }
    if (threadIdx.x != 0)
        return;
    dgamma[channel] = product;
    dbeta[channel] = sum;
}

/* Whether each image's plane of one channel splits into vectors of four. */
static bool is_wide(struct batch_norm shape)
{
    return shape.spatial % 4 == 0;
}

void batch_norm_forward(float *y, const float *x, const float *gamma, const float *beta, float *mean,
                        float *inverse_std, float *running_mean, float *running_variance, struct batch_norm shape)
{
    auto kernel = is_wide(shape) ? batch_norm_forward_kernel<4> : batch_norm_forward_kernel<1>;
    kernel<<<static_cast<unsigned>(shape.channels), BLOCK>>>(y, x, gamma, beta, mean, inverse_std, running_mean,
                                                             running_variance, shape);
    device_launched("batch_norm_forward");
}

void batch_norm_evaluate(float *y, const float *x, const float *gamma, const float *beta, const float *running_mean,
                         const float *running_variance, struct batch_norm shape)
{
    auto kernel = is_wide(shape) ? batch_norm_evaluate_kernel<4> : batch_norm_evaluate_kernel<1>;
    kernel<<<static_cast<unsigned>(shape.channels), BLOCK>>>(y, x, gamma, beta, running_mean, running_variance, shape);
    device_launched("batch_norm_evaluate");
}

void batch_norm_backward(float *dx, float *dgamma, float *dbeta, const float *dy, const float *x, const float *gamma,
                         const float *mean, const float *inverse_std, struct batch_norm shape)
{
    auto kernel = is_wide(shape) ? batch_norm_backward_kernel<4> : batch_norm_backward_kernel<1>;
    kernel<<<static_cast<unsigned>(shape.channels), BLOCK>>>(dx, dgamma, dbeta, dy, x, gamma, mean, inverse_std, shape);
    device_launched("batch_norm_backward");
}
