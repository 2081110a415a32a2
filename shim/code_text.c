#include "shim/code_text.h"
#include <string.h>
#include <sys/mman.h>

#define CHUNK_BYTES ((size_t)256 << 10)

struct arena_chunk {
    struct arena_chunk *next;
    size_t bytes, used;
};

void *arena_take(struct arena *arena, size_t bytes)
{
    struct arena_chunk *chunk = arena->chunks;
    if (bytes > SIZE_MAX / 2)
        goto fail;
    bytes = (bytes + 7) & ~(size_t)7;
    if (!chunk || chunk->bytes - chunk->used < bytes) {
        size_t wanted = bytes + sizeof *chunk > CHUNK_BYTES ? bytes + sizeof *chunk : CHUNK_BYTES;
        chunk = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED)
            goto fail;
        *chunk = (struct arena_chunk){.next = arena->chunks, .bytes = wanted, .used = sizeof *chunk};
        arena->chunks = chunk;
    }
    void *taken = (char *)chunk + chunk->used;
    chunk->used += bytes;
    return taken;
fail:
    arena->has_failed = true;
    return NULL;
}

void arena_release(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        munmap(chunk, chunk->bytes);
    }
}

bool slice_is(struct slice slice, const char *text)
{
    return strlen(text) == slice.bytes && memcmp(slice.at, text, slice.bytes) == 0;
}

bool slice_starts(struct slice slice, const char *text)
{
    size_t bytes = strlen(text);
    return slice.bytes >= bytes && memcmp(slice.at, text, bytes) == 0;
}

bool slice_has(struct slice slice, const char *part)
{
    return memmem(slice.at, slice.bytes, part, strlen(part)) != NULL;
}

uint64_t slice_hash(struct slice slice, uint64_t seed)
{
    uint64_t hash = seed ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < slice.bytes; i++)
        hash = (hash ^ (unsigned char)slice.at[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

void text_blank_comments(char *text, size_t bytes)
{
    for (size_t i = 0; i + 1 < bytes; i++) {
        if (text[i] == '"') {
            for (i++; i < bytes && text[i] != '"'; i++)
                ;
        } else if (text[i] == '/' && text[i + 1] == '/') {
            for (; i < bytes && text[i] != '\n'; i++)
                text[i] = ' ';
        } else if (text[i] == '/' && text[i + 1] == '*') {
            for (; i + 1 < bytes && !(text[i] == '*' && text[i + 1] == '/'); i++)
                if (text[i] != '\n')
                    text[i] = ' ';
            text[i] = ' ';
            if (i + 1 < bytes)
                text[++i] = ' ';
        }
    }
}

/* The cursor is a slice of what is left. */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '%';
}

static void advance(struct slice *text, size_t bytes)
{
    text->at += bytes;
    text->bytes -= bytes;
}

static char skip_blanks(struct slice *text)
{
    while (text->bytes > 0 && is_blank(text->at[0]))
        advance(text, 1);
    return text->bytes > 0 ? text->at[0] : '\0';
}

static struct slice take_name(struct slice *text)
{
    struct slice name = {text->at, 0};
    while (name.bytes < text->bytes && is_name(text->at[name.bytes]))
        name.bytes++;
    advance(text, name.bytes);
    return name;
}

/* A word of dots and names: a directive or an opcode with its suffixes ("ld.global.nc.u32", ".shared::cta"). */
static struct slice take_word(struct slice *text)
{
    struct slice word = {text->at, 0};
    while (word.bytes < text->bytes &&
           (is_name(text->at[word.bytes]) || text->at[word.bytes] == '.' || text->at[word.bytes] == ':'))
        word.bytes++;
    advance(text, word.bytes);
    return word;
}

static void skip_string(struct slice *text)
{
    advance(text, 1);
    while (text->bytes > 0 && text->at[0] != '"')
        advance(text, 1);
    if (text->bytes > 0)
        advance(text, 1);
}

static void skip_line(struct slice *text)
{
    while (text->bytes > 0 && text->at[0] != '\n')
        advance(text, 1);
}

/* Past everything up to and including `stop`; strings and bracketed parts are skipped whole. */
static bool skip_past(struct slice *text, char stop)
{
    int depth = 0;
    while (text->bytes > 0) {
        char c = text->at[0];
        if (c == '"') {
            skip_string(text);
            continue;
        }
        advance(text, 1);
        if (c == stop && depth == 0)
            return true;
        if (c == '{' || c == '(' || c == '[')
            depth++;
        else if (c == '}' || c == ')' || c == ']')
            depth--;
    }
    return false;
}

/* At an opening bracket: its contents, and the cursor past the closing one. */
static bool take_bracketed(struct slice *text, char close, struct slice *inside)
{
    advance(text, 1);
    inside->at = text->at;
    if (!skip_past(text, close))
        return false;
    inside->bytes = (size_t)(text->at - inside->at) - 1;
    return true;
}

static bool take_function(struct slice *text, bool is_entry, const struct text_visitor *visitor)
{
    struct text_function function = {.is_entry = is_entry};
    if (skip_blanks(text) == '.') { /* .func .attribute(...) name */
        take_word(text);
        if (skip_blanks(text) == '(' && !skip_past(text, ')'))
            return false;
    }
    if (!is_entry && skip_blanks(text) == '(' && !take_bracketed(text, ')', &function.results))
        return false;
    skip_blanks(text);
    function.name = take_name(text);
    if (function.name.bytes == 0)
        return false;
    if (skip_blanks(text) == '(' && !take_bracketed(text, ')', &function.params))
        return false;
    while (text->bytes > 0 && text->at[0] != '{' && text->at[0] != ';')
        advance(text, 1);
    if (text->bytes == 0)
        return false;
    if (text->at[0] == ';')
        advance(text, 1);
    else if (!take_bracketed(text, '}', &function.body))
        return false;
    return visitor->function(visitor->self, &function);
}

static size_t type_bytes(struct slice type)
{
    static const struct {
        const char *suffix;
        size_t bytes;
    } rows[] = {{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}, {"128", 16}, {"f16x2", 4}, {"bf16x2", 4}, {"pred", 1}};
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = strlen(rows[i].suffix);
        if (type.bytes >= length && memcmp(type.at + type.bytes - length, rows[i].suffix, length) == 0)
            bytes = rows[i].bytes;
    }
    return bytes;
}

