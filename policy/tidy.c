#include "policy/tidy.h"
#include "policy/simulate.h"
#include "policy/spans.h"
#include <stdlib.h>
#include <string.h>

enum { FILL_ROUNDS = 3 };

/* Bytes per skeleton entry under range additions, with the maximum of any range. */
struct profile {
    int64_t *most, *added; /* segment tree, heap order */
    uint32_t leaves;
};

static bool profile_begin(struct profile *pr, const struct spans *s)
{
    pr->leaves = 1;
    while (pr->leaves < s->skeleton_count + 1)
        pr->leaves *= 2;
    pr->most = calloc((size_t)pr->leaves * 2, sizeof *pr->most);
    pr->added = calloc((size_t)pr->leaves * 2, sizeof *pr->added);
    if (!pr->most || !pr->added)
        return false;
    for (uint32_t k = 0; k < s->skeleton_count; k++)
        pr->most[pr->leaves + k] = (int64_t)s->bytes_during[k];
    for (uint32_t k = pr->leaves - 1; k > 0; k--)
        pr->most[k] = pr->most[2 * k] > pr->most[2 * k + 1] ? pr->most[2 * k] : pr->most[2 * k + 1];
    return true;
}

static void profile_end(struct profile *pr)
{
    free(pr->most);
    free(pr->added);
}

/* [from, to) gets `bytes` more. node covers [low, high). */
static void add_below(struct profile *pr, uint32_t node, uint32_t low, uint32_t high, uint32_t from, uint32_t to,
                      int64_t bytes)
{
    if (from >= high || to <= low)
        return;
    if (from <= low && high <= to) {
        pr->most[node] += bytes;
        pr->added[node] += bytes;
        return;
    }
    uint32_t middle = low + (high - low) / 2;
    add_below(pr, 2 * node, low, middle, from, to, bytes);
    add_below(pr, 2 * node + 1, middle, high, from, to, bytes);
    int64_t a = pr->most[2 * node], b = pr->most[2 * node + 1];
    pr->most[node] = (a > b ? a : b) + pr->added[node];
}

static int64_t most_below(const struct profile *pr, uint32_t node, uint32_t low, uint32_t high, uint32_t from,
                          uint32_t to)
{
    if (from >= high || to <= low)
        return INT64_MIN / 2;
    if (from <= low && high <= to)
        return pr->most[node];
    uint32_t middle = low + (high - low) / 2;
    int64_t a = most_below(pr, 2 * node, low, middle, from, to);
    int64_t b = most_below(pr, 2 * node + 1, middle, high, from, to);
    return (a > b ? a : b) + pr->added[node];
}

static void profile_add(struct profile *pr, uint32_t from, uint32_t to, int64_t bytes)
{
    add_below(pr, 1, 0, pr->leaves, from, to, bytes);
}

static int64_t profile_most(const struct profile *pr, uint32_t from, uint32_t to)
{
    return most_below(pr, 1, 0, pr->leaves, from, to);
}

struct filler {
    struct spans *spans;
    struct profile profile;
    int64_t cap;
};

static void shrink(void *context, uint32_t from, uint32_t to, uint64_t bytes)
{
    struct filler *f = context;
    profile_add(&f->profile, from, to, -(int64_t)bytes);
}

struct gap {
    uint32_t from, to; /* entries at which the version would be present in addition */
    uint64_t bytes;
};

/* The stretch through which the version of `span` would have to be kept to make its start unnecessary. */
static bool find_gap(struct spans *s, uint32_t span, struct gap *gap)
{
    uint32_t previous = s->spans[span].previous;
    if (previous == POLICY_NONE || s->spans[span].before != POLICY_NONE || s->spans[previous].was_replaced ||
        s->spans[previous].starts_on_host)
        return false;
    const struct span *end = &s->spans[spans_chain_end(s, previous)];
    gap->from = end->last_use != POLICY_NONE ? end->last_use + 1 : end->start != POLICY_NONE ? end->start + 1 : 0;
    gap->to = s->spans[span].start;
    gap->bytes = s->graph->problem->versions[end->version].bytes;
    return true;
}

