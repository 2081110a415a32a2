/* What every version is at one position, in any plan: there anyway, kept or rebuilt, held for others, or overwritten.
 * Shared by the cuts (policy/cut.h, policy/cut_pair.h). */
#pragma once
#include "policy/graph.h"

enum standing {
    STANDING_GIVEN,  /* there at the pivot whatever the plan */
    STANDING_WANTED, /* the program needs it later; may be dropped and rebuilt */
    STANDING_DEAD,   /* not needed by the program any more; can be held */
    STANDING_GONE    /* overwritten before the pivot: there only if it was rebuilt since */
};

struct standings {
    const struct graph *graph;
    uint32_t pivot, until; /* what the program needs after the pivot and up to `until` is wanted */
    uint8_t *of;           /* per version; of those born before the pivot */
    int64_t *wanted_bytes; /* per operation before the pivot: bytes of its wanted outputs */
    int64_t room; /* cap - what is given, as far as whole versions can fill it; negative: given exceed the cap */
};

/* False when memory ran out; standings_end is due in any case. */
bool standings_begin(struct standings *standings, const struct graph *graph, uint32_t pivot, uint32_t until,
                     uint64_t cap);
void standings_end(struct standings *standings);

static inline bool standings_can_run_again(const struct standings *s, uint32_t operation)
{
    return s->graph->latest_replay[operation] > s->pivot;
}

/* May v, which is dead or gone, be there at the pivot? What was overwritten only if it was made again before. */
bool standings_can_hold(const struct standings *standings, uint32_t version);

/* Does running o again take its k-th need? What an output replaces is not needed where that output is there and
 * another one is wanted. */
static inline bool standings_takes(const struct standings *s, uint32_t o, uint32_t k)
{
    const struct policy_operation *op = &s->graph->problem->operations[o];
    return k < s->graph->need_first[o] + op->read_count || op->write_count == 1;
}

/* Number of versions that are dead or gone. */
uint32_t standings_hold_count(const struct standings *standings);
