// Kernels whose facts tests/unit/test_code.c expects. Remake the text beside it with
//   nvcc -ptx -arch=compute_90 -o tests/unit/samples/code.ptx tests/unit/samples/code.cu
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>

#define KERNEL extern "C" __global__ void

struct pointers {
    float *out;
    const float *in;
    int count;
    float scales[4];
};

struct list {
    const float *in[3];
    float *out[3];
    int sizes[3];
};

struct alignas(128) tensor_map {
    uint64_t words[16];
};

__device__ int counter;
__device__ float *published;
__constant__ float coefficients[8];

__device__ int number() { return blockIdx.x * blockDim.x + threadIdx.x; }

KERNEL axpy(float a, const float *x, float *y, int n) {
    if (number() < n)
        y[number()] = a * x[number()];
}

KERNEL in_place(float *x, int n) {
    if (number() < n)
        x[number()] *= 2;
}

KERNEL conditional(const float *x, float *y, float *rare, int n) {
    float value = x[number()];
    y[number()] = value;
    if (value > 1e30f)
        *rare = value;
}

KERNEL by_value(pointers p) {
    if (number() < p.count)
        p.out[number()] = p.in[number()] * p.scales[threadIdx.x & 3];
}

KERNEL indexed_list(list l) {
    int tensor = blockIdx.y;
    if (number() < l.sizes[tensor])
        l.out[tensor][number()] = l.in[tensor][number()];
}

KERNEL choose(float *a, float *b, int which, float value) {
    float *to = which ? a : b;
    to[number()] = value;
}

KERNEL local_table(float *a, float *b, float *c, int k) {
    float *table[3] = {a, b, c};
    for (int i = 0; i < k; i++)
        table[i % 3][i] = (float)k;
}

KERNEL gather(float *out, const float *table, const long long *index, int width) {
    out[number()] = table[index[blockIdx.x] * width + threadIdx.x];
}

KERNEL gather_narrow(float *out, const float *table, const int *index) {
    out[number()] = table[index[blockIdx.x]];
}

KERNEL through_memory(float **table, int k, float value) {
    table[k][threadIdx.x] = value;
}

KERNEL read_through_memory(const float *const *table, int k, float *out) {
    out[threadIdx.x] = table[k][threadIdx.x];
}

KERNEL through_halves(const uint2 *table, int k, float value) {
    uint2 halves = table[k];
    *(float *)((uint64_t)halves.y << 32 | halves.x) = value;
}

extern "C" __device__ __noinline__ void put(float *x, float value) { *x = value; }
extern "C" __device__ __noinline__ float *advance(float *x, int by) { return x + by; }

KERNEL calls(float *a, const float *b) { put(advance(a, threadIdx.x), b[threadIdx.x]); }

extern "C" __device__ __noinline__ int depth(const int *x, int n) { return n <= 0 ? 0 : x[n] + depth(x, n - 1) * 3; }

KERNEL recursive(const int *x, int *y, int n) { *y = depth(x, n); }

KERNEL indirect_call(float *x, void (*what)(float *)) { what(x); }

KERNEL shared_copy(const float *a, float *b) {
    __shared__ float tile[256];
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    b[threadIdx.x] = tile[255 - threadIdx.x];
}

KERNEL shared_pointer(float *a, float *b, float value) {
    __shared__ float *table[2];
    table[threadIdx.x & 1] = threadIdx.x ? a : b;
    __syncthreads();
    table[1 - (threadIdx.x & 1)][number()] = value;
}

KERNEL shared_histogram(const int *a, int *out) {
    __shared__ int bins[32];
    bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[a[number()] & 31], 1);
    __syncthreads();
    out[threadIdx.x] = bins[threadIdx.x];
}

KERNEL shared_slot(const int *a, int *out) {
    __shared__ int next;
    next = 0;
    __syncthreads();
    out[atomicAdd(&next, 1)] = a[threadIdx.x];
}

KERNEL shared_float_sum(const float *a, float *out) {
    __shared__ float sum;
    sum = 0;
    __syncthreads();
    atomicAdd(&sum, a[threadIdx.x]);
    __syncthreads();
    *out = sum;
}

