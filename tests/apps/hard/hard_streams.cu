/* Habits of order: streams, events, threads, host functions. See hard.cuh. */
#include "tests/apps/hard/hard.cuh"
#include <condition_variable>
#include <mutex>
#include <thread>

constexpr int LAYERS = 40, ITERATIONS = 10;

static cudaStream_t make_stream(unsigned flags = cudaStreamNonBlocking)
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
}

static cudaEvent_t make_event()
{
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

static void after(cudaStream_t waiter, cudaEvent_t event, cudaStream_t first)
{
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(waiter, event, 0));
}

/* Everything of one iteration on `stream`; nothing is read back but the loss. */
static float iteration_on(chain &net, cudaStream_t stream)
{
    for (int l = 0; l < net.layers; l++) {
        net.y[l + 1] = make<float>(net.n);
        layer_forward(net, l, stream);
    }
    float *loss = make<float>(1), value, *dy = make<float>(net.n);
    loss_of<<<1, 256, 0, stream>>>(loss, net.y[net.layers], net.n);
    CHECK(cudaMemcpyAsync(&value, loss, sizeof value, cudaMemcpyDeviceToHost, stream));
    loss_gradient<<<blocks(net.n), 256, 0, stream>>>(dy, net.y[net.layers], net.n);
    for (int l = net.layers; l-- > 0;) {
        float *dx = make<float>(net.n);
        layer_backward(net, l, dx, dy, stream);
        drop(dy);
        drop(net.y[l + 1]);
        dy = dx;
    }
    drop(dy);
    descend<<<blocks(net.layers * W), 256, 0, stream>>>(net.w, net.dw, net.layers * W, 0.5f);
    CHECK(cudaStreamSynchronize(stream));
    drop(loss);
    return value;
}

/* The next batch is uploaded by a copy stream, from pinned memory, while this one is used; two buffers take turns. */
static int prefetch()
{
    chain net = make_chain(LAYERS);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t work = make_stream(), copy = make_stream();
    cudaEvent_t uploaded = make_event(), used = make_event();
    float *input[2] = {make<float>(N), make<float>(N)}, *pinned[2];
    for (float *&memory : pinned)
        CHECK(cudaMallocHost(&memory, N * sizeof(float)));
    for (int i = 0; i <= ITERATIONS + 2; i++) {
        std::vector<float> batch = batch_of(N, i);
        CHECK(cudaStreamSynchronize(copy));
        memcpy(pinned[i % 2], batch.data(), N * sizeof(float));
        after(copy, used, work);
        CHECK(cudaMemcpyAsync(input[i % 2], pinned[i % 2], N * sizeof(float), cudaMemcpyHostToDevice, copy));
        if (i > 0) {
            net.y[0] = input[(i - 1) % 2];
            printf("iter %d loss %a\n", i - 1, static_cast<double>(iteration_on(net, work)));
        }
        after(work, uploaded, copy);
    }
    return finish(net);
}

/* A fresh buffer for each batch, filled on the copy stream. */
static int fresh_prefetch()
{
    chain net = make_chain(LAYERS);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t work = make_stream(), copy = make_stream();
    cudaEvent_t uploaded = make_event();
    float *pinned;
    CHECK(cudaMallocHost(&pinned, N * sizeof(float)));
    for (int i = 0; i < ITERATIONS; i++) {
        std::vector<float> batch = batch_of(N, i);
        CHECK(cudaStreamSynchronize(copy));
        memcpy(pinned, batch.data(), N * sizeof(float));
        net.y[0] = make<float>(N);
        CHECK(cudaMemcpyAsync(net.y[0], pinned, N * sizeof(float), cudaMemcpyHostToDevice, copy));
        after(work, uploaded, copy);
        printf("iter %d loss %a\n", i, static_cast<double>(iteration_on(net, work)));
        drop(net.y[0]);
    }
    return finish(net);
}

