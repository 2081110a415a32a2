/* The analysed iteration as a view: a span per version. */
#include "trace/model_build.h"
#include <stdlib.h>

struct versions {
    const struct trace_recorded *recorded;
    uint32_t *first_of;          /* per allocation: where its versions begin in `order` */
    uint32_t *order;             /* version numbers, of each allocation in the order of their producers */
    uint32_t *last_read, *reads; /* per version */
};

/* Position from which a version is there, plus one; what was there at position 0 comes first. */
static uint32_t begins(const struct trace_recorded *recorded, uint32_t version)
{
    uint32_t producer = recorded->versions[version].producer;
    return producer == TRACE_NONE ? 0 : producer + 1;
}

/* By allocation, then by producer: they mostly come in that order, so insertion is cheap. */
static void order_versions(struct versions *versions)
{
    const struct trace_recorded *recorded = versions->recorded;
    uint32_t *first = versions->first_of, *order = versions->order;
    for (uint32_t v = 0; v < recorded->head.version_count; v++)
        first[recorded->versions[v].allocation + 2]++;
    for (uint32_t a = 2; a < recorded->head.allocation_count + 2; a++)
        first[a] += first[a - 1];
    for (uint32_t v = 0; v < recorded->head.version_count; v++)
        order[first[recorded->versions[v].allocation + 1]++] = v;
    for (uint32_t a = 0; a < recorded->head.allocation_count; a++)
        for (uint32_t i = first[a] + 1; i < first[a + 1]; i++) {
            uint32_t version = order[i], at = i;
            for (; at > first[a] && begins(recorded, order[at - 1]) > begins(recorded, version); at--)
                order[at] = order[at - 1];
            order[at] = version;
        }
}

static void count_reads(struct versions *versions)
{
    const struct trace_recorded *recorded = versions->recorded;
    for (uint32_t v = 0; v < recorded->head.version_count; v++)
        versions->last_read[v] = TRACE_NONE;
    for (uint32_t i = 0; i < recorded->head.operation_count; i++)
        for (uint32_t r = 0; r < recorded->operations[i].read_count; r++) {
            versions->last_read[trace_reads(recorded, i)[r]] = i;
            versions->reads[trace_reads(recorded, i)[r]]++;
        }
}

static void versions_end(struct versions *versions)
{
    free(versions->first_of);
    free(versions->order);
    free(versions->last_read);
    free(versions->reads);
}

static bool versions_begin(struct versions *versions, const struct trace_recorded *recorded)
{
    size_t count = recorded->head.version_count;
    *versions = (struct versions){.recorded = recorded,
                                  .first_of = calloc(recorded->head.allocation_count + (size_t)2, sizeof(uint32_t)),
                                  .order = calloc(count + 1, sizeof(uint32_t)),
                                  .last_read = calloc(count + 1, sizeof(uint32_t)),
                                  .reads = calloc(count + 1, sizeof(uint32_t))};
    if (!versions->first_of || !versions->order || !versions->last_read || !versions->reads) {
        versions_end(versions);
        return false;
    }
    order_versions(versions);
    count_reads(versions);
    return true;
}

static enum model_verdict verdict_of(const struct trace_recorded *recorded, const struct trace_version *version)
{
    bool is_replayable =
        version->producer != TRACE_NONE && recorded->operations[version->producer].replayable_until != 0;
    if (recorded->allocations[version->allocation].kind == TRACE_FIXED)
        return MODEL_HOLD;
    if (version->droppable_from != TRACE_NONE && is_replayable)
        return MODEL_RECOMPUTE;
    return version->is_swappable ? MODEL_SWAP : MODEL_HOLD;
}

/* Why a version is not recomputed. */
static const char *reason_of(const struct builder *builder, const struct trace_version *version)
{
    const struct trace_recorded *recorded = builder->model->recorded;
    const struct trace_allocation *allocation = &recorded->allocations[version->allocation];
    if (allocation->reason)
        return builder_name(builder, allocation->reason);
    if (version->producer == TRACE_NONE)
        return "it was there before the iteration";
    const struct trace_operation *producer = &recorded->operations[version->producer];
    if (producer->replayable_until == 0)
        return producer->reason ? builder_name(builder, producer->reason) : "what made it may not run again";
    return "it may never be dropped";
}

