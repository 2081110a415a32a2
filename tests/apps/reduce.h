/* Sums in a fixed order, whatever order blocks run in. */
#pragma once
#include <stddef.h>

/* out[i] = sum over c of partial[c * count + i], c ascending. */
void sum_chunks(float *out, const float *partial, int chunks, size_t count);
/* out[c] = sum over rows of x[r * columns + c], in two steps with a workspace of its own. */
void sum_columns(float *out, const float *x, int rows, int columns);
/* *out = scale * sum of x[0 .. count), by one block with warp shuffles. */
void sum_all(float *out, const float *x, int count, float scale);
