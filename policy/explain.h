/* What a plan does and what each part of it costs, by group of operations. Groups are the caller's: by name and call
 * site, say.
 *
 * Cost. Rebuilding a version may take several replays: those that make what only other replays read are charged to the
 * group whose version the program reads in the end. So the costs of all groups add up to the replays of the plan.
 *
 * Saved. What the group's operations had made, the program reads later, and is absent under the plan while the
 * operation runs at which a run without dropping holds most. */
#pragma once
#include "policy/graph.h"
#include "policy/plan.h"

struct explain_group {
    uint32_t dropped_count; /* versions made by the group that the program reads again after they were away */
    uint64_t dropped_bytes; /* their bytes, each time counted */
    uint32_t swapped_count; /* of these, brought back from the host */
    uint64_t swapped_bytes;
    uint64_t saved_bytes;
    uint32_t replay_count; /* charged to the group */
    uint64_t replay_ns;
};

/* groups: group_count + 1 entries; the last one is for versions that are there when the iteration begins. The plan must
 * be legal. False when memory ran out. */
bool explain_plan(const struct graph *graph, const struct plan *plan, const uint32_t *group_of_operation,
                  uint32_t group_count, struct explain_group *groups);
