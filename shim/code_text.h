/* PTX text cut into pieces: functions and variables of a module, instructions of a body. No meaning here.
 *
 * Slices point into the module's own copy of the text, in which comments are blanks. Everything is
 * allocated from an arena of mapped pages (no malloc: bodies are cut up at a kernel's first launch, inside a hook). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena {
    struct arena_chunk *chunks;
    bool has_failed; /* some request could not be met */
};

/* Zeroed bytes, aligned to 8, or NULL (and has_failed). */
void *arena_take(struct arena *arena, size_t bytes);
void arena_release(struct arena *arena);

struct slice {
    const char *at;
    size_t bytes;
};

bool slice_is(struct slice slice, const char *text);
bool slice_starts(struct slice slice, const char *text);
bool slice_has(struct slice slice, const char *part); /* contains part */
uint64_t slice_hash(struct slice slice, uint64_t seed);

struct text_function {
    struct slice name, results, params, body; /* without the brackets; body.at == NULL: only declared */
    bool is_entry;
};

enum text_space { SPACE_VALUE, SPACE_PARAM, SPACE_CELL, SPACE_SHARED, SPACE_LOCAL, SPACE_GLOBAL, SPACE_CONST };

struct text_variable {
    struct slice name;
    enum text_space space;
    size_t bytes;
    bool has_initial;
};

/* Calls back for each function and variable of the module in turn. False if the text cannot be PTX. */
struct text_visitor {
    void *self;
    bool (*function)(void *self, const struct text_function *function);
    bool (*variable)(void *self, const struct text_variable *variable);
};
bool text_each(struct slice text, const struct text_visitor *visitor);

/* Overwrites comments by blanks. */
void text_blank_comments(char *text, size_t bytes);

struct text_declaration {
    struct slice name;
    size_t bytes, align;
};
/* The next `.param` (or `.reg`) of a parameter list; false at its end. */
bool text_next_param(struct slice *list, struct text_declaration *out, bool *is_register);

enum operand_form { OPERAND_PLAIN, OPERAND_VECTOR, OPERAND_MEMORY, OPERAND_GROUP };

struct text_operand {
    enum operand_form form;
    bool has_immediate;
    uint32_t first_name, name_count; /* names in order of appearance */
    int64_t immediate;               /* its value; for memory the displacement */
};

struct text_statement {
    struct slice opcode; /* with its suffixes; for a declaration ".param", ".reg", ".shared", ".local" */
    uint32_t operand_count;
    struct text_operand operands[16];
    uint32_t name_count;
    struct slice names[64];
    struct text_declaration declared; /* for .param, .shared, .local */
};

/* The next statement of a body; false at its end, or with *is_broken. Labels, scopes, line marks, guards and
 * directives without effect are passed over. */
bool text_next_statement(struct slice *body, struct text_statement *out, bool *is_broken);
