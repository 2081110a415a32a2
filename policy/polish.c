/* Polishing: takes the best plan and edits it. A replay is taken out; where that leaves too little memory, other
 * versions are let go for a while instead and rebuilt before their next use; what costs less in the end stays, and at
 * first sometimes what costs a little more (annealing). */
#include "policy/random.h"
#include "policy/strategy.h"
#include "policy/timeline.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_DRAWS = 8, MOST_EDITS = 48, MOST_REPAIRS = 8, SAMPLES = 192, PROBES = 3, STEPS_PER_WORK = 3 };
#define LEAST_SHARE 0.15
#define FADE        0.995
enum { CYCLES = 8, STEPS_PER_REPLAY = 20000 }; /* a cycle for each time that there are so many steps for each replay */

/* Of each cycle, as a share of what a replay costs on average: hot enough for a few large versions, cool enough for
 * many equal ones. */
static const double temperatures[CYCLES] = {0.1, 0.4, 0.05, 1.6, 0.2, 0.1, 0.8, 0.05};

struct edit {
    bool is_insertion;
    uint32_t operation, gap, slot;
};

/* What letting a version go is taken to cost: the operation that makes it, or all that has to be replayed by then. */
enum outlook { NEAR_SIGHTED, FAR_SIGHTED, OUTLOOKS };

struct polisher {
    const struct graph *graph;
    const struct strategy_request *request;
    struct timeline timeline;
    struct edit edits[MOST_EDITS]; /* of the present move, to be undone if it fails */
    uint32_t edit_count;
    bool is_over;                     /* the present move does too much */
    uint64_t seed, least_cost, limit; /* cost above which the present move is worthless */
    double temperature;
    enum outlook outlook;                     /* of the present move */
    bool has_looked;                          /* it did choose by that */
    double gained[OUTLOOKS], spent[OUTLOOKS]; /* lately: nanoseconds saved, work for it */
    struct item_list best;
};

static double draw(struct polisher *s)
{
    return random_share(&s->seed);
}

static uint32_t draw_below(struct polisher *s, uint32_t limit)
{
    return (uint32_t)(draw(s) * limit);
}

static void note(struct polisher *s, bool is_insertion, const struct execution *x)
{
    if (s->edit_count < MOST_EDITS)
        s->edits[s->edit_count++] = (struct edit){is_insertion, x->operation, x->gap, x->slot};
    if (s->edit_count == MOST_EDITS)
        s->is_over = true;
}

static void take_out(struct polisher *s, uint32_t x)
{
    if (s->is_over)
        return;
    note(s, false, &s->timeline.executions[x]);
    timeline_remove(&s->timeline, x);
}

static bool is_free(const struct timeline *t, uint32_t x)
{
    return t->executions[x].replay != POLICY_NONE && t->is_movable[t->executions[x].operation];
}

/* Any replay that may go; POLICY_NONE where there is hardly one. */
static uint32_t draw_replay(struct polisher *s)
{
    const struct timeline *t = &s->timeline;
    for (uint32_t k = 0; k < MOST_DRAWS && t->replay_count; k++) {
        uint32_t x = t->replays[draw_below(s, t->replay_count)];
        if (is_free(t, x))
            return x;
    }
    return POLICY_NONE;
}

static void undo(struct polisher *s)
{
    struct timeline *t = &s->timeline;
    while (s->edit_count && !t->out_of_memory) {
        const struct edit *e = &s->edits[--s->edit_count];
        uint32_t at = t->gaps[e->gap].executions[e->slot];
        if (e->is_insertion)
            timeline_remove(t, at);
        else
            timeline_insert(t, e->operation, at);
    }
}

/* Takes out the replays that made what operation `o` needs at x and that nobody uses any more, and what they needed. */
static void sweep(struct polisher *s, uint32_t source)
{
    uint32_t pending[MOST_EDITS], count = 0;
    const struct graph *g = s->graph;
    struct timeline *t = &s->timeline;
    pending[count++] = source;
    while (count && !s->is_over) {
        uint32_t x = pending[--count];
        uint32_t o = t->executions[x].operation, sources[16], found = 0;
        if (!is_free(t, x) || t->gaps[t->executions[x].gap].executions[t->executions[x].slot] != x ||
            !timeline_is_useless(t, x))
            continue;
        for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1] && found < 16; k++)
            sources[found++] = timeline_source(t, g->needs[k], x);
        take_out(s, x);
        for (uint32_t k = 0; k < found && count < MOST_EDITS; k++)
            if (is_free(t, sources[k]))
                pending[count++] = sources[k];
    }
}

