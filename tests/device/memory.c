#include "tests/device/driver.h"
#include "tests/device/memory.h"
#include "tests/device/capture.h"
#include "tests/device/context.h"
#include "tests/device/graph_memory.h"
#include "tests/device/parking.h"
#include "tests/device/settings.h"
#include "tests/device/share.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POISON 0xFF /* NaN, -1: fresh memory has no defined content */

struct unit {
    uint32_t length; /* of the allocation that starts here, in units; 0: none does */
    uint32_t asked_bytes;
    struct pool *pool;
    struct context *owner;
    uint64_t buffer_id;
    bool is_managed;
};

struct slab {
    struct mapping *mapping;
    struct slab *previous, *next;
    uint32_t unit_count, used_units;
    uint32_t largest_hole; /* no hole is larger than this */
    struct unit units[];
};

static struct {
    struct slab *slabs;
    struct mapping *large; /* allocations with frames of their own */
    _Atomic int expected_releases;
    uint64_t small_buffer_id;
} state;

void memory_expect_release(int change)
{
    atomic_fetch_add(&state.expected_releases, change);
}

int memory_poison(void)
{
    return settings()->jitter == 0 ? -1 : POISON;
}

static struct mapping *map_fresh_frames(int device, size_t rounded)
{
    CUdeviceptr base = space_take(rounded, frames_bytes());
    if (base == 0)
        return NULL;
    struct physical *physical = parking_create_physical(device, rounded, memory_poison());
    if (physical == NULL) {
        space_give(base, rounded);
        return NULL;
    }
    struct mapping *mapping = space_map(base, rounded, physical, MAPPING_ALLOCATION);
    physical_let_go(physical);
    if (space_protect(base, rounded, PROT_READ | PROT_WRITE))
        return mapping;
    space_unmap(base, rounded);
    space_give(base, rounded);
    return NULL;
}

static struct mapping *allocate_frames(int device, size_t bytes, enum mapping_kind kind)
{
    size_t frame = frames_bytes();
    if (bytes > frames_total())
        return NULL;
    size_t rounded = (bytes + frame - 1) / frame * frame;
    if (rounded > frames_total() - frames_used(device))
        return NULL;
    struct mapping *mapping = parking_take(device, rounded);
    if (mapping != NULL) {
        mapping->buffer_id = space_new_buffer_id();
        if (memory_poison() >= 0)
            memset((void *)mapping->base, memory_poison(), rounded);
    } else {
        mapping = map_fresh_frames(device, rounded);
    }
    if (mapping == NULL)
        return NULL;
    mapping->kind = kind;
    mapping->asked_bytes = bytes;
    return mapping;
}

static struct slab *slab_create(int device)
{
    struct mapping *mapping = allocate_frames(device, frames_bytes(), MAPPING_SLAB);
    if (mapping == NULL)
        return NULL;
    uint32_t count = (uint32_t)(frames_bytes() / UNIT_BYTES);
    struct slab *slab = calloc(1, sizeof *slab + count * sizeof *slab->units);
    if (slab == NULL)
        abort();
    slab->mapping = mapping;
    mapping->slab = slab;
    slab->unit_count = slab->largest_hole = count;
    slab->next = state.slabs;
    if (slab->next != NULL)
        slab->next->previous = slab;
    state.slabs = slab;
    return slab;
}

static void slab_destroy(struct slab *slab)
{
    if (slab->previous != NULL)
        slab->previous->next = slab->next;
    else
        state.slabs = slab->next;
    if (slab->next != NULL)
        slab->next->previous = slab->previous;
    parking_put(slab->mapping);
    free(slab);
}

/* First hole of `length` units; unit_count if there is none (then largest_hole is exact). */
static uint32_t slab_find_hole(struct slab *slab, uint32_t length)
{
    uint32_t hole = 0, largest = 0;
    for (uint32_t unit = 0; unit < slab->unit_count;) {
        if (slab->units[unit].length > 0) {
            unit += slab->units[unit].length;
            hole = 0;
            continue;
        }
        unit++;
        if (++hole == length)
            return unit - length;
        if (hole > largest)
            largest = hole;
    }
    slab->largest_hole = largest;
    return slab->unit_count;
}

static struct unit *allocate_units(int device, size_t bytes, CUdeviceptr *out)
{
    uint32_t length = (uint32_t)((bytes + UNIT_BYTES - 1) / UNIT_BYTES), at = 0;
    struct slab *slab = state.slabs;
    for (; slab != NULL; slab = slab->next) {
        if (slab->largest_hole < length || slab->mapping->physical->device != device)
            continue;
        at = slab_find_hole(slab, length);
        if (at < slab->unit_count)
            break;
    }
    if (slab == NULL) {
        slab = slab_create(device);
        at = 0;
    }
    if (slab == NULL)
        return NULL;
    slab->used_units += length;
    slab->units[at] = (struct unit){.length = length, .asked_bytes = (uint32_t)bytes};
    slab->units[at].buffer_id = (1ull << 48) + ++state.small_buffer_id;
    *out = slab->mapping->base + (CUdeviceptr)at * UNIT_BYTES;
    if (memory_poison() >= 0)
        memset((void *)*out, POISON, (size_t)length * UNIT_BYTES);
    return &slab->units[at];
}

