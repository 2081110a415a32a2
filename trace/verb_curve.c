#include "policy/plan.h"
#include "trace/report.h"
#include "trace/verb.h"
#include <math.h>

#define POINTS 24

struct point {
    uint64_t cap, peak;
    double ratio, bound;  /* of the bare time */
    const char *strategy; /* NULL: no plan */
};

struct curve {
    struct point points[POINTS];
    uint32_t count;
    uint64_t floor, bare_peak, bare_ns;
};

static bool plan_point(const struct policy_problem *problem, bool may_swap, struct point *point)
{
    struct policy_options options = {.cap_bytes = point->cap, .may_swap = may_swap};
    struct plan plan;
    char why[256];
    if (policy_make_plan(problem, &options, &plan, NULL, why, sizeof why) != POLICY_OK)
        return false;
    double run = plan.run_nanoseconds ? (double)plan.run_nanoseconds : 1;
    point->peak = plan.peak_bytes;
    point->ratio = 1 + (double)plan.added_nanoseconds / run;
    point->bound = 1 + (double)plan.bound_nanoseconds / run;
    point->strategy = plan.strategy;
    plan_release(&plan);
    return true;
}

/* Caps from the floor to the bare peak, closer together where memory is scarce. A plan for less memory is one for more
 * memory too, so a later point is never worse than an earlier one. */
static bool make_curve(const struct policy_problem *problem, bool may_swap, struct curve *out, const char *path)
{
    struct policy_options options = {.cap_bytes = UINT64_MAX / 2};
    struct plan bare;
    char why[256] = "";
    *out = (struct curve){.floor = policy_floor_bytes(problem)};
    if (policy_make_plan(problem, &options, &bare, NULL, why, sizeof why) != POLICY_OK) {
        verb_refuse("%s: %s", path, why);
        return false;
    }
    out->bare_peak = bare.peak_bytes;
    out->bare_ns = bare.run_nanoseconds;
    plan_release(&bare);
    double span = log((double)out->bare_peak / (double)(out->floor ? out->floor : 1));
    for (uint32_t i = 0; i < POINTS; i++) {
        struct point *point = &out->points[out->count];
        *point =
            (struct point){.cap = i + 1 == POINTS ? out->bare_peak
                                                  : (uint64_t)ceil((double)out->floor * exp(span * i / (POINTS - 1)))};
        if (!plan_point(problem, may_swap, point))
            continue;
        const struct point *before = out->count ? &out->points[out->count - 1] : NULL;
        if (before && before->ratio < point->ratio) {
            uint64_t cap = point->cap;
            *point = *before;
            point->cap = cap;
        }
        out->count++;
    }
    return true;
}

static void write_table(const struct curve *curve, bool may_swap)
{
    char size[16];
    printf("Memory against time, from one recorded iteration of %.3f ms%s\n", (double)curve->bare_ns / 1e6,
           may_swap ? ", swapping allowed" : ", recomputation alone");
    printf("Peak without a plan %s", report_size(curve->bare_peak, size));
    printf(", floor %s\n\n", report_size(curve->floor, size));
    printf("%12s %8s %9s %9s  %s\n", "cap", "of peak", "time", "bound", "strategy");
    for (uint32_t i = 0; i < curve->count; i++) {
        const struct point *point = &curve->points[i];
        printf("%12s %7.1f%% %8.4fx", report_size(point->cap, size),
               100 * (double)point->cap / (double)(curve->bare_peak ? curve->bare_peak : 1), point->ratio);
        if (point->bound > 1)
            printf(" %8.4fx", point->bound);
        else
            printf(" %9s", "-");
        printf("  %s\n", point->strategy);
    }
}

enum { WIDTH = 640, HEIGHT = 400, LEFT = 70, TOP = 20, RIGHT = 20, BOTTOM = 50 };

static double x_of(const struct curve *curve, uint64_t cap)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (double)cap / (double)(curve->bare_peak ? curve->bare_peak : 1);
}

static double y_of(double ratio, double highest)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (ratio - 1) / (highest - 1);
}

static void write_axes(FILE *out, const struct curve *curve, double highest)
{
    char size[16];
    fprintf(out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#444\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
            WIDTH - RIGHT);
    for (int tick = 0; tick <= 4; tick++) {
        double ratio = 1 + (highest - 1) * tick / 4;
        uint64_t cap = curve->bare_peak / 4 * (uint64_t)tick;
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.2fx</text>\n", LEFT - 6, y_of(ratio, highest) + 4,
                ratio);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x_of(curve, cap),
                HEIGHT - BOTTOM + 18, report_size(cap, size));
    }
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">memory cap</text>\n", (LEFT + WIDTH - RIGHT) / 2,
            HEIGHT - 10);
    fprintf(out, "<text x=\"16\" y=\"%d\" transform=\"rotate(-90 16 %d)\" text-anchor=\"middle\">time</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2, (TOP + HEIGHT - BOTTOM) / 2);
}

/* True if the file was written whole. */
static bool write_svg(const char *path, const struct curve *curve)
{
    double highest = 1.05;
    FILE *out = fopen(path, "w");
    if (!out)
        return false;
    for (uint32_t i = 0; i < curve->count; i++)
        highest = fmax(highest, curve->points[i].ratio);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n",
            WIDTH, HEIGHT);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, HEIGHT);
    write_axes(out, curve, highest);
    fprintf(out, "<polyline fill=\"none\" stroke=\"#06c\" stroke-width=\"2\" points=\"");
    for (uint32_t i = 0; i < curve->count; i++)
        fprintf(out, "%.1f,%.1f ", x_of(curve, curve->points[i].cap), y_of(curve->points[i].ratio, highest));
    fprintf(out, "\"/>\n</svg>\n");
    bool has_failed = ferror(out) != 0;
    return fclose(out) == 0 && !has_failed;
}

int verb_curve(int argc, char **argv)
{
    const char *path, *svg = NULL;
    const struct verb_option options[] = {{"--svg", &svg}, {NULL, NULL}};
    struct trace trace;
    struct policy_problem problem;
    struct curve curve;
    if (!verb_arguments("curve", argc, argv, &path, options))
        return 2;
    const struct trace_recorded *recorded = verb_open(path, &trace);
    if (!recorded)
        return 2;
    if (!verb_problem(&trace, recorded, &problem)) {
        trace_release(&trace);
        return verb_refuse("%s: there is no memory for it", path);
    }
    bool may_swap = problem.out_bytes_per_ns > 0;
    int status = make_curve(&problem, may_swap, &curve, path) ? 0 : 2;
    if (status == 0) {
        write_table(&curve, may_swap);
        if (svg && !write_svg(svg, &curve))
            status = verb_refuse("curve: %s could not be written", svg);
    }
    verb_problem_release(&problem);
    trace_release(&trace);
    return status;
}
