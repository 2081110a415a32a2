/* What a node is asked to do, in the driver's own structs, checked and turned into work. */
#pragma once
#include "tests/device/graph.h"

/* The work of a node of that type; *work is NULL for the types that have none. CUDA_ERROR_NOT_SUPPORTED for types
 * that the CPU device does not have. */
CUresult node_make_work(const CUgraphNodeParams *params, struct work **work);
/* Under graph_lock: gives the node its new content (the type stays). Consumes the work. */
void node_set_content(struct node *node, const CUgraphNodeParams *params, struct work *work);
