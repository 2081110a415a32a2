/* Device addresses: one arena of address space, cut into granules of a frame's size.
 *
 * Invariants: a granule outside every mapping cannot be touched (PROT_NONE); a mapping holds its physical;
 * mappings never overlap and cover whole granules; `space_find` of any address inside a mapping gives it.
 * A mapping is touchable only once space_protect gave it a protection.
 *
 * Locking: everything under memory_lock, except space_contains, which only compares with the arena's bounds
 * (fixed before the first context exists). */
#pragma once
#include "tests/device/frames.h"
#include "tests/device/settings.h"

enum mapping_kind {
    MAPPING_ALLOCATION, /* cuMemAlloc and kin */
    MAPPING_SLAB,       /* small allocations share it */
    MAPPING_VIRTUAL,    /* cuMemMap */
    MAPPING_GRAPH,      /* an allocation node's, see graph_memory.h */
    MAPPING_OPENED,     /* cuIpcOpenMemHandle */
    MAPPING_PARKED      /* freed, see parking.h: not found by space_find */
};

struct slab;
struct pool;

struct mapping {
    CUdeviceptr base;
    size_t bytes;
    size_t asked_bytes; /* what the program asked for; at most bytes */
    struct physical *physical;
    enum mapping_kind kind;
    int protection;                    /* PROT_*, of all devices together */
    unsigned char access[DEVICES_MAX]; /* CUmemAccess_flags of each */
    bool is_placed;                    /* its frames are mapped by the host (else the granules are bare) */
    bool is_managed;
    struct slab *slab; /* MAPPING_SLAB */
    struct pool *pool; /* stream-ordered allocations */
    int ipc_file;      /* describes it to other processes; 0: not made */
    uint64_t buffer_id;
    struct context *owner;                     /* goes with it; NULL: stays (pools) */
    struct mapping *previous_live, *next_live; /* memory.c's list of large allocations */
    struct mapping *next_parked;
};

struct reservation {
    CUdeviceptr base;
    size_t bytes;
    bool is_of_graph; /* not the program's to map */
};

void memory_lock(void);
void memory_unlock(void);

bool space_open(size_t granule_bytes);
bool space_contains(CUdeviceptr address);

/* Multiples of the granule. 0: no address space left. */
CUdeviceptr space_take(size_t bytes, size_t align);
void space_give(CUdeviceptr base, size_t bytes);

struct mapping *space_map(CUdeviceptr base, size_t bytes, struct physical *physical, enum mapping_kind kind);
/* Mappings [first..last] are contiguous; they are removed together. */
void space_unmap(CUdeviceptr base, size_t bytes);
/* The whole of every mapping in the range, which must be covered by whole mappings. False: the host refused. */
bool space_protect(CUdeviceptr base, size_t bytes, int protection);
/* A number for a mapping that is used anew. */
uint64_t space_new_buffer_id(void);
/* The mapping that holds the address, or NULL. */
struct mapping *space_find(CUdeviceptr address);
/* True if [base, base+bytes) is covered by mappings, the first starting and the last ending exactly there. */
bool space_is_covered(CUdeviceptr base, size_t bytes);
/* True if no mapping overlaps [base, base+bytes). */
bool space_is_bare(CUdeviceptr base, size_t bytes);

/* Reservations of the program (cuMemAddressReserve). */
bool reservation_add(CUdeviceptr base, size_t bytes);
struct reservation *reservation_find(CUdeviceptr address);
void reservation_remove(struct reservation *reservation);
