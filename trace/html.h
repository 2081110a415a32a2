/* A model as one page of HTML that needs nothing else: its script, style and data are in it. */
#pragma once
#include "trace/model.h"
#include <stdio.h>

/* Memory against time, as the planner sees it. Ratios are of the bare time; 0: there is no plan. */
struct html_point {
    uint64_t cap_bytes;
    double alone, swapping, bound;
    const char *strategy; /* NULL: none */
};

/* A plan of the literature. */
struct html_mark {
    const char *name;
    uint64_t peak_bytes;
    double ratio;
};

struct html_curve {
    const struct html_point *points; /* by rising cap */
    const struct html_mark *marks;
    uint32_t point_count, mark_count;
    uint64_t floor_bytes, peak_bytes;
    bool has_swaps;
};

/* Errors of writing are left in `out` (ferror). False if there is no memory. curve may be NULL: the page then
 * says `why` there is none. */
bool html_write(FILE *out, const struct model *model, const struct html_curve *curve, const char *why);
