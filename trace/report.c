#include "trace/report.h"
#include "trace/page.h"
#include <stdlib.h>
#include <string.h>

#define LABEL_WIDTH 11
#define MOST_ROWS   64 /* of a table */

/* A part of the page below its title. Rows beyond `least` come when there is room, in turns. */
enum section { CHART, KINDS, SITES, LONGEST, ITERATIONS, REASONS, SECTIONS };

struct plan {
    unsigned rows[SECTIONS]; /* without titles; 0: the section is left out */
};

struct reason {
    uint32_t text;
    uint32_t spans;
    uint64_t bytes;
};

struct sheet {
    struct page page;
    const struct model *model;
    const struct model_view *view;  /* the one whose peak is told */
    const struct model_view *lives; /* the one of which single lifetimes are told */
    uint32_t longest[MOST_ROWS], longest_count;
    struct reason *reasons; /* by string, most bytes first */
    uint32_t reason_count;
    uint32_t kind_rows;
};

static const char *text_of(const struct sheet *sheet, uint32_t string)
{
    return sheet->model->strings[string];
}

/* The iteration of the run that a position of it lies in; NULL: none. */
static const struct model_iteration *iteration_at(const struct model *model, uint64_t ns)
{
    for (uint32_t i = model->iteration_count; i-- > 0;)
        if (model->iterations[i].start_ns <= ns && ns <= model->iterations[i].end_ns)
            return &model->iterations[i];
    return NULL;
}