static size_t take_number(struct slice *text)
{
    size_t value = 0;
    while (text->bytes > 0 && text->at[0] >= '0' && text->at[0] <= '9' && value < SIZE_MAX / 16) {
        value = value * 10 + (size_t)(text->at[0] - '0');
        advance(text, 1);
    }
    return value;
}

/* After the state space: attributes, type, name, array extents. */
static struct text_declaration take_declaration(struct slice *text)
{
    struct text_declaration out = {.align = 0};
    size_t vector = 1;
    while (skip_blanks(text) == '.') {
        struct slice word = take_word(text);
        if (slice_is(word, ".align")) {
            skip_blanks(text);
            size_t align = take_number(text);
            if (out.bytes == 0) /* after the type it belongs to what .ptr points to */
                out.align = align;
        } else if (slice_starts(word, ".v2") || slice_starts(word, ".v4")) {
            vector = (size_t)(word.at[2] - '0');
        } else if (slice_is(word, ".attribute")) {
            if (skip_blanks(text) == '(')
                skip_past(text, ')');
        } else if (out.bytes == 0) {
            out.bytes = type_bytes(word);
        }
    }
    if (out.align == 0)
        out.align = out.bytes * vector;
    out.bytes *= vector;
    out.name = take_name(text);
    while (skip_blanks(text) == '[') {
        advance(text, 1);
        skip_blanks(text);
        out.bytes *= take_number(text);
        skip_past(text, ']');
    }
    return out;
}

static bool space_of(struct slice word, enum text_space *space)
{
    static const struct {
        const char *word;
        enum text_space space;
    } rows[] = {{".global", SPACE_GLOBAL}, {".const", SPACE_CONST}, {".shared", SPACE_SHARED},
                {".local", SPACE_LOCAL},   {".param", SPACE_CELL},  {".tex", SPACE_CONST}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (slice_starts(word, rows[i].word)) {
            *space = rows[i].space;
            return true;
        }
    }
    return false;
}

static bool take_variables(struct slice *text, enum text_space space, const struct text_visitor *visitor)
{
    struct text_declaration declared = take_declaration(text);
    struct text_variable variable = {.space = space, .name = declared.name, .bytes = declared.bytes};
    if (variable.name.bytes == 0)
        return skip_past(text, ';');
    char c = skip_blanks(text);
    variable.has_initial = c == '=';
    return visitor->variable(visitor->self, &variable) && skip_past(text, ';');
}

static bool take_top(struct slice *text, const struct text_visitor *visitor)
{
    struct slice word = take_word(text);
    enum text_space space;
    if (word.bytes == 0)
        return false;
    if (slice_is(word, ".entry") || slice_is(word, ".func"))
        return take_function(text, slice_is(word, ".entry"), visitor);
    if (space_of(word, &space))
        return take_variables(text, space, visitor);
    if (slice_is(word, ".version") || slice_is(word, ".target") || slice_is(word, ".address_size") ||
        slice_is(word, ".file")) {
        skip_line(text);
        return true;
    }
    if (slice_is(word, ".section")) {
        while (text->bytes > 0 && text->at[0] != '{')
            advance(text, 1);
        struct slice inside;
        return text->bytes > 0 && take_bracketed(text, '}', &inside);
    }
    if (slice_is(word, ".alias") || slice_is(word, ".pragma"))
        return skip_past(text, ';');
    return slice_is(word, ".visible") || slice_is(word, ".extern") || slice_is(word, ".weak") ||
           slice_is(word, ".common") || slice_is(word, ".blocksareclusters");
}

bool text_each(struct slice text, const struct text_visitor *visitor)
{
    bool has_version = false;
    while (skip_blanks(&text) != '\0') {
        has_version |= slice_starts(text, ".version");
        if (!has_version || !take_top(&text, visitor))
            return false;
    }
    return has_version;
}

