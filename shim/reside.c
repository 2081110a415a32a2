#include "shim/reside.h"

#include "shim/hidden.h"
#include "shim/say.h"
#include "shim/swap.h"
#include "shim/tracing.h"

#include "shim/inside.h"

static struct {
    bool is_forbidden, takes_planned;
    void (*before_eviction)(uint32_t stream);
    void (*before_taking_planned)(void);
} state;

void reside_allow_eviction(bool is_allowed)
{
    state.is_forbidden = !is_allowed;
}

void reside_before_eviction(void (*call)(uint32_t stream))
{
    state.before_eviction = call;
}

void reside_spare_planned(bool is_spared)
{
    state.takes_planned = !is_spared;
}

void reside_before_taking_planned(void (*call)(void))
{
    state.before_taking_planned = call;
}

static bool is_evictable(const struct allocation *allocation, bool spares_planned)
{
    const struct place *home = space_place(allocation->home);
    return !(spares_planned && allocation->slot != SPACE_NONE) && allocation->is_live && !allocation->is_pinned &&
           allocation->locks == 0 && home->page_count > 0 && home->is_resident;
}

bool reside_evict(struct allocation *allocation, uint32_t stream)
{
    struct place *home = space_place(allocation->home);
    streams_order(home->last.streams, stream);
    allocation->host = swap_out(allocation->base, allocation->bytes, stream, SWAP_TRAFFIC);
    if (allocation->host == NULL) {
        return false;
    }
    tracing_moved(TRACE_SWAP_OUT, allocation->traced, allocation->bytes);
    last_use_note(&home->last, stream);
    frames_release(home);
    space_untrack(allocation);
    return true;
}

/* False: a content could not be moved. */
static bool evict(uint32_t count, uint32_t stream, bool spares_planned)
{
    uint32_t next = space_oldest();
    while (frames_available() < count && next != SPACE_NONE) {
        struct allocation *allocation = space_get(next);
        next = space_next_newer(next);
        if (is_evictable(allocation, spares_planned) && !reside_evict(allocation, stream)) {
            return false;
        }
    }
    return true;
}

bool reside_make_room(uint32_t count, uint32_t stream)
{
    if (frames_available() >= count) {
        return true;
    }
    if (state.is_forbidden) {
        return false;
    }
    if (state.before_eviction != NULL) {
        state.before_eviction(stream);
    }
    hidden_collect(stream);
    if (!state.takes_planned && !evict(count, stream, true)) {
        return false;
    }
    if (frames_available() < count && state.before_taking_planned != NULL) {
        state.before_taking_planned();
    }
    return evict(count, stream, false) && frames_available() >= count;
}

bool reside_acquire(struct place *place, uint32_t stream, CUresult *result)
{
    *result = CUDA_SUCCESS;
    if (place->is_resident) {
        return true;
    }
    for (int i = 0; i < 2; i++) { /* twice: the first try may show that the device has less than the cap */
        if (!reside_make_room(place->page_count, stream)) {
            *result = CUDA_ERROR_OUT_OF_MEMORY;
            return false;
        }
        if (frames_acquire(place, stream, result)) {
            return true;
        }
    }
    return false;
}

bool reside_content(struct allocation *allocation, uint32_t stream, CUresult *result)
{
    struct place *home = space_place(allocation->home);
    if (!reside_acquire(home, stream, result)) {
        return false;
    }
    if (allocation->host != NULL) {
        if (!swap_in(allocation->host, allocation->base, stream, SWAP_TRAFFIC)) {
            *result = CUDA_ERROR_UNKNOWN;
            return false;
        }
        tracing_moved(TRACE_SWAP_IN, allocation->traced, allocation->bytes);
        last_use_note(&home->last, stream);
        swap_release(allocation->host);
        allocation->host = NULL;
    }
    if (home->page_count > 0) {
        space_touch(allocation);
    }
    return true;
}

uint64_t reside_unmovable_bytes(void)
{
    uint64_t frames = space_slab_frames();
    for (uint32_t i = 0; i < space_count(); i++) {
        const struct allocation *allocation = space_get(i);
        const struct place *home = space_place(allocation->home);
        if (allocation->is_live && home->page_count > 0 && home->is_resident &&
            (allocation->is_pinned || allocation->locks > 0)) {
            frames += home->page_count;
        }
    }
    return frames * frames_count().frame_bytes;
}
