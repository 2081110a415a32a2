/* The parametric cut, turned into plans: forward simulations that drop at the cut's thresholds, over a
 * portfolio of settings. */
#include "policy/prices.h"
#include "policy/strategy.h"
#include <stdlib.h>

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out)
{
    static const struct {
        double boost, beta, omega;
        bool is_flat, is_below;
    } settings[] = {
        {4, 1, 0.5, true, false},     {4, 1, 0.5, true, true},      {16, 0.5, 0.5, false, true},
        {16, 0.5, 0.5, true, true},   {4, 0.5, 0.5, false, false},  {1, 0.5, 0.1, true, false},
        {4, 1, 0.1, false, false},    {1, 1, 0.5, true, false},     {4, 0.5, 0.1, false, false},
        {1, 0.5, 0.5, false, false},  {4, 1, 0.5, false, false},    {1, 1, 0.5, false, false},
        {1, 0.5, 0.1, false, false},  {4, 0.5, 1, false, false},    {4, 1, 1, false, false},
        {16, 0.5, 0.5, false, false}, {4, 0.25, 0.5, false, false}, {16, 1, 0.1, true, false},
    };
    const size_t quick = 7, count = request->is_thorough ? sizeof settings / sizeof settings[0] : quick;
    struct attempt_search search;
    double *hold = malloc(sizeof *hold * ((size_t)graph->problem->version_count + 1));
    attempts_begin(&search, graph, request);
    search.out_of_memory = !hold;
    for (size_t k = request->is_thorough ? quick : 0; hold && request->cut && k < count && !attempts_are_over(&search);
         k++) {
        attempts_count_passes(&search, 1);
        price_versions(graph, request->cut, settings[k].is_below, settings[k].boost, hold);
        attempts_try(&search, (struct forward_settings){.hold = hold,
                                                        .pivot = request->pivot,
                                                        .flat_hold = settings[k].is_flat,
                                                        .beta = settings[k].beta,
                                                        .omega = settings[k].omega,
                                                        .swap_weight = -1});
    }
    free(hold);
    return attempts_end(&search, out);
}

const struct strategy strategy_portfolio = {"cut", make};
