/* Hands out runs of the whole numbers 0..count-1: device frames and address granules alike.
 *
 * Invariants: free runs never touch (neighbours are merged at once); `ends[i]` is the free run whose first or
 * last number is i, NULL otherwise; a free run of n numbers is in list floor(log2 n).
 * Not locked: the owner's lock is held around every call. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct ranges;

struct ranges *ranges_create(uint64_t count);
void ranges_destroy(struct ranges *ranges);

/* A run of exactly `count`, its first number a multiple of `align` (a power of two). */
bool ranges_take(struct ranges *ranges, uint64_t count, uint64_t align, uint64_t *first);
/* The longest run at hand, at most `limit` long; 0 when nothing is free. */
uint64_t ranges_take_some(struct ranges *ranges, uint64_t limit, uint64_t *first);
void ranges_give(struct ranges *ranges, uint64_t first, uint64_t count);
uint64_t ranges_free_count(const struct ranges *ranges);
bool ranges_are_valid(const struct ranges *ranges);
