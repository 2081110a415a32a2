#include "tests/apps/embedding.h"
#include "tests/apps/device.h"

#define BLOCK 64

static __global__ void embedding_forward_kernel(float *y, const int *token, const float *token_table,
                                                const float *position_table, struct embedding s)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= s.batch * s.time * s.width)
        return;
    int column = i % s.width, place = i / s.width;
    y[i] = token_table[token[place] * s.width + column] + position_table[place % s.time * s.width + column];
}

static __global__ void token_backward_kernel(float *dtable, const float *dy, const int *token, struct embedding s)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= s.vocabulary * s.width)
        return;
    int column = i % s.width, wanted = i / s.width;
    float sum = 0.0f;
    for (int place = 0; place < s.batch * s.time; place++)
        if (token[place] == wanted)
            sum += dy[place * s.width + column];
    dtable[i] = sum;
}

static __global__ void position_backward_kernel(float *dtable, const float *dy, struct embedding s)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= s.time * s.width)
        return;
    float sum = 0.0f;
    for (int b = 0; b < s.batch; b++)
        sum += dy[b * s.time * s.width + i];
    dtable[i] = sum;
}

void embedding_forward(float *y, const int *token, const float *token_table, const float *position_table,
                       struct embedding s)
{
    size_t count = static_cast<size_t>(s.batch) * s.time * s.width;
    embedding_forward_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(y, token, token_table, position_table, s);
    device_launched("embedding_forward");
}

void embedding_backward(float *dtoken_table, float *dposition_table, const float *dy, const int *token,
                        struct embedding s)
{
    size_t tokens = static_cast<size_t>(s.vocabulary) * s.width, positions = static_cast<size_t>(s.time) * s.width;
    token_backward_kernel<<<blocks_for(tokens, BLOCK), BLOCK>>>(dtoken_table, dy, token, s);
    device_launched("embedding_backward_token");
    position_backward_kernel<<<blocks_for(positions, BLOCK), BLOCK>>>(dposition_table, dy, s);
    device_launched("embedding_backward_position");
}
