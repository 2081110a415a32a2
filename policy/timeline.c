#include "policy/timeline.h"
#include "policy/simulate.h"
#include <stdlib.h>
#include <string.h>

static uint32_t start_of(const struct timeline *t)
{
    return t->operation_count;
}

static uint32_t end_of(const struct timeline *t)
{
    return t->operation_count + 1;
}

static uint32_t producer_of(const struct timeline *t, uint32_t v)
{
    uint32_t producer = t->graph->problem->versions[v].producer;
    return producer == POLICY_NONE ? start_of(t) : producer;
}

static int64_t bytes_of(const struct timeline *t, uint32_t v)
{
    return (int64_t)t->graph->problem->versions[v].bytes;
}

static bool grow(void **array, size_t element, uint32_t needed, uint32_t *capacity)
{
    if (needed <= *capacity)
        return true;
    uint32_t larger_capacity = *capacity + *capacity / 2 + 8 > needed ? *capacity + *capacity / 2 + 8 : needed;
    void *grown = realloc(*array, element * larger_capacity);
    if (!grown)
        return false;
    *array = grown;
    *capacity = larger_capacity;
    return true;
}

/* An execution of o that is nowhere yet. */
static uint32_t new_execution(struct timeline *t, uint32_t o)
{
    uint32_t x = t->dead_of[o], outputs = timeline_output_count(t, o);
    if (x != POLICY_NONE) {
        t->dead_of[o] = t->executions[x].replay;
        return x;
    }
    if (!grow((void **)&t->executions, sizeof *t->executions, t->execution_count + 1, &t->execution_capacity) ||
        !grow((void **)&t->last_uses, sizeof *t->last_uses, t->last_use_count + outputs, &t->last_use_capacity))
        return POLICY_NONE;
    x = t->execution_count++;
    t->executions[x] = (struct execution){.operation = o, .first_output = t->last_use_count, .replay = POLICY_NONE};
    t->last_use_count += outputs;
    return x;
}

static bool enter_gap(struct timeline *t, uint32_t x, uint32_t gap, uint32_t slot, int64_t bytes)
{
    struct gap *g = &t->gaps[gap];
    if (g->count == g->capacity) {
        uint32_t capacity = g->capacity * 2 + 2;
        uint32_t *executions = realloc(g->executions, sizeof *executions * capacity);
        if (!executions)
            return false;
        g->executions = executions;
        int64_t *held = realloc(g->bytes, sizeof *held * capacity);
        if (!held)
            return false;
        g->bytes = held;
        g->capacity = capacity;
    }
    memmove(&g->executions[slot + 1], &g->executions[slot], sizeof *g->executions * (g->count - slot));
    memmove(&g->bytes[slot + 1], &g->bytes[slot], sizeof *g->bytes * (g->count - slot));
    g->executions[slot] = x;
    g->bytes[slot] = bytes;
    g->count++;
    t->executions[x].gap = gap;
    for (uint32_t k = slot; k < g->count; k++)
        t->executions[g->executions[k]].slot = k;
    return true;
}

static void leave_gap(struct timeline *t, uint32_t x)
{
    uint32_t gap = t->executions[x].gap, slot = t->executions[x].slot;
    struct gap *g = &t->gaps[gap];
    g->count--;
    memmove(&g->executions[slot], &g->executions[slot + 1], sizeof *g->executions * (g->count - slot));
    memmove(&g->bytes[slot], &g->bytes[slot + 1], sizeof *g->bytes * (g->count - slot));
    for (uint32_t k = slot; k < g->count; k++)
        t->executions[g->executions[k]].slot = k;
    timeline_refresh(t, gap);
}

/* Index in runs_of[o] of the first execution that is not before x. */
static uint32_t rank_of(const struct timeline *t, uint32_t o, uint32_t x)
{
    uint32_t k = t->run_count[o], gap = t->executions[x].gap;
    if (o < t->operation_count && gap < o)
        return 0; /* the first is the run, in gap o */
    if (o < t->operation_count && gap > o && k == 1)
        return 1;
    while (k > 0 && !timeline_is_before(t, t->runs_of[o][k - 1], x))
        k--;
    return k;
}

