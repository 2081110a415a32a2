#include "policy/chain.h"
#include <stdlib.h>
#include <string.h>

enum { FEWEST_STAGES = 4, JOIN_ROUNDS = 12 };

static bool may_go(const struct graph *g, uint32_t turn, uint32_t v)
{
    const struct policy_version *version = &g->problem->versions[v];
    return version->producer != POLICY_NONE && version->producer < turn && version->droppable_from <= turn &&
           graph_replaced_at(g, v) >= turn && version->bytes > 0 && !version->is_kept &&
           (g->last_need[v] < turn || g->rebuildable_until[v] >= g->last_need[v]);
}

static uint32_t last_early_need(const struct graph *g, uint32_t v, uint32_t turn)
{
    uint32_t last = g->problem->versions[v].producer;
    for (uint32_t k = g->reader_first[v]; k < g->reader_first[v + 1] && g->readers[k] < turn; k++)
        last = g->readers[k];
    return last;
}

/* crossing[p]: versions made before operation p that an operation in [p, turn) needs. */
static void count_crossing(const struct graph *g, uint32_t turn, uint32_t *crossing)
{
    memset(crossing, 0, sizeof *crossing * ((size_t)turn + 2));
    for (uint32_t v = 0; v < g->problem->version_count; v++) {
        if (!may_go(g, turn, v))
            continue;
        crossing[g->problem->versions[v].producer + 1]++;
        crossing[last_early_need(g, v, turn) + 1]--;
    }
    for (uint32_t p = 1; p <= turn; p++)
        crossing[p] += crossing[p - 1];
}

/* Is p the first position after which the crossing versions are made? There the last of them was just made. */
static bool starts_stage(const struct graph *g, uint32_t turn, uint32_t p)
{
    const struct policy_operation *op = &g->problem->operations[p - 1];
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = g->problem->writes[op->first_write + k];
        if (may_go(g, turn, v) && last_early_need(g, v, turn) >= p)
            return true;
    }
    return false;
}

/* The least number of crossing versions that gives enough boundaries. */
static uint32_t choose_width(const struct graph *g, uint32_t turn, const uint32_t *crossing)
{
    for (uint32_t width = 1; width <= 4; width++) {
        uint32_t count = 0;
        for (uint32_t p = 1; p < turn; p++)
            count += crossing[p] > 0 && crossing[p] <= width && starts_stage(g, turn, p);
        if (count + 1 >= FEWEST_STAGES)
            return width;
    }
    return 0;
}

static bool cut_stages(struct chain *c, uint32_t most_stages)
{
    const struct graph *g = c->graph;
    uint32_t *crossing = malloc(sizeof *crossing * ((size_t)c->turn + 2)), count = 0, kept = 1;
    if (!crossing)
        return false;
    count_crossing(g, c->turn, crossing);
    uint32_t width = choose_width(g, c->turn, crossing);
    for (uint32_t p = 1; width && p < c->turn; p++)
        count += crossing[p] > 0 && crossing[p] <= width && starts_stage(g, c->turn, p);
    uint32_t stride = width ? (count + 1 + most_stages - 1) / most_stages : 1, seen = 0;
    for (uint32_t p = 1; width && p < c->turn; p++)
        if (crossing[p] > 0 && crossing[p] <= width && starts_stage(g, c->turn, p) && ++seen % stride == 0)
            c->stages[kept++].first_operation = p;
    c->stages[kept].first_operation = c->stages[kept + 1].first_operation = c->turn;
    c->stage_count = kept + 1; /* the last stage runs nothing */
    free(crossing);
    return true;
}

