/* Kernels on the CPU device against the same work as plain loops on one core, in one run: ratios count, not seconds.
 * Usage: kernels; with the device in front (LD_LIBRARY_PATH=build/device). CPUDEV_THREADS=1 compares core with core. */
#include <cuda_runtime.h>

#include <chrono>
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

/* The product is in whole numbers, so that the order of its sums does not show. */
static bool same(const std::vector<float> &expected, const float *device)
{
    std::vector<float> got(expected.size());
    check(cudaMemcpy(got.data(), device, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return got == expected;
}

static void report(const char *name, double kernel, double loop, bool is_same)
{
    printf("  %-52s %8.2f ms, loop %8.2f ms: %.2f x%s\n", name, kernel * 1e3, loop * 1e3, kernel / loop,
           is_same ? "" : "  WRONG RESULT");
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

int main()
{
    const int n = 512, count = 16 << 20;
    std::vector<float> a = small_numbers(n * n, 9), b = small_numbers(n * n, 11), c(n * n);
    float *device_a = on_device(a), *device_b = on_device(b), *device_c = on_device(c);
    double kernel = best_of(5, [&] {
        multiply_kernel<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(device_c, device_a, device_b, n);
        check(cudaDeviceSynchronize());
    });
    double loop = best_of(3, [&] { multiply_loop(c.data(), a.data(), b.data(), n); });
    report("tiled 512^3 product / scalar loop at -O2", kernel, loop, same(c, device_c));
    std::vector<float> x = small_numbers(count, 101), y = small_numbers(count, 103), z(count);
    float *device_x = on_device(x), *device_y = on_device(y), *device_z = on_device(z);
    kernel = best_of(7, [&] {
        scale_kernel<<<count / 256, 256>>>(device_z, device_x, device_y, count);
        check(cudaDeviceSynchronize());
    });
    loop = best_of(7, [&] { scale_loop(z.data(), x.data(), y.data(), count); });
    report("element-wise over 64 MiB / vectorised loop at -O3", kernel, loop, same(z, device_z));
    return 0;
}
