/* Habits of memory: who holds what for how long, and in which pieces. See hard.cuh. */
#include "tests/apps/hard/hard.cuh"

constexpr int LAYERS = 40, ITERATIONS = 10;

static int plain()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++)
        plain_iteration(net, i);
    return finish(net);
}

/* Buffers are allocated once and written anew each iteration. */
static int persistent()
{
    chain net = make_chain(LAYERS);
    for (float *&y : net.y)
        y = make<float>(N);
    float *dx = make<float>(N), *dy = make<float>(N), *loss = make<float>(1);
    for (int i = 0; i < ITERATIONS; i++) {
        std::vector<float> batch = batch_of(N, i);
        CHECK(cudaMemcpy(net.y[0], batch.data(), N * sizeof(float), cudaMemcpyHostToDevice));
        for (int l = 0; l < LAYERS; l++)
            layer_forward(net, l);
        loss_of<<<1, 256>>>(loss, net.y[LAYERS], N);
        float value;
        CHECK(cudaMemcpy(&value, loss, sizeof value, cudaMemcpyDeviceToHost));
        loss_gradient<<<blocks(N), 256>>>(dy, net.y[LAYERS], N);
        for (int l = LAYERS; l-- > 0;) {
            layer_backward(net, l, dx, dy);
            std::swap(dx, dy);
        }
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(value));
    }
    return finish(net);
}

/* The input buffers A and B take turns, and so do two sets of statistics. */
static int double_buffer()
{
    chain net = make_chain(LAYERS);
    float *input[2] = {make<float>(N), make<float>(N)}, *seen[2] = {make<float>(N), make<float>(N)};
    CHECK(cudaMemset(seen[0], 0, N * sizeof(float)));
    CHECK(cudaMemset(seen[1], 0, N * sizeof(float)));
    for (int i = 0; i < ITERATIONS + 4; i++) {
        std::vector<float> batch = batch_of(N, i);
        net.y[0] = input[i % 2];
        CHECK(cudaMemcpy(net.y[0], batch.data(), N * sizeof(float), cudaMemcpyHostToDevice));
        run_forward(net);
        backward<<<blocks(N), 256>>>(seen[i % 2], seen[(i + 1) % 2], net.y[0], net.w, N);
        float loss = read_loss(net), *dy = start_backward(net);
        for (int l = LAYERS; l-- > 0;) {
            float *dx = make<float>(N);
            layer_backward(net, l, dx, dy);
            drop(dy);
            drop(net.y[l + 1]);
            dy = dx;
        }
        drop(dy);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    print_hash("seen", seen[0], N * sizeof(float));
    return finish(net);
}

/* The last output and the loss live on until the next iteration has its own. */
static int late_free()
{
    chain net = make_chain(LAYERS);
    float *old_output = nullptr, *old_loss = nullptr;
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        run_forward(net);
        float *loss = make<float>(1), value, before = 0.0f;
        loss_of<<<1, 256>>>(loss, net.y[LAYERS], N);
        if (old_output) {
            forward<<<blocks(N), 256>>>(old_output, old_output, net.w, N);
            loss_of<<<1, 256>>>(old_loss, old_output, N);
            CHECK(cudaMemcpy(&before, old_loss, sizeof before, cudaMemcpyDeviceToHost));
        }
        CHECK(cudaMemcpy(&value, loss, sizeof value, cudaMemcpyDeviceToHost));
        CHECK(cudaFree(old_output));
        CHECK(cudaFree(old_loss));
        old_loss = loss;
        float *dy = start_backward(net);
        for (int l = LAYERS; l-- > 0;) {
            float *dx = make<float>(N);
            layer_backward(net, l, dx, dy);
            drop(dy);
            if (l + 1 < LAYERS)
                drop(net.y[l + 1]);
            else
                old_output = net.y[l + 1];
            dy = dx;
        }
        drop(dy);
        drop(net.y[0]);
        run_step(net);
        printf("iter %d loss %a before %a\n", i, static_cast<double>(value), static_cast<double>(before));
    }
    return finish(net);
}

static __global__ void via_workspace(float *work, const float *x, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        work[i] = x[i] * 1.5f;
}

