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
 * is set to NULL. */
struct list {
    CUgraphNode *to;
    size_t room, count;
};

static void list_add(struct list *list, struct node *node)
{
    if (list->to != NULL && list->count < list->room)
        list->to[list->count] = (CUgraphNode)node;
    list->count++;
}

static void list_end(struct list *list, size_t *count)
{
    for (size_t i = list->count; list->to != NULL && i < list->room; i++)
        list->to[i] = NULL;
    *count = list->count < list->room || list->to == NULL ? list->count : list->room;
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool is_roots_only)
{
    struct graph *graph;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = graph_find(handle, &graph);
    if (result == CUDA_SUCCESS) {
        struct list list = {nodes, *count, 0};
        for (size_t i = 0; i < graph->count; i++)
            if (!is_roots_only || graph->nodes[i]->dependency_count == 0)
                list_add(&list, graph->nodes[i]);
        list_end(&list, count);
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
    if (count == NULL || (from == NULL) != (to == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = graph_find(handle, &graph);
    if (result == CUDA_SUCCESS) {
        struct list froms = {from, *count, 0}, tos = {to, *count, 0};
        if (edges != NULL && from != NULL)
            memset(edges, 0, *count * sizeof *edges);
        for (size_t i = 0; i < graph->count; i++) {
            for (size_t k = 0; k < graph->nodes[i]->dependency_count; k++) {
                list_add(&froms, graph->nodes[i]->dependencies[k]);
                list_add(&tos, graph->nodes[i]);
            }
        }
        list_end(&froms, count);
        list_end(&tos, count);
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
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = node_find(handle, &node);
    if (result == CUDA_SUCCESS) {
        struct list list = {nodes, *count, 0};
        if (edges != NULL && nodes != NULL)
            memset(edges, 0, *count * sizeof *edges);
        for (size_t i = 0; i < node->dependency_count; i++)
            list_add(&list, node->dependencies[i]);
        list_end(&list, count);
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
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    CUresult result = node_find(handle, &node);
    if (result == CUDA_SUCCESS) {
        struct list list = {nodes, *count, 0};
        if (edges != NULL && nodes != NULL)
            memset(edges, 0, *count * sizeof *edges);
        for (size_t i = 0; i < node->graph->count; i++)
            for (size_t k = 0; k < node->graph->nodes[i]->dependency_count; k++)
                if (node->graph->nodes[i]->dependencies[k] == node)
                    list_add(&list, node->graph->nodes[i]);
        list_end(&list, count);
    }
    graph_unlock();
    return result;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count,
                             CUresult (*change)(struct node *, struct node *))
{
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
            result = change(first, second);
    }
    graph_unlock();
    return result;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    (void)edges;
    return change_edges(graph, from, to, count, graph_add_edge);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    return change_edges(graph, from, to, count, graph_add_edge);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *edges, size_t count)
{
    (void)edges;
    return change_edges(graph, from, to, count, graph_remove_edge);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    return change_edges(graph, from, to, count, graph_remove_edge);
}
