#include "tests/device/driver.h"
#include "tests/device/graph_node.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"
#include "tests/device/event.h"
#include "tests/device/launch.h"
#include "tests/device/module.h"
#include <stdlib.h>
#include <string.h>

static CUresult make_kernel(const CUDA_KERNEL_NODE_PARAMS_v3 *params, struct work **work)
{
    CUfunction function = params->func != NULL ? params->func : (CUfunction)params->kern;
    CUlaunchConfig config = {.gridDimX = params->gridDimX,
                             .gridDimY = params->gridDimY,
                             .gridDimZ = params->gridDimZ,
                             .blockDimX = params->blockDimX,
                             .blockDimY = params->blockDimY,
                             .blockDimZ = params->blockDimZ,
                             .sharedMemBytes = params->sharedMemBytes};
    CUresult result = launch_make_work(&config, function, params->kernelParams, params->extra, false, work);
    return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
}

static CUresult make_copy(const CUDA_MEMCPY3D *box, struct work **work)
{
    struct copy_work copy;
    if (box->WidthInBytes == 0 || box->Height == 0 || box->Depth == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = copy_of_box(box, &copy);
    return result != CUDA_SUCCESS ? result : copy_make_work(&copy, work);
}

static CUresult make_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *params, struct work **work)
{
    struct fill_work fill = {.destination = params->dst,
                             .pitch = params->pitch,
                             .width = params->width,
                             .height = params->height,
                             .element_bytes = params->elementSize,
                             .value = params->value};
    bool is_size = fill.element_bytes == 1 || fill.element_bytes == 2 || fill.element_bytes == 4;
    if (!is_size || fill.width == 0 || fill.height == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return fill_make_work(&fill, work);
}

static CUresult make_host(const CUDA_HOST_NODE_PARAMS_v2 *params, struct work **work)
{
    if (params->fn == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *work = work_new(WORK_HOST);
    (*work)->host.function = params->fn;
    (*work)->host.data = params->userData;
    return CUDA_SUCCESS;
}

static CUresult check_event(CUevent handle)
{
    struct event *event;
    return event_find(handle, &event);
}

CUresult node_make_work(const CUgraphNodeParams *params, struct work **work)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    *work = NULL;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return make_kernel(&params->kernel, work);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return make_copy(&params->memcpy.copyParams, work);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return make_fill(&params->memset, work);
    case CU_GRAPH_NODE_TYPE_HOST:
        return make_host(&params->host, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return check_event(params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return check_event(params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

void node_set_content(struct node *node, const CUgraphNodeParams *params, struct work *work)
{
    if (work != NULL)
        node_set_work(node, work);
    if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        node->box = params->memcpy.copyParams;
    if (params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        node->event = params->eventRecord.event;
    if (params->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        node->event = params->eventWait.event;
}

/* ---- adding ---- */

static CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *dependencies, size_t count,
                    const CUgraphNodeParams *params)
{
    struct work *work;
    struct graph *graph, *child = NULL;
    struct node *node;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = node_make_work(params, &work);
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    result = graph_find(handle, &graph);
    if (result == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_GRAPH)
        result = graph_find(params->graph.graph, &child);
    if (result == CUDA_SUCCESS)
        result = graph_add(graph, params->type, (struct node *const *)dependencies, count, &node);
    if (result == CUDA_SUCCESS) {
        node_set_content(node, params, work);
        if (child != NULL)
            node->child = graph_copy(child);
        *out = (CUgraphNode)node;
    }
    graph_unlock();
    if (result != CUDA_SUCCESS && work != NULL)
        work_discard(work);
    return result;
}

/* The kernel structs of the three versions begin alike. */
static CUgraphNodeParams kernel_params(const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&all.kernel, params, sizeof *params);
    return all;
}

static CUgraphNodeParams kernel_params_v2(const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&all.kernel, params, sizeof *params);
    return all;
}

static CUgraphNodeParams copy_params(const CUDA_MEMCPY3D *params)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    all.memcpy.copyParams = *params;
    return all;
}

static CUgraphNodeParams fill_params(const CUDA_MEMSET_NODE_PARAMS *params)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    memcpy(&all.memset, params, sizeof *params);
    return all;
}

static CUgraphNodeParams host_params(const CUDA_HOST_NODE_PARAMS *params)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_HOST};
    memcpy(&all.host, params, sizeof *params);
    return all;
}

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = kernel_params(params);
    return add(out, graph, dependencies, count, &all);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = kernel_params_v2(params);
    return add(out, graph, dependencies, count, &all);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMCPY3D *params, CUcontext context)
{
    (void)context;
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = copy_params(params);
    return add(out, graph, dependencies, count, &all);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    (void)context;
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = fill_params(params);
    return add(out, graph, dependencies, count, &all);
}

CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = host_params(params);
    return add(out, graph, dependencies, count, &all);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(out, graph, dependencies, count, &all);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                  CUgraph child)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    all.graph.graph = child;
    return add(out, graph, dependencies, count, &all);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                   CUevent event)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    all.eventRecord.event = event;
    return add(out, graph, dependencies, count, &all);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                 CUevent event)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    all.eventWait.event = event;
    return add(out, graph, dependencies, count, &all);
}

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                        CUgraphNodeParams *params)
{
    return params == NULL ? CUDA_ERROR_INVALID_VALUE : add(out, graph, dependencies, count, params);
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
    (void)edges;
    return params == NULL ? CUDA_ERROR_INVALID_VALUE : add(out, graph, dependencies, count, params);
}

/* ---- changing ---- */

static CUresult change(CUgraphNode handle, const CUgraphNodeParams *params)
{
    struct work *work;
    struct node *node;
    CUresult result = node_make_work(params, &work);
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    result = node_find(handle, &node);
    if (result == CUDA_SUCCESS && node->type != params->type)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        node_set_content(node, params, work);
    graph_unlock();
    if (result != CUDA_SUCCESS && work != NULL)
        work_discard(work);
    return result;
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
    return params == NULL ? CUDA_ERROR_INVALID_VALUE : change(node, params);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = kernel_params(params);
    return change(node, &all);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = kernel_params_v2(params);
    return change(node, &all);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = copy_params(params);
    return change(node, &all);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = fill_params(params);
    return change(node, &all);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = host_params(params);
    return change(node, &all);
}
