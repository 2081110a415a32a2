/* The undocumented-by-name but declared entry points that nvcc's host code calls (crt/host_runtime.h and
 * crt/device_functions.h declare them for C++). */
#pragma once
#include "tests/device/runtime/runtime.h"

#pragma GCC visibility push(default)
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device_function, const char *device_name,
                            int thread_limit, void *thread, void *block, void *block_size, void *grid_size,
                            int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device_address, const char *device_name, int is_external,
                       size_t bytes, int is_constant, int is_global);
void __cudaRegisterHostVar(void **handle, const char *device_name, char *host, size_t bytes);
char __cudaInitModule(void **handle);
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host_function);
unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared_bytes, void *stream);
cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, struct dim3 grid, struct dim3 block, void **args,
                               size_t shared_bytes, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, struct dim3 grid, struct dim3 block, void **args,
                                    size_t shared_bytes, cudaStream_t stream);
#pragma GCC visibility pop
