/* Device memory that the program takes past the arena: what was charged for it, so that the same is refunded.
 *
 * Invariants
 *   every charge is recorded under one key (kind and handle or address) and refunded exactly once
 *   a record is taken out before the driver releases what it stands for, put back if the driver refuses
 * Any thread; no driver call and no engine call is made under the lock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum outside_kind {
    OUTSIDE_ADDRESS, /* managed, old forms, exportable pools, imports: by device address */
    OUTSIDE_HANDLE,  /* the program's own cuMemCreate and imports of it: counted references */
    OUTSIDE_MAPPING, /* address of a mapping -> bytes holds the handle */
    OUTSIDE_ARRAY,
    OUTSIDE_MIPMAP,
    OUTSIDE_EXTERNAL,
    OUTSIDE_POOL,   /* what a pool of the driver's holds in reserve */
    OUTSIDE_GRAPHS, /* graph memory nodes, by device */
    OUTSIDE_LIMIT,  /* by limit */
    OUTSIDE_PRIVATE /* pools that may not be served from the arena; bytes: one of the two below */
};

enum { PRIVATE_DEVICE = 1, PRIVATE_HOST = 2 };

/* Records `bytes` under the key, added to what is there; counts one reference. False: no room (said once). */
bool outside_add(enum outside_kind kind, uint64_t key, uint64_t bytes);

/* Takes the record out and returns its bytes; 0 if there is none. */
uint64_t outside_take(enum outside_kind kind, uint64_t key);

/* One reference more, or one less: at none the record is taken out and *bytes says what it held (else 0).
 * False: no such record. */
bool outside_retain(enum outside_kind kind, uint64_t key);
bool outside_release(enum outside_kind kind, uint64_t key, uint64_t *bytes);

/* The record's bytes; false: none. */
bool outside_find(enum outside_kind kind, uint64_t key, uint64_t *bytes);

/* Sets the record's bytes (making it if needed) and returns what they were. */
uint64_t outside_set(enum outside_kind kind, uint64_t key, uint64_t bytes);