/* The last stage from `low` on that has begun at operation o. */
static uint32_t stage_at(const struct chain *c, uint32_t low, uint32_t o)
{
    uint32_t high = c->stage_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (c->stages[middle].first_operation <= o)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void place_versions(struct chain *c)
{
    const struct graph *g = c->graph;
    uint32_t stage = 0;
    for (uint32_t v = 0; v < g->problem->version_count; v++)
        c->home[v] = POLICY_NONE;
    for (uint32_t o = 0; o < c->turn; o++) {
        const struct policy_operation *op = &g->problem->operations[o];
        while (o >= c->stages[stage + 1].first_operation)
            stage++;
        c->stages[stage].forward_ns += op->nanoseconds;
        for (uint32_t k = 0; k < op->write_count; k++)
            c->home[g->problem->writes[op->first_write + k]] = stage;
    }
    for (uint32_t v = 0; v < g->problem->version_count; v++) {
        uint32_t home = c->last_stage[v] = c->home[v];
        if (home == POLICY_NONE || !may_go(g, c->turn, v))
            continue;
        uint32_t last = last_early_need(g, v, c->turn);
        bool is_last = home + 2 == c->stage_count && g->last_need[v] >= c->turn;
        c->is_crossing[v] = is_last || last >= c->stages[home + 1].first_operation;
        c->last_stage[v] = is_last ? home + 1 : stage_at(c, home, last);
        c->stages[home + 1].input_bytes += g->problem->versions[v].bytes; /* differences, summed up below */
        c->stages[c->last_stage[v] + 1].input_bytes -= g->problem->versions[v].bytes;
        if (!c->is_crossing[v] && g->last_need[v] >= c->turn)
            c->stages[home].tape_bytes += g->problem->versions[v].bytes;
    }
    for (uint32_t k = 1; k <= c->stage_count; k++)
        c->stages[k].input_bytes += c->stages[k - 1].input_bytes;
}

/* Is v at hand while stage k is worked on backwards? */
static bool is_at_hand(const struct chain *c, uint32_t v, uint32_t stage)
{
    uint32_t home = c->home[v];
    if (home == POLICY_NONE || home == stage || !may_go(c->graph, c->turn, v))
        return true;
    return home < stage && c->last_stage[v] >= stage;
}

/* The stages at which all is at hand that operation o needs: from `first` to `last`, none where they cross. */
struct stretch {
    uint32_t first, last;
};

static struct stretch served_at(const struct chain *c, uint32_t o)
{
    const struct graph *g = c->graph;
    struct stretch stages = {0, c->stage_count - 1};
    for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++) {
        uint32_t v = g->needs[k], home = c->home[v];
        if (home == POLICY_NONE || !may_go(g, c->turn, v))
            continue;
        stages.first = home > stages.first ? home : stages.first;
        stages.last = c->last_stage[v] < stages.last ? c->last_stage[v] : stages.last;
    }
    return stages;
}

/* The stages that operation o needs as one, where the stages above `stage` are done. Returns the last of them. */
static uint32_t mark_joined(struct chain *c, uint32_t o, uint32_t stage)
{
    const struct graph *g = c->graph;
    uint32_t last = 0;
    for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++) {
        uint32_t v = g->needs[k];
        if (c->home[v] != POLICY_NONE && may_go(g, c->turn, v) && c->home[v] > last)
            last = c->home[v];
    }
    uint32_t middle = last < stage ? last : stage, first = middle;
    for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++) {
        uint32_t v = g->needs[k];
        if (!is_at_hand(c, v, middle) && c->home[v] < first)
            first = c->home[v];
    }
    if (c->stages[first].joined_until < last)
        c->stages[first].joined_until = last;
    return last;
}

/* True when every operation after the turn has its stage. Otherwise some stages are marked, to be joined. */
static bool assign_backward(struct chain *c)
{
    uint32_t stage = c->stage_count - 1;
    bool is_assigned = true;
    for (uint32_t o = c->turn; o < c->graph->problem->operation_count; o++) {
        struct stretch stages = served_at(c, o);
        uint32_t serving = stages.last < stage ? stages.last : stage;
        bool is_served = stages.first <= serving;
        stage = is_served ? serving : mark_joined(c, o, stage);
        c->back_stage[o] = stage;
        is_assigned &= is_served;
    }
    return is_assigned;
}

static void join_marked(struct chain *c)
{
    uint32_t kept = 0, until = 0;
    for (uint32_t k = 0; k < c->stage_count; k++) {
        bool is_joined = k && k <= until;
        until = c->stages[k].joined_until > until ? c->stages[k].joined_until : until;
        if (!is_joined)
            c->stages[kept++] = (struct chain_stage){.first_operation = c->stages[k].first_operation};
    }
    c->stages[kept] = (struct chain_stage){.first_operation = c->turn};
    c->stage_count = kept;
}

/* Places everything in its stage; false where it is no chain. */
static bool place_all(struct chain *c, bool may_join)
{
    for (uint32_t round = 0; c->stage_count >= FEWEST_STAGES && round < JOIN_ROUNDS; round++) {
        place_versions(c);
        if (assign_backward(c))
            return true;
        if (!may_join)
            return false;
        join_marked(c);
    }
    return false;
}