static uint32_t life_of(const struct builder *builder, const struct trace_allocation *allocation)
{
    return allocation->id ? trace_find_life(builder->model->trace, allocation->id) : TRACE_NONE;
}

static void add_version(struct builder *builder, const struct versions *versions, uint32_t number, uint32_t born,
                        uint32_t ends)
{
    const struct trace_recorded *recorded = versions->recorded;
    const struct trace_version *version = &recorded->versions[number];
    const struct trace_allocation *allocation = &recorded->allocations[version->allocation];
    enum model_verdict verdict = verdict_of(recorded, version);
    uint32_t launched = version->producer == TRACE_NONE ? 0 : recorded->operations[version->producer].stack;
    view_add_span(&builder->model->iteration,
                  &(struct model_span){
                      .bytes = allocation->footprint_bytes,
                      .born = born,
                      .ends = ends,
                      .producer = version->producer,
                      .last_read = versions->last_read[number],
                      .reads = versions->reads[number],
                      .allocation = version->allocation,
                      .version = number,
                      .life = life_of(builder, allocation),
                      .reason = verdict == MODEL_RECOMPUTE ? 0 : builder_string(builder, reason_of(builder, version)),
                      .stack = launched ? launched : allocation->stack,
                      .verdict = (uint8_t)verdict});
}

/* An allocation whose versions are not known, or were there before. */
static void add_allocation(struct builder *builder, uint32_t number, uint32_t ends)
{
    struct model_view *view = &builder->model->iteration;
    const struct trace_allocation *allocation = &builder->model->recorded->allocations[number];
    bool is_given = allocation->kind == TRACE_GIVEN;
    const char *reason = is_given ? "it was there before the iteration" : "its contents were not followed";
    if (allocation->reason)
        reason = builder_name(builder, allocation->reason);
    view_add_span(view, &(struct model_span){.bytes = allocation->footprint_bytes,
                                             .born = is_given ? 0 : allocation->born,
                                             .ends = is_given ? view->position_count : ends,
                                             .producer = TRACE_NONE,
                                             .last_read = TRACE_NONE,
                                             .allocation = number,
                                             .version = TRACE_NONE,
                                             .life = life_of(builder, allocation),
                                             .reason = builder_string(builder, reason),
                                             .stack = allocation->stack,
                                             .verdict = MODEL_HOLD});
}

/* The versions of one allocation one after the other, from its birth to its end. */
static void add_spans_of(struct builder *builder, const struct versions *versions, uint32_t number)
{
    const struct trace_recorded *recorded = versions->recorded;
    const struct trace_allocation *allocation = &recorded->allocations[number];
    uint32_t first = versions->first_of[number], after = versions->first_of[number + 1];
    uint32_t ends = allocation->ends == TRACE_NONE ? recorded->head.operation_count : allocation->ends;
    if (first == after || allocation->kind == TRACE_GIVEN) {
        add_allocation(builder, number, ends);
        return;
    }
    for (uint32_t i = first; i < after; i++) {
        uint32_t version = versions->order[i];
        uint32_t born = i == first ? allocation->born : recorded->versions[version].producer;
        uint32_t next = i + 1 < after ? recorded->versions[versions->order[i + 1]].producer : ends;
        add_version(builder, versions, version, born, next < ends ? next : ends);
    }
}

static void add_throughout(struct builder *builder, uint32_t life, uint64_t bytes, const char *reason)
{
    struct model_view *view = &builder->model->iteration;
    view_add_span(view, &(struct model_span){.bytes = bytes,
                                             .ends = view->position_count,
                                             .producer = TRACE_NONE,
                                             .last_read = TRACE_NONE,
                                             .allocation = TRACE_NONE,
                                             .version = TRACE_NONE,
                                             .life = life,
                                             .reason = builder_string(builder, reason),
                                             .stack = life == TRACE_NONE ? 0 : builder->model->trace->lives[life].stack,
                                             .verdict = MODEL_HOLD});
}

