/* Executable graphs: a flat copy, its nodes submitted to one stream in an order that their edges allow. */
#include "tests/device/driver.h"
#include "tests/device/capture.h"
#include "tests/device/context.h"
#include "tests/device/executor.h"
#include "tests/device/graph_node.h"
#include "tests/device/settings.h"
#include <stdlib.h>
#include <string.h>

static CUresult find(CUgraphExec handle, struct graph_exec **out)
{
    struct graph_exec *exec = (struct graph_exec *)handle;
    if (exec == NULL || ((uintptr_t)exec & 7) != 0 || exec->magic != HANDLE_GRAPH_EXEC)
        return CUDA_ERROR_INVALID_VALUE;
    *out = exec;
    return CUDA_SUCCESS;
}

#define INSTANTIATE_FLAGS                                                                                              \
    (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |                            \
     CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
    struct context *context;
    struct graph *graph;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (out == NULL || (flags & ~(unsigned long long)INSTANTIATE_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct graph_exec *exec = calloc(1, sizeof *exec);
    if (exec == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->magic = HANDLE_GRAPH_EXEC;
    exec->flags = flags;
    graph_lock();
    result = graph_find(handle, &graph);
    if (result == CUDA_SUCCESS)
        exec->graph = graph_flatten(graph);
    graph_unlock();
    if (result != CUDA_SUCCESS)
        free(exec);
    else
        *out = (CUgraphExec)exec;
    return result;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuGraphInstantiateWithFlags(out, graph, params->flags);
    params->hErrNode_out = NULL;
    params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return cuGraphInstantiateWithParams(out, graph, params);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes)
{
    if (error_node != NULL)
        *error_node = NULL;
    if (log != NULL && log_bytes > 0)
        *log = '\0';
    return cuGraphInstantiateWithFlags(out, graph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes)
{
    return cuGraphInstantiate_v2(out, graph, error_node, log, log_bytes);
}

CUresult cuGraphExecDestroy(CUgraphExec handle)
{
    struct graph_exec *exec;
    graph_lock();
    CUresult result = find(handle, &exec);
    if (result == CUDA_SUCCESS) {
        graph_destroy(exec->graph);
        exec->magic = HANDLE_DEAD;
        free(exec);
    }
    graph_unlock();
    return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *flags)
{
    struct graph_exec *exec;
    CUresult result = find(handle, &exec);
    if (result == CUDA_SUCCESS && flags == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *flags = exec->flags;
    return result;
}

/* The events' fences are those of this launch. NULL: nothing to do. */
static struct work *work_of_event(const struct node *node)
{
    struct event *event;
    if (event_find(node->event, &event) != CUDA_SUCCESS)
        return NULL;
    bool is_record = node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    struct fence *fence = is_record ? event_renew(event) : event_latest(event);
    if (fence == NULL)
        return NULL;
    struct work *work = work_new(is_record ? WORK_RECORD : WORK_WAIT);
    work->fence = fence;
    return work;
}

static struct work *work_of(const struct node *node)
{
    if (node->is_disabled)
        return NULL;
    if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD || node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        return work_of_event(node);
    return node->work != NULL ? work_copy(node->work) : NULL;
}

/* Under graph_lock: the nodes' work as one chain. */
static struct work *chain_of(const struct graph *graph, uint64_t seed)
{
    struct node **order = calloc(graph->count + 1, sizeof(struct node *));
    if (order == NULL)
        abort();
    graph_order(graph, seed, order);
    struct work *first = NULL, **link = &first;
    for (size_t i = 0; i < graph->count; i++) {
        struct work *work = work_of(order[i]);
        if (work == NULL)
            continue;
        *link = work;
        link = &work->next;
    }
    free(order);
    return first;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle)
{
    static _Atomic uint64_t launches;
    struct context *context;
    struct stream *stream;
    struct graph_exec *exec;
    CUresult result = stream_enter(stream_handle, &context, &stream);
    if (result == CUDA_SUCCESS)
        result = find(handle, &exec);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != NULL)
        return capture_refuse(stream);
    graph_lock();
    struct work *first = chain_of(exec->graph, settings()->jitter == 0 ? 0 : settings()->jitter + ++launches);
    graph_unlock();
    if (first != NULL)
        work_submit_chain(stream, first);
    return CUDA_SUCCESS;
}

TWIN(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), (exec, per_thread(stream)))

/* Nothing needs to be brought to the device. */
CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle)
{
    struct context *context;
    struct stream *stream;
    struct graph_exec *exec;
    CUresult result = stream_enter(stream_handle, &context, &stream);
    return result != CUDA_SUCCESS ? result : find(handle, &exec);
}

TWIN(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream), (exec, per_thread(stream)))

/* Under graph_lock: the executable's own node for the one that it was made from. */
static CUresult find_own(CUgraphExec handle, CUgraphNode origin, struct node **out)
{
    struct graph_exec *exec;
    struct node *node;
    CUresult result = find(handle, &exec);
    if (result == CUDA_SUCCESS)
        result = node_find(origin, &node);
    if (result != CUDA_SUCCESS)
        return result;
    *out = graph_counterpart(exec->graph, node);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec handle, CUgraphNode origin, CUgraphNodeParams *params)
{
    struct work *work;
    struct node *node;
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = node_make_work(params, &work);
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    result = find_own(handle, origin, &node);
    if (result == CUDA_SUCCESS && node->type != params->type)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        node_set_content(node, params, work);
    graph_unlock();
    if (result != CUDA_SUCCESS && work != NULL)
        work_discard(work);
    return result;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&all.kernel, params, sizeof *params);
    return cuGraphExecNodeSetParams(exec, node, &all);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&all.kernel, params, sizeof *params);
    return cuGraphExecNodeSetParams(exec, node, &all);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params,
                                        CUcontext context)
{
    (void)context;
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    all.memcpy.copyParams = *params;
    return cuGraphExecNodeSetParams(exec, node, &all);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params,
                                        CUcontext context)
{
    (void)context;
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    memcpy(&all.memset, params, sizeof *params);
    return cuGraphExecNodeSetParams(exec, node, &all);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_HOST};
    memcpy(&all.host, params, sizeof *params);
    return cuGraphExecNodeSetParams(exec, node, &all);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    all.eventRecord.event = event;
    return cuGraphExecNodeSetParams(exec, node, &all);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    all.eventWait.event = event;
    return cuGraphExecNodeSetParams(exec, node, &all);
}

