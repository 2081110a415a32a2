/* Exact search for small problems: A* over (position, set of versions present). Optimal among all plans without
 * swapping where it ends by itself.
 *
 * Two things keep it small. Versions are dropped only when the next operation would not fit otherwise, and then no
 * more than it takes: to have more is never worse. And the estimate counts every operation that must certainly run
 * again: the producers of what is absent and will be needed, and of their inputs as far as these are absent. */
#include "policy/residency.h"
#include "policy/states.h"
#include "policy/strategy.h"
#include <stdlib.h>

enum { MOST_VERSIONS = 64, MOST_OPERATIONS = 400, MOST_DROPS = 100000, STEPS_PER_STATE = 40, STEPS_PER_DROP = 12 };

#define IMPOSSIBLE UINT64_MAX

struct explorer {
    const struct graph *graph;
    const struct strategy_request *request;
    struct states states;
    uint64_t *useful;    /* per position: versions that something may still be made from, or that are needed */
    uint64_t *wanted;    /* per position: versions made before that the program needs from there on */
    uint64_t *droppable; /* per position: versions that may be dropped there */
    uint64_t *reads, *makes, *in_place; /* per operation; in_place: what it makes in the place of others */
    uint32_t drops_tried;
    bool is_incomplete; /* some choice was left out: the result may be improved on */
};

/* One operation about to run in one state. */
struct move {
    uint32_t from, operation;
    bool is_replay;
    uint64_t dropped;             /* versions: already dropped for it */
    uint64_t present, candidates; /* the others that are there, and of these what may be dropped for it as well */
    uint64_t lack;                /* bytes that must be dropped */
};

static uint64_t bit(uint32_t v)
{
    return (uint64_t)1 << v;
}

static uint32_t lowest(uint64_t set)
{
    return (uint32_t)__builtin_ctzll(set);
}

static uint32_t highest(uint64_t set)
{
    return 63 - (uint32_t)__builtin_clzll(set);
}

static uint64_t bytes_of(const struct policy_problem *p, uint64_t set)
{
    uint64_t bytes = p->fixed_bytes;
    for (; set; set &= set - 1)
        bytes += p->versions[lowest(set)].bytes;
    return bytes;
}

static void fill_operations(struct explorer *x)
{
    const struct graph *g = x->graph;
    const struct policy_problem *p = g->problem;
    for (uint32_t o = 0; o < p->operation_count; o++) {
        for (uint32_t k = 0; k < p->operations[o].read_count; k++)
            x->reads[o] |= bit(p->reads[p->operations[o].first_read + k]);
        for (uint32_t k = 0; k < p->operations[o].write_count; k++) {
            uint32_t v = p->writes[p->operations[o].first_write + k];
            x->makes[o] |= bit(v);
            x->in_place[o] |= p->versions[v].replaces == POLICY_NONE ? 0 : bit(v);
        }
    }
}

/* What replaying o takes to make `made` of its outputs. */
static uint64_t inputs_for(const struct explorer *x, uint32_t o, uint64_t made)
{
    uint64_t inputs = x->reads[o];
    for (made &= x->makes[o]; made; made &= made - 1) {
        uint32_t old = x->graph->problem->versions[lowest(made)].replaces;
        inputs |= old == POLICY_NONE ? 0 : bit(old);
    }
    return inputs;
}

/* What takes away, by its making, a version that may be there again and not be dropped yet. */
static uint64_t takers(const struct graph *g, uint32_t at)
{
    const struct policy_problem *p = g->problem;
    uint64_t set = 0;
    for (uint32_t v = 0; v < p->version_count; v++) {
        uint32_t old = p->versions[v].replaces;
        if (old != POLICY_NONE && p->versions[v].producer < at && p->versions[old].droppable_from > at &&
            g->latest_rebuild[old] > p->versions[v].producer)
            set |= bit(v);
    }
    return set;
}

static void fill_positions(struct explorer *x)
{
    const struct graph *g = x->graph;
    const struct policy_problem *p = g->problem;
    for (uint32_t at = 0; at <= p->operation_count; at++) {
        for (uint32_t v = 0; v < p->version_count; v++) {
            uint32_t producer = p->versions[v].producer;
            bool is_needed =
                p->versions[v].is_kept || (g->reader_first[v + 1] > g->reader_first[v] && g->last_need[v] >= at);
            x->droppable[at] |= p->versions[v].droppable_from <= at && p->versions[v].bytes ? bit(v) : 0;
            x->wanted[at] |= is_needed && (producer == POLICY_NONE || producer < at) ? bit(v) : 0;
        }
        x->useful[at] = x->wanted[at] | takers(g, at);
        for (uint32_t o = at; o-- > 0;)
            if (g->latest_replay[o] >= at && (x->makes[o] & x->useful[at])) {
                x->useful[at] |= x->in_place[o]; /* where it is there, what it replaces need not be */
                x->useful[at] |= inputs_for(x, o, x->useful[at]);
            }
    }
}

