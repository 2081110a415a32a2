/* The exact simulator: executes a plan item by item and says what it takes.
 *
 * Bytes follow policy/problem.h. Time: operations run one after another on one stream. A swap-out starts
 * when what precedes it has run and the outward channel is free; its bytes count as freed in the plan at
 * once, but whatever needs them under the cap waits for the copy. A swap-in starts likewise on the inward
 * channel; the first operation that needs the version waits for it. The iteration ends when the stream and
 * both channels are idle.
 */
#pragma once
#include "policy/residency.h"

struct simulation {
    uint64_t peak_bytes;
    uint64_t run_nanoseconds;
    uint64_t added_nanoseconds; /* replays and waits for swaps */
    uint64_t replay_nanoseconds;
    uint64_t swapped_out_bytes, swapped_in_bytes;
    uint32_t replay_count;
    uint32_t fault_item; /* when refused */
    struct step_fault fault;
};

enum simulation_result { SIMULATION_DONE, SIMULATION_REFUSED, SIMULATION_NO_MEMORY };

/* bytes_at (may be NULL): item_count entries, what counts during each item. cap UINT64_MAX: none. */
enum simulation_result simulate_plan(const struct graph *graph, const struct plan_item *items, uint32_t item_count,
                                     uint64_t cap, struct simulation *out, uint64_t *bytes_at);
