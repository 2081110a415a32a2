/* The timeline's bytes: per execution within its gap, and a tree over gaps for what reaches across them. */
#include "policy/timeline.h"

void timeline_sum_up(struct timeline *t)
{
    for (uint32_t gap = 0; gap < t->tree.leaves; gap++) {
        int64_t most = RANGE_TREE_NOTHING;
        for (uint32_t k = 0; gap <= t->operation_count && k < t->gaps[gap].count; k++)
            most = range_tree_larger(most, t->gaps[gap].bytes[k]);
        t->tree.most[gap + t->tree.leaves] = most;
    }
    range_tree_fill(&t->tree);
}

/* What the tree holds for a gap, its leaf included. */
static int64_t added_to(const struct timeline *t, uint32_t gap)
{
    int64_t sum = 0;
    for (uint32_t node = gap + t->tree.leaves; node; node /= 2)
        sum += t->tree.added[node];
    return sum;
}

void timeline_refresh(struct timeline *t, uint32_t gap)
{
    const struct gap *g = &t->gaps[gap];
    int64_t most = RANGE_TREE_NOTHING;
    for (uint32_t k = 0; k < g->count; k++)
        most = range_tree_larger(most, g->bytes[k]);
    uint32_t leaf = gap + t->tree.leaves;
    t->tree.most[leaf] = most + t->tree.added[leaf];
    t->work += g->count / 8;
    range_tree_pull(&t->tree, leaf);
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
    range_tree_add(&t->tree, a->gap + 1, b->gap, bytes);
}

static int64_t most_slots(const struct timeline *t, uint32_t gap, uint32_t from, uint32_t to)
{
    int64_t most = RANGE_TREE_NOTHING;
    for (uint32_t k = from; k < to; k++)
        most = range_tree_larger(most, t->gaps[gap].bytes[k]);
    return most + added_to(t, gap);
}

int64_t timeline_most(const struct timeline *t, uint32_t from, uint32_t to)
{
    const struct execution *a = &t->executions[from], *b = &t->executions[to];
    if (!timeline_is_before(t, from, to))
        return RANGE_TREE_NOTHING;
    if (a->gap == b->gap)
        return most_slots(t, a->gap, a->slot + 1, b->slot + 1);
    int64_t most = range_tree_larger(most_slots(t, a->gap, a->slot + 1, t->gaps[a->gap].count),
                                     most_slots(t, b->gap, 0, b->slot + 1));
    return range_tree_larger(most, range_tree_most(&t->tree, a->gap + 1, b->gap));
}

uint32_t timeline_peak_at(const struct timeline *t)
{
    uint32_t node = 1;
    while (node < t->tree.leaves)
        node = t->tree.most[2 * node] >= t->tree.most[2 * node + 1] ? 2 * node : 2 * node + 1;
    const struct gap *g = &t->gaps[node - t->tree.leaves];
    uint32_t at = 0;
    for (uint32_t k = 1; k < g->count; k++)
        at = g->bytes[k] > g->bytes[at] ? k : at;
    return g->executions[at];
}
