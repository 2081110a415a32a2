#include "shim/frames_table.h"

#include "shim/driver.h"
#include "shim/say.h"
#include "shim/store.h"

#include "shim/inside.h"

#define ARENA_FACTOR 32
#define ARENA_LEAST  (16ull << 30)

struct frames_table frames_state;

static CUmemAllocationProp allocation_properties(CUdevice device)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    return properties;
}

static bool reserve_arena(uint64_t total)
{
    uint64_t bytes = total * ARENA_FACTOR;
    if (bytes < ARENA_LEAST) {
        bytes = ARENA_LEAST;
    }
    bytes -= bytes % frames_state.frame_bytes;
    CUresult result = driver.cuMemAddressReserve(&frames_state.begin, bytes, frames_state.frame_bytes, 0, 0);
    if (result != CUDA_SUCCESS) {
        say(SAY_ERROR, "cannot reserve %llu bytes of device addresses (error %d)", (unsigned long long)bytes,
            (int)result);
        return false;
    }
    frames_state.end = frames_state.begin + bytes;
    frames_state.page_count = (uint32_t)(bytes / frames_state.frame_bytes);
    return true;
}

bool frames_open(CUdevice device, uint64_t cap_bytes, bool is_strict)
{
    CUmemAllocationProp properties = allocation_properties(device);
    size_t granularity = 0, total = 0, available = 0;
    CUresult result = driver.cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (result != CUDA_SUCCESS || granularity == 0) {
        say(SAY_ERROR, "the driver gives no granularity for device memory (error %d)", (int)result);
        return false;
    }
    if ((granularity & (granularity - 1)) != 0) { /* space.c relies on it */
        say(SAY_ERROR, "the granularity of device memory, %llu bytes, is no power of two",
            (unsigned long long)granularity);
        return false;
    }
    result = driver.cuMemGetInfo_v2(&available, &total);
    if (result != CUDA_SUCCESS) {
        say(SAY_ERROR, "the driver does not tell the device's memory (error %d)", (int)result);
        return false;
    }
    frames_state.device = device;
    frames_state.frame_bytes = granularity;
    frames_state.is_strict = is_strict;
    frames_state.cap = (uint32_t)((cap_bytes != 0 && cap_bytes < total ? cap_bytes : total) / granularity);
    if (!reserve_arena(total)) {
        return false;
    }
    frames_state.pages = store_reserve(sizeof *frames_state.pages * frames_state.page_count, "the page table");
    frames_state.frames = store_reserve(sizeof *frames_state.frames * (frames_state.cap + 1), "the frame table");
    frames_state.free_head = frames_state.free_tail = frames_state.empty_head = FRAMES_NONE;
    frames_state.is_open = frames_state.pages != NULL && frames_state.frames != NULL;
    return frames_state.is_open;
}

bool frames_are_open(void)
{
    return frames_state.is_open;
}

void frames_arena(CUdeviceptr *begin, CUdeviceptr *end)
{
    *begin = frames_state.begin;
    *end = frames_state.end;
}

uint32_t frames_arena_pages(void)
{
    return frames_state.page_count;
}

struct frames_counts frames_count(void)
{
    return (struct frames_counts){.frame_bytes = frames_state.frame_bytes,
                                  .cap_frames = frames_state.cap,
                                  .created_frames = frames_state.created,
                                  .free_frames = frames_state.free_count,
                                  .charged_frames = frames_state.charged,
                                  .peak_frames = frames_state.peak,
                                  .driver_calls = frames_state.driver_calls};
}

static void note_peak(void)
{
    if (frames_state.created + frames_state.charged > frames_state.peak) {
        frames_state.peak = frames_state.created + frames_state.charged;
    }
}

uint32_t frames_available(void)
{
    uint32_t used = frames_state.created - frames_state.free_count + frames_state.charged;
    return used >= frames_state.cap ? 0 : frames_state.cap - used;
}

