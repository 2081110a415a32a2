/* The states that an exact search has reached: a table by (position, versions present), and a heap of those still to be
 * expanded, least estimate first.
 *
 * Invariant: a state in the table has the least cost found so far; its heap entries with another cost are stale. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct state {
    uint64_t present;
    uint64_t dropped_before, dropped_after; /* by the move that led here: before and after its operation */
    uint64_t cost, estimate;                /* spent so far; that and what must still be spent */
    uint32_t from, operation, position;
    bool is_replay, is_expanded;
};

struct state_entry {
    uint64_t estimate, cost;
    uint32_t state;
};

struct states {
    struct state *all;
    uint32_t count, capacity;
    uint32_t *table; /* index + 1; 0 = free */
    uint32_t table_size;
    struct state_entry *heap;
    uint32_t heap_count, heap_capacity;
    bool is_full, has_failed; /* has_failed: memory ran out */
};

bool states_begin(struct states *states);
void states_end(struct states *states);
/* Enters the state unless it is known at no more cost. */
void states_offer(struct states *states, const struct state *state);
/* The next state to expand, or UINT32_MAX. */
uint32_t states_next(struct states *states);
