#include "shim/launch.h"

#include "shim/driver.h"

#include <string.h>

#include "shim/inside.h"

static CUresult issue_launch(const struct operation *operation, const unsigned char *arguments)
{
    const CUlaunchConfig *config = &operation->config;
    size_t bytes = operation->argument_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    void **form = bytes ? extra : NULL;
    CUfunction function = operation->facts->function;
    if (config->numAttrs == 0) /* older drivers have only this one */
        return driver.cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                                     config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream,
                                     NULL, form);
    return driver.cuLaunchKernelEx(config, function, NULL, form);
}

static CUresult issue_copy_now(const struct copy_arguments *copy, bool is_per_thread)
{
    switch (copy->direction) {
    case COPY_HOST_TO_DEVICE:
        return (is_per_thread ? driver.cuMemcpyHtoD_v2_ptds
                              : driver.cuMemcpyHtoD_v2)(copy->destination, (const void *)copy->source, copy->bytes);
    case COPY_DEVICE_TO_HOST:
        return (is_per_thread ? driver.cuMemcpyDtoH_v2_ptds : driver.cuMemcpyDtoH_v2)((void *)copy->destination,
                                                                                      copy->source, copy->bytes);
    default:
        return (is_per_thread ? driver.cuMemcpyDtoD_v2_ptds : driver.cuMemcpyDtoD_v2)(copy->destination, copy->source,
                                                                                      copy->bytes);
    }
}

static CUresult issue_copy(const struct copy_arguments *copy, CUstream stream)
{
    if (copy->is_synchronous)
        return issue_copy_now(copy, stream == CU_STREAM_PER_THREAD);
    switch (copy->direction) {
    case COPY_HOST_TO_DEVICE:
        return driver.cuMemcpyHtoDAsync_v2(copy->destination, (const void *)copy->source, copy->bytes, stream);
    case COPY_DEVICE_TO_HOST:
        return driver.cuMemcpyDtoHAsync_v2((void *)copy->destination, copy->source, copy->bytes, stream);
    default:
        return driver.cuMemcpyDtoDAsync_v2(copy->destination, copy->source, copy->bytes, stream);
    }
}

static CUresult issue_set_rows(const struct set_arguments *set, CUstream stream)
{
    bool is_per_thread = stream == CU_STREAM_PER_THREAD;
    CUdeviceptr at = set->destination;
    size_t pitch = set->pitch, width = set->width, height = set->height;
    switch (set->element_bytes) {
    case 1: {
        unsigned char value = (unsigned char)set->value;
        if (!set->is_synchronous)
            return driver.cuMemsetD2D8Async(at, pitch, value, width, height, stream);
        return (is_per_thread ? driver.cuMemsetD2D8_v2_ptds : driver.cuMemsetD2D8_v2)(at, pitch, value, width, height);
    }
    case 2: {
        unsigned short value = (unsigned short)set->value;
        if (!set->is_synchronous)
            return driver.cuMemsetD2D16Async(at, pitch, value, width, height, stream);
        return (is_per_thread ? driver.cuMemsetD2D16_v2_ptds : driver.cuMemsetD2D16_v2)(at, pitch, value, width,
                                                                                        height);
    }
    default:
        if (!set->is_synchronous)
            return driver.cuMemsetD2D32Async(at, pitch, set->value, width, height, stream);
        return (is_per_thread ? driver.cuMemsetD2D32_v2_ptds : driver.cuMemsetD2D32_v2)(at, pitch, set->value, width,
                                                                                        height);
    }
}

