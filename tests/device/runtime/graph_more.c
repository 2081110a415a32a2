/* The rest of the graph calls: the driver's structs, under the runtime's names. */
#include "tests/device/runtime/runtime.h"
#include <string.h>

#define SAME_SIZE(one, other) _Static_assert(sizeof(one) == sizeof(other), #one " and " #other " differ")

SAME_SIZE(struct cudaMemAllocNodeParams, CUDA_MEM_ALLOC_NODE_PARAMS);
SAME_SIZE(struct cudaHostNodeParams, CUDA_HOST_NODE_PARAMS);
SAME_SIZE(struct cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS);
SAME_SIZE(cudaGraphEdgeData, CUgraphEdgeData);
SAME_SIZE(struct cudaGraphNodeParams, CUgraphNodeParams);
SAME_SIZE(cudaGraphInstantiateParams, CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME_SIZE(cudaLaunchAttributeValue, CUlaunchAttributeValue);

/* ---- shape ---- */

FORWARD_LOADED(cudaGraphAddDependencies,
               (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                const cudaGraphEdgeData *edges, size_t count),
               cuGraphAddDependencies_v2(graph, from, to, (const CUgraphEdgeData *)edges, count))
FORWARD_LOADED(cudaGraphRemoveDependencies,
               (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                const cudaGraphEdgeData *edges, size_t count),
               cuGraphRemoveDependencies_v2(graph, from, to, (const CUgraphEdgeData *)edges, count))
FORWARD_LOADED(cudaGraphGetEdges,
               (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges, size_t *count),
               cuGraphGetEdges_v2(graph, from, to, (CUgraphEdgeData *)edges, count))
FORWARD_LOADED(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
               cuGraphGetRootNodes(graph, nodes, count))
FORWARD_LOADED(cudaGraphNodeGetDependencies,
               (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *count),
               cuGraphNodeGetDependencies_v2(node, nodes, (CUgraphEdgeData *)edges, count))
FORWARD_LOADED(cudaGraphNodeGetDependentNodes,
               (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *count),
               cuGraphNodeGetDependentNodes_v2(node, nodes, (CUgraphEdgeData *)edges, count))
FORWARD_LOADED(cudaGraphNodeFindInClone, (cudaGraphNode_t * out, cudaGraphNode_t node, cudaGraph_t clone),
               cuGraphNodeFindInClone(out, node, clone))
FORWARD_LOADED(cudaGraphDestroyNode, (cudaGraphNode_t node), cuGraphDestroyNode(node))
FORWARD_LOADED(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t *graph),
               cuGraphChildGraphNodeGetGraph(node, graph))
FORWARD_LOADED(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned int flags),
               cuGraphDebugDotPrint(graph, path, flags))
FORWARD(cudaGraphInstantiateWithParams, (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params),
        cuGraphInstantiateWithParams(exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)params))
FORWARD(cudaGraphInstantiateWithParams_ptsz,
        (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params),
        cuGraphInstantiateWithParams(exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)params))
FORWARD_LOADED(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long *flags),
               cuGraphExecGetFlags(exec, (cuuint64_t *)flags))
FORWARD_LOADED(cudaGraphNodeSetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int is_enabled),
               cuGraphNodeSetEnabled(exec, node, is_enabled))
FORWARD_LOADED(cudaGraphNodeGetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int *is_enabled),
               cuGraphNodeGetEnabled(exec, node, is_enabled))
FORWARD(cudaGraphExecChildGraphNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t graph),
        cuGraphExecChildGraphNodeSetParams(exec, node, graph))

/* ---- memory ---- */

FORWARD(cudaGraphAddMemAllocNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
         struct cudaMemAllocNodeParams *params),
        cuGraphAddMemAllocNode(node, graph, dependencies, count, (CUDA_MEM_ALLOC_NODE_PARAMS *)params))
FORWARD(cudaGraphAddMemFreeNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count, void *memory),
        cuGraphAddMemFreeNode(node, graph, dependencies, count, (CUdeviceptr)memory))
FORWARD_LOADED(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, struct cudaMemAllocNodeParams *params),
               cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)params))
FORWARD_LOADED(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void *out),
               cuGraphMemFreeNodeGetParams(node, (CUdeviceptr *)out))
