/* Exhaustive search for problems that are small enough: Dijkstra's shortest path over (position, set of versions
 * present). Optimal among all plans without swapping. */
#include "policy/residency.h"
#include "policy/strategy.h"
#include <stdlib.h>

enum { MOST_VERSIONS = 16, MOST_STATES = 1 << 19, STEPS_PER_MOVE = 2 };

struct entry {
    uint64_t cost;
    uint32_t state;
};

struct explorer {
    const struct graph *graph;
    const struct strategy_request *request;
    uint64_t *cost;       /* per state; UINT64_MAX = not reached */
    uint32_t *from;       /* per state: the state before */
    struct plan_item *by; /* and the step from there */
    struct entry *heap;
    uint32_t heap_count, heap_capacity;
    bool out_of_memory;
};

static void push(struct explorer *x, struct entry entry)
{
    if (x->heap_count == x->heap_capacity) {
        uint32_t capacity = x->heap_capacity ? 2 * x->heap_capacity : 4096;
        struct entry *heap = realloc(x->heap, sizeof *heap * capacity);
        if (!heap) {
            x->out_of_memory = true;
            return;
        }
        x->heap = heap;
        x->heap_capacity = capacity;
    }
    uint32_t k = x->heap_count++;
    for (; k && x->heap[(k - 1) / 2].cost > entry.cost; k = (k - 1) / 2)
        x->heap[k] = x->heap[(k - 1) / 2];
    x->heap[k] = entry;
}

static struct entry pop(struct explorer *x)
{
    struct entry least = x->heap[0], last = x->heap[--x->heap_count];
    uint32_t k = 0;
    for (uint32_t child; (child = 2 * k + 1) < x->heap_count; k = child) {
        if (child + 1 < x->heap_count && x->heap[child + 1].cost < x->heap[child].cost)
            child++;
        if (x->heap[child].cost >= last.cost)
            break;
        x->heap[k] = x->heap[child];
    }
    x->heap[k] = last;
    return least;
}

static uint32_t state_of(const struct residency *r)
{
    uint32_t count = r->graph->problem->version_count, state = r->position << count;
    for (uint32_t v = 0; v < count; v++)
        state |= residency_has(r, v) ? 1u << v : 0;
    return state;
}

static void enter(struct residency *r, uint32_t state)
{
    const struct policy_problem *p = r->graph->problem;
    r->position = state >> p->version_count;
    r->bytes = p->fixed_bytes;
    for (uint32_t v = 0; v < p->version_count; v++) {
        r->state[v] = state >> v & 1 ? RESIDENCY_PRESENT : 0;
        r->bytes += state >> v & 1 ? p->versions[v].bytes : 0;
    }
}

static void try_step(struct explorer *x, struct residency *r, uint32_t from, struct plan_item item, uint64_t cost)
{
    x->request->effort->steps += STEPS_PER_MOVE;
    if (!residency_step(r, item))
        return;
    uint32_t to = state_of(r);
    if (cost < x->cost[to]) {
        x->cost[to] = cost;
        x->from[to] = from;
        x->by[to] = item;
        push(x, (struct entry){cost, to});
    }
    enter(r, from);
}

static void expand(struct explorer *x, struct residency *r, struct entry entry)
{
    const struct policy_problem *p = x->graph->problem;
    enter(r, entry.state);
    uint32_t position = r->position;
    for (uint32_t v = 0; v < p->version_count; v++)
        if (residency_has(r, v))
            try_step(x, r, entry.state, (struct plan_item){PLAN_DROP, v}, entry.cost);
    if (position < p->operation_count)
        try_step(x, r, entry.state, (struct plan_item){PLAN_RUN, position}, entry.cost);
    for (uint32_t o = 0; o < position; o++)
        if (x->graph->until[o] >= position)
            try_step(x, r, entry.state, (struct plan_item){PLAN_REPLAY, o}, entry.cost + p->operations[o].nanoseconds);
}

static bool is_end(const struct policy_problem *p, uint32_t state)
{
    if (state >> p->version_count != p->operation_count)
        return false;
    for (uint32_t v = 0; v < p->version_count; v++)
        if (p->versions[v].is_kept && !(state >> v & 1))
            return false;
    return true;
}

static bool write_path(const struct explorer *x, uint32_t start, uint32_t end, struct item_list *out)
{
    for (uint32_t state = end; state != start; state = x->from[state])
        if (!items_append(out, (enum plan_verb)x->by[state].verb, x->by[state].index)) {
            items_release(out);
            return false;
        }
    for (uint32_t k = 0; k < out->count / 2; k++) {
        struct plan_item item = out->items[k];
        out->items[k] = out->items[out->count - 1 - k];
        out->items[out->count - 1 - k] = item;
    }
    return true;
}

static enum strategy_result search(struct explorer *x, struct residency *r, struct item_list *out)
{
    uint32_t start = state_of(r);
    if (r->bytes > r->cap)
        return STRATEGY_NOTHING;
    x->cost[start] = 0;
    push(x, (struct entry){0, start});
    while (x->heap_count && !x->out_of_memory) {
        struct entry entry = pop(x);
        if (entry.cost > x->cost[entry.state])
            continue;
        if (entry.cost >= x->request->give_up_ns)
            return STRATEGY_NOTHING;
        if (is_end(x->graph->problem, entry.state))
            return write_path(x, start, entry.state, out) ? STRATEGY_FOUND : STRATEGY_NO_MEMORY;
        expand(x, r, entry);
    }
    return x->out_of_memory ? STRATEGY_NO_MEMORY : STRATEGY_NOTHING;
}

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out)
{
    const struct policy_problem *p = graph->problem;
    struct explorer x = {.graph = graph, .request = request};
    struct residency r = {0};
    size_t states = p->version_count <= MOST_VERSIONS ? ((size_t)p->operation_count + 1) << p->version_count : SIZE_MAX;
    if (request->is_thorough || states > MOST_STATES)
        return STRATEGY_NOTHING;
    x.cost = malloc(states * sizeof *x.cost);
    x.from = malloc(states * sizeof *x.from);
    x.by = malloc(states * sizeof *x.by);
    enum strategy_result result = STRATEGY_NO_MEMORY;
    if (x.cost && x.from && x.by && residency_begin(&r, graph, request->cap)) {
        for (size_t k = 0; k < states; k++)
            x.cost[k] = UINT64_MAX;
        result = search(&x, &r, out);
    }
    residency_end(&r);
    free(x.cost);
    free(x.from);
    free(x.by);
    free(x.heap);
    return result;
}

const struct strategy strategy_exact = {"exact", make};
