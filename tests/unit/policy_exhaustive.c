#include "tests/unit/policy_exhaustive.h"
#include <stdbool.h>
#include <stdlib.h>

/* Dijkstra over (position, set of versions present). */
struct entry {
    uint64_t cost;
    uint32_t state;
};

struct search {
    const struct policy_problem *p;
    uint64_t cap;
    uint64_t *cost; /* per state */
    bool *is_done;
    struct entry *heap;
    uint32_t heap_count;
};

static uint32_t state_of(const struct search *s, uint32_t position, uint32_t present)
{
    return (position << s->p->version_count) | present;
}

static void reach(struct search *s, uint32_t state, uint64_t cost)
{
    if (cost >= s->cost[state])
        return;
    s->cost[state] = cost;
    uint32_t k = s->heap_count++;
    for (; k && s->heap[(k - 1) / 2].cost > cost; k = (k - 1) / 2)
        s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k] = (struct entry){cost, state};
}

static struct entry pop(struct search *s)
{
    struct entry least = s->heap[0], last = s->heap[--s->heap_count];
    uint32_t k = 0;
    for (uint32_t child; (child = 2 * k + 1) < s->heap_count; k = child) {
        if (child + 1 < s->heap_count && s->heap[child + 1].cost < s->heap[child].cost)
            child++;
        if (s->heap[child].cost >= last.cost)
            break;
        s->heap[k] = s->heap[child];
    }
    s->heap[k] = last;
    return least;
}

static uint64_t bytes_of(const struct policy_problem *p, uint32_t present)
{
    uint64_t bytes = p->fixed_bytes;
    for (uint32_t v = 0; v < p->version_count; v++)
        bytes += present >> v & 1 ? p->versions[v].bytes : 0;
    return bytes;
}

/* The set after operation o has run, or UINT32_MAX where it may not. */
static uint32_t after(const struct search *s, uint32_t present, uint32_t o, bool again)
{
    const struct policy_problem *p = s->p;
    const struct policy_operation *op = &p->operations[o];
    uint64_t during = bytes_of(p, present) + op->workspace_bytes + (again ? op->scratch_bytes : 0);
    uint32_t next = present;
    for (uint32_t k = 0; k < op->read_count; k++)
        if (!(present >> p->reads[op->first_read + k] & 1))
            return UINT32_MAX;
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k], old = p->versions[v].replaces;
        bool is_there = present >> v & 1;
        if (is_there || old == POLICY_NONE)
            during += p->versions[v].bytes;
        if (!is_there && old != POLICY_NONE) {
            if (!(present >> old & 1))
                return UINT32_MAX;
            next &= ~(1u << old);
        }
        next |= 1u << v;
    }
    return during <= s->cap ? next : UINT32_MAX;
}

static void expand(struct search *s, uint32_t state)
{
    const struct policy_problem *p = s->p;
    uint32_t position = state >> p->version_count, present = state & ((1u << p->version_count) - 1);
    uint64_t cost = s->cost[state];
    for (uint32_t v = 0; v < p->version_count; v++)
        if (present >> v & 1 && p->versions[v].droppable_from <= position)
            reach(s, state_of(s, position, present & ~(1u << v)), cost);
    if (position < p->operation_count) {
        uint32_t next = after(s, present, position, false);
        if (next != UINT32_MAX)
            reach(s, state_of(s, position + 1, next), cost);
    }
    for (uint32_t o = 0; o < position; o++) {
        uint32_t next = position <= p->operations[o].replayable_until ? after(s, present, o, true) : UINT32_MAX;
        if (next != UINT32_MAX && next != present)
            reach(s, state_of(s, position, next), cost + p->operations[o].nanoseconds);
    }
}

static bool is_end(const struct policy_problem *p, uint32_t state)
{
    uint32_t present = state & ((1u << p->version_count) - 1);
    if (state >> p->version_count != p->operation_count)
        return false;
    for (uint32_t v = 0; v < p->version_count; v++)
        if (p->versions[v].is_kept && !(present >> v & 1))
            return false;
    return true;
}

static uint64_t run(struct search *s)
{
    while (s->heap_count) {
        uint32_t state = pop(s).state;
        if (s->is_done[state])
            continue;
        s->is_done[state] = true;
        if (is_end(s->p, state))
            return s->cost[state];
        expand(s, state);
    }
    return EXHAUSTIVE_NONE;
}

uint64_t exhaustive_added_ns(const struct policy_problem *p, uint64_t cap)
{
    struct search s = {.p = p, .cap = cap};
    size_t states = ((size_t)p->operation_count + 1) << p->version_count;
    uint32_t present = 0;
    for (uint32_t v = 0; v < p->version_count; v++)
        present |= p->versions[v].producer == POLICY_NONE ? 1u << v : 0;
    s.cost = malloc(states * sizeof *s.cost);
    s.is_done = calloc(states, 1);
    s.heap = malloc(states * 24 * sizeof *s.heap);
    if (!s.cost || !s.is_done || !s.heap)
        abort();
    for (size_t k = 0; k < states; k++)
        s.cost[k] = UINT64_MAX;
    uint64_t found = EXHAUSTIVE_NONE;
    if (bytes_of(p, present) <= cap) {
        reach(&s, state_of(&s, 0, present), 0);
        found = run(&s);
    }
    free(s.cost);
    free(s.is_done);
    free(s.heap);
    return found;
}
