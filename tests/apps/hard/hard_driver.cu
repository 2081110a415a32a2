/* Habits beyond the plain calls: batches of copies, words written by streams, graphs that allocate, arrays, a second
 * device. See hard.cuh. */
#include "tests/apps/hard/hard.cuh"
#include <cuda.h>
#include <condition_variable>
#include <mutex>

constexpr int LAYERS = 40, ITERATIONS = 10;
constexpr size_t BYTES = N * sizeof(float);

/* A driver function by the door that the runtime offers. */
template <typename F> F *driver_function(const char *name, unsigned version)
{
    void *address = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found));
    if (address == nullptr)
        check(cudaErrorSymbolNotFound, name);
    return reinterpret_cast<F *>(address);
}

inline void check_driver(CUresult result, const char *what)
{
    check(static_cast<cudaError_t>(result), what);
}

#define CHECK_DRIVER(call) check_driver(call, #call)

static CUdeviceptr at(const void *memory)
{
    return reinterpret_cast<CUdeviceptr>(memory);
}

/* Forward, but every sixth layer reads what `between` makes of its input. */
template <typename BETWEEN> static void forward_by(chain &net, BETWEEN between)
{
    for (int l = 0; l < LAYERS; l++) {
        float *input = net.y[l], *own = nullptr;
        if (l % 6 == 1)
            input = own = between(net.y[l], l);
        net.y[l + 1] = make<float>(N);
        forward<<<blocks(N), 256>>>(net.y[l + 1], input, net.w + l * W, N);
        LAUNCHED("forward");
        if (own != nullptr)
            drop(own);
    }
}

template <typename BETWEEN> static int train(chain &net, BETWEEN between)
{
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        forward_by(net, [&](float *y, int layer) { return between(y, layer, i); });
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* An activation is taken apart and put together again, its halves exchanged, by batches; one piece comes from the
 * stack, another from pageable memory. */
static int batch_copies()
{
    chain net = make_chain(LAYERS);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    return train(net, [&](float *y, int, int iteration) {
        float *out = make<float>(N), note[8];
        std::vector<float> pageable(1024, 0.25f);
        for (int k = 0; k < 8; k++)
            note[k] = static_cast<float>(iteration + k) / 64.0f;
        void *to[] = {out, out + N / 2, out + 8, out + 4096};
        const void *from[] = {y + N / 2, y, note, pageable.data()};
        size_t sizes[] = {32, BYTES / 2, sizeof note, 4096}, indices[] = {0, 2};
        cudaMemcpyAttributes attributes[2] = {};
        attributes[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
        attributes[1].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
        CHECK(cudaMemcpyAsync(out, y, BYTES, cudaMemcpyDeviceToDevice, stream));
        CHECK(cudaMemcpyBatchAsync(to, from, sizes, 4, attributes, indices, 2, stream));
        memset(note, 0x7f, sizeof note);
        cudaMemcpy3DBatchOp box = {};
        box.src.type = box.dst.type = cudaMemcpyOperandTypePointer;
        box.src.op.ptr.ptr = y + 256;
        box.dst.op.ptr.ptr = out + 8192;
        box.src.op.ptr.rowLength = box.dst.op.ptr.rowLength = 1024;
        box.extent = make_cudaExtent(512, 16, 1);
        box.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
        CHECK(cudaMemcpy3DBatchAsync(1, &box, 0, stream));
        return out;
    });
}

static __global__ void add_words(float *y, const float *x, const unsigned *words, size_t n)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        y[i] = x[i] + static_cast<float>(words[i % 4]) / 512.0f;
}

/* Words on the device that the stream itself writes and waits for, one by one and in batches. */
static int memory_operations()
{
    chain net = make_chain(LAYERS);
    auto *write = driver_function<CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWriteValue32", 13000);
    auto *wait = driver_function<CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWaitValue32", 13000);
    auto *batch = driver_function<CUresult(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned)>(
        "cuStreamBatchMemOp", 13000);
    unsigned *words = make<unsigned>(16384);
    CHECK(cudaMemset(words, 0, 65536));
    return train(net, [&](float *y, int layer, int iteration) {
        unsigned value = static_cast<unsigned>(iteration * LAYERS + layer);
        CUstreamBatchMemOpParams operations[3] = {};
        operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        operations[0].writeValue.address = at(words + 1);
        operations[0].writeValue.value = value * 3;
        operations[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        operations[1].waitValue.address = at(words + 1);
        operations[1].waitValue.value = value * 3;
        operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
        operations[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
        operations[2].writeValue.address = at(words + 2);
        operations[2].writeValue.value64 = (static_cast<cuuint64_t>(value) << 32) + 5;
        CHECK_DRIVER(write(nullptr, at(words), value, 0));
        CHECK_DRIVER(wait(nullptr, at(words), value, CU_STREAM_WAIT_VALUE_GEQ));
        CHECK_DRIVER(batch(nullptr, 3, operations, 0));
        float *out = make<float>(N);
        add_words<<<blocks(N), 256>>>(out, y, words, N);
        LAUNCHED("add_words");
        return out;
    });
}

static cudaGraphNode_t add_forward(cudaGraph_t graph, cudaGraphNode_t after, float *y, const float *x, const float *w)
{
    size_t n = N;
    void *arguments[] = {&y, &x, &w, &n};
    cudaKernelNodeParams params = {};
    params.func = reinterpret_cast<void *>(forward);
    params.gridDim = dim3(blocks(N));
    params.blockDim = dim3(256);
    params.kernelParams = arguments;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, &after, after != nullptr, &params));
    return node;
}

/* A graph takes memory, works in it and gives it back; between iterations what it has kept is trimmed now and then. */
static int graph_memory()
{
    chain net = make_chain(LAYERS);
    float *in = make<float>(N), *out = make<float>(N);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t allocated, released;
    cudaMemAllocNodeParams params = {};
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = BYTES;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &params));
    float *inner = static_cast<float *>(params.dptr);
    cudaGraphNode_t first = add_forward(graph, allocated, inner, in, net.w + W);
    cudaGraphNode_t second = add_forward(graph, first, out, inner, net.w + 2 * W);
    CHECK(cudaGraphAddMemFreeNode(&released, graph, &second, 1, inner));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    int result = train(net, [&](float *y, int layer, int iteration) {
        CHECK(cudaMemcpyAsync(in, y, BYTES, cudaMemcpyDeviceToDevice, 0));
        CHECK(cudaGraphLaunch(exec, 0));
        float *copy = make<float>(N);
        CHECK(cudaMemcpyAsync(copy, out, BYTES, cudaMemcpyDeviceToDevice, 0));
        if (layer == 1 && iteration % 4 == 3) {
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaDeviceGraphMemTrim(0));
        }
        return copy;
    });
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    return result;
}

