/* The certificate beside a plan: no plan without swapping adds less time. */
#pragma once
#include "policy/cut.h"
#include "policy/effort.h"

struct bound {
    uint64_t ns;       /* UINT64_MAX: no plan without swapping can hold the cap */
    uint64_t single;   /* the part of it that a cut at one position shows */
    uint32_t position; /* where it does */
};

/* The greatest cut bound over a few positions: that of `cut`, those near the peak where a single operation takes most,
 * and pairs of positions, with a small share of the effort. */
struct bound bound_find(const struct graph *graph, uint64_t cap, const struct cut *cut, struct effort *effort);