static void account(struct pool *pool, size_t bytes, bool is_freed)
{
    if (pool == NULL)
        return;
    if (is_freed) {
        pool->used -= bytes;
        if (--pool->live == 0 && pool->is_dying)
            free(pool);
        return;
    }
    pool->live++;
    pool->used += bytes;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    if (pool->used > pool->reserved_high)
        pool->reserved_high = pool->used;
}

static void link_large(struct mapping *mapping)
{
    mapping->previous_live = NULL;
    mapping->next_live = state.large;
    if (state.large != NULL)
        state.large->previous_live = mapping;
    state.large = mapping;
}

static void unlink_large(struct mapping *mapping)
{
    if (mapping->previous_live != NULL)
        mapping->previous_live->next_live = mapping->next_live;
    else
        state.large = mapping->next_live;
    if (mapping->next_live != NULL)
        mapping->next_live->previous_live = mapping->previous_live;
}

/* Under memory_lock; the hold of `physical` is consumed. */
static struct mapping *place(struct physical *physical, size_t bytes)
{
    CUdeviceptr base = space_take(physical->bytes, frames_bytes());
    struct mapping *mapping = NULL;
    if (base != 0)
        mapping = space_map(base, physical->bytes, physical, MAPPING_ALLOCATION);
    physical_let_go(physical);
    if (mapping == NULL)
        return NULL;
    if (!space_protect(base, mapping->bytes, PROT_READ | PROT_WRITE)) {
        size_t whole = mapping->bytes;
        space_unmap(base, whole);
        space_give(base, whole);
        return NULL;
    }
    mapping->asked_bytes = bytes;
    return mapping;
}

CUresult memory_place(struct physical *physical, size_t bytes, struct pool *pool, CUdeviceptr *out)
{
    memory_lock();
    struct mapping *mapping = bytes <= physical->bytes ? place(physical, bytes) : NULL;
    if (mapping != NULL) {
        mapping->pool = pool;
        link_large(mapping);
        account(pool, bytes, false);
        *out = mapping->base;
    }
    memory_unlock();
    return mapping != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Memory that other processes may map has a file, and so frames, of its own. */
static struct mapping *allocate_shareable(int device, size_t bytes, const struct pool *pool)
{
    size_t frame = frames_bytes(), rounded = (bytes + frame - 1) / frame * frame;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = pool->properties.handleTypes,
                                      .location = pool->properties.location};
    struct physical *physical = share_create_physical(device, rounded, &properties, pool->id);
    return physical != NULL ? place(physical, bytes) : NULL;
}

static bool allocate(int device, size_t bytes, enum allocation_use use, struct context *owner, struct pool *pool,
                     CUdeviceptr *out)
{
    bool is_shareable = pool != NULL && pool->properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE;
    if (bytes < frames_bytes() && !is_shareable) {
        struct unit *unit = allocate_units(device, bytes, out);
        if (unit == NULL)
            return false;
        unit->pool = pool;
        unit->owner = owner;
        unit->is_managed = use == USE_MANAGED;
    } else {
        struct mapping *mapping =
            is_shareable ? allocate_shareable(device, bytes, pool) : allocate_frames(device, bytes, MAPPING_ALLOCATION);
        if (mapping == NULL)
            return false;
        mapping->pool = pool;
        mapping->owner = owner;
        link_large(mapping);
        mapping->is_managed = use == USE_MANAGED;
        *out = mapping->base;
    }
    account(pool, bytes, false);
    return true;
}

