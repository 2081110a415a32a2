/* What a node is asked to do, in the driver's own structs, checked and turned into work. */
#pragma once
#include "tests/device/graph.h"

/* The work of a node of that type, in the current context; *work is NULL for the types that have none.
 * CUDA_ERROR_NOT_SUPPORTED, said once, for types that the CPU device does not have. */
CUresult node_make_work(const CUgraphNodeParams *params, struct work **work);
/* Under graph_lock: gives the node its new content (the type stays). Consumes the work. */
void node_set_content(struct node *node, const CUgraphNodeParams *params, struct work *work);
/* Under graph_lock: a MEM_ALLOC node's content, one hold. */
void node_set_memory(struct node *node, struct graph_memory *memory);
/* Under graph_lock: a MEM_FREE node for the memory may be put into the graph, and is counted as put.
 * CUDA_ERROR_INVALID_VALUE. */
CUresult node_claim_free(const struct graph *graph, struct graph_memory *memory);