static void push_free(uint32_t index)
{
    struct frame *frame = &frames_state.frames[index];
    frame->owner = FRAMES_NONE;
    frame->next = FRAMES_NONE;
    frame->previous = frames_state.free_tail;
    if (frames_state.free_tail != FRAMES_NONE) {
        frames_state.frames[frames_state.free_tail].next = index;
    } else {
        frames_state.free_head = index;
    }
    frames_state.free_tail = index;
    frames_state.free_count++;
}

static void take_free(uint32_t index)
{
    struct frame *frame = &frames_state.frames[index];
    if (frame->previous != FRAMES_NONE) {
        frames_state.frames[frame->previous].next = frame->next;
    } else {
        frames_state.free_head = frame->next;
    }
    if (frame->next != FRAMES_NONE) {
        frames_state.frames[frame->next].previous = frame->previous;
    } else {
        frames_state.free_tail = frame->previous;
    }
    frames_state.free_count--;
}

static CUresult create_frame(void)
{
    CUmemAllocationProp properties = allocation_properties(frames_state.device);
    uint32_t index = frames_state.empty_head != FRAMES_NONE ? frames_state.empty_head : frames_state.first_unused;
    struct frame *frame = &frames_state.frames[index];
    frames_state.driver_calls++;
    CUresult result = driver.cuMemCreate(&frame->handle, frames_state.frame_bytes, &properties, 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (index == frames_state.empty_head) {
        frames_state.empty_head = frame->next;
    } else {
        frames_state.first_unused++;
    }
    frame->exists = true;
    frame->last = (struct last_use){.stream = STREAMS_NONE};
    frame->first_page = 0;
    frames_state.created++;
    note_peak();
    push_free(index);
    return CUDA_SUCCESS;
}

/* The device has less to give than the cap allows: others use it too. */
static void lower_cap(void)
{
    frames_state.cap = frames_state.created + frames_state.charged;
    say(SAY_WARNING, "the device has no more memory: the cap is now %llu bytes",
        (unsigned long long)frames_state.cap * frames_state.frame_bytes);
}

static void unlink_page(uint32_t page)
{
    struct frame *frame = &frames_state.frames[frames_state.pages[page].frame - 1];
    uint32_t *link = &frame->first_page;
    while (*link != page + 1) {
        link = &frames_state.pages[*link - 1].next_same;
    }
    *link = frames_state.pages[page].next_same;
    frames_state.pages[page] = (struct page){.wanted = frames_state.pages[page].wanted};
}

static CUdeviceptr page_address(uint32_t page)
{
    return frames_state.begin + (uint64_t)page * frames_state.frame_bytes;
}

static CUresult unmap_page(uint32_t page)
{
    frames_state.driver_calls++;
    CUresult result = driver.cuMemUnmap(page_address(page), frames_state.frame_bytes);
    if (result == CUDA_SUCCESS) {
        unlink_page(page);
    }
    return result;
}

static CUresult map_page(uint32_t page, uint32_t frame)
{
    frames_state.driver_calls++;
    CUresult result =
        driver.cuMemMap(page_address(page), frames_state.frame_bytes, 0, frames_state.frames[frame].handle, 0);
    if (result == CUDA_SUCCESS) {
        frames_state.pages[page].frame = frame + 1;
        frames_state.pages[page].next_same = frames_state.frames[frame].first_page;
        frames_state.frames[frame].first_page = page + 1;
    }
    return result;
}

static CUresult set_access(uint32_t first, uint32_t count)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = frames_state.device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    frames_state.driver_calls++;
    CUresult result =
        driver.cuMemSetAccess(page_address(first), (uint64_t)count * frames_state.frame_bytes, &access, 1);
    for (uint32_t i = first; result == CUDA_SUCCESS && i < first + count; i++) {
        frames_state.pages[i].has_access = true;
    }
    return result;
}

static bool is_free(uint32_t frame)
{
    return frames_state.frames[frame].exists && frames_state.frames[frame].owner == FRAMES_NONE;
}

