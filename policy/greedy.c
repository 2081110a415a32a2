/* Pure greedy: forward simulation scored by cost, bytes and distance alone. */
#include "policy/strategy.h"

static enum strategy_result make(const struct graph *graph, const struct strategy_request *request,
                                 struct item_list *out)
{
    static const struct {
        double beta, omega;
    } settings[] = {{1, 0.5}, {0.5, 0.5}, {1, 1}, {0.5, 1}, {1, 0.1}, {0.5, 0.1}, {2, 0.5}, {0, 0.5}};
    struct attempt_search search;
    attempts_begin(&search, graph, request);
    size_t quick = 2, from = request->is_thorough ? quick : 0;
    for (size_t k = from; k < (request->is_thorough ? sizeof settings / sizeof settings[0] : quick); k++)
        attempts_try(&search, (struct forward_settings){
                                  .beta = settings[k].beta, .omega = settings[k].omega, .swap_weight = -1});
    return attempts_end(&search, out);
}

const struct strategy strategy_greedy = {"greedy", make};
