/* Brings swapped versions back early enough for the copy to run beside the operations before their use, as far as
 * there is room. */
#pragma once
#include "policy/items.h"
#include "policy/residency.h"

/* The plan must be legal under the cap and stays so; *added_ns is the time that it adds. False when memory ran out; the
 * plan is then unchanged. */
bool prefetch_swaps(const struct graph *graph, uint64_t cap, struct item_list *plan, uint64_t *added_ns);
