/* Memory of graphs: an allocation node's address is fixed when the node is made; frames stand behind it between its
 * launch and its free.
 *
 * Frames are taken at the first launch and kept for the next ones (reserved), until the node and all executables with
 * it are gone, or a trim finds them idle. In stream order a WORK_BRING maps them at the address and a WORK_DROP unmaps
 * them, so that an access before or after faults.
 *
 * `is_allocated` is the program's view, in the order of its calls: launched and not yet freed. */
#pragma once
#include "tests/device/memory.h"
#include "tests/device/stream.h"

struct graph_memory {
    CUdeviceptr base;
    size_t bytes, asked_bytes;
    CUmemPoolProps properties;
    CUmemAccess_flags access[DEVICES_MAX];
    uint32_t holders;             /* nodes and queued work */
    struct physical *physical;    /* NULL: not reserved */
    uint32_t pending;             /* WORK_BRINGs that have not run */
    bool is_mapped, is_allocated; /* on the device; in the program's view */
    bool is_freed_inside;         /* its own graph has a free node for it */
    bool is_freed_elsewhere;      /* another graph has one */
    struct graph_memory *next;
};

/* One holder: the caller. CUDA_ERROR_INVALID_VALUE for properties that no pool could have. */
CUresult graph_memory_create(const CUmemPoolProps *properties, const CUmemAccessDesc *access, size_t access_count,
                             size_t bytes, struct graph_memory **out);
void graph_memory_hold(struct graph_memory *memory);
void graph_memory_let_go(struct graph_memory *memory);
/* The one whose address this is, or NULL. */
struct graph_memory *graph_memory_at(CUdeviceptr base);

/* Frames for the next launch, which is then to be made, or cancelled. */
CUresult graph_memory_reserve(struct graph_memory *memory);
void graph_memory_cancel(struct graph_memory *memory);
/* The work that maps what was reserved (one hold). */
struct work *graph_memory_make_bring(struct graph_memory *memory);
/* The work that unmaps (one hold). */
struct work *graph_memory_release(struct graph_memory *memory);
/* What the two kinds of work do when they run. */
CUresult graph_memory_bring(struct graph_memory *memory);
void graph_memory_drop(struct graph_memory *memory);

/* cuMemFree and cuMemFreeAsync of such an address: CUDA_ERROR_INVALID_VALUE unless it is allocated and its own graph
 * does not free it. */
CUresult graph_memory_free_outside(struct graph_memory *memory, struct work **drop);
