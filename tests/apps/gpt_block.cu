#include "tests/apps/gpt_block.h"
#include "tests/apps/device.h"
#include "tests/apps/elementwise.h"
#include "tests/apps/matmul.h"
#include "tests/apps/norm.h"
#include <math.h>

#define KEEP 0.9f

struct norm_layer norm_layer_make(int width)
{
    struct norm_layer norm = {};
    norm.gamma = parameter_make(width, 1.0f, 0.0f, 2);
    norm.beta = parameter_make(width, 0.0f, 0.0f, 2);
    return norm;
}

struct linear_layer linear_layer_make(int in, int out, float spread)
{
    struct parameter *weight = parameter_make(static_cast<size_t>(in) * out, 0.0f, spread, 2);
    return {weight, parameter_make(out, 0.0f, 0.0f, 2)};
}

float *norm_layer_forward(struct norm_layer *norm, const float *x, int rows, int width)
{
    float *y = device_make<float>(static_cast<size_t>(rows) * width);
    norm->mean = device_make<float>(rows);
    norm->inverse_std = device_make<float>(rows);
    layer_norm_forward(y, norm->mean, norm->inverse_std, x, norm->gamma->value, norm->beta->value, rows, width);
    return y;
}

float *norm_layer_backward(struct norm_layer *norm, const float *dy, const float *x, int rows, int width)
{
    float *dx = device_make<float>(static_cast<size_t>(rows) * width);
    float *dgamma = device_make<float>(width), *dbeta = device_make<float>(width);
    layer_norm_backward(dx, dy, x, norm->gamma->value, norm->mean, norm->inverse_std, rows, width);
    layer_norm_backward_affine(dgamma, dbeta, dy, x, norm->mean, norm->inverse_std, rows, width);
    device_free(norm->mean);
    device_free(norm->inverse_std);
    parameter_add_gradient(norm->gamma, dgamma);
    parameter_add_gradient(norm->beta, dbeta);
    return dx;
}

float *linear_layer_forward(const struct linear_layer *layer, const float *x, int rows, int in, int out)
{
    float *y = device_make<float>(static_cast<size_t>(rows) * out);
    linear_forward(y, x, layer->weight->value, layer->bias->value, rows, in, out);
    return y;
}

float *linear_layer_backward(const struct linear_layer *layer, const float *dy, const float *x, int rows, int in,
                             int out)
{
    float *dx = device_make<float>(static_cast<size_t>(rows) * in);
    linear_backward_input(dx, dy, layer->weight->value, rows, in, out);
    parameter_add_gradient(layer->weight, linear_backward_weight(dy, x, rows, in, out));
    parameter_add_gradient(layer->bias, linear_backward_bias(dy, rows, out));
    return dx;
}

static int rows_of(const struct gpt_size *size)
{
    return size->batch * size->time;
}

static size_t stream_count(const struct gpt_size *size)
{
    return static_cast<size_t>(rows_of(size)) * size->width;
}

static struct attention attention_of(const struct gpt_size *size)
{
    return {size->batch, size->time, size->heads, size->width / size->heads};
}

struct gpt_block gpt_block_make(const struct gpt_size *size)
{
    struct gpt_block block = {};
    float spread = 1.0f / sqrtf(static_cast<float>(size->width));
    float damped = spread / sqrtf(2.0f * static_cast<float>(size->layers));
    block.norm1 = norm_layer_make(size->width);
    block.to_qkv = linear_layer_make(size->width, 3 * size->width, spread);
    block.from_heads = linear_layer_make(size->width, size->width, damped);
    block.norm2 = norm_layer_make(size->width);
    block.widen = linear_layer_make(size->width, 4 * size->width, spread);
    block.narrow = linear_layer_make(4 * size->width, size->width, damped);
    return block;
}

/* x + dropout(branch); uses up the branch, keeps the mask. */
static float *add_branch(const float *x, float *branch, uint8_t **mask, size_t count, struct generator *generator)
{
    float *dropped = device_make<float>(count);
    *mask = device_make<uint8_t>(count);
    dropout_forward(dropped, *mask, branch, count, KEEP, generator);
    device_free(branch);
    float *sum = device_make<float>(count);
    add(sum, x, dropped, count);
    device_free(dropped);
    return sum;
}

static void attend(struct gpt_block *block, const struct gpt_size *size, struct generator *generator)
{
    struct attention shape = attention_of(size);
    size_t count = attention_matrix_count(shape);
    float *scores = device_make<float>(count);
    attention_scores(scores, block->qkv, shape);
    block->probability = device_make<float>(count);
    causal_softmax_forward(block->probability, scores, shape);
    device_free(scores);
    block->dropped = device_make<float>(count);
    block->matrix_mask = device_make<uint8_t>(count);
    dropout_forward(block->dropped, block->matrix_mask, block->probability, count, KEEP, generator);
    block->attended = device_make<float>(stream_count(size));
    attention_apply(block->attended, block->dropped, block->qkv, shape);
}

