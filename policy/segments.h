/* Segments of the part of an iteration that comes before its peak: which versions cross their boundaries.
 *
 * Operations before `pivot` are cut into runs of consecutive operations. A version crosses a boundary when
 * an operation of a later segment before the pivot needs it: those are what a segment is rebuilt from.
 */
#pragma once
#include "policy/graph.h"

/* A new segment wherever the bytes that the last one would drop reach `budget`. segment_of: operation_count
 * entries, overwritten. Returns the number of segments. */
uint32_t segments_by_bytes(const struct graph *graph, uint32_t pivot, uint64_t budget, uint32_t *segment_of);
/* `count` segments that produce equal numbers of versions which are wanted after the pivot. */
uint32_t segments_by_count(const struct graph *graph, uint32_t pivot, uint32_t count, uint32_t *segment_of);
/* `count` segments of equal program time. */
uint32_t segments_by_time(const struct graph *graph, uint32_t pivot, uint32_t count, uint32_t *segment_of);

/* Whether each version crosses: version_count entries, overwritten. */
void segments_mark_crossing(const struct graph *graph, uint32_t pivot, const uint32_t *segment_of, bool *is_crossing);

/* Would dropping v at the pivot save bytes, and can it be rebuilt for every later need? */
bool segments_may_drop(const struct graph *graph, uint32_t pivot, uint32_t version);
uint32_t segments_droppable_count(const struct graph *graph, uint32_t pivot);
uint64_t segments_droppable_bytes(const struct graph *graph, uint32_t pivot);
