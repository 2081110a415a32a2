#include "shim/space.h"

#include "shim/say.h"
#include "shim/store.h"

#include "shim/inside.h"

#define MAX_ALLOCATIONS (1u << 22)
#define MAX_PLACES      (1u << 22)
#define MAX_SLABS       (1u << 20)
#define UNIT            512u  /* the driver's alignment promise */
#define SIZE_CLASSES    4096u /* places of fewer pages than this have free lists of their own */

struct slab {
    uint32_t page, used_units, next_free;
    uint32_t longest_run; /* no free run is longer than this */
    bool is_used;
    struct place frame_place; /* one page */
};

/* Between two places with pages is a guard page, never mapped: an address one past the end of a tensor, or just before
 * its first element, is still that tensor's. */
enum { OWNER_NONE, OWNER_PLACE, OWNER_SLAB, OWNER_GUARD };

struct page_owner {
    uint32_t kind;
    uint32_t index; /* place or slab; of a guard: the place before it */
};

static struct {
    struct allocation *allocations;
    uint32_t allocation_count, free_allocation;
    struct place *places;
    uint32_t *place_allocation; /* allocation whose home it is, or SPACE_NONE */
    uint32_t place_count, free_piece_place;
    uint32_t free_by_pages[SIZE_CLASSES];
    uint32_t free_large;
    struct slab *slabs;
    uint32_t slab_count, free_slab, slabs_in_use;
    uint32_t *unit_place; /* per slab and unit: place plus one */
    uint32_t units_per_slab;
    struct page_owner *owners;
    uint32_t next_page, page_count;
    CUdeviceptr begin, end;
    uint64_t frame_bytes;
    uint32_t frame_shift; /* frame_bytes is two to the power of it */
    uint64_t serial, live_bytes, live_signature, pinned_pages;
    uint32_t oldest, newest;
} state;

bool space_open(void)
{
    frames_arena(&state.begin, &state.end);
    state.frame_bytes = frames_count().frame_bytes;
    state.frame_shift = (uint32_t)__builtin_ctzll(state.frame_bytes);
    state.page_count = frames_arena_pages();
    state.units_per_slab = (uint32_t)(state.frame_bytes / UNIT);
    uint32_t slabs = state.page_count < MAX_SLABS ? state.page_count : MAX_SLABS;
    state.allocations = store_reserve(sizeof *state.allocations * MAX_ALLOCATIONS, "allocations");
    state.places = store_reserve(sizeof *state.places * MAX_PLACES, "places");
    state.place_allocation = store_reserve(sizeof *state.place_allocation * MAX_PLACES, "places");
    state.slabs = store_reserve(sizeof *state.slabs * slabs, "slabs");
    state.unit_place = store_reserve(sizeof *state.unit_place * state.units_per_slab * (size_t)slabs, "slab pieces");
    state.owners = store_reserve(sizeof *state.owners * state.page_count, "page owners");
    for (uint32_t i = 0; i < SIZE_CLASSES; i++) {
        state.free_by_pages[i] = SPACE_NONE;
    }
    state.free_large = state.free_allocation = state.free_piece_place = state.free_slab = SPACE_NONE;
    state.oldest = state.newest = SPACE_NONE;
    return state.allocations != NULL && state.places != NULL && state.place_allocation != NULL && state.slabs != NULL &&
           state.unit_place != NULL && state.owners != NULL;
}

bool space_is_small(uint64_t bytes)
{
    return bytes < state.frame_bytes / 2;
}

uint64_t space_allocation_footprint(uint64_t bytes)
{
    uint64_t unit = space_is_small(bytes) ? UNIT : state.frame_bytes;
    return (bytes + unit - 1) & ~(unit - 1);
}

struct place *space_place(uint32_t place)
{
    return &state.places[place];
}

struct allocation *space_get(uint32_t allocation)
{
    return &state.allocations[allocation];
}

uint32_t space_count(void)
{
    return state.allocation_count;
}

uint64_t space_live_bytes(void)
{
    return state.live_bytes;
}

uint64_t space_live_signature(void)
{
    return state.live_signature;
}

uint32_t space_slab_frames(void)
{
    return state.slabs_in_use;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    return x ^ (x >> 32);
}

/* ---- places with pages ---- */

/* Free places of one size are a pairing heap: the lowest comes first, so that in every iteration the same allocation
 * gets the same place, whatever the order of the frees was. */
static uint32_t meld(uint32_t a, uint32_t b)
{
    if (a == SPACE_NONE || b == SPACE_NONE) {
        return a == SPACE_NONE ? b : a;
    }
    uint32_t root = a < b ? a : b, other = a < b ? b : a;
    state.places[other].next = state.places[root].child;
    state.places[root].child = other;
    return root;
}

