/* Turns the living entries of a skeleton back into a plan, with every drop as early as it can be. */
#include "policy/spans.h"
#include <stdlib.h>
#include <string.h>

struct writer {
    struct spans *spans;
    struct residency residency;
    struct item_list *out;
    uint32_t *claim;    /* per version: entry up to which it is wanted; POLICY_NONE = not at all */
    uint32_t *swap_ins; /* per version: swap-ins still to come */
    uint32_t *wake_head, *wake_next;
    struct spans_found found;
    bool has_failed;
};

static void put(struct writer *w, enum plan_verb verb, uint32_t index)
{
    struct plan_item item = {(uint32_t)verb, index};
    if (w->has_failed || !residency_step(&w->residency, item) || !items_append(w->out, verb, index))
        w->has_failed = true;
    else
        spans_account(&w->found, &w->residency, item);
}

static void drop(struct writer *w, uint32_t v)
{
    const struct policy_version *version = &w->spans->graph->problem->versions[v];
    if (!residency_has(&w->residency, v) || version->droppable_from == POLICY_NONE)
        return;
    if (version->droppable_from <= w->residency.position) {
        bool is_owed = residency_is_owed(&w->residency, v);
        bool needs_copy = (w->swap_ins[v] || is_owed) && !(w->residency.state[v] & RESIDENCY_ON_HOST);
        put(w, needs_copy ? PLAN_SWAP_OUT : PLAN_DROP, v);
    } else if (version->droppable_from <= w->spans->graph->problem->operation_count && w->wake_next[v] == v) {
        w->wake_next[v] = w->wake_head[version->droppable_from];
        w->wake_head[version->droppable_from] = v;
    }
}

static bool is_claimed(const struct writer *w, uint32_t v, uint32_t entry)
{
    return w->claim[v] != POLICY_NONE && w->claim[v] > entry;
}

static void wake(struct writer *w, uint32_t entry)
{
    uint32_t v = w->wake_head[w->residency.position];
    w->wake_head[w->residency.position] = POLICY_NONE;
    while (v != POLICY_NONE) {
        uint32_t next = w->wake_next[v];
        w->wake_next[v] = v;
        if (!is_claimed(w, v, entry))
            drop(w, v);
        v = next;
    }
}

static void settle_entry(struct writer *w, uint32_t entry)
{
    struct spans *s = w->spans;
    const struct policy_problem *p = s->graph->problem;
    struct plan_item item = s->skeleton[entry];
    for (uint32_t k = s->need_first[entry]; k < s->need_first[entry + 1]; k++)
        if (!is_claimed(w, s->spans[s->needs[k]].version, entry))
            drop(w, s->spans[s->needs[k]].version);
    if (item.verb == PLAN_SWAP_IN)
        return;
    const struct policy_operation *op = &p->operations[item.index];
    for (uint32_t k = 0; k < op->write_count; k++)
        if (!is_claimed(w, p->writes[op->first_write + k], entry))
            drop(w, p->writes[op->first_write + k]);
    if (item.verb == PLAN_RUN)
        wake(w, entry);
}

static void write_entry(struct writer *w, uint32_t entry)
{
    struct spans *s = w->spans;
    struct plan_item item = s->skeleton[entry];
    if (item.verb == PLAN_SWAP_IN)
        w->swap_ins[item.index]--;
    for (uint32_t k = s->made_first[entry]; k < s->made_first[entry + 1]; k++) {
        const struct span *end = &s->spans[spans_chain_end(s, s->made[k])];
        w->claim[end->version] = end->last_use;
    }
    put(w, (enum plan_verb)item.verb, item.index);
    settle_entry(w, entry);
}

static bool writer_begin(struct writer *w, struct spans *s, struct item_list *out)
{
    size_t versions = (size_t)s->graph->problem->version_count + 1,
           positions = (size_t)s->graph->problem->operation_count + 2;
    *w = (struct writer){.spans = s, .out = out};
    w->claim = malloc(sizeof(uint32_t) * versions);
    w->swap_ins = calloc(versions, sizeof(uint32_t));
    w->wake_head = malloc(sizeof(uint32_t) * positions);
    w->wake_next = malloc(sizeof(uint32_t) * versions);
    if (!w->claim || !w->swap_ins || !w->wake_head || !w->wake_next ||
        !residency_begin(&w->residency, s->graph, UINT64_MAX))
        return false;
    memset(w->claim, 0xff, sizeof(uint32_t) * versions);
    memset(w->wake_head, 0xff, sizeof(uint32_t) * positions);
    for (uint32_t v = 0; v + 1 < versions; v++)
        w->wake_next[v] = v;
    return true;
}

static void write_all(struct writer *w)
{
    struct spans *s = w->spans;
    for (uint32_t entry = 0; entry < s->skeleton_count; entry++)
        if (!s->is_dead[entry] && s->skeleton[entry].verb == PLAN_SWAP_IN)
            w->swap_ins[s->skeleton[entry].index]++;
    for (uint32_t k = 0; k < s->span_count && s->spans[k].start == POLICY_NONE; k++)
        if (s->spans[k].starts_on_host)
            put(w, PLAN_DROP, s->spans[k].version);
    for (uint32_t k = 0; k < s->span_count && s->spans[k].start == POLICY_NONE; k++) {
        if (s->spans[k].before != POLICY_NONE)
            break;
        const struct span *end = &s->spans[spans_chain_end(s, k)];
        w->claim[end->version] = end->last_use;
        if (end->last_use == POLICY_NONE)
            drop(w, end->version);
    }
    for (uint32_t entry = 0; entry < s->skeleton_count && !w->has_failed; entry++)
        if (!s->is_dead[entry])
            write_entry(w, entry);
}

bool spans_write(struct spans *s, struct item_list *out, struct spans_found *found)
{
    struct writer w;
    bool is_done = writer_begin(&w, s, out);
    if (is_done) {
        w.found.peak_bytes = w.residency.bytes;
        write_all(&w);
        is_done = !w.has_failed;
        w.found.is_complete = is_done && residency_is_complete(&w.residency);
        *found = w.found;
    }
    residency_end(&w.residency);
    free(w.claim);
    free(w.swap_ins);
    free(w.wake_head);
    free(w.wake_next);
    if (!is_done)
        items_release(out);
    return is_done;
}
