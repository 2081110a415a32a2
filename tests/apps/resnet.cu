/* Trains a residual network on synthetic images: N 3x3 convolutions, each followed by BatchNorm and ReLU, a
 * residual addition around every two of them after the first (basic blocks), global average pool, linear
 * classifier, cross entropy, SGD with momentum.
 *
 * What forward keeps until its backward has run, as PyTorch's autograd does:
 *     per layer       the convolution's output (BatchNorm reads it), mean and 1/std of the batch, the ReLU's
 *                     output (it is the next convolution's input as well)
 *     once            the images and labels, pooled features, log-probabilities
 * BatchNorm's output, the residual sum, logits and every gradient of an activation are temporaries.
 *
 * The defaults suit quick tests. The long chain of the literature, at a size where convolutions dominate and weights
 * are 2 % of the peak:
 *     resnet --layers 1000 --width 8 --image 32 --batch 6
 */
#include "tests/apps/convolution.h"
#include "tests/apps/device.h"
#include "tests/apps/elementwise.h"
#include "tests/apps/loss.h"
#include "tests/apps/matmul.h"
#include "tests/apps/norm.h"
#include "tests/apps/optimiser.h"
#include "tests/apps/parameter.h"
#include "tests/apps/pool.h"
#include "tests/apps/random.h"
#include "tests/apps/training.h"
#include <math.h>

#define CLASSES 10
#define COLOURS 3

static struct {
    int layers, width, image, batch;
} size = {64, 4, 32, 4};

struct layer {
    struct parameter *weight, *gamma, *beta;
    float *running_mean, *running_variance;
    int in;
    /* kept from forward to backward */
    float *convolved, *mean, *inverse_std, *output;
};

static struct {
    std::vector<struct layer> layers;
    struct parameter *weight, *bias; /* classifier */
    float *images, *pooled, *log_probability;
    int *labels;
} net;

static size_t activation_count(void)
{
    return static_cast<size_t>(size.batch) * size.width * size.image * size.image;
}

static struct convolution shape_of(const struct layer &layer)
{
    return {size.batch, layer.in, size.width, size.image};
}

static struct batch_norm norm_shape(void)
{
    return {size.batch, size.width, size.image * size.image, 0.1f};
}

/* Layer i (from 0) ends a block if the block's first layer comes before it. */
static bool ends_block(size_t i)
{
    return i >= 2 && i % 2 == 0;
}

static const float *input_of(size_t i)
{
    return i == 0 ? net.images : net.layers[i - 1].output;
}

static void make_network(void)
{
    for (int i = 0; i < size.layers; i++) {
        struct layer layer = {};
        layer.in = i == 0 ? COLOURS : size.width;
        size_t taps = static_cast<size_t>(layer.in) * 9;
        layer.weight = parameter_make(taps * size.width, 0.0f, sqrtf(6.0f / static_cast<float>(taps)), 1);
        layer.gamma = parameter_make(size.width, ends_block(i) ? 0.5f : 1.0f, 0.0f, 1);
        layer.beta = parameter_make(size.width, 0.0f, 0.0f, 1);
        layer.running_mean = state_make(size.width, 0.0f);
        layer.running_variance = state_make(size.width, 1.0f);
        net.layers.push_back(layer);
    }
    net.weight = parameter_make(static_cast<size_t>(size.width) * CLASSES, 0.0f, 1.0f / sqrtf(size.width), 1);
    net.bias = parameter_make(CLASSES, 0.0f, 0.0f, 1);
}

/* Each class has a fixed picture of 4 x 4 patches; an image is its class's picture under noise. */
static float picture(int label, size_t pixel)
{
    size_t side = size.image, y = pixel / side % side * 4 / side, x = pixel % side * 4 / side;
    return random_signed(1 + label, (pixel / (side * side) * 4 + y) * 4 + x);
}

static void load_batch(int iteration)
{
    size_t pixels = static_cast<size_t>(COLOURS) * size.image * size.image;
    std::vector<float> images(pixels * size.batch);
    std::vector<int> labels(size.batch);
    for (int b = 0; b < size.batch; b++) {
        uint64_t stream = 1000000u + static_cast<uint64_t>(iteration) * 10000u + b;
        labels[b] = random_below(stream, pixels, CLASSES);
        for (size_t p = 0; p < pixels; p++)
            images[b * pixels + p] = picture(labels[b], p) + 0.5f * random_signed(stream, p);
    }
    net.images = device_make<float>(images.size());
    device_write(net.images, images.data(), images.size());
    net.labels = device_make<int>(labels.size());
    device_write(net.labels, labels.data(), labels.size());
}

static void layer_forward(size_t i)
{
    struct layer &layer = net.layers[i];
    size_t count = activation_count();
    layer.convolved = device_make<float>(count);
    convolution_forward(layer.convolved, input_of(i), layer.weight->value, shape_of(layer));
    float *normal = device_make<float>(count);
    layer.mean = device_make<float>(size.width);
    layer.inverse_std = device_make<float>(size.width);
    batch_norm_forward(normal, layer.convolved, layer.gamma->value, layer.beta->value, layer.mean, layer.inverse_std,
                       layer.running_mean, layer.running_variance, norm_shape());
    if (ends_block(i)) {
        float *sum = device_make<float>(count);
        add(sum, normal, input_of(i - 1), count);
        device_free(normal);
        normal = sum;
    }
    layer.output = device_make<float>(count);
    relu_forward(layer.output, normal, count);
    device_free(normal);
}

