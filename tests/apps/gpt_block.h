/* One transformer block: x + attention(norm(x)), then + mlp(norm(.)), dropout on the attention matrix and on
 * both branches. */
#pragma once
#include "tests/apps/attention.h"
#include "tests/apps/dropout.h"
#include "tests/apps/parameter.h"

struct gpt_size {
    int layers, width, heads, time, batch, vocabulary;
};

struct norm_layer {
    struct parameter *gamma, *beta;
    float *mean, *inverse_std; /* kept */
};

struct linear_layer {
    struct parameter *weight, *bias;
};

struct gpt_block {
    struct norm_layer norm1, norm2;
    struct linear_layer to_qkv, from_heads, widen, narrow;
    /* Kept from forward to backward; `input` is the result of the block before, which owns it no more. */
    float *input, *normal1, *qkv, *probability, *dropped, *attended, *middle, *normal2, *wide, *active;
    uint8_t *matrix_mask, *attention_mask, *mlp_mask;
};

struct norm_layer norm_layer_make(int width);
struct linear_layer linear_layer_make(int in, int out, float spread);
/* A fresh tensor; mean and 1/std are kept in the layer. */
float *norm_layer_forward(struct norm_layer *norm, const float *x, int rows, int width);
/* A fresh tensor; frees what the layer kept. x stays the caller's. */
float *norm_layer_backward(struct norm_layer *norm, const float *dy, const float *x, int rows, int width);
float *linear_layer_forward(const struct linear_layer *layer, const float *x, int rows, int in, int out);
float *linear_layer_backward(const struct linear_layer *layer, const float *dy, const float *x, int rows, int in,
                             int out);

struct gpt_block gpt_block_make(const struct gpt_size *size);
/* Takes over x; the result is a fresh tensor that the next user takes over. */
float *gpt_block_forward(struct gpt_block *block, const struct gpt_size *size, float *x, struct generator *generator);
/* Uses up dy and all that forward kept, x included; the result is
 * dy, updated in place. */
float *gpt_block_backward(struct gpt_block *block, const struct gpt_size *size, float *dy);
