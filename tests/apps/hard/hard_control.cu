/* Habits of control: what changes from iteration to iteration, and kernels with a state of their own. See hard.cuh. */
#include "tests/apps/hard/hard.cuh"
#include <cooperative_groups.h>
#include <stdexcept>

constexpr int LAYERS = 40, ITERATIONS = 12;

/* The optimiser steps after every fourth micro-batch only. */
static int accumulation()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < 26; i++) {
        upload(net, i);
        run_forward(net);
        float loss = read_loss(net);
        run_backward(net);
        if (i % 4 == 3)
            run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* An evaluation pass after every third iteration, another batch size, nothing kept. */
static int evaluation()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS + 3; i++) {
        plain_iteration(net, i);
        if (i % 3 != 2)
            continue;
        net.n = N / 2;
        upload(net, 500 + i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(net.n);
            layer_forward(net, l);
            drop(net.y[l]);
        }
        printf("eval %a\n", static_cast<double>(read_loss(net)));
        drop(net.y[LAYERS]);
        net.n = N;
    }
    return finish(net);
}

/* From iteration 7 on the first half is frozen: no gradients, outputs not kept. */
static int frozen()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS + 4; i++) {
        int first = i < 7 ? 0 : LAYERS / 2;
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l);
            if (l < first)
                drop(net.y[l]);
        }
        float loss = read_loss(net), *dy = start_backward(net);
        for (int l = LAYERS; l-- > first;) {
            float *dx = make<float>(N);
            layer_backward(net, l, dx, dy);
            drop(dy);
            drop(net.y[l + 1]);
            dy = dx;
        }
        drop(dy);
        drop(net.y[first]);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Iterations 5 and 9 are given up somewhere in the middle, with whatever they hold freed. */
static void throwing_iteration(chain &net, int i)
{
    upload(net, i);
    for (int l = 0; l < LAYERS; l++) {
        net.y[l + 1] = make<float>(N);
        layer_forward(net, l);
        if (i == 5 && l == 33)
            throw std::runtime_error("in forward");
    }
    float loss = read_loss(net), *dy = start_backward(net);
    for (int l = LAYERS; l-- > 0;) {
        float *dx = make<float>(N);
        layer_backward(net, l, dx, dy);
        drop(dy);
        drop(net.y[l + 1]);
        dy = dx;
        if (i == 9 && l == 20) {
            drop(dy);
            throw std::runtime_error("in backward");
        }
    }
    drop(dy);
    drop(net.y[0]);
    run_step(net);
    printf("iter %d loss %a\n", i, static_cast<double>(loss));
}

static int exceptions()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS + 4; i++) {
        try {
            throwing_iteration(net, i);
        } catch (const std::runtime_error &error) {
            float some[4] = {};
            CHECK(cudaMemcpy(some, net.y[13] + 100, sizeof some, cudaMemcpyDeviceToHost));
            printf("iter %d %s %a\n", i, error.what(), static_cast<double>(some[2]));
            CHECK(cudaMemset(net.dw, 0, sizeof(float) * LAYERS * W));
            for (float *&y : net.y)
                drop(y);
        }
    }
    return finish(net);
}

/* Rate and step change in every launch. */
static int schedules()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        run_forward(net);
        float loss = read_loss(net);
        run_backward(net);
        run_step(net, 0.5f / static_cast<float>(i + 1));
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

__constant__ float constant_scale;
__device__ float initialised_scale = 1.0f;
__device__ float plain_scale;
__device__ unsigned long long calls;

static __global__ void forward_constant(float *y, const float *x, const float *w, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        y[i] = soft(w[i % W] * x[i] * 2.0f * constant_scale + w[(i + 7) % W]);
}

static __global__ void forward_initialised(float *y, const float *x, const float *w, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        y[i] = soft(w[i % W] * x[i] * 2.0f * initialised_scale + w[(i + 7) % W]);
}

static __global__ void forward_plain(float *y, const float *x, const float *w, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        y[i] = soft(w[i % W] * x[i] * 2.0f * plain_scale + w[(i + 7) % W]);
    if (i == 0)
        calls++;
}

typedef void forward_kernel(float *, const float *, const float *, size_t);

/* The symbol changes between the layers, but only from iteration `first` on. */
template <typename SYMBOL> static int symbols(forward_kernel *kernel, const SYMBOL &symbol, int first)
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            float scale = i < first ? 1.0f : 1.0f + 0.01f * static_cast<float>((i + l) % 3);
            CHECK(cudaMemcpyToSymbol(symbol, &scale, sizeof scale));
            net.y[l + 1] = make<float>(N);
            kernel<<<blocks(N), 256>>>(net.y[l + 1], net.y[l], net.w + l * W, N);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    unsigned long long count = 0;
    CHECK(cudaMemcpyFromSymbol(&count, calls, sizeof count));
    printf("calls %llu\n", count);
    return finish(net);
}