static void take_out_all(struct polisher *s, uint32_t x)
{
    const struct graph *g = s->graph;
    struct timeline *t = &s->timeline;
    uint32_t o = t->executions[x].operation, sources[16], found = 0;
    for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1] && found < 16; k++)
        sources[found++] = timeline_source(t, g->needs[k], x);
    take_out(s, x);
    for (uint32_t k = 0; k < found && !s->is_over; k++)
        if (is_free(t, sources[k]))
            sweep(s, sources[k]);
}

static bool may_replay(const struct polisher *s, uint32_t o, uint32_t gap)
{
    return o != POLICY_NONE && s->timeline.is_movable[o] && gap >= s->timeline.earliest[o] && gap <= s->graph->until[o];
}

/* What replaying an operation takes: the operation itself first, then those that make what is lacking. */
struct chain {
    uint32_t operations[MOST_EDITS], count;
    uint64_t cost;
};

static bool is_listed(const struct chain *c, uint32_t o)
{
    for (uint32_t k = 0; k < c->count; k++)
        if (c->operations[k] == o)
            return true;
    return false;
}

/* Lists what has to be replayed before execution `next` for one more operation there, v being one of its inputs. What
 * is not there any more is kept from its last use on where that fits, or made again; with is_varied sometimes the other
 * way round. */
static void list_input(struct polisher *s, struct chain *c, uint32_t v, uint32_t next, bool is_varied)
{
    struct timeline *t = &s->timeline;
    uint32_t producer = s->graph->problem->versions[v].producer;
    uint32_t source = timeline_source(t, v, next), last = timeline_last_use(t, source, v);
    t->work += 1;
    if (!timeline_is_before(t, last, next) || is_listed(c, producer) || c->count >= MOST_EDITS / 2 ||
        !may_replay(s, producer, t->executions[next].gap))
        return;
    bool can_keep = timeline_most(t, last, next) + (int64_t)s->graph->problem->versions[v].bytes <= t->cap;
    t->work += 2;
    if (is_varied ? draw(s) < (can_keep ? 0.1 : 0.9) : !can_keep)
        c->operations[c->count++] = producer;
}

/* False where it cannot be done, or costs more than `most`. */
static bool list_chain(struct polisher *s, struct chain *c, uint32_t operation, uint32_t next, double most,
                       bool is_varied)
{
    const struct graph *g = s->graph;
    uint32_t gap = s->timeline.executions[next].gap;
    c->operations[0] = operation;
    c->count = 1;
    c->cost = 0;
    for (uint32_t head = 0; head < c->count; head++) {
        uint32_t o = c->operations[head];
        c->cost += g->problem->operations[o].nanoseconds;
        if ((double)c->cost > most || !may_replay(s, o, gap))
            return false;
        for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++) {
            if (graph_replaced_at(g, g->needs[k]) < gap)
                return false;
            list_input(s, c, g->needs[k], next, is_varied);
        }
    }
    return true;
}

/* What the present move may still add. */
static double left_to_spend(const struct polisher *s)
{
    return s->limit > s->timeline.cost ? (double)(s->limit - s->timeline.cost) : 0;
}

/* Replays `operation` before execution `next`, and before it what it lacks there. Returns the execution, POLICY_NONE
 * where it fails. */