static bool enter_list(struct timeline *t, uint32_t o, uint32_t x)
{
    if (!grow((void **)&t->runs_of[o], sizeof **t->runs_of, t->run_count[o] + 1, &t->run_capacity[o]))
        return false;
    uint32_t k = rank_of(t, o, x);
    memmove(&t->runs_of[o][k + 1], &t->runs_of[o][k], sizeof **t->runs_of * (t->run_count[o] - k));
    t->runs_of[o][k] = x;
    t->run_count[o]++;
    return true;
}

static void leave_list(struct timeline *t, uint32_t o, uint32_t x)
{
    uint32_t k = rank_of(t, o, x);
    t->run_count[o]--;
    memmove(&t->runs_of[o][k], &t->runs_of[o][k + 1], sizeof **t->runs_of * (t->run_count[o] - k));
}

static uint32_t before_in_list(const struct timeline *t, uint32_t o, uint32_t x)
{
    uint32_t k = rank_of(t, o, x);
    return k ? t->runs_of[o][k - 1] : POLICY_NONE;
}

uint32_t timeline_source(const struct timeline *t, uint32_t v, uint32_t at)
{
    return before_in_list(t, producer_of(t, v), at);
}

static uint32_t *last_use_of(const struct timeline *t, uint32_t source, uint32_t v)
{
    return &t->last_uses[t->executions[source].first_output + t->output_index[v]];
}

uint32_t timeline_last_use(const struct timeline *t, uint32_t source, uint32_t v)
{
    return *last_use_of(t, source, v);
}

/* The next execution of the same operation, or POLICY_NONE. */
static uint32_t successor(const struct timeline *t, uint32_t x)
{
    uint32_t o = t->executions[x].operation, k = rank_of(t, o, x);
    return k + 1 < t->run_count[o] ? t->runs_of[o][k + 1] : POLICY_NONE;
}

/* The consumer among the executions of o that is latest within (source, limit), if later than `best`. */
static uint32_t latest(const struct timeline *t, uint32_t o, uint32_t limit, uint32_t best)
{
    uint32_t k = limit == POLICY_NONE ? t->run_count[o] : rank_of(t, o, limit);
    return k && timeline_is_before(t, best, t->runs_of[o][k - 1]) ? t->runs_of[o][k - 1] : best;
}

/* Looks for the last use among all consumers. */
static uint32_t find_last_use(struct timeline *t, uint32_t source, uint32_t v)
{
    const struct graph *g = t->graph;
    uint32_t limit = successor(t, source), last = source, n = t->operation_count;
    for (uint32_t k = g->reader_first[v]; k < g->reader_first[v + 1]; k++)
        last = latest(t, g->readers[k], limit, last);
    t->work += g->reader_first[v + 1] - g->reader_first[v];
    if (g->problem->versions[v].is_kept)
        last = latest(t, end_of(t), limit, last);
    if (g->replaced_by[v] != POLICY_NONE)
        return last; /* its bytes pass on to another version */
    uint32_t droppable = g->problem->versions[v].droppable_from;
    if (droppable > n)
        last = latest(t, end_of(t), limit, last);
    else if (droppable && timeline_is_before(t, last, t->runs_of[droppable - 1][0]))
        last = t->runs_of[droppable - 1][0];
    return last;
}

static void set_last_use(struct timeline *t, uint32_t source, uint32_t v, uint32_t last)
{
    uint32_t *held = last_use_of(t, source, v), old = *held;
    *held = last;
    if (timeline_is_before(t, old, last))
        timeline_add(t, old, last, bytes_of(t, v));
    else if (old != last)
        timeline_add(t, last, old, -bytes_of(t, v));
}

