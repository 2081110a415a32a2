#include "tests/apps/attention.h"
#include "tests/apps/device.h"
#include "tests/apps/matmul.h"
#include <math.h>

#define BLOCK 64

/* One operand of a batched product: where it starts, and its strides. */
struct operand {
    const float *data;
    int row, column, outer, inner;
};

/* third: 0 queries, 1 keys, 2 values; rows are times, columns places in a head. */
static struct operand part_of(const float *qkv, int third, struct attention s)
{
    int width = s.heads * s.head_width;
    return {qkv + third * width, 3 * width, 1, 3 * width * s.time, s.head_width};
}

static struct operand attended_of(const float *attended, struct attention s)
{
    int width = s.heads * s.head_width;
    return {attended, width, 1, width * s.time, s.head_width};
}

static struct operand matrix_of(const float *matrix, struct attention s)
{
    return {matrix, s.time, 1, s.heads * s.time * s.time, s.time * s.time};
}

static struct operand transposed(struct operand x)
{
    return {x.data, x.column, x.row, x.outer, x.inner};
}

static void product(struct operand c, struct operand a, struct operand b, int m, int n, int k, float alpha,
                    struct attention s)
{
    struct matmul p = {};
    p.a = a.data;
    p.b = b.data;
    p.c = const_cast<float *>(c.data);
    p.m = m;
    p.n = n;
    p.k = k;
    p.a_row = a.row;
    p.a_column = a.column;
    p.b_row = b.row;
    p.b_column = b.column;
    p.c_row = c.row;
    p.batches = s.batch * s.heads;
    p.inner = s.heads;
    p.a_outer = a.outer;
    p.a_inner = a.inner;
    p.b_outer = b.outer;
    p.b_inner = b.inner;
    p.c_outer = c.outer;
    p.c_inner = c.inner;
    p.alpha = alpha;
    matmul_run(p);
}

static float scale_of(struct attention s)
{
    return 1.0f / sqrtf(static_cast<float>(s.head_width));
}

/* One thread per row of one matrix. */
static __global__ void softmax_forward_kernel(float *probability, const float *scores, int rows, int time)
{
    int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= rows)
        return;
    int last = row % time;
    scores += static_cast<size_t>(row) * time;
    probability += static_cast<size_t>(row) * time;
    float greatest = scores[0], sum = 0.0f;
    for (int i = 1; i <= last; i++)
        greatest = fmaxf(greatest, scores[i]);
    for (int i = 0; i <= last; i++) {
        float power = expf(scores[i] - greatest);
        probability[i] = power;
        sum += power;
    }
    for (int i = 0; i <= last; i++)
        probability[i] /= sum;
    for (int i = last + 1; i < time; i++)
        probability[i] = 0.0f;
}

static __global__ void softmax_backward_kernel(float *dscores, const float *dprobability, const float *probability,
                                               int rows, int time)
{
    int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= rows)
        return;
    size_t first = static_cast<size_t>(row) * time;
    float product = 0.0f;
    for (int i = 0; i < time; i++)
        product = fmaf(probability[first + i], dprobability[first + i], product);
    for (int i = 0; i < time; i++)
        dscores[first + i] = probability[first + i] * (dprobability[first + i] - product);
}

size_t attention_matrix_count(struct attention s)
{
    return static_cast<size_t>(s.batch) * s.heads * s.time * s.time;
}

void attention_scores(float *scores, const float *qkv, struct attention s)
{
    product(matrix_of(scores, s), part_of(qkv, 0, s), transposed(part_of(qkv, 1, s)), s.time, s.time, s.head_width,
            scale_of(s), s);
}

void causal_softmax_forward(float *probability, const float *scores, struct attention s)
{
    int rows = s.batch * s.heads * s.time;
    softmax_forward_kernel<<<blocks_for(static_cast<size_t>(rows), BLOCK), BLOCK>>>(probability, scores, rows, s.time);
    device_launched("causal_softmax_forward");
}

void causal_softmax_backward(float *dscores, const float *dprobability, const float *probability, struct attention s)
{
    int rows = s.batch * s.heads * s.time;
    softmax_backward_kernel<<<blocks_for(static_cast<size_t>(rows), BLOCK), BLOCK>>>(dscores, dprobability, probability,
                                                                                     rows, s.time);
    device_launched("causal_softmax_backward");
}

void attention_apply(float *attended, const float *matrix, const float *qkv, struct attention s)
{
    product(attended_of(attended, s), matrix_of(matrix, s), part_of(qkv, 2, s), s.time, s.head_width, s.time, 1.0f, s);
}

void attention_apply_backward_matrix(float *dmatrix, const float *dattended, const float *qkv, struct attention s)
{
    product(matrix_of(dmatrix, s), attended_of(dattended, s), transposed(part_of(qkv, 2, s)), s.time, s.time,
            s.head_width, 1.0f, s);
}

void attention_apply_backward_value(float *dqkv, const float *dattended, const float *matrix, struct attention s)
{
    product(part_of(dqkv, 2, s), transposed(matrix_of(matrix, s)), attended_of(dattended, s), s.time, s.head_width,
            s.time, 1.0f, s);
}

void attention_scores_backward_query(float *dqkv, const float *dscores, const float *qkv, struct attention s)
{
    product(part_of(dqkv, 0, s), matrix_of(dscores, s), part_of(qkv, 1, s), s.time, s.head_width, s.time, scale_of(s),
            s);
}

void attention_scores_backward_key(float *dqkv, const float *dscores, const float *qkv, struct attention s)
{
    product(part_of(dqkv, 1, s), transposed(matrix_of(dscores, s)), part_of(qkv, 0, s), s.time, s.head_width, s.time,
            scale_of(s), s);
}
