/* Graphs made node by node: what a node touches stays where it is, because the graph holds its address. (Nodes that
 * come from capture pass through the launch and copy hooks.) */
#include "shim/hook.h"

#include "shim/arguments.h"
#include "shim/outside.h"
#include "shim/touch.h"

#include "shim/inside.h"

static const char reason[] = "a graph holds its address";

static CUresult forward_nothing(void *call)
{
    (void)call;
    return CUDA_SUCCESS;
}

/* A node whose arguments cannot be read may touch anything: the engine is told of an opaque operation. */
static CUresult pin_anything(CUfunction function)
{
    struct use no_use = {0};
    unsigned char no_argument = 0;
    struct operation operation = {
        .kind = OPERATION_LAUNCH,
        .stream = CU_STREAM_LEGACY,
        .arguments = &no_argument,
        .uses = &no_use,
        .facts = launch_facts(function),
        .is_opaque = true,
        .is_captured = true,
        .forward = forward_nothing,
    };
    return engine_submit(&operation);
}

static CUresult pin_kernel(CUfunction function, CUkernel kernel, void **parameters, void **extra)
{
    CUfunction handle = function ? function : (CUfunction)kernel;
    bool is_read = true;
    if (handle == NULL)
        return CUDA_SUCCESS;
    CUresult result = arguments_pin(handle, parameters, extra, reason, &is_read);
    return is_read || result != CUDA_SUCCESS ? result : pin_anything(handle);
}

static CUresult pin_kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *node)
{
    return node ? pin_kernel(node->func, NULL, node->kernelParams, node->extra) : CUDA_SUCCESS;
}

static CUresult pin_kernel_v2(const CUDA_KERNEL_NODE_PARAMS *node)
{
    return node ? pin_kernel(node->func, node->kern, node->kernelParams, node->extra) : CUDA_SUCCESS;
}

static CUresult pin_copy(const CUDA_MEMCPY3D *copy)
{
    return copy ? touch_copy_3d(copy) : CUDA_SUCCESS;
}

static CUresult pin_set(const CUDA_MEMSET_NODE_PARAMS *node)
{
    return node ? engine_pin(node->dst, reason) : CUDA_SUCCESS;
}

static CUresult pin_operations(const CUDA_BATCH_MEM_OP_NODE_PARAMS *node)
{
    return node ? touch_memory_operations(node->paramArray, node->count) : CUDA_SUCCESS;
}

static CUresult pin_any(const CUgraphNodeParams *node)
{
    if (node == NULL)
        return CUDA_SUCCESS;
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return pin_kernel(node->kernel.func, node->kernel.kern, node->kernel.kernelParams, node->kernel.extra);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return touch_copy_3d(&node->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return engine_pin(node->memset.dst, reason);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return touch_memory_operations(node->memOp.paramArray, node->memOp.count);
    default:
        return CUDA_SUCCESS;
    }
}

/* Whole functions; `pinned` is the result of pinning. */
#define PIN(name, parameters, arguments, pinned)                                                                       \
    CUresult hook_##name parameters                                                                                    \
    {                                                                                                                  \
        if (!gate_enter())                                                                                             \
            return driver.name arguments;                                                                              \
        CUresult result = pinned;                                                                                      \
        if (result == CUDA_SUCCESS)                                                                                    \
            result = driver.name arguments;                                                                            \
        return gate_leave(result);                                                                                     \
    }

#define ADD(name, type, pin)                                                                                           \
    PIN(name, (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, const type *what),           \
        (node, graph, after, count, what), pin(what))
#define ADD_IN_CONTEXT(name, type, pin)                                                                                \
    PIN(name,                                                                                                          \
        (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, const type *what,                  \
         CUcontext context),                                                                                           \
        (node, graph, after, count, what, context), pin(what))
#define SET(name, type, pin) PIN(name, (CUgraphNode node, const type *what), (node, what), pin(what))
#define SET_EXEC(name, type, pin)                                                                                      \
    PIN(name, (CUgraphExec exec, CUgraphNode node, const type *what), (exec, node, what), pin(what))
