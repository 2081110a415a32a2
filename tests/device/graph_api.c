/* Making graphs and asking about them. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/graph.h"
#include <stdlib.h>
#include <string.h>

CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)graph_create();
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle)
{
    struct graph *graph;
    graph_lock();
    CUresult result = graph_find(handle, &graph);
    if (result == CUDA_SUCCESS && graph->is_moved)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        graph_destroy(graph);
    graph_unlock();
    return result;
}

CUresult cuGraphClone(CUgraph *out, CUgraph handle)
{
    struct graph *graph;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = graph_find(handle, &graph);
    if (result == CUDA_SUCCESS && graph_has_memory(graph))
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        *out = (CUgraph)graph_copy(graph);
    graph_unlock();
    return result;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
    struct node *node;
    struct graph *graph;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = node_find(original, &node);
    if (result == CUDA_SUCCESS)
        result = graph_find(clone, &graph);
    if (result == CUDA_SUCCESS) {
        *out = (CUgraphNode)graph_counterpart(graph, node);
        result = *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    graph_unlock();
    return result;
}

CUresult cuGraphDestroyNode(CUgraphNode handle)
{
    struct node *node;
    graph_lock();
    CUresult result = node_find(handle, &node);
    if (result == CUDA_SUCCESS && node->graph->memory_nodes > 0)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        graph_remove(node);
    graph_unlock();
    return result;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type)
{
    struct node *node;
    graph_lock();
    CUresult result = node_find(handle, &node);
    if (type == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *type = node->type;
    graph_unlock();
    return result;
}

/* The rule of every list: without an array, *count is the number; with one, it is the room, and what does not fill it
 * is set to NULL. Edges that are not default may not be left out. */
struct list {
    CUgraphNode *to, *second;
    CUgraphEdgeData *edges;
    size_t room, count;
    bool is_lossy;
};

static void list_add(struct list *list, struct node *first, struct node *second, const CUgraphEdgeData *edge)
{
    size_t at = list->count++;
    if (edge != NULL && list->edges == NULL && list->to != NULL && !edge_is_default(edge))
        list->is_lossy = true;
    if (list->to == NULL || at >= list->room)
        return;
    list->to[at] = (CUgraphNode)first;
    if (list->second != NULL)
        list->second[at] = (CUgraphNode)second;
    if (list->edges != NULL && edge != NULL)
        list->edges[at] = *edge;
}

static CUresult list_end(struct list *list, size_t *count)
{
    for (size_t i = list->count; list->to != NULL && i < list->room; i++) {
        list->to[i] = NULL;
        if (list->second != NULL)
            list->second[i] = NULL;
    }
    if (list->is_lossy)
        return CUDA_ERROR_LOSSY_QUERY;
    *count = list->count < list->room || list->to == NULL ? list->count : list->room;
    return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool is_roots_only)
{
    struct graph *graph;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = graph_find(handle, &graph);
    if (result == CUDA_SUCCESS) {
        struct list list = {.to = nodes, .room = *count};
        for (size_t i = 0; i < graph->count; i++)
            if (!is_roots_only || graph->nodes[i]->dependency_count == 0)
                list_add(&list, graph->nodes[i], NULL, NULL);
        result = list_end(&list, count);
    }
    graph_unlock();
    return result;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, false);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, true);
}

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count)
{
    struct graph *graph;
    if (count == NULL || (from == NULL) != (to == NULL) || (edges != NULL && from == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = graph_find(handle, &graph);
    if (result == CUDA_SUCCESS) {
        struct list list = {.to = from, .second = to, .edges = edges, .room = *count};
        for (size_t i = 0; i < graph->count; i++)
            for (size_t k = 0; k < graph->nodes[i]->dependency_count; k++)
                list_add(&list, graph->nodes[i]->dependencies[k], graph->nodes[i], &graph->nodes[i]->edges[k]);
        result = list_end(&list, count);
    }
    graph_unlock();
    return result;
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
    struct node *node;
    if (count == NULL || (edges != NULL && nodes == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = node_find(handle, &node);
    if (result == CUDA_SUCCESS) {
        struct list list = {.to = nodes, .edges = edges, .room = *count};
        for (size_t i = 0; i < node->dependency_count; i++)
            list_add(&list, node->dependencies[i], NULL, &node->edges[i]);
        result = list_end(&list, count);
    }
    graph_unlock();
    return result;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
    struct node *node;
    if (count == NULL || (edges != NULL && nodes == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = node_find(handle, &node);
    if (result == CUDA_SUCCESS) {
        struct list list = {.to = nodes, .edges = edges, .room = *count};
        for (size_t i = 0; i < node->graph->count; i++)
            for (size_t k = 0; k < node->graph->nodes[i]->dependency_count; k++)
                if (node->graph->nodes[i]->dependencies[k] == node)
                    list_add(&list, node->graph->nodes[i], NULL, &node->graph->nodes[i]->edges[k]);
        result = list_end(&list, count);
    }
    graph_unlock();
    return result;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                             const CUgraphEdgeData *edges, size_t count,
                             CUresult (*change)(struct node *, struct node *, const CUgraphEdgeData *))
{
    static const CUgraphEdgeData default_edge;
    struct graph *graph;
    if (count > 0 && (from == NULL || to == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = graph_find(handle, &graph);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        struct node *first, *second;
        result = node_find(from[i], &first);
        if (result == CUDA_SUCCESS)
            result = node_find(to[i], &second);
        if (result == CUDA_SUCCESS && (first->graph != graph || second->graph != graph))
            result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
            result = change(first, second, edges != NULL ? &edges[i] : &default_edge);
    }
    graph_unlock();
    return result;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    return change_edges(graph, from, to, edges, count, graph_add_edge);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    return change_edges(graph, from, to, NULL, count, graph_add_edge);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *edges, size_t count)
{
    return change_edges(graph, from, to, edges, count, graph_remove_edge);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    return change_edges(graph, from, to, NULL, count, graph_remove_edge);
}
