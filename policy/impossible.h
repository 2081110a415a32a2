/* Proofs that no plan without swapping can hold a cap, and so a floor of memory above that of policy_floor_bytes.
 *
 * What an operation reads must be there together. One of these versions was made last: while it was made, all the
 * others were there, beside what its producer reads and writes. So a set of versions that are there together implies
 * another one at an earlier moment, one for each version that may have been the last; where each of them leads to more
 * bytes than the cap, no plan exists. Two things make the search short:
 * - what cannot have been made last (its making does not fit beside the others) was there while the others of the set
 *   were made; whatever cannot be made beside it must have been held since. The least that can have been held is a
 *   minimum cut (policy/flow.h) over the operations that fit beside it.
 * - a set is given up, as if it could be made, after a number of steps: a proof may be missed, never wrong. */
#pragma once
#include "policy/graph.h"

struct impossible {
    uint32_t operation; /* at which memory cannot suffice; operation_count: at the end */
    uint64_t bytes;     /* needed at the least, there or before so that it can run: more than the cap */
};

enum impossible_result { IMPOSSIBLE_UNPROVEN, IMPOSSIBLE_PROVEN, IMPOSSIBLE_NO_MEMORY };

/* A proof is that of floor_of_operations, or the one described above. */
enum impossible_result impossible_under(const struct graph *graph, uint64_t cap, struct impossible *out);
/* The greatest bound found on what a plan without swapping needs, from `floor` (which is one) up. */
uint64_t impossible_floor(const struct graph *graph, uint64_t floor);
