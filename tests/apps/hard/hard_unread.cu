/* Kernels whose code cannot be read (they call through pointers), and streams that change what kernels have read.
 * See hard.cuh. */
#include "tests/apps/hard/hard.cuh"

constexpr int LAYERS = 40, ITERATIONS = 14;

typedef float activation(float);

__device__ float gentle(float x)
{
    return soft(x);
}

__device__ float steep(float x)
{
    return soft(2.0f * x);
}

__device__ activation *const activations[2] = {gentle, steep};

static __global__ void forward_unread(float *y, const float *x, const float *w, int which, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        y[i] = activations[which](w[i % W] * x[i] * 2.0f + w[(i + 7) % W]);
}

static int forward_only()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            forward_unread<<<blocks(N), 256>>>(net.y[l + 1], net.y[l], net.w + l * W, (l + i) % 2, N);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Which of the two is changed depends on a scalar; none is in the first iterations. */
static __global__ void adjust_unread(float *a, float *b, int which, int function, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    float *chosen = which == 1 ? a : which == 2 ? b : nullptr;
    if (i < n && chosen)
        chosen[i] = activations[function](chosen[i] * 1.5f);
}

static int adjusted(int place, int a, int b)
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        int which = i < 8 ? 0 : 1 + i % 2;
        upload(net, i);
        run_forward(net);
        float loss = read_loss(net);
        run_backward(net, [&](int l) {
            if (l == place)
                adjust_unread<<<blocks(N), 256>>>(net.y[a], net.y[b], which, i % 2, N);
        });
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

static int adjusted_early()
{
    return adjusted(38, 5, 10);
}

static int adjusted_late()
{
    return adjusted(20, 3, 9);
}

/* In forward: what was dropped comes back for it and is dropped again. */
static void adjusting_forward(chain &net, int i)
{
    int which = i < 8 ? 0 : 1 + i % 2;
    upload(net, i);
    for (int l = 0; l < LAYERS; l++) {
        net.y[l + 1] = make<float>(N);
        layer_forward(net, l);
        if (l % 3 == 2 && l > 20)
            adjust_unread<<<blocks(N), 256>>>(net.y[l - 17], net.y[l - 13], which, i % 2, N);
    }
}

static int adjusted_in_forward()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        adjusting_forward(net, i);
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* As adjusted-in-forward; what comes of it is told by a host function, and nobody waits before the end. */
static void CUDART_CB tell(void *data)
{
    printf("told %a\n", static_cast<double>(*static_cast<float *>(data)));
    fflush(stdout);
}

static int told_by_host_function()
{
    chain net = make_chain(LAYERS);
    float *told, *sums = make<float>(LAYERS);
    CHECK(cudaMallocHost(&told, sizeof *told * LAYERS * ITERATIONS));
    for (int i = 0; i < ITERATIONS; i++) {
        adjusting_forward(net, i);
        float *dy = start_backward(net);
        for (int l = LAYERS; l-- > 0;) {
            float *dx = make<float>(N), *value = told + i * LAYERS + l;
            layer_backward(net, l, dx, dy);
            loss_of<<<1, 256>>>(sums + l, net.y[l], N);
            CHECK(cudaMemcpyAsync(value, sums + l, sizeof *value, cudaMemcpyDeviceToHost, 0));
            CHECK(cudaLaunchHostFunc(0, tell, value));
            drop(dy);
            drop(net.y[l + 1]);
            dy = dx;
        }
        drop(dy);
        drop(net.y[0]);
        run_step(net);
    }
    return finish(net);
}

/* A copy stream puts the next batch where this one was, as soon as the first layer has read it. */
static int overwritten_input()
{
    chain net = make_chain(LAYERS);
    cudaStream_t copy;
    cudaEvent_t consumed, uploaded;
    float *pinned[2], *input = make<float>(N);
    CHECK(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&consumed, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&uploaded, cudaEventDisableTiming));
    for (float *&memory : pinned)
        CHECK(cudaMallocHost(&memory, N * sizeof(float)));
    memcpy(pinned[0], batch_of(N, 0).data(), N * sizeof(float));
    CHECK(cudaMemcpy(input, pinned[0], N * sizeof(float), cudaMemcpyHostToDevice));
    net.y[0] = input;
    for (int i = 0; i < ITERATIONS; i++) {
        CHECK(cudaStreamWaitEvent(0, uploaded, 0));
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l);
            if (l == 0) {
                CHECK(cudaEventRecord(consumed, 0));
                CHECK(cudaStreamSynchronize(copy));
                memcpy(pinned[i % 2], batch_of(N, i + 1).data(), N * sizeof(float));
                CHECK(cudaStreamWaitEvent(copy, consumed, 0));
                CHECK(cudaMemcpyAsync(input, pinned[i % 2], N * sizeof(float), cudaMemcpyHostToDevice, copy));
                CHECK(cudaEventRecord(uploaded, copy));
            }
        }
        float loss = read_loss(net), *dy = start_backward(net);
        for (int l = LAYERS; l-- > 1;) { /* the first layer is frozen */
            float *dx = make<float>(N);
            layer_backward(net, l, dx, dy);
            drop(dy);
            drop(net.y[l + 1]);
            dy = dx;
        }
        gradient<<<1, W>>>(net.dw, dy, net.y[1], net.y[1], N);
        drop(dy);
        drop(net.y[1]);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

int main(int argc, char **argv)
{
    const hard_case cases[] = {{"forward-only", forward_only},
                               {"adjusted-early", adjusted_early},
                               {"adjusted-late", adjusted_late},
                               {"adjusted-in-forward", adjusted_in_forward},
                               {"told-by-host-function", told_by_host_function},
                               {"overwritten-input", overwritten_input}};
    return run_case(cases, argc, argv);
}