/* Melds the children of a root that was taken, in pairs. */
static uint32_t meld_children(uint32_t child)
{
    uint32_t pairs = SPACE_NONE, root = SPACE_NONE;
    while (child != SPACE_NONE) {
        uint32_t first = child, second = state.places[child].next;
        child = second == SPACE_NONE ? SPACE_NONE : state.places[second].next;
        state.places[first].next = SPACE_NONE;
        if (second != SPACE_NONE) {
            state.places[second].next = SPACE_NONE;
        }
        uint32_t pair = meld(first, second);
        state.places[pair].next = pairs;
        pairs = pair;
    }
    while (pairs != SPACE_NONE) {
        uint32_t next = state.places[pairs].next;
        state.places[pairs].next = SPACE_NONE;
        root = meld(root, pairs);
        pairs = next;
    }
    return root;
}

/* The rare sizes share a plain list. */
static uint32_t pop_large(uint32_t pages)
{
    uint32_t *link = &state.free_large;
    while (*link != SPACE_NONE && state.places[*link].page_count != pages) {
        link = &state.places[*link].next;
    }
    uint32_t found = *link;
    if (found != SPACE_NONE) {
        *link = state.places[found].next;
    }
    return found;
}

static uint32_t pop_free(uint32_t pages)
{
    if (pages >= SIZE_CLASSES) {
        return pop_large(pages);
    }
    uint32_t found = state.free_by_pages[pages];
    if (found != SPACE_NONE) {
        state.free_by_pages[pages] = meld_children(state.places[found].child);
        state.places[found].child = SPACE_NONE;
    }
    return found;
}

static void push_free(uint32_t index)
{
    struct place *place = &state.places[index];
    if (place->page_count >= SIZE_CLASSES) {
        place->next = state.free_large;
        state.free_large = index;
        return;
    }
    place->next = place->child = SPACE_NONE;
    state.free_by_pages[place->page_count] = meld(state.free_by_pages[place->page_count], index);
}

static uint32_t new_place(void)
{
    if (state.place_count == MAX_PLACES) {
        return SPACE_NONE;
    }
    state.place_allocation[state.place_count] = SPACE_NONE;
    state.places[state.place_count].last.stream = STREAMS_NONE;
    return state.place_count++;
}

static uint32_t take_pages(uint64_t bytes)
{
    uint32_t pages = (uint32_t)((bytes + state.frame_bytes - 1) >> state.frame_shift);
    uint32_t index = pop_free(pages);
    if (index != SPACE_NONE) {
        state.places[index].bytes = bytes;
        return index;
    }
    if (pages + 2ull > state.page_count - state.next_page || (index = new_place()) == SPACE_NONE) {
        return SPACE_NONE;
    }
    if (state.next_page == 0 || state.owners[state.next_page - 1].kind != OWNER_GUARD) {
        state.owners[state.next_page++] = (struct page_owner){OWNER_GUARD, SPACE_NONE};
    }
    struct place *place = &state.places[index];
    place->first_page = state.next_page;
    place->page_count = pages;
    place->base = state.begin + (uint64_t)state.next_page * state.frame_bytes;
    place->bytes = bytes;
    for (uint32_t i = 0; i < pages; i++) {
        state.owners[state.next_page + i] = (struct page_owner){OWNER_PLACE, index};
    }
    state.next_page += pages;
    state.owners[state.next_page++] = (struct page_owner){OWNER_GUARD, index};
    return index;
}

/* ---- slabs ---- */

static uint32_t *slab_units(uint32_t slab)
{
    return &state.unit_place[(size_t)slab * state.units_per_slab];
}

static uint32_t open_slab(uint32_t stream, CUresult *result)
{
    uint32_t index = state.free_slab;
    if (index == SPACE_NONE) {
        if (state.next_page == state.page_count || state.slab_count == MAX_SLABS) {
            *result = CUDA_ERROR_OUT_OF_MEMORY;
            return SPACE_NONE;
        }
        index = state.slab_count++;
        struct slab *fresh = &state.slabs[index];
        fresh->page = state.next_page++;
        fresh->frame_place = (struct place){.base = state.begin + (uint64_t)fresh->page * state.frame_bytes,
                                            .bytes = state.frame_bytes,
                                            .first_page = fresh->page,
                                            .page_count = 1,
                                            .last = {.stream = STREAMS_NONE}};
        state.owners[fresh->page] = (struct page_owner){OWNER_SLAB, index};
        fresh->next_free = SPACE_NONE;
        state.free_slab = index;
    }
    struct slab *slab = &state.slabs[index];
    if (!frames_acquire(&slab->frame_place, stream, result)) {
        return SPACE_NONE;
    }
    state.free_slab = slab->next_free;
    slab->is_used = true;
    slab->used_units = 0;
    slab->longest_run = state.units_per_slab;
    state.slabs_in_use++;
    return index;
}

