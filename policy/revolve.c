/* Schedules that need no table: Revolve's binomial one (Griewank, Walther 2000), optimal for the chain of equal
 * stages, and bisection, which needs the least memory: O(log n) stored stages, O(n log n) forward work. */
#include "policy/chain.h"
#include "policy/strategy.h"

enum { MOST_STAGES = 100000, MANY = 8 };

/* C(s + r, s), saturated. */
static uint64_t reach(uint32_t slots, uint32_t repeats)
{
    double value = 1;
    uint32_t fewer = slots < repeats ? slots : repeats, more = slots < repeats ? repeats : slots;
    for (uint32_t k = 1; k <= fewer && value < 1e12; k++)
        value = value * (more + k) / k;
    return (uint64_t)(value + 0.5);
}

/* `memory` is the number of inputs that may be stored besides that of stage a. With s slots, the input's
 * included, n stages need r repetitions, the least with n <= C(s + r, s). */
static struct chain_choice choose_binomial(void *context, uint32_t a, uint32_t b, uint32_t memory)
{
    (void)context;
    uint32_t count = b - a + 1, slots = memory + 1, repeats = 0;
    if (memory == 0)
        return (struct chain_choice){.split = b, .memory_after = 0};
    while (reach(slots, repeats) < count)
        repeats++;
    /* optimal where both parts need as many repetitions as they can have: left of the split r - 1 at most */
    uint64_t right = reach(slots - 1, repeats), least = repeats > 1 ? reach(slots, repeats - 2) : 1;
    uint64_t left = count > right && count - right > least ? count - right : least;
    return (struct chain_choice){.split = a + (uint32_t)left, .memory_after = memory - 1};
}

static struct chain_choice choose_middle(void *context, uint32_t a, uint32_t b, uint32_t memory)
{
    (void)context;
    return (struct chain_choice){.split = a + (b - a + 1) / 2, .memory_after = memory};
}

static bool offer(struct attempt_search *search, const struct chain *chain, chain_chooser *choose, uint32_t memory)
{
    struct item_list items = {0};
    return chain_write(chain, choose, NULL, memory, &items) && attempts_offer(search, &items);
}

/* Revolve's optimum, r n - C(s + r, s + 1) steps for n stages and s slots, each no shorter than the shortest: more than
 * the best plan adds to the n that run anyway? */
static bool is_hopeless(const struct attempt_search *search, const struct chain *chain, uint32_t slots)
{
    double count = chain->stage_count, shortest = (double)chain->stages[0].forward_ns;
    uint32_t repeats = 0;
    for (uint32_t k = 1; k + 1 < chain->stage_count; k++)
        shortest = (double)chain->stages[k].forward_ns < shortest ? (double)chain->stages[k].forward_ns : shortest;
    while (reach(slots + 1, repeats) < chain->stage_count)
        repeats++;
    double steps = repeats > 1 ? repeats * count - (double)reach(slots + 2, repeats - 1) : count;
    return (steps - count) * shortest > (double)search->best_ns;
}

/* More slots cost less time until the cap is passed: the first that holds it, from above. */
static void search_slots(struct attempt_search *search, const struct chain *chain)
{
    uint64_t size = 1, room = search->request->cap > chain->base_bytes ? search->request->cap - chain->base_bytes : 0;
    for (uint32_t k = 1; k < chain->stage_count; k++)
        size = chain->stages[k].input_bytes > size ? chain->stages[k].input_bytes : size;
    uint32_t slots = room / size < chain->stage_count ? (uint32_t)(room / size) : chain->stage_count;
    for (uint32_t step = 1; !is_hopeless(search, chain, slots) && !search->is_late; step++) {
        if (offer(search, chain, choose_binomial, slots) || !slots)
            break;
        slots -= step < MANY ? 1 : slots / 8 + 1;
    }
}

/* Stages that leave little else than their output: otherwise it is the tapes that matter. */
static bool is_bare(const struct chain *chain)
{
    uint64_t inputs = 0, tapes = 0;
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        inputs += chain->stages[k].input_bytes;
        tapes += chain->stages[k].tape_bytes;
    }
    return tapes <= inputs / 4;
}

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out, bool is_binomial)
{
    struct chain chain;
    struct attempt_search search;
    if (request->is_thorough || !request->cut)
        return STRATEGY_NOTHING;
    enum chain_result found = chain_find(&chain, graph, request->pivot, MOST_STAGES, !is_binomial || request->is_alone);
    if (found != CHAIN_FOUND)
        return found == CHAIN_NONE ? STRATEGY_NOTHING : STRATEGY_NO_MEMORY;
    attempts_begin(&search, graph, request);
    if (is_binomial && (request->is_alone || is_bare(&chain)))
        search_slots(&search, &chain);
    else if (!is_binomial && request->give_up_ns == UINT64_MAX)
        offer(&search, &chain, choose_middle, 0); /* the last resort where nothing else holds the cap */
    chain_release(&chain);
    return attempts_end(&search, out);
}

static enum strategy_result make_revolve(const struct graph *graph, const struct strategy_request *request,
                                         struct item_list *out)
{
    return make(graph, request, out, true);
}

static enum strategy_result make_log(const struct graph *graph, const struct strategy_request *request,
                                     struct item_list *out)
{
    return make(graph, request, out, false);
}

const struct strategy strategy_revolve = {"revolve", make_revolve};
const struct strategy strategy_log = {"log-n", make_log};
