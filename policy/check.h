/* The legality checker: refuses a plan with one line that names the item and the reason. */
#pragma once
#include "policy/simulate.h"

/* True when every item is legal under `cap`, every operation runs once and in order, and everything that
 * must be there at the end is. `out` (may be NULL) gets what the simulator found. */
bool check_plan(const struct graph *graph, const struct plan_item *items, uint32_t item_count, uint64_t cap,
                struct simulation *out, char *why, size_t why_bytes);
