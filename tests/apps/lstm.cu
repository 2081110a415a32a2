/* Trains an LSTM to keep a leaky sum of what it sees, with full backpropagation through time; squared error at
 * the last step, SGD with momentum.
 *
 * What forward keeps until its backward has run, as PyTorch's fused cell does:
 *     per step        the activated gates, the new cell state, the new hidden state (the next step's linear map
 *                     reads it for its weight gradient)
 *     once            the input sequence (steps are views into it), zero initial states, targets, prediction
 * The two linear maps' sums are temporaries. In backward each step makes weight gradients of its own, which are
 * added to those of the steps after it and freed; gradients of states are temporaries. */
#include "tests/apps/device.h"
#include "tests/apps/loss.h"
#include "tests/apps/lstm_cell.h"
#include "tests/apps/matmul.h"
#include "tests/apps/optimiser.h"
#include "tests/apps/parameter.h"
#include "tests/apps/random.h"
#include "tests/apps/training.h"
#include <math.h>

static struct {
    int steps, hidden, batch, input;
} size = {48, 8, 2048, 1};

/* Kept per step. */
struct moment {
    float *gates, *cell, *hidden;
};

static struct {
    struct parameter *input_weight, *input_bias, *hidden_weight, *hidden_bias;
    struct parameter *output_weight, *output_bias;
    std::vector<struct moment> moments; /* [0]: the initial states, no gates */
    float *sequence, *target, *prediction;
} net;

static void make_network(void)
{
    size_t gates = static_cast<size_t>(size.hidden) * 4;
    float spread = 1.0f / sqrtf(static_cast<float>(size.hidden));
    net.input_weight = parameter_make(gates * size.input, 0.0f, spread, 1);
    net.input_bias = parameter_make(gates, 0.0f, spread, 1);
    net.hidden_weight = parameter_make(gates * size.hidden, 0.0f, spread, 1);
    net.hidden_bias = parameter_make(gates, 0.0f, spread, 1);
    net.output_weight = parameter_make(size.hidden, 0.0f, spread, 1);
    net.output_bias = parameter_make(1, 0.0f, 0.0f, 1);
    net.moments.resize(static_cast<size_t>(size.steps) + 1);
}

static size_t state_count(void)
{
    return static_cast<size_t>(size.batch) * size.hidden;
}

/* Noise; the target is a leaky sum of channel 0. Layout [step][batch][input]. */
static void load_batch(int iteration)
{
    size_t row = static_cast<size_t>(size.batch) * size.input;
    std::vector<float> sequence(row * size.steps), target(size.batch);
    uint64_t stream = 2000000u + static_cast<uint64_t>(iteration);
    for (size_t i = 0; i < sequence.size(); i++)
        sequence[i] = random_signed(stream, i);
    for (int t = 0; t < size.steps; t++)
        for (int b = 0; b < size.batch; b++)
            target[b] = 0.7f * target[b] + 0.5f * sequence[t * row + static_cast<size_t>(b) * size.input];
    net.sequence = device_make<float>(sequence.size());
    device_write(net.sequence, sequence.data(), sequence.size());
    net.target = device_make<float>(target.size());
    device_write(net.target, target.data(), target.size());
}

static const float *step_input(int t)
{
    return net.sequence + static_cast<size_t>(t) * size.batch * size.input;
}

static void step_forward(int t)
{
    const struct moment &before = net.moments[t];
    struct moment &after = net.moments[t + 1];
    int gates = size.hidden * 4;
    float *from_input = device_make<float>(state_count() * 4);
    linear_forward(from_input, step_input(t), net.input_weight->value, net.input_bias->value, size.batch, size.input,
                   gates);
    float *from_hidden = device_make<float>(state_count() * 4);
    linear_forward(from_hidden, before.hidden, net.hidden_weight->value, net.hidden_bias->value, size.batch,
                   size.hidden, gates);
    after.gates = device_make<float>(state_count() * 4);
    after.cell = device_make<float>(state_count());
    after.hidden = device_make<float>(state_count());
    lstm_cell_forward(after.gates, after.cell, after.hidden, from_input, from_hidden, before.cell, size.batch,
                      size.hidden);
    device_free(from_input);
    device_free(from_hidden);
}

