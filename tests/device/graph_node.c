#include "tests/device/driver.h"
#include "tests/device/graph_node.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"
#include "tests/device/event.h"
#include "tests/device/graph_memory.h"
#include "tests/device/launch.h"
#include "tests/device/value.h"
#include <stdatomic.h>
#include <stdio.h>
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

static CUresult make_copy(const CUDA_MEMCPY_NODE_PARAMS *params, struct work **work)
{
    struct copy_work copy;
    const CUDA_MEMCPY3D *box = &params->copyParams;
    if (params->flags != 0 || params->reserved != 0 || box->WidthInBytes == 0 || box->Height == 0 || box->Depth == 0)
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

static CUresult make_values(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params, struct work **work)
{
    return params->flags != 0 ? CUDA_ERROR_INVALID_VALUE : value_make_work(params->paramArray, params->count, work);
}

static CUresult check_event(CUevent handle)
{
    struct event *event;
    return event_find(handle, &event);
}

static CUresult refuse(CUgraphNodeType type)
{
    static atomic_flag was_said = ATOMIC_FLAG_INIT;
    const char *name = type == CU_GRAPH_NODE_TYPE_CONDITIONAL        ? "conditional"
                       : type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT   ? "external semaphore wait"
                       : type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL ? "external semaphore signal"
                                                                     : NULL;
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_flag_test_and_set(&was_said))
        fprintf(stderr, "cpu device: graph nodes of the type %s are not supported\n", name);
    return CUDA_ERROR_NOT_SUPPORTED;
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
        return make_copy(&params->memcpy, work);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return make_fill(&params->memset, work);
    case CU_GRAPH_NODE_TYPE_HOST:
        return make_host(&params->host, work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return make_values(&params->memOp, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return check_event(params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return check_event(params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return CUDA_SUCCESS;
    default:
        return refuse(params->type);
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

void node_set_memory(struct node *node, struct graph_memory *memory)
{
    node->memory = memory;
}

CUresult node_claim_free(const struct graph *graph, struct graph_memory *memory)
{
    bool is_own = false, is_freed_here = false;
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i]->memory != memory)
            continue;
        is_own |= graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        is_freed_here |= graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
    }
    if (is_freed_here || memory->is_freed_inside || (is_own && memory->is_freed_elsewhere))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_own)
        memory->is_freed_inside = true;
    else
        memory->is_freed_elsewhere = true;
    return CUDA_SUCCESS;
}

/* ---- adding ---- */

/* Everything that a new node brings along. */
struct content {
    struct work *work;
    struct graph_memory *memory; /* one hold */
};

static void discard(struct content *content)
{
    if (content->work != NULL)
        work_discard(content->work);
    if (content->memory != NULL)
        graph_memory_let_go(content->memory);
}

static CUresult prepare(const CUgraphNodeParams *params, struct content *content)
{
    CUresult result = node_make_work(params, &content->work);
    if (result != CUDA_SUCCESS)
        return result;
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return graph_memory_create(&params->alloc.poolProps, params->alloc.accessDescs, params->alloc.accessDescCount,
                                   params->alloc.bytesize, &content->memory);
    if (params->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
        return CUDA_SUCCESS;
    content->memory = graph_memory_at(params->free.dptr);
    if (content->memory == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_memory_hold(content->memory);
    return CUDA_SUCCESS;
}

/* Under graph_lock: what the type asks of the graph and, for a child, of that one. */
static CUresult check_graphs(const CUgraphNodeParams *params, const struct graph *graph, struct graph **child)
{
    bool is_memory = params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || params->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
    if (is_memory && graph->is_moved)
        return CUDA_ERROR_INVALID_VALUE;
    if (params->type != CU_GRAPH_NODE_TYPE_GRAPH)
        return CUDA_SUCCESS;
    CUresult result = graph_find(params->graph.graph, child);
    if (result != CUDA_SUCCESS)
        return result;
    if ((*child)->is_moved || (unsigned)params->graph.ownership > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    if (params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
        return graph_has_memory(*child) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    return *child == graph || (*child)->exec != NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void adopt(struct node *node, struct graph *child, CUgraphChildGraphNodeOwnership ownership)
{
    if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
        child->is_moved = true;
        node->child = child;
    } else {
        node->child = graph_copy(child);
        node->child->is_moved = true;
    }
}

static CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
                    size_t count, CUgraphNodeParams *params)
{
    struct content content = {0};
    struct graph *graph, *child = NULL;
    struct node *node;
    CUresult result = prepare(params, &content);
    if (result != CUDA_SUCCESS) {
        discard(&content);
        return result;
    }
    graph_lock();
    result = graph_find(handle, &graph);
    if (result == CUDA_SUCCESS)
        result = check_graphs(params, graph, &child);
    if (result == CUDA_SUCCESS)
        result = graph_check_edges(graph, params->type, (struct node *const *)dependencies, edges, count);
    if (result == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        result = node_claim_free(graph, content.memory);
    if (result == CUDA_SUCCESS) {
        node = graph_add(graph, params->type, (struct node *const *)dependencies, edges, count);
        node_set_content(node, params, content.work);
        node_set_memory(node, content.memory);
        if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            params->alloc.dptr = content.memory->base;
        if (child != NULL)
            adopt(node, child, params->graph.ownership);
        *out = (CUgraphNode)node;
    }
    graph_unlock();
    if (result != CUDA_SUCCESS)
        discard(&content);
    return result;
}

static bool is_reserved_zero(const CUgraphNodeParams *params)
{
    return params->reserved0[0] == 0 && params->reserved0[1] == 0 && params->reserved0[2] == 0 &&
           params->reserved2 == 0;
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
    if (out == NULL || params == NULL || !is_reserved_zero(params))
        return CUDA_ERROR_INVALID_VALUE;
    return add(out, graph, dependencies, edges, count, params);
}

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                        CUgraphNodeParams *params)
{
    return cuGraphAddNode_v2(out, graph, dependencies, NULL, count, params);
}

/* ---- changing ---- */

static bool may_change(CUgraphNodeType type)
{
    return type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && type != CU_GRAPH_NODE_TYPE_MEM_FREE &&
           type != CU_GRAPH_NODE_TYPE_GRAPH;
}

CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams *params)
{
    struct work *work;
    struct node *node;
    if (params == NULL || !is_reserved_zero(params))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = may_change(params->type) ? node_make_work(params, &work) : CUDA_ERROR_INVALID_VALUE;
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
