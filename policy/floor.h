/* The simple floor of memory: what every execution needs at its worst operation. */
#pragma once
#include "policy/graph.h"

/* Fixed bytes, what cannot be dropped at that time, and one operation's inputs, outputs and workspace; *operation is
 * where that is most (operation_count: at the end). UINT64_MAX: memory ran out. policy/impossible.h proves more. */
uint64_t floor_of_operations(const struct graph *graph, bool can_swap, uint32_t *operation);