static int constants()
{
    return symbols(forward_constant, constant_scale, 0);
}

static int constants_late()
{
    return symbols(forward_constant, constant_scale, 8);
}

static int initialised_late()
{
    return symbols(forward_initialised, initialised_scale, 8);
}

static int counted()
{
    return symbols(forward_plain, plain_scale, 0);
}

/* A generator whose state lies in device memory: read and advanced by every call. */
static __global__ void noisy(float *y, const float *x, const float *w, uint32_t *generator, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    uint32_t h = (static_cast<uint32_t>(i) + 1) * 2654435761u + generator[i % 4096 + 1];
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    if (i < n)
        y[i] = h % 5 == 0 ? 0.0f : soft(w[i % W] * x[i] * 2.5f + w[(i + 7) % W]);
}

static __global__ void advance(uint32_t *generator)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    generator[i + 1] = generator[i + 1] * 1664525u + 1013904223u;
}

static __global__ void noisy_advancing(float *y, const float *x, const float *w, uint32_t *generator, size_t n)
{
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        uint32_t h = generator[threadIdx.x + 1] = generator[threadIdx.x + 1] * 1664525u + 1013904223u;
        y[i] = h >> 29 == 0 ? 0.0f : soft(w[i % W] * x[i] * 2.5f + w[(i + 7) % W]);
    }
}

static int generator(bool is_one_kernel)
{
    chain net = make_chain(LAYERS);
    uint32_t *state = make<uint32_t>(4097);
    CHECK(cudaMemset(state, 3, 4097 * sizeof *state));
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            if (is_one_kernel) {
                noisy_advancing<<<1, 256>>>(net.y[l + 1], net.y[l], net.w + l * W, state, N);
            } else {
                noisy<<<blocks(N), 256>>>(net.y[l + 1], net.y[l], net.w + l * W, state, N);
                advance<<<16, 256>>>(state);
            }
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    print_hash("generator", state, 4097 * sizeof *state);
    return finish(net);
}

static int generator_apart()
{
    return generator(false);
}

static int generator_inside()
{
    return generator(true);
}

/* Writes only when a flag in memory is set, first in iteration 8; and then what is counted stays. */
static __global__ void forward_flag(float *y, const float *x, const float *w, const int *flag, float *extra, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        y[i] = soft(w[i % W] * x[i] * 2.0f + w[(i + 7) % W]);
    if (i < W && *flag)
        extra[i] += y[i];
}

static __global__ void in_place_if(float *y, const int *flag, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i<n && * flag> 1)
        y[i] *= 0.75f;
}

static int conditional_writes()
{
    chain net = make_chain(LAYERS);
    float *extra = make<float>(W);
    int *flag = make<int>(1);
    CHECK(cudaMemset(extra, 0, W * sizeof(float)));
    for (int i = 0; i < ITERATIONS + 3; i++) {
        int is_set = i < 8 ? 0 : i - 7;
        CHECK(cudaMemcpy(flag, &is_set, sizeof is_set, cudaMemcpyHostToDevice));
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            forward_flag<<<blocks(N), 256>>>(net.y[l + 1], net.y[l], net.w + l * W, flag, extra, N);
            in_place_if<<<blocks(N), 256>>>(net.y[l + 1], flag, N);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    print_hash("extra", extra, W * sizeof(float));
    return finish(net);
}

/* Sums by atomics over integers, whose order does not show, read later; and a running mean updated in forward. */
static __global__ void forward_counting(float *y, const float *x, const float *w, unsigned *histogram, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) {
        y[i] = soft(w[i % W] * x[i] * 2.0f + w[(i + 7) % W]);
        atomicAdd(&histogram[static_cast<int>((y[i] + 1.0f) * 31.0f) & 63], 1u);
    }
}

static __global__ void running_mean(float *mean, const unsigned *histogram)
{
    mean[threadIdx.x] = 0.9f * mean[threadIdx.x] + 0.1f * static_cast<float>(histogram[threadIdx.x]);
}

static int statistics()
{
    chain net = make_chain(LAYERS);
    unsigned *total = make<unsigned>(64);
    float *mean = make<float>(64 * LAYERS);
    CHECK(cudaMemset(total, 0, 64 * sizeof *total));
    CHECK(cudaMemset(mean, 0, 64 * LAYERS * sizeof *mean));
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            forward_counting<<<blocks(N), 256>>>(net.y[l + 1], net.y[l], net.w + l * W, total, N);
            running_mean<<<1, 64>>>(mean + 64 * l, total);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    print_hash("total", total, 64 * sizeof *total);
    print_hash("mean", mean, 64 * LAYERS * sizeof *mean);
    return finish(net);
}