static uint32_t put_in(struct polisher *s, uint32_t operation, uint32_t next)
{
    struct chain c;
    uint32_t result = POLICY_NONE;
    if (!list_chain(s, &c, operation, next, left_to_spend(s), true))
        return POLICY_NONE;
    /* in the order of the program: what they lack was found from the last to the first */
    for (uint32_t made = 0; made < c.count && !s->is_over; made++) {
        uint32_t least = POLICY_NONE, at = 0;
        for (uint32_t k = 0; k < c.count; k++)
            if (c.operations[k] < least) {
                least = c.operations[k];
                at = k;
            }
        c.operations[at] = POLICY_NONE;
        uint32_t x = timeline_insert(&s->timeline, least, next);
        if (x == POLICY_NONE)
            return POLICY_NONE;
        note(s, true, &s->timeline.executions[x]);
        result = least == operation ? x : result;
    }
    return s->is_over ? POLICY_NONE : result;
}

/* Is v present at x without being needed there, so that it could go for a while? */
static bool is_idle(const struct polisher *s, uint32_t v, uint32_t x, uint32_t *source)
{
    const struct timeline *t = &s->timeline;
    const struct graph *g = s->graph;
    uint32_t producer = g->problem->versions[v].producer, o = t->executions[x].operation;
    if (producer == POLICY_NONE || t->executions[x].gap <= producer || !t->is_movable[producer] ||
        !g->problem->versions[v].bytes)
        return false;
    *source = timeline_source(t, v, x);
    if (*source == POLICY_NONE || !timeline_is_before(t, x, timeline_last_use(t, *source, v)))
        return false;
    if (o < g->problem->operation_count)
        for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++)
            if (g->needs[k] == v)
                return false;
    return true;
}

/* Lets go what is cheap to rebuild for its bytes, from around x to its next use. */
static bool make_way(struct polisher *s, uint32_t x)
{
    struct timeline *t = &s->timeline;
    const struct policy_problem *p = s->graph->problem;
    uint32_t best = POLICY_NONE, best_next = POLICY_NONE;
    double least = HUGE_VAL;
    int64_t excess = timeline_peak(t) - t->cap;
    s->has_looked = true;
    for (uint32_t k = 0; k < SAMPLES && k < 4 * p->version_count; k++) {
        uint32_t v = draw_below(s, p->version_count), source, producer = p->versions[v].producer;
        struct chain c;
        t->work += 1;
        if (!is_idle(s, v, x, &source))
            continue;
        uint32_t next = timeline_next_use(t, source, v, x);
        if (next == POLICY_NONE || !may_replay(s, producer, t->executions[next].gap))
            continue;
        int64_t freed = (int64_t)p->versions[v].bytes < excess ? (int64_t)p->versions[v].bytes : excess;
        double price = exp(2 * draw(s)) / (double)freed;
        if (s->outlook == NEAR_SIGHTED) {
            c.cost = p->operations[producer].nanoseconds + 1;
            if ((double)c.cost * price >= least)
                continue;
        } else if (!list_chain(s, &c, producer, next, fmin(least / price, left_to_spend(s)), false)) {
            continue;
        }
        least = (double)c.cost * price;
        best = producer;
        best_next = next;
    }
    return best != POLICY_NONE && put_in(s, best, best_next) != POLICY_NONE;
}

static bool repair(struct polisher *s)
{
    struct timeline *t = &s->timeline;
    for (uint32_t k = 0; timeline_peak(t) > t->cap; k++)
        if (k == MOST_REPAIRS || s->is_over || !make_way(s, timeline_peak_at(t)))
            return false;
    return true;
}

/* After memory was set free: tries to do without a few replays. */
static void fill_room(struct polisher *s)
{
    struct timeline *t = &s->timeline;
    for (uint32_t k = 0; k < PROBES && t->replay_count && !s->is_over; k++) {
        uint32_t before = s->edit_count, x = draw_replay(s);
        if (x == POLICY_NONE)
            return;
        take_out_all(s, x);
        if (timeline_peak(t) <= t->cap)
            continue;
        while (s->edit_count > before && !t->out_of_memory) {
            const struct edit *e = &s->edits[--s->edit_count];
            timeline_insert(t, e->operation, t->gaps[e->gap].executions[e->slot]);
        }
        s->is_over = false;
    }
}

/* A replay goes, and others come in its place. */
static bool move_out(struct polisher *s)
{
    uint32_t x = draw_replay(s);
    if (x == POLICY_NONE)
        return false;
    take_out_all(s, x);
    return !s->is_over && repair(s);
}

