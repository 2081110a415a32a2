#include "tests/apps/lstm_cell.h"
#include "tests/apps/device.h"

#define BLOCK 128

static __device__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static __global__ void lstm_cell_forward_kernel(float *gates, float *cell, float *hidden, const float *from_input,
                                                const float *from_hidden, const float *previous_cell, int count,
                                                int hidden_size)
{
    int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index >= count)
        return;
    int at = index / hidden_size * 4 * hidden_size + index % hidden_size;
    float sum[4];
#pragma unroll
    for (int gate = 0; gate < 4; gate++)
        sum[gate] = from_input[at + gate * hidden_size] + from_hidden[at + gate * hidden_size];
    float i = sigmoid(sum[0]), f = sigmoid(sum[1]), g = tanhf(sum[2]), o = sigmoid(sum[3]);
    float c = f * previous_cell[index] + i * g;
    gates[at] = i;
    gates[at + hidden_size] = f;
    gates[at + 2 * hidden_size] = g;
    gates[at + 3 * hidden_size] = o;
    cell[index] = c;
    hidden[index] = o * tanhf(c);
}

static __global__ void lstm_cell_backward_kernel(float *dgates, float *dprevious_cell, const float *dhidden,
                                                 const float *dcell, const float *gates, const float *previous_cell,
                                                 const float *cell, int count, int hidden_size)
{
    int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index >= count)
        return;
    int at = index / hidden_size * 4 * hidden_size + index % hidden_size;
    float i = gates[at], f = gates[at + hidden_size], g = gates[at + 2 * hidden_size], o = gates[at + 3 * hidden_size];
    float t = tanhf(cell[index]), dh = dhidden[index];
    float dc = dh * o * (1.0f - t * t) + (dcell ? dcell[index] : 0.0f);
    dgates[at] = dc * g * i * (1.0f - i);
    dgates[at + hidden_size] = dc * previous_cell[index] * f * (1.0f - f);
    dgates[at + 2 * hidden_size] = dc * i * (1.0f - g * g);
    dgates[at + 3 * hidden_size] = dh * t * o * (1.0f - o);
    dprevious_cell[index] = dc * f;
}

void lstm_cell_forward(float *gates, float *cell, float *hidden, const float *from_input, const float *from_hidden,
                       const float *previous_cell, int batch, int hidden_size)
{
    int count = batch * hidden_size;
    lstm_cell_forward_kernel<<<blocks_for(static_cast<size_t>(count), BLOCK), BLOCK>>>(
        gates, cell, hidden, from_input, from_hidden, previous_cell, count, hidden_size);
    device_launched("lstm_cell_forward");
}

void lstm_cell_backward(float *dgates, float *dprevious_cell, const float *dhidden, const float *dcell,
                        const float *gates, const float *previous_cell, const float *cell, int batch, int hidden_size)
{
    int count = batch * hidden_size;
    lstm_cell_backward_kernel<<<blocks_for(static_cast<size_t>(count), BLOCK), BLOCK>>>(
        dgates, dprevious_cell, dhidden, dcell, gates, previous_cell, cell, count, hidden_size);
    device_launched("lstm_cell_backward");
}
