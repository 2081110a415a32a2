/* Read-only index over a planning problem: who needs what, until when it can be rebuilt.
 *
 * A graph borrows its problem, which must outlive it and not change. All arrays are owned by the graph.
 *
 * Needs. The versions that must be present when operation o runs for the program are its reads, followed
 * by those versions that its outputs replace and that are not among the reads. A replay needs the reads,
 * and of the rest only those whose replacing output is absent.
 *
 * until[o] is a position up to which o can be replayed by rebuilding what it reads: replayable_until, lowered by
 * inputs that are overwritten by then and cannot be rebuilt themselves. 0 = never. A plan that holds what it rebuilt
 * may do so later, up to latest_replay[o]: that is what certificates go by.
 */
#pragma once
#include "policy/problem.h"

struct graph {
    const struct policy_problem *problem;
    uint32_t *need_first;        /* operation_count + 1 entries into needs */
    uint32_t *needs;             /* versions */
    uint32_t *reader_first;      /* version_count + 1 entries into readers */
    uint32_t *readers;           /* operations that need the version, ascending */
    uint32_t *replaced_by;       /* version -> version that takes over its bytes, or POLICY_NONE */
    uint32_t *host_root;         /* version -> the one that may start on the host and whose bytes it took over in place
                                    (itself included), or POLICY_NONE */
    uint32_t *last_need;         /* last position at which the program needs the version; operation_count if kept;
                                    the producer's own position (0 if there is none) if it is never needed */
    uint32_t *until;             /* per operation, see above */
    uint32_t *rebuildable_until; /* per version: greatest position at which it can be rebuilt; 0 = never */
    uint32_t *latest_replay;     /* per operation: no plan replays it at a greater position; 0 = never */
    uint32_t *latest_rebuild;    /* per version: no plan makes it again at a greater position; 0 = never */
    uint64_t *clock;             /* operation_count + 1: program time at each position */
    uint64_t *growth;            /* per operation: bytes that its run takes beyond what is present */
    bool *is_in_place;           /* per operation: does one of its outputs replace a version? */
};

/* False, with one line in `why`, where the problem is malformed. */
bool policy_problem_is_valid(const struct policy_problem *problem, char *why, size_t why_bytes);

/* The problem must be valid. False when memory ran out; then nothing is left allocated. */
bool graph_build(struct graph *graph, const struct policy_problem *problem);
void graph_release(struct graph *graph);

/* Does the program ever need v? */
static inline bool graph_is_needed(const struct graph *graph, uint32_t version)
{
    return graph->problem->versions[version].is_kept || graph->reader_first[version + 1] > graph->reader_first[version];
}

/* Is v there from the beginning to the end whatever the plan, swapping aside? */
static inline bool graph_is_always_there(const struct graph *graph, uint32_t version)
{
    const struct policy_version *v = &graph->problem->versions[version];
    return v->producer == POLICY_NONE && v->droppable_from == POLICY_NONE && graph->replaced_by[version] == POLICY_NONE;
}

/* Position at which the program overwrites v in place, or operation_count where it never does. */
uint32_t graph_replaced_at(const struct graph *graph, uint32_t version);

/* What an undropped run holds while each operation runs: operation_count entries, fixed bytes and workspace included.
 * False when memory ran out. */
bool graph_undropped_bytes(const struct graph *graph, uint64_t *bytes);

/* The lowest peak of a plan that replays nothing: every version dropped as soon as the program allows it. */
uint64_t graph_undropped_peak(const struct graph *graph, uint32_t *position);