/* Something is let go that was kept, and what becomes possible by that is done. */
static bool move_in(struct polisher *s)
{
    struct timeline *t = &s->timeline;
    const struct policy_problem *p = s->graph->problem;
    uint32_t v = draw_below(s, p->version_count), source;
    uint32_t x = t->replays[draw_below(s, t->replay_count)];
    if (!is_idle(s, v, x, &source))
        return false;
    uint32_t next = timeline_next_use(t, source, v, x);
    if (next == POLICY_NONE || put_in(s, p->versions[v].producer, next) == POLICY_NONE || !repair(s))
        return false;
    fill_room(s);
    return true;
}

/* A replay runs at another time: early, where one of its inputs was at hand, or right before its first use. */
static bool move_along(struct polisher *s)
{
    struct timeline *t = &s->timeline;
    const struct graph *g = s->graph;
    uint32_t x = draw_replay(s), next = POLICY_NONE;
    if (x == POLICY_NONE)
        return false;
    uint32_t o = t->executions[x].operation;
    uint32_t needs = g->need_first[o + 1] - g->need_first[o];
    if (draw(s) < 0.3 || !needs) {
        const struct policy_operation *op = &g->problem->operations[o];
        for (uint32_t k = 0; k < op->write_count; k++) {
            uint32_t use = timeline_next_use(t, x, g->problem->writes[op->first_write + k], x);
            next = use != POLICY_NONE && (next == POLICY_NONE || timeline_is_before(t, use, next)) ? use : next;
        }
    } else {
        uint32_t v = g->needs[g->need_first[o] + draw_below(s, needs)], source = timeline_source(t, v, x);
        next = source;
        for (uint32_t hops = draw_below(s, 4); hops > 0; hops--) {
            uint32_t use = timeline_next_use(t, source, v, next);
            next = use == POLICY_NONE || !timeline_is_before(t, use, x) ? next : use;
        }
        const struct execution *at = &t->executions[next];
        const struct gap *gap = &t->gaps[at->gap];
        next = at->slot + 1 < gap->count      ? gap->executions[at->slot + 1]
               : at->gap < t->operation_count ? t->gaps[at->gap + 1].executions[0]
                                              : POLICY_NONE;
    }
    if (next == POLICY_NONE || next == x || put_in(s, o, next) == POLICY_NONE)
        return false;
    take_out_all(s, x);
    return !s->is_over && repair(s);
}

static bool keep_best(struct polisher *s, struct effort *effort)
{
    struct item_list items = {0};
    if (s->timeline.cost >= s->least_cost)
        return true;
    if (!timeline_write(&s->timeline, &items))
        return false;
    effort->steps += 2 * (uint64_t)items.count;
    items_release(&s->best);
    s->best = items;
    s->least_cost = s->timeline.cost;
    return true;
}

/* One move; true when it was kept. */
static bool try_move(struct polisher *s)
{
    struct timeline *t = &s->timeline;
    uint64_t before = t->cost;
    double kind = draw(s);
    s->edit_count = 0;
    s->is_over = false;
    s->limit = before + (uint64_t)(-s->temperature * log(1 - draw(s)));
    s->limit = s->limit < 2 * before ? s->limit : 2 * before;
    uint64_t accepted = s->limit;
    s->limit += before / 64; /* on the way more may be spent than in the end */
    bool is_kept = kind < 0.5 ? move_out(s) : kind < 0.75 ? move_in(s) : move_along(s);
    is_kept = is_kept && !s->is_over && timeline_peak(t) <= t->cap && t->cost <= accepted && !t->out_of_memory;
    if (!is_kept)
        undo(s);
    return is_kept;
}

/* By what has paid of late: each now and then. */
static void choose_outlook(struct polisher *s)
{
    double near = s->gained[NEAR_SIGHTED] / s->spent[NEAR_SIGHTED],
           far = s->gained[FAR_SIGHTED] / s->spent[FAR_SIGHTED];
    double share = near + far > 0 ? near / (near + far) : 0.5;
    s->outlook = draw(s) < fmin(fmax(share, LEAST_SHARE), 1 - LEAST_SHARE) ? NEAR_SIGHTED : FAR_SIGHTED;
    s->has_looked = false;
}

