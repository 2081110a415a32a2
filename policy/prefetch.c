#include "policy/prefetch.h"
#include "policy/simulate.h"
#include <stdlib.h>
#include <string.h>

struct prefetcher {
    const struct graph *graph;
    const struct item_list *plan;
    uint64_t cap;
    uint64_t *bytes_at; /* during each item, the moved swap-ins included */
    double *time_at;    /* operation time before each item */
    uint32_t *target;   /* per item: index before which it is to stand */
};

static bool is_swap_in(const struct prefetcher *f, uint32_t k)
{
    return f->plan->items[k].verb == PLAN_SWAP_IN;
}

static void fill_times(struct prefetcher *f)
{
    double now = 0;
    for (uint32_t k = 0; k < f->plan->count; k++) {
        struct plan_item item = f->plan->items[k];
        f->time_at[k] = now;
        f->target[k] = k;
        if (item.verb == PLAN_RUN || item.verb == PLAN_REPLAY)
            now += (double)f->graph->problem->operations[item.index].nanoseconds;
    }
}

/* May the swap-in of v, now just before item `at`, move before item at - 1? */
static bool may_pass(const struct prefetcher *f, uint32_t v, uint32_t at)
{
    struct plan_item item = f->plan->items[at - 1];
    bool is_own = item.verb != PLAN_RUN && item.verb != PLAN_REPLAY && item.index == v;
    return !is_own && f->bytes_at[at - 1] + f->graph->problem->versions[v].bytes <= f->cap;
}

/* From the last to the first, each so early that the channel has carried it when it is needed. */
static void choose_targets(struct prefetcher *f)
{
    double channel = 1e300;
    for (uint32_t k = f->plan->count; k-- > 0;) {
        if (!is_swap_in(f, k))
            continue;
        uint32_t v = f->plan->items[k].index, at = k;
        uint64_t bytes = f->graph->problem->versions[v].bytes;
        double end = f->time_at[k] < channel ? f->time_at[k] : channel;
        double start = end - (double)bytes / f->graph->problem->in_bytes_per_ns;
        while (at > 0 && f->time_at[at] > start && may_pass(f, v, at)) {
            at--;
            f->bytes_at[at] += bytes;
        }
        f->target[k] = at;
        channel = start;
    }
}

struct move {
    uint32_t target, item;
};

static int by_target(const void *a, const void *b)
{
    const struct move *x = a, *y = b;
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static bool write_moved(const struct prefetcher *f, struct item_list *out)
{
    uint32_t count = 0, next = 0;
    struct move *moves = malloc(sizeof *moves * ((size_t)f->plan->count + 1));
    bool is_done = moves != NULL;
    for (uint32_t k = 0; is_done && k < f->plan->count; k++)
        if (is_swap_in(f, k))
            moves[count++] = (struct move){f->target[k], k};
    if (is_done)
        qsort(moves, count, sizeof *moves, by_target);
    for (uint32_t k = 0; is_done && k < f->plan->count; k++) {
        for (; is_done && next < count && moves[next].target <= k; next++)
            is_done = items_append(out, PLAN_SWAP_IN, f->plan->items[moves[next].item].index);
        if (is_done && !is_swap_in(f, k))
            is_done = items_append(out, (enum plan_verb)f->plan->items[k].verb, f->plan->items[k].index);
    }
    for (; is_done && next < count; next++)
        is_done = items_append(out, PLAN_SWAP_IN, f->plan->items[moves[next].item].index);
    free(moves);
    return is_done;
}

static void take_faster(const struct prefetcher *f, struct item_list *plan, struct item_list *moved, uint64_t *added_ns)
{
    struct simulation after;
    if (simulate_plan(f->graph, moved->items, moved->count, f->cap, &after, NULL) == SIMULATION_DONE &&
        after.added_nanoseconds < *added_ns) {
        items_release(plan);
        *plan = *moved;
        *added_ns = after.added_nanoseconds;
    } else {
        items_release(moved);
    }
}

bool prefetch_swaps(const struct graph *graph, uint64_t cap, struct item_list *plan, uint64_t *added_ns)
{
    struct prefetcher f = {.graph = graph, .plan = plan, .cap = cap};
    struct simulation found;
    struct item_list moved = {0};
    size_t count = (size_t)plan->count + 1;
    bool has_swaps = false;
    for (uint32_t k = 0; k < plan->count; k++)
        has_swaps |= is_swap_in(&f, k);
    if (!has_swaps)
        return true;
    f.bytes_at = malloc(count * sizeof *f.bytes_at);
    f.time_at = malloc(count * sizeof *f.time_at);
    f.target = malloc(count * sizeof *f.target);
    bool is_done = f.bytes_at && f.time_at && f.target;
    if (is_done && simulate_plan(graph, plan->items, plan->count, cap, &found, f.bytes_at) == SIMULATION_DONE) {
        fill_times(&f);
        choose_targets(&f);
        is_done = write_moved(&f, &moved);
        if (is_done)
            take_faster(&f, plan, &moved, added_ns);
        else
            items_release(&moved);
    }
    free(f.bytes_at);
    free(f.time_at);
    free(f.target);
    return is_done;
}
