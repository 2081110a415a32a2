#include "tests/device/driver.h"
#include "tests/device/graph_memory.h"
#include "tests/device/context.h"
#include "tests/device/parking.h"
#include <stdlib.h>
#include <sys/mman.h>

struct amount {
    size_t now, high;
};

/* Under memory_lock. */
static struct {
    struct graph_memory *all;
    struct {
        struct amount used, reserved;
    } devices[DEVICES_MAX];
} state;

static void add(struct amount *amount, size_t bytes)
{
    amount->now += bytes;
    if (amount->now > amount->high)
        amount->high = amount->now;
}

static int device_of(const struct graph_memory *memory)
{
    return memory->properties.location.id;
}

static CUresult check(const CUmemPoolProps *properties, const CUmemAccessDesc *access, size_t count, size_t bytes)
{
    if (bytes == 0 || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || (count > 0 && access == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = device_check(properties->location.id);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        result = device_check(access[i].location.id);
    }
    return result == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult graph_memory_create(const CUmemPoolProps *properties, const CUmemAccessDesc *access, size_t access_count,
                             size_t bytes, struct graph_memory **out)
{
    CUresult result = device_open();
    if (result == CUDA_SUCCESS)
        result = check(properties, access, access_count, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    struct graph_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t frame = frames_bytes();
    *memory = (struct graph_memory){
        .bytes = (bytes + frame - 1) / frame * frame, .asked_bytes = bytes, .properties = *properties, .holders = 1};
    memory->access[properties->location.id] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (size_t i = 0; i < access_count; i++)
        memory->access[access[i].location.id] = access[i].flags;
    memory_lock();
    memory->base = space_take(memory->bytes, frame);
    if (memory->base != 0 && !reservation_add(memory->base, memory->bytes)) {
        space_give(memory->base, memory->bytes);
        memory->base = 0;
    }
    if (memory->base != 0) {
        reservation_find(memory->base)->is_of_graph = true;
        memory->next = state.all;
        state.all = memory;
    }
    memory_unlock();
    if (memory->base == 0) {
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = memory;
    return CUDA_SUCCESS;
}

void graph_memory_hold(struct graph_memory *memory)
{
    memory_lock();
    memory->holders++;
    memory_unlock();
}

static void unreserve(struct graph_memory *memory)
{
    physical_let_go(memory->physical);
    memory->physical = NULL;
    state.devices[device_of(memory)].reserved.now -= memory->bytes;
}

/* Memory that is still allocated outlives its node, as its own holder. */
void graph_memory_let_go(struct graph_memory *memory)
{
    memory_lock();
    bool is_last = --memory->holders == 0 && !memory->is_mapped && memory->pending == 0;
    if (is_last) {
        struct graph_memory **link = &state.all;
        while (*link != memory)
            link = &(*link)->next;
        *link = memory->next;
        if (memory->physical != NULL)
            unreserve(memory);
        reservation_remove(reservation_find(memory->base));
        space_give(memory->base, memory->bytes);
    }
    memory_unlock();
    if (is_last)
        free(memory);
}

struct graph_memory *graph_memory_at(CUdeviceptr base)
{
    memory_lock();
    struct graph_memory *memory = state.all;
    while (memory != NULL && memory->base != base)
        memory = memory->next;
    memory_unlock();
    return memory;
}

/* Under memory_lock: what no launch uses goes back. */
static void trim(int device)
{
    for (struct graph_memory *memory = state.all; memory != NULL; memory = memory->next)
        if (device_of(memory) == device && memory->physical != NULL && !memory->is_mapped && memory->pending == 0)
            unreserve(memory);
}

static struct physical *take_frames(const struct graph_memory *memory)
{
    struct physical *physical = parking_create_physical(device_of(memory), memory->bytes, memory_poison());
    if (physical != NULL)
        return physical;
    trim(device_of(memory));
    return parking_create_physical(device_of(memory), memory->bytes, memory_poison());
}

CUresult graph_memory_reserve(struct graph_memory *memory)
{
    memory_lock();
    if (memory->physical == NULL) {
        memory->physical = take_frames(memory);
        if (memory->physical != NULL)
            add(&state.devices[device_of(memory)].reserved, memory->bytes);
    }
    bool is_there = memory->physical != NULL;
    memory->pending += is_there;
    memory_unlock();
    return is_there ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void graph_memory_cancel(struct graph_memory *memory)
{
    memory_lock();
    memory->pending--;
    memory_unlock();
}

struct work *graph_memory_make_bring(struct graph_memory *memory)
{
    memory_lock();
    memory->holders++;
    memory->is_allocated = true;
    memory_unlock();
    struct work *bring = work_new(WORK_BRING);
    bring->graph_memory = memory;
    return bring;
}

struct work *graph_memory_release(struct graph_memory *memory)
{
    memory_lock();
    memory->holders++;
    memory->is_allocated = false;
    memory_unlock();
    struct work *drop = work_new(WORK_DROP);
    drop->graph_memory = memory;
    return drop;
}

CUresult graph_memory_bring(struct graph_memory *memory)
{
    CUresult result = CUDA_SUCCESS;
    memory_lock();
    memory->pending--;
    if (!memory->is_mapped) {
        struct mapping *mapping = space_map(memory->base, memory->bytes, memory->physical, MAPPING_GRAPH);
        mapping->asked_bytes = memory->asked_bytes;
        if (!space_protect(memory->base, memory->bytes, PROT_READ | PROT_WRITE))
            result = CUDA_ERROR_OUT_OF_MEMORY;
        memory->is_mapped = true;
        add(&state.devices[device_of(memory)].used, memory->bytes);
    }
    memory_unlock();
    graph_memory_let_go(memory);
    return result;
}

void graph_memory_drop(struct graph_memory *memory)
{
    memory_lock();
    if (memory->is_mapped) {
        space_unmap(memory->base, memory->bytes);
        memory->is_mapped = false;
        state.devices[device_of(memory)].used.now -= memory->bytes;
    }
    memory_unlock();
    graph_memory_let_go(memory);
}

CUresult graph_memory_free_outside(struct graph_memory *memory, struct work **drop)
{
    memory_lock();
    bool is_legal = memory->is_allocated && !memory->is_freed_inside;
    memory_unlock();
    if (!is_legal)
        return CUDA_ERROR_INVALID_VALUE;
    *drop = graph_memory_release(memory);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    memory_lock();
    trim(device);
    memory_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || (unsigned)attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    const struct amount *amount =
        attribute <= CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ? &state.devices[device].used : &state.devices[device].reserved;
    bool is_high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    *(cuuint64_t *)value = is_high ? amount->high : amount->now;
    memory_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    bool is_used = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    if (value == NULL || *(cuuint64_t *)value != 0 || (!is_used && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    struct amount *amount = is_used ? &state.devices[device].used : &state.devices[device].reserved;
    amount->high = amount->now;
    memory_unlock();
    return CUDA_SUCCESS;
}
