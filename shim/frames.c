#include "shim/frames.h"

#include "policy/assign.h"
#include "shim/driver.h"
#include "shim/say.h"
#include "shim/store.h"

#include "shim/inside.h"

#define ARENA_FACTOR 32
#define ARENA_LEAST (16ull << 30)
#define MAX_EVENTS (1u << 23)
#define ASSIGN_EFFORT 400000000ull /* comparisons: about half a second */

struct frame {
    CUmemGenericAllocationHandle handle;
    uint64_t used_by;           /* streams that used it before it became free */
    uint32_t next, previous;    /* free list */
    uint32_t first_page;        /* pages that map it, chained by page.next_same */
    uint32_t owner;             /* page, or FRAMES_NONE if free */
    bool exists;
};

struct page {
    uint32_t frame;             /* mapped now, plus one; 0 = none */
    uint32_t next_same;         /* next page with the same frame, plus one */
    uint32_t wanted;            /* frame assigned to it, plus one; 0 = none */
    bool has_access;            /* false: mapped, but an acquire failed before it could be used */
};

/* A page took a frame, or gave it up. */
struct event {
    uint32_t page;
    bool is_taken;
};

static struct {
    bool is_open, is_strict, is_watching;
    struct event *events;
    uint32_t event_count;
    CUdevice device;
    CUdeviceptr begin, end;
    uint64_t frame_bytes;
    uint32_t page_count;
    struct page *pages;
    struct frame *frames;
    uint32_t cap, created, free_count, charged, peak;
    uint32_t free_head, free_tail;
    uint32_t empty_head, first_unused;   /* frame slots whose handle was given back; slots never used */
    uint64_t driver_calls;
} state;

static CUmemAllocationProp allocation_properties(CUdevice device)
{
    CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device } };
    return properties;
}

static bool reserve_arena(uint64_t total)
{
    uint64_t bytes = total * ARENA_FACTOR;
    if (bytes < ARENA_LEAST) {
        bytes = ARENA_LEAST;
    }
    bytes -= bytes % state.frame_bytes;
    CUresult result = driver.cuMemAddressReserve(&state.begin, bytes, state.frame_bytes, 0, 0);
    if (result != CUDA_SUCCESS) {
        say(SAY_ERROR, "cannot reserve %llu bytes of device addresses (error %d)", (unsigned long long)bytes, (int)result);
        return false;
    }
    state.end = state.begin + bytes;
    state.page_count = (uint32_t)(bytes / state.frame_bytes);
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
    result = driver.cuMemGetInfo_v2(&available, &total);
    if (result != CUDA_SUCCESS) {
        say(SAY_ERROR, "the driver does not tell the device's memory (error %d)", (int)result);
        return false;
    }
    state.device = device;
    state.frame_bytes = granularity;
    state.is_strict = is_strict;
    state.cap = (uint32_t)((cap_bytes != 0 && cap_bytes < total ? cap_bytes : total) / granularity);
    if (!reserve_arena(total)) {
        return false;
    }
    state.pages = store_reserve(sizeof *state.pages * state.page_count, "the page table");
    state.frames = store_reserve(sizeof *state.frames * (state.cap + 1), "the frame table");
    state.free_head = state.free_tail = state.empty_head = FRAMES_NONE;
    state.is_open = state.pages != NULL && state.frames != NULL;
    return state.is_open;
}

bool frames_are_open(void)
{
    return state.is_open;
}

void frames_arena(CUdeviceptr *begin, CUdeviceptr *end)
{
    *begin = state.begin;
    *end = state.end;
}

uint32_t frames_arena_pages(void)
{
    return state.page_count;
}

struct frames_counts frames_count(void)
{
    return (struct frames_counts){ .frame_bytes = state.frame_bytes,
                                   .cap_frames = state.cap,
                                   .created_frames = state.created,
                                   .free_frames = state.free_count,
                                   .charged_frames = state.charged,
                                   .peak_frames = state.peak,
                                   .driver_calls = state.driver_calls };
}

static void note_peak(void)
{
    if (state.created + state.charged > state.peak) {
        state.peak = state.created + state.charged;
    }
}

