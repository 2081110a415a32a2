/* Advice and prefetching of managed memory. It is where both sides can touch it, so there is nothing to move: what was
 * said is remembered, page by page, and answered. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/memory.h"
#include "tests/device/settings.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What was said of [begin, end). Nothing was said of bytes outside all spans. */
struct span {
    CUdeviceptr begin, end;
    uint64_t buffer_id; /* of the allocation: memory that is allocated anew starts without advice */
    bool is_read_mostly;
    CUmemLocation preferred, prefetched; /* type CU_MEM_LOCATION_TYPE_INVALID: none */
    uint32_t accessed_by;                /* a bit per device, the highest for the host */
};

#define HOST_BIT (1u << 31)

/* Ascending, never overlapping; under memory_lock. */
static struct {
    struct span *spans;
    size_t count, room;
} state;

struct range {
    CUdeviceptr begin, end;
    uint64_t buffer_id;
};

/* The whole pages of managed memory that the bytes lie on. */
static CUresult find_range(CUdeviceptr address, size_t bytes, struct range *out)
{
    struct context *context;
    struct allocation allocation;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == 0 || !memory_find(address, &allocation) || !allocation.is_managed)
        return CUDA_ERROR_INVALID_VALUE;
    if (address + bytes > allocation.base + allocation.bytes)
        return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr page = (CUdeviceptr)sysconf(_SC_PAGESIZE);
    *out = (struct range){address & ~(page - 1), (address + bytes + page - 1) & ~(page - 1), allocation.buffer_id};
    return CUDA_SUCCESS;
}

static void insert(size_t at, struct span span)
{
    if (state.count == state.room) {
        state.room = state.room == 0 ? 16 : 2 * state.room;
        struct span *more = realloc(state.spans, state.room * sizeof *more);
        if (more == NULL)
            abort();
        state.spans = more;
    }
    memmove(&state.spans[at + 1], &state.spans[at], (state.count - at) * sizeof span);
    state.spans[at] = span;
    state.count++;
}

/* After it a span begins at the address if one held it. */
static void split(CUdeviceptr at)
{
    for (size_t i = 0; i < state.count; i++) {
        if (at <= state.spans[i].begin || at >= state.spans[i].end)
            continue;
        struct span rest = state.spans[i];
        state.spans[i].end = at;
        rest.begin = at;
        insert(i + 1, rest);
        return;
    }
}

/* Makes spans of all bytes of the range, and calls for each. */
static void change(const struct range *range, void (*apply)(struct span *, const void *), const void *argument)
{
    split(range->begin);
    split(range->end);
    CUdeviceptr at = range->begin;
    for (size_t i = 0; at < range->end; i++) {
        if (i < state.count && state.spans[i].end <= at)
            continue;
        CUdeviceptr next = i < state.count && state.spans[i].begin < range->end ? state.spans[i].begin : range->end;
        if (next > at)
            insert(i, (struct span){.begin = at, .end = next, .buffer_id = range->buffer_id});
        struct span *span = &state.spans[i];
        if (span->buffer_id != range->buffer_id)
            *span = (struct span){.begin = span->begin, .end = span->end, .buffer_id = range->buffer_id};
        apply(span, argument);
        at = span->end;
    }
}