/* Gradients of the parameters on a stream of their own, joined by events. */
static int two_compute()
{
    chain net = make_chain(LAYERS);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a = make_stream(), b = make_stream();
    cudaEvent_t ready = make_event(), done = make_event();
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        CHECK(cudaDeviceSynchronize());
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l, a);
        }
        float *dy = make<float>(N), value, *loss = make<float>(1);
        loss_of<<<1, 256, 0, a>>>(loss, net.y[LAYERS], N);
        loss_gradient<<<blocks(N), 256, 0, a>>>(dy, net.y[LAYERS], N);
        for (int l = LAYERS; l-- > 0;) {
            float *dx = make<float>(N);
            after(b, ready, a);
            gradient<<<1, W, 0, b>>>(net.dw + l * W, dy, net.y[l + 1], net.y[l], N);
            backward<<<blocks(N), 256, 0, a>>>(dx, dy, net.y[l + 1], net.w + l * W, N);
            after(a, done, b);
            drop(dy);
            drop(net.y[l + 1]);
            dy = dx;
        }
        drop(dy);
        drop(net.y[0]);
        descend<<<blocks(LAYERS * W), 256, 0, a>>>(net.w, net.dw, LAYERS * W, 0.5f);
        CHECK(cudaMemcpyAsync(&value, loss, sizeof value, cudaMemcpyDeviceToHost, a));
        CHECK(cudaStreamSynchronize(a));
        drop(loss);
        printf("iter %d loss %a\n", i, static_cast<double>(value));
    }
    return finish(net);
}