static CUresult issue_set(const struct set_arguments *set, CUstream stream)
{
    bool is_per_thread = stream == CU_STREAM_PER_THREAD;
    CUdeviceptr at = set->destination;
    size_t count = set->width;
    switch (set->element_bytes) {
    case 1: {
        unsigned char value = (unsigned char)set->value;
        if (!set->is_synchronous)
            return driver.cuMemsetD8Async(at, value, count, stream);
        return (is_per_thread ? driver.cuMemsetD8_v2_ptds : driver.cuMemsetD8_v2)(at, value, count);
    }
    case 2: {
        unsigned short value = (unsigned short)set->value;
        if (!set->is_synchronous)
            return driver.cuMemsetD16Async(at, value, count, stream);
        return (is_per_thread ? driver.cuMemsetD16_v2_ptds : driver.cuMemsetD16_v2)(at, value, count);
    }
    default:
        if (!set->is_synchronous)
            return driver.cuMemsetD32Async(at, set->value, count, stream);
        return (is_per_thread ? driver.cuMemsetD32_v2_ptds : driver.cuMemsetD32_v2)(at, set->value, count);
    }
}

CUresult launch_issue(const struct operation *operation, const unsigned char *arguments)
{
    if (operation->kind == OPERATION_LAUNCH)
        return issue_launch(operation, arguments);
    if (operation->kind == OPERATION_COPY) {
        struct copy_arguments copy;
        memcpy(&copy, arguments, sizeof copy);
        return issue_copy(&copy, operation->stream);
    }
    struct set_arguments set;
    memcpy(&set, arguments, sizeof set);
    return set.pitch ? issue_set_rows(&set, operation->stream) : issue_set(&set, operation->stream);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

static uint64_t mix_launch(uint64_t hash, const struct operation *operation)
{
    const CUlaunchConfig *config = &operation->config;
    uint64_t grid = mix(mix(hash, (uint64_t)config->gridDimX << 32 | config->gridDimY),
                        (uint64_t)config->gridDimZ << 32 | operation->argument_bytes);
    uint64_t block = mix(mix(~hash, (uint64_t)config->blockDimX << 32 | config->blockDimY),
                         (uint64_t)config->blockDimZ << 32 | config->sharedMemBytes);
    return mix(grid + block, (uintptr_t)operation->facts); /* two chains side by side, then one */
}

uint64_t launch_signature(const struct operation *operation)
{
    uint64_t hash = mix(0x9e3779b97f4a7c15u, operation->kind);
    if (operation->kind == OPERATION_LAUNCH)
        return mix_launch(hash, operation);
    if (operation->kind == OPERATION_COPY) {
        struct copy_arguments copy;
        memcpy(&copy, operation->arguments, sizeof copy);
        return mix(mix(hash, copy.direction), copy.bytes);
    }
    struct set_arguments set;
    memcpy(&set, operation->arguments, sizeof set);
    return mix(mix(mix(mix(hash, set.element_bytes), set.pitch), set.width), set.height);
}

/* Words of the block that may be addresses: all of a kernel's, the first two of a copy, the first of a set. */
static uint32_t address_words(const struct operation *operation)
{
    uint32_t words = operation->argument_bytes / sizeof(uint64_t);
    uint32_t most = operation->kind == OPERATION_LAUNCH ? words : operation->kind == OPERATION_COPY ? 2 : 1;
    return words < most ? words : most;
}

/* Packed structs hold pointers at any byte; where the code cannot be read, a struct is known by its size. */
static uint32_t address_step(const struct operation *operation)
{
    if (operation->kind != OPERATION_LAUNCH || !operation->facts->has_unaligned_params)
        return sizeof(uint64_t);
    return operation->facts->is_readable ? 1 : 4;
}

bool launch_find_uses(struct operation *operation, CUdeviceptr arena_begin, CUdeviceptr arena_end)
{
    uint64_t span = arena_end - arena_begin;
    uint32_t count = 0, bytes = address_words(operation) * (uint32_t)sizeof(uint64_t), step = address_step(operation);
    if (step < sizeof(uint64_t)) /* the last pointer of a packed struct may end where the block ends */
        bytes = operation->argument_bytes;
    for (uint32_t at = 0; at + sizeof(uint64_t) <= bytes; at += step) {
        uint64_t word;
        memcpy(&word, operation->arguments + at, sizeof word);
        if (__builtin_expect(word - arena_begin >= span, 1))
            continue;
        if (count == LAUNCH_MAX_USES) {
            operation->use_count = count;
            return false;
        }
        operation->uses[count++] = (struct use){at, word};
    }
    operation->use_count = count;
    return true;
}