/* The operation that runs at a position: the last one that began. */
static const struct model_operation *operation_at(const struct model_view *view, uint32_t position)
{
    uint32_t low = 0, high = view->operation_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (view->operations[middle].position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &view->operations[low - 1] : NULL;
}

/* When the job took most of the device; NULL: not recorded. */
static const struct trace_resident *most_resident(const struct trace *trace)
{
    const struct trace_resident *most = NULL;
    for (uint32_t i = 0; i < trace->resident_count; i++) {
        const struct trace_resident *one = &trace->residents[i];
        if (!most || one->frames_bytes + one->outside_bytes > most->frames_bytes + most->outside_bytes)
            most = one;
    }
    return most;
}

static void write_peak(struct sheet *sheet)
{
    const struct model_view *view = sheet->view;
    const struct model_operation *operation = operation_at(view, view->peak_position);
    char size[16], time[16], where[64] = "";
    uint64_t ns = view->clock_ns[view->peak_position];
    const struct model_iteration *iteration = iteration_at(sheet->model, ns);
    page_colour(&sheet->page, 7);
    page_put(&sheet->page, "Peak %s", report_size(view->peak_bytes, size));
    page_colour(&sheet->page, 0);
    if (view != &sheet->model->run)
        snprintf(where, sizeof where, "at operation %u of %u, ", view->peak_position, view->position_count);
    else if (iteration)
        snprintf(where, sizeof where, "in iteration %llu (%s), ", (unsigned long long)iteration->index,
                 model_phase_names[iteration->phase]);
    page_wrap(&sheet->page, " at %s, %sas %s ran", report_time((double)ns / 1e9, time), where,
              operation ? text_of(sheet, operation->name) : "nothing");
}

static void write_device(struct sheet *sheet)
{
    const struct trace *trace = sheet->model->trace;
    char size[16], cap[24] = "no cap", run[96] = "", time[16];
    if (trace->run.cap_bytes)
        snprintf(cap, sizeof cap, "cap %s", report_size(trace->run.cap_bytes, size));
    if (sheet->model->run.position_count)
        snprintf(run, sizeof run, "; %u iterations, %u operations, %s", sheet->model->iteration_count,
                 trace->submitted_count, report_time((double)trace->end_at / 1e9, time));
    page_wrap(&sheet->page, "%s%s%s, %s%s", text_of(sheet, sheet->model->device), sheet->model->device ? ", " : "",
              report_size(trace->run.device_bytes, size), cap, run);
}

/* What the job took of the device at most, by the device's own count, and how that fits what was held. */
static void write_physical(struct sheet *sheet, const struct trace_resident *resident)
{
    const struct model_view *view = sheet->view;
    uint64_t taken = resident->frames_bytes + resident->outside_bytes;
    char all[16], held[16], rest[16];
    if (taken >= view->peak_bytes)
        page_wrap(&sheet->page, "On the device at most %s: %s held + %s partly used or free", report_size(taken, all),
                  report_size(view->peak_bytes, held), report_size(taken - view->peak_bytes, rest));
    else
        page_wrap(&sheet->page, "On the device at most %s; %s of the peak dropped or on the host",
                  report_size(taken, all), report_size(view->peak_bytes - taken, rest));
}

static void write_warnings(struct sheet *sheet)
{
    const struct trace *trace = sheet->model->trace;
    char time[16];
    page_colour(&sheet->page, 1);
    if (trace->is_cut)
        page_wrap(&sheet->page, "The file was cut off at %s: the program was killed, or still runs",
                  report_time((double)trace->end_at / 1e9, time));
    if (trace->lost_count)
        page_wrap(&sheet->page, "%llu events are missing: figures may be too low",
                  (unsigned long long)trace->lost_count);
    page_colour(&sheet->page, 0);
}

/* The most that is held in one of `columns` slices of time. */
static void fill_columns(const struct model_view *view, uint64_t *most, unsigned columns)
{
    uint64_t span = view->clock_ns[view->position_count];
    memset(most, 0, columns * sizeof *most);
    uint64_t last = 0;
    unsigned reached = 0;
    for (uint32_t p = 0; p < view->position_count; p++) {
        double share = span ? (double)view->clock_ns[p] / (double)span : (double)p / view->position_count;
        unsigned column = share < 1 ? (unsigned)(share * columns) : columns - 1;
        for (; reached < column; reached++) /* what was held goes on to be held */
            most[reached + 1] = last;
        most[column] = view->held[p] > most[column] ? view->held[p] : most[column];
        last = view->held[p];
    }
    for (; reached + 1 < columns; reached++)
        most[reached + 1] = last;
}

static void write_chart(struct sheet *sheet, unsigned rows)
{
    const struct model_view *view = sheet->view;
    unsigned columns = sheet->page.terminal.columns - LABEL_WIDTH - 2;
    uint64_t *most = calloc(columns, sizeof *most);
    char size[16], time[16];
    if (!most)
        return;
    uint64_t top = view->peak_bytes ? view->peak_bytes : 1;
    fill_columns(view, most, columns);
    page_title(&sheet->page, "Memory held over %s, %s",
               view == &sheet->model->run ? "the run" : "the analysed iteration",
               report_time((double)view->clock_ns[view->position_count] / 1e9, time));
    for (unsigned row = rows; row-- > 0;) {
        page_fit_right(&sheet->page, row == rows - 1 ? report_size(top, size) : row == 0 ? "0" : "", LABEL_WIDTH - 1);
        page_put(&sheet->page, " |");
        page_colour(&sheet->page, 5);
        for (unsigned column = 0; column < columns; column++)
            page_cell(&sheet->page, (double)most[column] / (double)top * rows - row);
        page_colour(&sheet->page, 0);
        page_end_line(&sheet->page);
    }
    free(most);
}

static unsigned colour_of(uint32_t kind)
{
    return kind % 6 + 1;
}

static void write_kinds(struct sheet *sheet, unsigned rows)
{
    const struct model_view *view = sheet->view;
    bool is_told[KIND_COUNT] = {false};
    char text[32], size[16];
    page_title(&sheet->page, "Held at the peak, by kind");
    for (unsigned row = 0; row < rows; row++) {
        uint32_t best = KIND_COUNT;
        for (uint32_t kind = 0; kind < KIND_COUNT; kind++)
            if (!is_told[kind] && view->kind_bytes[kind] &&
                (best == KIND_COUNT || view->kind_bytes[kind] > view->kind_bytes[best]))
                best = kind;
        if (best == KIND_COUNT)
            return;
        is_told[best] = true;
        double share = (double)view->kind_bytes[best] / (double)view->peak_bytes;
        page_put(&sheet->page, "  ");
        page_fit(&sheet->page, kind_name((enum kind)best), 18);
        page_fit_right(&sheet->page, report_size(view->kind_bytes[best], size), 11);
        snprintf(text, sizeof text, "%.1f %%", 100 * share);
        page_fit_right(&sheet->page, text, 9);
        snprintf(text, sizeof text, "%u", view->kind_count[best]);
        page_fit_right(&sheet->page, text, 8);
        page_put(&sheet->page, view->kind_count[best] == 1 ? " piece   " : " pieces  ");
        page_bar(&sheet->page, share, sheet->page.terminal.columns - 58, colour_of(best));
        page_end_line(&sheet->page);
    }
}

/* Name and place share what the `taken` columns of figures leave; the name has it all if is_alone. */
static void write_name_place(struct sheet *sheet, const char *name, const char *place, unsigned taken, bool is_alone)
{
    unsigned room = sheet->page.terminal.columns - taken - 3, wide = is_alone ? room : room * 11 / 20;
    page_put(&sheet->page, "  ");
    page_fit(&sheet->page, name, wide);
    page_put(&sheet->page, " ");
    page_fit(&sheet->page, place, room - wide);
}

static void write_right_titles(struct sheet *sheet, const char *name, const char *const *titles, const unsigned *widths)
{
    unsigned taken = 0;
    for (unsigned i = 0; titles[i]; i++)
        taken += widths[i];
    page_colour(&sheet->page, 7);
    page_fit(&sheet->page, name, sheet->page.terminal.columns - taken);
    for (unsigned i = 0; titles[i]; i++)
        page_fit_right(&sheet->page, titles[i], widths[i]);
    page_colour(&sheet->page, 0);
    page_end_line(&sheet->page);
}

/* "at attention.cu:120 attention_forward < gpt_block_forward < forward", as far as it fits. */
static void write_calls(struct sheet *sheet, const struct model_site *site)
{
    const struct model *model = sheet->model;
    const struct model_stack *stack = &model->stacks[site->stack];
    char line[256];
    int used = snprintf(line, sizeof line, "    at %s", text_of(sheet, site->place));
    for (uint32_t i = stack->origin; i < stack->count && used < (int)sizeof line; i++) {
        const char *function = text_of(sheet, model->frames[stack->first + i].function);
        bool is_first = i == stack->origin;
        if (strcmp(function, "_start") == 0 || strncmp(function, "__libc_start", 12) == 0 ||
            (is_first && strcmp(function, text_of(sheet, site->place)) == 0))
            continue;
        if ((size_t)used + strlen(function) + 4 > sheet->page.terminal.columns)
            break;
        used += snprintf(line + used, sizeof line - (size_t)used, "%s%s", is_first ? " " : " < ", function);
    }
    page_colour(&sheet->page, 8);
    page_put(&sheet->page, "%s", line);
    page_colour(&sheet->page, 0);
    page_end_line(&sheet->page);
}

/* Tall pages tell the calls in a second line. */
static bool has_calls(const struct sheet *sheet)
{
    return sheet->page.terminal.rows >= 44 && sheet->model->stack_count > 1;
}

static void write_sites(struct sheet *sheet, unsigned rows)
{
    static const char *const titles[] = {"pieces", "at peak", "share", "mean life", NULL};
    static const unsigned widths[] = {7, 11, 8, 11};
    const struct model_view *view = sheet->view;
    unsigned end = sheet->page.lines + 1 + rows;
    char text[32];
    write_right_titles(sheet, "Held at the peak, by what made it and where", titles, widths);
    for (uint32_t i = 0; i < view->site_count && view->sites[i].peak_bytes; i++) {
        const struct model_site *site = &view->sites[i];
        bool is_double = has_calls(sheet) && site->place;
        if (sheet->page.lines + 1 + is_double > end)
            break;
        write_name_place(sheet, text_of(sheet, site->name), is_double ? "" : text_of(sheet, site->place), 37,
                         is_double);
        snprintf(text, sizeof text, "%u", site->peak_count);
        page_fit_right(&sheet->page, text, widths[0]);
        page_fit_right(&sheet->page, report_size(site->peak_bytes, text), widths[1]);
        snprintf(text, sizeof text, "%.1f %%", 100 * (double)site->peak_bytes / (double)view->peak_bytes);
        page_fit_right(&sheet->page, text, widths[2]);
        page_fit_right(&sheet->page, report_time(site->life_seconds / site->span_count, text), widths[3]);
        page_end_line(&sheet->page);
        if (is_double)
            write_calls(sheet, site);
    }
}

static void write_longest(struct sheet *sheet, unsigned rows)
{
    static const char *const titles[] = {"bytes", "life", "MiB x ms", NULL};
    static const unsigned widths[] = {11, 11, 11};
    char text[32];
    write_right_titles(sheet, "Longest-lived activations, by bytes x time", titles, widths);
    for (uint32_t i = 0; i < rows && i < sheet->longest_count; i++) {
        const struct model_span *span = &sheet->lives->spans[sheet->longest[i]];
        const char *place = text_of(sheet, sheet->model->stacks[span->stack].place);
        write_name_place(sheet, text_of(sheet, span->name), place, 33, false);
        page_fit_right(&sheet->page, report_size(span->bytes, text), widths[0]);
        page_fit_right(&sheet->page, report_time(model_life_seconds(sheet->lives, span), text), widths[1]);
        snprintf(text, sizeof text, "%.1f", model_byte_seconds(sheet->lives, span) * 1e3 / (1 << 20));
        page_fit_right(&sheet->page, text, widths[2]);
        page_end_line(&sheet->page);
    }
}

/* Rows of one phase that follow each other, as one. */
static uint32_t group_end(const struct model *model, uint32_t first, bool is_grouped)
{
    uint32_t after = first + 1;
    while (is_grouped && after < model->iteration_count &&
           model->iterations[after].phase == model->iterations[first].phase)
        after++;
    return after;
}

static uint32_t group_count(const struct model *model)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->iteration_count; i = group_end(model, i, true))
        count++;
    return count;
}

