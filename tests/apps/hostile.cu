/* Trains a perceptron with BatchNorm and holds, between forward and backward, buffers that must not be brought
 * back by running their kernels again (hostile_buffers.h). The loss does not depend on them; each line of output says
 * whether the backward pass found them as the forward pass left them:
 *     iter I loss X [eval Y] atomics consistent clock consistent sum consistent pointer consistent
 * with `corrupt` in place of `consistent` where it did not. --digests 1 adds lines `digest I NAME H` on stderr. Every
 * third iteration ends with an evaluation pass (forward only, running statistics, another batch); every fifth has a
 * batch three quarters the size.
 *
 * What forward keeps until its backward has run, as PyTorch does:
 *     per layer       the linear map's output (BatchNorm reads it), mean and 1/std of the batch, the ReLU's output
 *                     (the next linear map's input as well)
 *     once            the inputs and labels, log-probabilities, the four buffers
 * BatchNorm's output, logits and every gradient of an activation are temporaries. */
#include "tests/apps/device.h"
#include "tests/apps/elementwise.h"
#include "tests/apps/hostile_buffers.h"
#include "tests/apps/loss.h"
#include "tests/apps/matmul.h"
#include "tests/apps/norm.h"
#include "tests/apps/optimiser.h"
#include "tests/apps/parameter.h"
#include "tests/apps/random.h"
#include "tests/apps/training.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define CLASSES 8
#define INPUTS  4

static struct {
    int layers, width, batch, buffer;
    int has_digests; /* 1: digests of the buffers on stderr */
} size = {64, 16, 1024, 65536, 0};

struct layer {
    struct parameter *weight, *bias, *gamma, *beta;
    float *running_mean, *running_variance;
    int in;
    /* kept from forward to backward */
    float *linear, *mean, *inverse_std, *output;
};

static struct {
    std::vector<struct layer> layers;
    struct parameter *weight, *bias; /* classifier */
    int batch;                       /* of this pass */
    float *inputs, *log_probability;
    int *labels;
    struct hostile_buffer buffers[HOSTILE_KINDS];
    bool is_consistent[HOSTILE_KINDS];
} net;

static size_t activation_count(void)
{
    return static_cast<size_t>(net.batch) * size.width;
}

static struct batch_norm norm_shape(void)
{
    return {net.batch, size.width, 1, 0.5f};
}

static const float *input_of(size_t i)
{
    return i == 0 ? net.inputs : net.layers[i - 1].output;
}

/* Buffers are made after these layers, spread evenly over the depth. */
static bool is_place_of(int kind, size_t layer)
{
    return layer == static_cast<size_t>(size.layers) * static_cast<size_t>(kind + 1) / (HOSTILE_KINDS + 1);
}

static void make_network(void)
{
    for (int i = 0; i < size.layers; i++) {
        struct layer layer = {};
        layer.in = i == 0 ? INPUTS : size.width;
        layer.weight = parameter_make(static_cast<size_t>(layer.in) * size.width, 0.0f, sqrtf(6.0f / layer.in), 1);
        layer.bias = parameter_make(size.width, 0.0f, 0.0f, 1);
        layer.gamma = parameter_make(size.width, 1.0f, 0.0f, 1);
        layer.beta = parameter_make(size.width, 0.0f, 0.0f, 1);
        layer.running_mean = state_make(size.width, 0.0f);
        layer.running_variance = state_make(size.width, 1.0f);
        net.layers.push_back(layer);
    }
    net.weight = parameter_make(static_cast<size_t>(size.width) * CLASSES, 0.0f, 1.0f / sqrtf(size.width), 1);
    net.bias = parameter_make(CLASSES, 0.0f, 0.0f, 1);
}