/* The iteration's first and last operation among those of the run; false: they are not in it. */
static bool find_ends(const struct model *model, uint64_t *first, uint64_t *last)
{
    const struct trace_recorded *recorded = model->recorded;
    if (!recorded->head.operation_count)
        return false;
    uint32_t begin = trace_find_submitted(model->trace, recorded->operations[0].number);
    uint32_t end = trace_find_submitted(model->trace, recorded->operations[recorded->head.operation_count - 1].number);
    if (begin == TRACE_NONE || end == TRACE_NONE)
        return false;
    *first = model->trace->submitted[begin].sequence;
    *last = model->trace->submitted[end].sequence;
    return *first <= *last;
}

/* What was held before the iteration and after it, and was not touched in it, within `room` bytes. Returns what is left
 * of them. */
static uint64_t add_untouched(struct builder *builder, uint64_t room)
{
    const struct trace *trace = builder->model->trace;
    const struct trace_recorded *recorded = builder->model->recorded;
    bool *is_touched = calloc(trace->life_count + (size_t)1, sizeof *is_touched);
    uint64_t first, last;
    if (!is_touched)
        builder->is_out_of_memory = true;
    if (is_touched && find_ends(builder->model, &first, &last)) {
        for (uint32_t i = 0; i < recorded->head.allocation_count; i++) {
            uint32_t life = life_of(builder, &recorded->allocations[i]);
            if (life != TRACE_NONE)
                is_touched[life] = true;
        }
        for (uint32_t i = 0; i < trace->life_count; i++) {
            const struct trace_life *life = &trace->lives[i];
            bool is_pool = life->source == TRACE_ARENA || life->source == TRACE_SLAB;
            if (is_touched[i] || !is_pool || life->held_sequence > first || life->freed_sequence < last ||
                life->footprint_bytes > room)
                continue;
            add_throughout(builder, i, life->footprint_bytes, "it was there before the iteration");
            room -= life->footprint_bytes;
        }
    }
    free(is_touched);
    return room;
}

/* What counts throughout and is none of the allocations that the iteration touches. */
static void add_rest(struct builder *builder)
{
    const struct trace_recorded *recorded = builder->model->recorded;
    uint64_t given = 0, fixed = recorded->head.fixed_bytes;
    for (uint32_t i = 0; i < recorded->head.allocation_count; i++)
        if (recorded->allocations[i].kind == TRACE_GIVEN)
            given += recorded->allocations[i].footprint_bytes;
    if (fixed > given)
        add_throughout(builder, TRACE_NONE, add_untouched(builder, fixed - given), "it is held throughout");
}

/* Operations, one after the other. */
static void add_operations(struct builder *builder)
{
    const struct model *model = builder->model;
    struct model_view *view = &builder->model->iteration;
    uint64_t now = 0;
    for (uint32_t i = 0; i < view->operation_count; i++) {
        const struct trace_operation *from = &model->recorded->operations[i];
        view->clock_ns[i] = now;
        view->operations[i] =
            (struct model_operation){.start_ns = now,
                                     .nanoseconds = from->nanoseconds,
                                     .moved_bytes = from->moved_bytes,
                                     .position = i,
                                     .name = builder_plain(builder, from->name),
                                     .place = model->stacks[from->stack].place,
                                     .reason = builder_string(builder, builder_name(builder, from->reason)),
                                     .stack = from->stack,
                                     .stream = from->stream,
                                     .kind = from->kind,
                                     .is_replayable = from->replayable_until != 0};
        now += from->nanoseconds;
    }
    view->clock_ns[view->operation_count] = now;
}

bool model_add_iteration(struct builder *builder)
{
    struct model *model = builder->model;
    struct model_view *view = &model->iteration;
    const struct trace_iteration *head = &model->recorded->head;
    struct versions versions;
    size_t spans = (size_t)head->allocation_count + head->version_count + model->trace->life_count + 1,
           count = head->operation_count;
    view->spans = calloc(spans, sizeof *view->spans);
    view->operations = calloc(count + 1, sizeof *view->operations);
    view->clock_ns = calloc(count + 1, sizeof *view->clock_ns);
    view->operation_count = view->position_count = head->operation_count;
    if (!view->spans || !view->operations || !view->clock_ns || !versions_begin(&versions, model->recorded))
        return false;
    for (uint32_t i = 0; i < head->allocation_count; i++)
        add_spans_of(builder, &versions, i);
    add_rest(builder);
    versions_end(&versions);
    add_operations(builder);
    return view_complete(view) && view_find_kinds(model, builder->kinds, view) && view_find_sites(builder, view);
}