/* change[i]: bytes by which what is there whatever is decided grows at operation i. */
static void count_base(const struct chain *c, int64_t *change)
{
    const struct graph *g = c->graph;
    uint32_t n = g->problem->operation_count;
    for (uint32_t v = 0; v < g->problem->version_count; v++) {
        const struct policy_version *version = &g->problem->versions[v];
        uint32_t from = version->producer == POLICY_NONE ? 0 : version->producer;
        uint32_t to = g->last_need[v] + 1 > version->droppable_from ? g->last_need[v] + 1 : version->droppable_from;
        uint32_t replaced = graph_replaced_at(g, v);
        if (may_go(g, c->turn, v))
            continue;
        to = to > n + 1 ? n + 1 : to;
        to = g->replaced_by[v] != POLICY_NONE && replaced < to ? replaced : to;
        change[from] += (int64_t)version->bytes;
        change[to] -= (int64_t)version->bytes;
    }
}

/* Droppable values that live and die within their stage, at operation o. */
static void count_inner(const struct chain *c, int64_t *change)
{
    const struct graph *g = c->graph;
    for (uint32_t v = 0; v < g->problem->version_count; v++) {
        if (c->home[v] == POLICY_NONE || !may_go(g, c->turn, v) || c->is_crossing[v] || g->last_need[v] >= c->turn)
            continue;
        change[g->problem->versions[v].producer] += (int64_t)g->problem->versions[v].bytes;
        change[g->last_need[v] + 1] -= (int64_t)g->problem->versions[v].bytes;
    }
}

static bool measure(struct chain *c)
{
    const struct policy_problem *p = c->graph->problem;
    size_t positions = (size_t)p->operation_count + 3;
    int64_t *base = calloc(2 * positions, sizeof *base), *inner = base + positions;
    if (!base)
        return false;
    count_base(c, base);
    count_inner(c, inner);
    uint32_t stage = 0;
    int64_t now = (int64_t)p->fixed_bytes, inside = 0;
    for (uint32_t o = 0; o < p->operation_count; o++) {
        now += base[o];
        inside += inner[o];
        while (o < c->turn && o >= c->stages[stage + 1].first_operation)
            stage++;
        struct chain_stage *s = &c->stages[o < c->turn ? stage : c->back_stage[o]];
        uint64_t extra = p->operations[o].workspace_bytes;
        if (o < c->turn) {
            extra += (uint64_t)inside;
            s->inner_bytes = extra > s->inner_bytes ? extra : s->inner_bytes;
            c->base_bytes = (uint64_t)now > c->base_bytes ? (uint64_t)now : c->base_bytes;
        } else {
            extra += (uint64_t)now;
            s->back_bytes = extra > s->back_bytes ? extra : s->back_bytes;
        }
    }
    free(base);
    return true;
}

enum chain_result chain_find(struct chain *c, const struct graph *g, uint32_t turn, uint32_t most_stages, bool may_join)
{
    size_t versions = (size_t)g->problem->version_count + 1, operations = (size_t)g->problem->operation_count + 1;
    *c = (struct chain){.graph = g, .turn = turn};
    c->stages = calloc((size_t)turn + 3, sizeof *c->stages);
    c->home = malloc(versions * sizeof *c->home);
    c->is_crossing = calloc(versions, sizeof *c->is_crossing);
    c->last_stage = calloc(versions, sizeof *c->last_stage);
    c->back_stage = calloc(operations, sizeof *c->back_stage);
    enum chain_result result = CHAIN_NO_MEMORY;
    if (c->stages && c->home && c->is_crossing && c->last_stage && c->back_stage && cut_stages(c, most_stages)) {
        result = place_all(c, may_join) ? CHAIN_FOUND : CHAIN_NONE;
        if (result == CHAIN_FOUND && !measure(c))
            result = CHAIN_NO_MEMORY;
    }
    if (result != CHAIN_FOUND)
        chain_release(c);
    return result;
}

void chain_release(struct chain *c)
{
    free(c->stages);
    free(c->home);
    free(c->is_crossing);
    free(c->last_stage);
    free(c->back_stage);
    *c = (struct chain){0};
}
