/* What an emitted kernel and the scheduler of its threads agree on. This text is also the head of every emitted
 * C file, so it includes nothing but <stdint.h>.
 *
 * A kernel is cut at its syncs (barriers, warp operations) into regions. Region 0 starts at the entry, region s + 1
 * behind sync s. A region function runs threads [first, end) each to its next sync, or to its end, and leaves in at[]
 * where each stopped: PTX_WAITS | s, or PTX_DONE. at[t] < PTX_WAITS: thread t is ready to run region at[t].
 * Values that live across a sync are in slots: one array per register, indexed by thread. Before it stops at a sync
 * a thread puts the operands into exchange_*[t]. A kernel without syncs has one region and touches neither. */
#pragma once
#include <stdint.h>

#define PTX_WAITS           0x8000u
#define PTX_DONE            0xffffu
#define PTX_CLUSTER_BARRIER 16u /* beyond the 16 that programs name */

struct ptx_block {
    uint32_t ntid[3], ctaid[3], nctaid[3];
    uint32_t threads, stride; /* stride: threads rounded up to whole warps */
    uint32_t strong_loads;
    uint64_t grid_barrier; /* address of the cooperative grid's barrier, or 0 */
    uint32_t smid, nsmid, dynamic_shared, total_shared;
    uint64_t gridid, local_bytes; /* local_bytes: of all threads */
    const uint8_t *params;
    uint8_t *shared, *local, *slots;
    uint16_t *at;
    uint64_t *exchange_a; /* 32-bit operands use it as an array of uint32_t */
    uint32_t *exchange_b, *exchange_c, *exchange_mask;
    uint32_t *exchange_words; /* word j of thread t at j * stride + t */
    void *const *globals;     /* addresses of the module's variables */
    void (*fault)(struct ptx_block *block, int code, const char *what) __attribute__((noreturn));
    uint64_t (*clock)(void);
    void (*relax)(void); /* lets another thread of the machine run */
    void *(*allocate)(uint64_t bytes);
    void (*release)(void *memory);
    int (*print)(const char *format, const void *arguments);
    void (*failed_assert)(struct ptx_block *block, const char *message, const char *file, uint32_t line,
                          const char *function) __attribute__((noreturn));
    void *worker;
};

/* A device function, called with its caller's place. */
struct ptx_place {
    struct ptx_block *block;
    uint32_t thread, x, y, z;
    uint8_t *local;
};

enum ptx_sync_kind {
    PTX_SYNC_WARP, /* runs when all lanes of its mask have arrived or exited */
    PTX_SYNC_FREE, /* runs with the lanes that are there when no other can go on */
    PTX_SYNC_POLL, /* waits for nothing, but lets all others go on first */
    PTX_SYNC_BARRIER,
    PTX_SYNC_ARRIVE /* counts at a barrier, without waiting */
};

enum ptx_reduction { PTX_REDUCE_NONE, PTX_REDUCE_AND, PTX_REDUCE_OR, PTX_REDUCE_COUNT };

struct ptx_sync {
    uint32_t kind, line;
    /* Warp operation for the lanes of the warp that starts at thread `first`. */
    void (*run)(struct ptx_block *block, uint32_t first, uint32_t lanes);
    uint32_t mask, barrier, count; /* where constant; count 0: all threads of the block */
    uint8_t mask_is_constant, barrier_is_constant, count_is_constant;
    uint8_t reduction;    /* of exchange_a over the barrier's threads */
    uint32_t result_slot; /* byte offset as in slots; UINT32_MAX: nobody reads it */
};

typedef void ptx_region(struct ptx_block *block, uint32_t first, uint32_t end, uint32_t entry);

struct ptx_kernel {
    uint32_t sync_count;
    uint32_t slot_bytes, local_bytes, exchange_words; /* per thread */
    ptx_region *const *regions;                       /* sync_count + 1 */
    const struct ptx_sync *syncs;
};
