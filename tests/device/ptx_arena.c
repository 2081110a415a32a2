/* Memory that is given back all at once, texts that grow, and names that are equal when their pointers are. */
#include "tests/device/ptx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ptx_chunk {
    struct ptx_chunk *next;
    size_t used, room;
    _Alignas(16) uint8_t bytes[];
};

void *arena_take(struct ptx_arena *arena, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct ptx_chunk *chunk = arena->chunk;
    if (!chunk || chunk->room - chunk->used < bytes) {
        size_t room = bytes > 65536 ? bytes : 65536;
        chunk = calloc(1, sizeof *chunk + room);
        if (!chunk)
            abort();
        chunk->room = room;
        chunk->next = arena->chunk;
        arena->chunk = chunk;
    }
    void *taken = chunk->bytes + chunk->used;
    chunk->used += bytes;
    return taken;
}

const char *arena_format(struct ptx_arena *arena, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = arena_take(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void arena_release(struct ptx_arena *arena)
{
    while (arena->chunk) {
        struct ptx_chunk *next = arena->chunk->next;
        free(arena->chunk);
        arena->chunk = next;
    }
}

static void text_reserve(struct ptx_text *text, size_t bytes)
{
    if (text->room - text->used > bytes)
        return;
    size_t room = text->room * 2 + bytes + 4096;
    char *data = realloc(text->data, room);
    if (!data)
        abort();
    text->data = data;
    text->room = room;
}

void text_append(struct ptx_text *text, const char *data, size_t bytes)
{
    text_reserve(text, bytes);
    memcpy(text->data + text->used, data, bytes);
    text->used += bytes;
    text->data[text->used] = 0;
}

void text_release(struct ptx_text *text)
{
    free(text->data);
    *text = (struct ptx_text){0};
}

#define NAME_BUCKETS 4096

struct ptx_name {
    struct ptx_name *next;
    size_t bytes;
    char text[];
};

const char *ptx_intern(struct ptx_module *module, const char *text, size_t bytes)
{
    if (!module->names)
        module->names = arena_take(&module->arena, NAME_BUCKETS * sizeof *module->names);
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    struct ptx_name **bucket = &module->names[hash % NAME_BUCKETS];
    for (struct ptx_name *name = *bucket; name; name = name->next)
        if (name->bytes == bytes && memcmp(name->text, text, bytes) == 0)
            return name->text;
    struct ptx_name *name = arena_take(&module->arena, sizeof *name + bytes + 1);
    name->bytes = bytes;
    memcpy(name->text, text, bytes);
    name->next = *bucket;
    *bucket = name;
    return name->text;
}

static const struct {
    const char *spelling;
    uint32_t bits;
    const char *c;
} types[] = {
#define T(name, spelling, bits, c) {spelling, bits, c},
    PTX_TYPES(T)
#undef T
};

enum ptx_type ptx_type_named(const char *spelling)
{
    for (int i = 1; i < PTX_TYPE_COUNT; i++)
        if (strcmp(types[i].spelling, spelling) == 0)
            return (enum ptx_type)i;
    return PTX_NONE;
}

uint32_t ptx_narrow_double(uint64_t bits)
{
    double wide;
    memcpy(&wide, &bits, sizeof wide);
    float narrow = (float)wide;
    uint32_t narrow_bits;
    memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
    return narrow_bits;
}

uint32_t ptx_type_bits(enum ptx_type type)
{
    return types[type].bits;
}

const char *ptx_type_c(enum ptx_type type)
{
    return types[type].c;
}

bool ptx_type_is_float(enum ptx_type type)
{
    return type == PTX_F32 || type == PTX_F64;
}

bool ptx_type_is_signed(enum ptx_type type)
{
    return type == PTX_S8 || type == PTX_S16 || type == PTX_S32 || type == PTX_S64;
}
