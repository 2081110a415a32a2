/* Prices per byte at which to give versions up before the pivot, from the parametric cut. */
#pragma once
#include "policy/cut.h"

/* hold: version_count entries. What is worth keeping at the critical price (is_below: in the solution below it, which
 * keeps a little too much) counts `boost` times. */
void price_versions(const struct graph *graph, const struct cut *cut, bool is_below, double boost, double *hold);
