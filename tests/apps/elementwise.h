/* Kernels that treat each element by itself. Tensors are aligned as cudaMalloc aligns them; the result may be one of
 * the inputs. */
#pragma once
#include <stddef.h>

void relu_forward(float *y, const float *x, size_t count);
/* y = max(y, 0) */
void relu_in_place(float *y, size_t count);
/* dx = dy where y > 0, else 0 */
void relu_backward(float *dx, const float *dy, const float *y, size_t count);

/* GELU in its tanh form. Backward reads the input x. */
void gelu_forward(float *y, const float *x, size_t count);
void gelu_backward(float *dx, const float *dy, const float *x, size_t count);

void add(float *sum_out, const float *a, const float *b, size_t count);
/* total += term */
void accumulate(float *total, const float *term, size_t count);
