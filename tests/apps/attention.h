/* Causal attention with the attention matrix in memory. qkv: [batch][time][3][heads][width of a head], the
 * layout of one linear map's output; matrices: [batch][heads][time][time]; attended: [batch][time][heads][width]. */
#pragma once
#include <stddef.h>

struct attention {
    int batch, time, heads, head_width;
};

size_t attention_matrix_count(struct attention shape);

/* scores = q k^T / sqrt(head_width) */
void attention_scores(float *scores, const float *qkv, struct attention shape);
/* Row-wise over columns 0 .. row; zero beyond. */
void causal_softmax_forward(float *probability, const float *scores, struct attention shape);
void causal_softmax_backward(float *dscores, const float *dprobability, const float *probability,
                             struct attention shape);
/* attended = matrix v */
void attention_apply(float *attended, const float *matrix, const float *qkv, struct attention shape);
void attention_apply_backward_matrix(float *dmatrix, const float *dattended, const float *qkv, struct attention shape);
/* Each writes its third of dqkv. */
void attention_apply_backward_value(float *dqkv, const float *dattended, const float *matrix, struct attention shape);
void attention_scores_backward_query(float *dqkv, const float *dscores, const float *qkv, struct attention shape);
void attention_scores_backward_key(float *dqkv, const float *dscores, const float *qkv, struct attention shape);