uint32_t timeline_next_use(const struct timeline *t, uint32_t source, uint32_t v, uint32_t at)
{
    const struct graph *g = t->graph;
    uint32_t limit = successor(t, source), next = POLICY_NONE;
    for (uint32_t k = g->reader_first[v]; k <= g->reader_first[v + 1]; k++) {
        bool is_end = k == g->reader_first[v + 1];
        if (is_end && !g->problem->versions[v].is_kept)
            break;
        uint32_t o = is_end ? end_of(t) : g->readers[k], first = rank_of(t, o, at);
        if (first < t->run_count[o] && t->runs_of[o][first] == at)
            first++;
        if (first == t->run_count[o])
            continue;
        uint32_t x = t->runs_of[o][first];
        if ((limit == POLICY_NONE || timeline_is_before(t, x, limit)) &&
            (next == POLICY_NONE || timeline_is_before(t, x, next)))
            next = x;
    }
    return next;
}

bool timeline_is_useless(const struct timeline *t, uint32_t x)
{
    const struct execution *e = &t->executions[x];
    for (uint32_t k = 0; k < timeline_output_count(t, e->operation); k++)
        if (t->last_uses[e->first_output + k] != x)
            return false;
    return true;
}

/* --- editing --- */

/* What counts during an execution of o beside what is present before it. */
static int64_t own_bytes(const struct timeline *t, uint32_t o, bool is_replay)
{
    if (o >= t->operation_count)
        return 0;
    const struct policy_operation *op = &t->graph->problem->operations[o];
    int64_t bytes = (int64_t)op->workspace_bytes + (is_replay ? (int64_t)op->scratch_bytes : 0);
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = timeline_output(t, o, k);
        bytes += t->graph->problem->versions[v].replaces == POLICY_NONE ? bytes_of(t, v) : 0;
    }
    return bytes;
}

static void use_inputs(struct timeline *t, uint32_t x)
{
    const struct graph *g = t->graph;
    uint32_t o = t->executions[x].operation;
    for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++) {
        uint32_t source = timeline_source(t, g->needs[k], x);
        if (timeline_is_before(t, timeline_last_use(t, source, g->needs[k]), x))
            set_last_use(t, source, g->needs[k], x);
    }
}

static void list_replay(struct timeline *t, uint32_t x)
{
    t->executions[x].replay = t->replay_count;
    t->replays[t->replay_count++] = x;
    t->cost += t->graph->problem->operations[t->executions[x].operation].nanoseconds;
}

uint32_t timeline_insert(struct timeline *t, uint32_t o, uint32_t next)
{
    uint32_t x = new_execution(t, o), gap = t->executions[next].gap, slot = t->executions[next].slot;
    if (x == POLICY_NONE || !grow((void **)&t->replays, sizeof *t->replays, t->replay_count + 1, &t->replay_capacity)) {
        t->out_of_memory = true;
        return POLICY_NONE;
    }
    bool is_next_replay = t->executions[next].replay != POLICY_NONE;
    int64_t present = t->gaps[gap].bytes[slot] - own_bytes(t, t->executions[next].operation, is_next_replay);
    if (!enter_gap(t, x, gap, slot, present + own_bytes(t, o, true))) {
        t->out_of_memory = true;
        return POLICY_NONE;
    }
    uint32_t before = before_in_list(t, o, x);
    if (!enter_list(t, o, x)) {
        leave_gap(t, x);
        t->out_of_memory = true;
        return POLICY_NONE;
    }
    timeline_refresh(t, gap);
    for (uint32_t k = 0; k < timeline_output_count(t, o); k++) {
        uint32_t v = timeline_output(t, o, k), last = timeline_last_use(t, before, v);
        *last_use_of(t, x, v) = x;
        if (timeline_is_before(t, x, last)) {
            set_last_use(t, before, v, find_last_use(t, before, v));
            set_last_use(t, x, v, last);
        }
    }
    use_inputs(t, x);
    list_replay(t, x);
    t->work += 8;
    return x;
}

