/* Improves a legal plan without searching: removes replays whose results nobody uses, drops everything as
 * soon as nothing reads it any more, and keeps versions through gaps for which there is room anyway.
 * Never adds time, never raises the peak above the cap. */
#pragma once
#include "policy/items.h"
#include "policy/residency.h"

/* The plan must be legal but for the cap; where it passes the cap, it may still do so afterwards: then *added_ns is
 * UINT64_MAX, otherwise the time that the plan adds. False when memory ran out; the plan is then unchanged. */
bool tidy_plan(const struct graph *graph, uint64_t cap, struct item_list *plan, uint64_t *added_ns);

/* Only the removal of replays without use and the early drops, under no cap: what such a plan takes at least. The plan
 * must have no swaps. False, and the plan is unchanged, where memory ran out or it is not legal. */
bool tidy_drops(const struct graph *graph, struct item_list *plan, uint64_t *peak_bytes);