static void learn_outlook(struct polisher *s, uint64_t cost_before, uint64_t work)
{
    if (!s->has_looked)
        return;
    uint64_t cost = s->timeline.cost;
    s->gained[s->outlook] = FADE * s->gained[s->outlook] + (cost < cost_before ? (double)(cost_before - cost) : 0);
    s->spent[s->outlook] = FADE * s->spent[s->outlook] + (double)work;
}

/* Back to the best plan found. False where that fails. */
static bool return_to_best(struct polisher *s)
{
    struct timeline again;
    if (!s->best.items || s->timeline.cost == s->least_cost)
        return true;
    if (timeline_begin(&again, s->graph, s->request->cap, &s->best) != TIMELINE_MADE)
        return false;
    s->request->effort->steps += 2 * (uint64_t)s->best.count;
    timeline_end(&s->timeline);
    s->timeline = again;
    return true;
}

/* Cools down from the temperature to none while `steps` are spent. False where memory ran out. */
static bool anneal(struct polisher *s, double temperature, uint64_t steps)
{
    struct timeline *t = &s->timeline;
    struct effort *effort = s->request->effort;
    uint64_t start = effort->steps;
    while (t->replay_count && effort->steps < start + steps && !effort_is_spent(effort)) {
        double left = 1 - (double)(effort->steps - start) / (double)steps;
        s->temperature = temperature * left * left;
        uint64_t before = t->work, cost = t->cost;
        choose_outlook(s);
        try_move(s);
        learn_outlook(s, cost, t->work - before);
        effort->steps += (t->work - before) * STEPS_PER_WORK + 8;
        if (t->out_of_memory || !keep_best(s, effort))
            return false;
    }
    return true;
}

/* The part of what is left that polishing is worth: where most replays cannot be moved, others do better. */
static uint64_t steps_left(const struct polisher *s)
{
    const struct effort *effort = s->request->effort;
    const struct timeline *t = &s->timeline;
    uint32_t free = 0;
    for (uint32_t k = 0; k < t->replay_count; k++)
        free += is_free(t, t->replays[k]);
    uint64_t left = effort_is_spent(effort) ? 0 : effort->allowed - effort->steps;
    return t->replay_count ? (uint64_t)((double)left * free / t->replay_count) : 0;
}

static void run(struct polisher *s)
{
    struct effort *effort = s->request->effort;
    uint64_t replays = s->timeline.replay_count ? s->timeline.replay_count : 1, mean = s->timeline.cost / replays;
    uint64_t steps = steps_left(s), end = effort->steps + steps, cycles = steps / (replays * STEPS_PER_REPLAY);
    cycles = cycles < 1 ? 1 : cycles > CYCLES ? CYCLES : cycles;
    for (uint32_t cycle = 0; cycle < cycles && effort->steps < end && !effort_is_spent(effort); cycle++) {
        steps = (end - effort->steps) / (cycles - cycle);
        if (!return_to_best(s) || !anneal(s, (double)mean * temperatures[cycle], steps))
            break;
    }
}

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out)
{
    struct polisher s = {.graph = graph, .request = request, .seed = 7, .spent = {1, 1}};
    if (!request->is_thorough || !request->best || !request->best->items)
        return STRATEGY_NOTHING;
    enum timeline_result begun = timeline_begin(&s.timeline, graph, request->cap, request->best);
    if (begun != TIMELINE_MADE)
        return begun == TIMELINE_UNFIT ? STRATEGY_NOTHING : STRATEGY_NO_MEMORY;
    s.least_cost = s.timeline.cost;
    if (timeline_peak(&s.timeline) <= s.timeline.cap)
        run(&s);
    bool has_failed = s.timeline.out_of_memory;
    timeline_end(&s.timeline);
    struct attempt_search search;
    attempts_begin(&search, graph, request);
    if (s.best.items && !has_failed)
        attempts_offer(&search, &s.best);
    else
        items_release(&s.best);
    enum strategy_result result = attempts_end(&search, out);
    return has_failed ? STRATEGY_NO_MEMORY : result;
}

const struct strategy strategy_polish = {"polish", make};