static bool may_be_disabled(const struct node *node)
{
    return node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
           node->type == CU_GRAPH_NODE_TYPE_MEMSET;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode origin, unsigned int is_enabled)
{
    struct node *node;
    graph_lock();
    CUresult result = find_own(exec, origin, &node);
    if (result == CUDA_SUCCESS && !may_be_disabled(node))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        node->is_disabled = is_enabled == 0;
    graph_unlock();
    return result;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode origin, unsigned int *is_enabled)
{
    struct node *node;
    graph_lock();
    CUresult result = find_own(exec, origin, &node);
    if (is_enabled == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *is_enabled = !node->is_disabled;
    graph_unlock();
    return result;
}

/* The same shape, node by node in the order in which they were made; fills *info with the first difference. */
static CUgraphExecUpdateResult compare(const struct graph *own, const struct graph *other, struct node **where)
{
    *where = NULL;
    if (own->count != other->count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < own->count; i++)
        own->nodes[i]->mark = other->nodes[i]->mark = i;
    for (size_t i = 0; i < own->count; i++) {
        const struct node *mine = own->nodes[i], *theirs = other->nodes[i];
        *where = theirs->origin;
        if (mine->type != theirs->type)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (mine->dependency_count != theirs->dependency_count)
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        for (size_t k = 0; k < mine->dependency_count; k++)
            if (mine->dependencies[k]->mark != theirs->dependencies[k]->mark)
                return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    *where = NULL;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *info)
{
    struct graph_exec *exec;
    struct graph *graph;
    struct node *where = NULL;
    if (info == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = find(handle, &exec);
    if (result == CUDA_SUCCESS)
        result = graph_find(graph_handle, &graph);
    if (result == CUDA_SUCCESS) {
        struct graph *flat = graph_flatten(graph), *unused = flat;
        info->result = compare(exec->graph, flat, &where);
        if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
            unused = exec->graph;
            /* Handles of the graph that it was made from stay good for it. */
            for (size_t i = 0; i < flat->count; i++)
                flat->nodes[i]->origin = unused->nodes[i]->origin;
            exec->graph = flat;
        } else {
            result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        }
        graph_destroy(unused);
    }
    info->errorNode = (CUgraphNode)where;
    info->errorFromNode = NULL;
    graph_unlock();
    return result;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, CUgraphExecUpdateResult *update)
{
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);
    if (error_node != NULL)
        *error_node = info.errorNode;
    if (update != NULL)
        *update = info.result;
    return result;
}
