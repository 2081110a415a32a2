/* Graphs and capture. Kernel nodes name host functions here and kernels in the driver; the rest is handed on. */
#include "tests/device/runtime/runtime.h"

FORWARD(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
        cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode))
FORWARD(cudaStreamBeginCapture_ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
        cuStreamBeginCapture_v2_ptsz(stream, (CUstreamCaptureMode)mode))
FORWARD(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), cuStreamEndCapture(stream, graph))
FORWARD(cudaStreamEndCapture_ptsz, (cudaStream_t stream, cudaGraph_t *graph), cuStreamEndCapture_ptsz(stream, graph))
FORWARD(cudaStreamBeginCaptureToGraph,
        (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *after, const cudaGraphEdgeData *edges,
         size_t count, enum cudaStreamCaptureMode mode),
        cuStreamBeginCaptureToGraph(stream, graph, after, (const CUgraphEdgeData *)edges, count,
                                    (CUstreamCaptureMode)mode))
FORWARD(cudaStreamBeginCaptureToGraph_ptsz,
        (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *after, const cudaGraphEdgeData *edges,
         size_t count, enum cudaStreamCaptureMode mode),
        cuStreamBeginCaptureToGraph_ptsz(stream, graph, after, (const CUgraphEdgeData *)edges, count,
                                         (CUstreamCaptureMode)mode))
FORWARD(cudaStreamGetCaptureInfo,
        (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
         const cudaGraphNode_t **after, const cudaGraphEdgeData **edges, size_t *count),
        cuStreamGetCaptureInfo_v3(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph, after,
                                  (const CUgraphEdgeData **)edges, count))
FORWARD(cudaStreamGetCaptureInfo_ptsz,
        (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
         const cudaGraphNode_t **after, const cudaGraphEdgeData **edges, size_t *count),
        cuStreamGetCaptureInfo_v3_ptsz(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph, after,
                                       (const CUgraphEdgeData **)edges, count))
FORWARD(cudaStreamUpdateCaptureDependencies,
        (cudaStream_t stream, cudaGraphNode_t *after, const cudaGraphEdgeData *edges, size_t count, unsigned int flags),
        cuStreamUpdateCaptureDependencies_v2(stream, after, (const CUgraphEdgeData *)edges, count, flags))
FORWARD(cudaStreamUpdateCaptureDependencies_ptsz,
        (cudaStream_t stream, cudaGraphNode_t *after, const cudaGraphEdgeData *edges, size_t count, unsigned int flags),
        cuStreamUpdateCaptureDependencies_v2_ptsz(stream, after, (const CUgraphEdgeData *)edges, count, flags))
_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "the edges' data differ");
FORWARD_LOADED(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),
               cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))
FORWARD(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags), cuGraphCreate(graph, flags))
FORWARD_LOADED(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy(graph))
FORWARD_LOADED(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), cuGraphClone(clone, graph))
FORWARD_LOADED(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
               cuGraphGetNodes(graph, nodes, count))

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    cudaError_t error = runtime_load();
    if (error != cudaSuccess)
        return error;
    _Static_assert((int)cudaGraphNodeTypeWaitEvent == (int)CU_GRAPH_NODE_TYPE_WAIT_EVENT, "the node types differ");
    return runtime_result(driver.cuGraphNodeGetType(node, (CUgraphNodeType *)type));
}

FORWARD(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        cuGraphInstantiateWithFlags(exec, graph, flags))

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

FORWARD_LOADED(cudaGraphExecDestroy, (cudaGraphExec_t exec), cuGraphExecDestroy(exec))

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    _Static_assert(sizeof *info == sizeof(CUgraphExecUpdateResultInfo), "the update results differ");
    return runtime_result(driver.cuGraphExecUpdate_v2(exec, graph, (CUgraphExecUpdateResultInfo *)info));
}

FORWARD(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphLaunch(exec, stream))
FORWARD(cudaGraphLaunch_ptsz, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphLaunch_ptsz(exec, stream))
FORWARD(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphUpload(exec, stream))

cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream)
{
    return cudaGraphUpload(exec, stream == NULL ? cudaStreamPerThread : stream);
}

cudaError_t runtime_kernel_node(const struct cudaKernelNodeParams *params, CUDA_KERNEL_NODE_PARAMS *out)
{
    CUkernel kernel = NULL;
    if (params == NULL)
        return cudaErrorInvalidValue;
    cudaError_t error = registered_kernel(params->func, &kernel);
    *out = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)kernel,
                                     .gridDimX = params->gridDim.x,
                                     .gridDimY = params->gridDim.y,
                                     .gridDimZ = params->gridDim.z,
                                     .blockDimX = params->blockDim.x,
                                     .blockDimY = params->blockDim.y,
                                     .blockDimZ = params->blockDim.z,
                                     .sharedMemBytes = params->sharedMemBytes,
                                     .kernelParams = params->kernelParams,
                                     .extra = params->extra};
    return error;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = runtime_kernel_node(params, &kernel);
    if (error != cudaSuccess)
        return runtime_record(error);
    return runtime_result(driver.cuGraphAddKernelNode_v2(node, graph, dependencies, count, &kernel));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = runtime_kernel_node(params, &kernel);
    if (error != cudaSuccess)
        return runtime_record(error);
    return runtime_result(driver.cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D box;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = runtime_box(params, &box);
    if (error != cudaSuccess)
        return runtime_record(error);
    return runtime_result(driver.cuGraphAddMemcpyNode(node, graph, dependencies, count, &box, NULL));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                     size_t count, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct cudaMemcpy3DParms params = {.srcPtr = {(void *)from, bytes, bytes, 1},
                                       .dstPtr = {to, bytes, bytes, 1},
                                       .extent = {bytes, 1, 1},
                                       .kind = kind};
    return cudaGraphAddMemcpyNode(node, graph, dependencies, count, &params);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaMemsetParams *params)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (params == NULL)
        return runtime_record(cudaErrorInvalidValue);
    CUDA_MEMSET_NODE_PARAMS set = {(CUdeviceptr)params->dst, params->pitch, params->value,
                                   params->elementSize,      params->width, params->height};
    return runtime_result(driver.cuGraphAddMemsetNode(node, graph, dependencies, count, &set, NULL));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                 size_t count, const struct cudaHostNodeParams *params)
{
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (params == NULL)
        return runtime_record(cudaErrorInvalidValue);
    CUDA_HOST_NODE_PARAMS host = {params->fn, params->userData};
    return runtime_result(driver.cuGraphAddHostNode(node, graph, dependencies, count, &host));
}

FORWARD(cudaGraphAddEmptyNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count),
        cuGraphAddEmptyNode(node, graph, dependencies, count))
FORWARD(cudaGraphAddChildGraphNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
         cudaGraph_t child),
        cuGraphAddChildGraphNode(node, graph, dependencies, count, child))
