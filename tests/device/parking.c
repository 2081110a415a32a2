#include "tests/device/driver.h"
#include "tests/device/parking.h"
#include <sys/mman.h>

#define BUCKETS    256  /* by frames, hashed; newest first */
#define PARKED_MAX 8192 /* each is one of the host's mappings, of which there are not many */

static struct {
    struct mapping *buckets[BUCKETS];
    size_t count;
} state;

static struct mapping **bucket_of(size_t bytes)
{
    return &state.buckets[bytes / frames_bytes() * 0x9E3779B1u % BUCKETS];
}

static void evict(struct mapping **link)
{
    struct mapping *mapping = *link;
    *link = mapping->next_parked;
    state.count--;
    CUdeviceptr base = mapping->base;
    size_t bytes = mapping->bytes;
    space_unmap(base, bytes);
    space_give(base, bytes);
}

void parking_put(struct mapping *mapping)
{
    CUdeviceptr base = mapping->base;
    size_t bytes = mapping->bytes;
    if (state.count == PARKED_MAX || mapping->physical->holders > 1 || !space_protect(base, bytes, PROT_NONE)) {
        space_unmap(base, bytes);
        space_give(base, bytes);
        return;
    }
    mapping->kind = MAPPING_PARKED;
    mapping->slab = NULL;
    mapping->pool = NULL;
    mapping->is_managed = false;
    physical_park(mapping->physical);
    struct mapping **bucket = bucket_of(bytes);
    mapping->next_parked = *bucket;
    *bucket = mapping;
    state.count++;
}

struct mapping *parking_take(size_t bytes)
{
    struct mapping **link = bucket_of(bytes);
    while (*link != NULL && (*link)->bytes != bytes)
        link = &(*link)->next_parked;
    struct mapping *mapping = *link;
    if (mapping == NULL || !space_protect(mapping->base, bytes, PROT_READ | PROT_WRITE))
        return NULL;
    *link = mapping->next_parked;
    state.count--;
    physical_unpark(mapping->physical);
    return mapping;
}

static void make_free(size_t bytes)
{
    for (size_t i = 0; i < BUCKETS; i++)
        while (state.buckets[i] != NULL && frames_free() < bytes)
            evict(&state.buckets[i]);
}

struct physical *parking_create_physical(size_t bytes, int poison)
{
    if (bytes > frames_total() - frames_used())
        return NULL;
    if (frames_free() < bytes)
        make_free(bytes);
    return physical_create(bytes, poison);
}