#define SET_EXEC_IN_CONTEXT(name, type, pin)                                                                           \
    PIN(name, (CUgraphExec exec, CUgraphNode node, const type *what, CUcontext context), (exec, node, what, context),  \
        pin(what))

ADD(cuGraphAddKernelNode, CUDA_KERNEL_NODE_PARAMS_v1, pin_kernel_v1)
ADD(cuGraphAddKernelNode_v2, CUDA_KERNEL_NODE_PARAMS, pin_kernel_v2)
SET(cuGraphKernelNodeSetParams, CUDA_KERNEL_NODE_PARAMS_v1, pin_kernel_v1)
SET(cuGraphKernelNodeSetParams_v2, CUDA_KERNEL_NODE_PARAMS, pin_kernel_v2)
SET_EXEC(cuGraphExecKernelNodeSetParams, CUDA_KERNEL_NODE_PARAMS_v1, pin_kernel_v1)
SET_EXEC(cuGraphExecKernelNodeSetParams_v2, CUDA_KERNEL_NODE_PARAMS, pin_kernel_v2)
ADD_IN_CONTEXT(cuGraphAddMemcpyNode, CUDA_MEMCPY3D, pin_copy)
SET(cuGraphMemcpyNodeSetParams, CUDA_MEMCPY3D, pin_copy)
SET_EXEC_IN_CONTEXT(cuGraphExecMemcpyNodeSetParams, CUDA_MEMCPY3D, pin_copy)
ADD_IN_CONTEXT(cuGraphAddMemsetNode, CUDA_MEMSET_NODE_PARAMS, pin_set)
SET(cuGraphMemsetNodeSetParams, CUDA_MEMSET_NODE_PARAMS, pin_set)
SET_EXEC_IN_CONTEXT(cuGraphExecMemsetNodeSetParams, CUDA_MEMSET_NODE_PARAMS, pin_set)
ADD(cuGraphAddBatchMemOpNode, CUDA_BATCH_MEM_OP_NODE_PARAMS, pin_operations)
SET(cuGraphBatchMemOpNodeSetParams, CUDA_BATCH_MEM_OP_NODE_PARAMS, pin_operations)
SET_EXEC(cuGraphExecBatchMemOpNodeSetParams, CUDA_BATCH_MEM_OP_NODE_PARAMS, pin_operations)

PIN(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams *what), (node, what), pin_any(what))
PIN(cuGraphExecNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *what), (exec, node, what),
    pin_any(what))

/* A node that allocates is charged before, and gives the charge back if the driver refuses it. */
static size_t charged_bytes(const CUgraphNodeParams *what)
{
    return what && what->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? what->alloc.bytesize : 0;
}

static CUresult prepare(const CUgraphNodeParams *what)
{
    CUresult result = pin_any(what);
    size_t bytes = charged_bytes(what);
    return result == CUDA_SUCCESS && bytes ? engine_charge(bytes, "memory of a graph") : result;
}

static CUresult finish(CUresult result, size_t bytes)
{
    if (bytes && (result != CUDA_SUCCESS || !outside_add(OUTSIDE_GRAPHS, 0, bytes)))
        engine_refund(bytes);
    return result;
}

CUresult hook_cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                             CUgraphNodeParams *what)
{
    if (!gate_enter())
        return driver.cuGraphAddNode(node, graph, after, count, what);
    size_t bytes = charged_bytes(what);
    CUresult result = prepare(what);
    if (result == CUDA_SUCCESS)
        result = finish(driver.cuGraphAddNode(node, graph, after, count, what), bytes);
    return gate_leave(result);
}

CUresult hook_cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *what)
{
    if (!gate_enter())
        return driver.cuGraphAddNode_v2(node, graph, after, edges, count, what);
    size_t bytes = charged_bytes(what);
    CUresult result = prepare(what);
    if (result == CUDA_SUCCESS)
        result = finish(driver.cuGraphAddNode_v2(node, graph, after, edges, count, what), bytes);
    return gate_leave(result);
}