KERNEL integer_sum(const int *a, unsigned long long *out) { atomicAdd(out, (unsigned long long)a[number()]); }
KERNEL integer_max(const int *a, int *out) { atomicMax(out, a[number()]); }
KERNEL float_sum(const float *a, float *out) { atomicAdd(out, a[number()]); }
KERNEL double_sum(const double *a, double *out) { atomicAdd(out, a[number()]); }
KERNEL slot(int *next, int *out) { out[atomicAdd(next, 1)] = threadIdx.x; }
KERNEL swap_cell(int *cell) { atomicExch(cell, (int)threadIdx.x); }
KERNEL compare_swap(int *cell, int value) { atomicCAS(cell, 0, value); }

KERNEL clock_reader(long long *out) { out[number()] = clock64(); }

KERNEL timer(unsigned long long *out) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    out[number()] = now;
}

KERNEL processor(unsigned *out) {
    unsigned which;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(which));
    out[number()] = which;
}

KERNEL module_counter(int *out) { out[number()] = atomicAdd(&counter, 1); }
KERNEL module_writer(int value) { counter = value; }
KERNEL module_reader(int *out) { out[number()] = counter; }
KERNEL module_pointer(float value) { published[number()] = value; }
KERNEL constant_reader(float *out) { out[number()] = coefficients[threadIdx.x & 7]; }
KERNEL sine(const float *a, float *out) { out[number()] = sinf(a[number()]); }

KERNEL printer(const int *x) { printf("%d\n", x[0]); }
KERNEL allocator(int **out) { *out = (int *)malloc(4); }

KERNEL grid_sync(float *x, float *y) {
    x[number()] = 1;
    cooperative_groups::this_grid().sync();
    y[number()] = x[number() ^ 1];
}

KERNEL shuffle(const float *a, float *out) {
    float value = a[number()];
    for (int distance = 16; distance; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    if (__any_sync(0xffffffffu, value > 0))
        out[number()] = value;
}

KERNEL async_copy(const float4 *a, float4 *b) {
    __shared__ float4 tile[32];
    uint32_t to = (uint32_t)__cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(a + number()));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    b[number()] = tile[31 - threadIdx.x];
}

KERNEL bulk_store(float *out) {
    __shared__ alignas(16) float tile[32];
    tile[threadIdx.x] = 1;
    uint32_t from = (uint32_t)__cvta_generic_to_shared(tile);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(out), "r"(from) : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;");
}

KERNEL bulk_reduce(float *out) {
    __shared__ alignas(16) float tile[32];
    tile[threadIdx.x] = 1;
    uint32_t from = (uint32_t)__cvta_generic_to_shared(tile);
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 128;" ::"l"(out), "r"(from)
                 : "memory");
}

KERNEL tensor_load(const __grid_constant__ tensor_map map, float *out, int x) {
    __shared__ alignas(128) float tile[64];
    __shared__ uint64_t barrier;
    uint32_t to = (uint32_t)__cvta_generic_to_shared(tile), wait = (uint32_t)__cvta_generic_to_shared(&barrier);
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(to),
                 "l"(&map), "r"(x), "r"(wait)
                 : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}

KERNEL tensor_store(const __grid_constant__ tensor_map map, int x) {
    __shared__ alignas(128) float tile[64];
    tile[threadIdx.x] = 1;
    uint32_t from = (uint32_t)__cvta_generic_to_shared(tile);
    asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];" ::"l"(&map), "r"(x), "r"(from)
                 : "memory");
}

KERNEL texture(float *out, cudaTextureObject_t image) { out[number()] = tex1Dfetch<float>(image, number()); }
KERNEL surface(cudaSurfaceObject_t image) { surf1Dwrite(1.0f, image, number() * 4); }

KERNEL byte_store(unsigned char *out, const unsigned char *in, long long n) {
    if (number() < n)
        out[number()] = in[number()];
}

KERNEL strided(float *out, const float *in, long long stride) { out[number() * stride] = in[number()]; }

KERNEL address_of_param(float *out, pointers p, int k) {
    const char *bytes = (const char *)&p;
    out[number()] = *(const float *)(bytes + k);
}

KERNEL scoped_asm(float *out) {
    asm volatile("{ .reg .pred p; .reg .b64 t; setp.eq.u32 p, 1, 1; add.u64 t, %0, 8; @p st.global.f32 [t], 0f3F800000; }" ::"l"(out)
                 : "memory");
}

KERNEL unknown_instruction(float *out) { asm volatile("multimem.red.relaxed.sys.global.add.f32 [%0], 0f3F800000;" ::"l"(out)); }

KERNEL nothing() {}