static CUresult check_location(const CUmemLocation *location)
{
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return location->id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return device_check(location->id);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

struct advice {
    CUmem_advise advice;
    CUmemLocation location;
};

static void apply_advice(struct span *span, const void *argument)
{
    const struct advice *advice = argument;
    bool is_device = advice->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    uint32_t bit = is_device ? 1u << advice->location.id : HOST_BIT;
    switch (advice->advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        span->is_read_mostly = advice->advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        span->preferred = advice->location;
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        span->preferred = (CUmemLocation){0};
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
        span->accessed_by |= bit;
        break;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        span->accessed_by &= ~bit;
        break;
    }
}

static void apply_prefetch(struct span *span, const void *location)
{
    span->prefetched = *(const CUmemLocation *)location;
}

static CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
    struct range range;
    CUresult result = find_range(address, bytes, &range);
    if (result != CUDA_SUCCESS)
        return result;
    if ((unsigned)advice < CU_MEM_ADVISE_SET_READ_MOSTLY || (unsigned)advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return CUDA_ERROR_INVALID_VALUE;
    bool is_accessed_by = advice == CU_MEM_ADVISE_SET_ACCESSED_BY || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    if (is_accessed_by && location.type != CU_MEM_LOCATION_TYPE_DEVICE && location.type != CU_MEM_LOCATION_TYPE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_accessed_by || advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION)
        result = check_location(&location);
    if (result != CUDA_SUCCESS)
        return result;
    struct advice argument = {advice, location};
    memory_lock();
    change(&range, apply_advice, &argument);
    memory_unlock();
    return CUDA_SUCCESS;
}

/* A device number of the older calls: CU_DEVICE_CPU is the host. */
static CUmemLocation location_of(CUdevice device)
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    if (device == CU_DEVICE_CPU)
        location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    return location;
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
    return advise(address, bytes, advice, location_of(device));
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
    return advise(address, bytes, advice, location);
}

static CUresult prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location, CUstream handle)
{
    struct context *context;
    struct stream *stream;
    struct range range;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result == CUDA_SUCCESS)
        result = find_range(address, bytes, &range);
    if (result == CUDA_SUCCESS)
        result = check_location(&location);
    if (result != CUDA_SUCCESS)
        return result;
    memory_lock();
    change(&range, apply_prefetch, &location);
    memory_unlock();
    return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
    return prefetch(address, bytes, location_of(device), stream);
}

TWIN(cuMemPrefetchAsync, _ptsz, (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream),
     (address, bytes, device, per_thread(stream)))

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned int flags,
                               CUstream stream)
{
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : prefetch(address, bytes, location, stream);
}

TWIN(cuMemPrefetchAsync_v2, _ptsz,
     (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned int flags, CUstream stream),
     (address, bytes, location, flags, per_thread(stream)))

/* ---- batches ---- */

struct places {
    const CUmemLocation *locations; /* NULL: a discard */
    const size_t *indices;
    size_t count;
};

static bool are_places_good(const struct places *places, size_t count)
{
    if (places->locations == NULL || places->indices == NULL || places->count == 0 || places->count > count ||
        places->indices[0] != 0)
        return false;
    for (size_t i = 1; i < places->count; i++)
        if (places->indices[i] <= places->indices[i - 1])
            return false;
    return places->indices[places->count - 1] < count;
}

static CUresult batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count, const struct places *places,
                      unsigned long long flags, CUstream handle)
{
    struct context *context;
    struct stream *stream;
    struct range range;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (addresses == NULL || sizes == NULL || count == 0 || flags != 0 || handle == NULL || handle == CU_STREAM_LEGACY)
        return CUDA_ERROR_INVALID_VALUE;
    if (places != NULL && !are_places_good(places, count))
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_find(context, handle, &stream);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = find_range(addresses[i], sizes[i], &range);
    for (size_t i = 0; places != NULL && i < places->count && result == CUDA_SUCCESS; i++)
        result = check_location(&places->locations[i]);
    for (size_t i = 0, place = 0; places != NULL && i < count && result == CUDA_SUCCESS; i++) {
        if (place + 1 < places->count && places->indices[place + 1] == i)
            place++;
        result = prefetch(addresses[i], sizes[i], places->locations[place], handle);
    }
    return result;
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count, CUmemLocation *locations,
                                 size_t *indices, size_t location_count, unsigned long long flags, CUstream stream)
{
    struct places places = {locations, indices, location_count};
    return batch(addresses, sizes, count, &places, flags, stream);
}

TWIN(cuMemPrefetchBatchAsync, _ptsz,
     (CUdeviceptr * addresses, size_t *sizes, size_t count, CUmemLocation *locations, size_t *indices,
      size_t location_count, unsigned long long flags, CUstream stream),
     (addresses, sizes, count, locations, indices, location_count, flags, per_thread(stream)))

