#include "policy/prices.h"
#include <math.h>

void price_versions(const struct graph *g, const struct cut *cut, bool is_below, double boost, double *hold)
{
    const struct policy_problem *p = g->problem;
    double most = cut->price, critical = is_below ? cut->price_below : cut->price;
    const bool *is_held = is_below ? cut->is_held_below : cut->is_held;
    for (uint32_t o = 0; o < cut->pivot; o++)
        if (cut->threshold[o] < HUGE_VAL && cut->threshold[o] > most)
            most = cut->threshold[o];
    for (uint32_t v = 0; v < p->version_count; v++) {
        uint32_t producer = p->versions[v].producer;
        hold[v] = 0;
        if (is_held[v])
            hold[v] = cut->price * boost;
        else if (g->last_need[v] < cut->pivot)
            continue;
        else if (producer == POLICY_NONE || producer >= cut->pivot || cut->threshold[producer] == HUGE_VAL)
            hold[v] = most * 4;
        else
            hold[v] = cut->threshold[producer] * (cut->threshold[producer] > critical ? boost : 1);
    }
}
