/* A program linked with -lcuda, not aware of us. */
#include <cuda.h>

int main(void)
{
    CUdeviceptr address[3] = {0};
    int is_right = cuInit(0) == CUDA_SUCCESS && cuCtxSetCurrent((CUcontext)address) == CUDA_SUCCESS;
    for (int i = 0; i < 3; i++)
        is_right = is_right && cuMemAlloc(&address[i], 4096) == CUDA_SUCCESS && address[i];
    is_right = is_right && cuMemFree(address[0]) == CUDA_SUCCESS && cuMemFree(address[1]) == CUDA_SUCCESS;
    return !is_right;
}