float *gpt_block_forward(struct gpt_block *block, const struct gpt_size *size, float *x, struct generator *generator)
{
    int rows = rows_of(size), width = size->width;
    block->input = x;
    block->normal1 = norm_layer_forward(&block->norm1, x, rows, width);
    block->qkv = linear_layer_forward(&block->to_qkv, block->normal1, rows, width, 3 * width);
    attend(block, size, generator);
    float *branch = linear_layer_forward(&block->from_heads, block->attended, rows, width, width);
    block->middle = add_branch(x, branch, &block->attention_mask, stream_count(size), generator);
    block->normal2 = norm_layer_forward(&block->norm2, block->middle, rows, width);
    block->wide = linear_layer_forward(&block->widen, block->normal2, rows, width, 4 * width);
    block->active = device_make<float>(stream_count(size) * 4);
    gelu_forward(block->active, block->wide, stream_count(size) * 4);
    branch = linear_layer_forward(&block->narrow, block->active, rows, 4 * width, width);
    return add_branch(block->middle, branch, &block->mlp_mask, stream_count(size), generator);
}

/* The gradient of the branch before its dropout; frees the mask. */
static float *branch_gradient(const float *dy, uint8_t *&mask, size_t count)
{
    float *dbranch = device_make<float>(count);
    dropout_backward(dbranch, dy, mask, count, KEEP);
    device_free(mask);
    return dbranch;
}

/* Uses up the gradient of the normalised input; adds what comes through the norm to dy, in place. */
static void join_norm(struct norm_layer *norm, float *dnormal, float *&x, float *dy, const struct gpt_size *size)
{
    float *dx = norm_layer_backward(norm, dnormal, x, rows_of(size), size->width);
    device_free(dnormal);
    device_free(x);
    accumulate(dy, dx, stream_count(size));
    device_free(dx);
}

static void mlp_backward(struct gpt_block *block, const struct gpt_size *size, float *dy)
{
    int rows = rows_of(size), width = size->width;
    float *dbranch = branch_gradient(dy, block->mlp_mask, stream_count(size));
    float *dactive = linear_layer_backward(&block->narrow, dbranch, block->active, rows, 4 * width, width);
    device_free(dbranch);
    device_free(block->active);
    float *dwide = device_make<float>(stream_count(size) * 4);
    gelu_backward(dwide, dactive, block->wide, stream_count(size) * 4);
    device_free(dactive);
    device_free(block->wide);
    float *dnormal = linear_layer_backward(&block->widen, dwide, block->normal2, rows, width, 4 * width);
    device_free(dwide);
    device_free(block->normal2);
    join_norm(&block->norm2, dnormal, block->middle, dy, size);
}

/* From the gradient of the attended values to that of queries, keys and values. */
static float *attend_backward(struct gpt_block *block, const struct gpt_size *size, float *dattended)
{
    struct attention shape = attention_of(size);
    size_t count = attention_matrix_count(shape);
    float *dqkv = device_make<float>(stream_count(size) * 3);
    float *ddropped = device_make<float>(count);
    attention_apply_backward_matrix(ddropped, dattended, block->qkv, shape);
    attention_apply_backward_value(dqkv, dattended, block->dropped, shape);
    device_free(dattended);
    device_free(block->dropped);
    float *dprobability = device_make<float>(count);
    dropout_backward(dprobability, ddropped, block->matrix_mask, count, KEEP);
    device_free(ddropped);
    device_free(block->matrix_mask);
    float *dscores = device_make<float>(count);
    causal_softmax_backward(dscores, dprobability, block->probability, shape);
    device_free(dprobability);
    device_free(block->probability);
    attention_scores_backward_query(dqkv, dscores, block->qkv, shape);
    attention_scores_backward_key(dqkv, dscores, block->qkv, shape);
    device_free(dscores);
    device_free(block->qkv);
    return dqkv;
}

float *gpt_block_backward(struct gpt_block *block, const struct gpt_size *size, float *dy)
{
    int rows = rows_of(size), width = size->width;
    mlp_backward(block, size, dy);
    float *dbranch = branch_gradient(dy, block->attention_mask, stream_count(size));
    float *dattended = linear_layer_backward(&block->from_heads, dbranch, block->attended, rows, width, width);
    device_free(dbranch);
    device_free(block->attended);
    float *dqkv = attend_backward(block, size, dattended);
    float *dnormal = linear_layer_backward(&block->to_qkv, dqkv, block->normal1, rows, width, 3 * width);
    device_free(dqkv);
    device_free(block->normal1);
    join_norm(&block->norm1, dnormal, block->input, dy, size);
    return dy;
}
