/* From the timeline back to a plan: every version is dropped right after its last use. */
#include "policy/timeline.h"
#include <stdlib.h>
#include <string.h>

/* The versions whose last use is each execution, as lists over the entries of last_uses. */
struct endings {
    uint32_t *head, *next, *version;
};

static bool endings_begin(struct endings *e, const struct timeline *t)
{
    size_t executions = (size_t)t->execution_count + 1, entries = (size_t)t->last_use_count + 1;
    e->head = malloc(sizeof *e->head * executions);
    e->next = malloc(sizeof *e->next * entries * 2);
    if (!e->head || !e->next)
        return false;
    e->version = e->next + entries;
    memset(e->head, 0xff, sizeof *e->head * executions);
    for (uint32_t gap = 0; gap <= t->operation_count; gap++)
        for (uint32_t j = 0; j < t->gaps[gap].count; j++) {
            const struct execution *x = &t->executions[t->gaps[gap].executions[j]];
            for (uint32_t k = 0; k < timeline_output_count(t, x->operation); k++) {
                uint32_t entry = x->first_output + k, last = t->last_uses[entry];
                e->version[entry] = timeline_output(t, x->operation, k);
                e->next[entry] = e->head[last];
                e->head[last] = entry;
            }
        }
    return true;
}

static bool write_drops(const struct endings *e, const struct timeline *t, uint32_t x, struct item_list *out)
{
    uint32_t o = t->executions[x].operation;
    bool is_done = true;
    for (uint32_t entry = e->head[x]; entry != POLICY_NONE && is_done; entry = e->next[entry]) {
        uint32_t v = e->version[entry];
        bool is_taken = t->graph->replaced_by[v] != POLICY_NONE && graph_replaced_at(t->graph, v) == o;
        if (!is_taken)
            is_done = items_append(out, PLAN_DROP, v);
    }
    return is_done;
}

static bool write_all(const struct endings *e, const struct timeline *t, struct item_list *out)
{
    bool is_done = true;
    for (uint32_t gap = 0; gap <= t->operation_count && is_done; gap++)
        for (uint32_t k = 0; k < t->gaps[gap].count && is_done; k++) {
            uint32_t x = t->gaps[gap].executions[k], o = t->executions[x].operation;
            if (o < t->operation_count)
                is_done = items_append(out, t->executions[x].replay == POLICY_NONE ? PLAN_RUN : PLAN_REPLAY, o);
            if (o != t->operation_count + 1)
                is_done = is_done && write_drops(e, t, x, out);
        }
    return is_done;
}

bool timeline_write(const struct timeline *t, struct item_list *out)
{
    struct endings e = {0};
    bool is_done = endings_begin(&e, t) && write_all(&e, t, out);
    free(e.head);
    free(e.next);
    if (!is_done)
        items_release(out);
    return is_done;
}
