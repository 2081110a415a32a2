#include "policy/pressure.h"
#include <math.h>
#include <stdlib.h>

enum { CLOSURE_LIMIT = 48, RESCORE_LIMIT = 24, PROPAGATE_LIMIT = 32, URGENT = 16, OFFER_STEPS = 4, DROP_STEPS = 18 };
enum { FEW_LOSSES = 1 }; /* what is lost more often is asked for in turns with something else, perhaps for ever */

#define LAST_CHOICE 1e9 /* above all usual scores */

static bool is_absent(const struct forward *f, uint32_t v)
{
    return !residency_has(&f->residency, v);
}

static bool is_on_host(const struct forward *f, uint32_t v)
{
    return f->residency.state[v] & RESIDENCY_ON_HOST;
}

/* Next position at which the program itself needs v, or POLICY_NONE. */
static uint32_t program_need(const struct forward *f, uint32_t v)
{
    uint32_t next = f->versions[v].next_use;
    return next == POLICY_NONE && residency_is_due(&f->residency, v) ? f->graph->problem->operation_count : next;
}

struct need {
    uint32_t next, until; /* POLICY_NONE, 0: not needed any more */
};

/* Widens the need by the rebuilding of what `operation` made and was dropped. */
static void add_needs_of_outputs(const struct forward *f, uint32_t operation, struct need *need)
{
    const struct policy_problem *p = f->graph->problem;
    const struct policy_operation *op = &p->operations[operation];
    for (uint32_t w = 0; w < op->write_count; w++) {
        uint32_t child = p->writes[op->first_write + w];
        const struct forward_version *state = &f->versions[child];
        if (state->need_until < f->residency.position || !is_absent(f, child) || is_on_host(f, child))
            continue;
        if (state->need_until > need->until)
            need->until = state->need_until;
        if (state->need_next < need->next)
            need->next = state->need_next;
    }
}

/* The same for a version with very many readers: the time until it is needed is an upper limit, and the next need is
 * sought among the latest readers. */
static void add_needs_of_many(const struct forward *f, uint32_t v, struct need *need)
{
    const struct forward_version *version = &f->versions[v];
    const uint32_t *readers = f->graph->readers;
    uint32_t passed = version->cursor - version->reader_first, count = passed < MANY_READERS ? passed : MANY_READERS;
    for (uint32_t k = version->cursor - count; k < version->cursor; k++)
        if (f->operations[readers[k]].absent_outputs)
            add_needs_of_outputs(f, readers[k], need);
    if (f->child_until[v] >= f->residency.position && f->child_until[v] > need->until)
        need->until = f->child_until[v];
    if (need->until && need->next == POLICY_NONE)
        need->next = need->until;
}

/* Where v will be needed, counting the rebuilding of its dropped descendants. */
static struct need need_of(const struct forward *f, uint32_t v)
{
    const struct forward_version *version = &f->versions[v];
    const uint32_t *readers = f->graph->readers;
    struct need need = {program_need(f, v), 0};
    if (need.next != POLICY_NONE)
        need.until = version->last_need;
    uint32_t left = version->absent_children;
    if (left && version->reader_end - version->reader_first >= MANY_READERS) {
        add_needs_of_many(f, v, &need);
        left = 0;
    }
    for (uint32_t k = version->reader_first; left && k < version->reader_end; k++) {
        uint32_t absent = f->operations[readers[k]].absent_outputs;
        left -= absent;
        if (absent)
            add_needs_of_outputs(f, readers[k], &need);
    }
    if (need.until && need.next != POLICY_NONE && need.next < f->residency.position)
        need.next = f->residency.position;
    return need;
}

static uint32_t new_visit(struct forward *f)
{
    return ++f->visit;
}

/* Does the k-th need stand among what must be there so that `child` can be rebuilt by its producer? */
static bool rebuilds_from(const struct graph *g, uint32_t child, uint32_t k, const struct forward_operation *producer)
{
    return k < producer->read_end || g->problem->versions[child].replaces == g->needs[k];
}

