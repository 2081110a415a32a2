// A program as nvcc's users write them, over the shared runtime of the CPU device: one line per thing tried,
// "ok NAME" or "not ok NAME". Not aware of what it runs on, save for the sizes it chooses.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

static int failures;

static void report(bool is_right, const char *name)
{
    printf("%s %s\n", is_right ? "ok" : "not ok", name);
    failures += !is_right;
}

__constant__ int weights[4];
__device__ unsigned counter;
__device__ int table[3] = {10, 20, 30};

__global__ void fill(int *to, int value, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] = value + i;
}

__global__ void mix(int *words, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        words[i] = words[i] * 1664525 + 1013904223;
}

__global__ void weigh(int *words, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    words[i] = weights[i % 4] + table[i % 3];
    atomicAdd(&counter, 1u);
}

__global__ void sum(const int *from, int *to, int count)
{
    extern __shared__ int partial[];
    int thread = threadIdx.x, i = blockIdx.x * blockDim.x + thread;
    partial[thread] = i < count ? from[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half)
            partial[thread] += partial[thread + half];
        __syncthreads();
    }
    if (thread == 0)
        atomicAdd(to, partial[0]);
}

__global__ void all_blocks_meet(int *arrived, int *seen)
{
    if (threadIdx.x == 0)
        atomicAdd(arrived, 1);
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0)
        seen[blockIdx.x] = *arrived;
}

struct parcel {
    char tag;
    int *to;
    double factor;
};

__global__ void open_parcel(parcel given, short extra)
{
    *given.to = given.tag + (int)(given.factor * extra);
}

static void vectors_and_symbols()
{
    const int count = 100000;
    int host_weights[4] = {1, 2, 3, 4}, *device, expected_bad = 0;
    std::vector<int> host(count);
    bool is_right = cudaMalloc(&device, count * sizeof(int)) == cudaSuccess;
    is_right &= cudaMemcpyToSymbol(weights, host_weights, sizeof host_weights) == cudaSuccess;
    weigh<<<(count + 255) / 256, 256>>>(device, count);
    is_right &= cudaGetLastError() == cudaSuccess;
    is_right &= cudaMemcpy(host.data(), device, count * sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess;
    for (int i = 0; i < count; i++)
        expected_bad += host[i] != host_weights[i % 4] + 10 * (i % 3 + 1);
    unsigned counted = 0;
    is_right &= cudaMemcpyFromSymbol(&counted, counter, sizeof counted) == cudaSuccess;
    report(is_right && expected_bad == 0 && counted == (unsigned)count, "constants, globals and atomics");
    void *address;
    size_t bytes;
    is_right = cudaGetSymbolAddress(&address, table) == cudaSuccess && cudaGetSymbolSize(&bytes, table) == cudaSuccess;
    int second;
    is_right &= cudaMemcpy(&second, (int *)address + 1, 4, cudaMemcpyDeviceToHost) == cudaSuccess;
    report(is_right && bytes == 12 && second == 20, "symbol address and size");
    report(cudaMemcpyFromSymbol(host.data(), table, 13) == cudaErrorInvalidValue, "symbol bounds");
    report(cudaMemcpyToSymbol(&failures, &second, 4) == cudaErrorInvalidSymbol, "unknown symbol");
    cudaGetLastError();
    cudaFree(device);
}

static void reductions()
{
    const int count = 70000;
    int *from, *to, got = 0;
    cudaMalloc(&from, count * sizeof(int));
    cudaMalloc(&to, sizeof(int));
    cudaMemset(to, 0, sizeof(int));
    fill<<<(count + 127) / 128, 128>>>(from, -7, count);
    sum<<<(count + 511) / 512, 512, 512 * sizeof(int)>>>(from, to, count);
    cudaMemcpy(&got, to, sizeof got, cudaMemcpyDeviceToHost);
    report(got == (int)((long long)count * (count - 1) / 2 - 7LL * count), "shared memory reduction");
    cudaFree(from);
    cudaFree(to);
}

static void structs_by_value()
{
    int *to, got = 0;
    cudaMalloc(&to, sizeof(int));
    open_parcel<<<1, 1>>>(parcel{'A', to, 2.5}, 4);
    cudaMemcpy(&got, to, sizeof got, cudaMemcpyDeviceToHost);
    report(got == 'A' + 10, "struct by value");
    cudaFree(to);
}

static void overlapping_streams()
{
    const int count = 1 << 16, rounds = 60;
    cudaStream_t first, second;
    cudaEvent_t there, back, begin, end;
    int *words;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&there, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&back, cudaEventDisableTiming);
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaMalloc(&words, count * sizeof(int));
    cudaEventRecord(begin, first);
    fill<<<count / 256, 256, 0, first>>>(words, 1, count);
    for (int round = 0; round < rounds; round++) {
        cudaEventRecord(there, first);
        cudaStreamWaitEvent(second, there, 0);
        mix<<<count / 256, 256, 0, second>>>(words, count);
        cudaEventRecord(back, second);
        cudaStreamWaitEvent(first, back, 0);
        mix<<<count / 256, 256, 0, first>>>(words, count);
    }
    cudaEventRecord(end, first);
    bool is_right = cudaEventSynchronize(end) == cudaSuccess;
    float milliseconds = -1;
    is_right &= cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess && milliseconds > 0;
    int got = 0;
    unsigned expected = 1 + 12345;
    for (int i = 0; i < 2 * rounds; i++)
        expected = expected * 1664525u + 1013904223u;
    cudaMemcpy(&got, words + 12345, sizeof got, cudaMemcpyDeviceToHost);
    report(is_right && (unsigned)got == expected, "streams ordered by events");
    report(cudaEventElapsedTime(&milliseconds, there, back) == cudaErrorInvalidResourceHandle, "event without timing");
    cudaGetLastError();
    cudaFree(words);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    for (cudaEvent_t event : {there, back, begin, end})
        cudaEventDestroy(event);
}

