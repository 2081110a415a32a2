#include "policy/bound.h"
#include <stdlib.h>

enum { OTHER_POSITIONS = 4, MOST_OPERATIONS = 20000 };

static uint64_t bytes_of(const struct graph *g, uint32_t o)
{
    const struct policy_problem *p = g->problem;
    uint64_t bytes = p->operations[o].workspace_bytes;
    for (uint32_t k = g->need_first[o]; k < g->need_first[o + 1]; k++)
        bytes += p->versions[g->needs[k]].bytes;
    for (uint32_t k = 0; k < p->operations[o].write_count; k++)
        bytes += p->versions[p->writes[p->operations[o].first_write + k]].bytes;
    return bytes;
}

/* Where little room is left beside the operation itself, and yet almost everything is held. */
static uint32_t choose_positions(const struct graph *g, const uint64_t *held, uint32_t pivot, uint32_t *positions)
{
    uint64_t scores[OTHER_POSITIONS] = {0};
    uint32_t count = 0;
    for (uint32_t o = 0; o < g->problem->operation_count; o++) {
        uint64_t lack = held[pivot] - held[o], bytes = bytes_of(g, o), score = bytes > lack ? bytes - lack : 0;
        if (o == pivot || held[o] > held[pivot] || !score)
            continue;
        uint32_t at = count < OTHER_POSITIONS ? count++ : OTHER_POSITIONS;
        for (; at > 0 && scores[at - 1] < score; at--)
            if (at < OTHER_POSITIONS) {
                scores[at] = scores[at - 1];
                positions[at] = positions[at - 1];
            }
        if (at < OTHER_POSITIONS) {
            scores[at] = score;
            positions[at] = o;
        }
    }
    return count;
}

uint64_t bound_nanoseconds(const struct graph *g, uint64_t cap, const struct cut *cut)
{
    uint32_t positions[OTHER_POSITIONS];
    uint64_t bound = cut->bound_ns;
    if (bound == UINT64_MAX || cut->price <= 0 || g->problem->operation_count > MOST_OPERATIONS)
        return bound;
    uint64_t *held = malloc(sizeof *held * ((size_t)g->problem->operation_count + 1));
    if (held && graph_undropped_bytes(g, held)) {
        uint32_t count = choose_positions(g, held, cut->pivot, positions);
        for (uint32_t k = 0; k < count; k++) {
            double price = cut->price;
            uint64_t other = cut_bound_near(g, positions[k], cap, &price);
            bound = other > bound ? other : bound;
        }
    }
    free(held);
    return bound;
}
