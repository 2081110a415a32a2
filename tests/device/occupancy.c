#include "tests/device/driver.h"
#include "tests/device/occupancy.h"
#include "tests/device/context.h"
#include "tests/device/limits.h"

int occupancy_blocks(const struct function *function, int threads, size_t dynamic_shared_bytes)
{
    if (threads <= 0 || (unsigned)threads > function->entry->max_threads)
        return 0;
    size_t shared = function->entry->shared_bytes + dynamic_shared_bytes;
    if (shared > LIMIT_SHARED_OPTIN)
        return 0;
    int rounded = (threads + LIMIT_WARP - 1) / LIMIT_WARP * LIMIT_WARP;
    int blocks = LIMIT_THREADS_PER_PROCESSOR / rounded;
    if (blocks > LIMIT_BLOCKS_PER_PROCESSOR)
        blocks = LIMIT_BLOCKS_PER_PROCESSOR;
    int by_shared = (int)(LIMIT_SHARED_PER_PROCESSOR / (shared + LIMIT_SHARED_RESERVED));
    return blocks < by_shared ? blocks : by_shared;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle, int threads,
                                                              size_t shared_bytes, unsigned int flags)
{
    struct context *context;
    struct function *function;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = function_find(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (blocks == NULL || threads <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = occupancy_blocks(function, threads, shared_bytes);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads, size_t shared_bytes)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, threads, shared_bytes, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *least_grid, int *best_threads, CUfunction handle,
                                                   CUoccupancyB2DSize shared_of, size_t shared_bytes, int limit,
                                                   unsigned int flags)
{
    struct context *context;
    struct function *function;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = function_find(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (least_grid == NULL || best_threads == NULL || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    int most = (int)function->entry->max_threads, best = 0, best_blocks = 0;
    if (limit > 0 && limit < most)
        most = limit;
    for (int threads = most; threads > 0; threads -= threads % LIMIT_WARP != 0 ? threads % LIMIT_WARP : LIMIT_WARP) {
        size_t shared = shared_of != NULL ? shared_of(threads) : shared_bytes;
        int blocks = occupancy_blocks(function, threads, shared);
        if (blocks * threads <= best * best_blocks)
            continue;
        best = threads;
        best_blocks = blocks;
    }
    *best_threads = best;
    *least_grid = best_blocks * LIMIT_PROCESSORS;
    return best > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *least_grid, int *best_threads, CUfunction function,
                                          CUoccupancyB2DSize shared_of, size_t shared_bytes, int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(least_grid, best_threads, function, shared_of, shared_bytes, limit,
                                                     0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction handle, int blocks, int threads)
{
    struct context *context;
    struct function *function;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = function_find(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == NULL || blocks <= 0 || occupancy_blocks(function, threads, 0) < blocks)
        return CUDA_ERROR_INVALID_VALUE;
    size_t each = LIMIT_SHARED_PER_PROCESSOR / (size_t)blocks - LIMIT_SHARED_RESERVED;
    if (each > LIMIT_SHARED_OPTIN)
        each = LIMIT_SHARED_OPTIN;
    *bytes = each - function->entry->shared_bytes;
    return CUDA_SUCCESS;
}

/* ---- clusters: of one block ---- */

static CUresult enter_cluster(CUfunction handle, const CUlaunchConfig *config, const void *out,
                              struct function **function)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = function_find(handle, function);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || config == NULL || config->blockDimX == 0 || config->blockDimY == 0 || config->blockDimZ == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static int blocks_of(const struct function *function, const CUlaunchConfig *config)
{
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    return threads > LIMIT_THREADS_PER_BLOCK ? 0 : occupancy_blocks(function, (int)threads, config->sharedMemBytes);
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle, const CUlaunchConfig *config)
{
    struct function *function;
    CUresult result = enter_cluster(handle, config, size, &function);
    if (result == CUDA_SUCCESS)
        *size = blocks_of(function, config) > 0;
    return result;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction handle, const CUlaunchConfig *config)
{
    struct function *function;
    CUresult result = enter_cluster(handle, config, count, &function);
    if (result != CUDA_SUCCESS)
        return result;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        if (attribute->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            continue;
        if (attribute->value.clusterDim.x != 1 || attribute->value.clusterDim.y != 1 ||
            attribute->value.clusterDim.z != 1)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    *count = blocks_of(function, config) * LIMIT_PROCESSORS;
    return CUDA_SUCCESS;
}
