/* Which frame each page gets for a whole iteration, so that nothing has to be mapped again while it repeats.
 *
 * A page is in use during one or several spans of the iteration (dropped and rebuilt: two or more) and wants the
 * same frame in all of them. Two pages may share a frame if their spans never overlap. Unlike bytes in an
 * allocator there is no fragmentation: any free frame will do. With one span per page the greedy choice below is
 * optimal (interval graphs); with several it may leave pages without a frame: those are mapped as they come. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define ASSIGN_NONE UINT32_MAX

struct assign_span {
    uint32_t page;       /* 0 .. page_count - 1; spans of a page stand together, in ascending order */
    uint32_t begin, end; /* begin <= time < end */
};

struct assign_problem {
    const struct assign_span *spans;
    uint32_t span_count, page_count, frame_count;
    const uint32_t *preferred; /* per page: tried first; ASSIGN_NONE: no preference */
    uint64_t effort;           /* most comparisons of spans; 0: no limit */
};

/* Fills frame_of[page]. Returns how many pages got a frame; UINT32_MAX: no memory. Uses malloc. */
uint32_t assign_frames(const struct assign_problem *problem, uint32_t *frame_of);