FORWARD_LOADED(cudaDeviceGraphMemTrim, (int device), cuDeviceGraphMemTrim(device))
FORWARD_LOADED(cudaDeviceGetGraphMemAttribute, (int device, enum cudaGraphMemAttributeType attribute, void *value),
               cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, value))
FORWARD_LOADED(cudaDeviceSetGraphMemAttribute, (int device, enum cudaGraphMemAttributeType attribute, void *value),
               cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, value))

/* ---- events ---- */

FORWARD(cudaGraphAddEventRecordNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
         cudaEvent_t event),
        cuGraphAddEventRecordNode(node, graph, dependencies, count, event))
FORWARD(cudaGraphAddEventWaitNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
         cudaEvent_t event),
        cuGraphAddEventWaitNode(node, graph, dependencies, count, event))
FORWARD_LOADED(cudaGraphEventRecordNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event),
               cuGraphEventRecordNodeGetEvent(node, event))
FORWARD_LOADED(cudaGraphEventWaitNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event),
               cuGraphEventWaitNodeGetEvent(node, event))
FORWARD(cudaGraphEventRecordNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        cuGraphEventRecordNodeSetEvent(node, event))
FORWARD(cudaGraphEventWaitNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        cuGraphEventWaitNodeSetEvent(node, event))
FORWARD(cudaGraphExecEventRecordNodeSetEvent, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
        cuGraphExecEventRecordNodeSetEvent(exec, node, event))
FORWARD(cudaGraphExecEventWaitNodeSetEvent, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
        cuGraphExecEventWaitNodeSetEvent(exec, node, event))

/* ---- sets, host functions, copies ---- */

FORWARD_LOADED(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, struct cudaHostNodeParams *params),
               cuGraphHostNodeGetParams(node, (CUDA_HOST_NODE_PARAMS *)params))
FORWARD(cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const struct cudaHostNodeParams *params),
        cuGraphHostNodeSetParams(node, (const CUDA_HOST_NODE_PARAMS *)params))
FORWARD(cudaGraphExecHostNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *params),
        cuGraphExecHostNodeSetParams(exec, node, (const CUDA_HOST_NODE_PARAMS *)params))

/* The driver's struct holds the value before the element size, the runtime's too; both begin with address and pitch. */
_Static_assert(offsetof(struct cudaMemsetParams, value) == offsetof(CUDA_MEMSET_NODE_PARAMS, value) &&
                   offsetof(struct cudaMemsetParams, width) == offsetof(CUDA_MEMSET_NODE_PARAMS, width),
               "the structs of sets differ");
FORWARD_LOADED(cudaGraphMemsetNodeGetParams, (cudaGraphNode_t node, struct cudaMemsetParams *params),
               cuGraphMemsetNodeGetParams(node, (CUDA_MEMSET_NODE_PARAMS *)params))
FORWARD(cudaGraphMemsetNodeSetParams, (cudaGraphNode_t node, const struct cudaMemsetParams *params),
        cuGraphMemsetNodeSetParams(node, (const CUDA_MEMSET_NODE_PARAMS *)params))
FORWARD(cudaGraphExecMemsetNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemsetParams *params),
        cuGraphExecMemsetNodeSetParams(exec, node, (const CUDA_MEMSET_NODE_PARAMS *)params, NULL))

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D box;
    cudaError_t error = runtime_enter();
    if (error == cudaSuccess)
        error = runtime_record(runtime_box(params, &box));
    return error != cudaSuccess ? error : runtime_result(driver.cuGraphMemcpyNodeSetParams(node, &box));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D box;
    cudaError_t error = runtime_enter();
    if (error == cudaSuccess)
        error = runtime_record(runtime_box(params, &box));
    return error != cudaSuccess ? error : runtime_result(driver.cuGraphExecMemcpyNodeSetParams(exec, node, &box, NULL));
}

static struct cudaMemcpy3DParms row_of(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return (struct cudaMemcpy3DParms){.srcPtr = {(void *)from, bytes, bytes, 1},
                                      .dstPtr = {to, bytes, bytes, 1},
                                      .extent = {bytes, 1, 1},
                                      .kind = kind};
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                           enum cudaMemcpyKind kind)
{
    struct cudaMemcpy3DParms params = row_of(to, from, bytes, kind);
    return cudaGraphMemcpyNodeSetParams(node, &params);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
                                               size_t bytes, enum cudaMemcpyKind kind)
{
    struct cudaMemcpy3DParms params = row_of(to, from, bytes, kind);
    return cudaGraphExecMemcpyNodeSetParams(exec, node, &params);
}