static bool find_run(uint32_t slab, uint32_t count, uint32_t *unit)
{
    const uint32_t *units = slab_units(slab);
    uint32_t run = 0;
    for (uint32_t i = 0; i < state.units_per_slab; i++) {
        run = units[i] == 0 ? run + 1 : 0;
        if (run == count) {
            *unit = i + 1 - count;
            return true;
        }
    }
    return false;
}

static uint32_t slab_with_room(uint32_t count, uint32_t *unit)
{
    for (uint32_t slab = 0; slab < state.slab_count; slab++) {
        struct slab *candidate = &state.slabs[slab];
        if (!candidate->is_used || candidate->longest_run < count) {
            continue;
        }
        if (find_run(slab, count, unit)) {
            return slab;
        }
        candidate->longest_run = count - 1;
    }
    return SPACE_NONE;
}

static uint32_t take_piece(uint64_t bytes, uint32_t stream, CUresult *result)
{
    uint32_t count = (uint32_t)((bytes + UNIT - 1) / UNIT), unit = 0;
    count = count == 0 ? 1 : count;
    uint32_t slab = slab_with_room(count, &unit);
    if (slab == SPACE_NONE && (slab = open_slab(stream, result)) == SPACE_NONE) {
        return SPACE_NONE;
    }
    uint32_t index = state.free_piece_place;
    if (index != SPACE_NONE) {
        state.free_piece_place = state.places[index].next;
    } else if ((index = new_place()) == SPACE_NONE) {
        *result = CUDA_ERROR_OUT_OF_MEMORY;
        return SPACE_NONE;
    }
    struct slab *home = &state.slabs[slab];
    streams_order(home->frame_place.last.streams, stream);
    state.places[index] = (struct place){.base = home->frame_place.base + (uint64_t)unit * UNIT,
                                         .bytes = bytes,
                                         .slab = slab,
                                         .unit = unit,
                                         .unit_count = count,
                                         .is_resident = true,
                                         .last = {.stream = STREAMS_NONE}};
    for (uint32_t i = 0; i < count; i++) {
        slab_units(slab)[unit + i] = index + 1;
    }
    home->used_units += count;
    return index;
}

/* The lowest comes first, so that every iteration opens the same slabs. */
static void free_slab(uint32_t index)
{
    uint32_t *link = &state.free_slab;
    while (*link != SPACE_NONE && *link < index) {
        link = &state.slabs[*link].next_free;
    }
    state.slabs[index].next_free = *link;
    *link = index;
}

static void give_piece(uint32_t index)
{
    struct place *place = &state.places[index];
    struct slab *slab = &state.slabs[place->slab];
    for (uint32_t i = 0; i < place->unit_count; i++) {
        slab_units(place->slab)[place->unit + i] = 0;
    }
    slab->used_units -= place->unit_count;
    slab->longest_run = state.units_per_slab - slab->used_units;
    last_use_merge(&slab->frame_place.last, &place->last);
    if (slab->used_units == 0) {
        frames_release(&slab->frame_place);
        slab->is_used = false;
        free_slab(place->slab);
        state.slabs_in_use--;
    }
    place->next = state.free_piece_place;
    state.free_piece_place = index;
}

