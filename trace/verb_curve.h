/* How a curve of memory against time is shown. */
#pragma once
#include "policy/curve.h"
#include <stdio.h>

/* A plot that fits into `width` columns, from 42 on. */
void verb_curve_plot(FILE *out, const struct curve *curve, unsigned width);

/* A picture of its own: axes, units, legend; light or dark as the reader's system is. */
void verb_curve_svg(FILE *out, const struct curve *curve, const char *heading);

/* The lines of a curve. */
static inline double verb_curve_alone(const struct curve_point *point)
{
    return point->alone;
}

static inline double verb_curve_swapping(const struct curve_point *point)
{
    return point->swapping;
}

static inline double verb_curve_bound(const struct curve_point *point)
{
    return point->bound;
}

/* Ratio at the upper end of the axis: all that matters fits, and what is far above does not press it down. */
double verb_curve_top(const struct curve *curve);

/* A round step such that `most` or fewer of them make `span`. */
double verb_curve_step(double span, int most);

/* The unit for an axis up to `bytes`: "GiB", and how many bytes it is. */
const char *verb_curve_unit(uint64_t bytes, double *unit);
