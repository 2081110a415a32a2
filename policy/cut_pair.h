/* A cut at two positions at once: a bound where what one operation needs leaves little room, and another position much
 * to be kept.
 *
 * Between the first and the second position some operations run again, after the second one others; what is kept at
 * the second must have been there between the two. With a price of memory at each position the cheapest choice is still
 * a minimum cut: the choices before the second position stand the other way round in the network, so that "kept at the
 * second, hence there before" is an edge. For what is dead at the second position and held for others that is no edge:
 * it has a price of its own (a tie), charged where it is held and given back where it was there. Any prices give a
 * bound; they follow the slopes of the bound to a good one. */
#pragma once
#include "policy/graph.h"

struct cut_pair_request {
    uint32_t first, second;           /* positions, first < second */
    double first_price, second_price; /* about where to look: the critical prices of either alone */
    uint64_t cap, known_ns;           /* a bound known already: less is of no interest */
};

/* No plan without swapping adds less; known_ns where no more was found or memory ran out. The work is added to *steps
 * (policy/flow.h). */
uint64_t cut_pair_bound(const struct graph *graph, const struct cut_pair_request *request, uint64_t *steps);