/* Time that must be spent again from here on, or IMPOSSIBLE. */
static uint64_t estimate(const struct explorer *x, uint32_t position, uint64_t present)
{
    const struct graph *g = x->graph;
    const struct policy_problem *p = g->problem;
    uint64_t missing = x->wanted[position] & ~present, seen = missing, time = 0, made = 0;
    while (missing) {
        uint32_t v = lowest(missing), o = p->versions[v].producer;
        missing &= missing - 1;
        if (o == POLICY_NONE || g->latest_replay[o] < position)
            return IMPOSSIBLE;
        time += made & bit(v) ? 0 : p->operations[o].nanoseconds;
        made |= x->makes[o];
        uint64_t more = inputs_for(x, o, bit(v)) & ~present & ~seen;
        seen |= more;
        missing |= more;
    }
    return time;
}

/* The state after the move with `dropped` gone before it. */
static void reach(struct explorer *x, const struct move *m, uint64_t dropped)
{
    const struct policy_problem *p = x->graph->problem;
    const struct state *from = &x->states.all[m->from];
    uint32_t o = m->operation, position = from->position + !m->is_replay;
    uint64_t present = m->present & ~dropped, fresh = x->makes[o] & ~present;
    uint64_t cost = from->cost + (m->is_replay ? p->operations[o].nanoseconds : 0);
    for (uint64_t made = fresh; made; made &= made - 1) {
        uint32_t old = p->versions[lowest(made)].replaces;
        present &= old == POLICY_NONE ? ~(uint64_t)0 : ~bit(old);
    }
    present |= fresh;
    uint64_t useless = present & ~x->useful[position] & x->droppable[position];
    present &= ~useless;
    uint64_t rest = estimate(x, position, present);
    x->request->effort->steps += STEPS_PER_DROP;
    if (rest == IMPOSSIBLE || cost + rest >= x->request->give_up_ns)
        return;
    states_offer(&x->states, &(struct state){.present = present,
                                             .dropped_before = dropped | m->dropped,
                                             .dropped_after = useless,
                                             .cost = cost,
                                             .estimate = cost + rest,
                                             .from = m->from,
                                             .operation = o,
                                             .position = position,
                                             .is_replay = m->is_replay});
}

/* Candidates for dropping, the largest first; rest[k]: bytes of those from the k-th on. */
struct candidates {
    uint32_t all[MOST_VERSIONS], count;
    uint64_t rest[MOST_VERSIONS + 1];
};

static void sort_candidates(const struct policy_problem *p, uint64_t set, struct candidates *c)
{
    c->count = 0;
    for (; set; set &= set - 1) {
        uint32_t v = lowest(set), at = c->count++;
        for (; at && p->versions[c->all[at - 1]].bytes < p->versions[v].bytes; at--)
            c->all[at] = c->all[at - 1];
        c->all[at] = v;
    }
    c->rest[c->count] = 0;
    for (uint32_t k = c->count; k-- > 0;)
        c->rest[k] = c->rest[k + 1] + p->versions[c->all[k]].bytes;
}

/* Every set of candidates that frees enough, and from which nothing could be left out. chosen[depth] is what was
 * taken, in order. */
static void choose_drops(struct explorer *x, const struct move *m)
{
    const struct policy_problem *p = x->graph->problem;
    struct candidates c;
    uint32_t chosen[MOST_VERSIONS], depth = 0, next = 0;
    uint64_t dropped = 0, freed = 0;
    sort_candidates(p, m->candidates, &c);
    for (;; x->request->effort->steps++) {
        if (freed >= m->lack) {
            reach(x, m, dropped); /* the last one taken is the smallest, and without it there was not enough */
            next = c.count;
            if (++x->drops_tried > MOST_DROPS || effort_is_used_up(x->request->effort)) {
                x->is_incomplete = true;
                return;
            }
        }
        if (next < c.count && freed + c.rest[next] >= m->lack) {
            chosen[depth++] = next;
            dropped |= bit(c.all[next]);
            freed += p->versions[c.all[next++]].bytes;
            continue;
        }
        if (!depth)
            return;
        next = chosen[--depth];
        dropped &= ~bit(c.all[next]);
        freed -= p->versions[c.all[next++]].bytes;
    }
}

static void try_without(struct explorer *x, uint32_t from, uint32_t o, bool is_replay, uint64_t dropped)
{
    const struct policy_problem *p = x->graph->problem;
    const struct policy_operation *op = &p->operations[o];
    uint32_t position = x->states.all[from].position;
    uint64_t present = x->states.all[from].present & ~dropped, fresh = x->makes[o] & ~present;
    uint64_t inputs = inputs_for(x, o, fresh);
    if (inputs & ~present)
        return;
    uint64_t growth = op->workspace_bytes + (is_replay ? op->scratch_bytes : 0);
    for (uint64_t made = x->makes[o]; made; made &= made - 1) {
        const struct policy_version *version = &p->versions[lowest(made)];
        bool takes_over = version->replaces != POLICY_NONE;
        growth += takes_over && (fresh & bit(lowest(made))) ? 0 : version->bytes;
    }
    uint64_t bytes = bytes_of(p, present) + growth, cap = x->request->cap;
    uint64_t fixed = inputs | x->in_place[o];
    struct move move = {from, o, is_replay, dropped, present, present & x->droppable[position] & ~fixed, 0};
    if (bytes <= cap) {
        reach(x, &move, 0);
        return;
    }
    move.lack = bytes - cap;
    choose_drops(x, &move);
    /* what is there and would go to scratch may be dropped and made in place instead */
    for (uint64_t set = present & x->in_place[o] & x->droppable[position] & ~inputs; set; set &= set - 1)
        if (!dropped || lowest(set) > highest(dropped))
            try_without(x, from, o, is_replay, dropped | bit(lowest(set)));
}

