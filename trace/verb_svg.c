#include "trace/verb_curve.h"
#include "trace/report.h"
#include <math.h>

enum { WIDTH = 760, HEIGHT = 490, LEFT = 64, TOP = 66, RIGHT = 24, BOTTOM = 58, LEGEND_LINE = 20 };

static const char style[] =
    "<style>\n"
    "svg{--paper:#fff;--ink:#1c1c1c;--faint:#d9d9d9;--ours:#0b62c4;--swaps:#b4560a;--bound:#6b6b6b;--mark:#7a2a8c}\n"
    "@media (prefers-color-scheme:dark){svg{--paper:#16181c;--ink:#e8e8e8;--faint:#3a3d44;--ours:#62a8ff;"
    "--swaps:#ffa657;--bound:#a0a0a0;--mark:#d79be8}}\n"
    "text{fill:var(--ink)}.grid{stroke:var(--faint);stroke-width:1}.line{fill:none;stroke-width:2.2}\n"
    ".mark{fill:none;stroke:var(--mark);stroke-width:1.8}\n"
    "</style>\n";

struct picture {
    FILE *out;
    const struct curve *curve;
    double top;
};

static double x_of(const struct picture *p, double bytes)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * bytes / (double)p->curve->bare_peak_bytes;
}

static double y_of(const struct picture *p, double ratio)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (ratio - 1) / (p->top - 1);
}

static void write_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '<')
            fputs("&lt;", out);
        else
            fputc(*text, out);
    }
}

static void write_axes(const struct picture *p, const char *heading)
{
    FILE *out = p->out;
    double unit, peak = (double)p->curve->bare_peak_bytes;
    const char *name = verb_curve_unit(p->curve->bare_peak_bytes, &unit);
    double step = verb_curve_step(p->top - 1, 5);
    for (double ratio = 1; ratio <= p->top + step / 1000; ratio += step) {
        fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y_of(p, ratio), WIDTH - RIGHT);
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g ×</text>\n", LEFT - 8, y_of(p, ratio) + 4,
                ratio);
    }
    step = verb_curve_step(peak / unit, 8);
    for (double value = 0; value * unit <= peak * (1 + 1e-9); value += step) {
        double x = x_of(p, value * unit);
        fprintf(out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", x, TOP, HEIGHT - BOTTOM);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x, HEIGHT - BOTTOM + 18, value);
    }
    fprintf(out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"var(--ink)\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
            WIDTH - RIGHT);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">memory cap, %s</text>\n", (LEFT + WIDTH - RIGHT) / 2,
            HEIGHT - 14, name);
    char size[16], time[16];
    fprintf(out, "<text x=\"12\" y=\"%d\">time, × of an iteration without dropping (%s, %s", TOP - 14,
            report_time((double)p->curve->run_nanoseconds / 1e9, time), report_size(p->curve->bare_peak_bytes, size));
    fprintf(out, "; floor %s)</text>\n", report_size(p->curve->floor_bytes, size));
    fprintf(out, "<text x=\"12\" y=\"%d\" font-weight=\"600\">", TOP - 42);
    write_escaped(out, heading);
    fprintf(out, "</text>\n<title>");
    write_escaped(out, heading);
    fprintf(out, "</title>\n");
}

/* A staircase from the first point that has a value: between two caps the plan for the lower one holds. The bound is
 * drawn from point to point. */
static void write_line(const struct picture *p, double (*value)(const struct curve_point *), const char *attributes,
                       bool is_staircase)
{
    double before = 0;
    for (uint32_t k = 0; k < p->curve->point_count; k++) {
        const struct curve_point *point = &p->curve->points[k];
        double ratio = value(point), x = x_of(p, (double)point->cap_bytes);
        if (ratio <= 0)
            continue;
        if (before <= 0)
            fprintf(p->out, "<path class=\"line\" clip-path=\"url(#area)\" %s d=\"M%.1f %.1f", attributes, x,
                    y_of(p, ratio));
        else if (is_staircase)
            fprintf(p->out, "H%.1fV%.1f", x, y_of(p, ratio));
        else
            fprintf(p->out, "L%.1f %.1f", x, y_of(p, ratio));
        before = ratio;
    }
    if (before > 0)
        fprintf(p->out, "\"/>\n");
}

