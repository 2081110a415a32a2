#include "tests/device/space.h"
#include "tests/device/ranges.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_BYTES_MOST  ((size_t)8 << 40)
#define ARENA_BYTES_LEAST ((size_t)4 << 30)
#define POPULATE_LIMIT    ((size_t)32 << 20) /* beyond, pages are brought in as they are touched */

static struct {
    CUdeviceptr begin, end;
    size_t granule_bytes;
    struct ranges *free_granules;
    struct mapping **granules;        /* the mapping that holds each, or NULL */
    struct reservation *reservations; /* ascending */
    size_t reservation_count, reservation_room;
    uint64_t next_buffer_id;
} state = {.next_buffer_id = 1};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void memory_lock(void)
{
    pthread_mutex_lock(&lock);
}

void memory_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void *reserve_arena(size_t *bytes)
{
    for (*bytes = ARENA_BYTES_MOST; *bytes >= ARENA_BYTES_LEAST; *bytes /= 2) {
        void *arena = mmap(NULL, *bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (arena != MAP_FAILED)
            return arena;
    }
    return NULL;
}

bool space_open(size_t granule_bytes)
{
    size_t bytes;
    void *arena = reserve_arena(&bytes);
    if (arena == NULL)
        return false;
    state.granule_bytes = granule_bytes;
    /* Huge allocations may ask for more than a granule's alignment: start on a round address. */
    size_t round = granule_bytes > ((size_t)1 << 30) ? granule_bytes : (size_t)1 << 30;
    state.begin = ((CUdeviceptr)arena + round - 1) & ~(CUdeviceptr)(round - 1);
    state.end = ((CUdeviceptr)arena + bytes) & ~(CUdeviceptr)(round - 1);
    uint64_t count = (state.end - state.begin) / granule_bytes;
    void *granules = mmap(NULL, count * sizeof *state.granules, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (granules == MAP_FAILED)
        return false;
    state.granules = granules;
    state.free_granules = ranges_create(count);
    return state.free_granules != NULL;
}

bool space_contains(CUdeviceptr address)
{
    return address - state.begin < state.end - state.begin;
}

static uint64_t granule_of(CUdeviceptr address)
{
    return (address - state.begin) / state.granule_bytes;
}

CUdeviceptr space_take(size_t bytes, size_t align)
{
    uint64_t first, step = align / state.granule_bytes;
    if (!ranges_take(state.free_granules, bytes / state.granule_bytes, step > 1 ? step : 1, &first))
        return 0;
    return state.begin + first * state.granule_bytes;
}

void space_give(CUdeviceptr base, size_t bytes)
{
    ranges_give(state.free_granules, granule_of(base), bytes / state.granule_bytes);
}

struct mapping *space_map(CUdeviceptr base, size_t bytes, struct physical *physical, enum mapping_kind kind)
{
    struct mapping *mapping = calloc(1, sizeof *mapping);
    if (mapping == NULL)
        abort();
    mapping->base = base;
    mapping->bytes = mapping->asked_bytes = bytes;
    mapping->physical = physical;
    mapping->kind = kind;
    mapping->protection = PROT_NONE;
    mapping->buffer_id = state.next_buffer_id++;
    physical_hold(physical);
    for (uint64_t i = granule_of(base), end = i + bytes / state.granule_bytes; i < end; i++)
        state.granules[i] = mapping;
    return mapping;
}

void space_unmap(CUdeviceptr base, size_t bytes)
{
    bool is_any_placed = false;
    for (CUdeviceptr at = base; at < base + bytes;) {
        struct mapping *mapping = state.granules[granule_of(at)];
        is_any_placed |= mapping->is_placed;
        at += mapping->bytes;
    }
    /* First out of reach, then back to the pool: nobody may write frames that have a new owner. */
    if (is_any_placed && mmap((void *)base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                              -1, 0) == MAP_FAILED)
        abort();
    for (CUdeviceptr at = base; at < base + bytes;) {
        struct mapping *mapping = state.granules[granule_of(at)];
        at += mapping->bytes;
        uint64_t first = granule_of(mapping->base);
        memset(&state.granules[first], 0, mapping->bytes / state.granule_bytes * sizeof *state.granules);
        physical_let_go(mapping->physical);
        if (mapping->ipc_file > 0)
            close(mapping->ipc_file);
        free(mapping);
    }
}

/* Host mapping calls, joined while both the addresses and the frames go on without a gap. */
struct placement {
    CUdeviceptr at;
    size_t bytes, offset;
    int file, protection;
    bool has_failed;
};

static void placement_flush(struct placement *placement)
{
    if (placement->bytes == 0)
        return;
    int flags = MAP_SHARED | MAP_FIXED;
    if (placement->bytes <= POPULATE_LIMIT && placement->protection != PROT_NONE)
        flags |= MAP_POPULATE;
    void *got = mmap((void *)placement->at, placement->bytes, placement->protection, flags, placement->file,
                     (off_t)placement->offset);
    if (got == MAP_FAILED) {
        placement->has_failed = true;
        if (errno == ENOMEM)
            fprintf(stderr, "cpu device: the host refuses more mappings: raise vm.max_map_count\n");
    }
    placement->bytes = 0;
}

static void placement_add(struct placement *placement, CUdeviceptr at, size_t bytes, int file, size_t offset)
{
    if (placement->bytes > 0 && placement->at + placement->bytes == at &&
        placement->offset + placement->bytes == offset && placement->file == file) {
        placement->bytes += bytes;
        return;
    }
    placement_flush(placement);
    placement->at = at;
    placement->bytes = bytes;
    placement->file = file;
    placement->offset = offset;
}

static void place(struct placement *placement, struct mapping *mapping)
{
    size_t done = 0;
    for (uint32_t i = 0; done < mapping->bytes; i++) {
        struct extent extent = mapping->physical->extents[i];
        size_t bytes = extent.count * state.granule_bytes;
        if (bytes > mapping->bytes - done)
            bytes = mapping->bytes - done;
        placement_add(placement, mapping->base + done, bytes, physical_file(mapping->physical),
                      extent.first * state.granule_bytes);
        done += bytes;
    }
}

bool space_protect(CUdeviceptr base, size_t bytes, int protection)
{
    struct placement placement = {.protection = protection};
    for (CUdeviceptr at = base; at < base + bytes;) {
        struct mapping *mapping = state.granules[granule_of(at)];
        at = mapping->base + mapping->bytes;
        if (mapping->protection == protection)
            continue;
        if (mapping->is_placed) {
            /* Its pages stay: cheaper than mapping them again. */
            if (mprotect((void *)mapping->base, mapping->bytes, protection) != 0)
                placement.has_failed = true;
        } else {
            place(&placement, mapping);
        }
        mapping->protection = protection;
        mapping->is_placed = true;
    }
    placement_flush(&placement);
    return !placement.has_failed;
}

uint64_t space_new_buffer_id(void)
{
    return state.next_buffer_id++;
}

struct mapping *space_find(CUdeviceptr address)
{
    struct mapping *mapping = space_contains(address) ? state.granules[granule_of(address)] : NULL;
    return mapping != NULL && mapping->kind != MAPPING_PARKED ? mapping : NULL;
}

bool space_is_covered(CUdeviceptr base, size_t bytes)
{
    CUdeviceptr at = base;
    while (at < base + bytes) {
        struct mapping *mapping = space_find(at);
        if (mapping == NULL || mapping->base != at)
            return false;
        at += mapping->bytes;
    }
    return at == base + bytes;
}

bool space_is_bare(CUdeviceptr base, size_t bytes)
{
    for (CUdeviceptr at = base; at < base + bytes; at += state.granule_bytes)
        if (space_find(at) != NULL)
            return false;
    return true;
}

static size_t reservation_position(CUdeviceptr address)
{
    size_t low = 0, high = state.reservation_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (state.reservations[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool reservation_add(CUdeviceptr base, size_t bytes)
{
    if (state.reservation_count == state.reservation_room) {
        size_t room = state.reservation_room == 0 ? 16 : 2 * state.reservation_room;
        struct reservation *more = realloc(state.reservations, room * sizeof *more);
        if (more == NULL)
            return false;
        state.reservations = more;
        state.reservation_room = room;
    }
    size_t at = reservation_position(base);
    memmove(&state.reservations[at + 1], &state.reservations[at],
            (state.reservation_count - at) * sizeof *state.reservations);
    state.reservations[at] = (struct reservation){base, bytes, false};
    state.reservation_count++;
    return true;
}

struct reservation *reservation_find(CUdeviceptr address)
{
    size_t after = reservation_position(address);
    if (after == 0)
        return NULL;
    struct reservation *reservation = &state.reservations[after - 1];
    return address - reservation->base < reservation->bytes ? reservation : NULL;
}

void reservation_remove(struct reservation *reservation)
{
    size_t at = (size_t)(reservation - state.reservations);
    state.reservation_count--;
    memmove(&state.reservations[at], &state.reservations[at + 1],
            (state.reservation_count - at) * sizeof *state.reservations);
}
