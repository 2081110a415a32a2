/* Memory of the fake driver: frames are pieces of a memory file. */
#include "tests/unit/fake_inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_RESERVED 8
#define MAX_PINNED   4096
#define HANDLE_BASE  0x1000u /* handles are frame numbers from here on: 0 is none */

struct frame {
    bool is_held; /* by its handle */
    uint32_t mappings;
};

struct range {
    CUdeviceptr begin, end;
    uint32_t *frames; /* per granule: frame mapped there, plus one */
    bool *has_access;
};

static struct {
    int file;
    uint64_t granularity;
    uint32_t frame_count;
    struct frame *frames;
    struct range ranges[MAX_RESERVED];
    uint32_t range_count;
    struct {
        const char *begin, *end;
    } pinned[MAX_PINNED];
    uint32_t pinned_count;
} state;

static uint64_t largest_memory(void)
{
    return fake_settings()->memory_bytes;
}

static void take_physical(uint64_t bytes)
{
    struct fake_counts *counts = fake_counts();
    counts->physical_bytes += bytes;
    if (counts->physical_bytes > counts->peak_bytes) {
        counts->peak_bytes = counts->physical_bytes;
    }
}

static struct range *range_of(CUdeviceptr address)
{
    for (uint32_t i = 0; i < state.range_count; i++) {
        if (address >= state.ranges[i].begin && address < state.ranges[i].end) {
            return &state.ranges[i];
        }
    }
    return NULL;
}

static bool is_whole(CUdeviceptr address, size_t bytes)
{
    const struct range *range = range_of(address);
    return range != NULL && bytes > 0 && bytes % state.granularity == 0 && address % state.granularity == 0 &&
           bytes <= range->end - address;
}

/* ---- information ---- */

static CUresult fake_cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                                   CUmemAllocationGranularity_flags flags)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    (void)properties, (void)flags;
    if (entered == CUDA_SUCCESS) {
        *bytes = state.granularity;
    }
    return entered;
}

static CUresult fake_cuMemGetInfo(size_t *available, size_t *total)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    if (entered == CUDA_SUCCESS) {
        *total = largest_memory();
        *available = largest_memory() - fake_counts()->physical_bytes;
    }
    return entered;
}

/* ---- addresses ---- */