static void two_threads()
{
    bool is_right[2] = {false, false};
    auto work = [&is_right](int which) {
        const int count = 10000;
        int *words, got = 0;
        bool is_fine = true;
        for (int round = 0; round < 200; round++) {
            is_fine &= cudaMalloc(&words, count * sizeof(int)) == cudaSuccess;
            fill<<<(count + 255) / 256, 256>>>(words, which * 1000 + round, count);
            is_fine &= cudaMemcpy(&got, words + 77, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess;
            is_fine &= got == which * 1000 + round + 77;
            is_fine &= cudaFree(words) == cudaSuccess;
        }
        is_right[which] = is_fine;
    };
    std::thread a(work, 0), b(work, 1);
    a.join();
    b.join();
    report(is_right[0] && is_right[1], "two host threads");
}

static void pinned_memory()
{
    int *pinned, *seen_by_device, got;
    bool is_right = cudaMallocHost(&pinned, 1000 * sizeof(int)) == cudaSuccess;
    is_right &= cudaHostGetDevicePointer((void **)&seen_by_device, pinned, 0) == cudaSuccess;
    fill<<<4, 256>>>(seen_by_device, 5, 1000);
    is_right &= cudaDeviceSynchronize() == cudaSuccess;
    report(is_right && pinned[999] == 1004, "kernel writes pinned memory");
    cudaPointerAttributes attributes;
    is_right = cudaPointerGetAttributes(&attributes, pinned) == cudaSuccess;
    report(is_right && attributes.type == cudaMemoryTypeHost && attributes.devicePointer == pinned, "pinned attributes");
    is_right = cudaPointerGetAttributes(&attributes, &got) == cudaSuccess;
    report(is_right && attributes.type == cudaMemoryTypeUnregistered, "pageable attributes");
    cudaFreeHost(pinned);
}

static void streams_allocate()
{
    cudaStream_t stream;
    int *words, got = 0;
    cudaStreamCreate(&stream);
    bool is_right = true;
    for (int round = 0; round < 50; round++) {
        is_right &= cudaMallocAsync(&words, 1 << 20, stream) == cudaSuccess;
        fill<<<1024, 256, 0, stream>>>(words, round, 1 << 18);
        is_right &= cudaMemcpyAsync(&got, words + 3, sizeof got, cudaMemcpyDeviceToHost, stream) == cudaSuccess;
        is_right &= cudaFreeAsync(words, stream) == cudaSuccess;
        is_right &= cudaStreamSynchronize(stream) == cudaSuccess && got == round + 3;
    }
    report(is_right, "stream-ordered allocation");
    cudaStreamDestroy(stream);
}

static void host_functions()
{
    static std::vector<int> journal;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    for (intptr_t i = 0; i < 5; i++)
        cudaLaunchHostFunc(stream, [](void *number) { journal.push_back((int)(intptr_t)number); }, (void *)i);
    cudaStreamAddCallback(
        stream, [](cudaStream_t, cudaError_t error, void *) { journal.push_back(error == cudaSuccess ? 5 : -1); },
        nullptr, 0);
    cudaStreamSynchronize(stream);
    bool is_right = journal.size() == 6;
    for (int i = 0; is_right && i < 6; i++)
        is_right = journal[i] == i;
    report(is_right, "host functions in order");
    cudaStreamDestroy(stream);
}

static void rows()
{
    char from[5][7], to[5][7] = {}, *device;
    size_t pitch;
    memcpy(from, "0123456789abcdefghijklmnopqrstuvwxyz", 35);
    bool is_right = cudaMallocPitch(&device, &pitch, 7, 5) == cudaSuccess && pitch >= 7;
    is_right &= cudaMemcpy2D(device, pitch, from, 7, 7, 5, cudaMemcpyHostToDevice) == cudaSuccess;
    is_right &= cudaMemset2D(device + pitch, pitch, '*', 2, 2) == cudaSuccess;
    is_right &= cudaMemcpy2D(to, 7, device, pitch, 7, 5, cudaMemcpyDeviceToHost) == cudaSuccess;
    memset(from[1], '*', 2);
    memset(from[2], '*', 2);
    report(is_right && memcmp(from, to, 35) == 0, "rows with a pitch");
    cudaFree(device);
}

static void the_grid_meets()
{
    const int blocks = 12;
    int *memory, got[blocks];
    cudaMalloc(&memory, (1 + blocks) * sizeof(int));
    cudaMemset(memory, 0, sizeof(int));
    int *arrived = memory, *seen = memory + 1;
    void *arguments[] = {&arrived, &seen};
    bool is_right = cudaLaunchCooperativeKernel((void *)all_blocks_meet, blocks, 64, arguments) == cudaSuccess;
    is_right &= cudaMemcpy(got, seen, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess;
    for (int i = 0; i < blocks; i++)
        is_right &= got[i] == blocks;
    report(is_right, "cooperative launch");
    is_right = cudaLaunchCooperativeKernel((void *)all_blocks_meet, 100000, 64, arguments) ==
               cudaErrorCooperativeLaunchTooLarge;
    report(is_right, "cooperative launch too large");
    cudaGetLastError();
    cudaFree(memory);
}

static void captured_and_explicit_graphs()
{
    const int count = 1000;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int *words, got[2];
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&words, 2 * count * sizeof(int));
    cudaMemset(words, 0, 2 * count * sizeof(int));
    cudaDeviceSynchronize();
    bool is_right = cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess;
    fill<<<4, 256, 0, stream>>>(words, 3, count);
    mix<<<4, 256, 0, stream>>>(words, count);
    cudaMemcpyAsync(words + count, words, count * sizeof(int), cudaMemcpyDeviceToDevice, stream);
    is_right &= cudaStreamEndCapture(stream, &graph) == cudaSuccess;
    is_right &= cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess;
    is_right &= cudaMemcpy(got, words + count, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess && got[1] == 0;
    is_right &= cudaGraphLaunch(exec, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess;
    is_right &= cudaMemcpy(got, words + count, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess;
    report(is_right && (unsigned)got[1] == 4 * 1664525u + 1013904223u, "captured graph");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaGraphNode_t set, kernel;
    int value = 70, room = count;
    void *arguments[] = {&words, &value, &room};
    cudaKernelNodeParams launch = {(void *)fill, dim3(4), dim3(256), 0, arguments, nullptr};
    cudaMemsetParams zero = {words, 0, 0, 4, (size_t)count, 1};
    is_right = cudaGraphCreate(&graph, 0) == cudaSuccess;
    is_right &= cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &zero) == cudaSuccess;
    is_right &= cudaGraphAddKernelNode(&kernel, graph, &set, 1, &launch) == cudaSuccess;
    is_right &= cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess;
    value = 80;
    is_right &= cudaGraphLaunch(exec, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess;
    is_right &= cudaMemcpy(got, words, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess && got[1] == 71;
    is_right &= cudaGraphExecKernelNodeSetParams(exec, kernel, &launch) == cudaSuccess;
    is_right &= cudaGraphLaunch(exec, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess;
    is_right &= cudaMemcpy(got, words, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess && got[1] == 81;
    report(is_right, "explicit graph");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaFree(words);
    cudaStreamDestroy(stream);
}

static void loaded_code()
{
    static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .u32 word = 5;\n"
                               ".visible .entry nothing() { ret; }\n";
    cudaLibrary_t library;
    cudaKernel_t kernel = nullptr;
    void *word = nullptr;
    size_t bytes = 0;
    unsigned count = 0, got = 0;
    bool is_right = cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0) == cudaSuccess;
    is_right = is_right && cudaLibraryGetKernelCount(&count, library) == cudaSuccess && count == 1;
    is_right = is_right && cudaLibraryGetKernel(&kernel, library, "nothing") == cudaSuccess && kernel != nullptr;
    is_right = is_right && cudaLibraryGetKernel(&kernel, library, "no such") == cudaErrorSymbolNotFound;
    is_right = is_right && cudaLibraryGetGlobal(&word, &bytes, library, "word") == cudaSuccess && bytes == 4;
    is_right = is_right && cudaMemcpy(&got, word, 4, cudaMemcpyDeviceToHost) == cudaSuccess && got == 5;
    report(is_right && cudaLibraryUnload(library) == cudaSuccess, "loaded code");
    cudaGetLastError();
}

static void capture_questions()
{
    cudaStream_t stream;
    cudaGraph_t graph, seen = nullptr;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    unsigned long long id = 0;
    const cudaGraphNode_t *after = nullptr;
    size_t count = 9;
    cudaStreamCreate(&stream);
    bool is_right = cudaStreamGetCaptureInfo(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusNone;
    is_right &= cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    fill<<<1, 1, 0, stream>>>(nullptr, 0, 0);
    is_right &= cudaStreamGetCaptureInfo(stream, &status, &id, &seen, &after, nullptr, &count) == cudaSuccess;
    is_right &= status == cudaStreamCaptureStatusActive && id != 0 && seen != nullptr && count == 1 && after != nullptr;
    is_right &= cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph == seen;
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    report(is_right, "capture questions");
    cudaGetLastError();
}

static void questions()
{
    cudaDeviceProp properties;
    cudaFuncAttributes attributes;
    int blocks = 0, count = 0, version = 0;
    bool is_right = cudaGetDeviceCount(&count) == cudaSuccess && count == 1;
    is_right &= cudaGetDeviceProperties(&properties, 0) == cudaSuccess && properties.warpSize == 32;
    is_right &= cudaSetDevice(1) == cudaErrorInvalidDevice && cudaSetDevice(0) == cudaSuccess;
    is_right &= cudaRuntimeGetVersion(&version) == cudaSuccess && version == CUDART_VERSION;
    report(is_right, "device questions");
    is_right = cudaFuncGetAttributes(&attributes, sum) == cudaSuccess && attributes.maxThreadsPerBlock == 1024;
    is_right &= cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum, 256, 0) == cudaSuccess && blocks > 0;
    report(is_right, "function questions");
    size_t free_bytes, total;
    void *memory;
    is_right = cudaMemGetInfo(&free_bytes, &total) == cudaSuccess && free_bytes <= total;
    cudaGetLastError();
    is_right &= cudaMalloc(&memory, total + 1) == cudaErrorMemoryAllocation;
    is_right &= cudaPeekAtLastError() == cudaErrorMemoryAllocation;
    is_right &= cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess;
    is_right &= strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0;
    report(is_right, "out of memory, once");
    fill<<<1, 2000>>>(nullptr, 0, 0);
    report(cudaGetLastError() == cudaErrorInvalidConfiguration, "invalid configuration");
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    is_right = cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, cudaEnableDefault, &found) == cudaSuccess;
    report(is_right && entry != nullptr && found == cudaDriverEntryPointSuccess, "driver entry point");
}

static void faults()
{
    int *memory;
    fill<<<1, 32>>>(nullptr, 1, 32);
    report(cudaDeviceSynchronize() == cudaErrorIllegalAddress, "illegal address");
    report(cudaMalloc(&memory, 4) == cudaErrorIllegalAddress, "illegal address is sticky");
    report(cudaDeviceReset() == cudaSuccess && cudaMalloc(&memory, 4) == cudaSuccess, "reset");
    cudaGetLastError();
    int got = 0;
    fill<<<1, 1>>>(memory, 9, 1);
    report(cudaMemcpy(&got, memory, 4, cudaMemcpyDeviceToHost) == cudaSuccess && got == 9, "launch after reset");
}

int main()
{
    vectors_and_symbols();
    reductions();
    structs_by_value();
    overlapping_streams();
    two_threads();
    pinned_memory();
    streams_allocate();
    host_functions();
    rows();
    the_grid_meets();
    captured_and_explicit_graphs();
    loaded_code();
    capture_questions();
    questions();
    faults();
    return failures != 0;
}
