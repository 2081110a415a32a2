/* Prices per byte at which to give versions up before the pivot, from the parametric cut. */
#pragma once
#include "policy/cut.h"

/* hold: version_count entries. What is worth keeping at the critical price counts `boost` times. */
void price_versions(const struct graph *graph, const struct cut *cut, double boost, double *hold);
