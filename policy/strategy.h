/* The interface of all strategies: one per file, each fills a list of items for a plan under the cap.
 *
 * A strategy never has to be right: policy_make_plan simulates and checks what it returns. It must be
 * deterministic, and must stop soon after the effort is spent.
 */
#pragma once
#include "policy/cut.h"
#include "policy/forward.h"

/* The settings that made the best plan so far, for refinement. Owned by whoever runs the strategies. */
struct incumbent {
    struct forward_settings settings; /* hold and weight point to the copies below, or are NULL */
    double *hold, *weight;            /* version_count entries each */
    struct item_list items;           /* the plan they made */
    bool has_plan;
    bool is_optimal; /* nothing adds less time without swapping, than the best plan known */
};

struct strategy_request {
    uint64_t cap;
    bool may_swap, may_not_replay;
    bool is_thorough;    /* false in the first round: try only what is most likely to win */
    uint32_t patience;   /* 0 in the two usual rounds, then the number of those that follow while there is no plan */
    bool any_will_do;    /* stop at the first plan under the cap */
    bool is_alone;       /* no other strategy is asked: a plan is wanted even where others do better */
    uint32_t pivot;      /* position at which the undropped run holds most */
    uint64_t bound_ns;   /* no plan without swapping adds less */
    uint64_t give_up_ns; /* plans that add this much or more are of no interest; UINT64_MAX = any will do */
    struct effort *effort;
    uint64_t allowed_steps;       /* of all strategies together; effort->allowed is the share of one */
    const struct cut *cut;        /* at the pivot; NULL where none was made */
    const struct item_list *best; /* the best plan so far, without items where there is none */
    struct incumbent *incumbent;  /* kept up to date by attempts_try */
    uint64_t small_bytes;         /* versions of this size or less are not worth dropping */
};

enum { MOST_PATIENCE = 7 };

enum strategy_result { STRATEGY_FOUND, STRATEGY_NOTHING, STRATEGY_NO_MEMORY };

struct strategy {
    const char *name;
    /* `out` is empty; on STRATEGY_FOUND it holds the best plan that this strategy found. */
    enum strategy_result (*make)(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out);
};

extern const struct strategy strategy_greedy, strategy_chen_segments, strategy_chen_budget, strategy_portfolio,
    strategy_checkpoints, strategy_refine, strategy_chain, strategy_revolve, strategy_log, strategy_exact,
    strategy_swap, strategy_polish;

/* Is the graph small enough for the exact search? */
bool exact_can_search(const struct graph *graph);

/* Peak of the plan that halves a chain again and again, the least that is known for one; UINT64_MAX where there is no
 * chain, or no memory. policy_make_plan finds a plan under this cap. */
uint64_t log_least_bytes(const struct graph *graph);

/* A search over several forward simulations that keeps the best. */
struct attempt_search {
    const struct graph *graph;
    const struct strategy_request *request;
    struct item_list best;
    uint64_t best_ns; /* added time of `best`; give_up_ns while there is none */
    uint64_t last_ns; /* about what the last attempt would add, UINT64_MAX where it failed */
    double tidied_to; /* least share of a plan's replays that tidying left so far; 0 = none tidied yet */
    bool out_of_memory, is_late;
};

void attempts_begin(struct attempt_search *search, const struct graph *graph, const struct strategy_request *request);
/* Tries one setting (cap, limits and swapping are filled in here); true when it became the best. */
bool attempts_try(struct attempt_search *search, struct forward_settings settings);
/* Will no further setting be tried? To be asked before the work of choosing one. */
bool attempts_are_over(const struct attempt_search *search);
/* Spends effort for that work: so many passes over all versions and operations. */
void attempts_count_passes(struct attempt_search *search, uint32_t passes);
/* Takes a whole plan, which need not be legal yet if tidying makes it so; true when it became the best. */
bool attempts_offer(struct attempt_search *search, struct item_list *items);
enum strategy_result attempts_end(struct attempt_search *search, struct item_list *out);