static void write_iteration(struct sheet *sheet, const struct model_iteration *rows, uint32_t count,
                            const unsigned *widths)
{
    struct model_iteration sum = {0};
    char text[48];
    for (uint32_t i = 0; i < count; i++) {
        sum.end_ns += rows[i].end_ns - rows[i].start_ns;
        sum.replays += rows[i].replays;
        sum.replayed_ns += rows[i].replayed_ns;
        sum.out_bytes += rows[i].out_bytes;
        sum.in_bytes += rows[i].in_bytes;
        sum.peak_bytes = rows[i].peak_bytes > sum.peak_bytes ? rows[i].peak_bytes : sum.peak_bytes;
    }
    if (count > 1)
        snprintf(text, sizeof text, "%llu to %llu %s, each", (unsigned long long)rows[0].index,
                 (unsigned long long)rows[count - 1].index, model_phase_names[rows[0].phase]);
    else
        snprintf(text, sizeof text, "%llu %s%s", (unsigned long long)rows[0].index, model_phase_names[rows[0].phase],
                 rows[0].is_analysed ? " *" : "");
    page_put(&sheet->page, "  ");
    page_fit(&sheet->page, text, sheet->page.terminal.columns - 54 - 2);
    page_fit_right(&sheet->page, report_time((double)sum.end_ns / 1e9 / count, text), widths[0]);
    page_fit_right(&sheet->page, report_size(sum.peak_bytes, text), widths[1]);
    snprintf(text, sizeof text, "%u", sum.replays / count);
    page_fit_right(&sheet->page, text, widths[2]);
    page_fit_right(&sheet->page, report_time((double)sum.replayed_ns / 1e9 / count, text), widths[3]);
    page_fit_right(&sheet->page, report_size((sum.out_bytes + sum.in_bytes) / count, text), widths[4]);
    page_end_line(&sheet->page);
}