uint32_t space_take_place(uint64_t bytes, uint32_t stream, CUresult *result)
{
    *result = CUDA_SUCCESS;
    uint32_t place = space_is_small(bytes) ? take_piece(bytes, stream, result) : take_pages(bytes);
    if (place == SPACE_NONE && *result == CUDA_SUCCESS) {
        *result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (place != SPACE_NONE) {
        state.place_allocation[place] = SPACE_NONE;
    }
    return place;
}

void space_give_place(uint32_t index)
{
    struct place *place = &state.places[index];
    state.place_allocation[index] = SPACE_NONE;
    if (place->page_count == 0) {
        give_piece(index);
        return;
    }
    frames_release(place);
    push_free(index);
}

/* ---- allocations ---- */

static uint32_t new_allocation(void)
{
    uint32_t index = state.free_allocation;
    if (index != SPACE_NONE) {
        state.free_allocation = state.allocations[index].newer;
        return index;
    }
    return state.allocation_count == MAX_ALLOCATIONS ? SPACE_NONE : state.allocation_count++;
}

uint32_t space_allocate(uint64_t bytes, uint32_t stream, CUresult *result)
{
    uint32_t place = space_take_place(bytes, stream, result);
    if (place == SPACE_NONE) {
        return SPACE_NONE;
    }
    uint32_t index = new_allocation();
    if (index == SPACE_NONE) {
        space_give_place(place);
        *result = CUDA_ERROR_OUT_OF_MEMORY;
        return SPACE_NONE;
    }
    state.allocations[index] = (struct allocation){.base = state.places[place].base,
                                                   .bytes = bytes,
                                                   .home = place,
                                                   .index = index,
                                                   .serial = ++state.serial,
                                                   .is_live = true,
                                                   .is_fresh = true,
                                                   .newer = SPACE_NONE,
                                                   .older = SPACE_NONE,
                                                   .learned = SPACE_NONE,
                                                   .slot = SPACE_NONE};
    state.place_allocation[place] = index;
    state.live_bytes += space_allocation_footprint(bytes);
    state.live_signature += mix(bytes);
    return index;
}

uint32_t space_end(uint32_t index)
{
    struct allocation *allocation = &state.allocations[index];
    uint32_t place = allocation->home;
    space_untrack(allocation);
    state.live_bytes -= space_allocation_footprint(allocation->bytes);
    state.live_signature -= mix(allocation->bytes);
    allocation->is_live = false;
    if (allocation->is_pinned) {
        state.pinned_pages -= state.places[place].page_count;
    }
    allocation->newer = state.free_allocation;
    state.free_allocation = index;
    state.place_allocation[place] = SPACE_NONE;
    return place;
}

void space_pin(struct allocation *allocation, const char *reason)
{
    if (!allocation->is_pinned) {
        allocation->is_pinned = true;
        allocation->pin_reason = reason;
        state.pinned_pages += state.places[allocation->home].page_count;
    }
}

uint64_t space_unmovable_frames(void)
{
    return state.slabs_in_use + state.pinned_pages;
}

uint32_t space_find(CUdeviceptr address)
{
    if (address < state.begin || address >= state.end) {
        return SPACE_NONE;
    }
    uint32_t page = (uint32_t)((address - state.begin) >> state.frame_shift);
    uint64_t within = (address - state.begin) & (state.frame_bytes - 1);
    struct page_owner owner = state.owners[page];
    if (owner.kind == OWNER_GUARD) {
        bool is_before_next = within >= state.frame_bytes / 2;
        if (is_before_next || owner.index == SPACE_NONE) {
            owner = page + 1 < state.next_page ? state.owners[page + 1] : (struct page_owner){OWNER_NONE, 0};
        }
        return owner.kind == OWNER_PLACE || owner.kind == OWNER_GUARD ? state.place_allocation[owner.index]
                                                                      : SPACE_NONE;
    }
    if (owner.kind == OWNER_PLACE) {
        return state.place_allocation[owner.index];
    }
    if (owner.kind == OWNER_SLAB) {
        uint32_t place = slab_units(owner.index)[within / UNIT];
        return place == 0 ? SPACE_NONE : state.place_allocation[place - 1];
    }
    return SPACE_NONE;
}

/* ---- LRU ---- */

void space_untrack(struct allocation *allocation)
{
    if (state.newest != allocation->index && allocation->newer == SPACE_NONE) {
        return;
    }
    if (allocation->newer != SPACE_NONE) {
        state.allocations[allocation->newer].older = allocation->older;
    } else {
        state.newest = allocation->older;
    }
    if (allocation->older != SPACE_NONE) {
        state.allocations[allocation->older].newer = allocation->newer;
    } else {
        state.oldest = allocation->newer;
    }
    allocation->newer = allocation->older = SPACE_NONE;
}

void space_touch(struct allocation *allocation)
{
    if (state.newest == allocation->index) {
        return;
    }
    space_untrack(allocation);
    allocation->older = state.newest;
    if (state.newest != SPACE_NONE) {
        state.allocations[state.newest].newer = allocation->index;
    } else {
        state.oldest = allocation->index;
    }
    state.newest = allocation->index;
}

uint32_t space_oldest(void)
{
    return state.oldest;
}

uint32_t space_next_newer(uint32_t allocation)
{
    return state.allocations[allocation].newer;
}

bool space_is_valid(void)
{
    uint32_t tracked = 0, live = 0;
    for (uint32_t i = state.oldest; i != SPACE_NONE; i = state.allocations[i].newer) {
        if (!state.allocations[i].is_live || ++tracked > state.allocation_count) {
            return false;
        }
    }
    for (uint32_t i = 0; i < state.allocation_count; i++) {
        const struct allocation *allocation = &state.allocations[i];
        live += allocation->is_live;
        if (allocation->is_live && state.place_allocation[allocation->home] != i) {
            return false;
        }
    }
    return tracked <= live;
}
