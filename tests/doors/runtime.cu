/* A program of nvcc's with the shared runtime, not aware of us. It allocates three times by the runtime and once by a
 * driver function that the runtime hands out. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>

__global__ void fill(int *to, int value)
{
    to[threadIdx.x] = value;
}

#define EXPECT(condition)                                                                                              \
    if (!(condition)) {                                                                                                \
        fprintf(stderr, "%s\n", #condition);                                                                           \
        return 1;                                                                                                      \
    }

int main()
{
    void *address[3];
    int seen[32] = {0};
    for (void *&one : address)
        EXPECT(cudaMalloc(&one, 4096) == cudaSuccess);
    fill<<<1, 32>>>((int *)address[0], 7);
    EXPECT(cudaMemcpy(seen, address[0], sizeof seen, cudaMemcpyDeviceToHost) == cudaSuccess && seen[31] == 7);
    void *function = nullptr;
    cudaDriverEntryPointQueryResult status;
    EXPECT(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &status) ==
           cudaSuccess);
    CUdeviceptr fourth = 0;
    EXPECT(function && ((CUresult(*)(CUdeviceptr *, size_t))function)(&fourth, 4096) == CUDA_SUCCESS && fourth);
    EXPECT(cudaFree(address[0]) == cudaSuccess && cudaFree(address[1]) == cudaSuccess);
    return 0;
}