/* Will v have to be rebuilt first, as far as one can tell now? What the program needs no more is about to be
 * dropped, unless it is held on purpose. */
static bool is_missing(const struct forward *f, uint32_t v)
{
    if (is_absent(f, v))
        return true;
    return f->settings->counts_dead && f->versions[v].producer != POLICY_NONE &&
           f->versions[v].droppable_from <= f->residency.position && program_need(f, v) == POLICY_NONE;
}

/* Is all there that the operation needs, as far as one can tell now? */
static bool has_inputs(const struct forward *f, const struct forward_operation *operation)
{
    return !operation->absent_inputs && !f->settings->counts_dead;
}

static double rebuild_cost(struct forward *f, uint32_t version)
{
    const struct graph *g = f->graph;
    uint32_t mark = new_visit(f), count = 0, visited = 0;
    double cost = 0;
    f->walk[count++] = version;
    f->versions[version].seen = mark;
    while (count && visited < CLOSURE_LIMIT) {
        uint32_t v = f->walk[--count];
        if (f->versions[v].producer == POLICY_NONE)
            continue;
        const struct forward_operation *producer = &f->operations[f->versions[v].producer];
        bool is_wanted = v != version && program_need(f, v) != POLICY_NONE;
        cost += producer->nanoseconds * (is_wanted ? f->settings->omega : 1.0);
        visited++;
        if (has_inputs(f, producer))
            continue;
        for (uint32_t k = producer->need_first; k < producer->need_end; k++) {
            uint32_t u = g->needs[k];
            if (f->versions[u].seen == mark || !is_missing(f, u) || is_on_host(f, u) ||
                !rebuilds_from(g, v, k, producer))
                continue;
            f->versions[u].seen = mark;
            f->walk[count++] = u;
            __builtin_prefetch(&f->operations[f->versions[u].producer]);
        }
    }
    f->settings->effort->steps += visited;
    /* cut short: most likely everything from the start on, and for gradients the way back as well */
    bool is_gradient =
        f->versions[version].producer != POLICY_NONE && f->versions[version].producer >= f->settings->turn;
    return count && is_gradient ? cost + (double)g->clock[f->residency.position] : cost;
}

static bool may_swap(const struct forward *f, uint32_t v)
{
    const struct policy_problem *p = f->graph->problem;
    return f->settings->swap_weight >= 0 && p->versions[v].is_swappable && p->out_bytes_per_ns > 0 &&
           p->in_bytes_per_ns > 0;
}

static double swap_cost(const struct forward *f, uint32_t v)
{
    const struct policy_problem *p = f->graph->problem;
    double bytes = (double)f->versions[v].bytes;
    double out = is_on_host(f, v) ? 0 : bytes / p->out_bytes_per_ns;
    return f->settings->swap_weight * (out + bytes / p->in_bytes_per_ns);
}

static double raise_to(double base, double exponent)
{
    if (exponent == 0)
        return 1;
    if (exponent == 0.5)
        return sqrt(base);
    return exponent == 1 ? base : pow(base, exponent);
}

/* What it costs to get v back, per byte. */
static double cost_per_byte(struct forward *f, uint32_t v, uint32_t until)
{
    double cost = f->versions[v].rebuildable_until >= until ? rebuild_cost(f, v) : HUGE_VAL;
    if (may_swap(f, v) && swap_cost(f, v) < cost)
        cost = swap_cost(f, v);
    return cost / (double)f->versions[v].bytes;
}

/* The price given for v up to the pivot; what is needed again before the pivot is worth more. */
static double price_of(struct forward *f, uint32_t v, const struct need *need)
{
    const struct forward_settings *s = f->settings;
    bool is_urgent = need->next < s->pivot;
    if (s->hold[v] > 0)
        return is_urgent ? s->hold[v] * URGENT : s->hold[v];
    return s->flat_hold ? 1e30 : cost_per_byte(f, v, need->until) * URGENT;
}

