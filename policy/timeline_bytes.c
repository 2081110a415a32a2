/* The timeline's bytes: per execution within its gap, and a tree over gaps for what reaches across them. */
#include "policy/timeline.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void pull(struct timeline *t, uint32_t node)
{
    for (node /= 2; node; node /= 2)
        t->most[node] = larger(t->most[2 * node], t->most[2 * node + 1]) + t->added[node];
}

void timeline_sum_up(struct timeline *t)
{
    for (uint32_t gap = 0; gap < t->leaves; gap++) {
        int64_t most = INT64_MIN / 4;
        for (uint32_t k = 0; gap <= t->operation_count && k < t->gaps[gap].count; k++)
            most = larger(most, t->gaps[gap].bytes[k]);
        t->most[gap + t->leaves] = most;
    }
    for (uint32_t node = t->leaves; node-- > 1;)
        t->most[node] = larger(t->most[2 * node], t->most[2 * node + 1]);
}

/* Adds to all executions of gaps [from, to). */
static void add_gaps(struct timeline *t, uint32_t from, uint32_t to, int64_t bytes)
{
    if (from >= to)
        return;
    uint32_t low = from + t->leaves, high = to + t->leaves;
    for (uint32_t a = low, b = high; a < b; a /= 2, b /= 2) {
        if (a & 1) {
            t->most[a] += bytes;
            t->added[a++] += bytes;
        }
        if (b & 1) {
            t->most[--b] += bytes;
            t->added[b] += bytes;
        }
    }
    pull(t, low);
    pull(t, high - 1);
}

/* What the tree holds for a gap, its leaf included. */
static int64_t added_to(const struct timeline *t, uint32_t gap)
{
    int64_t sum = 0;
    for (uint32_t node = gap + t->leaves; node; node /= 2)
        sum += t->added[node];
    return sum;
}

void timeline_refresh(struct timeline *t, uint32_t gap)
{
    const struct gap *g = &t->gaps[gap];
    int64_t most = INT64_MIN / 4;
    for (uint32_t k = 0; k < g->count; k++)
        most = larger(most, g->bytes[k]);
    uint32_t leaf = gap + t->leaves;
    t->most[leaf] = most + t->added[leaf];
    t->work += g->count / 8;
    pull(t, leaf);
}

static void add_slots(struct timeline *t, uint32_t gap, uint32_t from, uint32_t to, int64_t bytes)
{
    struct gap *g = &t->gaps[gap];
    if (from >= to)
        return;
    for (uint32_t k = from; k < to; k++)
        g->bytes[k] += bytes;
    timeline_refresh(t, gap);
}

/* Adds to all executions after `from` up to and including `to`. */
void timeline_add(struct timeline *t, uint32_t from, uint32_t to, int64_t bytes)
{
    const struct execution *a = &t->executions[from], *b = &t->executions[to];
    t->work += 4;
    if (!bytes || !timeline_is_before(t, from, to))
        return;
    if (a->gap == b->gap) {
        add_slots(t, a->gap, a->slot + 1, b->slot + 1, bytes);
        return;
    }
    add_slots(t, a->gap, a->slot + 1, t->gaps[a->gap].count, bytes);
    add_slots(t, b->gap, 0, b->slot + 1, bytes);
    add_gaps(t, a->gap + 1, b->gap, bytes);
}

static int64_t most_slots(const struct timeline *t, uint32_t gap, uint32_t from, uint32_t to)
{
    int64_t most = INT64_MIN / 4;
    for (uint32_t k = from; k < to; k++)
        most = larger(most, t->gaps[gap].bytes[k]);
    return most + added_to(t, gap);
}

static int64_t most_gaps(const struct timeline *t, uint32_t from, uint32_t to)
{
    int64_t left = INT64_MIN / 4, right = INT64_MIN / 4;
    if (from >= to)
        return left;
    uint32_t a = from + t->leaves, b = to + t->leaves - 1;
    left = t->most[a];
    right = t->most[b];
    for (; a / 2 != b / 2; a /= 2, b /= 2) {
        if (!(a & 1))
            left = larger(left, t->most[a + 1]);
        if (b & 1)
            right = larger(right, t->most[b - 1]);
        left += t->added[a / 2];
        right += t->added[b / 2];
    }
    int64_t most = larger(left, right);
    for (uint32_t node = a / 2; node; node /= 2)
        if (node != a)
            most += t->added[node];
    return most;
}

int64_t timeline_most(const struct timeline *t, uint32_t from, uint32_t to)
{
    const struct execution *a = &t->executions[from], *b = &t->executions[to];
    if (!timeline_is_before(t, from, to))
        return INT64_MIN / 4;
    if (a->gap == b->gap)
        return most_slots(t, a->gap, a->slot + 1, b->slot + 1);
    int64_t most =
        larger(most_slots(t, a->gap, a->slot + 1, t->gaps[a->gap].count), most_slots(t, b->gap, 0, b->slot + 1));
    return larger(most, most_gaps(t, a->gap + 1, b->gap));
}

uint32_t timeline_peak_at(const struct timeline *t)
{
    uint32_t node = 1;
    while (node < t->leaves)
        node = t->most[2 * node] >= t->most[2 * node + 1] ? 2 * node : 2 * node + 1;
    const struct gap *g = &t->gaps[node - t->leaves];
    uint32_t at = 0;
    for (uint32_t k = 1; k < g->count; k++)
        at = g->bytes[k] > g->bytes[at] ? k : at;
    return g->executions[at];
}
