/* Allocations: cuMemAlloc and everything that behaves like it.
 *
 * From a frame's size on, an allocation has frames of its own; smaller ones share slabs of one frame each, in
 * units of 512 bytes. These functions take memory_lock themselves and must be called without it. */
#pragma once
#include "tests/device/settings.h"
#include "tests/device/space.h"

#define UNIT_BYTES 512u

struct context;

struct pool {
    enum handle_kind magic;
    CUmemPoolProps properties;
    uint64_t release_threshold;
    int reuse[3];           /* CU_MEMPOOL_ATTR_REUSE_*, kept and answered; nothing is hoarded, so nothing to do */
    size_t used, used_high; /* under memory_lock */
    size_t reserved_high;   /* reserved is what is used */
    size_t live;            /* allocations */
    bool is_default, is_dying, is_imported;
    uint64_t id; /* of a shareable one, in all processes */
    CUmemAccess_flags access[DEVICES_MAX];
};

struct allocation {
    CUdeviceptr base;
    size_t bytes; /* as asked for */
    enum mapping_kind kind;
    struct pool *pool;     /* NULL: not stream-ordered */
    struct context *owner; /* NULL: none */
    bool is_managed;
    int device;
    uint64_t buffer_id;
};

enum allocation_use { USE_PLAIN, USE_MANAGED };

/* Owned by a context or a pool (the other is NULL), or by neither. A multiple of UNIT_BYTES in alignment.
 * CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE for 0 bytes. */
CUresult memory_allocate(int device, size_t bytes, enum allocation_use use, struct context *owner, struct pool *pool,
                         CUdeviceptr *out);
/* An address for physical memory that came from elsewhere, as an allocation of the pool. Consumes the hold. */
CUresult memory_place(struct physical *physical, size_t bytes, struct pool *pool, CUdeviceptr *out);
/* Everything that the context owns. The device is idle. */
void memory_release_all(struct context *owner);
/* What fresh memory is filled with: -1: with nothing; else a byte. */
int memory_poison(void);
/* Without waiting for anything. CUDA_ERROR_INVALID_VALUE if no allocation starts there. */
CUresult memory_release(CUdeviceptr base);
/* The allocation that holds the address: cuMemAlloc's or a whole VMM mapping. */
bool memory_find(CUdeviceptr address, struct allocation *out);
/* The device may be asked to copy from or to there (allocation, mapping, or reserved address space). */
bool memory_is_device(CUdeviceptr address);

/* Stream-ordered releases that are queued: an allocation that does not fit waits for them. */
void memory_expect_release(int change);
