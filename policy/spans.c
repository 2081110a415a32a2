#include "policy/spans.h"
#include <stdlib.h>
#include <string.h>

static bool is_skeleton(uint32_t verb)
{
    return verb == PLAN_RUN || verb == PLAN_REPLAY || verb == PLAN_SWAP_IN;
}

static bool allocate(struct spans *s, const struct item_list *plan)
{
    const struct graph *g = s->graph;
    const struct policy_problem *p = g->problem;
    size_t entries = 1, needs = 1, made = (size_t)p->version_count + 1;
    for (uint32_t k = 0; k < plan->count; k++) {
        struct plan_item item = plan->items[k];
        if (!is_skeleton(item.verb))
            continue;
        entries++;
        needs += item.verb == PLAN_SWAP_IN ? 0 : g->need_first[item.index + 1] - g->need_first[item.index];
        made += item.verb == PLAN_SWAP_IN ? 1 : p->operations[item.index].write_count;
    }
    s->skeleton = malloc(sizeof *s->skeleton * entries);
    s->is_dead = calloc(entries, sizeof *s->is_dead);
    s->bytes_during = calloc(entries, sizeof *s->bytes_during);
    s->spans = malloc(sizeof *s->spans * made);
    s->span_capacity = (uint32_t)made;
    s->need_first = malloc(sizeof(uint32_t) * (entries + 1));
    s->needs = malloc(sizeof(uint32_t) * needs);
    s->made_first = malloc(sizeof(uint32_t) * (entries + 1));
    s->made = malloc(sizeof(uint32_t) * made);
    s->uses = malloc(sizeof(uint32_t) * (needs + made));
    s->pending = malloc(sizeof(uint32_t) * (needs + 1));
    s->run_entry = malloc(sizeof(uint32_t) * ((size_t)p->operation_count + 1));
    return s->skeleton && s->is_dead && s->bytes_during && s->spans && s->need_first && s->needs && s->made_first &&
           s->made && s->uses && s->pending && s->run_entry;
}

static uint32_t open_span(struct spans *s, uint32_t *current, uint32_t *latest, uint32_t version, uint32_t start)
{
    uint32_t index = s->span_count++;
    s->spans[index] = (struct span){.version = version,
                                    .start = start,
                                    .last_use = POLICY_NONE,
                                    .before = POLICY_NONE,
                                    .after = POLICY_NONE,
                                    .previous = latest[version]};
    current[version] = latest[version] = index;
    return index;
}

static void record_operation(struct spans *s, const struct residency *r, struct plan_item item, uint32_t *current,
                             uint32_t *latest, uint32_t *need_count, uint32_t *made_count)
{
    const struct graph *g = s->graph;
    const struct policy_problem *p = g->problem;
    const struct policy_operation *op = &p->operations[item.index];
    uint32_t entry = s->skeleton_count;
    for (uint32_t k = g->need_first[item.index]; k < g->need_first[item.index + 1]; k++) {
        bool is_read = k < g->need_first[item.index] + op->read_count;
        if (is_read || !residency_has(r, g->replaced_by[g->needs[k]]))
            s->needs[(*need_count)++] = current[g->needs[k]];
    }
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k], old = p->versions[v].replaces;
        if (residency_has(r, v))
            continue;
        if (old != POLICY_NONE)
            s->spans[current[old]].was_replaced = true;
        s->made[(*made_count)++] = open_span(s, current, latest, v, entry);
    }
}

void spans_account(struct spans_found *found, const struct residency *r, struct plan_item item)
{
    if (r->step_bytes > found->peak_bytes)
        found->peak_bytes = r->step_bytes;
    if (item.verb == PLAN_REPLAY)
        found->replay_nanoseconds += r->graph->problem->operations[item.index].nanoseconds;
    found->has_swaps |= item.verb == PLAN_SWAP_IN || item.verb == PLAN_SWAP_OUT || !r->has_begun;
}

static bool walk(struct spans *s, const struct item_list *plan, struct residency *r, uint32_t *current,
                 uint32_t *latest, struct spans_found *found)
{
    uint32_t need_count = 0, made_count = 0;
    *found = (struct spans_found){.peak_bytes = r->bytes};
    for (uint32_t v = 0; v < s->graph->problem->version_count; v++) {
        latest[v] = current[v] = POLICY_NONE;
        if (residency_has(r, v))
            open_span(s, current, latest, v, POLICY_NONE);
    }
    for (uint32_t k = 0; k < plan->count; k++) {
        struct plan_item item = plan->items[k];
        uint32_t entry = s->skeleton_count;
        if (is_skeleton(item.verb)) {
            s->need_first[entry] = need_count;
            s->made_first[entry] = made_count;
            s->skeleton[entry] = item;
        }
        if (item.verb == PLAN_RUN)
            s->run_entry[item.index] = entry;
        if (item.verb == PLAN_RUN || item.verb == PLAN_REPLAY)
            record_operation(s, r, item, current, latest, &need_count, &made_count);
        else if (item.verb == PLAN_SWAP_IN)
            s->made[made_count++] = open_span(s, current, latest, item.index, entry);
        if (!residency_step(r, item))
            return false;
        spans_account(found, r, item);
        if (is_skeleton(item.verb))
            s->bytes_during[s->skeleton_count++] = r->step_bytes;
    }
    for (uint32_t k = 0; k < s->span_count && s->spans[k].start == POLICY_NONE; k++)
        s->spans[k].starts_on_host = r->state[s->spans[k].version] & RESIDENCY_STARTED_ON_HOST;
    s->need_first[s->skeleton_count] = need_count;
    s->made_first[s->skeleton_count] = made_count;
    found->is_complete = residency_is_complete(r);
    return true;
}