CUresult memory_allocate(int device, size_t bytes, enum allocation_use use, struct context *owner, struct pool *pool,
                         CUdeviceptr *out)
{
    if (bytes == 0 || out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (bool has_waited = false;; has_waited = true) {
        memory_lock();
        bool is_done = allocate(device, bytes, use, owner, pool, out);
        memory_unlock();
        if (is_done)
            return CUDA_SUCCESS;
        if (has_waited || atomic_load(&state.expected_releases) == 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
        device_wait();
    }
}

static struct unit *unit_at(const struct mapping *mapping, CUdeviceptr base)
{
    size_t offset = base - mapping->base;
    if (offset % UNIT_BYTES != 0)
        return NULL;
    struct unit *unit = &mapping->slab->units[offset / UNIT_BYTES];
    return unit->length > 0 ? unit : NULL;
}

static bool release(CUdeviceptr base)
{
    struct mapping *mapping = space_find(base);
    if (mapping == NULL)
        return false;
    if (mapping->kind == MAPPING_ALLOCATION && mapping->base == base) {
        account(mapping->pool, mapping->asked_bytes, true);
        unlink_large(mapping);
        parking_put(mapping);
        return true;
    }
    struct unit *unit = mapping->kind == MAPPING_SLAB ? unit_at(mapping, base) : NULL;
    if (unit == NULL)
        return false;
    struct slab *slab = mapping->slab;
    account(unit->pool, unit->asked_bytes, true);
    slab->used_units -= unit->length;
    slab->largest_hole = slab->unit_count;
    *unit = (struct unit){0};
    if (slab->used_units == 0)
        slab_destroy(slab);
    return true;
}

CUresult memory_release(CUdeviceptr base)
{
    memory_lock();
    bool is_done = release(base);
    memory_unlock();
    return is_done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool release_owned_unit(struct context *owner)
{
    for (struct slab *slab = state.slabs; slab != NULL; slab = slab->next)
        for (uint32_t unit = 0; unit < slab->unit_count; unit++)
            if (slab->units[unit].length > 0 && slab->units[unit].owner == owner)
                return release(slab->mapping->base + (CUdeviceptr)unit * UNIT_BYTES);
    return false;
}

void memory_release_all(struct context *owner)
{
    memory_lock();
    for (struct mapping *mapping = state.large, *next; mapping != NULL; mapping = next) {
        next = mapping->next_live;
        if (mapping->owner == owner)
            release(mapping->base);
    }
    while (release_owned_unit(owner))
        continue;
    memory_unlock();
}

static bool find_unit(struct mapping *mapping, CUdeviceptr address, struct allocation *out)
{
    size_t at = (address - mapping->base) / UNIT_BYTES;
    for (size_t first = at + 1; first-- > 0;) {
        const struct unit *unit = &mapping->slab->units[first];
        if (unit->length == 0)
            continue;
        if (first + unit->length <= at)
            return false;
        *out = (struct allocation){.base = mapping->base + first * UNIT_BYTES,
                                   .bytes = unit->asked_bytes,
                                   .kind = mapping->kind,
                                   .pool = unit->pool,
                                   .owner = unit->owner,
                                   .is_managed = unit->is_managed,
                                   .device = mapping->physical->device,
                                   .buffer_id = unit->buffer_id};
        return true;
    }
    return false;
}

static bool find(CUdeviceptr address, struct allocation *out)
{
    struct mapping *mapping = space_find(address);
    if (mapping == NULL)
        return false;
    if (mapping->kind == MAPPING_SLAB)
        return find_unit(mapping, address, out);
    *out = (struct allocation){.base = mapping->base,
                               .bytes = mapping->asked_bytes,
                               .kind = mapping->kind,
                               .pool = mapping->pool,
                               .owner = mapping->owner,
                               .is_managed = mapping->is_managed,
                               .device = mapping->physical->device,
                               .buffer_id = mapping->buffer_id};
    return true;
}

bool memory_find(CUdeviceptr address, struct allocation *out)
{
    memory_lock();
    bool is_found = find(address, out);
    memory_unlock();
    return is_found;
}

bool memory_is_device(CUdeviceptr address)
{
    return space_contains(address);
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = capture_check_unsafe();
    return result != CUDA_SUCCESS ? result : memory_allocate(context->device, bytes, USE_PLAIN, context, NULL, out);
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = capture_check_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_allocate(context->device, bytes, USE_MANAGED, context, NULL, out);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = capture_check_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (pitch == NULL || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
    if (height > SIZE_MAX / *pitch)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_allocate(context->device, *pitch * height, USE_PLAIN, context, NULL, out);
}

static CUresult free_graph_memory(struct graph_memory *memory)
{
    struct work *drop;
    CUresult result = graph_memory_free_outside(memory, &drop);
    if (result != CUDA_SUCCESS)
        return result;
    device_wait();
    work_discard(drop);
    graph_memory_drop(memory);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr base)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = capture_check_unsafe();
    if (result != CUDA_SUCCESS || base == 0)
        return result;
    struct graph_memory *of_graph = graph_memory_at(base);
    if (of_graph != NULL)
        return free_graph_memory(of_graph);
    struct allocation allocation;
    if (!memory_find(base, &allocation) || allocation.base != base ||
        (allocation.kind != MAPPING_ALLOCATION && allocation.kind != MAPPING_SLAB))
        return CUDA_ERROR_INVALID_VALUE;
    /* Work that is still queued may use it; only stream-ordered memory is the program's own business. */
    if (allocation.pool == NULL)
        device_wait();
    return memory_release(base);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    memory_lock();
    if (free_bytes != NULL)
        *free_bytes = frames_total() - frames_used(context->device);
    if (total != NULL)
        *total = frames_total();
    memory_unlock();
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct allocation allocation;
    if (!memory_find(address, &allocation))
        return CUDA_ERROR_NOT_FOUND;
    if (base != NULL)
        *base = allocation.base;
    if (bytes != NULL)
        *bytes = allocation.bytes;
    return CUDA_SUCCESS;
}
