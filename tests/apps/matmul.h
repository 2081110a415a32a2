/* Batched, strided matrix product: C = alpha * A B (+ bias per column), and the linear layer made of it.
 *
 * The arguments travel by value as one struct, pointers inside it, as in large kernel libraries. Each
 * element of C is summed over k ascending within a chunk; chunks go to separate planes of C. */
#pragma once
#include <stddef.h>

struct matmul {
    const float *a, *b;
    const float *bias; /* per column of C, or NULL */
    float *c;
    int m, n, k;
    int a_row, a_column; /* strides in elements */
    int b_row, b_column;
    int c_row;          /* columns of C are adjacent */
    int batches, inner; /* batch z is (z / inner, z % inner) */
    int a_outer, a_inner, b_outer, b_inner, c_outer, c_inner;
    int chunk; /* k per chunk; chunk j writes at c + j * m * n. 0: all of k */
    float alpha;
};

void matmul_run(struct matmul product);

/* y[rows][out] = x[rows][in] w[out][in]^T + bias[out] */
void linear_forward(float *y, const float *x, const float *w, const float *bias, int rows, int in, int out);
/* dx[rows][in] = dy[rows][out] w */
void linear_backward_input(float *dx, const float *dy, const float *w, int rows, int in, int out);
/* Fresh tensors, the caller's: dw[out][in] = dy^T x, and the column sums of dy. */
float *linear_backward_weight(const float *dy, const float *x, int rows, int in, int out);
float *linear_backward_bias(const float *dy, int rows, int out);
