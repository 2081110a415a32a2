#include "policy/simulate.h"
#include <stdlib.h>

struct transfer {
    uint64_t done, bytes;
};

struct timing {
    const struct policy_problem *problem;
    uint64_t clock, out_free, in_free;
    uint64_t *ready;          /* per version: when its last swap-in, or swap-out, is complete */
    struct transfer *pending; /* swap-outs in order of completion */
    uint32_t first_pending, pending_count;
    uint64_t pending_bytes;
};

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Time from `now` on at which `bytes` under `cap` are physically there, given the copies under way. Of these only what
 * is past for the stream is forgotten: a swap-in may look further ahead than the next operation. */
static uint64_t wait_for_bytes(struct timing *t, uint64_t bytes, uint64_t cap, uint64_t now)
{
    while (t->first_pending < t->pending_count && t->pending[t->first_pending].done <= t->clock)
        t->pending_bytes -= t->pending[t->first_pending++].bytes;
    uint64_t taken = bytes + t->pending_bytes;
    for (uint32_t k = t->first_pending; k < t->pending_count; k++) {
        if (t->pending[k].done > now && taken <= cap)
            break;
        now = later(now, t->pending[k].done);
        taken -= t->pending[k].bytes;
    }
    return now;
}

static void time_operation(struct timing *t, const struct residency *r, uint32_t o)
{
    const struct graph *g = r->graph;
    uint64_t start = t->clock;
    if (t->pending) {
        start = wait_for_bytes(t, r->step_bytes, r->cap, start);
        for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++)
            start = later(start, t->ready[g->needs[k]]);
    }
    t->clock = start + t->problem->operations[o].nanoseconds;
}

static void time_swap(struct timing *t, const struct residency *r, struct plan_item item, bool was_on_host)
{
    uint64_t bytes = t->problem->versions[item.index].bytes;
    if (item.verb == PLAN_SWAP_IN) {
        uint64_t start = wait_for_bytes(t, r->step_bytes, r->cap, later(t->clock, t->ready[item.index]));
        start = later(start, t->in_free);
        t->in_free = start + (uint64_t)((double)bytes / t->problem->in_bytes_per_ns);
        t->ready[item.index] = t->in_free;
    } else if (!was_on_host) {
        uint64_t start = later(later(t->clock, t->out_free), t->ready[item.index]);
        t->out_free = start + (uint64_t)((double)bytes / t->problem->out_bytes_per_ns);
        t->ready[item.index] = t->out_free;
        t->pending[t->pending_count++] = (struct transfer){t->out_free, bytes};
        t->pending_bytes += bytes;
    }
}

static bool timing_begin(struct timing *t, const struct graph *g, const struct plan_item *items, uint32_t count)
{
    *t = (struct timing){.problem = g->problem};
    size_t outs = 0;
    for (uint32_t k = 0; k < count; k++)
        outs += items[k].verb == PLAN_SWAP_OUT || items[k].verb == PLAN_SWAP_IN;
    if (!outs)
        return true;
    t->ready = calloc((size_t)g->problem->version_count + 1, sizeof *t->ready);
    t->pending = malloc(sizeof *t->pending * outs);
    return t->ready && t->pending;
}

static bool is_on_host(const struct residency *r, struct plan_item item)
{
    return item.verb == PLAN_SWAP_OUT && item.index < r->graph->problem->version_count &&
           (r->state[item.index] & RESIDENCY_ON_HOST);
}

static void account(struct simulation *out, struct timing *t, const struct residency *r, struct plan_item item,
                    bool was_on_host)
{
    out->peak_bytes = later(out->peak_bytes, r->step_bytes);
    if (item.verb == PLAN_RUN || item.verb == PLAN_REPLAY) {
        uint64_t nanoseconds = t->problem->operations[item.index].nanoseconds;
        time_operation(t, r, item.index);
        if (item.verb == PLAN_RUN) {
            out->run_nanoseconds += nanoseconds;
        } else {
            out->replay_nanoseconds += nanoseconds;
            out->replay_count++;
        }
    } else if (item.verb == PLAN_SWAP_IN || item.verb == PLAN_SWAP_OUT) {
        uint64_t bytes = t->problem->versions[item.index].bytes;
        time_swap(t, r, item, was_on_host);
        out->swapped_in_bytes += item.verb == PLAN_SWAP_IN ? bytes : 0;
        out->swapped_out_bytes += item.verb == PLAN_SWAP_OUT && !was_on_host ? bytes : 0;
    }
}

static bool refuse_at(struct simulation *out, uint32_t item, enum step_result result, uint32_t version, uint64_t bytes)
{
    out->fault_item = item;
    out->fault = (struct step_fault){result, version, bytes};
    return false;
}

static bool end_is_legal(const struct residency *r, uint32_t item_count, struct simulation *out)
{
    const struct policy_problem *p = r->graph->problem;
    if (r->position != p->operation_count)
        return refuse_at(out, item_count, STEP_OUT_OF_ORDER, POLICY_NONE, 0);
    for (uint32_t v = 0; v < p->version_count; v++)
        if (residency_is_due(r, v) && !residency_has(r, v))
            return refuse_at(out, item_count, STEP_ABSENT, v, 0);
        else if (residency_is_owed(r, v) && !(r->state[v] & RESIDENCY_ON_HOST))
            return refuse_at(out, item_count, STEP_NOT_ON_HOST, v, 0);
    return true;
}

static bool execute(struct residency *r, struct timing *t, const struct plan_item *items, uint32_t count,
                    struct simulation *out, uint64_t *bytes_at)
{
    uint32_t first = 0;
    for (; first < count && !r->has_begun && items[first].verb == PLAN_DROP; first++) {
        if (!residency_step(r, items[first]))
            return refuse_at(out, first, r->fault.result, r->fault.version, r->fault.bytes);
        if (bytes_at)
            bytes_at[first] = r->step_bytes;
    }
    out->peak_bytes = r->has_begun ? r->step_bytes : r->bytes;
    if (out->peak_bytes > r->cap)
        return refuse_at(out, first, STEP_OVER_CAP, POLICY_NONE, out->peak_bytes);
    for (uint32_t k = first; k < count; k++) {
        bool was_on_host = is_on_host(r, items[k]);
        if (!residency_step(r, items[k]))
            return refuse_at(out, k, r->fault.result, r->fault.version, r->fault.bytes);
        if (bytes_at)
            bytes_at[k] = r->step_bytes;
        account(out, t, r, items[k], was_on_host);
    }
    if (!end_is_legal(r, count, out))
        return false;
    uint64_t end = later(later(t->clock, t->in_free), t->out_free);
    out->added_nanoseconds = end - out->run_nanoseconds;
    return true;
}

enum simulation_result simulate_plan(const struct graph *graph, const struct plan_item *items, uint32_t item_count,
                                     uint64_t cap, struct simulation *out, uint64_t *bytes_at)
{
    struct residency residency;
    struct timing timing;
    enum simulation_result result = SIMULATION_NO_MEMORY;
    *out = (struct simulation){.fault = {.version = POLICY_NONE}};
    bool has_timing = timing_begin(&timing, graph, items, item_count);
    bool has_residency = residency_begin(&residency, graph, cap);
    if (has_timing && has_residency)
        result = execute(&residency, &timing, items, item_count, out, bytes_at) ? SIMULATION_DONE : SIMULATION_REFUSED;
    residency_end(&residency);
    free(timing.ready);
    free(timing.pending);
    return result;
}
