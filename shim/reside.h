/* Residency on demand: what runs when no plan is in force.
 *
 * An operation's allocations must be in frames before it is issued. Where frames are short, the contents that
 * were used longest ago go to the host. Contents that are locked, pinned or pieces of slabs stay.
 * Callers hold the engine's turn. */
#pragma once
#include "shim/space.h"

/* Frames for a place, evicting as needed. False: *result says why (out of memory: nothing more could go). */
bool reside_acquire(struct place *place, uint32_t stream, CUresult *result);

/* What must be done before a content may be moved, whoever needs the room: pointers in memory are looked for, and
 * from then on all operations are watched. Called each time. */
void reside_before_eviction(void (*call)(uint32_t stream));

/* What a plan in progress counts on goes last, and only after this call: the plan must have been left then. */
void reside_before_taking_planned(void (*call)(void));
void reside_spare_planned(bool is_spared); /* false while a plan is left: whatever was used longest ago goes first */

/* `count` frames are free afterwards. */
bool reside_make_room(uint32_t count, uint32_t stream);

/* The content of a live allocation is in frames at its home; fresh memory gets frames only. */
bool reside_content(struct allocation *allocation, uint32_t stream, CUresult *result);

/* Moves one resident content to the host. */
bool reside_evict(struct allocation *allocation, uint32_t stream);

/* May contents go to the host now? (Not while --no-swap holds and a plan has been tried.) */
void reside_allow_eviction(bool is_allowed);

/* Bytes that cannot be evicted now: pinned and locked contents, slabs. */
uint64_t reside_unmovable_bytes(void);
