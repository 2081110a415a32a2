/* Token plus position embedding: y[b][t] = token_table[token[b][t]] + position_table[t]. */
#pragma once

struct embedding {
    int batch, time, vocabulary, width;
};

void embedding_forward(float *y, const int *token, const float *token_table, const float *position_table,
                       struct embedding shape);
/* Both tables' gradients, written whole; each element is summed over the batch in order. */
void embedding_backward(float *dtoken_table, float *dposition_table, const float *dy, const int *token,
                        struct embedding shape);
