/* What must have been held, at the least, so that some versions can be there although others were there all the while.
 *
 * `stuck` versions are there from the run of operation `maker` on (which made one of them) until all the `wanted`
 * versions are there too. Each wanted version was either held since then, or made beside the stuck ones from what was
 * held or made. Operations that do not fit beside the stuck versions cannot have run. */
#pragma once
#include "policy/flow.h"
#include "policy/graph.h"

struct beside {
    const struct graph *graph;
    uint32_t *version_node, *operation_node; /* POLICY_NONE: none yet */
    uint8_t *is_free, *is_stuck;
    uint32_t *queue; /* versions in the network, in the order of their nodes */
    uint32_t version_count, node_count;
    uint64_t steps;
    uint64_t least_over; /* with less room than this, the answer is the same */
    bool has_failed;     /* memory ran out */
};

struct beside_question {
    uint32_t maker;
    const uint32_t *stuck;
    uint32_t stuck_count;
    const uint32_t *wanted; /* may contain stuck ones */
    uint32_t wanted_count;
    uint64_t room; /* cap, without what is there at any time */
};

bool beside_begin(struct beside *beside, const struct graph *graph);
void beside_end(struct beside *beside);
/* Bytes held beside the stuck versions and what the maker reads and writes. 0 where memory ran out or the network would
 * be too large. */
uint64_t beside_held_bytes(struct beside *beside, const struct beside_question *question);
