#include "tests/device/driver.h"
#include "tests/device/graph.h"
#include "tests/device/graph_memory.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void graph_lock(void)
{
    pthread_mutex_lock(&lock);
}

void graph_unlock_plain(void)
{
    pthread_mutex_unlock(&lock);
}

void graph_unlock(void)
{
    pthread_mutex_unlock(&lock);
    objects_run_destructors();
}

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (memory == NULL)
        abort();
    return memory;
}

struct graph *graph_create(void)
{
    struct graph *graph = zeroed(1, sizeof *graph);
    graph->magic = HANDLE_GRAPH;
    return graph;
}

static void node_free(struct node *node)
{
    node->magic = HANDLE_DEAD;
    if (node->work != NULL)
        work_discard(node->work);
    if (node->child != NULL)
        graph_destroy(node->child);
    if (node->memory != NULL)
        graph_memory_let_go(node->memory);
    free(node->dependencies);
    free(node->edges);
    free(node->attributes);
    free(node->operations);
    free(node->pointers);
    free(node);
}

void graph_destroy(struct graph *graph)
{
    for (size_t i = 0; i < graph->count; i++)
        node_free(graph->nodes[i]);
    if (graph->exec != NULL)
        graph->exec->origin = NULL;
    objects_release(&graph->objects);
    graph->magic = HANDLE_DEAD;
    free(graph->nodes);
    free(graph);
}

CUresult graph_find(CUgraph handle, struct graph **out)
{
    struct graph *graph = (struct graph *)handle;
    if (graph == NULL || ((uintptr_t)graph & 7) != 0 || graph->magic != HANDLE_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    *out = graph;
    return CUDA_SUCCESS;
}

CUresult node_find(CUgraphNode handle, struct node **out)
{
    struct node *node = (struct node *)handle;
    if (node == NULL || ((uintptr_t)node & 7) != 0 || node->magic != HANDLE_NODE)
        return CUDA_ERROR_INVALID_VALUE;
    *out = node;
    return CUDA_SUCCESS;
}

static struct node *append(struct graph *graph, CUgraphNodeType type)
{
    if (graph->count == graph->room) {
        graph->room = graph->room == 0 ? 16 : 2 * graph->room;
        struct node **more = realloc(graph->nodes, graph->room * sizeof(struct node *));
        if (more == NULL)
            abort();
        graph->nodes = more;
    }
    struct node *node = zeroed(1, sizeof *node);
    node->magic = HANDLE_NODE;
    node->type = type;
    node->graph = graph;
    graph->nodes[graph->count++] = node;
    graph->memory_nodes += type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
    return node;
}

bool graph_has_memory(const struct graph *graph)
{
    if (graph->memory_nodes > 0)
        return true;
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i]->child != NULL && graph_has_memory(graph->nodes[i]->child))
            return true;
    return false;
}

static bool depends_on(const struct node *node, const struct node *other)
{
    for (size_t i = 0; i < node->dependency_count; i++)
        if (node->dependencies[i] == other)
            return true;
    return false;
}

static const CUgraphEdgeData default_edge;

bool edge_is_default(const CUgraphEdgeData *edge)
{
    return memcmp(edge, &default_edge, sizeof *edge) == 0;
}