/* The content may be kept: what a discarded range holds is not defined. */
CUresult cuMemDiscardBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count, unsigned long long flags,
                                CUstream stream)
{
    return batch(addresses, sizes, count, NULL, flags, stream);
}

TWIN(cuMemDiscardBatchAsync, _ptsz,
     (CUdeviceptr * addresses, size_t *sizes, size_t count, unsigned long long flags, CUstream stream),
     (addresses, sizes, count, flags, per_thread(stream)))

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
                                           CUmemLocation *locations, size_t *indices, size_t location_count,
                                           unsigned long long flags, CUstream stream)
{
    struct places places = {locations, indices, location_count};
    return batch(addresses, sizes, count, &places, flags, stream);
}

TWIN(cuMemDiscardAndPrefetchBatchAsync, _ptsz,
     (CUdeviceptr * addresses, size_t *sizes, size_t count, CUmemLocation *locations, size_t *indices,
      size_t location_count, unsigned long long flags, CUstream stream),
     (addresses, sizes, count, locations, indices, location_count, flags, per_thread(stream)))

/* ---- questions ---- */

/* What holds for every page of the range. */
static struct span gather(const struct range *range)
{
    struct span all = {0};
    CUdeviceptr at = range->begin;
    bool is_first = true;
    for (size_t i = 0; i < state.count && at < range->end; i++) {
        const struct span *span = &state.spans[i];
        if (span->end <= range->begin)
            continue;
        if (span->begin > at || span->buffer_id != range->buffer_id)
            return (struct span){0};
        if (is_first)
            all = *span;
        all.is_read_mostly &= span->is_read_mostly;
        all.accessed_by &= span->accessed_by;
        if (memcmp(&all.preferred, &span->preferred, sizeof all.preferred) != 0)
            all.preferred = (CUmemLocation){0};
        if (memcmp(&all.prefetched, &span->prefetched, sizeof all.prefetched) != 0)
            all.prefetched = (CUmemLocation){0};
        is_first = false;
        at = span->end;
    }
    return at >= range->end ? all : (struct span){0};
}

static int device_of(const CUmemLocation *location)
{
    if (location->type == CU_MEM_LOCATION_TYPE_INVALID)
        return CU_DEVICE_INVALID;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : CU_DEVICE_CPU;
}

static void list_accessors(uint32_t accessed_by, int *out, size_t room)
{
    size_t count = 0;
    for (unsigned i = 0; i < DEVICES_MAX && count < room; i++)
        if ((accessed_by & 1u << i) != 0)
            out[count++] = (int)i;
    if ((accessed_by & HOST_BIT) != 0 && count < room)
        out[count++] = CU_DEVICE_CPU;
    while (count < room)
        out[count++] = CU_DEVICE_INVALID;
}

static CUresult answer(const struct span *all, void *data, size_t bytes, CUmem_range_attribute attribute)
{
    bool is_list = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
    if (data == NULL || bytes == 0 || (is_list ? bytes % 4 != 0 : bytes != 4))
        return CUDA_ERROR_INVALID_VALUE;
    int *out = data;
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        *out = all->is_read_mostly;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        *out = device_of(&all->preferred);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
        list_accessors(all->accessed_by, out, bytes / 4);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *out = device_of(&all->prefetched);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *out = (int)all->preferred.type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        *out = all->preferred.id;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *out = (int)all->prefetched.type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        *out = all->prefetched.id;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *attributes, size_t count,
                                 CUdeviceptr address, size_t bytes)
{
    struct range range;
    CUresult result = find_range(address, bytes, &range);
    if (result != CUDA_SUCCESS)
        return result;
    if (data == NULL || sizes == NULL || attributes == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    struct span all = gather(&range);
    memory_unlock();
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = answer(&all, data[i], sizes[i], attributes[i]);
    return result;
}

CUresult cuMemRangeGetAttribute(void *data, size_t bytes, CUmem_range_attribute attribute, CUdeviceptr address,
                                size_t range_bytes)
{
    return cuMemRangeGetAttributes(&data, &bytes, &attribute, 1, address, range_bytes);
}
