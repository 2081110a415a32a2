#include "policy/states.h"
#include <stdlib.h>

enum { FIRST_TABLE = 1 << 12, MOST_STATES = 1 << 20 };

bool states_begin(struct states *s)
{
    *s = (struct states){.table_size = FIRST_TABLE};
    s->table = calloc(s->table_size, sizeof *s->table);
    return s->table;
}

void states_end(struct states *s)
{
    free(s->all);
    free(s->table);
    free(s->heap);
    *s = (struct states){0};
}

static uint32_t hash(uint64_t present, uint32_t position)
{
    uint64_t z = (present + position * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 29)) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

/* Where the state is or would be. */
static uint32_t *find(struct states *s, uint64_t present, uint32_t position)
{
    uint32_t mask = s->table_size - 1, at = hash(present, position) & mask;
    while (s->table[at] &&
           (s->all[s->table[at] - 1].present != present || s->all[s->table[at] - 1].position != position))
        at = (at + 1) & mask;
    return &s->table[at];
}

static bool grow_table(struct states *s)
{
    uint32_t *table = calloc((size_t)s->table_size * 2, sizeof *table);
    if (!table)
        return false;
    free(s->table);
    s->table = table;
    s->table_size *= 2;
    for (uint32_t k = 0; k < s->count; k++)
        *find(s, s->all[k].present, s->all[k].position) = k + 1;
    return true;
}

static bool make_room(struct states *s)
{
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? 2 * s->capacity : 1024;
        struct state *all = realloc(s->all, sizeof *all * capacity);
        if (!all)
            return false;
        s->all = all;
        s->capacity = capacity;
    }
    if (s->heap_count == s->heap_capacity) {
        uint32_t capacity = s->heap_capacity ? 2 * s->heap_capacity : 1024;
        struct state_entry *heap = realloc(s->heap, sizeof *heap * capacity);
        if (!heap)
            return false;
        s->heap = heap;
        s->heap_capacity = capacity;
    }
    return s->count < s->table_size / 2 || grow_table(s);
}

/* Among equal estimates those that have spent more: they are nearer to the end. */
static bool is_before(const struct state_entry *a, const struct state_entry *b)
{
    return a->estimate != b->estimate ? a->estimate < b->estimate : a->cost > b->cost;
}

static void push(struct states *s, struct state_entry entry)
{
    uint32_t k = s->heap_count++;
    for (; k && is_before(&entry, &s->heap[(k - 1) / 2]); k = (k - 1) / 2)
        s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k] = entry;
}

static struct state_entry pop(struct states *s)
{
    struct state_entry least = s->heap[0], last = s->heap[--s->heap_count];
    uint32_t k = 0;
    for (uint32_t child; (child = 2 * k + 1) < s->heap_count; k = child) {
        if (child + 1 < s->heap_count && is_before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!is_before(&s->heap[child], &last))
            break;
        s->heap[k] = s->heap[child];
    }
    s->heap[k] = last;
    return least;
}

void states_offer(struct states *s, const struct state *state)
{
    if (s->count >= MOST_STATES) {
        s->is_full = true;
        return;
    }
    if (!make_room(s)) {
        s->has_failed = true;
        return;
    }
    uint32_t *slot = find(s, state->present, state->position);
    if (*slot && s->all[*slot - 1].cost <= state->cost)
        return;
    if (!*slot)
        *slot = ++s->count;
    s->all[*slot - 1] = *state;
    push(s, (struct state_entry){state->estimate, state->cost, *slot - 1});
}

uint32_t states_next(struct states *s)
{
    while (s->heap_count) {
        struct state_entry entry = pop(s);
        struct state *state = &s->all[entry.state];
        if (state->cost != entry.cost || state->is_expanded)
            continue;
        state->is_expanded = true;
        return entry.state;
    }
    return UINT32_MAX;
}