/* ---- kernels and generic nodes ---- */

FORWARD_LOADED(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t to, cudaGraphNode_t from),
               cuGraphKernelNodeCopyAttributes(to, from))
FORWARD_LOADED(cudaGraphKernelNodeSetAttribute,
               (cudaGraphNode_t node, cudaLaunchAttributeID id, const cudaLaunchAttributeValue *value),
               cuGraphKernelNodeSetAttribute(node, (CUlaunchAttributeID)id, (const CUlaunchAttributeValue *)value))
FORWARD_LOADED(cudaGraphKernelNodeGetAttribute,
               (cudaGraphNode_t node, cudaLaunchAttributeID id, cudaLaunchAttributeValue *value),
               cuGraphKernelNodeGetAttribute(node, (CUlaunchAttributeID)id, (CUlaunchAttributeValue *)value))

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = runtime_enter();
    if (error == cudaSuccess)
        error = runtime_record(runtime_kernel_node(params, &kernel));
    return error != cudaSuccess ? error : runtime_result(driver.cuGraphKernelNodeSetParams_v2(node, &kernel));
}

/* The driver's form of generic parameters: a kernel is named by its host function here, a copy by the runtime's box. */
static cudaError_t generic(const struct cudaGraphNodeParams *params, CUgraphNodeParams *out)
{
    if (params == NULL)
        return cudaErrorInvalidValue;
    memcpy(out, params, sizeof *out);
    if (params->type == cudaGraphNodeTypeKernel) {
        CUkernel kernel = NULL;
        cudaError_t error = registered_kernel(params->kernel.func, &kernel);
        out->kernel.func = (CUfunction)kernel;
        out->kernel.kern = NULL;
        out->kernel.ctx = NULL;
        return error;
    }
    if (params->type == cudaGraphNodeTypeMemcpy) {
        memset(&out->memcpy, 0, sizeof out->memcpy);
        return runtime_box(&params->memcpy.copyParams, &out->memcpy.copyParams);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                             const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams all;
    cudaError_t error = runtime_enter();
    if (error == cudaSuccess)
        error = runtime_record(generic(params, &all));
    if (error != cudaSuccess)
        return error;
    error = runtime_result(
        driver.cuGraphAddNode_v2(node, graph, dependencies, (const CUgraphEdgeData *)edges, count, &all));
    if (error == cudaSuccess && params->type == cudaGraphNodeTypeMemAlloc)
        params->alloc.dptr = (void *)all.alloc.dptr;
    return error;
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams all;
    cudaError_t error = runtime_enter();
    if (error == cudaSuccess)
        error = runtime_record(generic(params, &all));
    return error != cudaSuccess ? error : runtime_result(driver.cuGraphNodeSetParams(node, &all));
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams all;
    cudaError_t error = runtime_enter();
    if (error == cudaSuccess)
        error = runtime_record(generic(params, &all));
    return error != cudaSuccess ? error : runtime_result(driver.cuGraphExecNodeSetParams(exec, node, &all));
}

/* ---- objects that graphs keep ---- */

FORWARD_LOADED(cudaUserObjectCreate,
               (cudaUserObject_t * out, void *data, cudaHostFn_t destroy, unsigned int references, unsigned int flags),
               cuUserObjectCreate(out, data, destroy, references, flags))
FORWARD_LOADED(cudaUserObjectRetain, (cudaUserObject_t object, unsigned int count), cuUserObjectRetain(object, count))
FORWARD_LOADED(cudaUserObjectRelease, (cudaUserObject_t object, unsigned int count), cuUserObjectRelease(object, count))
FORWARD_LOADED(cudaGraphRetainUserObject,
               (cudaGraph_t graph, cudaUserObject_t object, unsigned int count, unsigned int flags),
               cuGraphRetainUserObject(graph, object, count, flags))
FORWARD_LOADED(cudaGraphReleaseUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned int count),
               cuGraphReleaseUserObject(graph, object, count))
