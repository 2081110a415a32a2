/* A small chain of layers that the hard programs train, each with one habit of real programs on top.
 *
 * Layer i: y = soft(w * x + b), element by element; its gradient needs x and y, so forward keeps all outputs. Every
 * program is `PROGRAM CASE`; it prints one line per iteration and a hash of what it ends up with, all of it the same
 * in every run. Any error ends it with status 1, out of memory with 2. */
#pragma once
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

inline void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(error == cudaErrorMemoryAllocation ? 2 : 1);
}

#define CHECK(call)    check(call, #call)
#define LAUNCHED(name) check(cudaGetLastError(), name)

constexpr size_t N = 32768; /* elements of an activation: 128 KiB */
constexpr int W = 256;      /* elements of a parameter */

template <typename T> T *make(size_t count)
{
    void *memory = nullptr;
    CHECK(cudaMalloc(&memory, count * sizeof(T)));
    return static_cast<T *>(memory);
}

template <typename T> void drop(T *&memory)
{
    CHECK(cudaFree(memory));
    memory = nullptr;
}

inline unsigned blocks(size_t n)
{
    return static_cast<unsigned>((n + 255) / 256);
}

__device__ inline float soft(float x)
{
    return x / (1.0f + fabsf(x));
}

static __global__ void fill(float *x, size_t n, uint32_t seed)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) {
        uint32_t h = (static_cast<uint32_t>(i) + 1) * 2654435761u ^ seed * 2246822519u;
        h ^= h >> 15;
        h *= 2246822519u;
        h ^= h >> 13;
        x[i] = static_cast<float>(h >> 8) * (2.0f / 16777216.0f) - 1.0f;
    }
}

static __global__ void forward(float *y, const float *x, const float *w, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        y[i] = soft(w[i % W] * x[i] * 2.0f + w[(i + 7) % W]);
}

/* dx may be dy. */
static __global__ void backward(float *dx, const float *dy, const float *y, const float *w, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) {
        float s = 1.0f - fabsf(y[i]);
        dx[i] = dy[i] * s * s * w[i % W] * 2.0f;
    }
}

/* One thread per element of the parameter; adds to dw. */
static __global__ void gradient(float *dw, const float *dy, const float *y, const float *x, size_t n)
{
    int j = threadIdx.x;
    float sum = 0.0f;
    for (size_t i = j; i < n; i += W) {
        float s = 1.0f - fabsf(y[i]);
        sum += dy[i] * s * s * (x[i] + 0.5f);
    }
    dw[j] += sum / static_cast<float>(n);
}

static __global__ void descend(float *w, float *dw, int n, float rate)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        w[i] -= rate * dw[i];
        dw[i] = 0.0f;
    }
}

