/* A plan without swapping as a timeline that can be edited: which operation runs when, and what that takes.
 *
 * Gaps. Gap p, 0 <= p <= operation_count, holds what is executed after operation p - 1 has run: replays in any order,
 * then the run of operation p itself. Gap 0 begins with the start, which makes all given versions; the last gap ends
 * with the end, which uses all kept ones.
 *
 * Presence. A version used by an execution comes from the last execution of its producer before. So every execution
 * has, per output, a last use (itself where there is none, later where droppable_from demands it), and the version is
 * present from the execution to that, both included. Presence is not stored otherwise: inserting or removing a replay
 * changes the last uses of its neighbours.
 *
 * Bytes. The bytes that count during execution x are x's entry in its gap plus what the tree holds for the gap:
 *     bytes(x) == fixed + workspace and scratch of x + the sum over all versions present during x.
 *
 * Operations that replace a version in place and those whose outputs are replaced are not movable: their replays stay
 * where they are, and no others are put in. At any position the same holds for those whose outputs are pinned there. */
#pragma once
#include "policy/graph.h"
#include "policy/range_tree.h"
#include "policy/items.h"

struct execution {
    uint32_t operation;
    uint32_t slot, gap;    /* slot: place in the gap */
    uint32_t first_output; /* slice of last_uses, as many as the operation has outputs; of a dead one: next dead */
    uint32_t replay;       /* place in timeline.replays, POLICY_NONE for a run */
};

struct gap {
    uint32_t *executions;
    int64_t *bytes; /* without what the tree holds */
    uint32_t count, capacity;
};

struct timeline {
    const struct graph *graph;
    int64_t cap;
    uint32_t operation_count; /* start and end are operations operation_count and operation_count + 1 */
    struct execution *executions;
    uint32_t execution_count, execution_capacity;
    uint32_t *last_uses; /* executions */
    uint32_t last_use_count, last_use_capacity;
    struct gap *gaps;
    uint32_t **runs_of; /* per operation: its executions in order of time */
    uint32_t *run_count, *run_capacity, *dead_of;
    uint32_t *given, given_count; /* outputs of the start */
    uint32_t *output_index;       /* per version: its place among its producer's outputs */
    bool *is_movable;             /* per operation: may be replayed as far as this timeline can tell */
    uint32_t *earliest;           /* per operation: least gap at which it may be replayed again */
    struct range_tree tree;       /* over gaps */
    uint32_t *replays, replay_count, replay_capacity; /* executions that are replays, in no order */
    uint64_t cost;                                    /* time of all replays */
    uint64_t work;                                    /* steps done, for whoever counts effort */
    bool out_of_memory;
};

enum timeline_result { TIMELINE_MADE, TIMELINE_UNFIT, TIMELINE_NO_MEMORY };

/* The items must be a legal plan. TIMELINE_UNFIT: it swaps, or replays what may not be dropped
 * yet, or what replaces one output in place while another is still there. */
enum timeline_result timeline_begin(struct timeline *t, const struct graph *graph, uint64_t cap,
                                    const struct item_list *plan);
void timeline_end(struct timeline *t);

/* Inserts a replay of the operation before execution `next` and returns it; POLICY_NONE if memory ran out. */
uint32_t timeline_insert(struct timeline *t, uint32_t operation, uint32_t next);
/* Takes a replay out; its users turn to the execution before it. */
void timeline_remove(struct timeline *t, uint32_t execution);
/* Does nobody use what a replay makes? */
bool timeline_is_useless(const struct timeline *t, uint32_t execution);

static inline bool timeline_is_before(const struct timeline *t, uint32_t a, uint32_t b)
{
    const struct execution *x = &t->executions[a], *y = &t->executions[b];
    return ((uint64_t)x->gap << 32 | x->slot) < ((uint64_t)y->gap << 32 | y->slot);
}
/* The execution of the version's producer that its users at `at` get it from. */
uint32_t timeline_source(const struct timeline *t, uint32_t version, uint32_t at);
/* Last use of the version as made by `source`. */
uint32_t timeline_last_use(const struct timeline *t, uint32_t source, uint32_t version);
/* First use of what `source` made of the version after `at`, or POLICY_NONE. */
uint32_t timeline_next_use(const struct timeline *t, uint32_t source, uint32_t version, uint32_t at);
static inline int64_t timeline_peak(const struct timeline *t)
{
    return t->tree.most[1];
}
/* An execution at the peak. */
uint32_t timeline_peak_at(const struct timeline *t);
/* Most bytes after `from` up to and including `to`. */
int64_t timeline_most(const struct timeline *t, uint32_t from, uint32_t to);

/* False when memory ran out. */
bool timeline_write(const struct timeline *t, struct item_list *out);

static inline uint32_t timeline_output_count(const struct timeline *t, uint32_t o)
{
    return o < t->operation_count    ? t->graph->problem->operations[o].write_count
           : o == t->operation_count ? t->given_count
                                     : 0;
}

static inline uint32_t timeline_output(const struct timeline *t, uint32_t o, uint32_t k)
{
    return o < t->operation_count ? t->graph->problem->writes[t->graph->problem->operations[o].first_write + k]
                                  : t->given[k];
}

/* For the other half of the timeline: bytes added to all executions after `from` up to and including `to`, and the
 * tree brought up to date after a gap's own entries have changed. */
void timeline_add(struct timeline *timeline, uint32_t from, uint32_t to, int64_t bytes);
void timeline_refresh(struct timeline *timeline, uint32_t gap);
/* The whole tree from the gaps' own entries, while nothing reaches across yet. */
void timeline_sum_up(struct timeline *timeline);
