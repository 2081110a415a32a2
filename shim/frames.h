/* Physical frames, the cap, and what is mapped where.
 *
 * Address space and frames are separate: a place (a range of arena pages) keeps its addresses for ever; its
 * frames come and go.
 *
 * Invariants
 *   created + charged frames <= cap frames, always
 *   every frame is either free (on the free list) or owned by exactly one page
 *   a page whose place owns its frames is mapped to the frame it owns
 *   a page whose place does not may still be mapped to a frame that it no longer owns (stale mapping): such a
 *     frame may be free, or owned and mapped elsewhere as well; nobody reads through the stale mapping. If
 *     the frame is free when the place wants frames again, no driver call is needed: in a steady iteration
 *     that is the usual case.
 *   strict mode: there are no stale mappings
 * A stale mapping is edited only after everything that used the place has finished on the device.
 * Frames carry the streams that last used them; taking one for another stream orders the two.
 * Callers hold the engine's turn. */
#pragma once
#include "shim/streams.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMES_NONE UINT32_MAX

struct place {
    CUdeviceptr base;
    uint64_t bytes;                  /* usable size */
    uint32_t first_page;             /* arena page; unused in slabs */
    uint32_t page_count;             /* 0: a piece of a slab, always resident */
    uint32_t slab, unit, unit_count; /* for pieces */
    uint32_t next, child;            /* free places; owned by space.c */
    bool is_resident;                /* owns its frames (pieces: always) */
    struct last_use last;
};

struct frames_counts {
    uint64_t frame_bytes; /* a power of two */
    uint32_t cap_frames, created_frames, free_frames, charged_frames, peak_frames;
    uint64_t driver_calls; /* memory calls made so far */
};

/* Opens pool and arena on the current device. cap_bytes 0: no cap (the device's memory is the cap). False: said why. */
bool frames_open(CUdevice device, uint64_t cap_bytes, bool is_strict);
bool frames_are_open(void);
void frames_arena(CUdeviceptr *begin, CUdeviceptr *end);
uint32_t frames_arena_pages(void);
struct frames_counts frames_count(void);
uint32_t frames_available(void); /* how many an acquire could get now */

/* Gives `place` its frames for use on `stream`. False: not enough, nothing changed; or the driver failed
 * (*result says what). */
bool frames_acquire(struct place *place, uint32_t stream, CUresult *result);
void frames_release(struct place *place);
/* The frames of `from` become those of `to`, which has as many pages and none of its own. */
bool frames_move(struct place *from, struct place *to, uint32_t stream, CUresult *result);

/* Assignment: an iteration is watched, and from then on each page prefers one frame, chosen so that while iterations
 * repeat no page needs another (policy/assign.h). Pages that got none, and iterations that differ, are served as
 * before. frames_assign ends the watch; frames_unwatch gives it up. */
void frames_watch(void);
void frames_assign(void);
void frames_unwatch(void);

/* Memory taken outside the pool. False if `count` more do not fit beside what is in use. */
bool frames_charge(uint32_t count);
void frames_refund(uint32_t count);
bool frames_is_valid(void); /* check builds: walks everything */
