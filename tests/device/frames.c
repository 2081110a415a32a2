#include "tests/device/frames.h"
#include "tests/device/presence.h"
#include "tests/device/ranges.h"
#include "tests/device/settings.h"
#include "tests/device/stats.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXTENTS_MAX 4096 /* gathered before the physical is sized to fit */

static struct {
    int file;
    size_t frame_bytes, total, used, peak;
    unsigned device_count;
    struct store {
        size_t used, peak;
        struct ranges *free_frames;
    } stores[DEVICES_MAX];
    struct physical *shared; /* with files of their own, counted here */
    unsigned char *window;   /* the whole file, for poisoning; mapped at first use */
} state = {.file = -1};

bool frames_open(unsigned device_count, size_t memory_bytes, size_t frame_bytes)
{
    state.file = memfd_create("cpu-device-memory", MFD_CLOEXEC);
    if (state.file < 0 || ftruncate(state.file, (off_t)(memory_bytes * device_count)) != 0)
        return false;
    state.frame_bytes = frame_bytes;
    state.total = memory_bytes;
    state.device_count = device_count;
    for (unsigned i = 0; i < device_count; i++) {
        state.stores[i].free_frames = ranges_create(memory_bytes / frame_bytes);
        if (state.stores[i].free_frames == NULL)
            return false;
    }
    return true;
}

int frames_file(void)
{
    return state.file;
}

size_t frames_bytes(void)
{
    return state.frame_bytes;
}

size_t frames_total(void)
{
    return state.total;
}

size_t frames_used(int device)
{
    return state.stores[device].used;
}

size_t frames_free(int device)
{
    return ranges_free_count(state.stores[device].free_frames) * state.frame_bytes;
}

static uint64_t first_frame(int device)
{
    return (uint64_t)device * (state.total / state.frame_bytes);
}

static void poison_extent(struct extent extent, int byte)
{
    if (state.window == NULL) {
        void *window = mmap(NULL, state.total * state.device_count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                            state.file, 0);
        if (window == MAP_FAILED)
            return;
        state.window = window;
    }
    memset(state.window + extent.first * state.frame_bytes, byte, extent.count * state.frame_bytes);
}

struct physical *physical_of_extents(const struct extent *extents, uint32_t count, size_t bytes)
{
    struct physical *physical = malloc(sizeof *physical + count * sizeof *extents);
    if (physical == NULL)
        abort();
    memset(physical, 0, sizeof *physical);
    physical->magic = HANDLE_PHYSICAL;
    physical->holders = 1;
    physical->file = -1;
    physical->bytes = bytes;
    physical->extent_count = count;
    memcpy(physical->extents, extents, count * sizeof *extents);
    return physical;
}

static void take_into_account(int device, size_t bytes)
{
    struct store *store = &state.stores[device];
    state.used += bytes;
    store->used += bytes;
    presence_set_used(settings()->device_ids[device], store->used);
    if (store->used > store->peak) {
        store->peak = store->used;
        stats_set_device_peak(device, store->peak);
    }
    if (state.used > state.peak) {
        state.peak = state.used;
        stats_set_peak(state.peak);
    }
}

static void take_from_account(int device, size_t bytes)
{
    state.used -= bytes;
    state.stores[device].used -= bytes;
    presence_set_used(settings()->device_ids[device], state.stores[device].used);
}

struct physical *physical_create(int device, size_t bytes, int poison)
{
    if (bytes == 0 || bytes > frames_free(device))
        return NULL;
    uint64_t needed = bytes / state.frame_bytes;
    struct extent *extents = malloc(sizeof *extents * (needed < EXTENTS_MAX ? needed : EXTENTS_MAX));
    size_t room = needed < EXTENTS_MAX ? needed : EXTENTS_MAX, count = 0;
    if (extents == NULL)
        return NULL;
    while (needed > 0) {
        if (count == room) {
            struct extent *more = realloc(extents, 2 * room * sizeof *extents);
            if (more == NULL)
                abort();
            extents = more;
            room *= 2;
        }
        struct extent *next = &extents[count++];
        next->count = ranges_take_some(state.stores[device].free_frames, needed, &next->first);
        next->first += first_frame(device);
        needed -= next->count;
        if (poison >= 0)
            poison_extent(*next, poison);
    }
    struct physical *physical = physical_of_extents(extents, (uint32_t)count, bytes);
    free(extents);
    physical->device = device;
    take_into_account(device, bytes);
    return physical;
}

void physical_account(struct physical *physical)
{
    physical->next_shared = state.shared;
    state.shared = physical;
    take_into_account(physical->device, physical->bytes);
}

struct physical *physical_with_file(dev_t device, ino_t inode)
{
    struct physical *physical = state.shared;
    for (; physical != NULL; physical = physical->next_shared) {
        struct stat facts;
        if (fstat(physical->file, &facts) == 0 && facts.st_dev == device && facts.st_ino == inode)
            break;
    }
    return physical;
}

int physical_file(const struct physical *physical)
{
    return physical->file >= 0 ? physical->file : state.file;
}

void physical_park(struct physical *physical)
{
    physical->is_parked = true;
    take_from_account(physical->device, physical->bytes);
}

void physical_unpark(struct physical *physical)
{
    physical->is_parked = false;
    take_into_account(physical->device, physical->bytes);
}

void physical_hold(struct physical *physical)
{
    physical->holders++;
}

static void release_shared(struct physical *physical)
{
    if (!physical->is_foreign) {
        struct physical **link = &state.shared;
        while (*link != physical)
            link = &(*link)->next_shared;
        *link = physical->next_shared;
        take_from_account(physical->device, physical->bytes);
    }
    close(physical->file);
    physical->magic = HANDLE_DEAD;
    free(physical);
}

void physical_let_go(struct physical *physical)
{
    if (--physical->holders > 0)
        return;
    if (physical->file >= 0) {
        release_shared(physical);
        return;
    }
    for (uint32_t i = 0; i < physical->extent_count; i++)
        ranges_give(state.stores[physical->device].free_frames,
                    physical->extents[i].first - first_frame(physical->device), physical->extents[i].count);
    if (!physical->is_parked)
        take_from_account(physical->device, physical->bytes);
    physical->magic = HANDLE_DEAD;
    free(physical);
}