static void write_iterations(struct sheet *sheet, unsigned rows)
{
    static const char *const titles[] = {"time", "peak", "replays", "recompute", "swapped", NULL};
    static const unsigned widths[] = {11, 11, 9, 11, 12};
    const struct model *model = sheet->model;
    bool is_grouped = model->iteration_count > rows;
    uint32_t at = 0;
    write_right_titles(sheet, "Iterations (* analysed)", titles, widths);
    for (unsigned row = 0; row < rows && at < model->iteration_count; row++) {
        uint32_t after = group_end(model, at, is_grouped);
        write_iteration(sheet, &model->iterations[at], after - at, widths);
        at = after;
    }
}

static void write_reasons(struct sheet *sheet, unsigned rows)
{
    const struct model_view *view = &sheet->model->iteration;
    unsigned end = sheet->page.lines + 1 + rows;
    char recompute[16], swap[16], hold[16], size[16];
    page_title(&sheet->page, "Recomputable: %s of the peak; only swappable: %s; must stay: %s",
               report_size(view->verdict_bytes[MODEL_RECOMPUTE], recompute),
               report_size(view->verdict_bytes[MODEL_SWAP], swap), report_size(view->verdict_bytes[MODEL_HOLD], hold));
    for (uint32_t i = 0; i < sheet->reason_count && sheet->page.lines < end; i++) {
        page_put(&sheet->page, "  not: ");
        page_fit_right(&sheet->page, report_size(sheet->reasons[i].bytes, size), 10);
        page_put(&sheet->page, " in %u %s: %s", sheet->reasons[i].spans,
                 sheet->reasons[i].spans == 1 ? "piece" : "pieces", text_of(sheet, sheet->reasons[i].text));
        page_end_line(&sheet->page);
    }
}

