/* What is where while a plan is executed: the one stepping core under the simulator, the checker and the
 * strategies. It applies the rules of policy/problem.h and nothing else.
 *
 * Invariant: bytes == fixed_bytes + the sum of the bytes of all present versions.
 * A step that is refused changes nothing but `fault`.
 */
#pragma once
#include "policy/graph.h"
#include "policy/plan.h"

enum { RESIDENCY_PRESENT = 1, RESIDENCY_ON_HOST = 2, RESIDENCY_STARTED_ON_HOST = 4 };

enum step_result {
    STEP_DONE,
    STEP_BAD_ITEM,       /* unknown verb or index out of range */
    STEP_OUT_OF_ORDER,   /* RUN of another operation than the next one */
    STEP_ABSENT,         /* a version it needs is not present */
    STEP_NOT_REPLAYABLE, /* not run yet, or past replayable_until */
    STEP_NOT_DROPPABLE,  /* before droppable_from */
    STEP_NOT_SWAPPABLE,
    STEP_NOT_ON_HOST,
    STEP_PRESENT, /* swap-in of what is there */
    STEP_OVER_CAP
};

struct step_fault {
    enum step_result result;
    uint32_t version; /* the version at fault, or POLICY_NONE */
    uint64_t bytes;   /* bytes that would have counted, for STEP_OVER_CAP */
};

struct residency {
    const struct graph *graph;
    uint8_t *state;    /* per version: RESIDENCY_ bits */
    uint32_t position; /* operations run so far */
    uint64_t bytes;
    uint64_t cap;        /* UINT64_MAX = none */
    uint64_t step_bytes; /* bytes that counted during the last step */
    bool has_begun;      /* an item came that is not a version's start on the host */
    struct step_fault fault;
};

bool residency_begin(struct residency *residency, const struct graph *graph, uint64_t cap);
void residency_end(struct residency *residency);
/* True when done; otherwise residency->fault says why. */
bool residency_step(struct residency *residency, struct plan_item item);

/* The next operation's run, or the replay of an earlier one, for whoever knows that it is legal and that none of its
 * absent outputs replaces another version. `step_bytes` stays as it was. */
void residency_make_outputs(struct residency *residency, uint32_t operation);

static inline bool residency_has(const struct residency *residency, uint32_t version)
{
    return residency->state[version] & RESIDENCY_PRESENT;
}

/* Must v be on the host at the end, since what it came from started there? */
static inline bool residency_is_owed(const struct residency *residency, uint32_t version)
{
    if (!residency->graph->problem->versions[version].is_kept)
        return false;
    uint32_t root = residency->graph->host_root[version];
    return root != POLICY_NONE && (residency->state[root] & RESIDENCY_STARTED_ON_HOST);
}

/* Must v be present at the end? */
static inline bool residency_is_due(const struct residency *residency, uint32_t version)
{
    return residency->graph->problem->versions[version].is_kept && !residency_is_owed(residency, version);
}

/* Has everything run, and is everything where it must be at the end? */
bool residency_is_complete(const struct residency *residency);

/* Bytes needed beyond those present while operation o runs (is_replay: again). */
uint64_t residency_growth(const struct residency *residency, uint32_t operation, bool is_replay);