/* Tries to make one replay (or swap-in) unnecessary by keeping all that it makes and that is used. */
static bool fill(struct filler *f, uint32_t entry)
{
    struct spans *s = f->spans;
    uint32_t done = s->made_first[entry];
    for (; done < s->made_first[entry + 1]; done++) {
        struct gap gap;
        uint32_t span = s->made[done];
        if (s->spans[spans_chain_end(s, span)].last_use == POLICY_NONE)
            continue;
        if (!find_gap(s, span, &gap) || profile_most(&f->profile, gap.from, gap.to) + (int64_t)gap.bytes > f->cap)
            break;
        profile_add(&f->profile, gap.from, gap.to, (int64_t)gap.bytes);
    }
    bool is_done = done == s->made_first[entry + 1];
    for (uint32_t k = s->made_first[entry]; k < done; k++) {
        struct gap gap;
        uint32_t span = s->made[k];
        if (s->spans[spans_chain_end(s, span)].last_use == POLICY_NONE || !find_gap(s, span, &gap))
            continue;
        if (is_done)
            spans_join(s, span);
        else
            profile_add(&f->profile, gap.from, gap.to, -(int64_t)gap.bytes);
    }
    if (is_done) {
        profile_add(&f->profile, entry, entry + 1, INT64_MIN / 4); /* nothing runs there any more */
        spans_remove(s, entry, shrink, f);
    }
    return is_done;
}

struct candidate {
    double worth;
    uint32_t entry;
};

static int by_worth(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->worth != y->worth)
        return x->worth > y->worth ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static double worth_of(struct spans *s, uint32_t entry)
{
    const struct policy_problem *p = s->graph->problem;
    struct plan_item item = s->skeleton[entry];
    double gained = 0, price = 1;
    if (item.verb == PLAN_REPLAY)
        gained = (double)p->operations[item.index].nanoseconds;
    else
        gained = (double)p->versions[item.index].bytes / p->in_bytes_per_ns;
    for (uint32_t k = s->made_first[entry]; k < s->made_first[entry + 1]; k++) {
        struct gap gap;
        if (find_gap(s, s->made[k], &gap))
            price += (double)gap.bytes * (gap.to - gap.from + 1.0);
    }
    return gained / price;
}

static bool fill_gaps(struct spans *s, uint64_t cap, uint32_t *filled)
{
    struct filler f = {.spans = s, .cap = cap > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)cap};
    struct candidate *candidates = malloc(sizeof *candidates * ((size_t)s->skeleton_count + 1));
    bool is_done = candidates && profile_begin(&f.profile, s);
    uint32_t count = 0;
    *filled = 0;
    if (is_done) {
        for (uint32_t entry = 0; entry < s->skeleton_count; entry++)
            if (!s->is_dead[entry] && s->skeleton[entry].verb != PLAN_RUN)
                candidates[count++] = (struct candidate){worth_of(s, entry), entry};
        qsort(candidates, count, sizeof *candidates, by_worth);
        for (uint32_t k = 0; k < count; k++)
            if (!s->is_dead[candidates[k].entry])
                *filled += fill(&f, candidates[k].entry);
    }
    if (candidates)
        profile_end(&f.profile);
    free(candidates);
    return is_done;
}

/* A plan, and what is known of it. */
struct draft {
    const struct graph *graph;
    uint64_t cap;
    struct item_list *plan;
    uint64_t added_ns; /* UINT64_MAX: not legal under the cap */
};

static uint64_t added_by(const struct draft *d, const struct item_list *items)
{
    struct simulation found;
    bool is_legal = simulate_plan(d->graph, items->items, items->count, d->cap, &found, NULL) == SIMULATION_DONE;
    return is_legal ? found.added_nanoseconds : UINT64_MAX;
}

/* Puts `next` in the place of the plan if it is legal and no worse; releases the other. */
static bool take_over(struct draft *d, struct item_list *next)
{
    uint64_t added = added_by(d, next);
    if (added == UINT64_MAX || added > d->added_ns) {
        items_release(next);
        return false;
    }
    items_release(d->plan);
    *d->plan = *next;
    d->added_ns = added;
    return true;
}

static bool rewrite(struct draft *d, bool with_filling, uint32_t *filled)
{
    struct spans s;
    struct item_list next = {0};
    *filled = 0;
    if (!spans_collect(&s, d->graph, d->plan))
        return false;
    spans_remove_useless(&s);
    bool has_memory = !with_filling || fill_gaps(&s, d->cap, filled);
    if (has_memory && spans_write(&s, &next) && !take_over(d, &next))
        *filled = 0;
    spans_release(&s);
    return has_memory;
}

bool tidy_plan(const struct graph *graph, uint64_t cap, struct item_list *plan)
{
    struct draft d = {graph, cap, plan, UINT64_MAX};
    uint32_t filled;
    d.added_ns = added_by(&d, plan);
    if (d.added_ns == UINT64_MAX && !rewrite(&d, false, &filled)) /* above the cap: earlier drops may help */
        return false;
    for (int round = 0; round < FILL_ROUNDS; round++) {
        if (!rewrite(&d, true, &filled))
            return false;
        if (!filled)
            break;
    }
    return true;
}
