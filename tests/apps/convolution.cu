#include "tests/apps/convolution.h"
#include "tests/apps/device.h"
#include "tests/apps/reduce.h"

#define BLOCK         64
#define PIXELS        4 /* adjacent pixels per thread */
#define CHANNELS      4 /* output channels per thread */
#define ROWS_PER_BAND 16

/* Output channel o, input channel c, tap: for the data gradient the roles of the channels are swapped and
 * the taps mirrored. */
template <bool BACKWARD> static __device__ float tap_weight(const float *w, int o, int c, int tap, int outs, int ins)
{
    return BACKWARD ? w[(c * outs + o) * 9 + 8 - tap] : w[(o * ins + c) * 9 + tap];
}

template <bool BACKWARD>
static __device__ void add_row(float sum[CHANNELS][PIXELS], const float *row, const float *w, int x, int o, int c,
                               int ky, int outs, int ins, int size)
{
    float line[PIXELS + 2];
    if (x > 0 && x + PIXELS < size) {
#pragma unroll
        for (int i = 0; i < PIXELS + 2; i++)
            line[i] = row[x + i - 1];
    } else {
#pragma unroll
        for (int i = 0; i < PIXELS + 2; i++) {
            int column = x + i - 1;
            line[i] = column >= 0 && column < size ? row[column] : 0.0f;
        }
    }
#pragma unroll
    for (int j = 0; j < CHANNELS; j++)
#pragma unroll
        for (int kx = 0; kx < 3; kx++) {
            float weight = tap_weight<BACKWARD>(w, min(o + j, outs - 1), c, ky * 3 + kx, outs, ins);
#pragma unroll
            for (int i = 0; i < PIXELS; i++)
                sum[j][i] = fmaf(line[i + kx], weight, sum[j][i]);
        }
}

template <bool BACKWARD>
static __global__ void convolve_kernel(float *out, const float *__restrict__ in, const float *__restrict__ w, int batch,
                                       int ins, int outs, int size)
{
    int tiles_x = (size + PIXELS - 1) / PIXELS, tiles_o = (outs + CHANNELS - 1) / CHANNELS;
    int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    int x = index % tiles_x * PIXELS, y = index / tiles_x % size;
    int o = index / (tiles_x * size) % tiles_o * CHANNELS, b = index / (tiles_x * size * tiles_o);
    if (b >= batch)
        return;
    float sum[CHANNELS][PIXELS] = {};
    for (int c = 0; c < ins; c++) {
        const float *plane = in + static_cast<size_t>(b * ins + c) * size * size;
#pragma unroll
        for (int ky = 0; ky < 3; ky++)
            if (y + ky >= 1 && y + ky <= size)
                add_row<BACKWARD>(sum, plane + (y + ky - 1) * size, w, x, o, c, ky, outs, ins, size);
    }
    for (int j = 0; j < CHANNELS && o + j < outs; j++)
        for (int i = 0; i < PIXELS && x + i < size; i++)
            out[(static_cast<size_t>(b * outs + o + j) * size + y) * size + x + i] = sum[j][i];
}

/* One thread sums the nine taps of one (out, in) pair over one band of rows of one image. */
static __global__ void weight_gradient_kernel(float *partial, const float *__restrict__ dy, const float *__restrict__ x,
                                              int batch, int ins, int outs, int size)
{
    int bands = (size + ROWS_PER_BAND - 1) / ROWS_PER_BAND;
    int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    int c = index % ins, o = index / ins % outs, chunk = index / (ins * outs);
    int b = chunk / bands, first = chunk % bands * ROWS_PER_BAND;
    if (b >= batch)
        return;
    const float *gradient = dy + static_cast<size_t>(b * outs + o) * size * size;
    const float *plane = x + static_cast<size_t>(b * ins + c) * size * size;
    float sum[9] = {};
    for (int row = first; row < min(first + ROWS_PER_BAND, size); row++)
#pragma unroll
        for (int ky = 0; ky < 3; ky++) {
            if (row + ky < 1 || row + ky > size)
                continue;
            const float *line = plane + (row + ky - 1) * size;
            float left = 0.0f, middle = line[0];
            for (int column = 0; column < size; column++) {
                float right = column + 1 < size ? line[column + 1] : 0.0f;
                float d = gradient[row * size + column];
                sum[ky * 3] = fmaf(d, left, sum[ky * 3]);
                sum[ky * 3 + 1] = fmaf(d, middle, sum[ky * 3 + 1]);
                sum[ky * 3 + 2] = fmaf(d, right, sum[ky * 3 + 2]);
                left = middle;
                middle = right;
            }
        }
    for (int tap = 0; tap < 9; tap++)
        partial[static_cast<size_t>((chunk * outs + o) * ins + c) * 9 + tap] = sum[tap];
}

static size_t tile_count(int batch, int outs, int size)
{
    return static_cast<size_t>(batch) * ((outs + CHANNELS - 1) / CHANNELS) * size * ((size + PIXELS - 1) / PIXELS);
}

void convolution_forward(float *y, const float *x, const float *w, struct convolution shape)
{
    unsigned blocks = blocks_for(tile_count(shape.batch, shape.out, shape.size), BLOCK);
    convolve_kernel<false><<<blocks, BLOCK>>>(y, x, w, shape.batch, shape.in, shape.out, shape.size);
    device_launched("convolution_forward");
}

void convolution_backward_data(float *dx, const float *dy, const float *w, struct convolution shape)
{
    unsigned blocks = blocks_for(tile_count(shape.batch, shape.in, shape.size), BLOCK);
    convolve_kernel<true><<<blocks, BLOCK>>>(dx, dy, w, shape.batch, shape.out, shape.in, shape.size);
    device_launched("convolution_backward_data");
}

float *convolution_backward_weight(const float *dy, const float *x, struct convolution shape)
{
    int chunks = shape.batch * ((shape.size + ROWS_PER_BAND - 1) / ROWS_PER_BAND);
    size_t pairs = static_cast<size_t>(shape.in) * shape.out;
    float *partial = device_make<float>(pairs * 9 * chunks);
    weight_gradient_kernel<<<blocks_for(pairs * chunks, BLOCK), BLOCK>>>(partial, dy, x, shape.batch, shape.in,
                                                                         shape.out, shape.size);
    device_launched("convolution_backward_weight");
    float *dw = device_make<float>(pairs * 9);
    sum_chunks(dw, partial, chunks, pairs * 9);
    device_free(partial);
    return dw;
}
