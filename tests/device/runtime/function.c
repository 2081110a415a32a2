#include "tests/device/runtime/runtime.h"
#include <string.h>

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

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *host_function)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    memset(out, 0, sizeof *out);
    int shared = 0, constant = 0, local = 0;
    const struct {
        CUfunction_attribute attribute;
        int *to;
    } asked[] = {
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared},
        {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant},
        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local},
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &out->maxThreadsPerBlock},
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &out->numRegs},
        {CU_FUNC_ATTRIBUTE_PTX_VERSION, &out->ptxVersion},
        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &out->binaryVersion},
        {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &out->cacheModeCA},
        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &out->maxDynamicSharedSizeBytes},
        {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &out->preferredShmemCarveout},
    };
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof asked / sizeof *asked && result == CUDA_SUCCESS; i++)
        result = driver.cuFuncGetAttribute(asked[i].to, asked[i].attribute, function);
    out->sharedSizeBytes = (size_t)shared;
    out->constSizeBytes = (size_t)constant;
    out->localSizeBytes = (size_t)local;
    return runtime_result(result);
}

cudaError_t cudaFuncSetAttribute(const void *host_function, enum cudaFuncAttribute attribute, int value)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuFuncSetAttribute(function, (CUfunction_attribute)attribute, value));
}

cudaError_t cudaFuncSetCacheConfig(const void *host_function, enum cudaFuncCache config)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuFuncSetCacheConfig(function, (CUfunc_cache)config));
}

cudaError_t cudaFuncGetName(const char **name, const void *host_function)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuFuncGetName(name, function));
}

cudaError_t cudaFuncGetParamInfo(const void *host_function, size_t index, size_t *offset, size_t *bytes)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuFuncGetParamInfo(function, index, offset, bytes));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host_function, int threads,
                                                                   size_t shared_bytes, unsigned int flags)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    return runtime_result(
        driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared_bytes, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host_function, int threads,
                                                          size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host_function, threads, shared_bytes, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *host_function, int blocks, int threads)
{
    CUfunction function;
    cudaError_t error = find(host_function, &function);
    if (error != cudaSuccess)
        return error;
    return runtime_result(driver.cuOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, threads));
}
