/* The recording's own form: written by learn.c, read by compose.c. */
#pragma once
#include "shim/learn.h"

struct record_touch {
    uint32_t object;
    uint32_t before, after; /* fingerprints in proof's log */
    uint32_t unwritten;     /* in proof's log: what nobody has written of it so far; PROOF_NONE: not asked */
    bool is_stored, is_loaded, is_exact, is_full_write, is_hidden, was_fresh;
};

struct record {
    uint64_t signature;
    uint32_t first_touch, touch_count, first_use, use_count;
    const struct function_facts *facts; /* NULL for copies and sets */
    uint32_t kind, direction;
    uint64_t live_signature; /* as it arrived */
    uint64_t copied_bytes;
    uint64_t number; /* in the trace */
    uint32_t stack;
    uint32_t grid[3], block[3];
    bool is_usable; /* false: opaque, captured, or touches more than fit */
    bool is_timed;
    bool writes_outside; /* memory that is not ours: variables of modules */
};

/* An allocation as the recording knows it. */
struct record_object {
    uint64_t bytes;
    uint32_t born, ended; /* positions; born 0 also for what was there before; ended SCRIPT_NONE: alive */
    bool was_there;       /* alive when recording began */
    bool is_small, is_pinned, is_foreign;
    uint32_t allocation;     /* index and serial of the allocation */
    uint64_t serial, traced; /* traced: id in the trace */
    uint32_t stack;
};

struct recording {
    struct record *records;
    struct record_touch *touches;
    struct script_use *uses;
    struct record_object *objects;
    CUevent *events; /* two per record */
    uint32_t record_count, touch_count, use_count, object_count, event_count;
    bool is_on, is_overfull;
    bool is_outside_foreign; /* memory that is not ours is written on other streams, too */
    uint64_t dropped;
    struct {
        CUfunction function;
    } * rejected;
    uint32_t rejected_count;
};

const struct recording *learn_recording(void);
