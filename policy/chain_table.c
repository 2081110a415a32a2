/* The dynamic programme for the heterogeneous chain (Beaumont et al. 2019): at every stage either its tape is
 * kept, or the input of a later stage is stored and what lies between is run again.
 *
 * cost[length][a][m]: least forward time to work backwards through stages a .. a + length, their input being
 * there, with m units of memory left for everything else. O(M L^3). */
#include "policy/chain.h"
#include "policy/strategy.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_STAGES = 80, FEW_STAGES = 24, UNITS = 128 };

struct table {
    const struct chain *chain;
    float *cost;
    uint16_t *choice; /* 0: keep the tape; otherwise the split, counted from a */
    uint32_t units;
    double unit_bytes;
    uint64_t cap;
};

static size_t slot(const struct table *t, uint32_t length, uint32_t a, uint32_t m)
{
    return ((size_t)length * t->chain->stage_count + a) * (t->units + 1) + m;
}

static uint32_t units_of(const struct table *t, uint64_t bytes)
{
    double units = ceil((double)bytes / t->unit_bytes - 1e-9);
    return units < 60000 ? (uint32_t)units : 60000;
}

/* m counts what is left of cap - base. */
static void fill_single(struct table *t, uint32_t a)
{
    const struct chain *c = t->chain;
    const struct chain_stage *s = &c->stages[a];
    uint64_t output = a + 1 < c->stage_count ? s[1].input_bytes : 0;
    uint64_t back = s->back_bytes > c->base_bytes ? s->back_bytes - c->base_bytes : 0;
    uint64_t most = s->tape_bytes + output + (back > s->inner_bytes ? back : s->inner_bytes);
    uint32_t needed = units_of(t, most);
    for (uint32_t m = 0; m <= t->units; m++)
        t->cost[slot(t, 0, a, m)] = m >= needed ? (float)s->forward_ns : HUGE_VALF;
}

/* Units needed to run stages a .. j - 1 forward while only the input of a is stored. */
static uint32_t sweep_units(const struct table *t, uint32_t a, uint32_t k)
{
    const struct chain_stage *s = &t->chain->stages[k];
    return units_of(t, (k > a ? s->input_bytes : 0) + s->tape_bytes + s->inner_bytes + s[1].input_bytes);
}

/* Stores the input of stage a + j: where that costs less than what is known, for every memory of `from` units or more.
 */
static void store_input(struct table *t, uint32_t length, uint32_t a, uint32_t j, uint32_t from, float swept)
{
    uint32_t stored = units_of(t, t->chain->stages[a + j].input_bytes);
    const float *right = &t->cost[slot(t, length - j, a + j, 0)], *left = &t->cost[slot(t, j - 1, a, 0)];
    float *best = &t->cost[slot(t, length, a, 0)];
    uint16_t *choice = &t->choice[slot(t, length, a, 0)];
    for (uint32_t m = from; m <= t->units; m++) {
        float cost = swept + right[m - stored] + left[m];
        choice[m] = cost < best[m] ? (uint16_t)j : choice[m];
        best[m] = cost < best[m] ? cost : best[m];
    }
}

static void fill_one(struct table *t, uint32_t length, uint32_t a)
{
    const struct chain_stage *stages = t->chain->stages;
    uint32_t tape = units_of(t, stages[a].tape_bytes + stages[a + 1].input_bytes), from = 0;
    uint32_t inner = tape + units_of(t, stages[a].inner_bytes);
    for (uint32_t m = 0; m <= t->units; m++) {
        bool can_keep = m >= inner;
        t->cost[slot(t, length, a, m)] =
            can_keep ? (float)stages[a].forward_ns + t->cost[slot(t, length - 1, a + 1, m - tape)] : HUGE_VALF;
        t->choice[slot(t, length, a, m)] = 0;
    }
    float swept = 0;
    for (uint32_t j = 1; j <= length && from <= t->units; j++) {
        uint32_t stored = units_of(t, stages[a + j].input_bytes), sweep = sweep_units(t, a, a + j - 1);
        swept += (float)stages[a + j - 1].forward_ns;
        from = sweep > from ? sweep : from; /* what is too little for one split is so for all later ones */
        from = stored > from ? stored : from;
        store_input(t, length, a, j, from, swept);
    }
}

static struct chain_choice choose(void *context, uint32_t a, uint32_t b, uint32_t memory)
{
    const struct table *t = context;
    const struct chain_stage *stages = t->chain->stages;
    uint16_t choice = t->choice[slot(t, b - a, a, memory)];
    if (choice)
        return (struct chain_choice){.split = a + choice,
                                     .memory_after = memory - units_of(t, stages[a + choice].input_bytes)};
    return (struct chain_choice){
        .keeps_tape = true, .memory_after = memory - units_of(t, stages[a].tape_bytes + stages[a + 1].input_bytes)};
}

static bool table_begin(struct table *t, const struct chain *c, uint64_t cap)
{
    uint64_t room = cap > c->base_bytes ? cap - c->base_bytes : 0;
    *t = (struct table){.chain = c, .cap = cap, .units = room < UNITS ? (uint32_t)room : UNITS};
    t->unit_bytes = t->units ? (double)room / t->units : 1;
    size_t slots = (size_t)c->stage_count * c->stage_count * (t->units + 1);
    t->cost = malloc(slots * sizeof *t->cost);
    t->choice = malloc(slots * sizeof *t->choice);
    return t->cost && t->choice;
}

static void fill_table(struct table *t)
{
    uint32_t stages = t->chain->stage_count;
    for (uint32_t a = 0; a < stages; a++)
        fill_single(t, a);
    for (uint32_t length = 1; length < stages; length++)
        for (uint32_t a = 0; a + length < stages; a++)
            fill_one(t, length, a);
}

/* Fewer units than there are leave room for what the table does not see. */
static void offer_plans(const struct table *t, struct attempt_search *search)
{
    uint32_t offered = 0;
    for (uint32_t m = t->units; m > 0 && offered < 6 && !search->is_late; m -= 1 + m / 24) {
        struct item_list items = {0};
        if (t->cost[slot(t, t->chain->stage_count - 1, 0, m)] == HUGE_VALF)
            break;
        offered++;
        if (chain_write(t->chain, choose, (void *)(uintptr_t)t, m, &items))
            attempts_offer(search, &items);
    }
}

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out)
{
    struct chain chain;
    struct attempt_search search;
    struct table t;
    if (!request->cut)
        return STRATEGY_NOTHING;
    enum chain_result found = chain_find(&chain, graph, request->pivot, MOST_STAGES, request->is_alone);
    if (found != CHAIN_FOUND)
        return found == CHAIN_NONE ? STRATEGY_NOTHING : STRATEGY_NO_MEMORY;
    if (request->is_thorough == (chain.stage_count <= FEW_STAGES)) {
        chain_release(&chain); /* long chains in the second round, where there is time for the table */
        return STRATEGY_NOTHING;
    }
    attempts_begin(&search, graph, request);
    search.out_of_memory = !table_begin(&t, &chain, request->cap);
    if (!search.out_of_memory && t.units) {
        request->effort->steps += (uint64_t)t.units * chain.stage_count * chain.stage_count * chain.stage_count / 30;
        fill_table(&t);
        offer_plans(&t, &search);
    }
    free(t.cost);
    free(t.choice);
    chain_release(&chain);
    return attempts_end(&search, out);
}

const struct strategy strategy_chain = {"chain", make};