static __global__ void forward_cooperative(float *y, const float *x, const float *w, size_t n)
{
    size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n; i += step)
        y[i] = w[i % W] * x[i] * 2.0f + w[(i + 7) % W];
    cooperative_groups::this_grid().sync();
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n; i += step)
        y[i] = soft(y[i]);
}

static int cooperative()
{
    chain net = make_chain(LAYERS / 2);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < net.layers; l++) {
            net.y[l + 1] = make<float>(N);
            const float *x = net.y[l], *w = net.w + l * W;
            size_t n = N;
            void *arguments[] = {&net.y[l + 1], &x, &w, &n};
            CHECK(cudaLaunchCooperativeKernel(forward_cooperative, dim3(4), dim3(64), arguments));
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Outputs that nothing reads again but that are held to the end of the iteration; when it is given up, they are read.
 */
static int held_and_read(bool is_generated)
{
    chain net = make_chain(LAYERS);
    uint32_t *state = make<uint32_t>(4097);
    CHECK(cudaMemset(state, 3, 4097 * sizeof *state));
    for (int i = 0; i < ITERATIONS + 4; i++) {
        std::vector<float *> aside;
        float *loss = make<float>(1), value = 0.0f, sum = 0.0f, some[64];
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l);
            if (l % 4 == 1) {
                aside.push_back(make<float>(N));
                if (is_generated)
                    noisy_advancing<<<1, 256>>>(aside.back(), net.y[l + 1], net.w + l * W, state, N);
                else
                    forward<<<blocks(N), 256>>>(aside.back(), net.y[l + 1], net.w, N);
                loss_of<<<1, 256>>>(loss, aside.back(), N);
                CHECK(cudaMemcpyAsync(&value, loss, sizeof value, cudaMemcpyDeviceToHost, 0));
                CHECK(cudaStreamSynchronize(0));
                sum += value;
            }
        }
        bool is_given_up = i == 9 || i == 13;
        if (is_given_up) {
            for (float *one : aside) {
                CHECK(cudaMemcpy(some, one + 1000, sizeof some, cudaMemcpyDeviceToHost));
                for (float x : some)
                    sum += x;
            }
        }
        run_backward(net);
        run_step(net);
        for (float *one : aside)
            drop(one);
        drop(loss);
        printf("iter %d sum %a\n", i, static_cast<double>(sum));
    }
    return finish(net);
}

static int held_plain()
{
    return held_and_read(false);
}

static int held_generated()
{
    return held_and_read(true);
}

static __global__ void stepped(float *fresh, const float *w, const float *dw, int n, float rate)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        fresh[i] = w[i] - rate * dw[i];
}

/* Parameters are never changed in place: each step makes new ones and frees the old. */
static int functional()
{
    chain net = make_chain(LAYERS);
    float *large = make<float>(4 * N);
    fill<<<blocks(4 * N), 256>>>(large, 4 * N, 5);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        run_forward(net);
        float loss = read_loss(net);
        run_backward(net);
        float *fresh = make<float>(LAYERS * W), *larger = make<float>(4 * N);
        stepped<<<blocks(LAYERS * W), 256>>>(fresh, net.w, net.dw, LAYERS * W, 0.5f);
        stepped<<<blocks(4 * N), 256>>>(larger, large, large, 4 * N, 0.001f * static_cast<float>(i));
        drop(net.w);
        drop(large);
        net.w = fresh;
        large = larger;
        CHECK(cudaMemset(net.dw, 0, sizeof(float) * LAYERS * W));
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    print_hash("large", large, 4 * N * sizeof(float));
    return finish(net);
}

/* Every iteration leaves out other layers. */
static int random_depth()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS + 8; i++) {
        uint32_t h = static_cast<uint32_t>(i / 2) * 2654435761u;
        net.layers = LAYERS - static_cast<int>(h >> 28);
        plain_iteration(net, i);
    }
    net.layers = LAYERS;
    return finish(net);
}

int main(int argc, char **argv)
{
    const hard_case cases[] = {{"accumulation", accumulation},
                               {"evaluation", evaluation},
                               {"frozen", frozen},
                               {"exceptions", exceptions},
                               {"schedules", schedules},
                               {"constants", constants},
                               {"constants-late", constants_late},
                               {"initialised-late", initialised_late},
                               {"counted", counted},
                               {"generator-apart", generator_apart},
                               {"generator-inside", generator_inside},
                               {"conditional-writes", conditional_writes},
                               {"statistics", statistics},
                               {"held-plain", held_plain},
                               {"held-generated", held_generated},
                               {"functional", functional},
                               {"random-depth", random_depth},
                               {"cooperative", cooperative}};
    return run_case(cases, argc, argv);
}
