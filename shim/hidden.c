#include "shim/hidden.h"

#include "shim/proof.h"
#include "shim/say.h"
#include "shim/store.h"

#include "shim/inside.h"

#define MAX_LINKS (1u << 22)

struct link {
    uint64_t serial;
    uint32_t target, next; /* next: plus one, 0 = last */
};

static struct {
    struct link *links;
    uint32_t count, first_free; /* first_free: plus one */
    bool has_pinned_dropped;
} state;

static bool is_alive(const struct link *link)
{
    const struct allocation *target = space_get(link->target);
    return target->is_live && target->serial == link->serial;
}

static struct link *new_link(struct allocation *holder)
{
    if (state.links == NULL && (state.links = store_reserve(sizeof *state.links * MAX_LINKS, "pointers")) == NULL) {
        return NULL;
    }
    uint32_t index = state.first_free;
    if (index != 0) {
        state.first_free = state.links[index - 1].next;
    } else if (state.count == MAX_LINKS) {
        return NULL;
    } else {
        index = ++state.count;
    }
    state.links[index - 1].next = holder->first_link;
    holder->first_link = index;
    return &state.links[index - 1];
}

static void link_target(struct allocation *holder, const struct allocation *target)
{
    struct link *reusable = NULL;
    for (uint32_t i = holder->first_link; i != 0; i = state.links[i - 1].next) {
        struct link *link = &state.links[i - 1];
        if (link->target == target->index && link->serial == target->serial) {
            return;
        }
        reusable = is_alive(link) ? reusable : link;
    }
    struct link *link = reusable != NULL ? reusable : new_link(holder);
    CHECK(link != NULL);
    link->serial = target->serial;
    link->target = target->index;
}

void hidden_forget(struct allocation *holder)
{
    while (holder->first_link != 0) {
        uint32_t index = holder->first_link;
        holder->first_link = state.links[index - 1].next;
        state.links[index - 1].next = state.first_free;
        state.first_free = index;
    }
}

void hidden_note(struct allocation *holder, struct allocation *target, const char *reason)
{
    if (!target->is_pinned) {
        space_pin(target, reason);
        state.has_pinned_dropped |= target->is_dropped;
        say(SAY_DEBUG, "allocation of %llu bytes is pinned: %s", (unsigned long long)target->bytes, reason);
    }
    if (holder != NULL && holder != target) {
        link_target(holder, target);
    }
}

void hidden_scan_host(const void *host, uint64_t bytes, CUdeviceptr destination)
{
    CUdeviceptr begin, end;
    frames_arena(&begin, &end);
    uint32_t holder = space_find(destination);
    const unsigned char *from = host;
    for (uint64_t i = (8 - destination % 8) % 8; i + 8 <= bytes; i += 8) {
        uint64_t word;
        __builtin_memcpy(&word, from + i, 8);
        if (word - begin < end - begin) {
            uint32_t target = space_find(word);
            if (target != SPACE_NONE) {
                hidden_note(holder == SPACE_NONE ? NULL : space_get(holder), space_get(target),
                            "a copy to the device carried its address");
            }
        }
    }
}

void hidden_scan_device(struct allocation *allocation, uint32_t stream)
{
    if (allocation->bytes <= HIDDEN_SCAN_LIMIT && allocation->bytes >= 8 &&
        space_place(allocation->home)->is_resident) {
        proof_scan(allocation->base, allocation->bytes, allocation->index, stream);
        last_use_note(&space_place(allocation->home)->last, stream);
    }
}

void hidden_scan_everything(uint32_t stream)
{
    for (uint32_t i = 0; i < space_count(); i++) {
        struct allocation *allocation = space_get(i);
        if (allocation->is_live && !allocation->is_fresh) {
            streams_order(space_place(allocation->home)->last.streams, stream);
            hidden_scan_device(allocation, stream);
        }
    }
}

void hidden_collect(uint32_t stream)
{
    if (!proof_scan_is_pending()) {
        return;
    }
    const struct proof_pointer *found;
    bool is_overfull = false;
    uint32_t count = proof_scan_collect(stream, &found, &is_overfull);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t target = space_find(found[i].value);
        if (target != SPACE_NONE) {
            struct allocation *holder = space_get(found[i].holder);
            hidden_note(holder->is_live ? holder : NULL, space_get(target), "a kernel stored its address");
        }
    }
    if (is_overfull) {
        say(SAY_WARNING, "more pointers in device memory than can be followed: everything alive is pinned");
        for (uint32_t i = 0; i < space_count(); i++) {
            if (space_get(i)->is_live) {
                hidden_note(NULL, space_get(i), "too many pointers in memory");
            }
        }
    }
}

bool hidden_took_dropped(void)
{
    bool has = state.has_pinned_dropped;
    state.has_pinned_dropped = false;
    return has;
}

static bool is_touched(const struct touches *touches, uint32_t allocation)
{
    for (uint32_t i = 0; i < touches->count; i++) {
        if (touches->items[i].allocation == allocation) {
            return true;
        }
    }
    return false;
}

static void add_hidden(struct touches *touches, uint32_t allocation)
{
    if (touches->count == TOUCHES_MAX) {
        touches->is_overfull = true;
        return;
    }
    if (!is_touched(touches, allocation)) {
        touches->items[touches->count++] =
            (struct touch){.allocation = allocation, .is_loaded = true, .is_hidden = true};
    }
}

void hidden_close(struct touches *touches)
{
    for (uint32_t i = 0; i < touches->count; i++) {
        const struct allocation *holder = space_get(touches->items[i].allocation);
        for (uint32_t j = holder->first_link; j != 0; j = state.links[j - 1].next) {
            if (is_alive(&state.links[j - 1])) {
                add_hidden(touches, state.links[j - 1].target);
            }
        }
    }
}
