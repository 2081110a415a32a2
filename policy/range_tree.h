/* Bytes per place under additions to ranges, with the maximum of any range: a segment tree in heap order. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define RANGE_TREE_NOTHING (INT64_MIN / 4) /* the maximum of an empty range */

struct range_tree {
    int64_t *most, *added; /* `most` includes what was added at its node and below, not above */
    uint32_t leaves;       /* place k is node leaves + k */
};

/* All places hold 0. False: memory ran out; range_tree_end is due in any case. */
static inline bool range_tree_begin(struct range_tree *tree, uint32_t places)
{
    for (tree->leaves = 1; tree->leaves < places; tree->leaves *= 2) {
    }
    tree->most = calloc((size_t)tree->leaves * 2, sizeof *tree->most);
    tree->added = calloc((size_t)tree->leaves * 2, sizeof *tree->added);
    return tree->most && tree->added;
}

static inline void range_tree_end(struct range_tree *tree)
{
    free(tree->most);
    free(tree->added);
}

static inline int64_t range_tree_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* After the leaves were written, and nothing added. */
static inline void range_tree_fill(struct range_tree *tree)
{
    for (uint32_t node = tree->leaves; node-- > 1;)
        tree->most[node] = range_tree_larger(tree->most[2 * node], tree->most[2 * node + 1]);
}

/* After node's own maximum was written. */
static inline void range_tree_pull(struct range_tree *tree, uint32_t node)
{
    for (node /= 2; node; node /= 2)
        tree->most[node] = range_tree_larger(tree->most[2 * node], tree->most[2 * node + 1]) + tree->added[node];
}

/* [from, to) gets `bytes` more. */
static inline void range_tree_add(struct range_tree *tree, uint32_t from, uint32_t to, int64_t bytes)
{
    if (from >= to)
        return;
    uint32_t low = from + tree->leaves, high = to + tree->leaves;
    for (uint32_t a = low, b = high; a < b; a /= 2, b /= 2) {
        if (a & 1) {
            tree->most[a] += bytes;
            tree->added[a++] += bytes;
        }
        if (b & 1) {
            tree->most[--b] += bytes;
            tree->added[b] += bytes;
        }
    }
    range_tree_pull(tree, low);
    range_tree_pull(tree, high - 1);
}

/* Most in [from, to). */
static inline int64_t range_tree_most(const struct range_tree *tree, uint32_t from, uint32_t to)
{
    if (from >= to)
        return RANGE_TREE_NOTHING;
    uint32_t a = from + tree->leaves, b = to + tree->leaves - 1;
    int64_t left = tree->most[a], right = tree->most[b];
    for (; a / 2 != b / 2; a /= 2, b /= 2) {
        if (!(a & 1))
            left = range_tree_larger(left, tree->most[a + 1]);
        if (b & 1)
            right = range_tree_larger(right, tree->most[b - 1]);
        left += tree->added[a / 2];
        right += tree->added[b / 2];
    }
    int64_t most = range_tree_larger(left, right);
    for (uint32_t node = a / 2; node; node /= 2)
        most += tree->added[node];
    return most;
}