/* Sorts the needs by span into uses; kept versions are used by the end. */
static bool fill_uses(struct spans *s, const struct residency *r, const uint32_t *current)
{
    const struct policy_problem *p = s->graph->problem;
    uint32_t *count = calloc((size_t)s->span_count + 1, sizeof *count);
    if (!count)
        return false;
    for (uint32_t k = 0; k < s->need_first[s->skeleton_count]; k++)
        count[s->needs[k]]++;
    for (uint32_t v = 0; v < p->version_count; v++)
        if (residency_is_due(r, v))
            count[current[v]]++;
    uint32_t first = 0;
    for (uint32_t k = 0; k < s->span_count; k++) {
        s->spans[k].use_first = s->spans[k].use_end = first;
        first += count[k];
    }
    for (uint32_t entry = 0; entry < s->skeleton_count; entry++)
        for (uint32_t k = s->need_first[entry]; k < s->need_first[entry + 1]; k++)
            s->uses[s->spans[s->needs[k]].use_end++] = entry;
    for (uint32_t v = 0; v < p->version_count; v++)
        if (residency_is_due(r, v))
            s->uses[s->spans[current[v]].use_end++] = s->skeleton_count;
    for (uint32_t k = 0; k < s->span_count; k++)
        if (s->spans[k].use_end > s->spans[k].use_first)
            s->spans[k].last_use = s->uses[s->spans[k].use_end - 1];
    free(count);
    return true;
}

bool spans_collect(struct spans *s, const struct graph *graph, const struct item_list *plan, struct spans_found *found)
{
    *s = (struct spans){.graph = graph};
    size_t versions = (size_t)graph->problem->version_count + 1;
    struct residency r = {0};
    uint32_t *current = malloc(sizeof *current * versions * 2);
    bool is_done = current && allocate(s, plan) && residency_begin(&r, graph, UINT64_MAX) &&
                   walk(s, plan, &r, current, current + versions, found) && fill_uses(s, &r, current);
    residency_end(&r);
    free(current);
    if (!is_done)
        spans_release(s);
    return is_done;
}

void spans_release(struct spans *s)
{
    free(s->skeleton);
    free(s->is_dead);
    free(s->bytes_during);
    free(s->spans);
    free(s->need_first);
    free(s->needs);
    free(s->made_first);
    free(s->made);
    free(s->uses);
    free(s->pending);
    free(s->run_entry);
    *s = (struct spans){0};
}

/* Last living use of a whole chain of continued spans, given the span at its end. */
static uint32_t find_last_use(struct spans *s, uint32_t span)
{
    for (uint32_t at = span; at != POLICY_NONE; at = s->spans[at].before) {
        struct span *here = &s->spans[at];
        while (here->use_end > here->use_first) {
            uint32_t entry = s->uses[here->use_end - 1];
            if (entry == s->skeleton_count || !s->is_dead[entry])
                return entry;
            here->use_end--;
        }
    }
    return POLICY_NONE;
}

uint32_t spans_chain_end(struct spans *s, uint32_t span)
{
    struct span *all = s->spans;
    for (uint32_t next; (next = all[span].after) != POLICY_NONE; span = next)
        if (all[next].after != POLICY_NONE)
            all[span].after = all[next].after; /* chains of thousands are walked again and again */
    return span;
}

static bool is_useless(struct spans *s, uint32_t entry)
{
    if (s->is_dead[entry] || s->skeleton[entry].verb == PLAN_RUN)
        return false;
    for (uint32_t k = s->made_first[entry]; k < s->made_first[entry + 1]; k++) {
        const struct span *end = &s->spans[spans_chain_end(s, s->made[k])];
        if (end->start == entry && end->last_use != POLICY_NONE)
            return false;
    }
    return true;
}

/* First entry from which on the version of `span` may be gone, given its last use. */
static uint32_t gone_from(const struct spans *s, const struct span *span)
{
    uint32_t droppable = s->graph->problem->versions[span->version].droppable_from;
    uint32_t from = span->last_use != POLICY_NONE ? span->last_use + 1
                    : span->start != POLICY_NONE  ? span->start + 1
                                                  : 0;
    if (droppable > s->graph->problem->operation_count)
        return s->skeleton_count;
    if (droppable && s->run_entry[droppable - 1] + 1 > from)
        return s->run_entry[droppable - 1] + 1;
    return from;
}

void spans_remove(struct spans *s, uint32_t entry, spans_shrink *on_shrink, void *context)
{
    uint32_t count = 0;
    s->pending[count++] = entry;
    while (count) {
        uint32_t at = s->pending[--count];
        if (s->is_dead[at])
            continue;
        s->is_dead[at] = true;
        for (uint32_t k = s->need_first[at]; k < s->need_first[at + 1]; k++) {
            struct span *span = &s->spans[spans_chain_end(s, s->needs[k])];
            uint32_t old = gone_from(s, span);
            span->last_use = find_last_use(s, (uint32_t)(span - s->spans));
            uint32_t from = gone_from(s, span);
            if (on_shrink && from < old)
                on_shrink(context, from, old, s->graph->problem->versions[span->version].bytes);
            if (span->last_use == POLICY_NONE && span->start != POLICY_NONE && is_useless(s, span->start))
                s->pending[count++] = span->start;
        }
    }
}

void spans_remove_useless(struct spans *s)
{
    for (uint32_t entry = s->skeleton_count; entry-- > 0;)
        if (is_useless(s, entry))
            spans_remove(s, entry, NULL, NULL);
}

void spans_join(struct spans *s, uint32_t later)
{
    uint32_t earlier = spans_chain_end(s, s->spans[later].previous);
    s->spans[later].before = earlier;
    s->spans[later].start = s->spans[earlier].start;
    s->spans[earlier].after = later;
}