/* The class is the octant of the first three inputs. */
static void load_batch(uint64_t stream)
{
    std::vector<float> inputs(static_cast<size_t>(net.batch) * INPUTS);
    std::vector<int> labels(net.batch);
    for (size_t i = 0; i < inputs.size(); i++)
        inputs[i] = random_signed(stream, i);
    for (size_t i = 0; i < inputs.size(); i++)
        if (i % INPUTS < 3)
            labels[i / INPUTS] |= (inputs[i] > 0.0f) << (i % INPUTS);
    net.inputs = device_make<float>(inputs.size());
    device_write(net.inputs, inputs.data(), inputs.size());
    net.labels = device_make<int>(labels.size());
    device_write(net.labels, labels.data(), labels.size());
}

static float *linear_of(const struct layer &layer, const float *x)
{
    float *y = device_make<float>(activation_count());
    linear_forward(y, x, layer.weight->value, layer.bias->value, net.batch, layer.in, size.width);
    return y;
}

static float *relu_of(float *x)
{
    float *y = device_make<float>(activation_count());
    relu_forward(y, x, activation_count());
    device_free(x);
    return y;
}

static void layer_forward(size_t i)
{
    struct layer &layer = net.layers[i];
    layer.linear = linear_of(layer, input_of(i));
    float *normal = device_make<float>(activation_count());
    layer.mean = device_make<float>(size.width);
    layer.inverse_std = device_make<float>(size.width);
    batch_norm_forward(normal, layer.linear, layer.gamma->value, layer.beta->value, layer.mean, layer.inverse_std,
                       layer.running_mean, layer.running_variance, norm_shape());
    layer.output = relu_of(normal);
}

/* Log-probabilities of the classes, kept; and the loss, a fresh one-float tensor. */
static float *head_forward(const float *x)
{
    size_t outputs = static_cast<size_t>(net.batch) * CLASSES;
    float *logits = device_make<float>(outputs);
    linear_forward(logits, x, net.weight->value, net.bias->value, net.batch, size.width, CLASSES);
    net.log_probability = device_make<float>(outputs);
    log_softmax_forward(net.log_probability, logits, net.batch, CLASSES);
    device_free(logits);
    float *loss = device_make<float>(1);
    negative_log_likelihood(loss, net.log_probability, net.labels, net.batch, CLASSES);
    return loss;
}

static float *forward(int iteration)
{
    net.batch = iteration % 5 == 0 ? size.batch * 3 / 4 : size.batch;
    load_batch(5000000u + static_cast<uint64_t>(iteration));
    for (size_t i = 0; i < net.layers.size(); i++) {
        layer_forward(i);
        for (int kind = 0; kind < HOSTILE_KINDS; kind++)
            if (is_place_of(kind, i))
                net.buffers[kind] = hostile_make(static_cast<enum hostile_kind>(kind), size.buffer, iteration);
    }
    return head_forward(net.layers.back().output);
}

/* The gradient of the last layer's output, a fresh tensor. */
static float *head_backward(void)
{
    float *dlogits = device_make<float>(static_cast<size_t>(net.batch) * CLASSES);
    cross_entropy_backward(dlogits, net.log_probability, net.labels, net.batch, CLASSES);
    device_free(net.log_probability);
    device_free(net.labels);
    float *doutput = device_make<float>(activation_count());
    linear_backward_input(doutput, dlogits, net.weight->value, net.batch, size.width, CLASSES);
    const float *x = net.layers.back().output;
    parameter_add_gradient(net.weight, linear_backward_weight(dlogits, x, net.batch, size.width, CLASSES));
    parameter_add_gradient(net.bias, linear_backward_bias(dlogits, net.batch, CLASSES));
    device_free(dlogits);
    return doutput;
}