/* The same, captured: the stream's own allocations become the graph's. */
static int captured_memory()
{
    chain net = make_chain(LAYERS);
    float *in = make<float>(N), *out = make<float>(N), *inner;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMallocAsync(reinterpret_cast<void **>(&inner), BYTES, stream));
    forward<<<blocks(N), 256, 0, stream>>>(inner, in, net.w + W, N);
    forward<<<blocks(N), 256, 0, stream>>>(out, inner, net.w + 2 * W, N);
    CHECK(cudaFreeAsync(inner, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    int result = train(net, [&](float *y, int, int) {
        CHECK(cudaMemcpyAsync(in, y, BYTES, cudaMemcpyDeviceToDevice, stream));
        CHECK(cudaGraphLaunch(exec, stream));
        float *copy = make<float>(N);
        CHECK(cudaMemcpyAsync(copy, out, BYTES, cudaMemcpyDeviceToDevice, stream));
        return copy;
    });
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    return result;
}

/* Activations pass through an array. */
static int arrays()
{
    chain net = make_chain(LAYERS);
    auto *create = driver_function<CUresult(CUarray *, const CUDA_ARRAY_DESCRIPTOR *)>("cuArrayCreate", 13000);
    auto *destroy = driver_function<CUresult(CUarray)>("cuArrayDestroy", 13000);
    auto *into = driver_function<CUresult(CUarray, size_t, CUdeviceptr, size_t)>("cuMemcpyDtoA", 13000);
    auto *from = driver_function<CUresult(CUdeviceptr, CUarray, size_t, size_t)>("cuMemcpyAtoD", 13000);
    return train(net, [&](float *y, int, int) {
        CUDA_ARRAY_DESCRIPTOR line = {N, 0, CU_AD_FORMAT_FLOAT, 1};
        CUarray array;
        float *out = make<float>(N);
        CHECK_DRIVER(create(&array, &line));
        CHECK_DRIVER(into(array, 0, at(y), BYTES));
        CHECK_DRIVER(from(at(out), array, 0, BYTES));
        CHECK_DRIVER(destroy(array));
        return out;
    });
}

/* Where there is a second device, activations make a detour over it. */
static int peers()
{
    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    if (count < 2) {
        fprintf(stderr, "one device only\n");
        return 1;
    }
    chain net = make_chain(LAYERS);
    CHECK(cudaSetDevice(1));
    float *there = make<float>(N), *w = make<float>(W);
    fill<<<1, W>>>(w, W, 5);
    LAUNCHED("fill");
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(0));
    return train(net, [&](float *y, int, int) {
        float *out = make<float>(N);
        CHECK(cudaMemcpyPeer(there, 1, y, 0, BYTES));
        CHECK(cudaSetDevice(1));
        forward<<<blocks(N), 256>>>(there, there, w, N);
        LAUNCHED("forward");
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaSetDevice(0));
        CHECK(cudaMemcpyPeerAsync(out, 0, there, 1, BYTES, 0));
        return out;
    });
}

static std::mutex mutex;
static std::condition_variable moved;
static int opened;

static void CUDART_CB open_door(void *number)
{
    std::lock_guard<std::mutex> lock(mutex);
    opened = static_cast<int>(reinterpret_cast<intptr_t>(number));
    moved.notify_all();
}

static void CUDART_CB wait_at_door(void *number)
{
    std::unique_lock<std::mutex> lock(mutex);
    moved.wait(lock, [&] { return opened >= static_cast<int>(reinterpret_cast<intptr_t>(number)); });
}

/* A host function waits for one in another stream, behind device work there. */
static int host_functions()
{
    chain net = make_chain(LAYERS);
    cudaStream_t first, second;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    int doors = 0;
    return train(net, [&](float *y, int, int) {
        float *out = make<float>(N);
        void *door = reinterpret_cast<void *>(static_cast<intptr_t>(++doors));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaLaunchHostFunc(first, wait_at_door, door));
        CHECK(cudaMemcpyAsync(out, y, BYTES, cudaMemcpyDeviceToDevice, second));
        CHECK(cudaLaunchHostFunc(second, open_door, door));
        CHECK(cudaStreamSynchronize(first));
        CHECK(cudaStreamSynchronize(second));
        return out;
    });
}

int main(int argc, char **argv)
{
    const hard_case cases[] = {{"batch-copies", batch_copies},
                               {"memory-operations", memory_operations},
                               {"graph-memory", graph_memory},
                               {"captured-memory", captured_memory},
                               {"arrays", arrays},
                               {"peers", peers},
                               {"host-functions", host_functions}};
    return run_case(cases, argc, argv);
}