static float *forward(int iteration)
{
    load_batch(iteration);
    for (size_t i = 0; i < net.layers.size(); i++)
        layer_forward(i);
    net.pooled = device_make<float>(static_cast<size_t>(size.batch) * size.width);
    pool_forward(net.pooled, net.layers.back().output, size.batch * size.width, size.image * size.image);
    float *logits = device_make<float>(static_cast<size_t>(size.batch) * CLASSES);
    linear_forward(logits, net.pooled, net.weight->value, net.bias->value, size.batch, size.width, CLASSES);
    net.log_probability = device_make<float>(static_cast<size_t>(size.batch) * CLASSES);
    log_softmax_forward(net.log_probability, logits, size.batch, CLASSES);
    device_free(logits);
    float *loss = device_make<float>(1);
    negative_log_likelihood(loss, net.log_probability, net.labels, size.batch, CLASSES);
    return loss;
}

/* The gradient of the last layer's output, a fresh tensor. */
static float *head_backward(void)
{
    float *dlogits = device_make<float>(static_cast<size_t>(size.batch) * CLASSES);
    cross_entropy_backward(dlogits, net.log_probability, net.labels, size.batch, CLASSES);
    device_free(net.log_probability);
    device_free(net.labels);
    float *dpooled = device_make<float>(static_cast<size_t>(size.batch) * size.width);
    linear_backward_input(dpooled, dlogits, net.weight->value, size.batch, size.width, CLASSES);
    parameter_add_gradient(net.weight, linear_backward_weight(dlogits, net.pooled, size.batch, size.width, CLASSES));
    parameter_add_gradient(net.bias, linear_backward_bias(dlogits, size.batch, CLASSES));
    device_free(dlogits);
    device_free(net.pooled);
    float *doutput = device_make<float>(activation_count());
    pool_backward(doutput, dpooled, size.batch * size.width, size.image * size.image);
    device_free(dpooled);
    return doutput;
}

/* Through ReLU, using up `doutput`: the gradient of BatchNorm's output (plus the shortcut, where there is one). */
static float *layer_backward_relu(struct layer &layer, float *doutput)
{
    float *dsum = device_make<float>(activation_count());
    relu_backward(dsum, doutput, layer.output, activation_count());
    device_free(doutput);
    device_free(layer.output);
    return dsum;
}

/* Through BatchNorm and convolution: the gradient of the layer's input, or NULL for the images. */
static float *layer_backward_rest(size_t i, const float *dnormal)
{
    struct layer &layer = net.layers[i];
    float *dconvolved = device_make<float>(activation_count());
    float *dgamma = device_make<float>(size.width), *dbeta = device_make<float>(size.width);
    batch_norm_backward(dconvolved, dgamma, dbeta, dnormal, layer.convolved, layer.gamma->value, layer.mean,
                        layer.inverse_std, norm_shape());
    device_free(layer.convolved);
    device_free(layer.mean);
    device_free(layer.inverse_std);
    parameter_add_gradient(layer.gamma, dgamma);
    parameter_add_gradient(layer.beta, dbeta);
    float *dinput = nullptr;
    if (i > 0) {
        dinput = device_make<float>(activation_count());
        convolution_backward_data(dinput, dconvolved, layer.weight->value, shape_of(layer));
    }
    parameter_add_gradient(layer.weight, convolution_backward_weight(dconvolved, input_of(i), shape_of(layer)));
    device_free(dconvolved);
    return dinput;
}

static void backward(int)
{
    float *doutput = head_backward(), *shortcut = nullptr;
    for (size_t i = net.layers.size(); i-- > 0;) {
        float *dsum = layer_backward_relu(net.layers[i], doutput);
        doutput = layer_backward_rest(i, dsum);
        if (ends_block(i)) {
            shortcut = dsum;
            continue;
        }
        device_free(dsum);
        if (shortcut) {
            accumulate(doutput, shortcut, activation_count());
            device_free(shortcut);
        }
    }
    device_free(net.images);
}

static void step(int)
{
    sgd_step(0.05f, 0.9f);
}

int main(int argc, char **argv)
{
    const struct option options[] = {{"layers", &size.layers, 1, 100000},
                                     {"width", &size.width, 1, 4096},
                                     {"image", &size.image, 1, 4096},
                                     {"batch", &size.batch, 1, 4096}};
    struct run_settings settings = {10, 1, false, false};
    options_parse(argc, argv, options, sizeof options / sizeof options[0], &settings);
    options_check_elements("resnet", 1.0 * size.batch * size.image * size.image * size.width);
    options_check_elements("resnet", 9.0 * size.width * size.width * size.batch * (size.image / 16 + 1));
    make_network();
    const struct training training = {forward, backward, step, nullptr};
    return training_run(&settings, &training);
}
