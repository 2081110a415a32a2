/* Memory against time: the least time found at each of a row of caps, from the floor to the peak without dropping.
 *
 * More memory never costs more time: a plan for less memory is one for more as well, and a plan without swapping is
 * one that might have swapped. The bound holds for plans without swapping; it never rises with memory either.
 * Caps ascend; the last one is the bare peak, where the ratio is 1. Points for which there is no plan at all are left
 * out. */
#pragma once
#include "policy/problem.h"

enum { CURVE_MOST_POINTS = 64, CURVE_MOST_MARKS = 16 };

struct curve_request {
    uint32_t points;      /* 2 .. CURVE_MOST_POINTS */
    uint64_t nanoseconds; /* planning time for all points together, named plans aside; 0 = 100 ms per plan */
    bool may_swap;        /* plans with swapping as well, where the problem knows a bandwidth */
    bool has_marks;       /* named plans of the literature as well */
};

/* Ratios are to the time of all operations once; 0 = no plan, or no bound. */
struct curve_point {
    uint64_t cap_bytes;
    double alone;         /* recomputation alone */
    double swapping;      /* recomputation and swapping; 0 throughout without may_swap */
    double bound;         /* no plan without swapping takes less */
    uint64_t peak_bytes;  /* of the plan behind `alone` */
    const char *strategy; /* that made it; static string; NULL = no plan */
};

/* One plan of a named method. */
struct curve_mark {
    const char *name; /* static string */
    char letter;      /* for plots in text */
    uint64_t peak_bytes;
    double ratio;
    const char *strategy; /* static string */
};

struct curve {
    struct curve_point points[CURVE_MOST_POINTS];
    struct curve_mark marks[CURVE_MOST_MARKS];
    uint32_t point_count, mark_count;
    uint64_t bare_peak_bytes, floor_bytes, run_nanoseconds;
    bool has_swapping;
};

enum curve_result { CURVE_DONE, CURVE_BAD_PROBLEM, CURVE_NO_MEMORY };

/* `why` gets one line for CURVE_BAD_PROBLEM. Uses malloc; nothing is left allocated. */
enum curve_result curve_make(const struct policy_problem *problem, const struct curve_request *request,
                             struct curve *out, char *why, size_t why_bytes);
