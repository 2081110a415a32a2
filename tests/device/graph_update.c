/* Giving an executable graph the parameters of another graph of the same shape. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/graph_exec.h"
#include "tests/device/host_memory.h"
#include "tests/device/memory.h"
#include "tests/device/module.h"

/* Where two flat graphs differ; nodes are those of the second one's origin. */
struct difference {
    CUgraphExecUpdateResult result;
    struct node *node, *from;
};

static bool is_same_place(uint64_t one, uint64_t other)
{
    struct allocation first, second;
    struct host_range unused;
    bool is_device = memory_find(one, &first);
    if (is_device != memory_find(other, &second))
        return memory_is_device(one) == memory_is_device(other);
    if (is_device)
        return first.device == second.device;
    return host_memory_find((const void *)one, &unused) == host_memory_find((const void *)other, &unused);
}

static CUgraphExecUpdateResult compare_kernels(const struct node *own, const struct node *other)
{
    const struct function *mine = own->work->grid.function, *theirs = other->work->grid.function;
    if (mine->module->context != theirs->module->context)
        return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    if (own->work->grid.grid.is_cooperative != other->work->grid.grid.is_cooperative)
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUgraphExecUpdateResult compare_copies(const struct node *own, const struct node *other)
{
    const struct copy_work *mine = &own->work->copy, *theirs = &other->work->copy;
    bool is_same = own->box.srcMemoryType == other->box.srcMemoryType &&
                   own->box.dstMemoryType == other->box.dstMemoryType && is_same_place(mine->source, theirs->source) &&
                   is_same_place(mine->destination, theirs->destination);
    return is_same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

static CUgraphExecUpdateResult compare_fills(const struct node *own, const struct node *other)
{
    const struct fill_work *mine = &own->work->fill, *theirs = &other->work->fill;
    bool is_row = mine->height == 1 && theirs->height == 1;
    bool is_same_shape = mine->width == theirs->width && mine->height == theirs->height &&
                         mine->pitch == theirs->pitch && mine->element_bytes == theirs->element_bytes;
    if ((!is_row && !is_same_shape) || !is_same_place(mine->destination, theirs->destination))
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUgraphExecUpdateResult compare_content(const struct node *own, const struct node *other)
{
    switch (own->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return compare_kernels(own, other);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return compare_copies(own, other);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return compare_fills(own, other);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return own->memory == other->memory ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                            : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    default:
        return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    }
}

/* Node by node, in the order in which they were made. */
static struct difference compare(const struct graph *own, const struct graph *other)
{
    struct difference found = {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL};
    if (own->count != other->count)
        return found;
    for (size_t i = 0; i < own->count; i++)
        own->nodes[i]->mark = other->nodes[i]->mark = i;
    for (size_t i = 0; i < own->count; i++) {
        const struct node *mine = own->nodes[i], *theirs = other->nodes[i];
        found.node = theirs->origin;
        if (mine->type != theirs->type) {
            found.result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
            return found;
        }
        if (mine->dependency_count != theirs->dependency_count)
            return found;
        for (size_t k = 0; k < mine->dependency_count; k++) {
            if (mine->dependencies[k]->mark == theirs->dependencies[k]->mark)
                continue;
            found.from = theirs->dependencies[k]->origin;
            return found;
        }
        found.result = compare_content(mine, theirs);
        if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            return found;
        found.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    return (struct difference){CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL, NULL};
}

/* Under graph_lock. */
static struct difference update(struct graph_exec *exec, const struct graph *graph)
{
    struct graph *flat = graph_flatten(graph), *unused = flat;
    struct difference found = compare(exec->graph, flat);
    if (found.result == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        unused = exec->graph;
        /* Handles of the graph that it was made from stay good for it, and what is switched off stays so. */
        for (size_t i = 0; i < flat->count; i++) {
            flat->nodes[i]->origin = unused->nodes[i]->origin;
            flat->nodes[i]->is_disabled = unused->nodes[i]->is_disabled;
        }
        exec->graph = flat;
    }
    graph_destroy(unused);
    return found;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *info)
{
    struct graph_exec *exec;
    struct graph *graph;
    struct difference found = {CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL};
    if (info == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = exec_find(handle, &exec);
    if (result == CUDA_SUCCESS)
        result = graph_find(graph_handle, &graph);
    if (result == CUDA_SUCCESS && graph->is_moved)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        found = update(exec, graph);
        if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    *info = (CUgraphExecUpdateResultInfo){found.result, (CUgraphNode)found.node, (CUgraphNode)found.from};
    graph_unlock();
    return result;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
                           CUgraphExecUpdateResult *update_result)
{
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);
    if (error_node != NULL)
        *error_node = info.errorNode;
    if (update_result != NULL)
        *update_result = info.result;
    return result;
}

/* Under graph_lock: the nodes of the executable that stand for the child's get the other graph's content. */
static CUresult update_child(struct graph_exec *exec, const struct node *node, const struct graph *graph)
{
    struct graph *own = graph_flatten(node->child), *other = graph_flatten(graph);
    CUresult result = CUDA_SUCCESS;
    if (compare(own, other).result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < own->count && result == CUDA_SUCCESS; i++) {
        struct node *origin = own->nodes[i]->origin;
        struct node *target = origin != NULL ? graph_counterpart(exec->graph, origin) : NULL;
        if (target == NULL)
            continue;
        if (other->nodes[i]->work != NULL)
            node_set_work(target, work_copy(other->nodes[i]->work));
        target->event = other->nodes[i]->event;
        target->box = other->nodes[i]->box;
    }
    graph_destroy(own);
    graph_destroy(other);
    return result;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode origin, CUgraph graph_handle)
{
    struct graph_exec *exec;
    struct graph *graph;
    struct node *node;
    graph_lock();
    CUresult result = exec_find(handle, &exec);
    if (result == CUDA_SUCCESS)
        result = node_find(origin, &node);
    if (result == CUDA_SUCCESS)
        result = graph_find(graph_handle, &graph);
    if (result == CUDA_SUCCESS && (node->child == NULL || graph_counterpart(exec->graph, node) == NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = update_child(exec, node, graph);
    graph_unlock();
    return result;
}
