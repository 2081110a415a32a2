#include "trace/model_build.h"
#include <stdlib.h>

const char *const model_verdict_names[MODEL_VERDICTS] = {"recompute", "swap", "hold"};
const char *const model_phase_names[TRACE_REACTIVE + 1] = {"pass-through", "recording", "probation", "planned",
                                                           "reactive"};
const char *const model_operation_kind_names[TRACE_SET + 1] = {"launch", "copy in", "copy out", "copy", "set"};

/* Mean time of one run per name, for what was not measured itself; 0 where nothing was. */
static uint64_t *mean_times(const struct model *model)
{
    const struct model_view *view = &model->run;
    uint64_t *sum = calloc(model->string_count * (size_t)2, sizeof *sum), *count = sum + model->string_count;
    if (!sum)
        return NULL;
    for (uint32_t i = 0; i < view->operation_count; i++)
        if (view->operations[i].nanoseconds) {
            sum[view->operations[i].name] += view->operations[i].nanoseconds;
            count[view->operations[i].name]++;
        }
    for (uint32_t i = 0; i < model->string_count; i++)
        sum[i] = count[i] ? sum[i] / count[i] : 0;
    return sum;
}

static void count_shifts(const struct trace *trace, uint64_t from, uint64_t to, struct model_iteration *row)
{
    uint32_t low = 0, high = trace->shift_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->shifts[middle].event.sequence < from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < trace->shift_count && trace->shifts[low].event.sequence < to; low++) {
        row->out_bytes += trace->shifts[low].movement == TRACE_SWAP_OUT ? trace->shifts[low].bytes : 0;
        row->in_bytes += trace->shifts[low].movement == TRACE_SWAP_IN ? trace->shifts[low].bytes : 0;
    }
}

/* Operations first .. after - 1 of the run. */
static void fill_row(const struct model *model, const uint64_t *means, uint32_t first, uint32_t after,
                     struct model_iteration *row)
{
    const struct model_view *view = &model->run;
    const struct trace *trace = model->trace;
    uint32_t begin = view->operations[first].position;
    uint32_t end = after < view->operation_count ? view->operations[after].position : view->position_count;
    row->start_ns = view->clock_ns[begin];
    row->end_ns = view->clock_ns[end];
    for (uint32_t i = first; i < after; i++) {
        const struct model_operation *operation = &view->operations[i];
        row->operations += !operation->is_replay;
        row->replays += operation->is_replay;
        if (operation->is_replay)
            row->replayed_ns += operation->nanoseconds ? operation->nanoseconds : means[operation->name];
    }
    for (uint32_t p = begin; p < end; p++)
        row->peak_bytes = view->held[p] > row->peak_bytes ? view->held[p] : row->peak_bytes;
    count_shifts(trace, trace->submitted[first].sequence,
                 after < view->operation_count ? trace->submitted[after].sequence : TRACE_NEVER, row);
}

struct begin {
    uint32_t first, boundary;
};

static int by_first(const void *left, const void *right)
{
    const struct begin *a = left, *b = right;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (a->boundary > b->boundary) - (a->boundary < b->boundary);
}

/* Two boundaries may name one operation (an iteration that was told again): the later one counts. */
static void add_rows(struct model *model, const struct begin *begins, uint32_t count, const uint64_t *means)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct trace_boundary *boundary = &model->trace->boundaries[begins[i].boundary];
        uint32_t end = trace_find_submitted(model->trace, boundary->end);
        uint32_t after = i + 1 < count ? begins[i + 1].first : model->run.operation_count;
        after = end != TRACE_NONE && end < after ? end : after;
        if (after <= begins[i].first)
            continue;
        struct model_iteration *row = &model->iterations[model->iteration_count++];
        *row =
            (struct model_iteration){.index = boundary->index,
                                     .phase = boundary->phase,
                                     .is_analysed = model->recorded && model->recorded->head.index == boundary->index};
        fill_row(model, means, begins[i].first, after, row);
    }
}

bool model_add_rows(struct builder *builder)
{
    struct model *model = builder->model;
    const struct trace *trace = model->trace;
    struct begin *begins = calloc(trace->boundary_count + (size_t)1, sizeof *begins);
    uint64_t *means = mean_times(model);
    uint32_t count = 0;
    model->iterations = calloc(trace->boundary_count + (size_t)1, sizeof *model->iterations);
    bool has_memory = begins && means && model->iterations;
    for (uint32_t i = 0; has_memory && i < trace->boundary_count; i++) {
        uint32_t first = trace_find_submitted(trace, trace->boundaries[i].first);
        if (first != TRACE_NONE)
            begins[count++] = (struct begin){first, i};
    }
    if (has_memory) {
        qsort(begins, count, sizeof *begins, by_first);
        add_rows(model, begins, count, means);
    }
    free(begins);
    free(means);
    return has_memory;
}

bool model_make(const struct trace *trace, struct model *out)
{
    *out = (struct model){.trace = trace};
    struct builder builder = {.model = out};
    if (trace->iteration_count)
        out->recorded = &trace->iterations[trace->iteration_count - 1];
    bool is_made = builder_begin(&builder) && model_add_stacks(&builder) &&
                   (!out->recorded || model_add_iteration(&builder)) && model_add_run(&builder) &&
                   model_add_rows(&builder) && !builder.is_out_of_memory;
    builder_end(&builder);
    if (!is_made)
        model_release(out);
    return is_made;
}

static void release_view(struct model_view *view)
{
    free(view->spans);
    free(view->sites);
    free(view->operations);
    free(view->held);
    free(view->clock_ns);
}

void model_release(struct model *model)
{
    for (uint32_t i = 0; i < model->string_count; i++)
        free(model->strings[i]);
    free(model->strings);
    free(model->stacks);
    free(model->frames);
    free(model->iterations);
    release_view(&model->iteration);
    release_view(&model->run);
    *model = (struct model){0};
}
