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

static uint32_t place_of(struct builder *builder, const struct symbols_place *place)
{
    char text[PLACE_MOST];
    if (!place->file)
        return builder_string(builder, place->function);
    if (place->line)
        snprintf(text, sizeof text, "%s:%u", last_part(place->file), place->line);
    else
        snprintf(text, sizeof text, "%s", last_part(place->file));
    return builder_string(builder, text);
}

static void add_stack(struct builder *builder, struct symbols *symbols, uint32_t number)
{
    struct model *model = builder->model;
    const struct trace_frames *from = &model->trace->stacks[number];
    struct model_stack *stack = &model->stacks[number];
    *stack = (struct model_stack){.first = model->frame_count, .count = from->count, .origin = TRACE_NONE};
    for (uint32_t i = 0; i < from->count; i++) {
        const struct symbols_place *place = symbols_frame(symbols, &from->frames[i]);
        model->frames[model->frame_count++] =
            (struct model_frame){.function = builder_string(builder, place->function),
                                 .file = place->file ? builder_string(builder, place->file) : 0,
                                 .module = place->module ? builder_string(builder, place->module) : 0,
                                 .line = place->line};
    }
    stack->origin = from->count ? symbols_origin(symbols, number) : TRACE_NONE;
    if (stack->origin != TRACE_NONE)
        stack->place = place_of(builder, symbols_frame(symbols, &from->frames[stack->origin]));
}

bool model_add_stacks(struct builder *builder)
{
    struct model *model = builder->model;
    const struct trace *trace = model->trace;
    size_t frames = 0;
    for (uint32_t i = 0; i < trace->stack_count; i++)
        frames += trace->stacks[i].count;
    model->stack_count = trace->stack_count ? trace->stack_count : 1;
    model->stacks = calloc(model->stack_count, sizeof *model->stacks);
    model->frames = calloc(frames + 1, sizeof *model->frames);
    struct symbols *symbols = symbols_open(trace);
    bool has_memory = model->stacks && model->frames && symbols;
    for (uint32_t i = 0; has_memory && i < trace->stack_count; i++)
        add_stack(builder, symbols, i);
    if (symbols)
        symbols_close(symbols);
    return has_memory;
}