static int by_bytes(const void *left, const void *right)
{
    const struct reason *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->text > b->text) - (a->text < b->text);
}

static bool find_reasons(struct sheet *sheet)
{
    const struct model_view *view = &sheet->model->iteration;
    sheet->reasons = calloc(sheet->model->string_count + (size_t)1, sizeof *sheet->reasons);
    if (!sheet->reasons)
        return false;
    for (uint32_t i = 0; i < sheet->model->string_count; i++)
        sheet->reasons[i].text = i;
    for (uint32_t i = 0; i < view->span_count; i++) {
        const struct model_span *span = &view->spans[i];
        if (span->verdict == MODEL_RECOMPUTE || !model_is_at(span, view->peak_position))
            continue;
        sheet->reasons[span->reason].spans++;
        sheet->reasons[span->reason].bytes += span->bytes;
    }
    qsort(sheet->reasons, sheet->model->string_count, sizeof *sheet->reasons, by_bytes);
    while (sheet->reason_count < sheet->model->string_count && sheet->reasons[sheet->reason_count].bytes)
        sheet->reason_count++;
    return true;
}

/* Shares the lines of the page: what each part needs at least, then one more each in turns while there is room. */
static struct plan share_rows(const struct sheet *sheet)
{
    static const unsigned least[SECTIONS] = {
        [CHART] = 2, [KINDS] = 3, [SITES] = 4, [LONGEST] = 2, [ITERATIONS] = 1, [REASONS] = 1};
    const struct model *model = sheet->model;
    uint32_t iterations = model->iteration_count;
    unsigned groups = group_count(model), useful[SECTIONS] = {0};
    uint32_t sites = 0;
    while (sites < sheet->view->site_count && sheet->view->sites[sites].peak_bytes)
        sites++;
    useful[CHART] = sheet->view->position_count ? 8 : 0;
    useful[KINDS] = sheet->kind_rows;
    useful[SITES] = (sites < MOST_ROWS ? sites : MOST_ROWS) * (has_calls(sheet) ? 2 : 1);
    useful[LONGEST] = sheet->longest_count < 12 ? sheet->longest_count : 12;
    useful[ITERATIONS] = iterations <= 6 ? iterations : groups < 6 ? groups : 6;
    useful[REASONS] = model->recorded ? (sheet->reason_count < 4 ? sheet->reason_count : 4) : 0;
    unsigned head_rows = sheet->page.lines;
    struct plan plan = {0};
    unsigned room = sheet->page.terminal.rows - 1 > head_rows ? sheet->page.terminal.rows - 1 - head_rows : 0;
    for (enum section s = 0; s < SECTIONS; s++) {
        plan.rows[s] = useful[s] < least[s] ? useful[s] : least[s];
        unsigned taken = plan.rows[s] ? plan.rows[s] + 1 : 0;
        room = room > taken ? room - taken : 0;
    }
    for (bool has_grown = true; has_grown && room > 0;) {
        has_grown = false;
        for (enum section s = 0; s < SECTIONS && room > 0; s++)
            if (plan.rows[s] < useful[s]) {
                plan.rows[s]++;
                room--;
                has_grown = true;
            }
    }
    return plan;
}

