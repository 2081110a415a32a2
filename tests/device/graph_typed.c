/* The calls that name a node's type: each fills the generic struct and goes on to the generic call. */
#include "tests/device/driver.h"
#include <string.h>

/* The kernel structs of the three versions begin alike, and so do those of the two versions of the others. */
#define CONVERT(name, type_name, member, of)                                                                           \
    static CUgraphNodeParams name(const of *params)                                                                    \
    {                                                                                                                  \
        CUgraphNodeParams all;                                                                                         \
        memset(&all, 0, sizeof all);                                                                                   \
        all.type = CU_GRAPH_NODE_TYPE_##type_name;                                                                     \
        memcpy(&all.member, params, sizeof *params);                                                                   \
        return all;                                                                                                    \
    }

CONVERT(kernel, KERNEL, kernel, CUDA_KERNEL_NODE_PARAMS_v1)
CONVERT(kernel_v2, KERNEL, kernel, CUDA_KERNEL_NODE_PARAMS)
CONVERT(copy, MEMCPY, memcpy.copyParams, CUDA_MEMCPY3D)
CONVERT(fill, MEMSET, memset, CUDA_MEMSET_NODE_PARAMS)
CONVERT(host, HOST, host, CUDA_HOST_NODE_PARAMS)

static CUgraphNodeParams values(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    all.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){params->ctx, params->count, params->paramArray, params->flags};
    return all;
}

static CUgraphNodeParams event_record(const CUevent *event)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    all.eventRecord.event = *event;
    return all;
}

static CUgraphNodeParams event_wait(const CUevent *event)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    all.eventWait.event = *event;
    return all;
}

static CUgraphNodeParams child(const CUgraph *graph)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    all.graph.graph = *graph;
    return all;
}

/* `what` points to the struct; `given` is false where it may be NULL and is. */
#define ADD(name, parameter, what, given, convert, ...)                                                                \
    CUresult name(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,                      \
                  parameter __VA_OPT__(, ) __VA_ARGS__)                                                                \
    {                                                                                                                  \
        if (!(given))                                                                                                  \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        CUgraphNodeParams all = convert(what);                                                                         \
        return cuGraphAddNode(out, graph, dependencies, count, &all);                                                  \
    }
#define SET(name, parameter, what, given, convert)                                                                     \
    CUresult name(CUgraphNode node, parameter)                                                                         \
    {                                                                                                                  \
        if (!(given))                                                                                                  \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        CUgraphNodeParams all = convert(what);                                                                         \
        return cuGraphNodeSetParams(node, &all);                                                                       \
    }
#define SET_EXEC(name, parameter, what, given, convert, ...)                                                           \
    CUresult name(CUgraphExec exec, CUgraphNode node, parameter __VA_OPT__(, ) __VA_ARGS__)                            \
    {                                                                                                                  \
        if (!(given))                                                                                                  \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        CUgraphNodeParams all = convert(what);                                                                         \
        return cuGraphExecNodeSetParams(exec, node, &all);                                                             \
    }

/* The context of a copy or set says where it runs: here that makes no difference. */
#define CONTEXT __attribute__((unused)) CUcontext context

ADD(cuGraphAddKernelNode, const CUDA_KERNEL_NODE_PARAMS_v1 *params, params, params != NULL, kernel)
ADD(cuGraphAddKernelNode_v2, const CUDA_KERNEL_NODE_PARAMS *params, params, params != NULL, kernel_v2)
ADD(cuGraphAddMemcpyNode, const CUDA_MEMCPY3D *params, params, params != NULL, copy, CONTEXT)
ADD(cuGraphAddMemsetNode, const CUDA_MEMSET_NODE_PARAMS *params, params, params != NULL, fill, CONTEXT)
ADD(cuGraphAddHostNode, const CUDA_HOST_NODE_PARAMS *params, params, params != NULL, host)
ADD(cuGraphAddBatchMemOpNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, params, params != NULL, values)
ADD(cuGraphAddEventRecordNode, CUevent event, &event, true, event_record)
ADD(cuGraphAddEventWaitNode, CUevent event, &event, true, event_wait)
ADD(cuGraphAddChildGraphNode, CUgraph graph_inside, &graph_inside, true, child)

SET(cuGraphKernelNodeSetParams, const CUDA_KERNEL_NODE_PARAMS_v1 *params, params, params != NULL, kernel)
SET(cuGraphKernelNodeSetParams_v2, const CUDA_KERNEL_NODE_PARAMS *params, params, params != NULL, kernel_v2)
SET(cuGraphMemcpyNodeSetParams, const CUDA_MEMCPY3D *params, params, params != NULL, copy)
SET(cuGraphMemsetNodeSetParams, const CUDA_MEMSET_NODE_PARAMS *params, params, params != NULL, fill)
SET(cuGraphHostNodeSetParams, const CUDA_HOST_NODE_PARAMS *params, params, params != NULL, host)
SET(cuGraphBatchMemOpNodeSetParams, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, params, params != NULL, values)
SET(cuGraphEventRecordNodeSetEvent, CUevent event, &event, true, event_record)
SET(cuGraphEventWaitNodeSetEvent, CUevent event, &event, true, event_wait)

SET_EXEC(cuGraphExecKernelNodeSetParams, const CUDA_KERNEL_NODE_PARAMS_v1 *params, params, params != NULL, kernel)
SET_EXEC(cuGraphExecKernelNodeSetParams_v2, const CUDA_KERNEL_NODE_PARAMS *params, params, params != NULL, kernel_v2)
SET_EXEC(cuGraphExecMemcpyNodeSetParams, const CUDA_MEMCPY3D *params, params, params != NULL, copy, CONTEXT)
SET_EXEC(cuGraphExecMemsetNodeSetParams, const CUDA_MEMSET_NODE_PARAMS *params, params, params != NULL, fill, CONTEXT)
SET_EXEC(cuGraphExecHostNodeSetParams, const CUDA_HOST_NODE_PARAMS *params, params, params != NULL, host)
SET_EXEC(cuGraphExecBatchMemOpNodeSetParams, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, params, params != NULL,
         values)
SET_EXEC(cuGraphExecEventRecordNodeSetEvent, CUevent event, &event, true, event_record)
SET_EXEC(cuGraphExecEventWaitNodeSetEvent, CUevent event, &event, true, event_wait)

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return cuGraphAddNode(out, graph, dependencies, count, &all);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    all.alloc = (CUDA_MEM_ALLOC_NODE_PARAMS_v2){params->poolProps, params->accessDescs, params->accessDescCount,
                                                params->bytesize, 0};
    CUresult result = cuGraphAddNode(out, graph, dependencies, count, &all);
    if (result == CUDA_SUCCESS)
        params->dptr = all.alloc.dptr;
    return result;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                               CUdeviceptr address)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
    all.free.dptr = address;
    return cuGraphAddNode(out, graph, dependencies, count, &all);
}
