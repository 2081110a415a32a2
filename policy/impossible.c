#include "policy/impossible.h"
#include "policy/beside.h"
#include "policy/floor.h"
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DEPTH = 24,
    MOST_BRANCHES = 256,
    MOST_MEMBERS = 4096,
    MOST_SETS = 200,
    MOST_STUCK = 64,
    MOST_STEPS = 2000000,
    MOST_STEPS_AT_ONE = 100000,
    STEPS_PER_NEED = 8,
    FLOOR_ROUNDS = 12
};

struct prover {
    const struct graph *graph;
    uint64_t cap, base_bytes; /* base: what is there at any time */
    struct beside beside;
    uint32_t *mark, stamp;     /* mark[v] == stamp: in the set at hand */
    uint32_t sets_left;        /* at this operation */
    uint64_t least_over;       /* the least above the cap that was compared with it: up to there a proof is the same */
    uint64_t steps, steps_end; /* so far; where to stop at this operation */
    bool has_failed;           /* memory ran out */
};

/* Versions that are there together at some moment; `bytes` is their sum. */
struct together {
    uint32_t *versions;
    uint64_t *needs; /* per version: least bytes while it is made last; UINT64_MAX = it cannot be the last */
    uint32_t count;
    uint64_t bytes;
    uint32_t newest, newest_other; /* latest producer, and the latest other one; POLICY_NONE = none */
};

static uint64_t bytes_of(const struct prover *p, uint32_t v)
{
    return p->graph->problem->versions[v].bytes;
}

static bool is_over(struct prover *p, uint64_t bytes)
{
    if (bytes > p->cap && bytes < p->least_over)
        p->least_over = bytes;
    return bytes > p->cap;
}

static void set_begin(struct prover *p, struct together *set, size_t most)
{
    set->versions = malloc(sizeof *set->versions * (most + 1));
    set->needs = malloc(sizeof *set->needs * (most + 1));
    set->count = 0;
    set->bytes = 0;
    set->newest = set->newest_other = POLICY_NONE;
    p->has_failed |= !set->versions || !set->needs;
    p->stamp++;
}

static void set_end(struct together *set)
{
    free(set->versions);
    free(set->needs);
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return a == POLICY_NONE || (b != POLICY_NONE && b > a) ? b : a;
}

static void set_add(struct prover *p, struct together *set, uint32_t v)
{
    if (p->mark[v] == p->stamp || graph_is_always_there(p->graph, v))
        return;
    p->mark[v] = p->stamp;
    set->versions[set->count++] = v;
    set->bytes += bytes_of(p, v);
    uint32_t producer = p->graph->problem->versions[v].producer;
    if (producer == set->newest)
        return;
    uint32_t other = later(set->newest, producer) == producer ? set->newest : producer;
    set->newest = later(set->newest, producer);
    set->newest_other = later(set->newest_other, other);
}

static void mark_set(struct prover *p, const struct together *set)
{
    p->stamp++;
    for (uint32_t k = 0; k < set->count; k++)
        p->mark[set->versions[k]] = p->stamp;
}

/* Can o, which needs what `newest` made, run at a time when its own results are the last? */
static bool may_run_after(const struct graph *g, uint32_t o, uint32_t newest)
{
    return newest == POLICY_NONE || newest < o || newest < g->latest_replay[o];
}

/* The set is marked. */
static uint64_t bytes_to_make(struct prover *p, const struct together *set, uint32_t last)
{
    const struct policy_problem *problem = p->graph->problem;
    uint32_t o = problem->versions[last].producer, replaced = problem->versions[last].replaces;
    uint32_t newest = set->newest == o ? set->newest_other : set->newest;
    const struct policy_operation *op = &problem->operations[o];
    uint64_t bytes = p->base_bytes + set->bytes + op->workspace_bytes;
    if (replaced != POLICY_NONE && p->mark[replaced] == p->stamp)
        return UINT64_MAX; /* making the one takes the other away */
    if (replaced != POLICY_NONE)
        bytes += graph_is_always_there(p->graph, replaced) ? 0 : bytes_of(p, replaced);
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = problem->writes[op->first_write + k];
        bytes -= p->mark[v] == p->stamp ? bytes_of(p, v) : 0;
        bytes += problem->versions[v].replaces == POLICY_NONE ? bytes_of(p, v) : 0;
    }
    for (uint32_t k = 0; k < op->read_count; k++) {
        uint32_t v = problem->reads[op->first_read + k];
        bool counts = p->mark[v] == p->stamp || v == replaced || graph_is_always_there(p->graph, v);
        bytes += counts ? 0 : bytes_of(p, v);
        newest = later(newest, problem->versions[v].producer);
    }
    p->steps += op->write_count + op->read_count;
    return may_run_after(p->graph, o, newest) ? bytes : UINT64_MAX;
}