uint32_t frames_available(void)
{
    uint32_t used = state.created - state.free_count + state.charged;
    return used >= state.cap ? 0 : state.cap - used;
}

static void push_free(uint32_t index)
{
    struct frame *frame = &state.frames[index];
    frame->owner = FRAMES_NONE;
    frame->next = FRAMES_NONE;
    frame->previous = state.free_tail;
    if (state.free_tail != FRAMES_NONE) {
        state.frames[state.free_tail].next = index;
    } else {
        state.free_head = index;
    }
    state.free_tail = index;
    state.free_count++;
}

static void take_free(uint32_t index)
{
    struct frame *frame = &state.frames[index];
    if (frame->previous != FRAMES_NONE) {
        state.frames[frame->previous].next = frame->next;
    } else {
        state.free_head = frame->next;
    }
    if (frame->next != FRAMES_NONE) {
        state.frames[frame->next].previous = frame->previous;
    } else {
        state.free_tail = frame->previous;
    }
    state.free_count--;
}

static CUresult create_frame(void)
{
    CUmemAllocationProp properties = allocation_properties(state.device);
    uint32_t index = state.empty_head != FRAMES_NONE ? state.empty_head : state.first_unused;
    struct frame *frame = &state.frames[index];
    state.driver_calls++;
    CUresult result = driver.cuMemCreate(&frame->handle, state.frame_bytes, &properties, 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (index == state.empty_head) {
        state.empty_head = frame->next;
    } else {
        state.first_unused++;
    }
    frame->exists = true;
    frame->used_by = 0;
    frame->first_page = 0;
    state.created++;
    note_peak();
    push_free(index);
    return CUDA_SUCCESS;
}

/* The device has less to give than the cap allows: others use it too. */
static void lower_cap(void)
{
    state.cap = state.created + state.charged;
    say(SAY_WARNING, "the device has no more memory: the cap is now %llu bytes",
        (unsigned long long)state.cap * state.frame_bytes);
}

static void unlink_page(uint32_t page)
{
    struct frame *frame = &state.frames[state.pages[page].frame - 1];
    uint32_t *link = &frame->first_page;
    while (*link != page + 1) {
        link = &state.pages[*link - 1].next_same;
    }
    *link = state.pages[page].next_same;
    state.pages[page] = (struct page){ .wanted = state.pages[page].wanted };
}

static CUdeviceptr page_address(uint32_t page)
{
    return state.begin + (uint64_t)page * state.frame_bytes;
}

static CUresult unmap_page(uint32_t page)
{
    state.driver_calls++;
    CUresult result = driver.cuMemUnmap(page_address(page), state.frame_bytes);
    if (result == CUDA_SUCCESS) {
        unlink_page(page);
    }
    return result;
}

static CUresult map_page(uint32_t page, uint32_t frame)
{
    state.driver_calls++;
    CUresult result = driver.cuMemMap(page_address(page), state.frame_bytes, 0, state.frames[frame].handle, 0);
    if (result == CUDA_SUCCESS) {
        state.pages[page].frame = frame + 1;
        state.pages[page].next_same = state.frames[frame].first_page;
        state.frames[frame].first_page = page + 1;
    }
    return result;
}

static CUresult set_access(uint32_t first, uint32_t count)
{
    CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = state.device },
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    state.driver_calls++;
    CUresult result = driver.cuMemSetAccess(page_address(first), (uint64_t)count * state.frame_bytes, &access, 1);
    for (uint32_t i = first; result == CUDA_SUCCESS && i < first + count; i++) {
        state.pages[i].has_access = true;
    }
    return result;
}

static bool is_free(uint32_t frame)
{
    return state.frames[frame].exists && state.frames[frame].owner == FRAMES_NONE;
}

/* Is there something better for the page than the free frame it is mapped to? */
static bool wants_other(const struct page *page)
{
    return page->wanted != 0 && page->wanted != page->frame && is_free(page->wanted - 1);
}

static void own(uint32_t page, uint32_t frame, uint64_t *used_by)
{
    take_free(frame);
    state.frames[frame].owner = page;
    *used_by |= state.frames[frame].used_by;
}