/* Only kernels have ports, and only an edge from a kernel to a kernel may be programmatic. */
static bool is_edge(const CUgraphEdgeData *edge, CUgraphNodeType from, CUgraphNodeType to)
{
    static const CUgraphEdgeData zeros;
    if (edge->to_port != 0 || memcmp(edge->reserved, zeros.reserved, sizeof zeros.reserved) != 0)
        return false;
    bool is_from_kernel = from == CU_GRAPH_NODE_TYPE_KERNEL;
    if (edge->from_port > (is_from_kernel ? CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER : 0))
        return false;
    if (edge->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        return is_from_kernel && to == CU_GRAPH_NODE_TYPE_KERNEL && edge->from_port != 0;
    return edge->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
}

static void put_dependency(struct node *node, struct node *on, const CUgraphEdgeData *edge)
{
    size_t count = node->dependency_count + 1;
    struct node **more = realloc(node->dependencies, count * sizeof(struct node *));
    CUgraphEdgeData *more_edges = realloc(node->edges, count * sizeof *more_edges);
    if (more == NULL || more_edges == NULL)
        abort();
    more[count - 1] = on;
    more_edges[count - 1] = edge != NULL ? *edge : default_edge;
    node->dependencies = more;
    node->edges = more_edges;
    node->dependency_count = count;
}

CUresult graph_check_edges(const struct graph *graph, CUgraphNodeType type, struct node *const *dependencies,
                           const CUgraphEdgeData *edges, size_t count)
{
    if (count > 0 && dependencies == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct node *dependency;
        if (node_find((CUgraphNode)dependencies[i], &dependency) != CUDA_SUCCESS || dependency->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
        if (edges != NULL && !is_edge(&edges[i], dependency->type, type))
            return CUDA_ERROR_INVALID_VALUE;
        for (size_t k = 0; k < i; k++)
            if (dependencies[k] == dependency)
                return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

struct node *graph_add(struct graph *graph, CUgraphNodeType type, struct node *const *dependencies,
                       const CUgraphEdgeData *edges, size_t count)
{
    struct node *node = append(graph, type);
    for (size_t i = 0; i < count; i++)
        put_dependency(node, dependencies[i], edges != NULL ? &edges[i] : NULL);
    return node;
}

/* NULL: an edge with any data. */
static bool remove_dependency(struct node *node, const struct node *on, const CUgraphEdgeData *edge)
{
    for (size_t i = 0; i < node->dependency_count; i++) {
        if (node->dependencies[i] != on || (edge != NULL && memcmp(edge, &node->edges[i], sizeof *edge) != 0))
            continue;
        node->dependency_count--;
        node->dependencies[i] = node->dependencies[node->dependency_count];
        node->edges[i] = node->edges[node->dependency_count];
        return true;
    }
    return false;
}

void graph_remove(struct node *node)
{
    struct graph *graph = node->graph;
    size_t kept = 0;
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i] == node)
            continue;
        remove_dependency(graph->nodes[i], node, NULL);
        graph->nodes[kept++] = graph->nodes[i];
    }
    graph->count = kept;
    node_free(node);
}

static void clear_marks(const struct graph *graph)
{
    for (size_t i = 0; i < graph->count; i++)
        graph->nodes[i]->mark = 0;
}

static bool reaches(struct node *node, const struct node *ancestor)
{
    if (node == ancestor)
        return true;
    if (node->mark != 0)
        return false;
    node->mark = 1;
    for (size_t i = 0; i < node->dependency_count; i++)
        if (reaches(node->dependencies[i], ancestor))
            return true;
    return false;
}

bool node_is_behind(const struct node *node, const struct node *ancestor)
{
    clear_marks(node->graph);
    return reaches((struct node *)node, ancestor);
}

CUresult graph_add_edge(struct node *from, struct node *to, const CUgraphEdgeData *edge)
{
    if (from->graph != to->graph || depends_on(to, from) || node_is_behind(from, to))
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_edge(edge, from->type, to->type))
        return CUDA_ERROR_INVALID_VALUE;
    put_dependency(to, from, edge);
    return CUDA_SUCCESS;
}

