/* Swapping against recomputing by cost: a transfer counts with a share of its time, since much of it runs beside
 * the operations. How much does, the simulator says; here all likely shares are tried. */
#include "policy/prices.h"
#include "policy/strategy.h"
#include <stdlib.h>

enum { QUICK_WEIGHTS = 3 };

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out)
{
    static const double weights[] = {0.1, 1, 0, 0.3, 0.03, 10, 1e9};
    static const double betas[] = {1, 0.5, 0.25}, shares[] = {0.5, 0, 0.8};
    struct attempt_search search;
    attempts_begin(&search, graph, request);
    double *hold = malloc(sizeof *hold * ((size_t)graph->problem->version_count + 1));
    search.out_of_memory = !hold;
    size_t rounds = request->is_thorough ? sizeof weights / sizeof weights[0] : QUICK_WEIGHTS;
    for (size_t k = 0; request->may_swap && hold && k < rounds && !attempts_are_over(&search); k++) {
        struct forward_settings settings = {.beta = 1, .omega = 0.5, .swap_weight = weights[k]};
        for (size_t s = 0; s < sizeof shares / sizeof shares[0]; s++) {
            settings.start_share = shares[s];
            attempts_try(&search, settings);
        }
        if (!request->is_thorough)
            continue;
        settings.start_share = search.request->incumbent ? search.request->incumbent->settings.start_share : 0;
        for (size_t b = 0; b < sizeof betas / sizeof betas[0]; b++) {
            settings.beta = betas[b];
            settings.hold = NULL;
            attempts_try(&search, settings);
            if (!request->cut)
                continue;
            price_versions(graph, request->cut, false, 1, hold);
            settings.hold = hold;
            settings.pivot = request->pivot;
            attempts_try(&search, settings);
        }
    }
    free(hold);
    return attempts_end(&search, out);
}

const struct strategy strategy_swap = {"swap", make};
