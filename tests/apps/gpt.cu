/* Trains a small GPT on a synthetic language: token and position embedding, N transformer blocks, final norm,
 * linear head, cross entropy on the next token, Adam.
 *
 * What forward keeps until its backward has run, as PyTorch in eager mode does:
 *     per block       the block's input, its norm's result, mean and 1/std; queries, keys and values; the softmax's
 *                     result, the dropout mask (a byte per element) and the dropped matrix; the attended values;
 *                     the branch's dropout mask; the sum after attention, its norm's result, mean and 1/std; the
 *                     wide linear map's result and GELU of it; the second branch's dropout mask
 *     once            tokens, targets, the last block's result and its norm, log-probabilities
 * Scores, branches before and after dropout, logits and every gradient of an activation are temporaries. */
#include "tests/apps/device.h"
#include "tests/apps/embedding.h"
#include "tests/apps/gpt_block.h"
#include "tests/apps/loss.h"
#include "tests/apps/optimiser.h"
#include "tests/apps/random.h"
#include "tests/apps/training.h"
#include <math.h>

static struct gpt_size size = {10, 16, 2, 32, 32, 32};

static struct {
    struct parameter *token_table, *position_table;
    std::vector<struct gpt_block> blocks;
    struct norm_layer norm;
    struct linear_layer head;
    struct generator generator;
    /* kept */
    int *tokens, *targets;
    float *result, *normal, *log_probability;
} net;

static int row_count(void)
{
    return size.batch * size.time;
}

static struct embedding embedding_shape(void)
{
    return {size.batch, size.time, size.vocabulary, size.width};
}

static void make_network(void)
{
    net.token_table = parameter_make(static_cast<size_t>(size.vocabulary) * size.width, 0.0f, 0.5f, 2);
    net.position_table = parameter_make(static_cast<size_t>(size.time) * size.width, 0.0f, 0.1f, 2);
    for (int i = 0; i < size.layers; i++)
        net.blocks.push_back(gpt_block_make(&size));
    net.norm = norm_layer_make(size.width);
    net.head = linear_layer_make(size.width, size.vocabulary, 1.0f / sqrtf(static_cast<float>(size.width)));
    net.generator.seed = 0x5eed5eed12345678u;
}

/* The next token is an affine function of this one, nine times out of ten; else any. */
static void load_batch(int iteration)
{
    std::vector<int> tokens(row_count()), targets(row_count());
    for (int b = 0; b < size.batch; b++) {
        uint64_t stream = 4000000u + static_cast<uint64_t>(iteration) * 10000u + b;
        int token = random_below(stream, 0, size.vocabulary);
        for (int t = 0; t < size.time; t++) {
            int at = b * size.time + t;
            tokens[at] = token;
            bool is_regular = random_below(stream, 2 * t + 1, 10) > 0;
            token = is_regular ? (5 * token + 3) % size.vocabulary : random_below(stream, 2 * t + 2, size.vocabulary);
            targets[at] = token;
        }
    }
    net.tokens = device_make<int>(tokens.size());
    device_write(net.tokens, tokens.data(), tokens.size());
    net.targets = device_make<int>(targets.size());
    device_write(net.targets, targets.data(), targets.size());
}

static float *forward(int iteration)
{
    load_batch(iteration);
    net.generator.offset = static_cast<uint64_t>(iteration) << 32;
    float *x = device_make<float>(static_cast<size_t>(row_count()) * size.width);
    embedding_forward(x, net.tokens, net.token_table->value, net.position_table->value, embedding_shape());
    for (struct gpt_block &block : net.blocks)
        x = gpt_block_forward(&block, &size, x, &net.generator);
    net.result = x;
    net.normal = norm_layer_forward(&net.norm, x, row_count(), size.width);
    float *logits = linear_layer_forward(&net.head, net.normal, row_count(), size.width, size.vocabulary);
    net.log_probability = device_make<float>(static_cast<size_t>(row_count()) * size.vocabulary);
    log_softmax_forward(net.log_probability, logits, row_count(), size.vocabulary);
    device_free(logits);
    float *loss = device_make<float>(1);
    negative_log_likelihood(loss, net.log_probability, net.targets, row_count(), size.vocabulary);
    return loss;
}

/* The gradient of the last block's result, a fresh tensor. */
static float *head_backward(void)
{
    float *dlogits = device_make<float>(static_cast<size_t>(row_count()) * size.vocabulary);
    cross_entropy_backward(dlogits, net.log_probability, net.targets, row_count(), size.vocabulary);
    device_free(net.log_probability);
    device_free(net.targets);
    float *dnormal = linear_layer_backward(&net.head, dlogits, net.normal, row_count(), size.width, size.vocabulary);
    device_free(dlogits);
    device_free(net.normal);
    float *dresult = norm_layer_backward(&net.norm, dnormal, net.result, row_count(), size.width);
    device_free(dnormal);
    device_free(net.result);
    return dresult;
}

static void backward(int)
{
    float *dx = head_backward();
    for (size_t i = net.blocks.size(); i-- > 0;)
        dx = gpt_block_backward(&net.blocks[i], &size, dx);
    float *dtoken_table = device_make<float>(net.token_table->count);
    float *dposition_table = device_make<float>(net.position_table->count);
    embedding_backward(dtoken_table, dposition_table, dx, net.tokens, embedding_shape());
    device_free(dx);
    device_free(net.tokens);
    parameter_add_gradient(net.token_table, dtoken_table);
    parameter_add_gradient(net.position_table, dposition_table);
}

static void step(int iteration)
{
    adam_step(0.003f, iteration);
}

int main(int argc, char **argv)
{
    const struct option options[] = {{"layers", &size.layers, 1, 100000}, {"dim", &size.width, 1, 4096},
                                     {"heads", &size.heads, 1, 4096},     {"seq", &size.time, 1, 4096},
                                     {"batch", &size.batch, 1, 4096},     {"vocab", &size.vocabulary, 2, 65536}};
    struct run_settings settings = {10, 1, false, false};
    options_parse(argc, argv, options, sizeof options / sizeof options[0], &settings);
    if (size.width % size.heads != 0)
        options_refuse("gpt", "not a multiple of --heads", "--dim");
    double rows = 1.0 * size.batch * size.time;
    options_check_elements("gpt", rows * size.width * 4);
    options_check_elements("gpt", rows * size.heads * size.time);
    options_check_elements("gpt", rows * size.vocabulary);
    make_network();
    const struct training training = {forward, backward, step, nullptr};
    return training_run(&settings, &training);
}
