/* Which allocation an address belongs to, and the places that contents live in.
 *
 * An allocation is what the program holds. Its home place gives it its addresses, which never change while
 * the program holds it. Allocations of at least half a frame have pages of their own; smaller ones are pieces
 * of slabs, whose frames stay while any piece is in use.
 *
 * Invariants
 *   every arena page belongs to no place, to one place with pages, or to one slab
 *   a live allocation has exactly one home; no two live allocations share one
 *   is_fresh: the program never touched it; it has neither frames nor a host copy
 *   content is in exactly one of: frames (home is resident), host copy, dropped (has_recipe), nothing (fresh)
 * Sole owner of allocation state. Callers hold the engine's turn. */
#pragma once
#include "shim/frames.h"

#define SPACE_NONE UINT32_MAX

struct host_copy; /* swap.h */

struct allocation {
    CUdeviceptr base;
    uint64_t bytes;  /* as asked for */
    uint32_t home;   /* place */
    uint32_t index;  /* its own */
    uint64_t serial; /* unique for ever */
    bool is_live, is_fresh, is_pinned, is_dropped;
    bool is_foreign;        /* touched outside the main lane: never dropped by a plan */
    uint32_t locks;         /* > 0: an operation in hand needs it where it is */
    struct host_copy *host; /* content is here, not in frames */
    const char *pin_reason;
    uint32_t newer, older; /* LRU list of evictable contents */
    uint32_t learned;      /* index in the recording, or SPACE_NONE */
    uint32_t slot;         /* slot of the plan it is bound to in this iteration, or SPACE_NONE */
    uint64_t stamp;        /* engine.c: submission that saw it last, and as which touch */
    uint32_t stamp_touch;
    uint64_t traced;     /* id in the trace; 0: none */
    uint32_t stack;      /* where it was made, in the trace */
    uint32_t first_link; /* hidden.c: allocations that pointers stored in this one reach; 0: none */
};

bool space_open(void); /* after frames_open */
/* A live, fresh allocation; SPACE_NONE: no address space (never: no memory), or no frame for a new slab. */
uint32_t space_allocate(uint64_t bytes, uint32_t stream, CUresult *result);
/* Ends the allocation. Its home place is returned detached: the caller releases it or keeps it as a ghost's. */
uint32_t space_end(uint32_t allocation);
struct allocation *space_get(uint32_t allocation);
uint32_t space_find(CUdeviceptr address); /* allocation index or SPACE_NONE; also just outside one with pages */
uint32_t space_count(void);               /* indexes ever used: 0 .. count-1 */
uint64_t space_live_bytes(void);          /* held by the program, in frames and slab pieces */
/* Pins it for as long as it lives: its frames count as unmovable. */
void space_pin(struct allocation *allocation, const char *reason);
uint64_t space_unmovable_frames(void); /* slabs, and pages of what is pinned */
uint64_t space_live_signature(void);   /* commutative hash of the sizes of live allocations */
uint64_t space_allocation_footprint(uint64_t bytes);
bool space_is_small(uint64_t bytes);

/* Places of their own, for ghosts, rebuilt contents and scratch. */
uint32_t space_take_place(uint64_t bytes, uint32_t stream, CUresult *result); /* not resident if it has pages */
void space_give_place(uint32_t place);                                        /* releases its frames */
struct place *space_place(uint32_t place);
uint32_t space_slab_frames(void); /* frames that slabs hold now */

/* LRU of evictable contents. */
void space_touch(struct allocation *allocation); /* newest; adds it if absent */
void space_untrack(struct allocation *allocation);
uint32_t space_oldest(void); /* SPACE_NONE: empty */
uint32_t space_next_newer(uint32_t allocation);
bool space_is_valid(void);
