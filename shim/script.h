/* A script: one recorded iteration in the form that is followed at run time, with the plan for it.
 *
 * learn.c makes a script and the planning problem from the same recording in one go, so that operation i and
 * version v are the same in both. follow.c executes it. Nothing in a script changes after it was made but
 * `rejected` marks.
 *
 * Slots stand for the allocations of the iteration. A slot is
 *   GIVEN   there when the iteration starts (weights, optimiser state): always resident, no versions
 *   FIXED   born in the iteration but never dropped, moved or rebuilt (pinned, foreign, read before written)
 *   PLANNED everything else: its contents are versions of the problem
 * Invariants
 *   a version belongs to exactly one PLANNED slot; a FIXED slot has one version, for its bytes only
 *   touches of an operation name a slot at most once */
#pragma once
#include "policy/plan.h"
#include "shim/launch.h"

#define SCRIPT_NONE UINT32_MAX

enum slot_kind { SLOT_GIVEN, SLOT_FIXED, SLOT_PLANNED };

struct script_slot {
    uint64_t bytes;      /* as asked for */
    uint32_t kind;       /* enum slot_kind */
    uint32_t ends;       /* operation before which the program frees it; SCRIPT_NONE: held at the end */
    uint32_t allocation; /* GIVEN: index and serial of the allocation in the recording */
    uint64_t serial;
    uint64_t traced; /* the recorded allocation's id in the trace */
    uint32_t stack;
    bool is_small;
    bool is_partly_written; /* some operation left bytes of it that nobody had written yet */
    bool is_filled;         /* such, and the plan drops or rebuilds a version of it: filled with a pattern before its
                               first operation, so that the unwritten bytes come out equal */
    bool is_foreign;        /* others than the main lane touched it in the recording: nothing depends on that */
};

struct script_touch {
    uint32_t slot;
    uint32_t reads, writes; /* versions; SCRIPT_NONE: none, or the slot is not PLANNED */
    bool is_written;        /* also for slots without versions */
    bool is_loaded;         /* its bytes may be read: an unwanted write needs them in its scratch copy */
    bool is_hidden;         /* reached through a pointer in memory: cannot be redirected */
};

struct script_use {
    uint32_t where;  /* offset of the word in the argument block */
    uint32_t touch;  /* index within the operation */
    uint64_t offset; /* of the address within the allocation */
};

struct script_operation {
    uint64_t signature;
    uint32_t first_touch, touch_count, first_use, use_count;
    uint64_t nanoseconds;
    CUfunction function; /* NULL for copies and sets */
    const char *name;
    const char *reason;         /* why it is not replayed; NULL if it may be, or if nobody said */
    uint64_t moved_bytes;       /* of copies */
    uint32_t grid[3], block[3]; /* of launches */
    uint32_t direction;         /* of copies: enum copy_direction */
    uint64_t number;            /* of the recorded operation, in the trace */
    uint32_t stack;
    bool is_replayed; /* some item replays it: its arguments are kept when it runs */
    bool is_replayable;
};

struct script_version {
    uint32_t slot, producer;
    uint64_t bytes;     /* of the allocation */
    uint32_t last_item; /* last item that needs it; 0 = never needed after its production */
    uint32_t print;     /* number among those that are dropped or rebuilt */
    bool is_rebuilt;    /* dropped, and produced again by a replay */
    bool is_checked;    /* rebuilt contents of it reach the program: compared with what was dropped */
};

struct script {
    uint32_t operation_count, touch_count, use_count, slot_count, version_count;
    struct script_operation *operations;
    struct script_touch *touches;
    struct script_use *uses;
    struct script_slot *slots;
    struct script_version *versions;
    uint64_t start_signature;                     /* of the live set */
    uint64_t given_page_bytes, given_small_bytes; /* footprint of all that is there during the whole iteration */
    uint32_t print_count;                         /* versions with a print: their numbers in the tables of proof.c */
    struct plan plan;
};
