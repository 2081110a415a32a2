#include "trace/html.h"
#include "trace/output.h"
#include "trace/perfetto.h"
#include "trace/report.h"
#include "trace/sqlite.h"
#include "trace/verb.h"
#include "trace/verb_report.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One file that is asked for beside the page of text. `write` fills the file of this name. */
struct form {
    const char *option, *path;
    bool (*write)(const char *part, const struct model *model, char *why, size_t why_bytes);
};

/* The page's form of a curve. */
static bool put_with_curve(FILE *out, const struct model *model, const struct curve *curve)
{
    struct html_point points[CURVE_MOST_POINTS];
    struct html_mark marks[CURVE_MOST_MARKS];
    for (uint32_t i = 0; i < curve->point_count; i++) {
        const struct curve_point *from = &curve->points[i];
        points[i] = (struct html_point){from->cap_bytes, from->alone, from->swapping, from->bound, from->strategy};
    }
    for (uint32_t i = 0; i < curve->mark_count; i++)
        marks[i] = (struct html_mark){curve->marks[i].name, curve->marks[i].peak_bytes, curve->marks[i].ratio};
    return html_write(out, model,
                      &(struct html_curve){.points = points,
                                           .marks = marks,
                                           .point_count = curve->point_count,
                                           .mark_count = curve->mark_count,
                                           .floor_bytes = curve->floor_bytes,
                                           .peak_bytes = curve->bare_peak_bytes,
                                           .has_swaps = curve->has_swapping},
                      NULL);
}

static bool put_html(FILE *out, const void *context)
{
    const struct model *model = context;
    struct curve *curve = calloc(1, sizeof *curve);
    char why[256] = "";
    if (!curve)
        return false;
    progress_show("planning for", "the memory/time curve");
    bool has_curve = report_plan_curve(model, curve, why, sizeof why);
    bool is_written = has_curve ? put_with_curve(out, model, curve) : html_write(out, model, NULL, why);
    free(curve);
    return is_written;
}

static bool write_html(const char *part, const struct model *model, char *why, size_t why_bytes)
{
    return output_fill(part, put_html, model, why, why_bytes);
}

static bool put_perfetto(FILE *out, const void *model)
{
    return perfetto_write(out, model);
}

static bool write_perfetto(const char *part, const struct model *model, char *why, size_t why_bytes)
{
    return output_fill(part, put_perfetto, model, why, why_bytes);
}

/* Two outputs in one file, or an output in the recording, would lose something. */
static bool are_apart(const char *path, const struct form *forms, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (forms[i].path && output_is_one_file(forms[i].path, path))
            return verb_refuse("report: %s %s is the recording itself", forms[i].option, forms[i].path), false;
        for (size_t j = 0; forms[i].path && j < i; j++)
            if (forms[j].path && output_is_one_file(forms[i].path, forms[j].path))
                return verb_refuse("report: %s and %s are one file", forms[j].option, forms[i].option), false;
    }
    return true;
}

static bool write_form(const struct form *form, const struct model *model)
{
    struct output output;
    char why[OUTPUT_PATH_MOST + 128];
    if (!form->path)
        return true;
    progress_show("writing", form->path);
    if (!output_begin(&output, form->path, why, sizeof why)) {
        progress_clear();
        return verb_refuse("report: %s: %s", form->path, why), false;
    }
    bool is_written = form->write(output.part, model, why, sizeof why);
    if (is_written)
        is_written = output_end(&output, why, sizeof why);
    else
        output_abandon(&output);
    progress_clear();
    return is_written || (verb_refuse("report: %s: %s", form->path, why), false);
}

static bool write_all(const char *path, const struct trace *trace, const struct form *forms, size_t count)
{
    struct model model;
    struct terminal terminal = terminal_of(stdout);
    progress_show("working out what was held in", path);
    bool is_made = model_make(trace, &model);
    progress_clear();
    if (!is_made)
        return verb_refuse("%s: there is no memory for it", path), false;
    bool is_written = true;
    for (size_t i = 0; i < count && is_written; i++)
        is_written = write_form(&forms[i], &model);
    if (is_written && (!report_page(stdout, &model, &terminal) || fflush(stdout) != 0))
        is_written = (verb_refuse("report: it could not be written: %s", strerror(errno)), false);
    model_release(&model);
    return is_written;
}

int verb_report(int argc, char **argv)
{
    const char *path;
    struct form forms[] = {
        {"--html", NULL, write_html}, {"--sqlite", NULL, sqlite_write}, {"--perfetto", NULL, write_perfetto}};
    const struct verb_option options[] = {
        {"--html", &forms[0].path}, {"--sqlite", &forms[1].path}, {"--perfetto", &forms[2].path}, {NULL, NULL}};
    struct trace trace;
    char why[512];
    if (!verb_arguments("report", argc, argv, &path, options) || !are_apart(path, forms, sizeof forms / sizeof *forms))
        return 2;
    progress_show("reading", path);
    bool is_read = trace_read(path, &trace, why, sizeof why);
    progress_clear();
    if (!is_read)
        return verb_refuse("%s", why);
    bool is_written = write_all(path, &trace, forms, sizeof forms / sizeof *forms);
    trace_release(&trace);
    return is_written ? 0 : 2;
}