static void try_operation(struct explorer *x, uint32_t from, uint32_t o, bool is_replay)
{
    x->drops_tried = 0;
    try_without(x, from, o, is_replay, 0);
}

static void expand(struct explorer *x, uint32_t index)
{
    const struct graph *g = x->graph;
    uint32_t position = x->states.all[index].position;
    uint64_t absent_useful = x->useful[position] & ~x->states.all[index].present;
    x->request->effort->steps += STEPS_PER_STATE;
    if (position < g->problem->operation_count)
        try_operation(x, index, position, false);
    for (uint32_t o = 0; o < position; o++)
        if (g->latest_replay[o] >= position && (x->makes[o] & absent_useful))
            try_operation(x, index, o, true);
}

static bool append_drops(struct item_list *out, uint64_t dropped)
{
    bool is_done = true;
    for (; dropped && is_done; dropped &= dropped - 1)
        is_done = items_append(out, PLAN_DROP, lowest(dropped));
    return is_done;
}

static bool write_path(const struct explorer *x, uint32_t end, struct item_list *out)
{
    uint32_t count = 0, *path = malloc(sizeof *path * x->states.count);
    bool is_done = path != NULL;
    for (uint32_t at = end; is_done && at; at = x->states.all[at].from)
        path[count++] = at;
    is_done = is_done && append_drops(out, x->states.all[0].dropped_after);
    while (is_done && count) {
        const struct state *s = &x->states.all[path[--count]];
        is_done = append_drops(out, s->dropped_before) &&
                  items_append(out, s->is_replay ? PLAN_REPLAY : PLAN_RUN, s->operation) &&
                  append_drops(out, s->dropped_after);
    }
    free(path);
    if (!is_done)
        items_release(out);
    return is_done;
}

static bool begin(struct explorer *x)
{
    const struct policy_problem *p = x->graph->problem;
    size_t positions = (size_t)p->operation_count + 1;
    x->useful = calloc(positions * 6, sizeof *x->useful);
    if (!x->useful || !states_begin(&x->states))
        return false;
    x->wanted = x->useful + positions;
    x->droppable = x->wanted + positions;
    x->reads = x->droppable + positions;
    x->makes = x->reads + positions;
    x->in_place = x->makes + positions;
    fill_operations(x);
    fill_positions(x);
    return true;
}

static enum strategy_result search(struct explorer *x, struct item_list *out)
{
    const struct policy_problem *p = x->graph->problem;
    uint64_t present = 0;
    for (uint32_t v = 0; v < p->version_count; v++)
        present |= p->versions[v].producer == POLICY_NONE ? bit(v) : 0;
    if (bytes_of(p, present) > x->request->cap)
        return STRATEGY_NOTHING;
    uint64_t useless = present & ~x->useful[0] & x->droppable[0];
    states_offer(&x->states, &(struct state){.present = present & ~useless, .dropped_after = useless});
    for (uint32_t index; (index = states_next(&x->states)) != POLICY_NONE && !x->states.has_failed;) {
        const struct state *s = &x->states.all[index];
        if (s->position == p->operation_count && s->estimate == s->cost && !(x->wanted[s->position] & ~s->present)) {
            x->request->incumbent->is_optimal = !x->is_incomplete;
            return write_path(x, index, out) ? STRATEGY_FOUND : STRATEGY_NO_MEMORY;
        }
        if (effort_is_used_up(x->request->effort) || x->states.is_full)
            return STRATEGY_NOTHING;
        expand(x, index);
    }
    x->request->incumbent->is_optimal = !x->is_incomplete && !x->states.has_failed && !x->states.is_full;
    return x->states.has_failed ? STRATEGY_NO_MEMORY : STRATEGY_NOTHING;
}

bool exact_can_search(const struct graph *graph)
{
    return graph->problem->version_count <= MOST_VERSIONS && graph->problem->operation_count <= MOST_OPERATIONS;
}

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out)
{
    struct explorer x = {.graph = graph, .request = request};
    if (!request->incumbent || request->incumbent->is_optimal || !exact_can_search(graph))
        return STRATEGY_NOTHING;
    enum strategy_result result = begin(&x) ? search(&x, out) : STRATEGY_NO_MEMORY;
    states_end(&x.states);
    free(x.useful);
    return result;
}

const struct strategy strategy_exact = {"exact", make};