/* One workspace serves all layers. */
static int workspace()
{
    chain net = make_chain(LAYERS);
    float *work = make<float>(2 * N);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            via_workspace<<<blocks(N), 256>>>(work + N, net.y[l], N);
            forward<<<blocks(N), 256>>>(net.y[l + 1], work + N, net.w + l * W, N);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Three activations in one allocation, written by three kernels and a copy within it; used in place. */
static int views()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        std::vector<float *> packed;
        for (int l = 0; l < LAYERS; l++) {
            float *three = make<float>(3 * N / 4);
            packed.push_back(three);
            for (int part = 0; part < 3; part++)
                forward<<<blocks(N / 4), 256>>>(three + part * (N / 4), net.y[l] + part * (N / 4), net.w + l * W,
                                                N / 4);
            CHECK(cudaMemcpyAsync(three, three + N / 4 + 64, 1024 * sizeof(float), cudaMemcpyDeviceToDevice, 0));
            CHECK(cudaMemsetAsync(three + N / 2, 0, 512, 0));
            net.y[l + 1] = make<float>(N);
            CHECK(cudaMemcpyAsync(net.y[l + 1], three, 3 * N / 4 * sizeof(float), cudaMemcpyDeviceToDevice, 0));
            CHECK(cudaMemcpyAsync(net.y[l + 1] + 3 * N / 4, net.y[l], N / 4 * sizeof(float), cudaMemcpyDeviceToDevice,
                                  0));
        }
        float loss = read_loss(net), *dy = start_backward(net);
        for (int l = LAYERS; l-- > 0;) {
            float *dx = make<float>(N);
            layer_backward(net, l, dx, dy);
            gradient<<<1, W>>>(net.dw + l * W, dy, packed[l], net.y[l], 3 * N / 4);
            drop(dy);
            drop(net.y[l + 1]);
            drop(packed[l]);
            dy = dx;
        }
        drop(dy);
        drop(net.y[0]);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Each layer's buffer gets its activation in the forward pass and its gradient, beside it, in the backward pass. */
static int filled_later()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(2 * N);
            layer_forward(net, l);
        }
        float loss = read_loss(net);
        loss_gradient<<<blocks(N), 256>>>(net.y[LAYERS] + N, net.y[LAYERS], N);
        for (int l = LAYERS; l-- > 1;) {
            layer_backward(net, l, net.y[l] + N, net.y[l + 1] + N);
            drop(net.y[l + 1]);
        }
        gradient<<<1, W>>>(net.dw, net.y[1] + N, net.y[1], net.y[0], N);
        drop(net.y[1]);
        drop(net.y[0]);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

static __global__ void mask_of(unsigned char *mask, const float *y, size_t count, size_t step)
{
    size_t i = (blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x) * step;
    if (i < count)
        mask[i] = y[i / 4] * static_cast<float>(1 + i % 4) > 0.25f ? 3 : 2;
}

static __global__ void add_mask(float *dw, const unsigned char *mask, size_t count, size_t step)
{
    unsigned sum = 0;
    for (size_t i = threadIdx.x * step; i < count; i += W * step)
        sum += mask[i];
    dw[threadIdx.x] += static_cast<float>(sum) * 1e-6f;
}

/* Masks of single bytes, of which the last one, or every second one, is never written. */
static int masks()
{
    constexpr size_t BYTES = 4 * N;
    chain net = make_chain(LAYERS);
    std::vector<unsigned char *> mask(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            size_t step = 1 + l % 2;
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l);
            mask[l] = make<unsigned char>(BYTES);
            mask_of<<<blocks(BYTES), 256>>>(mask[l], net.y[l + 1], BYTES - 1, step);
        }
        float loss = read_loss(net);
        run_backward(net, [&](int l) {
            add_mask<<<1, W>>>(net.dw + l * W, mask[l], BYTES - 1, 1 + l % 2);
            drop(mask[l]);
        });
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* The program has an allocator of its own over one large allocation per eight layers. */
static int arenas()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        std::vector<float *> arena(LAYERS / 8);
        for (int l = 0; l < LAYERS; l++) {
            if (l % 8 == 0)
                arena[l / 8] = make<float>(8 * N);
            net.y[l + 1] = arena[l / 8] + (l % 8) * N;
            layer_forward(net, l);
        }
        float loss = read_loss(net), *dy = start_backward(net);
        for (int l = LAYERS; l-- > 0;) {
            layer_backward(net, l, dy, dy);
            if (l % 8 == 0)
                drop(arena[l / 8]);
        }
        drop(dy);
        drop(net.y[0]);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

static __global__ void padded(float *y, const float *x, const float *w, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n && i % 128 < 100)
        y[i] = soft(w[i % W] * x[i] * 2.0f + w[(i + 7) % W]);
}

static __global__ void padded_backward(float *dx, const float *dy, const float *y, const float *w, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    float s = i < n ? 1.0f - fabsf(y[i]) : 0.0f; /* read and, for the padding, not used */
    if (i < n && i % 128 < 100)
        dx[i] = dy[i] * s * s * w[i % W] * 2.0f;
}

static __global__ void padded_gradient(float *dw, const float *dy, const float *x, size_t n)
{
    int j = threadIdx.x;
    float sum = 0.0f;
    for (size_t i = j; i < n; i += W)
        if (i % 128 < 100)
            sum += dy[i] * x[i];
    dw[j] += sum / static_cast<float>(n);
}

/* Rows have padding that no kernel writes. */
static int padding()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            padded<<<blocks(N), 256>>>(net.y[l + 1], net.y[l], net.w + l * W, N);
        }
        float *dy = make<float>(N), value = 0.0f;
        padded<<<blocks(N), 256>>>(dy, net.y[LAYERS], net.w, N);
        for (int l = LAYERS; l-- > 0;) {
            float *dx = make<float>(N);
            padded_gradient<<<1, W>>>(net.dw + l * W, dy, net.y[l], N);
            padded_backward<<<blocks(N), 256>>>(dx, dy, net.y[l + 1], net.w + l * W, N);
            drop(dy);
            drop(net.y[l + 1]);
            dy = dx;
        }
        drop(dy);
        drop(net.y[0]);
        CHECK(cudaMemcpy(&value, net.dw + 5, sizeof value, cudaMemcpyDeviceToHost));
        run_step(net);
        printf("iter %d gradient %a\n", i, static_cast<double>(value));
    }
    return finish(net);
}

