/* The thin CUDA runtime over the driver API, for programs built with the shared runtime. First include of
 * every file of it.
 *
 * It reaches the driver as the real one does: dlopen("libcuda.so.1"), dlsym("cuGetProcAddress_v2"), then one
 * request per name, version and variant; never by linking. */
#pragma once
#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cuda_runtime_api.h>
/* Neither cudaProfiler.h nor cuda_profiler_api.h is in every package of the toolkit. */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);
cudaError_t CUDARTAPI cudaProfilerStart(void);
cudaError_t CUDARTAPI cudaProfilerStop(void);
#pragma GCC visibility pop
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREAD_LOCAL __attribute__((tls_model("initial-exec"))) _Thread_local

/* The driver's functions that the runtime uses. `name_PT` is the per-thread-stream variant of `name`. */
struct driver {
#define CALL(symbol, name, version)    __typeof__(symbol) *symbol;
#define CALL_PT(symbol, name, version) __typeof__(symbol) *symbol;
#include "tests/device/runtime/calls.def"
#undef CALL
#undef CALL_PT
};

/* Filled once driver_load has succeeded. */
extern struct driver driver;

/* cudaErrorInsufficientDriver if there is no driver or a function is missing. */
cudaError_t driver_load(void);

/* The driver is loaded and initialised. */
cudaError_t runtime_load(void);
/* And a context is current on this thread (the primary one of its device if none was). */
cudaError_t runtime_enter(void);
/* The primary context of a device, made if there was none. */
CUresult runtime_primary(int device, CUcontext *out);

/* Keeps the error for cudaGetLastError and returns it. */
cudaError_t runtime_record(cudaError_t error);
/* The same for a driver's answer: the two lists of codes share their numbers. */
cudaError_t runtime_result(CUresult result);

/* registration.c: what the program's own code has registered. */
cudaError_t registered_kernel(const void *host_function, CUkernel *out);
cudaError_t registered_variable(const void *host_variable, CUdeviceptr *address, size_t *bytes);

/* graph.c: what a kernel node of the runtime is to the driver. */
cudaError_t runtime_kernel_node(const struct cudaKernelNodeParams *params, CUDA_KERNEL_NODE_PARAMS *out);
/* copy_rows.c: what a box of the runtime is to the driver. cudaErrorNotSupported for arrays. */
cudaError_t runtime_box(const struct cudaMemcpy3DParms *params, CUDA_MEMCPY3D *out);

/* Calls that are one of the driver's, made once a context is there; LOADED: once the driver is. */
#define FORWARD(name, parameters, call)                                                                                \
    cudaError_t name parameters                                                                                        \
    {                                                                                                                  \
        cudaError_t error = runtime_enter();                                                                           \
        return error != cudaSuccess ? error : runtime_result(driver.call);                                             \
    }
#define FORWARD_LOADED(name, parameters, call)                                                                         \
    cudaError_t name parameters                                                                                        \
    {                                                                                                                  \
        cudaError_t error = runtime_load();                                                                            \
        return error != cudaSuccess ? error : runtime_result(driver.call);                                             \
    }
