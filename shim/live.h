/* The iteration in progress under a script: where each version is. Shared by follow.c (the program's own
 * operations), away.c (dropping and swapping), replay.c (rebuilding) and leave.c (back to residency on demand);
 * nobody else sees it.
 *
 * Invariants
 *   PRESENT: `place` holds the version's bytes. It is the home of the slot's allocation (then no other version
 *            of the slot is there: slot.at_home names it) or a place that the version owns.
 *   HOST:    `host` holds the bytes, no place.
 *   DROPPED: neither; its producer's arguments are kept and its recipe is in force.
 *   ABSENT:  not produced yet in this iteration, or replaced, or needed no more.
 *   slot.current is the version that the program believes to be in its allocation. */
#pragma once
#include "shim/reside.h"
#include "shim/script.h"

enum version_state { VERSION_ABSENT, VERSION_PRESENT, VERSION_DROPPED, VERSION_HOST };

struct live_version {
    uint32_t state;          /* enum version_state */
    uint32_t place;          /* PRESENT only */
    struct host_copy *host;  /* swapped out, or still valid from an earlier swap */
    struct host_copy *audit; /* kept to compare the rebuilt bytes with */
    bool was_swapped;        /* the plan counts on a copy on the host from then on */
    bool is_doubtful;        /* a kernel that cannot be read had it in hand after it was dropped or swapped once */
};

struct live_slot {
    uint32_t allocation;       /* SCRIPT_NONE: not bound yet, or freed by the program */
    uint32_t current, at_home; /* versions or SCRIPT_NONE */
    bool was_bound;
    uint64_t traced; /* the allocation's id in the trace, also after it was freed */
};

struct live_operation {
    uint64_t number;            /* in the trace */
    struct operation operation; /* arguments and attributes point into the iteration's memory */
    bool is_kept;
};

struct live {
    const struct script *script;
    struct live_version *versions;
    struct live_slot *slots;
    struct live_operation *operations;
    uint32_t next_operation, next_item;
    uint32_t stream;
    bool is_probation, keeps_copies, is_restoring;
    uint64_t random; /* chooses audits */
    /* counts of this iteration */
    uint64_t replayed, replayed_nanoseconds;
    const char *trouble; /* set by whoever returns false */
};

/* replay.c */
/* Frames for a place that `stream` will use, behind all that used it or them before. */
bool live_acquire(struct live *live, struct place *place, uint32_t stream, CUresult *result);
bool live_replay(struct live *live, uint32_t operation, CUresult *result);
bool live_is_home(const struct live *live, uint32_t version);
/* Makes the slot's home free of any version but `keep`: what is still needed moves to a place of its own. */
bool live_vacate(struct live *live, uint32_t slot, uint32_t keep, CUresult *result);
/* A present version that is what the program holds moves to its allocation's home. */
bool live_bring_home(struct live *live, uint32_t version, CUresult *result);
void live_let_go(struct live *live, uint32_t version); /* ends it: its own place is given back */

/* away.c */
bool live_drop(struct live *live, uint32_t version);
bool live_swap_out(struct live *live, uint32_t version);
bool live_swap_in(struct live *live, uint32_t version, CUresult *result);

/* leave.c: everything the program holds is in frames or on the host afterwards; nothing is dropped. */
bool live_restore(struct live *live, CUresult *result);
void live_end(struct live *live); /* ghosts are given back, slots unbound */
