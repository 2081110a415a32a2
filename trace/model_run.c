/* The whole run as a view: a span per allocation. */
#include "trace/model_build.h"
#include <stdlib.h>

struct moment {
    uint64_t sequence;
    uint32_t index;
};

/* What is found on the way through the events. */
struct walk {
    struct moment *freed; /* lives by the sequence of their end */
    uint32_t freed_count;
    uint32_t *born, *ends; /* per life: positions */
    uint32_t *producer, *last_read, *reads;
};

static void walk_end(struct walk *walk)
{
    free(walk->freed);
    free(walk->born);
    free(walk->producer);
}

static int by_sequence(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static bool walk_begin(struct walk *walk, const struct trace *trace)
{
    size_t count = trace->life_count;
    *walk = (struct walk){.freed = malloc((count + 1) * sizeof *walk->freed),
                          .born = calloc(count * 2 + 1, sizeof *walk->born),
                          .producer = calloc(count * 3 + 1, sizeof *walk->producer)};
    if (!walk->freed || !walk->born || !walk->producer) {
        walk_end(walk);
        return false;
    }
    walk->ends = walk->born + count;
    walk->last_read = walk->producer + count;
    walk->reads = walk->last_read + count;
    for (uint32_t i = 0; i < count; i++) {
        walk->producer[i] = walk->last_read[i] = TRACE_NONE;
        if (trace->lives[i].freed_sequence != TRACE_NEVER)
            walk->freed[walk->freed_count++] = (struct moment){trace->lives[i].freed_sequence, i};
    }
    qsort(walk->freed, walk->freed_count, sizeof *walk->freed, by_sequence);
    return true;
}

static void note_touches(struct walk *walk, const struct trace *trace, uint32_t operation)
{
    const struct trace_submitted *submitted = &trace->submitted[operation];
    for (uint32_t i = 0; i < submitted->touch_count; i++) {
        const struct trace_touched *touched = &trace->touches[submitted->first_touch + i];
        if (touched->life == TRACE_NONE || submitted->is_replay)
            continue;
        if (touched->access & TRACE_MAY_READ && walk->producer[touched->life] != TRACE_NONE) {
            walk->last_read[touched->life] = operation;
            walk->reads[touched->life]++;
        }
        if (touched->access & TRACE_MAY_WRITE && walk->producer[touched->life] == TRACE_NONE)
            walk->producer[touched->life] = operation;
    }
}

static void add_operation(struct builder *builder, struct model_view *view, uint32_t number, uint32_t position)
{
    const struct trace_submitted *from = &builder->model->trace->submitted[number];
    view->operations[number] = (struct model_operation){.start_ns = from->at,
                                                        .nanoseconds = from->nanoseconds,
                                                        .moved_bytes = from->moved_bytes,
                                                        .position = position,
                                                        .name = builder_plain(builder, from->name),
                                                        .place = builder->model->stacks[from->stack].place,
                                                        .stack = from->stack,
                                                        .stream = from->stream,
                                                        .kind = from->kind,
                                                        .is_replay = from->is_replay};
}

/* Allocations, frees and operations in the order in which they happened: every one is a position. */
static void walk_through(struct builder *builder, struct model_view *view, struct walk *walk)
{
    const struct trace *trace = builder->model->trace;
    uint64_t now = 0;
    for (uint32_t life = 0, freed = 0, ran = 0, p = 0; p < view->position_count; p++) {
        uint64_t held_next = life < trace->life_count ? trace->lives[life].held_sequence : TRACE_NEVER;
        uint64_t freed_next = freed < walk->freed_count ? walk->freed[freed].sequence : TRACE_NEVER;
        uint64_t ran_next = ran < trace->submitted_count ? trace->submitted[ran].sequence : TRACE_NEVER;
        uint64_t at;
        if (held_next <= freed_next && held_next <= ran_next) {
            at = trace->lives[life].held_at;
            walk->born[life++] = p;
        } else if (freed_next <= ran_next) {
            at = trace->lives[walk->freed[freed].index].freed_at;
            walk->ends[walk->freed[freed++].index] = p;
        } else {
            at = trace->submitted[ran].at;
            note_touches(walk, trace, ran);
            add_operation(builder, view, ran++, p);
        }
        now = at > now ? at : now;
        view->clock_ns[p] = now;
    }
    view->clock_ns[view->position_count] = trace->end_at > now ? trace->end_at : now;
}

static void add_life(struct builder *builder, struct model_view *view, const struct walk *walk, uint32_t number)
{
    const struct trace_life *life = &builder->model->trace->lives[number];
    bool is_ours = life->source == TRACE_ARENA || life->source == TRACE_SLAB;
    uint32_t producer = is_ours ? walk->producer[number] : TRACE_NONE;
    uint32_t launched = producer == TRACE_NONE ? 0 : view->operations[producer].stack;
    view_add_span(view, &(struct model_span){.bytes = life->footprint_bytes,
                                             .born = walk->born[number],
                                             .ends = life->freed_sequence == TRACE_NEVER ? view->position_count
                                                                                         : walk->ends[number],
                                             .producer = producer,
                                             .last_read = walk->last_read[number],
                                             .reads = walk->reads[number],
                                             .allocation = TRACE_NONE,
                                             .version = TRACE_NONE,
                                             .life = number,
                                             .name = life->what ? builder_plain(builder, life->what) : 0,
                                             .stack = launched ? launched : life->stack,
                                             .kind = builder->kinds[number],
                                             .verdict = MODEL_HOLD});
}

/* What may be done with a life is what may be done with the version that it held longest, if one was analysed. */
static bool set_verdicts(struct model *model)
{
    struct model_view *run = &model->run;
    const struct model_view *iteration = &model->iteration;
    uint32_t *longest = calloc(model->trace->life_count + (size_t)1, sizeof *longest);
    if (!longest)
        return false;
    for (uint32_t i = 0; i < iteration->span_count; i++) {
        const struct model_span *span = &iteration->spans[i];
        if (span->life == TRACE_NONE)
            continue;
        uint32_t *known = &longest[span->life];
        if (!*known ||
            model_byte_seconds(iteration, &iteration->spans[*known - 1]) < model_byte_seconds(iteration, span))
            *known = i + 1;
    }
    for (uint32_t i = 0; i < run->span_count; i++) {
        uint32_t known = longest[run->spans[i].life];
        run->spans[i].verdict = known ? iteration->spans[known - 1].verdict : MODEL_HOLD;
        run->spans[i].reason = known ? iteration->spans[known - 1].reason : 0;
    }
    free(longest);
    return true;
}

bool model_add_run(struct builder *builder)
{
    struct model *model = builder->model;
    struct model_view *view = &model->run;
    const struct trace *trace = model->trace;
    struct walk walk;
    if (!walk_begin(&walk, trace))
        return false;
    uint64_t positions = (uint64_t)trace->life_count + walk.freed_count + trace->submitted_count;
    view->spans = calloc(trace->life_count + (size_t)1, sizeof *view->spans);
    view->operations = calloc(trace->submitted_count + (size_t)1, sizeof *view->operations);
    view->clock_ns = calloc(positions + 1, sizeof *view->clock_ns);
    view->position_count = (uint32_t)positions;
    view->operation_count = trace->submitted_count;
    bool is_made = positions < TRACE_NONE && view->spans && view->operations && view->clock_ns;
    if (is_made) {
        walk_through(builder, view, &walk);
        for (uint32_t i = 0; i < trace->life_count; i++)
            add_life(builder, view, &walk, i);
    }
    walk_end(&walk);
    return is_made && view_complete(view) && set_verdicts(model) && view_find_sites(builder, view);
}
