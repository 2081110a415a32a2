/* Kernels on the CPU device against the same work as plain loops on one core, in one run: ratios count, not seconds.
 * Usage: kernels; with the device in front (LD_LIBRARY_PATH=build/device). CPUDEV_THREADS=1 compares core with core;
 * without it the device has all cores and the loop one. Where a limit is asked for, it stands beside the ratio. */
#include <cuda_runtime.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define TILE 16
#define SCALAR_LOOP __attribute__((noinline, optimize("O2", "no-tree-vectorize")))
#define VECTOR_LOOP __attribute__((noinline, optimize("O3")))

static __global__ void multiply_kernel(float *c, const float *a, const float *b, int n)
{
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += TILE) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

static __global__ void scale_kernel(float *out, const float *a, const float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] * 2.0f + b[i];
}

static __global__ void scale_kernel_4(float4 *out, const float4 *a, const float4 *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 x = a[i], y = b[i];
    out[i] = make_float4(x.x * 2.0f + y.x, x.y * 2.0f + y.y, x.z * 2.0f + y.z, x.w * 2.0f + y.w);
}

static __global__ void scale_kernel_strided(float *out, const float *a, const float *b, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = a[i] * 2.0f + b[i];
}

#define ROW_THREADS 256
template <class Join> __device__ static float over_block(float value, Join join)
{
    __shared__ float parts[ROW_THREADS / 32];
    for (int offset = 16; offset > 0; offset /= 2)
        value = join(value, __shfl_xor_sync(0xffffffffu, value, offset));
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < ROW_THREADS / 32; i++)
        value = join(value, parts[i]);
    __syncthreads();
    return value;
}

static __global__ void softmax_kernel(float *out, const float *in, int columns)
{
    const float *row = in + static_cast<size_t>(blockIdx.x) * columns;
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += ROW_THREADS)
        most = fmaxf(most, row[i]);
    most = over_block(most, [](float a, float b) { return fmaxf(a, b); });
    for (int i = threadIdx.x; i < columns; i += ROW_THREADS)
        sum += expf(row[i] - most);
    sum = over_block(sum, [](float a, float b) { return a + b; });
    for (int i = threadIdx.x; i < columns; i += ROW_THREADS)
        out[static_cast<size_t>(blockIdx.x) * columns + i] = expf(row[i] - most) / sum;
}

static __global__ void layer_norm_kernel(float *out, const float *in, int columns)
{
    const float *row = in + static_cast<size_t>(blockIdx.x) * columns;
    float sum = 0.0f, squares = 0.0f;
    auto plus = [](float a, float b) { return a + b; };
    for (int i = threadIdx.x; i < columns; i += ROW_THREADS)
        sum += row[i];
    float mean = over_block(sum, plus) / columns;
    for (int i = threadIdx.x; i < columns; i += ROW_THREADS)
        squares += (row[i] - mean) * (row[i] - mean);
    float scale = rsqrtf(over_block(squares, plus) / columns + 1e-5f);
    for (int i = threadIdx.x; i < columns; i += ROW_THREADS)
        out[static_cast<size_t>(blockIdx.x) * columns + i] = (row[i] - mean) * scale;
}

SCALAR_LOOP static void multiply_loop(float *c, const float *a, const float *b, int n)
{
    for (int i = 0; i < n * n; i++)
        c[i] = 0.0f;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
}

VECTOR_LOOP static void scale_loop(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = a[i] * 2.0f + b[i];
}

VECTOR_LOOP static void softmax_loop(float *out, const float *in, int rows, int columns)
{
    for (int r = 0; r < rows; r++, in += columns, out += columns) {
        float most = -INFINITY, sum = 0.0f;
        for (int i = 0; i < columns; i++)
            most = in[i] > most ? in[i] : most;
        for (int i = 0; i < columns; i++)
            sum += out[i] = expf(in[i] - most);
        for (int i = 0; i < columns; i++)
            out[i] /= sum;
    }
}

VECTOR_LOOP static void layer_norm_loop(float *out, const float *in, int rows, int columns)
{
    for (int r = 0; r < rows; r++, in += columns, out += columns) {
        float sum = 0.0f, squares = 0.0f;
        for (int i = 0; i < columns; i++)
            sum += in[i];
        float mean = sum / static_cast<float>(columns);
        for (int i = 0; i < columns; i++)
            squares += (in[i] - mean) * (in[i] - mean);
        float scale = 1.0f / sqrtf(squares / static_cast<float>(columns) + 1e-5f);
        for (int i = 0; i < columns; i++)
            out[i] = (in[i] - mean) * scale;
    }
}

static void check(cudaError_t error)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "kernels: %s\n", cudaGetErrorString(error));
    exit(1);
}

