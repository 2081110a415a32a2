/* Graphs: nodes that hold a piece of work each (a template, copied at every launch) and wait for others.
 *
 * Invariants: a node's dependencies are nodes of its own graph, each once; dependencies have no cycle (a node is
 * made after what it depends on, and graph_add_edge refuses to close one). A graph owns its nodes, a node its work
 * and its child graph. An executable graph owns a copy of everything, children's nodes put in their place; memory that
 * nodes allocate or free is shared between a graph and its one executable.
 *
 * Locking: everything under graph_lock. Graphs, nodes and executables are freed when destroyed; their handles are
 * then the program's mistake, as in the driver. */
#pragma once
#include "tests/device/stream.h"
#include "tests/device/user_object.h"

#define NODE_ATTRIBUTES 32 /* more than there are kinds of */

struct graph;
struct graph_memory;

struct node {
    enum handle_kind magic;
    CUgraphNodeType type;
    struct graph *graph;
    struct node *origin; /* of a copy: what it was copied from */
    struct work *work;   /* a chain; NULL: EMPTY, GRAPH, EVENT_RECORD, WAIT_EVENT, MEM_ALLOC, MEM_FREE */
    CUevent event;
    struct graph *child;
    struct graph_memory *memory; /* MEM_ALLOC, MEM_FREE: one hold */
    bool is_disabled;
    struct node **dependencies;
    CUgraphEdgeData *edges; /* one for each dependency */
    size_t dependency_count;
    CUkernelNodeAttrValue *attributes;    /* KERNEL: as set, by number; NULL: none was */
    uint32_t attributes_set;              /* a bit for each */
    CUstreamBatchMemOpParams *operations; /* handed out by questions */
    void **pointers;                      /* handed out as kernelParams */
    CUDA_MEMCPY3D box;                    /* MEMCPY: as asked for */
    size_t mark;                          /* of whoever walks the graph */
};

struct graph {
    enum handle_kind magic;
    struct node **nodes; /* in the order in which they were made */
    size_t count, room;
    size_t memory_nodes;     /* MEM_ALLOC and MEM_FREE, children's not included */
    bool is_moved;           /* owned by a node of another graph */
    struct graph_exec *exec; /* the only executable, of a graph with memory nodes */
    struct object_list objects;
};

struct graph_exec {
    enum handle_kind magic;
    cuuint64_t flags;
    struct graph *graph;  /* flat */
    struct graph *origin; /* with memory nodes: what it was made from; NULL if that is gone */
    uint64_t stream_id;   /* of the latest launch, which launches in other streams wait for */
    struct fence *latest; /* its end */
};

void graph_lock(void);
void graph_unlock(void);
void graph_unlock_plain(void); /* without calling destructors */

struct graph *graph_create(void);
void graph_destroy(struct graph *graph);
struct graph *graph_copy(const struct graph *graph);
/* A copy without GRAPH nodes: their nodes in their place. */
struct graph *graph_flatten(const struct graph *graph);

CUresult graph_find(CUgraph handle, struct graph **out);
CUresult node_find(CUgraphNode handle, struct node **out);

/* Edges may be NULL: all default. CUDA_ERROR_INVALID_VALUE if a dependency is of another graph or stands there twice,
 * or if an edge's data says what its nodes do not have. */
CUresult graph_check_edges(const struct graph *graph, CUgraphNodeType type, struct node *const *dependencies,
                           const CUgraphEdgeData *edges, size_t count);
/* With edges that were checked. */
struct node *graph_add(struct graph *graph, CUgraphNodeType type, struct node *const *dependencies,
                       const CUgraphEdgeData *edges, size_t count);
void graph_remove(struct node *node);
/* `to` waits for `from`. CUDA_ERROR_INVALID_VALUE if it does already, or if it would close a cycle. */
CUresult graph_add_edge(struct node *from, struct node *to, const CUgraphEdgeData *edge);
/* CUDA_ERROR_INVALID_VALUE if there is no such edge with that data. */
CUresult graph_remove_edge(struct node *from, struct node *to, const CUgraphEdgeData *edge);
bool edge_is_default(const CUgraphEdgeData *edge);
/* Memory nodes, at whatever depth. */
bool graph_has_memory(const struct graph *graph);
/* `ancestor` is `node` or something that it waits for, at whatever distance. */
bool node_is_behind(const struct node *node, const struct node *ancestor);

/* Replaces the work; the former one goes. */
void node_set_work(struct node *node, struct work *work);
/* Fills `order` (graph->count long) so that every node comes after what it waits for; a seed picks another one. */
void graph_order(const struct graph *graph, uint64_t seed, struct node **order);
/* The node of the copy that was made from `origin`, or NULL. */
struct node *graph_counterpart(const struct graph *copy, const struct node *origin);