static bool is_from_before_turn(const struct forward *f, uint32_t v)
{
    uint32_t producer = f->versions[v].producer;
    return producer == POLICY_NONE || producer < f->settings->turn;
}

static double score_of(struct forward *f, uint32_t v, struct need need)
{
    const struct graph *g = f->graph;
    const struct forward_settings *s = f->settings;
    bool is_priced = s->hold && f->residency.position <= s->pivot;
    bool is_dead = need.until < f->residency.position || need.next == POLICY_NONE;
    bool is_given = s->keeps_given && f->versions[v].producer == POLICY_NONE && !may_swap(f, v);
    if (is_dead && is_given)
        return LAST_CHOICE;
    if (is_dead && !(is_priced && s->hold[v] > 0))
        return -1;
    if (is_dead)
        need = (struct need){g->problem->operation_count, g->problem->operation_count};
    double distance = 1 + (double)(g->clock[need.next] - g->clock[f->residency.position]);
    double score = is_priced ? price_of(f, v, &need) : cost_per_byte(f, v, need.until);
    score /= raise_to(distance, is_priced && s->flat_hold ? s->hold_beta : s->beta);
    if (s->weight)
        score *= s->weight[v];
    bool is_gradient = s->keeps_gradients && !is_from_before_turn(f, v) && !may_swap(f, v);
    bool is_last_choice = f->versions[v].bytes <= s->small_bytes || is_given || is_gradient;
    return is_last_choice ? score * LAST_CHOICE + LAST_CHOICE : score;
}

static bool is_stale(const struct forward *f, candidate_key key)
{
    uint32_t v = candidate_version(key);
    return candidate_stamp(key) != f->versions[v].stamp || is_absent(f, v);
}

/* Every version has one candidate that is not stale at most. */
static void sweep_stale(struct forward *f)
{
    struct candidates *c = &f->candidates;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < c->count; k++)
        if (!is_stale(f, c->keys[k]))
            c->keys[kept++] = c->keys[k];
    c->count = kept;
    candidates_sort(c);
}

static void add_candidate(struct forward *f, uint32_t v, double score)
{
    if (f->candidates.count == f->candidates.capacity)
        sweep_stale(f);
    candidates_add(&f->candidates, candidate_key_of(score, v, ++f->versions[v].stamp));
}

static void wait_until(struct forward *f, uint32_t v, uint32_t position)
{
    if (position > f->graph->problem->operation_count || f->wake_next[v] != v)
        return;
    f->wake_next[v] = f->wake_head[position];
    f->wake_head[position] = v;
}

void pressure_wake(struct forward *f)
{
    uint32_t v = f->wake_head[f->residency.position];
    f->wake_head[f->residency.position] = POLICY_NONE;
    while (v != POLICY_NONE) {
        uint32_t next = f->wake_next[v];
        f->wake_next[v] = v;
        pressure_offer(f, v);
        v = next;
    }
}

void pressure_offer(struct forward *f, uint32_t v)
{
    const struct forward_version *version = &f->versions[v];
    if (is_absent(f, v) || !version->bytes || version->droppable_from == POLICY_NONE || version->locks)
        return;
    if (version->droppable_from > f->residency.position) {
        wait_until(f, v, version->droppable_from);
        return;
    }
    f->settings->effort->steps += OFFER_STEPS;
    add_candidate(f, v, score_of(f, v, need_of(f, v)));
}

/* Collects the absent ancestors that v's absence until `until` will need as well; false where one of them
 * cannot be rebuilt that late. */