template <class Work> static double best_of(int rounds, Work work)
{
    double best = 1e9;
    for (int i = 0; i < rounds; i++) {
        auto begin = std::chrono::steady_clock::now();
        work();
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        best = took.count() < best ? took.count() : best;
    }
    return best;
}

static float *on_device(const std::vector<float> &values)
{
    float *address;
    check(cudaMalloc(&address, values.size() * sizeof(float)));
    check(cudaMemcpy(address, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    return address;
}

/* The product is in whole numbers, so that the order of its sums does not show; rows may differ by what is `allowed`. */
static bool same(const std::vector<float> &expected, const float *device, float allowed = 0.0f)
{
    std::vector<float> got(expected.size());
    check(cudaMemcpy(got.data(), device, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < got.size(); i++)
        if (!(std::fabs(got[i] - expected[i]) <= allowed * (1.0f + std::fabs(expected[i]))))
            return false;
    return true;
}

static void report(const char *name, double kernel, double loop, const char *limit, bool is_same)
{
    printf("  %-52s %8.2f ms, loop %8.2f ms: %.2f x%s%s\n", name, kernel * 1e3, loop * 1e3, kernel / loop, limit,
           is_same ? "" : "  WRONG RESULT");
    fflush(stdout);
    if (!is_same)
        exit(1);
}

static std::vector<float> small_numbers(size_t count, int modulus)
{
    std::vector<float> values(count);
    for (size_t i = 0; i < count; i++)
        values[i] = static_cast<float>(static_cast<int>(i * 7 % modulus) - modulus / 2);
    return values;
}

static void bench_product()
{
    const int n = 512;
    std::vector<float> a = small_numbers(n * n, 9), b = small_numbers(n * n, 11), c(n * n);
    float *device_a = on_device(a), *device_b = on_device(b), *device_c = on_device(c);
    double kernel = best_of(5, [&] {
        multiply_kernel<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(device_c, device_a, device_b, n);
        check(cudaDeviceSynchronize());
    });
    double loop = best_of(3, [&] { multiply_loop(c.data(), a.data(), b.data(), n); });
    report("tiled 512^3 product / scalar loop at -O2", kernel, loop, " (at most 4)", same(c, device_c));
}

static void bench_elements()
{
    const int count = 16 << 20;
    std::vector<float> x = small_numbers(count, 101), y = small_numbers(count, 103), z(count);
    float *device_x = on_device(x), *device_y = on_device(y), *device_z = on_device(z);
    double loop = best_of(7, [&] { scale_loop(z.data(), x.data(), y.data(), count); });
    double kernel = best_of(7, [&] {
        scale_kernel<<<count / 256, 256>>>(device_z, device_x, device_y, count);
        check(cudaDeviceSynchronize());
    });
    const char *limit = " (at most 1.5)";
    report("element-wise over 64 MiB / vectorised loop at -O3", kernel, loop, limit, same(z, device_z));
    kernel = best_of(7, [&] {
        scale_kernel_4<<<count / 4 / 256, 256>>>(reinterpret_cast<float4 *>(device_z),
                                                 reinterpret_cast<float4 *>(device_x),
                                                 reinterpret_cast<float4 *>(device_y), count / 4);
        check(cudaDeviceSynchronize());
    });
    report("the same by float4", kernel, loop, limit, same(z, device_z));
    kernel = best_of(7, [&] {
        scale_kernel_strided<<<1024, 256>>>(device_z, device_x, device_y, count);
        check(cudaDeviceSynchronize());
    });
    report("the same in a grid-stride loop", kernel, loop, limit, same(z, device_z));
}

static void bench_rows()
{
    const int rows = 2048, columns = 1024;
    std::vector<float> x = small_numbers(static_cast<size_t>(rows) * columns, 17), z(x.size());
    float *device_x = on_device(x), *device_z = on_device(z);
    double loop = best_of(5, [&] { softmax_loop(z.data(), x.data(), rows, columns); });
    double kernel = best_of(5, [&] {
        softmax_kernel<<<rows, ROW_THREADS>>>(device_z, device_x, columns);
        check(cudaDeviceSynchronize());
    });
    report("softmax of rows, shuffles / loop at -O3", kernel, loop, "", same(z, device_z, 1e-5f));
    loop = best_of(5, [&] { layer_norm_loop(z.data(), x.data(), rows, columns); });
    kernel = best_of(5, [&] {
        layer_norm_kernel<<<rows, ROW_THREADS>>>(device_z, device_x, columns);
        check(cudaDeviceSynchronize());
    });
    report("layer norm of rows, shuffles / loop at -O3", kernel, loop, "", same(z, device_z, 1e-4f));
}

int main()
{
    bench_product();
    bench_elements();
    bench_rows();
    return 0;
}
