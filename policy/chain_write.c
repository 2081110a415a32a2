/* Executes a chain strategy's choices: which stages to run forward when, what to drop after. */
#include "policy/chain.h"
#include "policy/residency.h"
#include <stdlib.h>

enum task_kind { TASK_SOLVE, TASK_BACK, TASK_FORGET };

struct task {
    enum task_kind kind;
    uint32_t a, b, memory;
};

struct writer {
    const struct chain *chain;
    struct residency residency;
    uint32_t *leaving_first, *leaving; /* per stage: the versions that no later stage needs before the turn */
    struct item_list *out;
    struct task *tasks;
    uint32_t task_count;
    bool has_failed;
};

static void put(struct writer *w, enum plan_verb verb, uint32_t index)
{
    if (w->has_failed || !residency_step(&w->residency, (struct plan_item){(uint32_t)verb, index}) ||
        !items_append(w->out, verb, index))
        w->has_failed = true;
}

static bool can_drop(const struct writer *w, uint32_t v)
{
    const struct graph *g = w->chain->graph;
    const struct policy_version *version = &g->problem->versions[v];
    return residency_has(&w->residency, v) && version->droppable_from <= w->residency.position && version->bytes > 0 &&
           !version->is_kept && graph_replaced_at(g, v) >= w->chain->turn &&
           (g->last_need[v] < w->chain->turn || g->rebuildable_until[v] >= g->last_need[v]);
}

/* Drops what stages a .. k make and no stage above k needs before the turn. */
static void drop_passed(struct writer *w, uint32_t a, uint32_t k)
{
    const struct chain *c = w->chain;
    for (uint32_t n = w->leaving_first[k]; n < w->leaving_first[k + 1]; n++) {
        uint32_t v = w->leaving[n];
        if (c->home[v] >= a && can_drop(w, v))
            put(w, PLAN_DROP, v);
    }
}

/* Drops all that stages a .. k make. */
static void drop_stages(struct writer *w, uint32_t a, uint32_t k)
{
    const struct chain *c = w->chain;
    const struct policy_problem *p = c->graph->problem;
    for (uint32_t o = c->stages[a].first_operation; o < c->stages[k + 1].first_operation; o++)
        for (uint32_t n = 0; n < p->operations[o].write_count; n++) {
            uint32_t v = p->writes[p->operations[o].first_write + n];
            if (can_drop(w, v))
                put(w, PLAN_DROP, v);
        }
}

static bool lacks_output(const struct writer *w, uint32_t o)
{
    const struct policy_problem *p = w->chain->graph->problem;
    for (uint32_t n = 0; n < p->operations[o].write_count; n++)
        if (!residency_has(&w->residency, p->writes[p->operations[o].first_write + n]))
            return true;
    return false;
}

static void run_stage(struct writer *w, uint32_t k)
{
    const struct chain *c = w->chain;
    for (uint32_t o = c->stages[k].first_operation; o < c->stages[k + 1].first_operation && !w->has_failed; o++) {
        if (o == w->residency.position)
            put(w, PLAN_RUN, o);
        else if (c->graph->until[o] >= w->residency.position && lacks_output(w, o))
            put(w, PLAN_REPLAY, o);
    }
}

static void push(struct writer *w, struct task task)
{
    w->tasks[w->task_count++] = task;
}

static void solve(struct writer *w, struct task t, chain_chooser *choose, void *context)
{
    if (t.a == t.b) {
        run_stage(w, t.a);
        push(w, (struct task){TASK_BACK, t.a, t.a, 0});
        return;
    }
    struct chain_choice choice = choose(context, t.a, t.b, t.memory);
    if (choice.keeps_tape) {
        run_stage(w, t.a);
        push(w, (struct task){TASK_BACK, t.a, t.a, 0});
        push(w, (struct task){TASK_SOLVE, t.a + 1, t.b, choice.memory_after});
        return;
    }
    for (uint32_t k = t.a; k < choice.split; k++) {
        run_stage(w, k);
        drop_passed(w, t.a, k);
    }
    push(w, (struct task){TASK_SOLVE, t.a, choice.split - 1, t.memory});
    push(w, (struct task){TASK_FORGET, t.a, choice.split - 1, 0});
    push(w, (struct task){TASK_SOLVE, choice.split, t.b, choice.memory_after});
}

static void run_back(struct writer *w, uint32_t stage)
{
    const struct chain *c = w->chain;
    uint32_t n = c->graph->problem->operation_count;
    while (w->residency.position < n && w->residency.position >= c->turn &&
           c->back_stage[w->residency.position] == stage && !w->has_failed)
        put(w, PLAN_RUN, w->residency.position);
    drop_stages(w, stage, stage);
}

static void write_all(struct writer *w, chain_chooser *choose, void *context, uint32_t memory)
{
    const struct chain *c = w->chain;
    uint32_t stage_limit = 3 * c->stage_count + 8, operations = c->graph->problem->operation_count;
    push(w, (struct task){TASK_SOLVE, 0, c->stage_count - 1, memory});
    while (w->task_count && !w->has_failed && w->residency.position < operations) {
        struct task t = w->tasks[--w->task_count];
        if (w->task_count + 4 > stage_limit)
            w->has_failed = true;
        else if (t.kind == TASK_SOLVE)
            solve(w, t, choose, context);
        else if (t.kind == TASK_BACK)
            run_back(w, t.a);
        else
            drop_stages(w, t.a, t.b);
    }
    w->has_failed |= w->residency.position != operations;
}

/* The versions in the order of the last stage that needs them before the turn. */
static bool sort_by_last_stage(struct writer *w)
{
    const struct chain *c = w->chain;
    uint32_t versions = c->graph->problem->version_count;
    w->leaving_first = calloc((size_t)c->stage_count + 2, sizeof *w->leaving_first);
    w->leaving = malloc(((size_t)versions + 1) * sizeof *w->leaving);
    if (!w->leaving_first || !w->leaving)
        return false;
    for (uint32_t v = 0; v < versions; v++)
        if (c->home[v] != POLICY_NONE)
            w->leaving_first[c->last_stage[v] + 2]++;
    for (uint32_t k = 2; k <= c->stage_count + 1; k++)
        w->leaving_first[k] += w->leaving_first[k - 1];
    for (uint32_t v = 0; v < versions; v++)
        if (c->home[v] != POLICY_NONE)
            w->leaving[w->leaving_first[c->last_stage[v] + 1]++] = v;
    return true;
}

bool chain_write(const struct chain *chain, chain_chooser *choose, void *context, uint32_t memory,
                 struct item_list *out)
{
    struct writer w = {.chain = chain, .out = out};
    w.tasks = malloc(sizeof *w.tasks * (3 * (size_t)chain->stage_count + 16));
    bool is_done = w.tasks && sort_by_last_stage(&w) && residency_begin(&w.residency, chain->graph, UINT64_MAX);
    if (is_done) {
        write_all(&w, choose, context, memory);
        is_done = !w.has_failed;
    }
    residency_end(&w.residency);
    free(w.leaving_first);
    free(w.leaving);
    free(w.tasks);
    if (!is_done)
        items_release(out);
    return is_done;
}
