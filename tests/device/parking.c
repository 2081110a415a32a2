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
    if (state.count == PARKED_MAX || mapping->physical->holders > 1 || mapping->physical->file >= 0 ||
        mapping->ipc_file > 0 || !space_protect(base, bytes, PROT_NONE)) {
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

struct mapping *parking_take(int device, size_t bytes)
{
    struct mapping **link = bucket_of(bytes);
    while (*link != NULL && ((*link)->bytes != bytes || (*link)->physical->device != device))
        link = &(*link)->next_parked;
    struct mapping *mapping = *link;
    if (mapping == NULL || !space_protect(mapping->base, bytes, PROT_READ | PROT_WRITE))
        return NULL;
    *link = mapping->next_parked;
    state.count--;
    physical_unpark(mapping->physical);
    return mapping;
}

static void make_free(int device, size_t bytes)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct mapping **link = &state.buckets[i]; *link != NULL && frames_free(device) < bytes;) {
            if ((*link)->physical->device == device)
                evict(link);
            else
                link = &(*link)->next_parked;
        }
    }
}

struct physical *parking_create_physical(int device, size_t bytes, int poison)
{
    if (bytes > frames_total() - frames_used(device))
        return NULL;
    if (frames_free(device) < bytes)
        make_free(device, bytes);
    return physical_create(device, bytes, poison);
}