bool text_next_param(struct slice *list, struct text_declaration *out, bool *is_register)
{
    while (skip_blanks(list) == ',')
        advance(list, 1);
    if (list->bytes == 0)
        return false;
    struct slice word = take_word(list);
    *is_register = slice_starts(word, ".reg");
    if (!*is_register && !slice_starts(word, ".param"))
        return false;
    *out = take_declaration(list);
    return out->name.bytes > 0;
}

/* A number anywhere an operand may have one: decimal, hexadecimal, octal or a float image; the float's value is of no
 * use. */
static int64_t take_immediate(struct slice *text)
{
    uint64_t value = 0;
    unsigned base = 10;
    if (text->bytes > 1 && text->at[0] == '0' && (text->at[1] == 'x' || text->at[1] == 'X')) {
        base = 16;
        advance(text, 2);
    }
    while (text->bytes > 0 && (is_name(text->at[0]) || text->at[0] == '.')) {
        char c = text->at[0];
        unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : ((unsigned)c | 32) - 'a' + 10;
        if (digit < base)
            value = value * base + digit;
        advance(text, 1);
    }
    return (int64_t)value;
}

static bool add_name(struct text_statement *out, struct slice name)
{
    if (out->name_count == sizeof out->names / sizeof *out->names)
        return false;
    out->names[out->name_count++] = name;
    return true;
}

static char closing_bracket(enum operand_form form)
{
    return form == OPERAND_VECTOR ? '}' : form == OPERAND_MEMORY ? ']' : ')';
}

/* One operand up to the ',' or ';' after it. Nested brackets (coordinates of tensor copies) only add names. */
static bool take_operand(struct slice *text, struct text_statement *out)
{
    if (out->operand_count == sizeof out->operands / sizeof *out->operands)
        return false;
    struct text_operand *operand = &out->operands[out->operand_count++];
    char c = skip_blanks(text);
    *operand = (struct text_operand){.form = c == '{'   ? OPERAND_VECTOR
                                             : c == '[' ? OPERAND_MEMORY
                                             : c == '(' ? OPERAND_GROUP
                                                        : OPERAND_PLAIN,
                                     .first_name = out->name_count};
    char close = operand->form == OPERAND_PLAIN ? '\0' : closing_bracket(operand->form);
    if (close)
        advance(text, 1);
    bool is_negative = false;
    int depth = 0;
    while ((c = skip_blanks(text)) != '\0') {
        if (c == ';' || (!close && c == ','))
            return !close;
        if (c >= '0' && c <= '9') {
            int64_t value = take_immediate(text);
            operand->immediate = is_negative ? -value : value;
            operand->has_immediate = true;
        } else if (is_name(c)) {
            if (!add_name(out, take_name(text)))
                return false;
            while (text->bytes > 0 && text->at[0] == '.') /* %tid.x, %v.y */
                take_word(text);
            is_negative = false;
        } else {
            is_negative = c == '-' ? !is_negative : is_negative;
            advance(text, 1);
            if (close && c == close && depth == 0)
                break;
            depth += c == '{' ? 1 : c == '}' ? -1 : 0;
        }
    }
    operand->name_count = out->name_count - operand->first_name;
    return true;
}

static bool take_operands(struct slice *text, struct text_statement *out)
{
    while (skip_blanks(text) != ';') {
        if (text->bytes == 0 || !take_operand(text, out))
            return false;
        struct text_operand *last = &out->operands[out->operand_count - 1];
        last->name_count = out->name_count - last->first_name;
        while (skip_blanks(text) == ',')
            advance(text, 1);
    }
    advance(text, 1);
    return true;
}

/* Directives inside a body. *is_statement: it declares something. */
static bool take_directive(struct slice *body, struct text_statement *out, bool *is_statement)
{
    out->opcode = take_word(body);
    *is_statement = false;
    if (slice_is(out->opcode, ".loc") || slice_is(out->opcode, ".file")) {
        skip_line(body);
        return true;
    }
    enum text_space space;
    if (space_of(out->opcode, &space)) {
        out->declared = take_declaration(body);
        *is_statement = true;
    }
    return skip_past(body, ';');
}

bool text_next_statement(struct slice *body, struct text_statement *out, bool *is_broken)
{
    char c;
    *is_broken = false;
    out->operand_count = out->name_count = 0;
    while ((c = skip_blanks(body)) != '\0') {
        bool is_statement;
        if (c == '{' || c == '}' || c == ';') {
            advance(body, 1);
        } else if (c == '.') {
            if (!take_directive(body, out, &is_statement))
                break;
            if (is_statement)
                return true;
        } else if (c == '@') {
            advance(body, 1);
            if (skip_blanks(body) == '!')
                advance(body, 1);
            skip_blanks(body);
            take_name(body);
        } else {
            out->opcode = take_word(body);
            if (out->opcode.bytes == 0)
                break;
            if (out->opcode.at[out->opcode.bytes - 1] == ':') /* a label */
                continue;
            if (skip_blanks(body) == ':') {
                advance(body, 1);
                continue;
            }
            if (!take_operands(body, out))
                break;
            return true;
        }
    }
    *is_broken = body->bytes > 0 || c != '\0';
    return false;
}