static float *forward(int iteration)
{
    load_batch(iteration);
    struct moment &start = net.moments[0];
    start.cell = device_make<float>(state_count());
    start.hidden = device_make<float>(state_count());
    device_clear(start.cell, state_count());
    device_clear(start.hidden, state_count());
    for (int t = 0; t < size.steps; t++)
        step_forward(t);
    net.prediction = device_make<float>(size.batch);
    linear_forward(net.prediction, net.moments.back().hidden, net.output_weight->value, net.output_bias->value,
                   size.batch, size.hidden, 1);
    float *loss = device_make<float>(1);
    squared_error(loss, net.prediction, net.target, size.batch);
    return loss;
}

/* The gradient of the last hidden state, a fresh tensor. */
static float *head_backward(void)
{
    float *dprediction = device_make<float>(size.batch);
    squared_error_backward(dprediction, net.prediction, net.target, size.batch);
    device_free(net.prediction);
    device_free(net.target);
    float *dhidden = device_make<float>(state_count());
    linear_backward_input(dhidden, dprediction, net.output_weight->value, size.batch, size.hidden, 1);
    parameter_add_gradient(net.output_weight,
                           linear_backward_weight(dprediction, net.moments.back().hidden, size.batch, size.hidden, 1));
    parameter_add_gradient(net.output_bias, linear_backward_bias(dprediction, size.batch, 1));
    device_free(dprediction);
    return dhidden;
}

/* Uses up dhidden and dcell of step t's results; on return they are those of the states before it. */
static void step_backward(int t, float *&dhidden, float *&dcell)
{
    const struct moment &before = net.moments[t];
    struct moment &after = net.moments[t + 1];
    int gates = size.hidden * 4;
    float *dgates = device_make<float>(state_count() * 4), *dprevious = device_make<float>(state_count());
    lstm_cell_backward(dgates, dprevious, dhidden, dcell, after.gates, before.cell, after.cell, size.batch,
                       size.hidden);
    device_free(dhidden);
    device_free(dcell);
    device_free(after.gates);
    device_free(after.cell);
    device_free(after.hidden);
    dcell = dprevious;
    if (t > 0) {
        dhidden = device_make<float>(state_count());
        linear_backward_input(dhidden, dgates, net.hidden_weight->value, size.batch, size.hidden, gates);
    } else {
        device_free(dcell);
    }
    parameter_add_gradient(net.hidden_weight,
                           linear_backward_weight(dgates, before.hidden, size.batch, size.hidden, gates));
    parameter_add_gradient(net.hidden_bias, linear_backward_bias(dgates, size.batch, gates));
    parameter_add_gradient(net.input_weight,
                           linear_backward_weight(dgates, step_input(t), size.batch, size.input, gates));
    parameter_add_gradient(net.input_bias, linear_backward_bias(dgates, size.batch, gates));
    device_free(dgates);
}

static void backward(int)
{
    float *dhidden = head_backward(), *dcell = nullptr;
    for (int t = size.steps; t-- > 0;)
        step_backward(t, dhidden, dcell);
    device_free(net.moments[0].cell);
    device_free(net.moments[0].hidden);
    device_free(net.sequence);
}

static void step(int)
{
    sgd_step(0.2f, 0.9f);
}

int main(int argc, char **argv)
{
    const struct option options[] = {{"steps", &size.steps, 1, 100000},
                                     {"hidden", &size.hidden, 1, 4096},
                                     {"batch", &size.batch, 1, 65536},
                                     {"input", &size.input, 1, 4096}};
    struct run_settings settings = {10, 1, false, false};
    options_parse(argc, argv, options, sizeof options / sizeof options[0], &settings);
    options_check_elements("lstm", 4.0 * size.batch * size.hidden);
    options_check_elements("lstm", 1.0 * size.steps * size.batch * size.input);
    make_network();
    const struct training training = {forward, backward, step, nullptr};
    return training_run(&settings, &training);
}
