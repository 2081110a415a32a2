/* A planning problem: one training iteration, reduced to what a planner needs.
 *
 * Pure data: nothing here knows of CUDA. The front end (shim/learn.c, trace readers, tests) builds a
 * problem; strategies turn it into a plan (policy/plan.h); one simulator scores, one checker refuses.
 *
 * Positions. Operation i is the i-th operation of the iteration, 0 <= i < operation_count. "At
 * position i" means just before operation i runs; position operation_count is the iteration's end.
 *
 * Versions. A version is the content of a storage between two writes. Every version has one producer
 * operation, or POLICY_NONE if it is there when the iteration starts. All outputs of an operation are
 * produced together. A version may replace another one in place (`replaces`): then the producer reads
 * the old version and turns its bytes into the new one, so that no further bytes are needed and the old
 * version is absent afterwards.
 *
 * Replay. An operation may be run again at any position p with
 *     own index < p <= replayable_until            (replayable_until == 0: never)
 * provided that all versions it reads are present. Its outputs that are absent become present; an output
 * with `replaces` takes over the bytes of the version it replaces (which becomes absent). For an output
 * that is already present, the write goes to scratch: its bytes count while the operation runs, and
 * neither it nor what it replaces changes. `scratch_bytes` count while a replay runs as well.
 *
 * Residency. fixed_bytes are always there. A version's bytes count from the moment it is produced (or
 * from position 0 if producer is POLICY_NONE) until it is dropped, swapped out or replaced. A version
 * may be dropped at position p only if p >= droppable_from (0: at any time after production;
 * POLICY_NONE: never). A version that is present when the program no longer reads it may be kept
 * beyond that ("ghost"), so that others can be rebuilt from it. Versions with is_kept must be present at
 * the end.
 *
 * Host. A given version with may_start_on_host may be on the host when the iteration starts, where swapping is
 * possible: a plan says so by dropping it before anything else. Its bytes do not count then until it is swapped in,
 * and what has become of it by in-place replacement, if that is_kept, must end on the host instead of being present:
 * so the next iteration finds it where this one did.
 *
 * Peak. While operation i runs (original or replay), the bytes that count are fixed_bytes + all present
 * versions (inputs included) + its new outputs + its scratch and workspace. This must never exceed the cap.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_NONE UINT32_MAX

struct policy_operation {
    uint64_t nanoseconds;              /* measured duration of one run */
    uint64_t workspace_bytes;          /* needed while it runs, original or replay */
    uint64_t scratch_bytes;            /* needed in addition while it is replayed */
    uint32_t first_read, read_count;   /* slice of problem.reads */
    uint32_t first_write, write_count; /* slice of problem.writes */
    uint32_t replayable_until;         /* greatest position at which it may be replayed; 0 = never */
};

struct policy_version {
    uint64_t bytes;
    uint32_t producer;       /* operation, or POLICY_NONE: present at position 0 */
    uint32_t replaces;       /* version whose bytes it takes over, or POLICY_NONE */
    uint32_t droppable_from; /* least position at which it may be dropped; POLICY_NONE = never */
    bool is_kept;            /* must be present at the end of the iteration */
    bool is_swappable;       /* may go to the host and come back */
    bool may_start_on_host;  /* given versions that are swappable and droppable at any time only */
};

struct policy_problem {
    uint32_t operation_count, version_count, read_count, write_count;
    struct policy_operation *operations;
    struct policy_version *versions;
    uint32_t *reads;  /* version indices; no version twice in one operation */
    uint32_t *writes; /* version indices; every version with a producer exactly once */
    uint64_t fixed_bytes;
    uint64_t frame_bytes;                     /* unit that bytes are rounded to (information only); 0 = none */
    double out_bytes_per_ns, in_bytes_per_ns; /* swap bandwidth to and from the host; 0 = no swapping */
};
