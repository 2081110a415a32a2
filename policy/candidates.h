/* What may be dropped, least score first: a heap of four children per node, each group of children in one line of a
 * cache. Entries are not removed when a version is scored again: its newer stamp tells that they are stale.
 *
 * Of equal scores the latest version goes first, so that the order does not depend on the heap's history. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned __int128 candidate_key; /* score, version, stamp: from the most significant to the least */

struct candidates {
    candidate_key *keys;
    uint32_t count, capacity;
    void *block;
};

/* False when memory ran out; candidates_end in either case. */
bool candidates_begin(struct candidates *c, uint32_t capacity);
void candidates_end(struct candidates *c);
/* Restores the order after keys were changed at will. */
void candidates_sort(struct candidates *c);

/* Scores are compared as whole numbers of the same order. */
static inline candidate_key candidate_key_of(double score, uint32_t version, uint32_t stamp)
{
    union {
        double number;
        uint64_t bits;
    } u = {.number = score};
    uint64_t high = u.bits >> 63 ? ~u.bits : u.bits | (uint64_t)1 << 63;
    return (candidate_key)high << 64 | (uint64_t)(UINT32_MAX - version) << 32 | stamp;
}

static inline uint32_t candidate_version(candidate_key key)
{
    return UINT32_MAX - (uint32_t)(key >> 32);
}

static inline uint32_t candidate_stamp(candidate_key key)
{
    return (uint32_t)key;
}

/* The key at `at` moves down to where it belongs. */
static inline void candidates_sink(struct candidates *c, uint32_t at, candidate_key key)
{
    candidate_key *keys = c->keys;
    uint32_t count = c->count;
    for (uint32_t child = 4 * at + 1; child < count; child = 4 * at + 1) {
        uint32_t least = child, end = count - child < 4 ? count - child : 4;
        for (uint32_t k = 1; k < end; k++)
            least = keys[child + k] < keys[least] ? child + k : least;
        if (keys[least] >= key)
            break;
        keys[at] = keys[least];
        at = least;
    }
    keys[at] = key;
}

/* There must be room. */
static inline void candidates_add(struct candidates *c, candidate_key key)
{
    uint32_t at = c->count++;
    for (; at && c->keys[(at - 1) / 4] > key; at = (at - 1) / 4)
        c->keys[at] = c->keys[(at - 1) / 4];
    c->keys[at] = key;
}

static inline void candidates_remove_least(struct candidates *c)
{
    candidate_key last = c->keys[--c->count];
    if (c->count)
        candidates_sink(c, 0, last);
}
