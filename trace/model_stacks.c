/* The trace's stacks as functions, files and lines. */
#include "trace/model_build.h"
#include "trace/symbols.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_MOST 512

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static uint32_t place_at(struct builder *builder, const struct model_frame *frame)
{
    char text[PLACE_MOST];
    const char *file = builder->model->strings[frame->file];
    if (!frame->file)
        return frame->function;
    snprintf(text, sizeof text, frame->line ? "%s:%u" : "%s", last_part(file), frame->line);
    return builder_string(builder, text);
}

static bool reserve(struct model *model, size_t *capacity, uint32_t more)
{
    size_t wanted = model->frame_count + (size_t)more;
    if (wanted <= *capacity && model->frames)
        return true;
    wanted = wanted * 2 + 64;
    struct model_frame *frames = wanted < TRACE_NONE ? realloc(model->frames, wanted * sizeof *frames) : NULL;
    if (!frames)
        return false;
    model->frames = frames;
    *capacity = wanted;
    return true;
}

static bool add_stack(struct builder *builder, struct symbols *symbols, uint32_t number, size_t *capacity)
{
    struct model *model = builder->model;
    const struct symbols_stack *from = symbols_stack(symbols, number);
    if (!reserve(model, capacity, from->count))
        return false;
    model->stacks[number] =
        (struct model_stack){.first = model->frame_count, .count = from->count, .origin = from->origin};
    for (uint32_t i = 0; i < from->count; i++) {
        const struct symbols_place *place = from->places[i];
        model->frames[model->frame_count++] =
            (struct model_frame){.function = builder_string(builder, place->function),
                                 .file = place->file ? builder_string(builder, place->file) : 0,
                                 .module = place->module ? builder_string(builder, place->module) : 0,
                                 .line = place->line};
    }
    if (from->origin < from->count)
        model->stacks[number].place = place_at(builder, &model->frames[model->stacks[number].first + from->origin]);
    return true;
}

/* A place that several places call is a wrapper (a function that only launches, an allocator): the caller is told, if
 * its file is known. One step only. */
static bool climb_wrappers(struct builder *builder)
{
    struct model *model = builder->model;
    uint32_t *caller = calloc(model->string_count + (size_t)1, sizeof *caller); /* per place: + 1; NONE: several */
    uint32_t *above = calloc(model->stack_count + (size_t)1, sizeof *above);    /* per stack: its caller's place */
    bool has_memory = caller && above;
    for (uint32_t i = 0; has_memory && i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        if (stack->count < 2 || stack->origin >= stack->count - 1)
            continue;
        const struct model_frame *frame = &model->frames[stack->first + stack->origin + 1];
        if (!frame->file)
            continue;
        above[i] = place_at(builder, frame);
        uint32_t *known = &caller[stack->place];
        *known = *known == 0 || *known == above[i] + 1 ? above[i] + 1 : TRACE_NONE;
    }
    for (uint32_t i = 0; has_memory && i < model->stack_count; i++) {
        struct model_stack *stack = &model->stacks[i];
        if (above[i] && caller[stack->place] == TRACE_NONE) {
            stack->place = above[i];
            stack->origin++;
        }
    }
    free(caller);
    free(above);
    return has_memory;
}

bool model_add_stacks(struct builder *builder)
{
    struct model *model = builder->model;
    const struct trace *trace = model->trace;
    size_t capacity = 0;
    model->stack_count = trace->stack_count ? trace->stack_count : 1;
    model->stacks = calloc(model->stack_count, sizeof *model->stacks);
    struct symbols *symbols = symbols_open(trace);
    bool has_memory = model->stacks && symbols && reserve(model, &capacity, 0);
    for (uint32_t i = 0; has_memory && i < trace->stack_count; i++)
        has_memory = add_stack(builder, symbols, i, &capacity);
    if (symbols)
        symbols_close(symbols);
    return has_memory && !builder->is_out_of_memory && climb_wrappers(builder);
}
