#include "trace/verb_curve.h"
#include <math.h>
#include <string.h>

enum { FEWEST_COLUMNS = 30, MOST_COLUMNS = 108, ROWS = 18, LEFT = 8, RIGHT = 4 };

struct canvas {
    char cells[ROWS][MOST_COLUMNS + 1];
    int columns;
    const struct curve *curve;
    double top;
};

static int column_of(const struct canvas *canvas, double bytes)
{
    return (int)lround(bytes / (double)canvas->curve->bare_peak_bytes * (canvas->columns - 1));
}

/* Row 0 is the uppermost; -1: above the axis. */
static int row_of(const struct canvas *canvas, double ratio)
{
    int row = (int)lround((canvas->top - ratio) / (canvas->top - 1) * (ROWS - 1));
    return row >= ROWS ? ROWS - 1 : row < 0 ? -1 : row;
}

static void put(struct canvas *canvas, double bytes, double ratio, char sign)
{
    int column = column_of(canvas, bytes), row = row_of(canvas, ratio);
    if (column >= 0 && column < canvas->columns && row >= 0)
        canvas->cells[row][column] = sign;
}

/* Beside another mark, where its own place is taken. */
static void put_mark(struct canvas *canvas, const struct curve_mark *mark)
{
    int column = column_of(canvas, (double)mark->peak_bytes), row = row_of(canvas, mark->ratio);
    while (row >= 0 && column > 0 && column < canvas->columns && canvas->cells[row][column] >= 'A')
        column--;
    if (row >= 0 && column >= 0 && column < canvas->columns)
        canvas->cells[row][column] = mark->letter;
}

/* A staircase: between two caps the plan for the lower one holds. */
static void draw_line(struct canvas *canvas, double (*value)(const struct curve_point *), char sign)
{
    const struct curve *curve = canvas->curve;
    for (int column = 0; column < canvas->columns; column++) {
        double bytes = (double)curve->bare_peak_bytes * column / (canvas->columns - 1), ratio = 0;
        for (uint32_t k = 0; k < curve->point_count; k++)
            if ((double)curve->points[k].cap_bytes <= bytes * (1 + 1e-9) + 1)
                ratio = value(&curve->points[k]);
        if (ratio > 0)
            put(canvas, bytes, ratio, sign);
    }
}

static void write_axis(FILE *out, const struct canvas *canvas)
{
    double unit, peak = (double)canvas->curve->bare_peak_bytes;
    const char *name = verb_curve_unit(canvas->curve->bare_peak_bytes, &unit);
    double step = verb_curve_step(peak / unit, canvas->columns / 11);
    char line[MOST_COLUMNS + 1], labels[MOST_COLUMNS + 16];
    memset(line, '-', sizeof line);
    memset(labels, ' ', sizeof labels);
    line[canvas->columns] = 0;
    int used = 0;
    for (double value = 0; value * unit <= peak * (1 + 1e-9); value += step) {
        char text[24];
        int column = column_of(canvas, value * unit), length = snprintf(text, sizeof text, "%g", value);
        int begin = column - length / 2 < 0 ? 0 : column - length / 2;
        line[column] = column ? '+' : '-';
        memcpy(labels + begin, text, (size_t)length);
        used = begin + length;
    }
    labels[used] = 0;
    fprintf(out, "%*s+%s\n%*s%s\n", LEFT, "", line, LEFT + 1, "", labels);
    fprintf(out, "%*s memory cap, %s\n", LEFT, "", name);
}

static void write_legend(FILE *out, const struct curve *curve)
{
    char last = 0;
    fprintf(out, "%*s * Reprise, recomputation alone   . no plan takes less\n", LEFT, "");
    if (curve->has_swapping)
        fprintf(out, "%*s o with copies to the host\n", LEFT, "");
    if (curve->mark_count)
        fprintf(out, "%*s", LEFT, "");
    for (uint32_t k = 0; k < curve->mark_count; k++) {
        if (curve->marks[k].letter != last)
            fprintf(out, " %c %s  ", curve->marks[k].letter, curve->marks[k].name);
        last = curve->marks[k].letter;
    }
    if (curve->mark_count)
        fputc('\n', out);
}

void verb_curve_plot(FILE *out, const struct curve *curve, unsigned width)
{
    int columns = (int)width - LEFT - RIGHT;
    columns = columns < FEWEST_COLUMNS ? FEWEST_COLUMNS : columns > MOST_COLUMNS ? MOST_COLUMNS : columns;
    struct canvas canvas = {.columns = columns, .curve = curve, .top = verb_curve_top(curve)};
    for (int row = 0; row < ROWS; row++) {
        memset(canvas.cells[row], ' ', sizeof canvas.cells[row]);
        canvas.cells[row][columns] = 0;
    }
    draw_line(&canvas, verb_curve_bound, '.');
    if (curve->has_swapping)
        draw_line(&canvas, verb_curve_swapping, 'o');
    draw_line(&canvas, verb_curve_alone, '*');
    for (uint32_t k = 0; k < curve->mark_count; k++)
        put_mark(&canvas, &curve->marks[k]);
    fprintf(out, "time, x of an iteration without dropping\n");
    double step = verb_curve_step(canvas.top - 1, 5), label = canvas.top;
    for (int row = 0; row < ROWS; row++) {
        size_t length = strlen(canvas.cells[row]);
        while (length && canvas.cells[row][length - 1] == ' ')
            canvas.cells[row][--length] = 0;
        bool is_labelled = label > 1 - step / 2 && row_of(&canvas, label) == row;
        if (is_labelled)
            fprintf(out, "%*.4g +%s\n", LEFT - 1, label, canvas.cells[row]);
        else
            fprintf(out, "%*s|%s\n", LEFT, "", canvas.cells[row]);
        label -= is_labelled ? step : 0;
    }
    write_axis(out, &canvas);
    write_legend(out, curve);
}
