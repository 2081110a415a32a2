/* A plan: what to do between the operations of one iteration.
 *
 * The items are in execution order. Every operation of the problem occurs exactly once as PLAN_RUN, in
 * order; everything else stands between them. Whoever executes a plan does exactly this list.
 *
 * Swaps: PLAN_SWAP_OUT copies a version to the host and frees its bytes; PLAN_SWAP_IN brings it back
 * (bytes count from here on). A version that was swapped out once stays on the host until it is replaced:
 * a later drop of it costs nothing more. Drops of versions that may start on the host, before all other items,
 * mean that the iteration starts with them there (policy/problem.h).
 */
#pragma once
#include "policy/problem.h"

enum plan_verb { PLAN_RUN, PLAN_REPLAY, PLAN_DROP, PLAN_SWAP_OUT, PLAN_SWAP_IN };

struct plan_item {
    uint32_t verb;  /* enum plan_verb */
    uint32_t index; /* operation for RUN and REPLAY, version otherwise */
};

struct plan {
    struct plan_item *items;
    uint32_t item_count;
    uint64_t peak_bytes;        /* fixed_bytes included; from the simulator */
    uint64_t run_nanoseconds;   /* all operations once */
    uint64_t added_nanoseconds; /* replays and what swaps cannot hide; from the simulator */
    uint64_t bound_nanoseconds; /* no plan adds less than this (certificate); 0 if none was computed. Filled on
                                   POLICY_INFEASIBLE as well: UINT64_MAX = impossible without swapping */
    uint64_t cut_nanoseconds;   /* the part of it that a cut at one position shows (policy/cut.h) */
    const char *strategy;       /* name of the strategy that made it; static string */
    /* On POLICY_INFEASIBLE, where that is proven: bytes that any plan without swapping needs, 0 otherwise, and at which
       operation (operation_count: at the end; POLICY_NONE: not known, an exhaustive search found none). */
    uint64_t needed_bytes;
    uint32_t needing_operation;
};

enum policy_status {
    POLICY_OK,
    POLICY_INFEASIBLE,  /* no plan found under this cap; *floor_bytes says which cap would do */
    POLICY_BAD_PROBLEM, /* malformed problem */
    POLICY_NO_MEMORY
};

struct policy_options {
    uint64_t cap_bytes;
    uint64_t deadline_ns; /* planning time allowed; 0 = default (300 ms). Beyond 75,000 operations at least 4 us for
                             each; four times as long where no plan was found within it */
    bool may_swap;
    bool may_not_replay;       /* swapping alone */
    bool is_brief;             /* for a running program: small problems get a small part of the deadline */
    bool is_untimed;           /* no clock stops it, only the effort: the same plan on any machine, however slow */
    const char *only_strategy; /* NULL: all, best wins */
};

/* Makes the best plan found for `problem` under options->cap_bytes. On POLICY_OK, *out is filled and must
 * be released with plan_release; it has passed the checker. On POLICY_INFEASIBLE, *floor_bytes (may be
 * NULL) is the smallest cap for which a plan is known. `why` gets one line for BAD_PROBLEM/INFEASIBLE.
 * Uses malloc. */
enum policy_status policy_make_plan(const struct policy_problem *problem, const struct policy_options *options,
                                    struct plan *out, uint64_t *floor_bytes, char *why, size_t why_bytes);
void plan_release(struct plan *plan);

/* No execution is possible under less. Fixed bytes + the greatest single operation, counting also what cannot be
 * dropped at that time; without a swap bandwidth also what policy/impossible.h proves. */
uint64_t policy_floor_bytes(const struct policy_problem *problem);
