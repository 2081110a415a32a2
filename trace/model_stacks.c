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
        model->stacks[number].place = place_of(builder, from->places[from->origin]);
    return true;
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
    return has_memory;
}
