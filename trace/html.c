#include "trace/html.h"
#include "trace/html_data.h"
#include "trace/report.h"
#include <stdlib.h>
#include <string.h>

#define MOST_POSITIONS  131072u /* more are told by the most that was held among some */
#define MOST_SPANS      300000u /* the others count in what is held, without a bar of their own */
#define MOST_SITES      5000u
#define MOST_ITERATIONS 10000u

/* The page up to and from the data; a line "@DATA@" stands between. */
extern const char html_page[];

/* Positions of a view, put together where there are too many. */
struct bins {
    uint32_t count;
    uint32_t *position; /* [count]: of the most that was held in the bin */
    uint32_t *bin;      /* [position_count + 1]: the first bin whose position is not before this one */
    uint32_t peak;
};

static void bins_end(struct bins *bins)
{
    free(bins->position);
    free(bins->bin);
}

static bool bins_begin(struct bins *bins, const struct model_view *view)
{
    uint32_t count = view->position_count < MOST_POSITIONS ? view->position_count : MOST_POSITIONS;
    *bins = (struct bins){.count = count,
                          .position = calloc(count + (size_t)1, sizeof *bins->position),
                          .bin = calloc(view->position_count + (size_t)1, sizeof *bins->bin)};
    if (!bins->position || !bins->bin) {
        bins_end(bins);
        return false;
    }
    uint32_t next = 0;
    for (uint32_t b = 0; b < count; b++) {
        uint32_t from = (uint32_t)((uint64_t)b * view->position_count / count);
        uint32_t to = (uint32_t)((uint64_t)(b + 1) * view->position_count / count), most = from;
        for (uint32_t p = from; p < to; p++)
            most = view->held[p] > view->held[most] ? p : most;
        bins->position[b] = most;
        if (from <= view->peak_position && view->peak_position < to)
            bins->peak = b;
        for (; next <= most; next++)
            bins->bin[next] = b;
    }
    for (; next <= view->position_count; next++)
        bins->bin[next] = count;
    return true;
}

static void write_positions(FILE *out, const struct model_view *view, const struct bins *bins)
{
    struct html_array array;
    html_array_begin(&array, out, "clock", HTML_F64);
    for (uint32_t b = 0; b < bins->count; b++)
        html_array_f64(&array, (double)view->clock_ns[bins->position[b]]);
    html_array_f64(&array, (double)view->clock_ns[view->position_count]);
    html_array_end(&array);
    fputc(',', out);
    html_array_begin(&array, out, "held", HTML_F64);
    for (uint32_t b = 0; b < bins->count; b++)
        html_array_f64(&array, (double)view->held[bins->position[b]]);
    html_array_end(&array);
    for (int is_place = 0; is_place < 2; is_place++) {
        fputc(',', out);
        html_array_begin(&array, out, is_place ? "place" : "operation", HTML_U32);
        for (uint32_t b = 0, next = 0; b < bins->count; b++) {
            while (next < view->operation_count && view->operations[next].position <= bins->position[b])
                next++;
            const struct model_operation *operation = next ? &view->operations[next - 1] : NULL;
            html_array_u32(&array, !operation ? 0 : is_place ? operation->place : operation->name);
        }
        html_array_end(&array);
    }
}

/* Per bin of the run: the most that the job took of the device since the bin before. */
static void write_residents(FILE *out, const struct model *model, const struct bins *bins)
{
    const struct trace *trace = model->trace;
    struct html_array array;
    uint64_t taken = 0;
    fputc(',', out);
    html_array_begin(&array, out, "resident", HTML_F64);
    for (uint32_t b = 0, next = 0; b < bins->count; b++) {
        uint64_t most = taken, now = model->run.clock_ns[bins->position[b]];
        for (; next < trace->resident_count && trace->residents[next].event.nanoseconds <= now; next++) {
            taken = trace->residents[next].frames_bytes + trace->residents[next].outside_bytes;
            most = taken > most ? taken : most;
        }
        html_array_f64(&array, (double)most);
    }
    html_array_end(&array);
}

enum field { BORN, ENDS, SITE, NAME, STACK, REASON, LIFE, FIELDS };

