/* Habits of calls: every form of copy and set, errors that programs provoke and survive, processes. See hard.cuh. */
#include "tests/apps/hard/hard.cuh"
#include <sys/wait.h>
#include <unistd.h>

constexpr int LAYERS = 40, ITERATIONS = 10;

/* Activations go through copies and sets by rows, inside one allocation and between two. */
static int rows()
{
    chain net = make_chain(LAYERS);
    const size_t pitch = 1024, height = N * sizeof(float) / pitch;
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            if (l % 6 != 1) {
                net.y[l + 1] = make<float>(N);
                layer_forward(net, l);
                continue;
            }
            float *between = make<float>(N);
            CHECK(cudaMemset2D(between, pitch, 0, 128, height));
            CHECK(
                cudaMemcpy2D(between + 32, pitch, net.y[l] + 32, pitch, pitch - 128, height, cudaMemcpyDeviceToDevice));
            CHECK(
                cudaMemcpy2DAsync(between, pitch, net.y[l] + 64, pitch, 128, height / 2, cudaMemcpyDeviceToDevice, 0));
            CHECK(cudaMemcpyAsync(between + N / 2, between, 4096, cudaMemcpyDeviceToDevice, 0));
            net.y[l + 1] = make<float>(N);
            forward<<<blocks(N), 256>>>(net.y[l + 1], between, net.w + l * W, N);
            drop(between);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Copies from the stack, from pageable memory that changes right after, into pageable memory, by 0 and by 1 byte. */
static int copies()
{
    chain net = make_chain(LAYERS);
    std::vector<float> host(N), back(N);
    for (int i = 0; i < ITERATIONS; i++) {
        host = batch_of(N, i);
        net.y[0] = make<float>(N);
        CHECK(cudaMemcpyAsync(net.y[0], host.data(), N * sizeof(float), cudaMemcpyHostToDevice, 0));
        memset(host.data(), 0x7f, N * sizeof(float));
        run_forward(net);
        unsigned char byte = static_cast<unsigned char>(i);
        CHECK(cudaMemcpy(reinterpret_cast<unsigned char *>(net.y[9]) + 4097, &byte, 1, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(net.y[9], &byte, 0, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(net.y[9], 0, 0));
        CHECK(cudaMemset(reinterpret_cast<unsigned char *>(net.y[10]) + 3, 0, 9));
        CHECK(cudaMemcpyAsync(back.data(), net.y[9], N * sizeof(float), cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
        CHECK(cudaMemcpy(net.y[12], net.y[9], 8192, cudaMemcpyDefault));
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a back %a\n", i, static_cast<double>(loss), static_cast<double>(back[1024]));
    }
    return finish(net);
}

static void say_error(const char *what, cudaError_t error)
{
    cudaError_t last = cudaGetLastError();
    printf("%s: %s, then %s\n", what, cudaGetErrorName(error), cudaGetErrorName(last));
}

/* Wrong calls get the errors that they get without us. */
static int errors()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        plain_iteration(net, i);
        void *nothing = reinterpret_cast<void *>(16);
        say_error("allocate 0", cudaMalloc(&nothing, 0));
        printf("%s\n", nothing == nullptr ? "null" : "not null");
        say_error("free NULL", cudaFree(nullptr));
        float *small = make<float>(100), *large = make<float>(N);
        say_error("free interior of small", cudaFree(small + 4));
        say_error("free interior of large", cudaFree(large + 4));
        say_error("free the end of large", cudaFree(large + N));
        say_error("copy past the end", cudaMemcpy(large + N - 4, large, 64, cudaMemcpyDeviceToDevice));
        say_error("set past the end", cudaMemset(large + N - 4, 0, 64));
        CHECK(cudaFree(small));
        CHECK(cudaFree(large));
        say_error("free small twice", cudaFree(small));
        say_error("free large twice", cudaFree(large));
        say_error("free host memory", cudaFree(&net));
        void *much = nullptr;
        say_error("allocate too much", cudaMalloc(&much, static_cast<size_t>(1) << 50));
        forward<<<1, 5000>>>(large, large, large, 1);
        say_error("launch too large", cudaPeekAtLastError());
        cudaPointerAttributes attributes;
        float *asked = make<float>(N);
        CHECK(cudaPointerGetAttributes(&attributes, asked + 5));
        printf("type %d at %td\n", attributes.type, static_cast<float *>(attributes.devicePointer) - asked);
        drop(asked);
    }
    return finish(net);
}

/* Takes as much as there is, in pieces; gives back half; goes on. */
static int retries()
{
    chain net = make_chain(16);
    for (int i = 0; i < ITERATIONS; i++)
        plain_iteration(net, i);
    std::vector<void *> pieces;
    void *piece = nullptr;
    size_t size = static_cast<size_t>(1) << 29;
    while (size >= 1 << 20) {
        if (cudaMalloc(&piece, size) == cudaSuccess)
            pieces.push_back(piece);
        else
            size /= 2;
    }
    cudaGetLastError();
    for (void *one : pieces)
        CHECK(cudaFree(one));
    for (int i = 0; i < ITERATIONS; i++)
        plain_iteration(net, i);
    return finish(net);
}

/* A child of a fork, before the device was used, trains as well; another one after that only exits. */
static int forks()
{
    pid_t child = fork();
    if (child == 0) {
        freopen("/dev/null", "w", stdout);
        chain net = make_chain(LAYERS / 2);
        for (int i = 0; i < 4; i++)
            plain_iteration(net, i);
        fflush(stdout);
        _exit(finish(net));
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("first child %d\n", status);
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        plain_iteration(net, i);
        fflush(stdout);
        child = fork();
        if (child == 0)
            i % 2 ? exit(7) : _exit(9);
        waitpid(child, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
    }
    return finish(net);
}

/* 300 parameters, and a name of 1,500 letters. */
#define TEN(p)                                                                                                         \
    float p##0, float p##1, float p##2, float p##3, float p##4, float p##5, float p##6, float p##7, float p##8,        \
        float p##9
#define HUNDRED(p)                                                                                                     \
    TEN(p##0), TEN(p##1), TEN(p##2), TEN(p##3), TEN(p##4), TEN(p##5), TEN(p##6), TEN(p##7), TEN(p##8), TEN(p##9)
static __global__ void many_parameters(float *y, const float *x, const float *w, size_t n, HUNDRED(a), HUNDRED(b),
                                       HUNDRED(c))
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        y[i] = soft(w[i % W] * x[i] * a99 + w[(i + 7) % W] + b50 + c00);
}

template <typename... TYPES> static __global__ void long_name(float *y, const float *x, const float *w, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        y[i] = soft(w[i % W] * x[i] * static_cast<float>(sizeof...(TYPES)) + w[(i + 7) % W]);
}

struct a_type_with_a_name_that_is_as_long_as_those_that_template_libraries_come_up_with_all_the_time_when_nobody_looks {
};
typedef a_type_with_a_name_that_is_as_long_as_those_that_template_libraries_come_up_with_all_the_time_when_nobody_looks
    T;
template <int I> struct numbered {
    T t;
};

static int wide_kernels()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            if (l % 2) {
                float *y = net.y[l + 1], *x = net.y[l], *w = net.w + l * W, rate = 2.0f, zero = 0.0f;
                size_t n = N;
                void *arguments[304] = {&y, &x, &w, &n};
                for (int a = 4; a < 304; a++)
                    arguments[a] = a == 103 ? &rate : &zero;
                CHECK(cudaLaunchKernel(many_parameters, dim3(blocks(N)), dim3(256), arguments, 0, 0));
            } else {
                long_name<numbered<1>, numbered<2>, numbered<3>, numbered<4>, numbered<5>, numbered<6>, numbered<7>,
                          numbered<8>, numbered<9>, T, T, T>
                    <<<blocks(N), 256>>>(net.y[l + 1], net.y[l], net.w + l * W, N);
            }
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Streams and events come and go with every iteration. */
static int short_lived_streams()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        cudaStream_t stream;
        cudaEvent_t event;
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&event));
        upload(net, i);
        CHECK(cudaDeviceSynchronize());
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l, stream);
        }
        CHECK(cudaEventRecord(event, stream));
        CHECK(cudaStreamWaitEvent(0, event, 0));
        CHECK(cudaStreamDestroy(stream));
        CHECK(cudaEventDestroy(event));
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Pitched rows and managed memory beside plain allocations; an array takes some of the memory as well. */
static int other_memory()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        float *managed;
        void *pitched;
        size_t pitch;
        CHECK(cudaMallocManaged(&managed, N * sizeof(float)));
        CHECK(cudaMallocPitch(&pitched, &pitch, 1000, 64));
        CHECK(cudaMemset2D(pitched, pitch, 0, 1000, 64));
        memcpy(managed, batch_of(N, i).data(), N * sizeof(float));
        net.y[0] = managed;
        run_forward(net);
        forward<<<1, 256>>>(static_cast<float *>(pitched), net.y[3], net.w, 250);
        float loss = read_loss(net), *dy = start_backward(net);
        gradient<<<1, W>>>(net.dw, static_cast<float *>(pitched), net.y[2], net.y[1], 250);
        for (int l = LAYERS; l-- > 0;) {
            float *dx = make<float>(N);
            layer_backward(net, l, dx, dy);
            drop(dy);
            drop(net.y[l + 1]);
            dy = dx;
        }
        drop(dy);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaFree(managed));
        CHECK(cudaFree(pitched));
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

int main(int argc, char **argv)
{
    const hard_case cases[] = {{"rows", rows},
                               {"copies", copies},
                               {"errors", errors},
                               {"retries", retries},
                               {"forks", forks},
                               {"wide-kernels", wide_kernels},
                               {"short-lived-streams", short_lived_streams},
                               {"other-memory", other_memory}};
    return run_case(cases, argc, argv);
}