/* Mean square of y, by one block in a fixed order; dy = y / n. */
static __global__ void loss_of(float *loss, const float *y, size_t n)
{
    __shared__ float part[256];
    float sum = 0.0f;
    for (size_t i = threadIdx.x; i < n; i += 256)
        sum += y[i] * y[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *loss = part[0] / static_cast<float>(n);
}

static __global__ void loss_gradient(float *dy, const float *y, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        dy[i] = y[i] * 0.5f;
}

struct chain {
    int layers;
    size_t n;
    float *w, *dw;
    std::vector<float *> y; /* y[0] is the input */
};

inline chain make_chain(int layers, size_t n = N)
{
    chain net = {
        layers, n, make<float>(static_cast<size_t>(layers) * W), make<float>(static_cast<size_t>(layers) * W), {}};
    fill<<<blocks(layers * W), 256>>>(net.w, static_cast<size_t>(layers) * W, 77);
    LAUNCHED("fill");
    CHECK(cudaMemset(net.dw, 0, sizeof(float) * layers * W));
    net.y.assign(layers + 1, nullptr);
    return net;
}

inline std::vector<float> batch_of(size_t n, int iteration)
{
    std::vector<float> batch(n);
    uint32_t h = 12345u + static_cast<uint32_t>(iteration) * 7919u;
    for (float &value : batch) {
        h = h * 1664525u + 1013904223u;
        value = static_cast<float>(h >> 8) * (2.0f / 16777216.0f) - 1.0f;
    }
    return batch;
}

inline void upload(chain &net, int iteration)
{
    std::vector<float> batch = batch_of(net.n, iteration);
    net.y[0] = make<float>(net.n);
    CHECK(cudaMemcpy(net.y[0], batch.data(), net.n * sizeof(float), cudaMemcpyHostToDevice));
}

inline void layer_forward(chain &net, int i, cudaStream_t stream = 0)
{
    forward<<<blocks(net.n), 256, 0, stream>>>(net.y[i + 1], net.y[i], net.w + i * W, net.n);
    LAUNCHED("forward");
}

inline void layer_backward(chain &net, int i, float *dx, const float *dy, cudaStream_t stream = 0)
{
    gradient<<<1, W, 0, stream>>>(net.dw + i * W, dy, net.y[i + 1], net.y[i], net.n);
    LAUNCHED("gradient");
    backward<<<blocks(net.n), 256, 0, stream>>>(dx, dy, net.y[i + 1], net.w + i * W, net.n);
    LAUNCHED("backward");
}

inline void run_forward(chain &net)
{
    for (int i = 0; i < net.layers; i++) {
        net.y[i + 1] = make<float>(net.n);
        layer_forward(net, i);
    }
}

inline float read_loss(const chain &net)
{
    float *loss = make<float>(1), value;
    loss_of<<<1, 256>>>(loss, net.y[net.layers], net.n);
    LAUNCHED("loss_of");
    CHECK(cudaMemcpy(&value, loss, sizeof value, cudaMemcpyDeviceToHost));
    drop(loss);
    return value;
}

inline float *start_backward(const chain &net)
{
    float *dy = make<float>(net.n);
    loss_gradient<<<blocks(net.n), 256>>>(dy, net.y[net.layers], net.n);
    LAUNCHED("loss_gradient");
    return dy;
}

/* Frees every activation. between(i): what the program does once layer i's gradients are there. */
template <typename Between> void run_backward(chain &net, Between between)
{
    float *dy = start_backward(net);
    for (int i = net.layers; i-- > 0;) {
        float *dx = make<float>(net.n);
        layer_backward(net, i, dx, dy);
        between(i);
        drop(dy);
        drop(net.y[i + 1]);
        dy = dx;
    }
    drop(dy);
    drop(net.y[0]);
}

inline void run_backward(chain &net)
{
    run_backward(net, [](int) {});
}

inline void run_step(chain &net, float rate = 0.5f)
{
    descend<<<blocks(net.layers * W), 256>>>(net.w, net.dw, net.layers * W, rate);
    LAUNCHED("descend");
}

inline void plain_iteration(chain &net, int iteration)
{
    upload(net, iteration);
    run_forward(net);
    float loss = read_loss(net);
    run_backward(net);
    run_step(net);
    printf("iter %d loss %a\n", iteration, static_cast<double>(loss));
}

inline void print_hash(const char *what, const void *device, size_t bytes)
{
    std::vector<unsigned char> host(bytes);
    CHECK(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost));
    uint64_t hash = 14695981039346656037ull;
    for (unsigned char byte : host)
        hash = (hash ^ byte) * 1099511628211ull;
    printf("%s %016llx\n", what, static_cast<unsigned long long>(hash));
}

inline int finish(const chain &net)
{
    CHECK(cudaDeviceSynchronize());
    print_hash("weights", net.w, sizeof(float) * net.layers * W);
    return 0;
}

struct hard_case {
    const char *name;
    int (*run)();
};

template <size_t COUNT> int run_case(const hard_case (&cases)[COUNT], int argc, char **argv)
{
    for (const hard_case &one : cases)
        if (argc == 2 && strcmp(argv[1], one.name) == 0)
            return one.run();
    for (const hard_case &one : cases)
        puts(one.name);
    return argc == 2 && strcmp(argv[1], "list") == 0 ? 0 : 64;
}
