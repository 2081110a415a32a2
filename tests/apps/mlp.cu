/* Trains a deep multi-layer perceptron on a synthetic classification task: linear layers with ReLU in place,
 * residual additions (in place as well) that keep the depth trainable, cross entropy, SGD with momentum.
 * Kernels find weights, biases and momenta through a table of pointers in device memory.
 *
 * What forward keeps until its backward has run, as PyTorch does with inplace=True:
 *     per layer       the linear map's output after ReLU, in the same tensor (ReLU's backward reads it, and it is
 *                     the input of the next linear map, unless a residual sum is)
 *     per two layers  the residual sum, the next linear map's input
 *     once            the inputs and labels, log-probabilities
 * Logits and every gradient of an activation are temporaries. */
#include "tests/apps/device.h"
#include "tests/apps/elementwise.h"
#include "tests/apps/loss.h"
#include "tests/apps/matmul.h"
#include "tests/apps/parameter_table.h"
#include "tests/apps/random.h"
#include "tests/apps/training.h"
#include <math.h>

#define CLASSES 8

static struct {
    int layers, width, batch, input;
} size = {96, 16, 1024, 4};

/* A layer's weight is parameter 2 * i, its bias the one after; the classifier is layer number `layers`. */
struct layer {
    float *activation; /* linear output, then ReLU in place */
    float *sum;        /* with the shortcut added; NULL where there is none */
};

static struct {
    std::vector<struct layer> layers;
    struct parameter_table table;
    float *inputs, *log_probability;
    int *labels;
} net;

static int width_before(int i)
{
    return i == 0 ? size.input : size.width;
}

static bool has_shortcut(int i)
{
    return i >= 2 && i % 2 == 0;
}

static const float *input_of(int i)
{
    if (i == 0)
        return net.inputs;
    const struct layer &before = net.layers[i - 1];
    return before.sum ? before.sum : before.activation;
}

static size_t activation_count(void)
{
    return static_cast<size_t>(size.batch) * size.width;
}

static void make_network(void)
{
    for (int i = 0; i <= size.layers; i++) {
        int in = width_before(i), out = i == size.layers ? CLASSES : size.width;
        float spread = sqrtf(6.0f / static_cast<float>(in));
        if (has_shortcut(i))
            spread *= 2.0f / static_cast<float>(size.layers);
        parameter_make(static_cast<size_t>(in) * out, 0.0f, i == size.layers ? 0.1f * spread : spread, 1);
        parameter_make(out, 0.0f, 0.0f, 1);
    }
    net.layers.resize(size.layers);
    net.table = parameter_table_make();
}

/* The class is the octant (signs of the first three inputs, folded). */
static void load_batch(int iteration)
{
    std::vector<float> inputs(static_cast<size_t>(size.batch) * size.input);
    std::vector<int> labels(size.batch);
    uint64_t stream = 3000000u + static_cast<uint64_t>(iteration);
    for (size_t i = 0; i < inputs.size(); i++)
        inputs[i] = random_signed(stream, i);
    for (int b = 0; b < size.batch; b++)
        for (int i = 0; i < size.input && i < 3; i++)
            labels[b] |= (inputs[static_cast<size_t>(b) * size.input + i] > 0.0f) << i;
    net.inputs = device_make<float>(inputs.size());
    device_write(net.inputs, inputs.data(), inputs.size());
    net.labels = device_make<int>(labels.size());
    device_write(net.labels, labels.data(), labels.size());
}

static void layer_forward(int i)
{
    struct layer &layer = net.layers[i];
    layer.activation = device_make<float>(activation_count());
    table_linear_forward(layer.activation, input_of(i), net.table, 2 * i, size.batch, width_before(i), size.width);
    relu_in_place(layer.activation, activation_count());
    layer.sum = nullptr;
    if (has_shortcut(i)) {
        layer.sum = device_make<float>(activation_count());
        add(layer.sum, layer.activation, input_of(i - 1), activation_count());
    }
}

static float *forward(int iteration)
{
    load_batch(iteration);
    for (int i = 0; i < size.layers; i++)
        layer_forward(i);
    size_t outputs = static_cast<size_t>(size.batch) * CLASSES;
    float *logits = device_make<float>(outputs);
    table_linear_forward(logits, input_of(size.layers), net.table, 2 * size.layers, size.batch,
                         width_before(size.layers), CLASSES);
    net.log_probability = device_make<float>(outputs);
    log_softmax_forward(net.log_probability, logits, size.batch, CLASSES);
    device_free(logits);
    float *loss = device_make<float>(1);
    negative_log_likelihood(loss, net.log_probability, net.labels, size.batch, CLASSES);
    return loss;
}

/* Through linear map i: parameter gradients, and the gradient of its input (NULL for the first). */
static float *linear_backward(int i, const float *dy, int out)
{
    int in = width_before(i);
    float *dx = nullptr;
    if (i > 0) {
        dx = device_make<float>(static_cast<size_t>(size.batch) * in);
        table_linear_backward_input(dx, dy, net.table, 2 * i, size.batch, in, out);
    }
    parameter_add_gradient(parameters()[2 * i], linear_backward_weight(dy, input_of(i), size.batch, in, out));
    parameter_add_gradient(parameters()[2 * i + 1], linear_backward_bias(dy, size.batch, out));
    return dx;
}

static float *head_backward(void)
{
    float *dlogits = device_make<float>(static_cast<size_t>(size.batch) * CLASSES);
    cross_entropy_backward(dlogits, net.log_probability, net.labels, size.batch, CLASSES);
    device_free(net.log_probability);
    device_free(net.labels);
    float *dinput = linear_backward(size.layers, dlogits, CLASSES);
    device_free(dlogits);
    return dinput;
}

/* Uses up the gradient of layer i's result; gives that of its input. A shortcut's gradient is parked in
 * `shortcut` until the layer before has made its own. */
static float *layer_backward(int i, float *doutput, float *&shortcut)
{
    struct layer &layer = net.layers[i];
    device_free(layer.sum);
    float *dlinear = device_make<float>(activation_count());
    relu_backward(dlinear, doutput, layer.activation, activation_count());
    device_free(layer.activation);
    if (has_shortcut(i))
        shortcut = doutput;
    else
        device_free(doutput);
    float *dinput = linear_backward(i, dlinear, size.width);
    device_free(dlinear);
    if (!has_shortcut(i) && shortcut) {
        accumulate(dinput, shortcut, activation_count());
        device_free(shortcut);
    }
    return dinput;
}

static void backward(int)
{
    float *dresult = head_backward(), *shortcut = nullptr;
    for (int i = size.layers; i-- > 0;)
        dresult = layer_backward(i, dresult, shortcut);
    device_free(net.inputs);
}

static void step(int)
{
    table_sgd_step(net.table, 0.01f, 0.9f);
}

int main(int argc, char **argv)
{
    const struct option options[] = {{"layers", &size.layers, 1, 100000},
                                     {"width", &size.width, 1, 4096},
                                     {"batch", &size.batch, 1, 65536},
                                     {"input", &size.input, 1, 4096}};
    struct run_settings settings = {10, 1, false, false};
    options_parse(argc, argv, options, sizeof options / sizeof options[0], &settings);
    options_check_elements("mlp", 1.0 * size.batch * size.width);
    make_network();
    const struct training training = {forward, backward, step, nullptr};
    int status = training_run(&settings, &training);
    parameter_table_release(&net.table);
    return status;
}