/* Odd and even iterations run on different streams. */
static int alternating_streams()
{
    chain net = make_chain(LAYERS);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t streams[2] = {make_stream(), make_stream()};
    for (int i = 0; i < ITERATIONS + 4; i++) {
        upload(net, i);
        CHECK(cudaDeviceSynchronize());
        float loss = iteration_on(net, streams[i % 2]);
        drop(net.y[0]);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Blocking streams beside the legacy default stream: its rules order them. */
static int legacy_rules()
{
    chain net = make_chain(LAYERS);
    cudaStream_t side = make_stream(cudaStreamDefault);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l, l % 5 == 4 ? side : 0);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Memory is freed on one stream's schedule and used again at once on another. */
static int free_and_reuse()
{
    chain net = make_chain(LAYERS);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t work = make_stream(), side = make_stream();
    cudaEvent_t event = make_event();
    float *sums = make<float>(W * 64);
    CHECK(cudaMemset(sums, 0, W * 64 * sizeof(float)));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        CHECK(cudaDeviceSynchronize());
        for (int k = 0; k < 8; k++) {
            float *noise = make<float>(N);
            fill<<<blocks(N), 256, 0, side>>>(noise, N, static_cast<uint32_t>(i * 8 + k));
            gradient<<<1, W, 0, side>>>(sums + k * W, noise, noise, noise, N);
            drop(noise);
            float *next = make<float>(N);
            fill<<<blocks(N), 256, 0, work>>>(next, N, 5);
            drop(next);
        }
        after(work, event, side);
        float loss = iteration_on(net, work);
        drop(net.y[0]);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    print_hash("sums", sums, W * 64 * sizeof(float));
    return finish(net);
}

/* A thread prepares batches on the device, on its per-thread stream, one ahead. */
struct queue {
    std::mutex mutex;
    std::condition_variable changed;
    float *ready = nullptr;
    cudaEvent_t done;
    bool is_full = false;
};

static void load_all(queue *q, int count)
{
    for (int i = 0; i < count; i++) {
        std::vector<float> batch = batch_of(N, i);
        float *raw = make<float>(N), *input = make<float>(N);
        CHECK(cudaMemcpyAsync(raw, batch.data(), N * sizeof(float), cudaMemcpyHostToDevice, cudaStreamPerThread));
        backward<<<blocks(N), 256, 0, cudaStreamPerThread>>>(input, raw, raw, raw, N);
        CHECK(cudaStreamSynchronize(cudaStreamPerThread));
        drop(raw);
        std::unique_lock<std::mutex> lock(q->mutex);
        q->changed.wait(lock, [q] { return !q->is_full; });
        q->ready = input;
        q->is_full = true;
        q->changed.notify_all();
    }
}

static int loader_thread()
{
    chain net = make_chain(LAYERS);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t work = make_stream();
    queue q;
    std::thread loader(load_all, &q, ITERATIONS);
    for (int i = 0; i < ITERATIONS; i++) {
        {
            std::unique_lock<std::mutex> lock(q.mutex);
            q.changed.wait(lock, [&q] { return q.is_full; });
            net.y[0] = q.ready;
            q.is_full = false;
            q.changed.notify_all();
        }
        float loss = iteration_on(net, work);
        drop(net.y[0]);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    loader.join();
    return finish(net);
}

/* Two threads train a network each, on streams of their own. */
static void train(chain net, int seed, float *losses)
{
    cudaStream_t stream = make_stream();
    for (int i = 0; i < ITERATIONS; i++) {
        std::vector<float> batch = batch_of(net.n, seed + i);
        net.y[0] = make<float>(net.n);
        CHECK(cudaMemcpyAsync(net.y[0], batch.data(), net.n * sizeof(float), cudaMemcpyHostToDevice, stream));
        losses[i] = iteration_on(net, stream);
        drop(net.y[0]);
    }
}

static int two_trainers()
{
    chain a = make_chain(LAYERS / 2), b = make_chain(LAYERS / 2, N / 2);
    float losses[2][ITERATIONS];
    CHECK(cudaDeviceSynchronize());
    std::thread other(train, b, 100, losses[1]);
    train(a, 0, losses[0]);
    other.join();
    for (int i = 0; i < ITERATIONS; i++)
        printf("iter %d loss %a %a\n", i, static_cast<double>(losses[0][i]), static_cast<double>(losses[1][i]));
    finish(b);
    return finish(a);
}

/* Host functions between kernels write what the next copy uploads; pinned memory changes right after a wait. */
struct staging {
    float *pinned;
    int iteration;
};

static void CUDART_CB refill(void *data)
{
    staging *s = static_cast<staging *>(data);
    std::vector<float> batch = batch_of(N, s->iteration);
    memcpy(s->pinned, batch.data(), N * sizeof(float));
}

static int host_functions()
{
    chain net = make_chain(LAYERS);
    CHECK(cudaDeviceSynchronize());
    cudaStream_t work = make_stream();
    staging s = {nullptr, 0};
    CHECK(cudaMallocHost(&s.pinned, N * sizeof(float)));
    for (int i = 0; i < ITERATIONS; i++) {
        s.iteration = i;
        net.y[0] = make<float>(N);
        CHECK(cudaLaunchHostFunc(work, refill, &s));
        CHECK(cudaMemcpyAsync(net.y[0], s.pinned, N * sizeof(float), cudaMemcpyHostToDevice, work));
        float loss = iteration_on(net, work);
        memset(s.pinned, 0xff, N * sizeof(float));
        drop(net.y[0]);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Kernels read the batch from, and write statistics to, pinned host memory. */
static __global__ void zero_copy_statistics(float *host, const float *y, const float *batch)
{
    int i = threadIdx.x;
    host[i] = host[i] * 0.5f + y[i] * batch[i];
}

static int zero_copy()
{
    chain net = make_chain(LAYERS);
    float *batch, *statistics;
    CHECK(cudaMallocHost(&batch, N * sizeof(float)));
    CHECK(cudaMallocHost(&statistics, W * sizeof(float)));
    memset(statistics, 0, W * sizeof(float));
    for (int i = 0; i < ITERATIONS; i++) {
        memcpy(batch, batch_of(N, i).data(), N * sizeof(float));
        net.y[0] = batch;
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l);
            zero_copy_statistics<<<1, W>>>(statistics, net.y[l + 1], batch);
        }
        float loss = read_loss(net), *dy = start_backward(net);
        memcpy(batch, batch_of(N, i + 1000).data(), N * sizeof(float)); /* backward sees another first input */
        for (int l = LAYERS; l-- > 0;) {
            float *dx = make<float>(N);
            layer_backward(net, l, dx, dy);
            drop(dy);
            drop(net.y[l + 1]);
            dy = dx;
        }
        drop(dy);
        CHECK(cudaDeviceSynchronize());
        run_step(net);
        printf("iter %d loss %a statistics %a\n", i, static_cast<double>(loss), static_cast<double>(statistics[3]));
    }
    return finish(net);
}

int main(int argc, char **argv)
{
    const hard_case cases[] = {{"prefetch", prefetch},
                               {"fresh-prefetch", fresh_prefetch},
                               {"two-compute", two_compute},
                               {"alternating-streams", alternating_streams},
                               {"legacy-rules", legacy_rules},
                               {"free-and-reuse", free_and_reuse},
                               {"loader-thread", loader_thread},
                               {"two-trainers", two_trainers},
                               {"host-functions", host_functions},
                               {"zero-copy", zero_copy}};
    return run_case(cases, argc, argv);
}
