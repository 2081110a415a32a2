#include "policy/standing.h"
#include <stdlib.h>
#include <string.h>

static bool is_needed_at(const struct graph *g, uint32_t pivot, uint32_t v)
{
    return graph_is_needed(g, v) && g->last_need[v] >= pivot;
}

static bool is_wanted(const struct standings *s, uint32_t v)
{
    const struct graph *g = s->graph;
    if (s->until >= g->problem->operation_count)
        return is_needed_at(g, s->pivot, v);
    for (uint32_t k = g->reader_first[v + 1]; k-- > g->reader_first[v] && g->readers[k] >= s->pivot;)
        if (g->readers[k] <= s->until)
            return true;
    return false;
}

static bool is_given(const struct graph *g, uint32_t pivot, uint32_t v)
{
    const struct policy_version *version = &g->problem->versions[v];
    if (version->droppable_from > pivot)
        return true;
    for (uint32_t k = g->need_first[pivot]; k < g->need_first[pivot + 1]; k++)
        if (g->needs[k] == v)
            return true;
    return is_needed_at(g, pivot, v) && g->latest_rebuild[v] <= pivot;
}

static enum standing standing_of(const struct standings *s, uint32_t v)
{
    const struct graph *g = s->graph;
    if (g->replaced_by[v] != POLICY_NONE && graph_replaced_at(g, v) < s->pivot)
        return STANDING_GONE;
    if (is_given(g, s->pivot, v))
        return STANDING_GIVEN;
    return is_wanted(s, v) ? STANDING_WANTED : STANDING_DEAD;
}

static bool is_born_before(const struct graph *g, uint32_t v, uint32_t pivot)
{
    uint32_t producer = g->problem->versions[v].producer;
    return producer == POLICY_NONE || producer < pivot;
}

bool standings_can_hold(const struct standings *s, uint32_t v)
{
    return s->of[v] == STANDING_DEAD || s->graph->latest_rebuild[v] > graph_replaced_at(s->graph, v);
}

/* What is there at the pivot in every plan. */
static uint64_t given_bytes(const struct standings *s)
{
    const struct policy_problem *p = s->graph->problem;
    const struct policy_operation *op = &p->operations[s->pivot];
    uint64_t bytes = p->fixed_bytes + op->workspace_bytes;
    for (uint32_t v = 0; v < p->version_count; v++)
        if (is_born_before(s->graph, v, s->pivot) && s->of[v] == STANDING_GIVEN)
            bytes += p->versions[v].bytes;
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k];
        bytes += p->versions[v].replaces == POLICY_NONE ? p->versions[v].bytes : 0;
    }
    return bytes;
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The part of the room that whole versions can fill: where all but the smallest are multiples of one size, they
 * fill a multiple of it, and the smallest at most their sum. */
static bool round_room(struct standings *s)
{
    const struct policy_problem *p = s->graph->problem;
    uint64_t *bytes = malloc(sizeof *bytes * ((size_t)p->version_count + 1)), rest = 0, divisor = 0;
    uint32_t count = 0;
    if (!bytes)
        return false;
    for (uint32_t v = 0; v < p->version_count; v++)
        if (s->of[v] != STANDING_GIVEN && p->versions[v].bytes && is_born_before(s->graph, v, s->pivot))
            rest += bytes[count++] = p->versions[v].bytes;
    qsort(bytes, count, sizeof *bytes, descending);
    uint64_t room = (uint64_t)s->room, least = room < rest ? room : rest;
    for (uint32_t k = 0; k < count && divisor != 1; k++) {
        divisor = common_divisor(divisor, bytes[k]);
        rest -= bytes[k];
        uint64_t filled = room - room % divisor + rest;
        least = filled < least ? filled : least;
    }
    s->room = (int64_t)least;
    free(bytes);
    return true;
}

bool standings_begin(struct standings *s, const struct graph *g, uint32_t pivot, uint32_t until, uint64_t cap)
{
    const struct policy_problem *p = g->problem;
    *s = (struct standings){.graph = g, .pivot = pivot, .until = until};
    s->of = malloc((size_t)p->version_count + 1);
    s->wanted_bytes = calloc((size_t)pivot + 1, sizeof *s->wanted_bytes);
    if (!s->of || !s->wanted_bytes)
        return false;
    for (uint32_t v = 0; v < p->version_count; v++)
        s->of[v] = (uint8_t)standing_of(s, v);
    for (uint32_t o = 0; o < pivot; o++)
        for (uint32_t k = 0; k < p->operations[o].write_count; k++) {
            uint32_t v = p->writes[p->operations[o].first_write + k];
            s->wanted_bytes[o] += s->of[v] == STANDING_WANTED ? (int64_t)p->versions[v].bytes : 0;
        }
    s->room = (int64_t)cap - (int64_t)given_bytes(s);
    return s->room < 0 || round_room(s);
}

void standings_end(struct standings *s)
{
    free(s->of);
    free(s->wanted_bytes);
    *s = (struct standings){0};
}

uint32_t standings_hold_count(const struct standings *s)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < s->graph->problem->version_count; v++)
        count += s->of[v] == STANDING_DEAD || s->of[v] == STANDING_GONE;
    return count;
}