void timeline_remove(struct timeline *t, uint32_t x)
{
    const struct graph *g = t->graph;
    uint32_t o = t->executions[x].operation, before = before_in_list(t, o, x);
    for (uint32_t k = 0; k < timeline_output_count(t, o); k++) {
        uint32_t v = timeline_output(t, o, k), last = timeline_last_use(t, x, v);
        set_last_use(t, x, v, x);
        if (last != x && timeline_is_before(t, timeline_last_use(t, before, v), last))
            set_last_use(t, before, v, last);
    }
    leave_list(t, o, x);
    for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++) {
        uint32_t v = g->needs[k], source = timeline_source(t, v, x);
        if (timeline_last_use(t, source, v) == x)
            set_last_use(t, source, v, find_last_use(t, source, v));
    }
    leave_gap(t, x);
    uint32_t place = t->executions[x].replay, moved = t->replays[--t->replay_count];
    t->replays[place] = moved;
    t->executions[moved].replay = place;
    t->cost -= g->problem->operations[o].nanoseconds;
    t->executions[x].replay = t->dead_of[o];
    t->dead_of[o] = x;
    t->work += 8;
}

/* --- making one, and writing it --- */

static void find_movable(struct timeline *t)
{
    const struct policy_problem *p = t->graph->problem;
    for (uint32_t o = 0; o < t->operation_count; o++) {
        t->is_movable[o] = t->graph->until[o] > o;
        t->earliest[o] = o + 1;
        for (uint32_t k = 0; k < p->operations[o].write_count; k++) {
            const struct policy_version *version = &p->versions[timeline_output(t, o, k)];
            t->is_movable[o] &= version->replaces == POLICY_NONE && version->droppable_from != POLICY_NONE &&
                                t->graph->replaced_by[timeline_output(t, o, k)] == POLICY_NONE;
            if (version->droppable_from > t->earliest[o])
                t->earliest[o] = version->droppable_from;
        }
    }
}

static bool allocate(struct timeline *t)
{
    const struct policy_problem *p = t->graph->problem;
    size_t operations = (size_t)t->operation_count + 2, versions = (size_t)p->version_count + 1;
    t->gaps = calloc(operations, sizeof *t->gaps);
    t->runs_of = calloc(operations, sizeof *t->runs_of);
    t->run_count = calloc(operations, sizeof *t->run_count);
    t->run_capacity = calloc(operations, sizeof *t->run_capacity);
    t->dead_of = malloc(operations * sizeof *t->dead_of);
    t->given = malloc(versions * sizeof *t->given);
    t->output_index = calloc(versions, sizeof *t->output_index);
    t->is_movable = calloc(operations, sizeof *t->is_movable);
    t->earliest = calloc(operations, sizeof *t->earliest);
    bool has_tree = range_tree_begin(&t->tree, (uint32_t)operations);
    if (!t->gaps || !t->runs_of || !t->run_count || !t->run_capacity || !t->dead_of || !t->given || !t->output_index ||
        !t->is_movable || !t->earliest || !has_tree)
        return false;
    memset(t->dead_of, 0xff, operations * sizeof *t->dead_of);
    for (uint32_t v = 0; v < p->version_count; v++)
        if (p->versions[v].producer == POLICY_NONE) {
            t->output_index[v] = t->given_count;
            t->given[t->given_count++] = v;
        }
    for (uint32_t o = 0; o < t->operation_count; o++)
        for (uint32_t k = 0; k < p->operations[o].write_count; k++)
            t->output_index[timeline_output(t, o, k)] = k;
    find_movable(t);
    return true;
}

/* Appends to a gap while the timeline is filled. */
static bool append(struct timeline *t, uint32_t o, uint32_t gap, bool is_replay)
{
    uint32_t x = new_execution(t, o);
    if (x == POLICY_NONE || !enter_gap(t, x, gap, t->gaps[gap].count, own_bytes(t, o, is_replay)) ||
        !enter_list(t, o, x) ||
        !grow((void **)&t->replays, sizeof *t->replays, t->replay_count + 1, &t->replay_capacity))
        return false;
    for (uint32_t k = 0; k < timeline_output_count(t, o); k++)
        t->last_uses[t->executions[x].first_output + k] = x;
    if (is_replay)
        list_replay(t, x);
    return true;
}

static bool is_fit(const struct timeline *t, struct plan_item item, uint32_t gap)
{
    if (item.verb == PLAN_REPLAY)
        return gap >= t->earliest[item.index];
    return item.verb == PLAN_RUN || item.verb == PLAN_DROP;
}