/* Takes the frames that are still mapped behind the place and free. Returns how many. */
static uint32_t take_stale(const struct place *place, uint64_t *used_by)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < place->page_count; i++) {
        const struct page *page = &state.pages[place->first_page + i];
        if (page->has_access && is_free(page->frame - 1) && !wants_other(page)) {
            own(place->first_page + i, page->frame - 1, used_by);
            taken++;
        }
    }
    return taken;
}

static bool page_owns(uint32_t page)
{
    uint32_t frame = state.pages[page].frame;
    return frame != 0 && state.frames[frame - 1].owner == page;
}

/* Maps a free frame behind a page that has none of its own. */
static CUresult take_fresh(uint32_t page, uint64_t *used_by)
{
    if (state.pages[page].frame != 0) {
        CUresult result = unmap_page(page);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    if (state.created + state.charged < state.cap) {
        CUresult result = create_frame();
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            lower_cap();
        }
        if (result != CUDA_SUCCESS && state.free_count == 0) {
            return result;
        }
    }
    if (state.created + state.charged > state.cap || state.free_count == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint32_t wanted = state.pages[page].wanted;
    uint32_t frame = wanted != 0 && is_free(wanted - 1) ? wanted - 1 : state.free_head;
    CUresult result = map_page(page, frame);
    if (result == CUDA_SUCCESS) {
        own(page, frame, used_by);
    }
    return result;
}

static void give_back_pages(const struct place *place)
{
    for (uint32_t i = 0; i < place->page_count; i++) {
        if (page_owns(place->first_page + i)) {
            push_free(state.pages[place->first_page + i].frame - 1);
        }
    }
}

static CUresult map_missing(struct place *place, uint64_t *used_by)
{
    bool has_waited = false;
    uint32_t run_first = 0, run_count = 0;
    for (uint32_t i = 0; i < place->page_count; i++) {
        uint32_t page = place->first_page + i;
        if (page_owns(page)) {
            continue;
        }
        if (!has_waited && state.pages[page].frame != 0) {
            streams_finished(&place->last);
            has_waited = true;
        }
        CUresult result = take_fresh(page, used_by);
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
    for (uint32_t i = 0; i < place->page_count && state.is_watching; i++) {
        if (state.event_count == MAX_EVENTS) {
            state.is_watching = false;
            return;
        }
        state.events[state.event_count++] = (struct event){ place->first_page + i, is_taken };
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
    uint64_t used_by = 0;
    if (take_stale(place, &used_by) < place->page_count) {
        *result = map_missing(place, &used_by);
        if (*result != CUDA_SUCCESS) {
            give_back_pages(place);
            return false;
        }
    }
    streams_order(used_by, stream);
    place->is_resident = true;
    watch(place, true);
    return true;
}

static void unmap_place(struct place *place)
{
    streams_finished(&place->last);
    for (uint32_t i = 0; i < place->page_count; i++) {
        if (state.pages[place->first_page + i].frame != 0) {
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
        uint32_t frame = state.pages[place->first_page + i].frame - 1;
        state.frames[frame].used_by = place->last.streams;
        push_free(frame);
    }
    place->is_resident = false;
    watch(place, false);
    if (state.is_strict) {
        unmap_place(place);
    }
}

static void own_again(const struct place *place)
{
    for (uint32_t i = 0; i < place->page_count; i++) {
        state.frames[state.pages[place->first_page + i].frame - 1].owner = place->first_page + i;
    }
}

bool frames_move(struct place *from, struct place *to, uint32_t stream, CUresult *result)
{
    *result = CUDA_SUCCESS;
    streams_finished(&to->last);
    streams_order(from->last.streams, stream);
    for (uint32_t i = 0; i < to->page_count && *result == CUDA_SUCCESS; i++) {
        uint32_t page = to->first_page + i, frame = state.pages[from->first_page + i].frame - 1;
        if (state.pages[page].frame != 0 && state.pages[page].frame != frame + 1) {
            *result = unmap_page(page);
        }
        if (*result == CUDA_SUCCESS && state.pages[page].frame == 0) {
            *result = map_page(page, frame);
        }
        if (*result == CUDA_SUCCESS) {
            state.frames[frame].owner = page;
        }
    }
    if (*result == CUDA_SUCCESS) {
        *result = set_access(to->first_page, to->page_count);
    }
    if (*result != CUDA_SUCCESS) {
        own_again(from);
        if (state.is_strict) {
            unmap_place(to);
        }
        return false;
    }
    last_use_merge(&to->last, &from->last);
    to->is_resident = true;
    from->is_resident = false;
    watch(from, false);
    watch(to, true);
    if (state.is_strict) {
        unmap_place(from);
    }
    return true;
}

/* ---- assignment ---- */

void frames_watch(void)
{
    if (state.events == NULL) {
        state.events = store_reserve(sizeof *state.events * MAX_EVENTS, "frame events");
    }
    state.event_count = 0;
    state.is_watching = state.events != NULL;
}

void frames_unwatch(void)
{
    state.is_watching = false;
}

/* Working memory of one assignment; arena pages and frames are renumbered so that only those that change take part. */
struct assignment {
    uint32_t *number;           /* per arena page, plus one; 0: not seen */
    uint32_t *pages;            /* by number */
    uint32_t *span_first, *span_next; /* per number: where its spans go */
    struct assign_span *spans;
    uint32_t *frames;           /* by number: frame */
    uint32_t *frame_number;     /* per frame, plus one */
    uint32_t *preferred, *chosen;
    uint32_t page_count, frame_count;
};

static bool assignment_open(struct assignment *a)
{
    size_t events = state.event_count;
    a->number = store_reserve(sizeof(uint32_t) * state.page_count, "assignment");
    a->pages = store_reserve(sizeof(uint32_t) * (events + 1), "assignment");
    a->span_first = store_reserve(sizeof(uint32_t) * (events + 2), "assignment");
    a->span_next = store_reserve(sizeof(uint32_t) * (events + 2), "assignment");
    a->spans = store_reserve(sizeof *a->spans * (events + 1), "assignment");
    a->frames = store_reserve(sizeof(uint32_t) * (state.cap + 1ul), "assignment");
    a->frame_number = store_reserve(sizeof(uint32_t) * (state.cap + 1ul), "assignment");
    a->preferred = store_reserve(sizeof(uint32_t) * (events + 1), "assignment");
    a->chosen = store_reserve(sizeof(uint32_t) * (events + 1), "assignment");
    return a->number != NULL && a->pages != NULL && a->span_first != NULL && a->span_next != NULL &&
           a->spans != NULL && a->frames != NULL && a->frame_number != NULL && a->preferred != NULL &&
           a->chosen != NULL;
}

static void assignment_close(struct assignment *a)
{
    size_t events = state.event_count;
    store_return(a->number, sizeof(uint32_t) * state.page_count);
    store_return(a->pages, sizeof(uint32_t) * (events + 1));
    store_return(a->span_first, sizeof(uint32_t) * (events + 2));
    store_return(a->span_next, sizeof(uint32_t) * (events + 2));
    store_return(a->spans, sizeof *a->spans * (events + 1));
    store_return(a->frames, sizeof(uint32_t) * (state.cap + 1ul));
    store_return(a->frame_number, sizeof(uint32_t) * (state.cap + 1ul));
    store_return(a->preferred, sizeof(uint32_t) * (events + 1));
    store_return(a->chosen, sizeof(uint32_t) * (events + 1));
}

/* Numbers the pages and counts their spans: one for each time they take a frame, and one for what was held before. */
static void number_pages(struct assignment *a)
{
    for (uint32_t i = 0; i < state.event_count; i++) {
        uint32_t *number = &a->number[state.events[i].page];
        bool is_first = *number == 0;
        if (is_first) {
            a->pages[a->page_count] = state.events[i].page;
            *number = ++a->page_count;
        }
        a->span_first[*number] += state.events[i].is_taken || is_first;
    }
    for (uint32_t i = 1; i <= a->page_count; i++) {
        a->span_first[i] += a->span_first[i - 1];
        a->span_next[i] = a->span_first[i];
    }
    a->span_next[0] = 0;
}

/* Events of a page alternate, so its spans are filled in order. */
static uint32_t fill_spans(struct assignment *a)
{
    for (uint32_t i = 0; i < state.event_count; i++) {
        uint32_t number = a->number[state.events[i].page] - 1;
        uint32_t *next = &a->span_next[number];
        if (state.events[i].is_taken) {
            a->spans[(*next)++] = (struct assign_span){ number, i, state.event_count };
        } else if (*next == a->span_first[number]) {
            a->spans[(*next)++] = (struct assign_span){ number, 0, i };
        } else {
            a->spans[*next - 1].end = i;
        }
    }
    return a->span_first[a->page_count];
}

/* Frames that one page held all the time are not to be had. */
static void number_frames(struct assignment *a)
{
    for (uint32_t i = 0; i < state.first_unused; i++) {
        const struct frame *frame = &state.frames[i];
        if (frame->exists && (frame->owner == FRAMES_NONE || a->number[frame->owner] != 0)) {
            a->frames[a->frame_count] = i;
            a->frame_number[i] = ++a->frame_count;
        }
    }
    for (uint32_t i = 0; i < a->page_count; i++) {
        uint32_t frame = state.pages[a->pages[i]].frame;
        a->preferred[i] = frame == 0 || a->frame_number[frame - 1] == 0 ? ASSIGN_NONE : a->frame_number[frame - 1] - 1;
    }
}

void frames_assign(void)
{
    struct assignment a = { 0 };
    if (!state.is_watching || state.event_count == 0) {
        state.is_watching = false;
        return;
    }
    state.is_watching = false;
    if (assignment_open(&a)) {
        number_pages(&a);
        uint32_t span_count = fill_spans(&a);
        number_frames(&a);
        struct assign_problem problem = { .spans = a.spans, .span_count = span_count, .page_count = a.page_count,
                                          .frame_count = a.frame_count, .preferred = a.preferred,
                                          .effort = ASSIGN_EFFORT };
        uint32_t assigned = assign_frames(&problem, a.chosen);
        for (uint32_t i = 0; i < a.page_count && assigned != UINT32_MAX; i++) {
            state.pages[a.pages[i]].wanted = a.chosen[i] == ASSIGN_NONE ? 0 : a.frames[a.chosen[i]] + 1;
        }
        say(SAY_DEBUG, "frames assigned to %u of %u pages, %u frames", assigned, a.page_count, a.frame_count);
    }
    assignment_close(&a);
}

/* Takes a free frame out of existence: nothing may map it any more. */
static bool destroy_free_frame(void)
{
    uint32_t index = state.free_tail;
    struct frame *frame = &state.frames[index];
    struct last_use last = { .streams = frame->used_by, .stream = STREAMS_NONE };
    streams_finished(&last);
    while (frame->first_page != 0) {
        if (unmap_page(frame->first_page - 1) != CUDA_SUCCESS) {
            return false;
        }
    }
    state.driver_calls++;
    if (driver.cuMemRelease(frame->handle) != CUDA_SUCCESS) {
        return false;
    }
    take_free(index);
    frame->exists = false;
    frame->next = state.empty_head;
    state.empty_head = index;
    state.created--;
    return true;
}

bool frames_charge(uint32_t count)
{
    if (frames_available() < count) {
        return false;
    }
    while (state.created + state.charged + count > state.cap) {
        if (!destroy_free_frame()) {
            return false;
        }
    }
    state.charged += count;
    note_peak();
    return true;
}

void frames_refund(uint32_t count)
{
    state.charged -= count < state.charged ? count : state.charged;
}

bool frames_is_valid(void)
{
    uint32_t found = 0;
    for (uint32_t index = state.free_head; index != FRAMES_NONE; index = state.frames[index].next) {
        found += state.frames[index].owner == FRAMES_NONE && state.frames[index].exists;
    }
    return found == state.free_count && state.created + state.charged <= state.cap;
}