/* Through ReLU and BatchNorm, using up `doutput`: the gradient of the linear map's output. */
static float *norm_backward(struct layer &layer, float *doutput)
{
    float *dnormal = device_make<float>(activation_count());
    relu_backward(dnormal, doutput, layer.output, activation_count());
    device_free(doutput);
    device_free(layer.output);
    float *dlinear = device_make<float>(activation_count());
    float *dgamma = device_make<float>(size.width), *dbeta = device_make<float>(size.width);
    batch_norm_backward(dlinear, dgamma, dbeta, dnormal, layer.linear, layer.gamma->value, layer.mean,
                        layer.inverse_std, norm_shape());
    device_free(dnormal);
    device_free(layer.linear);
    device_free(layer.mean);
    device_free(layer.inverse_std);
    parameter_add_gradient(layer.gamma, dgamma);
    parameter_add_gradient(layer.beta, dbeta);
    return dlinear;
}

/* Uses up the gradient of the layer's output; gives that of its input, NULL for the first layer. */
static float *layer_backward(size_t i, float *doutput)
{
    struct layer &layer = net.layers[i];
    float *dlinear = norm_backward(layer, doutput), *dinput = nullptr;
    if (i > 0) {
        dinput = device_make<float>(activation_count());
        linear_backward_input(dinput, dlinear, layer.weight->value, net.batch, layer.in, size.width);
    }
    parameter_add_gradient(layer.weight, linear_backward_weight(dlinear, input_of(i), net.batch, layer.in, size.width));
    parameter_add_gradient(layer.bias, linear_backward_bias(dlinear, net.batch, size.width));
    device_free(dlinear);
    return dinput;
}

static void backward(int)
{
    float *dresult = head_backward();
    for (size_t i = net.layers.size(); i-- > 0;) {
        for (int kind = 0; kind < HOSTILE_KINDS; kind++)
            if (is_place_of(kind, i))
                net.is_consistent[kind] = hostile_verify(&net.buffers[kind]);
        dresult = layer_backward(i, dresult);
    }
    device_free(net.inputs);
}

static void step(int)
{
    sgd_step(0.05f, 0.9f);
}

/* Forward only, with running statistics; each activation is freed as soon as the next one exists. */
static float evaluate(int iteration)
{
    net.batch = size.batch / 2;
    load_batch(6000000u + static_cast<uint64_t>(iteration));
    float *x = nullptr;
    for (const struct layer &layer : net.layers) {
        float *linear = linear_of(layer, x ? x : net.inputs);
        device_free(x);
        float *normal = device_make<float>(activation_count());
        batch_norm_evaluate(normal, linear, layer.gamma->value, layer.beta->value, layer.running_mean,
                            layer.running_variance, norm_shape());
        device_free(linear);
        x = relu_of(normal);
    }
    float *loss = head_forward(x), value;
    device_free(x);
    device_free(net.inputs);
    device_free(net.labels);
    device_free(net.log_probability);
    device_read(&value, loss, 1);
    device_free(loss);
    return value;
}

static void report(int iteration)
{
    if (iteration % 3 == 0)
        printf(" eval %a", static_cast<double>(evaluate(iteration)));
    for (int kind = 0; size.has_digests && kind < HOSTILE_KINDS; kind++)
        fprintf(stderr, "digest %d %s %016" PRIx64 "\n", iteration, hostile_name(static_cast<enum hostile_kind>(kind)),
                net.buffers[kind].digest);
    for (int kind = 0; kind < HOSTILE_KINDS; kind++)
        printf(" %s %s", hostile_name(static_cast<enum hostile_kind>(kind)),
               net.is_consistent[kind] ? "consistent" : "corrupt");
}

int main(int argc, char **argv)
{
    const struct option options[] = {{"layers", &size.layers, 1, 100000},
                                     {"width", &size.width, 1, 4096},
                                     {"batch", &size.batch, 4, 65536},
                                     {"buffer", &size.buffer, 1, 1 << 28},
                                     {"digests", &size.has_digests, 0, 1}};
    struct run_settings settings = {10, 1, false, false};
    options_parse(argc, argv, options, sizeof options / sizeof options[0], &settings);
    options_check_elements("hostile", 1.0 * size.batch * size.width);
    make_network();
    const struct training training = {forward, backward, step, report};
    return training_run(&settings, &training);
}
