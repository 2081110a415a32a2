#include "trace/model_build.h"
#include "trace/report.h"
#include <stdlib.h>
#include <string.h>

#define PLAIN_MOST 160

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static uint32_t *slot_of(const struct builder *builder, const char *text)
{
    uint32_t at = (uint32_t)hash_text(text) & (builder->slot_count - 1);
    while (builder->slots[at] && strcmp(builder->model->strings[builder->slots[at] - 1], text) != 0)
        at = (at + 1) & (builder->slot_count - 1);
    return &builder->slots[at];
}

/* Twice the slots, and room for as many strings as half of them. */
static bool grow_strings(struct builder *builder)
{
    struct model *model = builder->model;
    uint32_t wanted = builder->slot_count ? builder->slot_count * 2 : 1024;
    uint32_t *slots = wanted ? calloc(wanted, sizeof *slots) : NULL;
    char **strings = slots ? realloc(model->strings, wanted / 2 * sizeof *strings) : NULL;
    if (strings)
        model->strings = strings;
    if (!strings) {
        free(slots);
        return false;
    }
    free(builder->slots);
    builder->slots = slots;
    builder->slot_count = wanted;
    model->string_capacity = wanted / 2;
    for (uint32_t i = 0; i < model->string_count; i++)
        *slot_of(builder, model->strings[i]) = i + 1;
    return true;
}

/* What is no UTF-8 becomes '?': databases and pages take nothing else. In place. */
static void make_readable(char *text)
{
    for (char *at = text; *at;) {
        size_t count = report_character_bytes(at);
        if (count == 0)
            *at = '?';
        at += count ? count : 1;
    }
}

static bool is_readable(const char *text)
{
    for (size_t count; *text; text += count) {
        count = report_character_bytes(text);
        if (count == 0)
            return false;
    }
    return true;
}

static uint32_t readable_string(struct builder *builder, const char *text)
{
    char *copy = strdup(text);
    if (!copy) {
        builder->is_out_of_memory = true;
        return 0;
    }
    make_readable(copy);
    uint32_t number = builder_string(builder, copy);
    free(copy);
    return number;
}

uint32_t builder_string(struct builder *builder, const char *text)
{
    if (!is_readable(text))
        return readable_string(builder, text);
    struct model *model = builder->model;
    uint32_t *slot = slot_of(builder, text);
    if (*slot)
        return *slot - 1;
    if (model->string_count == model->string_capacity) {
        if (!grow_strings(builder)) {
            builder->is_out_of_memory = true;
            return 0;
        }
        slot = slot_of(builder, text);
    }
    char *copy = strdup(text);
    if (!copy) {
        builder->is_out_of_memory = true;
        return 0;
    }
    model->strings[model->string_count] = copy;
    *slot = ++model->string_count;
    return *slot - 1;
}

const char *builder_name(const struct builder *builder, uint32_t name)
{
    return builder->model->trace->names[name];
}

uint32_t builder_plain(struct builder *builder, uint32_t name)
{
    if (!builder->plain[name]) {
        char plain[PLAIN_MOST];
        report_plain_name(builder_name(builder, name), plain, sizeof plain);
        builder->plain[name] = builder_string(builder, plain) + 1;
    }
    return builder->plain[name] - 1;
}

bool builder_begin(struct builder *builder)
{
    builder->plain = calloc(builder->model->trace->name_count + (size_t)1, sizeof *builder->plain);
    builder->kinds = kinds_make(builder->model->trace);
    if (!builder->plain || !builder->kinds || !grow_strings(builder))
        return false;
    builder_string(builder, "");
    const struct trace_run *about = &builder->model->trace->run;
    if (about->program)
        builder->model->program = builder_string(builder, builder_name(builder, about->program));
    if (about->device)
        builder->model->device = builder_string(builder, builder_name(builder, about->device));
    return !builder->is_out_of_memory;
}

void builder_end(struct builder *builder)
{
    free(builder->slots);
    free(builder->plain);
    free(builder->kinds);
}
