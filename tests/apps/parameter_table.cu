#include "tests/apps/parameter_table.h"
#include "tests/apps/device.h"
#include "tests/apps/matmul.cuh"
#include <algorithm>

#define BLOCK              128
#define TENSORS_PER_LAUNCH 64

/* Gradients of parameters first .. first + tensors - 1, by value. */
struct gradient_list {
    const float *gradient[TENSORS_PER_LAUNCH];
    int count[TENSORS_PER_LAUNCH];
    int first, tensors;
};

static __global__ void table_linear_kernel(struct matmul product, float *const *rows, int weight)
{
    product.b = rows[weight];
    product.bias = rows[weight + 1];
    matmul_tile(product);
}

static __global__ void table_backward_kernel(struct matmul product, float *const *rows, int weight)
{
    product.b = rows[weight];
    matmul_tile(product);
}

/* blockIdx.x: tensor of the list. */
static __global__ void table_sgd_kernel(float *const *rows, int parameters, const struct gradient_list list, float rate,
                                        float momentum)
{
    int tensor = static_cast<int>(blockIdx.x);
    float *value = rows[list.first + tensor], *moment = rows[parameters + list.first + tensor];
    const float *gradient = list.gradient[tensor];
    for (int i = static_cast<int>(threadIdx.x); i < list.count[tensor]; i += BLOCK) {
        moment[i] = fmaf(momentum, moment[i], gradient[i]);
        value[i] = fmaf(-rate, moment[i], value[i]);
    }
}

struct parameter_table parameter_table_make(void)
{
    const std::vector<struct parameter *> &all = parameters();
    std::vector<float *> rows;
    for (const struct parameter *p : all)
        rows.push_back(p->value);
    for (const struct parameter *p : all)
        rows.push_back(p->moment[0]);
    struct parameter_table table = {device_make<float *>(rows.size()), static_cast<int>(all.size())};
    device_write(table.rows, rows.data(), rows.size());
    return table;
}

void parameter_table_release(struct parameter_table *table)
{
    device_free(table->rows);
}

static struct matmul product_of(float *c, const float *a, int m, int n, int k)
{
    struct matmul product = {};
    product.a = a;
    product.c = c;
    product.m = m;
    product.n = product.c_row = n;
    product.k = product.chunk = product.a_row = k;
    product.a_column = 1;
    product.batches = product.inner = 1;
    product.alpha = 1.0f;
    return product;
}

void table_linear_forward(float *y, const float *x, struct parameter_table table, int weight, int rows, int in, int out)
{
    struct matmul product = product_of(y, x, rows, out, in);
    product.b_row = 1;
    product.b_column = in;
    table_linear_kernel<<<matmul_grid(product), MATMUL_BLOCK>>>(product, table.rows, weight);
    device_launched("table_linear_forward");
}

void table_linear_backward_input(float *dx, const float *dy, struct parameter_table table, int weight, int rows, int in,
                                 int out)
{
    struct matmul product = product_of(dx, dy, rows, in, out);
    product.b_row = in;
    product.b_column = 1;
    table_backward_kernel<<<matmul_grid(product), MATMUL_BLOCK>>>(product, table.rows, weight);
    device_launched("table_linear_backward_input");
}

void table_sgd_step(struct parameter_table table, float rate, float momentum)
{
    const std::vector<struct parameter *> &all = parameters();
    for (int first = 0; first < table.count; first += TENSORS_PER_LAUNCH) {
        struct gradient_list list = {};
        list.first = first;
        list.tensors = std::min(table.count - first, TENSORS_PER_LAUNCH);
        for (int i = 0; i < list.tensors; i++) {
            list.gradient[i] = all[first + i]->gradient;
            list.count[i] = static_cast<int>(all[first + i]->count);
        }
        table_sgd_kernel<<<static_cast<unsigned>(list.tensors), BLOCK>>>(table.rows, table.count, list, rate, momentum);
        device_launched("table_sgd_step");
    }
    parameters_drop_gradients();
}
