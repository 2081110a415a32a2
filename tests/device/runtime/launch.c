#include "tests/device/runtime/runtime.h"
#include "tests/device/runtime/registration.h"

struct configuration {
    struct dim3 grid, block;
    size_t shared_bytes;
    void *stream;
};

#define CONFIGURATIONS 8 /* f<<<...>>>(g()) with g launching too: they nest */

static THREAD_LOCAL struct configuration configurations[CONFIGURATIONS];
static THREAD_LOCAL unsigned depth;

unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared_bytes, void *stream)
{
    if (depth == CONFIGURATIONS)
        return (unsigned)cudaErrorMissingConfiguration;
    configurations[depth++] = (struct configuration){grid, block, shared_bytes, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared_bytes, void *stream)
{
    if (depth == 0)
        return runtime_record(cudaErrorMissingConfiguration);
    const struct configuration *top = &configurations[--depth];
    *grid = top->grid;
    *block = top->block;
    *shared_bytes = top->shared_bytes;
    *(void **)stream = top->stream;
    return cudaSuccess;
}

/* The driver calls a wrong shape an invalid value, the runtime an invalid configuration. */
static cudaError_t launched(CUresult result, struct dim3 grid, struct dim3 block)
{
    if (result == CUDA_ERROR_INVALID_HANDLE)
        return runtime_record(cudaErrorInvalidResourceHandle);
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    bool is_shape_wrong = threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0;
    if (result == CUDA_ERROR_INVALID_VALUE && is_shape_wrong)
        return runtime_record(cudaErrorInvalidConfiguration);
    return runtime_result(result);
}

static cudaError_t launch(CUfunction function, struct dim3 grid, struct dim3 block, void **args, size_t shared_bytes,
                          cudaStream_t stream, __typeof__(cuLaunchKernel) *launch_kernel)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (function == NULL)
        return runtime_record(cudaErrorInvalidDeviceFunction);
    CUresult result = launch_kernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared_bytes,
                                    stream, args, NULL);
    return launched(result, grid, block);
}

static cudaError_t find(const void *host_function, CUfunction *out)
{
    CUkernel kernel = NULL;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = registered_kernel(host_function, &kernel);
    *out = (CUfunction)kernel;
    return runtime_record(error);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, struct dim3 grid, struct dim3 block, void **args,
                               size_t shared_bytes, cudaStream_t stream)
{
    if (runtime_enter() != cudaSuccess)
        return cudaPeekAtLastError();
    return launch((CUfunction)kernel, grid, block, args, shared_bytes, stream, driver.cuLaunchKernel);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, struct dim3 grid, struct dim3 block, void **args,
                                    size_t shared_bytes, cudaStream_t stream)
{
    if (runtime_enter() != cudaSuccess)
        return cudaPeekAtLastError();
    return launch((CUfunction)kernel, grid, block, args, shared_bytes, stream, driver.cuLaunchKernel_ptsz);
}

cudaError_t cudaLaunchKernel(const void *host_function, struct dim3 grid, struct dim3 block, void **args,
                             size_t shared_bytes, cudaStream_t stream)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    return launch(function, grid, block, args, shared_bytes, stream, driver.cuLaunchKernel);
}

cudaError_t cudaLaunchKernel_ptsz(const void *host_function, struct dim3 grid, struct dim3 block, void **args,
                                  size_t shared_bytes, cudaStream_t stream)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    return launch(function, grid, block, args, shared_bytes, stream, driver.cuLaunchKernel_ptsz);
}

static cudaError_t launch_cooperative(const void *host_function, struct dim3 grid, struct dim3 block, void **args,
                                      size_t shared_bytes, cudaStream_t stream,
                                      __typeof__(cuLaunchCooperativeKernel) *launch_kernel)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    CUresult result = launch_kernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared_bytes,
                                    stream, args);
    return launched(result, grid, block);
}

cudaError_t cudaLaunchCooperativeKernel(const void *host_function, struct dim3 grid, struct dim3 block, void **args,
                                        size_t shared_bytes, cudaStream_t stream)
{
    if (runtime_enter() != cudaSuccess)
        return cudaPeekAtLastError();
    return launch_cooperative(host_function, grid, block, args, shared_bytes, stream, driver.cuLaunchCooperativeKernel);
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void *host_function, struct dim3 grid, struct dim3 block,
                                             void **args, size_t shared_bytes, cudaStream_t stream)
{
    if (runtime_enter() != cudaSuccess)
        return cudaPeekAtLastError();
    return launch_cooperative(host_function, grid, block, args, shared_bytes, stream,
                              driver.cuLaunchCooperativeKernel_ptsz);
}

static cudaError_t launch_ex(const cudaLaunchConfig_t *config, const void *host_function, void **args,
                             bool is_per_thread)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    if (config == NULL)
        return runtime_record(cudaErrorInvalidConfiguration);
    struct dim3 grid = config->gridDim, block = config->blockDim;
    /* The attribute structs of both APIs are one: cudaLaunchAttribute is laid out as CUlaunchAttribute. */
    CUlaunchConfig plain = {grid.x,
                            grid.y,
                            grid.z,
                            block.x,
                            block.y,
                            block.z,
                            (unsigned)config->dynamicSmemBytes,
                            config->stream,
                            (CUlaunchAttribute *)config->attrs,
                            config->numAttrs};
    CUresult result = is_per_thread ? driver.cuLaunchKernelEx_ptsz(&plain, function, args, NULL)
                                    : driver.cuLaunchKernelEx(&plain, function, args, NULL);
    return launched(result, grid, block);
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "the attribute structs differ");

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host_function, void **args)
{
    return launch_ex(config, host_function, args, false);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *host_function, void **args)
{
    return launch_ex(config, host_function, args, true);
}

FORWARD(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
        cuLaunchHostFunc(stream, function, data))
FORWARD(cudaLaunchHostFunc_ptsz, (cudaStream_t stream, cudaHostFn_t function, void *data),
        cuLaunchHostFunc_ptsz(stream, function, data))
