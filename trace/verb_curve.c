#include "policy/plan.h"
#include "trace/report.h"
#include "trace/verb.h"
#include <math.h>

#define POINTS            24
#define POINT_NANOSECONDS 100000000ull /* planning time for each plan: the whole curve in seconds */

struct way {
    double ratio, bound; /* of the bare time; ratio 0: no plan */
    const char *strategy;
};

enum { ALONE, SWAPPING, WAYS }; /* recomputation alone; both */

struct point {
    uint64_t cap;
    struct way ways[WAYS];
};

struct curve {
    struct point points[POINTS];
    uint32_t count;
    bool has_swaps; /* the second way was tried */
    uint64_t floor, bare_peak, bare_ns;
};

static void plan_way(const struct policy_problem *problem, uint64_t cap, bool may_swap, struct way *way)
{
    struct policy_options options = {.cap_bytes = cap, .deadline_ns = POINT_NANOSECONDS, .may_swap = may_swap};
    struct plan plan;
    char why[256];
    *way = (struct way){0};
    if (policy_make_plan(problem, &options, &plan, NULL, why, sizeof why) != POLICY_OK)
        return;
    double run = plan.run_nanoseconds ? (double)plan.run_nanoseconds : 1;
    way->ratio = 1 + (double)plan.added_nanoseconds / run;
    way->bound = 1 + (double)plan.bound_nanoseconds / run;
    way->strategy = plan.strategy;
    plan_release(&plan);
}

/* A plan for less memory is one for more memory too, and one that does not swap is one that might have. */
static void keep_better(const struct point *before, struct point *point)
{
    struct way *alone = &point->ways[ALONE], *swapping = &point->ways[SWAPPING];
    for (int way = 0; before && way < WAYS; way++)
        if (before->ways[way].ratio > 0 &&
            (point->ways[way].ratio <= 0 || before->ways[way].ratio < point->ways[way].ratio))
            point->ways[way] = before->ways[way];
    if (alone->ratio > 0 && (swapping->ratio <= 0 || alone->ratio < swapping->ratio))
        *swapping = *alone;
}

/* Caps from the floor to the bare peak, closer together where memory is scarce. */
static bool make_curve(const struct policy_problem *problem, struct curve *out, const char *path)
{
    struct policy_options options = {.cap_bytes = UINT64_MAX / 2};
    struct plan bare;
    char why[256] = "";
    *out = (struct curve){.floor = policy_floor_bytes(problem), .has_swaps = problem->out_bytes_per_ns > 0};
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
        double cap = (double)out->floor * exp(span * i / (POINTS - 1));
        point->cap = i + 1 == POINTS ? out->bare_peak : (uint64_t)ceil(cap);
        plan_way(problem, point->cap, false, &point->ways[ALONE]);
        if (out->has_swaps)
            plan_way(problem, point->cap, true, &point->ways[SWAPPING]);
        keep_better(out->count ? point - 1 : NULL, point);
        out->count += point->ways[ALONE].ratio > 0 || point->ways[SWAPPING].ratio > 0;
    }
    return true;
}

static void write_way(const struct way *way)
{
    if (way->ratio > 0)
        printf(" %8.4fx", way->ratio);
    else
        printf(" %9s", "-");
}

static void write_table(const struct curve *curve)
{
    char size[16];
    printf("Memory against time, from one recorded iteration of %.3f ms\n", (double)curve->bare_ns / 1e6);
    printf("Peak without a plan %s", report_size(curve->bare_peak, size));
    printf(", floor %s\n\n", report_size(curve->floor, size));
    printf("%12s %8s %9s %9s  %-12s", "cap", "of peak", "time", "bound", "strategy");
    printf("%s\n", curve->has_swaps ? " with swaps" : "");
    for (uint32_t i = 0; i < curve->count; i++) {
        const struct point *point = &curve->points[i];
        const struct way *alone = &point->ways[ALONE];
        printf("%12s %7.1f%%", report_size(point->cap, size),
               100 * (double)point->cap / (double)(curve->bare_peak ? curve->bare_peak : 1));
        write_way(alone);
        write_way(&(struct way){.ratio = alone->bound > 1 ? alone->bound : 0});
        printf("  %-12s", alone->strategy ? alone->strategy : "-");
        if (curve->has_swaps)
            write_way(&point->ways[SWAPPING]);
        putchar('\n');
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

static void write_line(FILE *out, const struct curve *curve, uint32_t way, double highest)
{
    static const char *const colours[WAYS] = {"#06c", "#c60"}, *const labels[WAYS] = {"recomputation alone",
                                                                                      "with swaps"};
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colours[way]);
    for (uint32_t i = 0; i < curve->count; i++) {
        const struct point *point = &curve->points[i];
        if (point->ways[way].ratio > 0)
            fprintf(out, "%.1f,%.1f ", x_of(curve, point->cap), y_of(point->ways[way].ratio, highest));
    }
    fprintf(out, "\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"%s\">%s</text>\n", WIDTH - RIGHT - 4,
            TOP + 14 + 16 * (int)way, colours[way], labels[way]);
}

/* True if the file was written whole. */
static bool write_svg(const char *path, const struct curve *curve)
{
    double highest = 1.05;
    FILE *out = fopen(path, "w");
    if (!out)
        return false;
    for (uint32_t i = 0; i < curve->count; i++)
        for (uint32_t way = 0; way < WAYS; way++)
            highest = fmax(highest, curve->points[i].ways[way].ratio);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n",
            WIDTH, HEIGHT);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, HEIGHT);
    write_axes(out, curve, highest);
    write_line(out, curve, ALONE, highest);
    if (curve->has_swaps)
        write_line(out, curve, SWAPPING, highest);
    fprintf(out, "</svg>\n");
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
    int status = make_curve(&problem, &curve, path) ? 0 : 2;
    if (status == 0) {
        write_table(&curve);
        if (svg && !write_svg(svg, &curve))
            status = verb_refuse("curve: %s could not be written", svg);
    }
    verb_problem_release(&problem);
    trace_release(&trace);
    return status;
}
