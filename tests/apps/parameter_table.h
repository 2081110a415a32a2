/* Parameters that kernels reach through a table of pointers in device memory.
 *
 * The table is built on the host and copied once: row p is the parameter's value, row count + p its momentum.
 * No launch names a weight by its address. */
#pragma once
#include "tests/apps/parameter.h"
#include <stddef.h>

struct parameter_table {
    float **rows; /* on the device */
    int count;
};

/* Over all parameters made so far, in order of making; each has one moment. */
struct parameter_table parameter_table_make(void);
void parameter_table_release(struct parameter_table *table);

/* y = x w^T + bias with w = row `weight`, bias = row `weight` + 1. */
void table_linear_forward(float *y, const float *x, struct parameter_table table, int weight, int rows, int in,
                          int out);
void table_linear_backward_input(float *dx, const float *dy, struct parameter_table table, int weight, int rows, int in,
                                 int out);
/* SGD with momentum over all parameters at once, many tensors per launch; frees the gradients. */
void table_sgd_step(struct parameter_table table, float rate, float momentum);
