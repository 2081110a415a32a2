/* State of one forward simulation, and the choice of what to drop. Internal to forward.c and pressure.c.
 *
 * Safety invariant: at every position, whatever is absent and will be needed again (by the program or by
 * the rebuilding of something else that is) can be rebuilt at every position at which it will be needed:
 *     absent v, need_until[v] >= position  =>  on the host, or rebuildable_until[v] >= need_until[v]
 *                                              and the same for what its producer reads.
 * pressure_drop refuses what would break it.
 */
#pragma once
#include "policy/forward.h"

struct pressure_entry {
    double score;
    uint32_t version, stamp;
};

struct frame {
    uint32_t operation, cursor;
};

struct forward {
    const struct graph *graph;
    const struct forward_settings *settings;
    struct residency residency;
    struct item_list items;
    uint64_t replay_ns;
    uint32_t *locks;      /* per version: frames that wait for it or use it */
    uint32_t *cursor;     /* per version: first reader not before the position */
    uint32_t *need_until; /* absent versions: last position at which it will be needed; 0 = never again */
    uint32_t *need_next;  /* absent versions: first such position (an estimate) */
    uint32_t *stamp;      /* per version: the heap entry that counts */
    uint32_t *wake_head;  /* per position: versions to consider again from there on */
    uint32_t *wake_next;  /* per version; own index = not in any list */
    uint32_t *seen;       /* per version: visit mark */
    uint32_t visit;
    struct pressure_entry *heap;
    uint32_t heap_count, heap_capacity;
    uint32_t *walk; /* scratch stack, version_count entries */
    struct frame *frames;
    uint32_t frame_count, frame_capacity;
    bool out_of_memory;
};

/* Makes v a candidate, or scores it again. */
void pressure_offer(struct forward *f, uint32_t version);
/* Offers what was waiting for the present position. */
void pressure_wake(struct forward *f);
/* Drops or swaps out what has the lowest score until `growth` more bytes fit. False: nothing is left. */
bool pressure_make_room(struct forward *f, uint64_t growth);
/* Drops (or swaps out) v if that is legal and safe. */
bool pressure_drop(struct forward *f, uint32_t version);
/* v became absent because it was replaced: remembers for what it is still needed. */
void pressure_note_replaced(struct forward *f, uint32_t version);
