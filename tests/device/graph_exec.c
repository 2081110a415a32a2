/* Executable graphs: a flat copy, its nodes submitted to one stream in an order that their edges allow. */
#include "tests/device/driver.h"
#include "tests/device/graph_exec.h"
#include "tests/device/capture.h"
#include "tests/device/context.h"
#include "tests/device/executor.h"
#include "tests/device/graph_memory.h"
#include "tests/device/graph_node.h"
#include "tests/device/settings.h"
#include <stdlib.h>
#include <string.h>

CUresult exec_find(CUgraphExec handle, struct graph_exec **out)
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

/* Under graph_lock. */
static CUresult instantiate(struct graph *graph, cuuint64_t flags, CUgraphExec *out)
{
    bool has_memory = graph_has_memory(graph);
    if (graph->is_moved || (has_memory && graph->exec != NULL))
        return CUDA_ERROR_INVALID_VALUE;
    struct graph_exec *exec = calloc(1, sizeof *exec);
    if (exec == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *exec = (struct graph_exec){.magic = HANDLE_GRAPH_EXEC, .flags = flags, .graph = graph_flatten(graph)};
    if (has_memory) {
        exec->origin = graph;
        graph->exec = exec;
    }
    *out = (CUgraphExec)exec;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
    struct context *context;
    struct graph *graph;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
        return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0 ? CUDA_ERROR_INVALID_VALUE
                                                                              : CUDA_ERROR_NOT_SUPPORTED;
    if (out == NULL || (flags & ~(unsigned long long)INSTANTIATE_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    result = graph_find(handle, &graph);
    if (result == CUDA_SUCCESS)
        result = instantiate(graph, flags, out);
    graph_unlock();
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
    CUresult result = exec_find(handle, &exec);
    if (result == CUDA_SUCCESS) {
        if (exec->origin != NULL)
            exec->origin->exec = NULL;
        graph_destroy(exec->graph);
        if (exec->latest != NULL)
            fence_let_go(exec->latest);
        exec->magic = HANDLE_DEAD;
        free(exec);
    }
    graph_unlock();
    return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *flags)
{
    struct graph_exec *exec;
    CUresult result = exec_find(handle, &exec);
    if (result == CUDA_SUCCESS && flags == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *flags = exec->flags;
    return result;
}

/* ---- launching ---- */

/* A chain of work that grows at its end. */
struct chain {
    struct work *first, **end;
};

static void chain_add(struct chain *chain, struct work *work)
{
    *chain->end = work;
    for (; work != NULL; work = work->next)
        chain->end = &work->next;
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
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return work_of_event(node);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return graph_memory_make_bring(node->memory);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return graph_memory_release(node->memory);
    default:
        return work_copy(node->work);
    }
}

/* Under graph_lock: the nodes' work. */
static void add_nodes(struct chain *chain, const struct graph *graph, uint64_t seed)
{
    struct node **order = calloc(graph->count + 1, sizeof(struct node *));
    if (order == NULL)
        abort();
    graph_order(graph, seed, order);
    for (size_t i = 0; i < graph->count; i++)
        chain_add(chain, work_of(order[i]));
    free(order);
}

/* Memory that an earlier launch has left allocated is freed now, if the executable is of that kind. */
static CUresult free_left_over(const struct graph_exec *exec, struct chain *chain)
{
    bool is_automatic = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    for (size_t i = 0; i < exec->graph->count; i++) {
        const struct node *node = exec->graph->nodes[i];
        if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || !node->memory->is_allocated)
            continue;
        if (!is_automatic)
            return CUDA_ERROR_INVALID_VALUE;
        chain_add(chain, graph_memory_release(node->memory));
    }
    return CUDA_SUCCESS;
}

/* What the graph frees but does not allocate must be there. */
static CUresult check_frees(const struct graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct node *node = graph->nodes[i];
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE && !node->memory->is_freed_inside && !node->memory->is_allocated)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* Frames for all allocation nodes, or none. */
static CUresult reserve_memory(const struct graph *graph)
{
    CUresult result = CUDA_SUCCESS;
    size_t done = 0;
    for (; done < graph->count && result == CUDA_SUCCESS; done++)
        if (graph->nodes[done]->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            result = graph_memory_reserve(graph->nodes[done]->memory);
    if (result == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    for (size_t i = 0; i + 1 < done; i++)
        if (graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            graph_memory_cancel(graph->nodes[i]->memory);
    return result;
}

/* Launches of one executable run one after the other, whatever their streams. */
static void wait_for_previous(const struct graph_exec *exec, const struct stream *stream, struct chain *chain)
{
    if (exec->latest == NULL || exec->stream_id == stream->id)
        return;
    fence_hold(exec->latest);
    struct work *wait = work_new(WORK_WAIT);
    wait->fence = exec->latest;
    chain_add(chain, wait);
}

static void record_end(struct graph_exec *exec, const struct stream *stream, struct chain *chain)
{
    if (exec->latest != NULL)
        fence_let_go(exec->latest);
    exec->latest = fence_new();
    exec->stream_id = stream->id;
    fence_hold(exec->latest);
    struct work *record = work_new(WORK_RECORD);
    record->fence = exec->latest;
    chain_add(chain, record);
}

/* Under graph_lock. */
static CUresult make_chain(struct graph_exec *exec, const struct stream *stream, struct chain *chain)
{
    static uint64_t launches;
    CUresult result = CUDA_SUCCESS;
    if (exec->graph->memory_nodes > 0) {
        result = check_frees(exec->graph);
        if (result == CUDA_SUCCESS)
            result = reserve_memory(exec->graph);
    }
    if (result != CUDA_SUCCESS)
        return result;
    wait_for_previous(exec, stream, chain);
    if (exec->graph->memory_nodes > 0)
        free_left_over(exec, chain);
    add_nodes(chain, exec->graph, settings()->jitter == 0 ? 0 : settings()->jitter + ++launches);
    record_end(exec, stream, chain);
    return CUDA_SUCCESS;
}

static bool is_left_over(const struct graph_exec *exec)
{
    if ((exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0)
        return false;
    for (size_t i = 0; i < exec->graph->count; i++)
        if (exec->graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && exec->graph->nodes[i]->memory->is_allocated)
            return true;
    return false;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle)
{
    struct context *context;
    struct stream *stream;
    struct graph_exec *exec;
    CUresult result = stream_enter(stream_handle, &context, &stream);
    if (result == CUDA_SUCCESS)
        result = exec_find(handle, &exec);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != NULL)
        return capture_graph(stream, exec->graph);
    struct chain chain = {.end = &chain.first};
    graph_lock();
    result = is_left_over(exec) ? CUDA_ERROR_INVALID_VALUE : make_chain(exec, stream, &chain);
    graph_unlock();
    if (result == CUDA_SUCCESS)
        work_submit_chain(stream, chain.first);
    return result;
}

TWIN(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), (exec, per_thread(stream)))

/* Nothing needs to be brought to the device. */
CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle)
{
    struct context *context;
    struct stream *stream;
    struct graph_exec *exec;
    CUresult result = stream_enter(stream_handle, &context, &stream);
    return result != CUDA_SUCCESS ? result : exec_find(handle, &exec);
}

TWIN(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream), (exec, per_thread(stream)))

/* ---- changing ---- */

/* Under graph_lock: the executable's own node for the one that it was made from. */
static CUresult find_own(CUgraphExec handle, CUgraphNode origin, struct node **out)
{
    struct graph_exec *exec;
    struct node *node;
    CUresult result = exec_find(handle, &exec);
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
    if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return cuGraphExecChildGraphNodeSetParams(handle, origin, params->graph.graph);
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
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