static bool collect_ancestors(struct forward *f, uint32_t version, uint32_t until, uint32_t *count)
{
    const struct graph *g = f->graph;
    uint32_t mark = new_visit(f), head = 0;
    f->walk[0] = version;
    f->versions[version].seen = mark;
    *count = 1;
    while (head < *count) {
        uint32_t v = f->walk[head++];
        if (f->versions[v].rebuildable_until < until)
            return false;
        const struct forward_operation *producer = &f->operations[f->versions[v].producer];
        if (!producer->absent_inputs)
            continue;
        for (uint32_t k = producer->need_first; k < producer->need_end; k++) {
            uint32_t u = g->needs[k];
            if (f->versions[u].seen == mark || !is_absent(f, u) || is_on_host(f, u) ||
                f->versions[u].need_until >= until || !rebuilds_from(g, v, k, producer))
                continue;
            f->versions[u].seen = mark;
            f->walk[(*count)++] = u;
        }
    }
    return true;
}

/* An absent version will be needed until then. */
static void set_need_until(struct forward *f, uint32_t v, uint32_t until)
{
    f->versions[v].need_until = until;
    if (f->versions[v].producer == POLICY_NONE)
        return;
    const struct forward_operation *producer = &f->operations[f->versions[v].producer];
    for (uint32_t k = producer->need_first; k < producer->need_end; k++) {
        uint32_t u = f->graph->needs[k];
        if (f->child_until[u] < until)
            f->child_until[u] = until;
    }
}

static void propagate_next(struct forward *f, uint32_t version, uint32_t next)
{
    const struct graph *g = f->graph;
    uint32_t count = 0, visited = 0;
    f->versions[version].need_next = next;
    f->walk[count++] = version;
    while (count && visited++ < PROPAGATE_LIMIT) {
        const struct forward_operation *producer = &f->operations[f->versions[f->walk[--count]].producer];
        if (!producer->absent_inputs)
            continue;
        for (uint32_t k = producer->need_first; k < producer->need_end; k++) {
            uint32_t u = g->needs[k];
            if (!is_absent(f, u) || f->versions[u].need_next <= next || count >= PROPAGATE_LIMIT ||
                f->versions[u].producer == POLICY_NONE)
                continue;
            f->versions[u].need_next = next;
            f->walk[count++] = u;
        }
    }
}

/* Drops (or swaps out) v, which is needed where `need` says, if that is legal and safe. */
static bool drop(struct forward *f, uint32_t v, struct need need)
{
    bool is_needed = need.next != POLICY_NONE && need.until >= f->residency.position;
    uint32_t count = 0;
    if (!is_needed || is_on_host(f, v)) {
        set_need_until(f, v, is_needed ? need.until : 0);
        f->versions[v].need_next = is_needed ? need.next : POLICY_NONE;
        bool has_copy = is_on_host(f, v) || !residency_is_owed(&f->residency, v);
        return forward_step(f, has_copy ? PLAN_DROP : PLAN_SWAP_OUT, v);
    }
    bool can_rebuild = !f->settings->never_replays && collect_ancestors(f, v, need.until, &count);
    bool is_owed = residency_is_owed(&f->residency, v); /* the copy has to be made anyway */
    bool is_swap = may_swap(f, v) && (!can_rebuild || is_owed || swap_cost(f, v) < rebuild_cost(f, v));
    if (is_owed && !is_swap)
        return false;
    if (is_swap) {
        set_need_until(f, v, need.until);
        f->versions[v].need_next = need.next;
        return forward_step(f, PLAN_SWAP_OUT, v);
    }
    if (!can_rebuild) {
        wait_until(f, v, need.until + 1);
        return false;
    }
    if (!forward_step(f, PLAN_DROP, v))
        return false;
    if (may_swap(f, v))
        collect_ancestors(f, v, need.until, &count); /* rebuild_cost used the same scratch */
    for (uint32_t k = 0; k < count; k++)
        set_need_until(f, f->walk[k], need.until);
    propagate_next(f, v, need.next);
    return true;
}

void pressure_note_replaced(struct forward *f, uint32_t v)
{
    struct need need = need_of(f, v);
    set_need_until(f, v, need.until);
    f->versions[v].need_next = need.next;
}

static bool fits(const struct forward *f, uint64_t growth)
{
    return f->residency.bytes + growth <= f->settings->cap;
}

static bool is_needed_by(const struct graph *g, uint32_t o, uint32_t v)
{
    for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++)
        if (g->needs[k] == v)
            return true;
    return false;
}