static void write_mark(FILE *out, char letter, double x, double y)
{
    switch (letter) {
    case 'S':
        fprintf(out, "<rect class=\"mark\" x=\"%.1f\" y=\"%.1f\" width=\"9\" height=\"9\"/>\n", x - 4.5, y - 4.5);
        break;
    case 'L':
        fprintf(out, "<path class=\"mark\" d=\"M%.1f %.1fl6 10h-12z\"/>\n", x, y - 6);
        break;
    case 'R':
        fprintf(out, "<circle class=\"mark\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n", x, y);
        break;
    default:
        fprintf(out, "<path class=\"mark\" d=\"M%.1f %.1fl5.5 5.5l-5.5 5.5l-5.5 -5.5z\"/>\n", x, y - 5.5);
        break;
    }
}

static void write_marks(const struct picture *p)
{
    for (uint32_t k = 0; k < p->curve->mark_count; k++) {
        const struct curve_mark *mark = &p->curve->marks[k];
        if (mark->ratio <= p->top)
            write_mark(p->out, mark->letter, x_of(p, (double)mark->peak_bytes), y_of(p, mark->ratio));
    }
}

static bool is_first_of_its_kind(const struct curve *curve, uint32_t mark)
{
    for (uint32_t k = 0; k < mark; k++)
        if (curve->marks[k].letter == curve->marks[mark].letter)
            return false;
    return true;
}

static bool all_are_above(const struct picture *p, char letter)
{
    for (uint32_t k = 0; k < p->curve->mark_count; k++)
        if (p->curve->marks[k].letter == letter && p->curve->marks[k].ratio <= p->top)
            return false;
    return true;
}

/* In the upper right corner, where every curve has come down. */
static void write_legend(const struct picture *p)
{
    const char *const names[] = {"Reprise, recomputation alone", "with copies to the host",
                                 "no plan without copies is below"};
    const char *const strokes[] = {"stroke=\"var(--ours)\"", "stroke=\"var(--swaps)\"",
                                   "stroke=\"var(--bound)\" stroke-dasharray=\"5 4\""};
    int x = WIDTH - RIGHT - 280, y = TOP + 22, lines = 2 + p->curve->has_swapping;
    for (uint32_t k = 0; k < p->curve->mark_count; k++)
        lines += is_first_of_its_kind(p->curve, k);
    fprintf(p->out,
            "<rect x=\"%d\" y=\"%d\" width=\"272\" height=\"%d\" rx=\"4\" fill=\"var(--paper)\" "
            "stroke=\"var(--faint)\"/>\n",
            x - 12, y - 16, lines * LEGEND_LINE + 10);
    for (int k = 0; k < 3; k++) {
        if (k == 1 && !p->curve->has_swapping)
            continue;
        fprintf(p->out, "<path class=\"line\" %s d=\"M%d %dh26\"/><text x=\"%d\" y=\"%d\">%s</text>\n", strokes[k], x,
                y, x + 36, y + 4, names[k]);
        y += LEGEND_LINE;
    }
    for (uint32_t k = 0; k < p->curve->mark_count; k++) {
        const struct curve_mark *mark = &p->curve->marks[k];
        if (!is_first_of_its_kind(p->curve, k))
            continue;
        write_mark(p->out, mark->letter, x + 13, y);
        fprintf(p->out, "<text x=\"%d\" y=\"%d\">%s", x + 36, y + 4, mark->name);
        if (all_are_above(p, mark->letter))
            fprintf(p->out, ": %.2f × (above)", mark->ratio);
        fprintf(p->out, "</text>\n");
        y += LEGEND_LINE;
    }
}

void verb_curve_svg(FILE *out, const struct curve *curve, const char *heading)
{
    struct picture picture = {out, curve, verb_curve_top(curve)};
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
            "font-family=\"system-ui,sans-serif\" font-size=\"13\" role=\"img\">\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fputs(style, out);
    fprintf(out, "<clipPath id=\"area\"><path d=\"M%d %dH%dV%dH%dz\"/></clipPath>\n", LEFT, TOP - 2, WIDTH - RIGHT + 2,
            HEIGHT - BOTTOM + 2, LEFT);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"var(--paper)\"/>\n", WIDTH, HEIGHT);
    write_axes(&picture, heading);
    write_line(&picture, verb_curve_bound, "stroke=\"var(--bound)\" stroke-dasharray=\"5 4\"", false);
    if (curve->has_swapping)
        write_line(&picture, verb_curve_swapping, "stroke=\"var(--swaps)\"", true);
    write_line(&picture, verb_curve_alone, "stroke=\"var(--ours)\"", true);
    write_marks(&picture);
    write_legend(&picture);
    fprintf(out, "</svg>\n");
}