/* What was there when `last` of the set was about to be made. */
static void step_back(struct prover *p, const struct together *set, uint32_t last, struct together *before)
{
    const struct policy_problem *problem = p->graph->problem;
    uint32_t o = problem->versions[last].producer;
    const struct policy_operation *op = &problem->operations[o];
    set_begin(p, before, (size_t)set->count + op->read_count + 1);
    if (p->has_failed)
        return;
    for (uint32_t k = 0; k < set->count; k++)
        if (problem->versions[set->versions[k]].producer != o)
            set_add(p, before, set->versions[k]);
    for (uint32_t k = 0; k < op->read_count; k++)
        set_add(p, before, problem->reads[op->first_read + k]);
    if (problem->versions[last].replaces != POLICY_NONE)
        set_add(p, before, problem->versions[last].replaces);
}

/* Fills the needs of the set, which is marked; returns the least. */
static uint64_t find_needs(struct prover *p, struct together *set)
{
    uint64_t least = UINT64_MAX;
    bool is_given = true;
    for (uint32_t k = 0; k < set->count; k++) {
        bool is_made = p->graph->problem->versions[set->versions[k]].producer != POLICY_NONE;
        set->needs[k] = is_made ? bytes_to_make(p, set, set->versions[k]) : UINT64_MAX;
        is_over(p, set->needs[k]);
        least = set->needs[k] < least ? set->needs[k] : least;
        is_given = is_given && !is_made;
    }
    return is_given ? 0 : least; /* what was there from the beginning need not be made */
}

/* Those of the set that cannot have been the last were there while the others were made, the last of them at a moment
 * when what the others need was there as well. Least bytes at that moment. */
static uint64_t bytes_beside(struct prover *p, const struct together *set)
{
    struct together stuck;
    uint64_t least = UINT64_MAX;
    bool has_made = false;
    set_begin(p, &stuck, set->count);
    for (uint32_t k = 0; !p->has_failed && k < set->count && stuck.count <= MOST_STUCK; k++)
        if (set->needs[k] > p->cap)
            set_add(p, &stuck, set->versions[k]);
    if (p->has_failed || stuck.count == set->count || !stuck.count || stuck.count > MOST_STUCK) {
        set_end(&stuck);
        return 0;
    }
    for (uint32_t k = 0; !p->has_failed && k < stuck.count && least > p->cap; k++) {
        uint32_t v = stuck.versions[k];
        if (p->graph->problem->versions[v].producer == POLICY_NONE)
            continue;
        has_made = true;
        mark_set(p, &stuck);
        uint64_t bytes = bytes_to_make(p, &stuck, v);
        if (bytes <= p->cap) {
            struct beside_question question = {p->graph->problem->versions[v].producer,
                                               stuck.versions,
                                               stuck.count,
                                               set->versions,
                                               set->count,
                                               p->cap - p->base_bytes};
            bytes += beside_held_bytes(&p->beside, &question);
            p->steps += p->beside.steps;
            p->has_failed |= p->beside.has_failed;
            is_over(p, p->base_bytes + p->beside.least_over);
        }
        is_over(p, bytes);
        least = bytes < least ? bytes : least;
    }
    set_end(&stuck);
    return has_made ? least : 0;
}

/* Is there one at least that cannot have been made last for want of memory? Otherwise a proof is far. */
static bool is_tight(const struct prover *p, const struct together *set)
{
    for (uint32_t k = 0; k < set->count; k++)
        if (set->needs[k] > p->cap && set->needs[k] != UINT64_MAX)
            return true;
    return false;
}

/* A lower bound on the most bytes that are there at any moment up to the one at which the set is there. More than the
 * cap: a proof. */