/* v went though it is waited for. */
static void count_loss(struct forward *f, uint32_t v)
{
    struct forward_loss *r = &f->losses[v];
    r->count = r->position == f->residency.position ? r->count + 1 : 1;
    r->position = f->residency.position;
    f->most_losses = r->count > f->most_losses ? r->count : f->most_losses;
}

/* most_losses: what was lost more often stays. */
static bool drop_waiting_from(struct forward *f, bool is_before_turn, uint32_t most_losses)
{
    const struct graph *g = f->graph;
    uint32_t top = f->frames[f->frame_count - 1].operation;
    for (uint32_t k = 0; k + 1 < f->frame_count; k++) {
        uint32_t o = f->frames[k].operation;
        for (uint32_t n = g->need_first[o]; n < g->need_first[o + 1]; n++) {
            uint32_t v = g->needs[n], position = f->residency.position;
            const struct forward_version *version = &f->versions[v];
            if (!is_absent(f, v) && version->bytes && version->droppable_from <= position &&
                is_from_before_turn(f, v) == is_before_turn && forward_losses(f, v) <= most_losses &&
                !is_needed_by(g, top, v) && drop(f, v, need_of(f, v))) {
                count_loss(f, v);
                return true;
            }
        }
    }
    return false;
}

/* What waiting frames need may go as well, the oldest frame's first: those look again before they run. Gradients go
 * last, since making them again takes the whole way back. */
static bool drop_waiting(struct forward *f)
{
    if (f->frame_count < 2)
        return false;
    if (f->settings->is_loyal && (drop_waiting_from(f, true, FEW_LOSSES) || drop_waiting_from(f, false, FEW_LOSSES)))
        return true;
    return drop_waiting_from(f, true, UINT32_MAX) || drop_waiting_from(f, false, UINT32_MAX);
}

/* What is likely to be scored next is fetched into the cache. */
static void prefetch_least(const struct forward *f)
{
    const struct candidates *c = &f->candidates;
    for (uint32_t k = 1; k < c->count && k < 5; k++)
        __builtin_prefetch(&f->versions[candidate_version(c->keys[k])]);
}

/* Scores the least candidate again; false where another one is less then. */
static bool is_still_least(struct forward *f, uint32_t v, double score)
{
    candidates_sink(&f->candidates, 0, candidate_key_of(score, v, f->versions[v].stamp));
    return candidate_version(f->candidates.keys[0]) == v;
}

/* v, which is the least candidate or was scored last, is none any more. */
static void forget_candidate(struct forward *f, uint32_t v)
{
    if (candidate_version(f->candidates.keys[0]) == v)
        candidates_remove_least(&f->candidates);
    else
        f->versions[v].stamp++;
}

static bool drop_least(struct forward *f)
{
    uint32_t rescored = 0;
    while (f->candidates.count) {
        f->settings->effort->steps += DROP_STEPS;
        uint32_t v = candidate_version(f->candidates.keys[0]);
        if (is_stale(f, f->candidates.keys[0]) || f->versions[v].locks) {
            candidates_remove_least(&f->candidates);
            continue;
        }
        prefetch_least(f);
        struct need need = need_of(f, v);
        double score = score_of(f, v, need);
        if (!is_still_least(f, v, score) && rescored++ < RESCORE_LIMIT)
            continue;
        bool is_dear = score > 0 && !is_from_before_turn(f, v) && f->frame_count >= 2;
        if (is_dear && drop_waiting_from(f, true, f->settings->is_loyal ? FEW_LOSSES : UINT32_MAX))
            return true;
        forget_candidate(f, v);
        if (drop(f, v, need))
            return true;
    }
    return false;
}

bool pressure_make_room(struct forward *f, uint64_t growth)
{
    while (!fits(f, growth) && !f->out_of_memory)
        if (!drop_least(f) && !drop_waiting(f))
            return false;
    return !f->out_of_memory;
}
