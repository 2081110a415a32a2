/* Graphs: nodes that hold a piece of work each (a template, copied at every launch) and wait for others.
 *
 * Invariants: a node's dependencies are nodes of its own graph, each once; dependencies have no cycle (a node is
 * made after what it depends on, and graph_add_edge refuses to close one). A graph owns its nodes, a node its work
 * and its child graph. An executable graph owns a copy of everything, children's nodes put in their place.
 *
 * Locking: everything under graph_lock. Graphs, nodes and executables are freed when destroyed; their handles are
 * then the program's mistake, as in the driver. */
#pragma once
#include "tests/device/stream.h"

struct graph;

struct node {
    enum handle_kind magic;
    CUgraphNodeType type;
    struct graph *graph;
    struct node *origin; /* of a copy: what it was copied from */
    struct work *work;   /* NULL: EMPTY, GRAPH, EVENT_RECORD, WAIT_EVENT */
    CUevent event;
    struct graph *child;
    bool is_disabled;
    struct node **dependencies;
    size_t dependency_count;
    void **pointers;   /* handed out as kernelParams */
    CUDA_MEMCPY3D box; /* MEMCPY: as asked for */
    size_t mark;       /* of whoever walks the graph */
};

struct graph {
    enum handle_kind magic;
    struct node **nodes; /* in the order in which they were made */
    size_t count, room;
};

struct graph_exec {
    enum handle_kind magic;
    cuuint64_t flags;
    struct graph *graph; /* flat */
};

void graph_lock(void);
void graph_unlock(void);

struct graph *graph_create(void);
void graph_destroy(struct graph *graph);
struct graph *graph_copy(const struct graph *graph);
/* A copy without GRAPH nodes: their nodes in their place. */
struct graph *graph_flatten(const struct graph *graph);

CUresult graph_find(CUgraph handle, struct graph **out);
CUresult node_find(CUgraphNode handle, struct node **out);

/* CUDA_ERROR_INVALID_VALUE if a dependency is of another graph or stands there twice. */
CUresult graph_add(struct graph *graph, CUgraphNodeType type, struct node *const *dependencies, size_t count,
                   struct node **out);
void graph_remove(struct node *node);
/* `to` waits for `from`. CUDA_ERROR_INVALID_VALUE if it does already, or if it would close a cycle. */
CUresult graph_add_edge(struct node *from, struct node *to);
CUresult graph_remove_edge(struct node *from, struct node *to);
/* `ancestor` is `node` or something that it waits for, at whatever distance. */
bool node_is_behind(const struct node *node, const struct node *ancestor);

/* Replaces the work; the former one goes. */
void node_set_work(struct node *node, struct work *work);
/* Fills `order` (graph->count long) so that every node comes after what it waits for; a seed picks another one. */
void graph_order(const struct graph *graph, uint64_t seed, struct node **order);
/* The node of the copy that was made from `origin`, or NULL. */
struct node *graph_counterpart(const struct graph *copy, const struct node *origin);
