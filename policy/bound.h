/* The certificate beside a plan: no plan without swapping adds less time. */
#pragma once
#include "policy/cut.h"
#include "policy/effort.h"

/* The greatest cut bound over a few positions: that of `cut`, those near the peak where a single operation takes most,
 * and pairs of positions, with a small share of the effort. UINT64_MAX: no plan without swapping can hold the cap.
 * *single becomes the greatest at a single position. */
uint64_t bound_nanoseconds(const struct graph *graph, uint64_t cap, const struct cut *cut, struct effort *effort,
                           uint64_t *single);