static CUresult fake_cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wanted,
                                         unsigned long long flags)
{
    ENTER(CUDA_ERROR_OUT_OF_MEMORY);
    (void)alignment, (void)wanted, (void)flags;
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    char *base = mmap(NULL, bytes + state.granularity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || state.range_count == MAX_RESERVED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t begin = ((uintptr_t)base + state.granularity - 1) / state.granularity * state.granularity;
    struct range *range = &state.ranges[state.range_count++];
    range->begin = begin;
    range->end = begin + bytes;
    range->frames = calloc(bytes / state.granularity, sizeof *range->frames);
    range->has_access = calloc(bytes / state.granularity, sizeof *range->has_access);
    *out = begin;
    return CUDA_SUCCESS;
}

/* ---- frames ---- */

static void fill_with_garbage(uint32_t frame)
{
    static unsigned char garbage[1 << 16];
    memset(garbage, 0xCD, sizeof garbage);
    for (uint64_t done = 0; done < state.granularity;) {
        uint64_t part = state.granularity - done < sizeof garbage ? state.granularity - done : sizeof garbage;
        if (pwrite(state.file, garbage, part, (off_t)(frame * state.granularity + done)) != (ssize_t)part) {
            fake_die("cannot write to the memory file");
        }
        done += part;
    }
}

static CUresult fake_cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *properties,
                                 unsigned long long flags)
{
    ENTER(CUDA_ERROR_OUT_OF_MEMORY);
    fake_counts()->memory_calls++;
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    if (bytes != state.granularity || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uint32_t i = 0; i < state.frame_count; i++) {
        if (!state.frames[i].is_held && state.frames[i].mappings == 0) {
            if (fake_counts()->physical_bytes + state.granularity > largest_memory()) {
                break;
            }
            state.frames[i].is_held = true;
            fill_with_garbage(i);
            take_physical(state.granularity);
            fake_counts()->frames++;
            *out = i + HANDLE_BASE;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static void forget_if_unused(uint32_t frame)
{
    if (!state.frames[frame].is_held && state.frames[frame].mappings == 0) {
        fake_counts()->physical_bytes -= state.granularity;
        fake_counts()->frames--;
    }
}

static struct frame *frame_of(CUmemGenericAllocationHandle handle)
{
    if (handle < HANDLE_BASE || handle - HANDLE_BASE >= state.frame_count ||
        !state.frames[handle - HANDLE_BASE].is_held) {
        return NULL;
    }
    return &state.frames[handle - HANDLE_BASE];
}

static CUresult fake_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    fake_counts()->memory_calls++;
    struct frame *frame = frame_of(handle);
    if (entered != CUDA_SUCCESS || frame == NULL) {
        return entered != CUDA_SUCCESS ? entered : CUDA_ERROR_INVALID_VALUE;
    }
    frame->is_held = false;
    forget_if_unused((uint32_t)(frame - state.frames));
    return CUDA_SUCCESS;
}

/* ---- mapping ---- */

static CUresult fake_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                              unsigned long long flags)
{
    ENTER(CUDA_ERROR_OUT_OF_MEMORY);
    fake_counts()->memory_calls++;
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    struct frame *frame = frame_of(handle);
    if (frame == NULL || offset != 0 || flags != 0 || bytes != state.granularity || !is_whole(address, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct range *range = range_of(address);
    uint64_t granule = (address - range->begin) / state.granularity;
    if (range->frames[granule] != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    range->frames[granule] = (uint32_t)(frame - state.frames) + 1;
    range->has_access[granule] = false;
    frame->mappings++;
    fake_counts()->mappings++;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    fake_counts()->memory_calls++;
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    struct range *range = range_of(address);
    if (bytes != state.granularity || !is_whole(address, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    uint64_t granule = (address - range->begin) / state.granularity;
    if (range->frames[granule] == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (mmap((void *)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
        fake_die("cannot unmap");
    }
    uint32_t frame = range->frames[granule] - 1;
    range->frames[granule] = 0;
    range->has_access[granule] = false;
    state.frames[frame].mappings--;
    fake_counts()->mappings--;
    forget_if_unused(frame);
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    fake_counts()->memory_calls++;
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    struct range *range = range_of(address);
    if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE || !is_whole(address, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    uint64_t first = (address - range->begin) / state.granularity, granules = bytes / state.granularity;
    for (uint64_t i = first; i < first + granules; i++) {
        if (range->frames[i] == 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    for (uint64_t i = first; i < first + granules; i++) {
        if (!range->has_access[i] && mmap((void *)(range->begin + i * state.granularity), state.granularity,
                                          PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, state.file,
                                          (off_t)((range->frames[i] - 1) * state.granularity)) == MAP_FAILED) {
            fake_die("cannot map");
        }
        range->has_access[i] = true;
    }
    return CUDA_SUCCESS;
}

uint64_t fake_mapped_pages(CUdeviceptr address, uint64_t bytes)
{
    const struct range *range = range_of(address);
    uint64_t count = 0;
    for (CUdeviceptr at = address; range != NULL && at < address + bytes && at < range->end; at += state.granularity) {
        count += range->has_access[(at - range->begin) / state.granularity];
    }
    return count;
}

/* ---- other memory ---- */

static CUresult fake_cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    ENTER(CUDA_ERROR_OUT_OF_MEMORY);
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake_counts()->physical_bytes + bytes > largest_memory()) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    void *memory = calloc(1, bytes);
    take_physical(bytes);
    *out = (CUdeviceptr)memory;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    ENTER(CUDA_ERROR_OUT_OF_MEMORY);
    (void)flags;
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    char *memory = malloc(bytes);
    if (memory == NULL || state.pinned_count == MAX_PINNED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(memory, 0xAB, bytes);
    state.pinned[state.pinned_count].begin = memory;
    state.pinned[state.pinned_count++].end = memory + bytes;
    *out = memory;
    return CUDA_SUCCESS;
}

bool fake_is_pinned(const void *host, size_t bytes)
{
    for (uint32_t i = state.pinned_count; i-- > 0;) {
        if ((const char *)host >= state.pinned[i].begin && (const char *)host + bytes <= state.pinned[i].end) {
            return true;
        }
    }
    return false;
}

void fake_open_memory(void)
{
    state.granularity = fake_settings()->granularity;
    state.frame_count = (uint32_t)(largest_memory() / state.granularity);
    state.frames = calloc(state.frame_count, sizeof *state.frames);
    state.file = memfd_create("fake device", MFD_CLOEXEC);
    if (state.file < 0 || state.frames == NULL ||
        ftruncate(state.file, (off_t)((uint64_t)state.frame_count * state.granularity)) != 0) {
        fake_die("no memory file");
    }
    driver.cuMemGetAllocationGranularity = fake_cuMemGetAllocationGranularity;
    driver.cuMemGetInfo_v2 = fake_cuMemGetInfo;
    driver.cuMemAddressReserve = fake_cuMemAddressReserve;
    driver.cuMemCreate = fake_cuMemCreate;
    driver.cuMemRelease = fake_cuMemRelease;
    driver.cuMemMap = fake_cuMemMap;
    driver.cuMemUnmap = fake_cuMemUnmap;
    driver.cuMemSetAccess = fake_cuMemSetAccess;
    driver.cuMemAlloc_v2 = fake_cuMemAlloc;
    driver.cuMemHostAlloc = fake_cuMemHostAlloc;
}
