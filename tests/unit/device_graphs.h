/* What the tests of graphs share: a module, 16 words of device memory, a stream, and nodes that write a word or copy
 * it. */
#pragma once
#include "tests/unit/device_fixture.h"
#include "tests/unit/device_kernels.h"

static CUmodule module;
static CUdeviceptr words; /* 16 of them */
static CUstream stream;

static inline int begin(void **state)
{
    if (start_device(state) != 0 || cuModuleLoadData(&module, test_ptx) != CUDA_SUCCESS ||
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return -1;
    return cuMemAlloc_v2(&words, 64) == CUDA_SUCCESS ? 0 : -1;
}

static inline int clear(void **state)
{
    (void)state;
    /* The stream of these tests does not wait for the legacy one. */
    bool is_clear = cuMemsetD32_v2(words, 0, 16) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS;
    return is_clear && cuDeviceGraphMemTrim(0) == CUDA_SUCCESS ? 0 : -1;
}

static inline uint32_t word_at(CUdeviceptr address)
{
    uint32_t value = 0;
    succeeds(cuMemcpyDtoH_v2(&value, address, 4));
    return value;
}

static inline CUfunction function(const char *name)
{
    CUfunction found;
    succeeds(cuModuleGetFunction(&found, module, name));
    return found;
}

static inline CUgraph new_graph(void)
{
    CUgraph graph;
    succeeds(cuGraphCreate(&graph, 0));
    return graph;
}

/* *address = value, after `dependency` (NULL: none). */
static inline CUgraphNode add_store(CUgraph graph, CUgraphNode dependency, CUdeviceptr address, uint32_t value)
{
    void *params[] = {&address, &value};
    CUDA_KERNEL_NODE_PARAMS node = {.func = function("store"),
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = params};
    CUgraphNode added;
    succeeds(cuGraphAddKernelNode_v2(&added, graph, &dependency, dependency != NULL, &node));
    return added;
}

static inline CUgraphNode add_copy(CUgraph graph, CUgraphNode dependency, CUdeviceptr to, CUdeviceptr from)
{
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = to,
                         .WidthInBytes = 4,
                         .Height = 1,
                         .Depth = 1};
    CUgraphNode added;
    succeeds(cuGraphAddMemcpyNode(&added, graph, &dependency, dependency != NULL, &box, NULL));
    return added;
}

static inline CUgraphExec instantiate(CUgraph graph, unsigned long long flags)
{
    CUgraphExec exec;
    succeeds(cuGraphInstantiateWithFlags(&exec, graph, flags));
    return exec;
}

static inline void run(CUgraphExec exec)
{
    succeeds(cuGraphLaunch(exec, stream));
    succeeds(cuStreamSynchronize(stream));
}
