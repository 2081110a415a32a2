/* Device memory and errors, as a plain training program handles them.
 *
 * One cudaMalloc per tensor, one cudaFree per tensor, everything on the default stream. Nothing here
 * returns an error: out of memory from any call, launches included, prints `out of memory` and exits
 * with 2; any other error prints one line and exits with 1. */
#pragma once
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

void device_check(cudaError_t error, const char *what);
/* To be called right after every <<<>>>. */
void device_launched(const char *kernel);

void *device_make_bytes(size_t bytes);
void device_free_bytes(void *memory);

template <typename T> T *device_make(size_t count)
{
    return static_cast<T *>(device_make_bytes(count * sizeof(T)));
}

/* The pointer is NULL afterwards. */
template <typename T> void device_free(T *&memory)
{
    device_free_bytes(memory);
    memory = nullptr;
}

template <typename T> void device_write(T *device, const T *host, size_t count)
{
    device_check(cudaMemcpy(device, host, count * sizeof(T), cudaMemcpyHostToDevice), "copy to the device");
}

template <typename T> void device_read(T *host, const T *device, size_t count)
{
    device_check(cudaMemcpy(host, device, count * sizeof(T), cudaMemcpyDeviceToHost), "copy from the device");
}

template <typename T> void device_clear(T *device, size_t count)
{
    device_check(cudaMemset(device, 0, count * sizeof(T)), "clear device memory");
}

/* Grid size for `count` items in blocks of `block`. */
inline unsigned blocks_for(size_t count, unsigned block)
{
    return static_cast<unsigned>((count + block - 1) / block);
}
