/* State of one forward simulation, and the choice of what to drop. Internal to forward*.c and pressure.c.
 *
 * Safety invariant: at every position, whatever is absent and will be needed again (by the program or by
 * the rebuilding of something else that is) can be rebuilt at every position at which it will be needed:
 *     absent v, need_until >= position  =>  on the host, or rebuildable_until[v] >= need_until
 *                                              and the same for what its producer reads.
 * What would break it is not dropped.
 */
#pragma once
#include "policy/candidates.h"
#include "policy/forward.h"

struct frame {
    uint32_t operation, cursor;
};

/* A version: what scoring reads of the problem and the graph, and what the simulation knows of it beside its residency.
 * One line of a cache, since large networks are read all over. */
struct forward_version {
    uint64_t bytes;
    uint32_t producer, droppable_from;
    uint32_t reader_first, reader_end; /* places in graph.readers */
    uint32_t last_need, rebuildable_until;
    uint32_t next_use;              /* operation that needs it next for the program; POLICY_NONE: none does any more */
    uint32_t cursor;                /* place of next_use among its readers */
    uint32_t need_until, need_next; /* of an absent one: last position at which it will be needed, 0 = never again, and
                                       the first such position (an estimate) */
    uint32_t absent_children;       /* absent results of the operations that have read it */
    uint32_t locks;                 /* frames that wait for it or use it */
    uint32_t stamp;                 /* that of the candidate that counts */
    uint32_t seen;                  /* visit mark */
};

enum { MANY_READERS = 128 }; /* so many are not all looked at whenever a version is scored */

/* An operation, with what of it was there once and is not now. */
struct forward_operation {
    double nanoseconds;
    uint32_t absent_outputs, absent_inputs;
    uint32_t need_first, read_end, need_end; /* places in graph.needs: reads, then what is needed beside */
};

/* How often a version was dropped while an operation waited for it, the program standing at one position. */
struct forward_loss {
    uint32_t position, count;
};

struct forward {
    const struct graph *graph;
    const struct forward_settings *settings;
    struct residency residency;
    struct item_list items;
    uint64_t replay_ns;
    struct forward_version *versions;
    struct forward_operation *operations;
    struct forward_loss *losses; /* per version */
    uint32_t most_losses;        /* of any version at the present position */
    uint32_t *child_until;       /* per version: no absent child is needed later */
    uint32_t *wake_head;         /* per position: versions to consider again from there on */
    uint32_t *wake_next;         /* per version; own index = not in any list */
    uint32_t visit;
    struct candidates candidates; /* room for twice as many as there are versions */
    uint32_t *walk;               /* scratch stack, version_count entries */
    struct frame *frames;
    uint32_t frame_count, frame_capacity;
    bool out_of_memory;
};

/* The state before the first operation; false when memory ran out. forward_state_end in either case. */
bool forward_state_begin(struct forward *f, const struct graph *graph, const struct forward_settings *settings);
void forward_state_end(struct forward *f);
/* Takes a drop or swap as the plan's next item; false where it is not legal. */
bool forward_step(struct forward *f, enum plan_verb verb, uint32_t index);
/* Takes the next operation's run, or the replay of an earlier one: what it reads is there, and so is room. */
bool forward_step_operation(struct forward *f, uint32_t operation);

/* How often was v dropped since the program's last operation though another one waited for it? */
static inline uint32_t forward_losses(const struct forward *f, uint32_t v)
{
    const struct forward_loss *r = &f->losses[v];
    return f->most_losses && r->position == f->residency.position ? r->count : 0;
}

/* Makes v a candidate, or scores it again. */
void pressure_offer(struct forward *f, uint32_t version);
/* Offers what was waiting for the present position. */
void pressure_wake(struct forward *f);
/* Drops or swaps out what has the lowest score until `growth` more bytes fit. False: nothing is left. */
bool pressure_make_room(struct forward *f, uint64_t growth);
/* v became absent because it was replaced: remembers for what it is still needed. */
void pressure_note_replaced(struct forward *f, uint32_t version);
