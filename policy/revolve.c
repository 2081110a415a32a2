/* Schedules that need no table: Revolve's binomial one (Griewank, Walther 2000), optimal for the chain of equal
 * stages, and bisection, which needs the least memory: O(log n) stored stages, O(n log n) forward work. */
#include "policy/chain.h"
#include "policy/strategy.h"
#include "policy/tidy.h"

enum {
    MOST_STAGES = 1 << 20,
    MOST_GUESSES = 8,
    WRITE_STEPS = 16,
    MANY_TIMES = 10,
    MANY_STEPS = 2000000,
    FEW_STEPS = 20000,
    LONG_CHAIN = 200
};

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

/* Revolve's optimum, r n - C(s + r, s + 1) steps for n stages and s slots. */
static double least_steps(const struct chain *chain, uint32_t slots)
{
    double count = chain->stage_count;
    uint32_t repeats = 0;
    while (reach(slots + 1, repeats) < chain->stage_count)
        repeats++;
    return repeats > 1 ? repeats * count - (double)reach(slots + 2, repeats - 1) : count;
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

/* Does it add more than the best plan to the steps that run anyway, each no shorter than the shortest? Or are the steps
 * so many that writing them down takes longer than planning may? */
static bool is_hopeless(const struct attempt_search *search, const struct chain *chain, uint32_t slots)
{
    double count = chain->stage_count, shortest = (double)chain->stages[0].forward_ns;
    double steps = least_steps(chain, slots);
    for (uint32_t k = 1; k + 1 < chain->stage_count; k++)
        shortest = (double)chain->stages[k].forward_ns < shortest ? (double)chain->stages[k].forward_ns : shortest;
    return (steps - count) * shortest > (double)search->best_ns ||
           (steps > MANY_TIMES * count && steps > (is_bare(chain) ? MANY_STEPS : FEW_STEPS));
}

/* The plan with this many slots, and its peak. False: none, or no memory. */
static bool write_binomial(struct attempt_search *search, const struct chain *chain, uint32_t slots,
                           struct item_list *items, uint64_t *peak)
{
    if (!chain_write(chain, choose_binomial, NULL, slots, items))
        return false;
    search->request->effort->steps += (uint64_t)items->count * WRITE_STEPS;
    if (tidy_drops(chain->graph, items, peak))
        return true;
    items_release(items);
    return false;
}

struct slots {
    uint64_t size; /* of the greatest input of a stage */
    uint32_t most; /* about as many as the cap has room for */
};

static struct slots count_slots(const struct chain *chain, uint64_t cap)
{
    uint64_t size = 1, work = 0;
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        const struct chain_stage *stage = &chain->stages[k];
        uint64_t back = stage->back_bytes > chain->base_bytes ? stage->back_bytes - chain->base_bytes : 0;
        uint64_t most = stage->tape_bytes + (back > stage->inner_bytes ? back : stage->inner_bytes);
        work = most > work ? most : work;
        size = k && stage->input_bytes > size ? stage->input_bytes : size;
    }
    uint64_t room = cap > chain->base_bytes + work ? cap - chain->base_bytes - work : 0;
    return (struct slots){size, room / size < chain->stage_count ? (uint32_t)(room / size) : chain->stage_count};
}

/* The most slots that the cap has room for: a guess, mended by what the plan turns out to take. */
static void search_slots(struct attempt_search *search, const struct chain *chain, struct slots guess)
{
    uint64_t cap = search->request->cap, size = guess.size;
    uint32_t slots = guess.most;
    uint32_t too_many = chain->stage_count + 1;
    for (uint32_t step = 0; step < MOST_GUESSES && !is_hopeless(search, chain, slots); step++) {
        struct item_list items = {0};
        uint64_t peak;
        if (!write_binomial(search, chain, slots, &items, &peak))
            return;
        if (peak <= cap) {
            uint64_t more = (cap - peak) / size;
            attempts_offer(search, &items);
            if (!more || slots + 1 >= too_many || search->is_late)
                return;
            slots = slots + more < too_many ? slots + (uint32_t)more : too_many - 1;
        } else {
            uint64_t less = (peak - cap + size - 1) / size;
            items_release(&items);
            too_many = slots;
            if (!slots)
                return;
            slots -= less < slots ? (uint32_t)less : slots;
        }
    }
}

/* Is its schedule the one to begin with? Where the stages are much alike, since it is optimal there; and in a long
 * chain where most must run three times or more, which nothing else here foresees. */
static bool is_first_choice(const struct chain *chain, struct slots slots)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t k = 1; k + 1 < chain->stage_count; k++) {
        uint64_t time = chain->stages[k].forward_ns;
        least = time < least ? time : least;
        most = time > most ? time : most;
    }
    return (is_bare(chain) && most <= 2 * least) ||
           (chain->stage_count >= LONG_CHAIN && reach(slots.most + 1, 2) < chain->stage_count);
}

/* Asked twice: before all others, and once there is another plan. */
static bool is_its_turn(const struct strategy_request *request, const struct chain *chain, struct slots slots)
{
    bool has_other = request->best && request->best->items;
    if (request->is_alone || request->patience == 1)
        return true;
    return is_first_choice(chain, slots) ? !has_other : has_other && is_bare(chain);
}

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out, bool is_binomial)
{
    struct chain chain;
    struct attempt_search search;
    if (request->is_thorough || !request->cut)
        return STRATEGY_NOTHING;
    enum chain_result found =
        chain_find(&chain, graph, request->pivot, MOST_STAGES, !is_binomial || request->is_alone || request->patience);
    if (found != CHAIN_FOUND)
        return found == CHAIN_NONE ? STRATEGY_NOTHING : STRATEGY_NO_MEMORY;
    attempts_begin(&search, graph, request);
    struct slots slots = count_slots(&chain, request->cap);
    if (is_binomial && is_its_turn(request, &chain, slots))
        search_slots(&search, &chain, slots);
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

uint64_t log_least_bytes(const struct graph *graph)
{
    struct chain chain;
    struct item_list items = {0};
    uint64_t peak = UINT64_MAX;
    uint32_t pivot;
    graph_undropped_peak(graph, &pivot);
    if (chain_find(&chain, graph, pivot, MOST_STAGES, true) != CHAIN_FOUND)
        return UINT64_MAX;
    if (chain_write(&chain, choose_middle, NULL, 0, &items) && !tidy_drops(graph, &items, &peak))
        peak = UINT64_MAX;
    items_release(&items);
    chain_release(&chain);
    return peak;
}

const struct strategy strategy_revolve = {"revolve", make_revolve};
const struct strategy strategy_log = {"log-n", make_log};