static uint32_t field_of(const struct model_span *span, const struct bins *bins, enum field field)
{
    switch (field) {
    case BORN:
        return bins->bin[span->born];
    case ENDS:
        return bins->bin[span->ends];
    case SITE:
        return span->site;
    case NAME:
        return span->name;
    case STACK:
        return span->stack;
    case REASON:
        return span->reason;
    default:
        return span->life;
    }
}

/* spans: numbers, in the order of born. */
static void write_spans(FILE *out, const struct model_view *view, const struct bins *bins, const uint32_t *spans,
                        uint32_t count)
{
    static const char *const names[FIELDS] = {"born", "ends", "site", "name", "stack", "reason", "life"};
    struct html_array array;
    for (enum field field = 0; field < FIELDS; field++) {
        fputc(',', out);
        html_array_begin(&array, out, names[field], HTML_U32);
        for (uint32_t i = 0; i < count; i++)
            html_array_u32(&array, field_of(&view->spans[spans[i]], bins, field));
        html_array_end(&array);
    }
    fputc(',', out);
    html_array_begin(&array, out, "bytes", HTML_F64);
    for (uint32_t i = 0; i < count; i++)
        html_array_f64(&array, (double)view->spans[spans[i]].bytes);
    html_array_end(&array);
    fputc(',', out);
    html_array_begin(&array, out, "kind", HTML_U8);
    for (uint32_t i = 0; i < count; i++)
        html_array_u8(&array, view->spans[spans[i]].kind);
    html_array_end(&array);
    fputc(',', out);
    html_array_begin(&array, out, "verdict", HTML_U8);
    for (uint32_t i = 0; i < count; i++)
        html_array_u8(&array, view->spans[spans[i]].verdict);
    html_array_end(&array);
}

static void write_sites(FILE *out, const struct model_view *view)
{
    fputs("\"sites\":[", out);
    for (uint32_t i = 0; i < view->site_count && i < MOST_SITES; i++) {
        const struct model_site *site = &view->sites[i];
        fprintf(out, "%s[%u,%u,%u,%u,%u,%llu,%llu,", i ? "," : "", site->name, site->place, site->kind,
                site->span_count, site->peak_count, (unsigned long long)site->peak_bytes,
                (unsigned long long)site->most_bytes);
        html_number(out, site->byte_seconds);
        fputc(',', out);
        html_number(out, site->life_seconds);
        fprintf(out, ",%u,%llu,%llu,%llu]", site->stack, (unsigned long long)site->verdict_bytes[MODEL_RECOMPUTE],
                (unsigned long long)site->verdict_bytes[MODEL_SWAP],
                (unsigned long long)site->verdict_bytes[MODEL_HOLD]);
    }
    fputc(']', out);
}

static void write_sums(FILE *out, const char *name, const uint64_t *sums, unsigned count)
{
    fprintf(out, "\"%s\":[", name);
    for (unsigned i = 0; i < count; i++)
        fprintf(out, "%s%llu", i ? "," : "", (unsigned long long)sums[i]);
    fputs("],", out);
}