/* Odd sizes, and hundreds of small tensors beside the large ones. */
static int odd_sizes()
{
    const size_t sizes[] = {1, 3, 127, 128, 129, 513, 4095, 8191, 8193, 16383, 16385, 32767, 32769, 65537};
    chain net = make_chain(20);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        std::vector<float *> small;
        std::vector<size_t> bytes;
        for (int l = 0; l < net.layers; l++) {
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l);
            for (size_t size : sizes) {
                float *tensor = make<float>(size);
                forward<<<blocks(size), 256>>>(tensor, size <= N ? net.y[l + 1] : net.y[l], net.w + l * W,
                                               size < N ? size : N);
                small.push_back(tensor);
                bytes.push_back(size < N ? size : N);
            }
        }
        float loss = read_loss(net), *dy = start_backward(net);
        for (int l = net.layers; l-- > 0;) {
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                gradient<<<1, W>>>(net.dw + l * W, dy, small.back(), net.y[l], bytes.back());
                drop(small.back());
                small.pop_back();
                bytes.pop_back();
            }
            float *dx = make<float>(N);
            layer_backward(net, l, dx, dy);
            drop(dy);
            drop(net.y[l + 1]);
            dy = dx;
        }
        drop(dy);
        drop(net.y[0]);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Two shapes take turns; then one of a third kind comes for good. */
static int shapes()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < 18; i++) {
        net.n = i < 9 ? (i % 2 ? N / 2 : N) : N * 3 / 4;
        plain_iteration(net, i);
    }
    return finish(net);
}

static int long_run()
{
    chain net = make_chain(16, N / 2);
    for (int i = 0; i < 300; i++)
        plain_iteration(net, i);
    return finish(net);
}

static int many_allocations()
{
    chain net = make_chain(12);
    std::vector<float *> held;
    for (int i = 0; i < 10; i++) {
        plain_iteration(net, i);
        for (int k = 0; k < 10000; k++) {
            float *tensor = make<float>(1 + (k * 37 + i) % 50);
            if (k % 500 == 0)
                held.push_back(tensor);
            else
                drop(tensor);
        }
    }
    for (float *&tensor : held)
        drop(tensor);
    return finish(net);
}

/* Asks how much there is, and sizes a cache by it; tries too much first. */
static int sized_by_free()
{
    chain net = make_chain(16);
    size_t free_bytes, total;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    void *cache = nullptr;
    int failures = 0;
    for (size_t want = total * 2; cudaMalloc(&cache, want) != cudaSuccess; want /= 2)
        failures++;
    if (cudaGetLastError() != cudaErrorMemoryAllocation)
        printf("no error kept\n");
    CHECK(cudaMemset(cache, 0, 4096));
    CHECK(cudaFree(cache));
    for (int i = 0; i < ITERATIONS; i++)
        plain_iteration(net, i);
    printf("tried %s\n", failures > 0 ? "again" : "once");
    return finish(net);
}

/* Stream-ordered allocations beside plain ones. */
static int async_allocations()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            void *memory = nullptr;
            if (l % 3)
                CHECK(cudaMallocAsync(&memory, N * sizeof(float), 0));
            else
                memory = make<float>(N);
            net.y[l + 1] = static_cast<float *>(memory);
            layer_forward(net, l);
        }
        float loss = read_loss(net), *first = start_backward(net), *dy = first;
        for (int l = LAYERS; l-- > 0;) {
            void *dx = nullptr;
            CHECK(cudaMallocAsync(&dx, N * sizeof(float), 0));
            layer_backward(net, l, static_cast<float *>(dx), dy);
            if (dy == first)
                drop(first);
            else
                CHECK(cudaFreeAsync(dy, 0));
            if (l % 3)
                CHECK(cudaFreeAsync(net.y[l + 1], 0));
            else
                drop(net.y[l + 1]);
            dy = static_cast<float *>(dx);
        }
        CHECK(cudaFreeAsync(dy, 0));
        drop(net.y[0]);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

int main(int argc, char **argv)
{
    const hard_case cases[] = {{"plain", plain},
                               {"persistent", persistent},
                               {"double-buffer", double_buffer},
                               {"late-free", late_free},
                               {"workspace", workspace},
                               {"views", views},
                               {"filled-later", filled_later},
                               {"masks", masks},
                               {"arenas", arenas},
                               {"padding", padding},
                               {"odd-sizes", odd_sizes},
                               {"shapes", shapes},
                               {"long-run", long_run},
                               {"many-allocations", many_allocations},
                               {"sized-by-free", sized_by_free},
                               {"async-allocations", async_allocations}};
    return run_case(cases, argc, argv);
}
