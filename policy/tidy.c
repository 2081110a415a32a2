#include "policy/tidy.h"
#include "policy/simulate.h"
#include "policy/range_tree.h"
#include "policy/spans.h"
#include <stdlib.h>
#include <string.h>

enum { FILL_ROUNDS = 3 };

/* Bytes per skeleton entry. */
static bool profile_begin(struct range_tree *profile, const struct spans *s)
{
    if (!range_tree_begin(profile, s->skeleton_count + 1))
        return false;
    for (uint32_t k = 0; k < s->skeleton_count; k++)
        profile->most[profile->leaves + k] = (int64_t)s->bytes_during[k];
    range_tree_fill(profile);
    return true;
}

struct filler {
    struct spans *spans;
    struct range_tree profile;
    int64_t cap;
};

static void shrink(void *context, uint32_t from, uint32_t to, uint64_t bytes)
{
    struct filler *f = context;
    range_tree_add(&f->profile, from, to, -(int64_t)bytes);
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
        if (!find_gap(s, span, &gap) || range_tree_most(&f->profile, gap.from, gap.to) + (int64_t)gap.bytes > f->cap)
            break;
        range_tree_add(&f->profile, gap.from, gap.to, (int64_t)gap.bytes);
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
            range_tree_add(&f->profile, gap.from, gap.to, -(int64_t)gap.bytes);
    }
    if (is_done) {
        range_tree_add(&f->profile, entry, entry + 1, INT64_MIN / 4); /* nothing runs there any more */
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
        range_tree_end(&f.profile);
    free(candidates);
    return is_done;
}

/* A plan, and what is known of it. */
struct draft {
    const struct graph *graph;
    uint64_t cap;
    struct item_list *plan;
    uint64_t added_ns; /* UINT64_MAX: not legal under the cap */
    bool was_over;     /* the plan as given */
};

static uint64_t added_by(const struct draft *d, const struct item_list *items, const struct spans_found *found)
{
    struct simulation simulated;
    if (!found->has_swaps)
        return found->is_complete && found->peak_bytes <= d->cap ? found->replay_nanoseconds : UINT64_MAX;
    bool is_legal = simulate_plan(d->graph, items->items, items->count, d->cap, &simulated, NULL) == SIMULATION_DONE;
    return is_legal ? simulated.added_nanoseconds : UINT64_MAX;
}

/* Writes what is left of the spans and puts it in the place of the plan if that is legal and no worse. */
static bool take_over(struct draft *d, struct spans *s)
{
    struct item_list next = {0};
    struct spans_found found;
    if (!spans_write(s, &next, &found))
        return false;
    uint64_t added = added_by(d, &next, &found);
    if (added == UINT64_MAX || added > d->added_ns) {
        items_release(&next);
        return false;
    }
    items_release(d->plan);
    *d->plan = next;
    d->added_ns = added;
    return true;
}

/* One round: filled gaps only where the plan is legal, 0 where it does not help. False when memory ran out. */
static bool rewrite(struct draft *d, bool is_first, uint32_t *filled)
{
    struct spans s;
    struct spans_found found;
    *filled = 0;
    if (!spans_collect(&s, d->graph, d->plan, &found))
        return false;
    if (is_first) {
        d->added_ns = added_by(d, d->plan, &found);
        d->was_over = d->added_ns == UINT64_MAX; /* earlier drops may help */
    }
    bool with_filling = !is_first || !d->was_over;
    spans_remove_useless(&s);
    bool has_memory = !with_filling || fill_gaps(&s, d->cap, filled);
    if (has_memory && !take_over(d, &s))
        *filled = 0;
    spans_release(&s);
    return has_memory;
}

bool tidy_plan(const struct graph *graph, uint64_t cap, struct item_list *plan, uint64_t *added_ns)
{
    struct draft d = {.graph = graph, .cap = cap, .plan = plan};
    uint32_t filled;
    if (!rewrite(&d, true, &filled))
        return false;
    for (int round = d.was_over ? 0 : 1; round < FILL_ROUNDS && (filled || !round); round++)
        if (!rewrite(&d, false, &filled))
            return false;
    *added_ns = d.added_ns;
    return true;
}

bool tidy_drops(const struct graph *graph, struct item_list *plan, uint64_t *peak_bytes)
{
    struct spans s;
    struct spans_found found;
    struct item_list next = {0};
    if (!spans_collect(&s, graph, plan, &found))
        return false;
    spans_remove_useless(&s);
    bool is_written = spans_write(&s, &next, &found) && found.is_complete;
    spans_release(&s);
    if (is_written) {
        items_release(plan);
        *plan = next;
        *peak_bytes = found.peak_bytes;
    } else {
        items_release(&next);
    }
    return is_written;
}