static int by_number(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* The spans that get a bar: all, or those of the most bytes x time. */
static uint32_t *choose_spans(const struct model_view *view, uint32_t *count)
{
    uint32_t *spans = malloc((view->span_count + (size_t)1) * sizeof *spans);
    if (!spans)
        return NULL;
    if (view->span_count > MOST_SPANS) {
        *count = model_longest(view, KIND_COUNT, spans, MOST_SPANS);
        qsort(spans, *count, sizeof *spans, by_number);
        return spans;
    }
    for (*count = 0; *count < view->span_count; ++*count)
        spans[*count] = *count;
    return spans;
}

static bool write_view(FILE *out, const struct model *model, const struct model_view *view, const char *id)
{
    struct bins bins;
    uint32_t count = 0, *spans = choose_spans(view, &count);
    if (!spans || !bins_begin(&bins, view)) {
        free(spans);
        return false;
    }
    fprintf(out, "{\"id\":\"%s\",\"positions\":%u,\"positionsRecorded\":%u,\"peak\":%u,\"peakOperation\":%u,", id,
            bins.count, view->position_count, bins.peak, view->peak_position);
    fprintf(out, "\"peakBytes\":%llu,\"spanTotal\":%u,", (unsigned long long)view->peak_bytes, view->span_count);
    write_sums(out, "kindBytes", view->kind_bytes, KIND_COUNT);
    write_sums(out, "verdictBytes", view->verdict_bytes, MODEL_VERDICTS);
    write_sites(out, view);
    fputs(",\n\"arrays\":{", out);
    write_positions(out, view, &bins);
    write_spans(out, view, &bins, spans, count);
    if (view == &model->run && model->trace->resident_count)
        write_residents(out, model, &bins);
    fputs("}}", out);
    bins_end(&bins);
    free(spans);
    return true;
}

static void write_stacks(FILE *out, const struct model *model)
{
    static const char *const names[] = {"first", "count", "origin", "function", "file", "line"};
    struct html_array array;
    fputs("\"stacks\":{", out);
    for (int field = 0; field < 6; field++) {
        uint32_t count = field < 3 ? model->stack_count : model->frame_count;
        html_array_begin(&array, out, names[field], HTML_U32);
        for (uint32_t i = 0; i < count; i++) {
            const struct model_stack *stack = &model->stacks[field < 3 ? i : 0];
            const struct model_frame *frame = &model->frames[field < 3 ? 0 : i];
            const uint32_t values[] = {stack->first,    stack->count, stack->origin,
                                       frame->function, frame->file,  frame->line};
            html_array_u32(&array, values[field]);
        }
        html_array_end(&array);
        fputs(field < 5 ? "," : "},\n", out);
    }
}

static void write_iterations(FILE *out, const struct model *model)
{
    fputs("\"iterations\":[", out);
    for (uint32_t i = 0; i < model->iteration_count && i < MOST_ITERATIONS; i++) {
        const struct model_iteration *row = &model->iterations[i];
        fprintf(out, "%s[%llu,\"%s\",%llu,%llu,%u,%u,%llu,%llu,%llu,%llu]", i ? "," : "",
                (unsigned long long)row->index, model_phase_names[row->phase],
                (unsigned long long)(row->end_ns - row->start_ns), (unsigned long long)row->end_ns, row->operations,
                row->replays, (unsigned long long)row->replayed_ns, (unsigned long long)row->out_bytes,
                (unsigned long long)row->in_bytes, (unsigned long long)row->peak_bytes);
    }
    fputs("],\n", out);
}

/* Operations added up by name, and what cannot be recomputed added up by reason: [name, runs, ns, not recomputable] and
 * [reason, pieces, bytes]. */
struct sum {
    uint64_t count, amount, bad;
};

static bool write_sums_by_text(FILE *out, const struct model *model)
{
    const struct model_view *view = model->iteration.position_count ? &model->iteration : &model->run;
    struct sum *times = calloc(model->string_count * (size_t)2, sizeof *times), *reasons = times + model->string_count;
    if (!times)
        return false;
    for (uint32_t i = 0; i < view->operation_count; i++) {
        struct sum *sum = &times[view->operations[i].name];
        sum->count++;
        sum->amount += view->operations[i].nanoseconds;
        sum->bad += view == &model->iteration && !view->operations[i].is_replayable;
    }
    for (uint32_t i = 0; i < model->iteration.span_count; i++) {
        const struct model_span *span = &model->iteration.spans[i];
        if (span->verdict == MODEL_RECOMPUTE || !model_is_at(span, model->iteration.peak_position))
            continue;
        reasons[span->reason].count++;
        reasons[span->reason].amount += span->bytes;
    }
    const char *comma = "\"times\":[";
    for (uint32_t i = 0; i < model->string_count; i++)
        if (times[i].count) {
            fprintf(out, "%s[%u,%llu,%llu,%llu]", comma, i, (unsigned long long)times[i].count,
                    (unsigned long long)times[i].amount, (unsigned long long)times[i].bad);
            comma = ",";
        }
    fputs(*comma == ',' ? "],\n" : "\"times\":[],\n", out);
    comma = "\"reasons\":[";
    for (uint32_t i = 0; i < model->string_count; i++)
        if (reasons[i].count) {
            fprintf(out, "%s[%u,%llu,%llu]", comma, i, (unsigned long long)reasons[i].count,
                    (unsigned long long)reasons[i].amount);
            comma = ",";
        }
    fputs(*comma == ',' ? "],\n" : "\"reasons\":[],\n", out);
    free(times);
    return true;
}

static void write_curve(FILE *out, const struct html_curve *curve, const char *why)
{
    if (!curve) {
        fputs("\"curve\":null,\"noCurve\":", out);
        html_string(out, why);
        fputs(",\n", out);
        return;
    }
    fprintf(out, "\"curve\":{\"floor\":%llu,\"peak\":%llu,\"hasSwaps\":%s,\"points\":[",
            (unsigned long long)curve->floor_bytes, (unsigned long long)curve->peak_bytes,
            curve->has_swaps ? "true" : "false");
    for (uint32_t i = 0; i < curve->point_count; i++) {
        const struct html_point *point = &curve->points[i];
        fprintf(out, "%s[%llu,", i ? "," : "", (unsigned long long)point->cap_bytes);
        html_number(out, point->alone);
        fputc(',', out);
        html_number(out, point->swapping);
        fputc(',', out);
        html_number(out, point->bound);
        fputc(',', out);
        html_string(out, point->strategy ? point->strategy : "");
        fputc(']', out);
    }
    fputs("],\"marks\":[", out);
    for (uint32_t i = 0; i < curve->mark_count; i++) {
        fputs(i ? ",[" : "[", out);
        html_string(out, curve->marks[i].name);
        fprintf(out, ",%llu,", (unsigned long long)curve->marks[i].peak_bytes);
        html_number(out, curve->marks[i].ratio);
        fputc(']', out);
    }
    fputs("]},\n", out);
}

static void write_head(FILE *out, const struct model *model)
{
    const struct trace *trace = model->trace;
    fputs("{\"program\":", out);
    html_string(out, model->program ? model->strings[model->program] : "a recorded run");
    fputs(",\"device\":", out);
    html_string(out, model->strings[model->device]);
    fprintf(out, ",\"deviceBytes\":%llu,\"cap\":%llu,\"isCut\":%s,\"lost\":%llu,\"endNs\":%llu,\n",
            (unsigned long long)trace->run.device_bytes, (unsigned long long)trace->run.cap_bytes,
            trace->is_cut ? "true" : "false", (unsigned long long)trace->lost_count, (unsigned long long)trace->end_at);
    fputs("\"kinds\":[", out);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        fputs(kind ? "," : "", out);
        html_string(out, kind_name((enum kind)kind));
    }
    fputs("],\"verdicts\":[", out);
    for (int verdict = 0; verdict < MODEL_VERDICTS; verdict++) {
        fputs(verdict ? "," : "", out);
        html_string(out, model_verdict_names[verdict]);
    }
    fputs("],\n\"strings\":[", out);
    for (uint32_t i = 0; i < model->string_count; i++) {
        fputs(i ? ",\n" : "", out);
        html_string(out, model->strings[i]);
    }
    fputs("],\n", out);
}

bool html_write(FILE *out, const struct model *model, const struct html_curve *curve, const char *why)
{
    static const char marker[] = "@DATA@\n";
    const char *split = strstr(html_page, marker);
    fwrite(html_page, 1, (size_t)(split - html_page), out);
    write_head(out, model);
    write_stacks(out, model);
    write_iterations(out, model);
    write_curve(out, curve, why);
    if (!write_sums_by_text(out, model))
        return false;
    fputs("\"views\":[", out);
    bool has_iteration = model->iteration.position_count > 0, has_run = model->run.position_count > 0;
    if (has_iteration && !write_view(out, model, &model->iteration, "iteration"))
        return false;
    fputs(has_iteration && has_run ? ",\n" : "", out);
    if (has_run && !write_view(out, model, &model->run, "run"))
        return false;
    fputs("]}\n", out);
    fputs(split + sizeof marker - 1, out);
    return true;
}
