#include "tests/apps/loss.h"
#include "tests/apps/device.h"
#include "tests/apps/reduce.h"

#define BLOCK 64

static __device__ int item_index(void)
{
    return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

static __global__ void log_softmax_kernel(float *out, const float *logits, int rows, int classes)
{
    int row = item_index();
    if (row >= rows)
        return;
    logits += static_cast<size_t>(row) * classes;
    out += static_cast<size_t>(row) * classes;
    float greatest = logits[0], sum = 0.0f;
    for (int c = 1; c < classes; c++)
        greatest = fmaxf(greatest, logits[c]);
    for (int c = 0; c < classes; c++)
        sum += expf(logits[c] - greatest);
    float shift = greatest + logf(sum);
    for (int c = 0; c < classes; c++)
        out[c] = logits[c] - shift;
}

static __global__ void pick_kernel(float *out, const float *log_probability, const int *label, int rows, int classes)
{
    int row = item_index();
    if (row < rows)
        out[row] = -log_probability[static_cast<size_t>(row) * classes + label[row]];
}

static __global__ void cross_entropy_backward_kernel(float *dlogits, const float *log_probability, const int *label,
                                                     int rows, int classes)
{
    int i = item_index();
    if (i >= rows * classes)
        return;
    float target = label[i / classes] == i % classes ? 1.0f : 0.0f;
    dlogits[i] = (expf(log_probability[i]) - target) / static_cast<float>(rows);
}

static __global__ void squares_kernel(float *out, const float *prediction, const float *target, int count)
{
    int i = item_index();
    if (i < count)
        out[i] = (prediction[i] - target[i]) * (prediction[i] - target[i]);
}

static __global__ void squares_backward_kernel(float *out, const float *prediction, const float *target, int count)
{
    int i = item_index();
    if (i < count)
        out[i] = 2.0f * (prediction[i] - target[i]) / static_cast<float>(count);
}

void log_softmax_forward(float *log_probability, const float *logits, int rows, int classes)
{
    log_softmax_kernel<<<blocks_for(static_cast<size_t>(rows), BLOCK), BLOCK>>>(log_probability, logits, rows, classes);
    device_launched("log_softmax_forward");
}

void negative_log_likelihood(float *loss, const float *log_probability, const int *label, int rows, int classes)
{
    float *picked = device_make<float>(static_cast<size_t>(rows));
    pick_kernel<<<blocks_for(static_cast<size_t>(rows), BLOCK), BLOCK>>>(picked, log_probability, label, rows, classes);
    device_launched("negative_log_likelihood");
    sum_all(loss, picked, rows, 1.0f / static_cast<float>(rows));
    device_free(picked);
}

void cross_entropy_backward(float *dlogits, const float *log_probability, const int *label, int rows, int classes)
{
    size_t count = static_cast<size_t>(rows) * classes;
    cross_entropy_backward_kernel<<<blocks_for(count, BLOCK), BLOCK>>>(dlogits, log_probability, label, rows, classes);
    device_launched("cross_entropy_backward");
}

void squared_error(float *loss, const float *prediction, const float *target, int count)
{
    float *squares = device_make<float>(static_cast<size_t>(count));
    squares_kernel<<<blocks_for(static_cast<size_t>(count), BLOCK), BLOCK>>>(squares, prediction, target, count);
    device_launched("squared_error");
    sum_all(loss, squares, count, 1.0f / static_cast<float>(count));
    device_free(squares);
}

void squared_error_backward(float *dprediction, const float *prediction, const float *target, int count)
{
    squares_backward_kernel<<<blocks_for(static_cast<size_t>(count), BLOCK), BLOCK>>>(dprediction, prediction, target,
                                                                                      count);
    device_launched("squared_error_backward");
}