static enum timeline_result fill(struct timeline *t, const struct item_list *plan)
{
    uint32_t gap = 0;
    if (!append(t, start_of(t), 0, false))
        return TIMELINE_NO_MEMORY;
    for (uint32_t k = 0; k < plan->count; k++) {
        struct plan_item item = plan->items[k];
        if (!is_fit(t, item, gap))
            return TIMELINE_UNFIT;
        if (item.verb != PLAN_DROP && !append(t, item.index, gap, item.verb == PLAN_REPLAY))
            return TIMELINE_NO_MEMORY;
        gap += item.verb == PLAN_RUN;
    }
    return append(t, end_of(t), gap, false) ? TIMELINE_MADE : TIMELINE_NO_MEMORY;
}

static void find_presence(struct timeline *t)
{
    int64_t fixed = (int64_t)t->graph->problem->fixed_bytes;
    for (uint32_t gap = 0; gap <= t->operation_count; gap++)
        for (uint32_t k = 0; k < t->gaps[gap].count; k++)
            t->gaps[gap].bytes[k] += fixed;
    timeline_sum_up(t);
    struct gap *first = &t->gaps[0];
    for (uint32_t k = 0; k < t->given_count; k++)
        first->bytes[0] += bytes_of(t, t->given[k]);
    timeline_refresh(t, 0);
    for (uint32_t x = 0; x < t->execution_count; x++) {
        uint32_t o = t->executions[x].operation;
        for (uint32_t k = 0; k < timeline_output_count(t, o); k++)
            set_last_use(t, x, timeline_output(t, o, k), find_last_use(t, x, timeline_output(t, o, k)));
    }
}

static bool has_pinned_replays(const struct timeline *t)
{
    for (uint32_t k = 0; k < t->replay_count; k++)
        if (!t->is_movable[t->executions[t->replays[k]].operation])
            return true;
    return false;
}

/* A replay that makes only some of its outputs, since others are still there, is not told from one that makes all:
 * where that leaves inputs that were replaced, the plan is none any more. */
static enum timeline_result judge(const struct timeline *t)
{
    struct item_list items = {0};
    struct simulation found;
    if (!has_pinned_replays(t))
        return TIMELINE_MADE;
    if (!timeline_write(t, &items))
        return TIMELINE_NO_MEMORY;
    enum simulation_result result = simulate_plan(t->graph, items.items, items.count, UINT64_MAX, &found, NULL);
    items_release(&items);
    if (result == SIMULATION_NO_MEMORY)
        return TIMELINE_NO_MEMORY;
    return result == SIMULATION_DONE && (int64_t)found.peak_bytes == timeline_peak(t) ? TIMELINE_MADE : TIMELINE_UNFIT;
}

enum timeline_result timeline_begin(struct timeline *t, const struct graph *graph, uint64_t cap,
                                    const struct item_list *plan)
{
    *t = (struct timeline){.graph = graph,
                           .operation_count = graph->problem->operation_count,
                           .cap = cap > INT64_MAX / 8 ? INT64_MAX / 8 : (int64_t)cap};
    enum timeline_result result = allocate(t) ? fill(t, plan) : TIMELINE_NO_MEMORY;
    if (result == TIMELINE_MADE) {
        find_presence(t);
        result = judge(t);
    }
    if (result != TIMELINE_MADE)
        timeline_end(t);
    return result;
}

void timeline_end(struct timeline *t)
{
    for (uint32_t o = 0; o < t->operation_count + 2; o++) {
        if (t->runs_of)
            free(t->runs_of[o]);
        if (t->gaps) {
            free(t->gaps[o].executions);
            free(t->gaps[o].bytes);
        }
    }
    free(t->executions);
    free(t->last_uses);
    free(t->gaps);
    free(t->runs_of);
    free(t->run_count);
    free(t->run_capacity);
    free(t->dead_of);
    free(t->given);
    free(t->output_index);
    free(t->is_movable);
    free(t->earliest);
    range_tree_end(&t->tree);
    free(t->replays);
    *t = (struct timeline){0};
}