CUresult graph_remove_edge(struct node *from, struct node *to, const CUgraphEdgeData *edge)
{
    if (to->graph->memory_nodes > 0)
        return CUDA_ERROR_INVALID_VALUE;
    return remove_dependency(to, from, edge) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void node_set_work(struct node *node, struct work *work)
{
    if (node->work != NULL)
        work_discard(node->work);
    node->work = work;
}

static void copy_content(struct node *to, const struct node *from)
{
    to->origin = (struct node *)from;
    to->event = from->event;
    to->box = from->box;
    to->is_disabled = from->is_disabled;
    to->memory = from->memory;
    if (from->memory != NULL)
        graph_memory_hold(from->memory);
    if (from->work != NULL)
        to->work = work_copy(from->work);
    to->attributes_set = from->attributes_set;
    if (from->attributes != NULL) {
        to->attributes = zeroed(NODE_ATTRIBUTES, sizeof *to->attributes);
        memcpy(to->attributes, from->attributes, NODE_ATTRIBUTES * sizeof *to->attributes);
    }
}

struct graph *graph_copy(const struct graph *graph)
{
    struct graph *copy = graph_create();
    for (size_t i = 0; i < graph->count; i++) {
        graph->nodes[i]->mark = i;
        struct node *node = append(copy, graph->nodes[i]->type);
        copy_content(node, graph->nodes[i]);
        if (graph->nodes[i]->child != NULL)
            node->child = graph_copy(graph->nodes[i]->child);
    }
    for (size_t i = 0; i < graph->count; i++)
        for (size_t k = 0; k < graph->nodes[i]->dependency_count; k++)
            put_dependency(copy->nodes[i], copy->nodes[graph->nodes[i]->dependencies[k]->mark],
                           &graph->nodes[i]->edges[k]);
    objects_copy(&copy->objects, &graph->objects);
    return copy;
}

/* Appends the nodes of `graph` to `flat`. Each child graph becomes its nodes between two EMPTY ones, so that edges
 * to and from it stay single. ends[i] is what stands for node i's end. */
static void append_flat(struct graph *flat, const struct graph *graph, struct node *before)
{
    struct node **order = zeroed(graph->count, sizeof(struct node *));
    struct node **ends = zeroed(graph->count, sizeof(struct node *));
    objects_copy(&flat->objects, &graph->objects);
    graph_order(graph, 0, order);
    for (size_t i = 0; i < graph->count; i++)
        order[i]->mark = i;
    for (size_t i = 0; i < graph->count; i++) {
        bool is_child = order[i]->child != NULL;
        struct node *node = append(flat, is_child ? CU_GRAPH_NODE_TYPE_EMPTY : order[i]->type);
        copy_content(node, order[i]);
        if (before != NULL && order[i]->dependency_count == 0)
            put_dependency(node, before, NULL);
        for (size_t k = 0; k < order[i]->dependency_count; k++)
            put_dependency(node, ends[order[i]->dependencies[k]->mark], NULL);
        ends[i] = node;
        if (!is_child)
            continue;
        size_t first = flat->count;
        append_flat(flat, order[i]->child, node);
        ends[i] = append(flat, CU_GRAPH_NODE_TYPE_EMPTY);
        put_dependency(ends[i], node, NULL);
        for (size_t k = first; k + 1 < flat->count; k++)
            put_dependency(ends[i], flat->nodes[k], NULL);
    }
    free(order);
    free(ends);
}

struct graph *graph_flatten(const struct graph *graph)
{
    struct graph *flat = graph_create();
    append_flat(flat, graph, NULL);
    return flat;
}

/* Takes, again and again, a node whose dependencies are all placed: the first such, or one of the seed's choosing. */
void graph_order(const struct graph *graph, uint64_t seed, struct node **order)
{
    size_t placed = 0;
    clear_marks(graph);
    while (placed < graph->count) {
        size_t start = 0;
        if (seed != 0) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            start = (size_t)(seed >> 33) % graph->count;
        }
        for (size_t i = 0; i < graph->count; i++) {
            struct node *node = graph->nodes[(start + i) % graph->count];
            bool is_ready = node->mark == 0;
            for (size_t k = 0; k < node->dependency_count && is_ready; k++)
                is_ready = node->dependencies[k]->mark != 0;
            if (!is_ready)
                continue;
            node->mark = 1;
            order[placed++] = node;
            if (seed != 0)
                break;
        }
    }
}

struct node *graph_counterpart(const struct graph *copy, const struct node *origin)
{
    for (size_t i = 0; i < copy->count; i++)
        if (copy->nodes[i]->origin == origin)
            return copy->nodes[i];
    return NULL;
}