static uint64_t least_bytes(struct prover *p, struct together *set, int depth)
{
    uint64_t now = p->base_bytes + set->bytes;
    if (is_over(p, now) || set->count > MOST_MEMBERS)
        return now;
    uint64_t least = find_needs(p, set);
    if (least == 0 || least > p->cap || p->has_failed)
        return least > now ? least : now;
    uint64_t beside = bytes_beside(p, set);
    if (beside > p->cap)
        return beside;
    if (depth == MOST_DEPTH && !is_tight(p, set))
        return now;
    if (depth == 0 || set->count > MOST_BRANCHES || !p->sets_left || p->steps > p->steps_end || p->has_failed)
        return now;
    p->sets_left--;
    uint64_t result = UINT64_MAX;
    for (uint32_t k = 0; k < set->count && result > p->cap; k++) {
        uint64_t bytes = set->needs[k];
        if (bytes <= p->cap) {
            struct together before;
            step_back(p, set, set->versions[k], &before);
            uint64_t earlier = p->has_failed ? 0 : least_bytes(p, &before, depth - 1);
            bytes = earlier > bytes ? earlier : bytes;
            set_end(&before);
        }
        result = bytes < result ? bytes : result;
    }
    return result;
}

static uint64_t bytes_at(struct prover *p, uint32_t o)
{
    const struct policy_problem *problem = p->graph->problem;
    bool is_end = o == problem->operation_count;
    struct together set;
    set_begin(p, &set, is_end ? problem->version_count : p->graph->need_first[o + 1] - p->graph->need_first[o]);
    for (uint32_t v = 0; is_end && !p->has_failed && v < problem->version_count; v++)
        if (problem->versions[v].is_kept)
            set_add(p, &set, v);
    for (uint32_t k = is_end ? 0 : p->graph->need_first[o];
         !is_end && !p->has_failed && k < p->graph->need_first[o + 1]; k++)
        set_add(p, &set, p->graph->needs[k]);
    p->sets_left = MOST_SETS;
    p->steps_end = p->steps + MOST_STEPS_AT_ONE;
    p->least_over = UINT64_MAX;
    uint64_t bytes = p->has_failed ? 0 : least_bytes(p, &set, MOST_DEPTH);
    set_end(&set);
    return bytes;
}

static bool prover_begin(struct prover *p, const struct graph *g, uint64_t cap)
{
    *p = (struct prover){.graph = g, .cap = cap, .base_bytes = g->problem->fixed_bytes};
    for (uint32_t v = 0; v < g->problem->version_count; v++)
        p->base_bytes += graph_is_always_there(g, v) ? g->problem->versions[v].bytes : 0;
    p->mark = calloc((size_t)g->problem->version_count + 1, sizeof *p->mark);
    return beside_begin(&p->beside, g) && p->mark;
}

static void prover_end(struct prover *p)
{
    free(p->mark);
    beside_end(&p->beside);
}

enum impossible_result impossible_under(const struct graph *graph, uint64_t cap, struct impossible *out)
{
    struct prover p;
    enum impossible_result result = IMPOSSIBLE_UNPROVEN;
    out->bytes = floor_of_operations(graph, false, &out->operation);
    if (out->bytes == UINT64_MAX)
        return IMPOSSIBLE_NO_MEMORY;
    if (out->bytes > cap)
        return IMPOSSIBLE_PROVEN;
    p.has_failed = !prover_begin(&p, graph, cap);
    uint32_t end = graph->problem->operation_count;
    uint64_t most_steps = MOST_STEPS + (uint64_t)STEPS_PER_NEED * (p.has_failed ? 0 : graph->need_first[end]);
    for (uint32_t k = 0; k <= end && !p.has_failed && p.steps < most_steps; k++) {
        uint32_t o = k ? k - 1 : end; /* what must be there at the end is looked at in any case */
        uint64_t bytes = bytes_at(&p, o);
        if (bytes <= cap || p.has_failed)
            continue;
        *out = (struct impossible){o, p.least_over};
        result = IMPOSSIBLE_PROVEN;
        break;
    }
    prover_end(&p);
    return p.has_failed ? IMPOSSIBLE_NO_MEMORY : result;
}

uint64_t impossible_floor(const struct graph *graph, uint64_t floor)
{
    uint64_t high = graph_undropped_peak(graph, NULL), tolerance = high / 1024;
    for (int round = 0; round < FLOOR_ROUNDS && floor + tolerance < high; round++) {
        uint64_t middle = round ? floor + (high - floor) / 2 : floor;
        struct impossible found;
        if (impossible_under(graph, middle, &found) == IMPOSSIBLE_PROVEN)
            floor = found.bytes;
        else if (round)
            high = middle;
        else
            return floor;
    }
    return floor;
}
