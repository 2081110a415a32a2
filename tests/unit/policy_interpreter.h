/* Executes a plan on values, by its own reading of policy/problem.h, for tests: shares no code with the
 * simulator. The value of a version is a hash of its producer's inputs; a replay must give the same one. */
#pragma once
#include "policy/plan.h"

struct interpreted {
    uint64_t peak_bytes;
    uint64_t added_nanoseconds; /* by a clock of its own, under the cap (policy/simulate.h says how time passes) */
    uint64_t replay_count, swapped_out_bytes, swapped_in_bytes;
};

/* NULL when the plan is right: then *out is what it took. Otherwise what is wrong with it. */
const char *interpret_plan(const struct policy_problem *problem, const struct plan_item *items, uint32_t count,
                           uint64_t cap, struct interpreted *out);