/* Is there something better for the page than the free frame it is mapped to? */
static bool wants_other(const struct page *page)
{
    return page->wanted != 0 && page->wanted != page->frame && is_free(page->wanted - 1);
}

static void own(uint32_t page, uint32_t frame)
{
    take_free(frame);
    frames_state.frames[frame].owner = page;
}

/* Takes the frames that are still mapped behind the place and free. Returns how many. */
static uint32_t take_stale(const struct place *place)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < place->page_count; i++) {
        const struct page *page = &frames_state.pages[place->first_page + i];
        if (page->has_access && is_free(page->frame - 1) && !wants_other(page)) {
            own(place->first_page + i, page->frame - 1);
            taken++;
        }
    }
    return taken;
}

static bool page_owns(uint32_t page)
{
    uint32_t frame = frames_state.pages[page].frame;
    return frame != 0 && frames_state.frames[frame - 1].owner == page;
}

/* Maps a free frame behind a page that has none of its own. */
static CUresult take_fresh(uint32_t page)
{
    if (frames_state.pages[page].frame != 0) {
        CUresult result = unmap_page(page);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    if (frames_state.created + frames_state.charged < frames_state.cap) {
        CUresult result = create_frame();
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            lower_cap();
        }
        if (result != CUDA_SUCCESS && frames_state.free_count == 0) {
            return result;
        }
    }
    if (frames_state.created + frames_state.charged > frames_state.cap || frames_state.free_count == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint32_t wanted = frames_state.pages[page].wanted;
    uint32_t frame = wanted != 0 && is_free(wanted - 1) ? wanted - 1 : frames_state.free_head;
    CUresult result = map_page(page, frame);
    if (result == CUDA_SUCCESS) {
        own(page, frame);
    }
    return result;
}

static void give_back_pages(const struct place *place)
{
    for (uint32_t i = 0; i < place->page_count; i++) {
        if (page_owns(place->first_page + i)) {
            push_free(frames_state.pages[place->first_page + i].frame - 1);
        }
    }
}

static CUresult map_missing(struct place *place)
{
    bool has_waited = false;
    uint32_t run_first = 0, run_count = 0;
    for (uint32_t i = 0; i < place->page_count; i++) {
        uint32_t page = place->first_page + i;
        if (page_owns(page)) {
            continue;
        }
        if (!has_waited && frames_state.pages[page].frame != 0) {
            streams_finished(&place->last);
            has_waited = true;
        }
        CUresult result = take_fresh(page);
        if (result == CUDA_SUCCESS && run_count > 0 && run_first + run_count != page) {
            result = set_access(run_first, run_count);
            run_count = 0;
        }
        if (result != CUDA_SUCCESS) {
            return result;
        }
        if (run_count == 0) {
            run_first = page;
        }
        run_count++;
    }
    return run_count > 0 ? set_access(run_first, run_count) : CUDA_SUCCESS;
}

static void watch(const struct place *place, bool is_taken)
{
    for (uint32_t i = 0; i < place->page_count && frames_state.is_watching; i++) {
        if (frames_state.event_count == FRAMES_MAX_EVENTS) {
            frames_state.is_watching = false;
            return;
        }
        frames_state.events[frames_state.event_count++] = (struct event){place->first_page + i, is_taken};
    }
}

bool frames_acquire(struct place *place, uint32_t stream, CUresult *result)
{
    *result = CUDA_SUCCESS;
    if (place->is_resident) {
        return true;
    }
    if (frames_available() < place->page_count) {
        *result = CUDA_ERROR_OUT_OF_MEMORY;
        return false;
    }
    if (take_stale(place) < place->page_count) {
        *result = map_missing(place);
        if (*result != CUDA_SUCCESS) {
            give_back_pages(place);
            return false;
        }
    }
    /* Whoever has the frames next waits for their users as well, even if nobody uses them here. */
    for (uint32_t i = 0; i < place->page_count; i++) {
        struct frame *frame = &frames_state.frames[frames_state.pages[place->first_page + i].frame - 1];
        streams_follow(&frame->last, stream);
        last_use_merge(&place->last, &frame->last);
    }
    place->is_resident = true;
    watch(place, true);
    return true;
}

static void unmap_place(struct place *place)
{
    streams_finished(&place->last);
    for (uint32_t i = 0; i < place->page_count; i++) {
        if (frames_state.pages[place->first_page + i].frame != 0) {
            unmap_page(place->first_page + i);
        }
    }
}

void frames_release(struct place *place)
{
    if (!place->is_resident || place->page_count == 0) {
        return;
    }
    for (uint32_t i = 0; i < place->page_count; i++) {
        uint32_t frame = frames_state.pages[place->first_page + i].frame - 1;
        frames_state.frames[frame].last = place->last;
        push_free(frame);
    }
    place->is_resident = false;
    watch(place, false);
    if (frames_state.is_strict) {
        unmap_place(place);
    }
}

static void own_again(const struct place *place)
{
    for (uint32_t i = 0; i < place->page_count; i++) {
        frames_state.frames[frames_state.pages[place->first_page + i].frame - 1].owner = place->first_page + i;
    }
}

bool frames_move(struct place *from, struct place *to, uint32_t stream, CUresult *result)
{
    *result = CUDA_SUCCESS;
    streams_finished(&to->last);
    streams_order(from->last.streams, stream);
    for (uint32_t i = 0; i < to->page_count && *result == CUDA_SUCCESS; i++) {
        uint32_t page = to->first_page + i, frame = frames_state.pages[from->first_page + i].frame - 1;
        if (frames_state.pages[page].frame != 0 && frames_state.pages[page].frame != frame + 1) {
            *result = unmap_page(page);
        }
        if (*result == CUDA_SUCCESS && frames_state.pages[page].frame == 0) {
            *result = map_page(page, frame);
        }
        if (*result == CUDA_SUCCESS) {
            frames_state.frames[frame].owner = page;
        }
    }
    if (*result == CUDA_SUCCESS) {
        *result = set_access(to->first_page, to->page_count);
    }
    if (*result != CUDA_SUCCESS) {
        own_again(from);
        if (frames_state.is_strict) {
            unmap_place(to);
        }
        return false;
    }
    last_use_merge(&to->last, &from->last);
    to->is_resident = true;
    from->is_resident = false;
    watch(from, false);
    watch(to, true);
    if (frames_state.is_strict) {
        unmap_place(from);
    }
    return true;
}

/* Takes a free frame out of existence: nothing may map it any more. */
static bool destroy_free_frame(void)
{
    uint32_t index = frames_state.free_tail;
    struct frame *frame = &frames_state.frames[index];
    streams_finished(&frame->last);
    while (frame->first_page != 0) {
        if (unmap_page(frame->first_page - 1) != CUDA_SUCCESS) {
            return false;
        }
    }
    frames_state.driver_calls++;
    if (driver.cuMemRelease(frame->handle) != CUDA_SUCCESS) {
        return false;
    }
    take_free(index);
    frame->exists = false;
    frame->next = frames_state.empty_head;
    frames_state.empty_head = index;
    frames_state.created--;
    return true;
}

bool frames_charge(uint32_t count)
{
    if (frames_available() < count) {
        return false;
    }
    while (frames_state.created + frames_state.charged + count > frames_state.cap) {
        if (!destroy_free_frame()) {
            return false;
        }
    }
    frames_state.charged += count;
    note_peak();
    return true;
}

void frames_refund(uint32_t count)
{
    frames_state.charged -= count < frames_state.charged ? count : frames_state.charged;
}

bool frames_is_valid(void)
{
    uint32_t found = 0;
    for (uint32_t index = frames_state.free_head; index != FRAMES_NONE; index = frames_state.frames[index].next) {
        found += frames_state.frames[index].owner == FRAMES_NONE && frames_state.frames[index].exists;
    }
    return found == frames_state.free_count && frames_state.created + frames_state.charged <= frames_state.cap;
}
