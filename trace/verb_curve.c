#include "trace/verb_curve.h"
#include "trace/output.h"
#include "trace/report.h"
#include "trace/terminal.h"
#include "trace/verb.h"
#include "trace/verb_input.h"
#include <errno.h>
#include <math.h>
#include <string.h>

enum { POINTS = 20 };

static const uint64_t PLANNING_NS = 2000000000; /* for the whole curve, named plans aside */

static const double HIGHEST = 2.5; /* what takes longer is a loss by any measure: the table still has it */

double verb_curve_step(double span, int most)
{
    double step = pow(10, floor(log10(span / most)));
    static const double rounds[] = {1, 2, 2.5, 5, 10};
    for (size_t k = 0; k < sizeof rounds / sizeof *rounds; k++)
        if (span / (step * rounds[k]) <= most + 1e-9)
            return step * rounds[k];
    return step * 10;
}

const char *verb_curve_unit(uint64_t bytes, double *unit)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int k = 0;
    for (*unit = 1; k < 4 && (double)bytes / *unit >= 2048; k++)
        *unit *= 1024;
    return names[k];
}

double verb_curve_top(const struct curve *curve)
{
    double top = 1.02, ours = 1;
    for (uint32_t k = 0; k < curve->point_count; k++)
        ours = fmax(ours, fmax(curve->points[k].alone, curve->points[k].swapping));
    top = fmax(top, fmin(ours, HIGHEST));
    for (uint32_t k = 0; k < curve->mark_count; k++)
        if (curve->marks[k].ratio < 1 + 2.5 * (top - 1))
            top = fmax(top, curve->marks[k].ratio);
    double step = verb_curve_step(top - 1, 5);
    return 1 + step * ceil((top - 1) / step - 1e-9);
}

static void write_ratio(double ratio)
{
    if (ratio > 0)
        printf(" %8.4fx", ratio);
    else
        printf(" %9s", "-");
}

static void write_table(const struct curve *curve)
{
    char size[16];
    printf("%12s %8s %9s %9s  %-13s%s\n", "cap", "of peak", "time", "bound", "made by",
           curve->has_swapping ? " with swaps" : "");
    for (uint32_t k = 0; k < curve->point_count; k++) {
        const struct curve_point *point = &curve->points[k];
        printf("%12s %7.1f%%", report_size(point->cap_bytes, size),
               100 * (double)point->cap_bytes / (double)(curve->bare_peak_bytes ? curve->bare_peak_bytes : 1));
        write_ratio(point->alone);
        write_ratio(point->bound);
        printf("  %-13s", point->strategy ? point->strategy : "-");
        if (curve->has_swapping)
            write_ratio(point->swapping);
        putchar('\n');
    }
}

static void write_marks(const struct curve *curve)
{
    char size[16];
    if (curve->mark_count)
        printf("\nPlans of the literature\n");
    for (uint32_t k = 0; k < curve->mark_count; k++) {
        const struct curve_mark *mark = &curve->marks[k];
        printf("%12s %7.1f%% %8.4fx %9s  %s (%c)\n", report_size(mark->peak_bytes, size),
               100 * (double)mark->peak_bytes / (double)(curve->bare_peak_bytes ? curve->bare_peak_bytes : 1),
               mark->ratio, "", mark->name, mark->letter);
    }
}

static void write_text(const struct curve *curve, const struct verb_input *input)
{
    char size[16];
    printf("%s, %.3f ms\n", input->heading, (double)curve->run_nanoseconds / 1e6);
    printf("Peak without dropping %s", report_size(curve->bare_peak_bytes, size));
    printf(", floor %s\n\n", report_size(curve->floor_bytes, size));
    verb_curve_plot(stdout, curve, terminal_of(stdout).columns);
    putchar('\n');
    write_table(curve);
    write_marks(curve);
}

struct drawing {
    const struct curve *curve;
    const char *heading;
};

static bool draw(FILE *out, const void *context)
{
    const struct drawing *drawing = context;
    verb_curve_svg(out, drawing->curve, drawing->heading);
    return true;
}

static bool write_svg(const char *path, const struct curve *curve, const struct verb_input *input)
{
    struct output output;
    char why[OUTPUT_PATH_MOST + 128];
    bool is_written = output_begin(&output, path, why, sizeof why);
    if (is_written) {
        is_written = output_fill(output.part, draw, &(struct drawing){curve, input->heading}, why, sizeof why);
        if (is_written)
            is_written = output_end(&output, why, sizeof why);
        else
            output_abandon(&output);
    }
    return is_written || (verb_refuse("curve: %s could not be written: %s", path, why), false);
}

static int show(const struct verb_input *input, const char *path, const char *svg)
{
    struct curve_request request = {.points = POINTS, .nanoseconds = PLANNING_NS, .may_swap = true, .has_marks = true};
    struct curve curve;
    char why[256] = "";
    enum curve_result result = curve_make(input->problem, &request, &curve, why, sizeof why);
    if (result != CURVE_DONE)
        return verb_refuse("%s: %s", path, result == CURVE_NO_MEMORY ? "there is no memory for it" : why);
    if (curve.bare_peak_bytes == 0 || curve.run_nanoseconds == 0)
        return verb_refuse("%s: nothing in it takes memory and time", path);
    if (svg && !write_svg(svg, &curve, input))
        return 2;
    write_text(&curve, input);
    return fflush(stdout) == 0 ? 0 : verb_refuse("curve: it could not be written: %s", strerror(errno));
}

int verb_curve(int argc, char **argv)
{
    const char *path, *svg = NULL;
    const struct verb_option options[] = {{"--svg", &svg}, {NULL, NULL}};
    struct verb_input input;
    if (!verb_arguments("curve", argc, argv, &path, options))
        return 2;
    if (svg && output_is_one_file(svg, path))
        return verb_refuse("curve: --svg %s is the file that is read", svg);
    if (!verb_input_open(path, &input))
        return 2;
    int status = show(&input, path, svg);
    verb_input_close(&input);
    return status;
}
