/* Kernel launches: every form ends in one piece of grid work. */
#include "tests/device/driver.h"
#include "tests/device/launch.h"
#include "tests/device/context.h"
#include "tests/device/limits.h"
#include "tests/device/module.h"
#include "tests/device/occupancy.h"
#include <string.h>

static CUresult check_shape(const struct function *function, const CUlaunchConfig *config)
{
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    if (config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimZ == 0 || threads == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (config->gridDimX > LIMIT_GRID_X || config->gridDimY > LIMIT_GRID_Y || config->gridDimZ > LIMIT_GRID_Z ||
        config->blockDimX > LIMIT_BLOCK_X || config->blockDimY > LIMIT_BLOCK_Y || config->blockDimZ > LIMIT_BLOCK_Z)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > LIMIT_THREADS_PER_BLOCK)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > function->entry->max_threads)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (config->sharedMemBytes > (unsigned)function->dynamic_shared_limit)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult read_attributes(const CUlaunchConfig *config, bool *is_cooperative)
{
    if (config->numAttrs > 0 && config->attrs == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        const CUlaunchAttributeValue *value = &attribute->value;
        switch (attribute->id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            *is_cooperative = value->cooperative != 0;
            break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            if (value->clusterDim.x * value->clusterDim.y * value->clusterDim.z != 1)
                return CUDA_ERROR_INVALID_CLUSTER_SIZE;
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            /* Hints: programmatic overlap, priority, carve-out, synchronisation policy. */
            if ((unsigned)attribute->id > CU_LAUNCH_ATTRIBUTE_MAX)
                return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

/* The { CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, END } form. */
static CUresult read_extra(void *const *extra, unsigned char *to, size_t room)
{
    const void *buffer = NULL;
    size_t bytes = 0;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = *(const size_t *)extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (buffer == NULL || bytes > room)
        return bytes == 0 && buffer != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    memcpy(to, buffer, bytes);
    return CUDA_SUCCESS;
}

static CUresult read_arguments(const struct program_entry *entry, void *const *params, void *const *extra,
                               unsigned char *to)
{
    memset(to, 0, entry->param_bytes);
    if (params != NULL && extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra != NULL)
        return read_extra(extra, to, entry->param_bytes);
    if (entry->param_count == 0)
        return CUDA_SUCCESS;
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < entry->param_count; i++) {
        if (params[i] == NULL)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(to + entry->params[i].offset, params[i], entry->params[i].bytes);
    }
    return CUDA_SUCCESS;
}

static CUresult check_cooperative(const struct function *function, const CUlaunchConfig *config)
{
    int threads = (int)(config->blockDimX * config->blockDimY * config->blockDimZ);
    uint64_t room = (uint64_t)occupancy_blocks(function, threads, config->sharedMemBytes) * LIMIT_PROCESSORS;
    uint64_t blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
    return blocks > room ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

CUresult launch_make_work(const CUlaunchConfig *config, CUfunction handle, void *const *params, void *const *extra,
                          bool is_cooperative, struct work **out)
{
    struct function *function, *own;
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = function_find(handle, &function);
    if (result == CUDA_SUCCESS)
        result = read_attributes(config, &is_cooperative);
    if (result == CUDA_SUCCESS)
        result = check_shape(function, config);
    if (result == CUDA_SUCCESS && is_cooperative)
        result = check_cooperative(function, config);
    if (result == CUDA_SUCCESS)
        result = function_in_context(function, context, &own);
    if (result == CUDA_SUCCESS)
        result = function_prepare(own);
    if (result != CUDA_SUCCESS)
        return result;
    struct work *work = work_new(WORK_GRID);
    unsigned char *arguments = work_room(work, function->entry->param_bytes);
    result = read_arguments(function->entry, params, extra, arguments);
    if (result != CUDA_SUCCESS) {
        work_discard(work);
        return result;
    }
    work->grid = (struct grid_work){
        .function = own,
        .blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
        .grid = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                 .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                 .dynamic_shared_bytes = config->sharedMemBytes,
                 .params = arguments,
                 .is_cooperative = is_cooperative},
    };
    *out = work;
    return CUDA_SUCCESS;
}

static CUresult launch(const CUlaunchConfig *config, CUfunction handle, void *const *params, void *const *extra,
                       bool is_cooperative)
{
    struct context *context;
    struct stream *stream;
    struct work *work;
    CUresult result = stream_enter(config->hStream, &context, &stream);
    /* Copies may go to another device's stream, kernels may not. */
    if (result == CUDA_SUCCESS && stream->context->device != context->device)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = launch_make_work(config, handle, params, extra, is_cooperative, &work);
    return result != CUDA_SUCCESS ? result : work_take(stream, work);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void **params, void **extra)
{
    CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, NULL, 0};
    return launch(&config, function, params, extra, false);
}

TWIN(cuLaunchKernel, _ptsz,
     (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
      unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params,
      void **extra),
     (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, per_thread(stream), params, extra))

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    return config == NULL ? CUDA_ERROR_INVALID_VALUE : launch(config, function, params, extra, false);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUlaunchConfig own = *config;
    own.hStream = per_thread(own.hStream);
    return launch(&own, function, params, extra, false);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                   unsigned int shared_bytes, CUstream stream, void **params)
{
    CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, NULL, 0};
    return launch(&config, function, params, NULL, true);
}

TWIN(cuLaunchCooperativeKernel, _ptsz,
     (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
      unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params),
     (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, per_thread(stream), params))