static void write_head(struct sheet *sheet)
{
    const struct trace *trace = sheet->model->trace;
    const struct trace_resident *resident = most_resident(trace);
    page_title(&sheet->page, "%s", sheet->model->program ? text_of(sheet, sheet->model->program) : "A recorded run");
    write_device(sheet);
    write_warnings(sheet);
    write_peak(sheet);
    if (sheet->view == &sheet->model->run && resident)
        write_physical(sheet, resident);
    if (!sheet->model->recorded)
        page_wrap(&sheet->page, "No iteration was analysed: the program ended, or changed, before one had repeated");
}

static void write_sections(struct sheet *sheet, const struct plan *plan)
{
    static void (*const writers[SECTIONS])(struct sheet *, unsigned) = {write_chart,   write_kinds,      write_sites,
                                                                        write_longest, write_iterations, write_reasons};
    for (enum section s = 0; s < SECTIONS; s++)
        if (plan->rows[s])
            writers[s](sheet, plan->rows[s]);
}

bool report_page(FILE *out, const struct model *model, const struct terminal *terminal)
{
    struct sheet sheet = {.page = {.out = out, .terminal = *terminal}, .model = model};
    sheet.page.terminal.columns = terminal->columns < 80 ? 80 : terminal->columns > 200 ? 200 : terminal->columns;
    sheet.page.terminal.rows = terminal->rows < 24 ? 24 : terminal->rows;
    sheet.view = model_main_view(model);
    sheet.lives = model->iteration.position_count ? &model->iteration : &model->run;
    if (!sheet.view->position_count) {
        fprintf(out, "Nothing was recorded: the program ended before it used the device.\n");
        return true;
    }
    for (uint32_t kind = 0; kind < KIND_COUNT; kind++)
        sheet.kind_rows += sheet.view->kind_bytes[kind] > 0;
    sheet.longest_count = model_longest(sheet.lives, KIND_ACTIVATION, sheet.longest, MOST_ROWS);
    if (!find_reasons(&sheet))
        return false;
    write_head(&sheet);
    struct plan plan = share_rows(&sheet);
    write_sections(&sheet, &plan);
    free(sheet.reasons);
    return true;
}

bool report_write(FILE *out, const struct trace *trace)
{
    struct model model;
    struct terminal terminal = terminal_of(out);
    if (!model_make(trace, &model))
        return false;
    bool is_written = report_page(out, &model, &terminal);
    model_release(&model);
    return is_written;
}
