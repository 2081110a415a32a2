/* The module level of PTX: directives, variables with their initial values, function heads. */
#include "tests/device/ptx_parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void parse_refuse(struct parser *p, CUresult error, const char *format, ...)
{
    char message[256];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    snprintf(p->why, p->why_bytes, "PTX line %u: %s", p->token.line, message);
    p->error = error;
    longjmp(p->failed, 1);
}

_Noreturn void parse_expected(struct parser *p, const char *what)
{
    int bytes = p->token.bytes > 60 ? 60 : (int)p->token.bytes;
    parse_refuse(p, CUDA_ERROR_INVALID_PTX, "expected %s, found '%.*s'", what, bytes, p->token.text);
}

void parse_next(struct parser *p)
{
    p->token = ptx_lex_next(&p->lexer);
}

bool parse_at(const struct parser *p, char punct)
{
    return p->token.kind == PTX_TOKEN_PUNCT && *p->token.text == punct;
}

bool parse_at_directive(const struct parser *p, const char *name)
{
    return p->token.kind == PTX_TOKEN_DOT && p->token.bytes == strlen(name) &&
           memcmp(p->token.text, name, p->token.bytes) == 0;
}

bool parse_accept(struct parser *p, char punct)
{
    if (!parse_at(p, punct))
        return false;
    parse_next(p);
    return true;
}

void parse_expect(struct parser *p, char punct)
{
    if (!parse_accept(p, punct))
        parse_expected(p, (char[]){'\'', punct, '\'', 0});
}

const char *parse_token_text(struct parser *p)
{
    return ptx_intern(p->module, p->token.text, p->token.bytes);
}

const char *parse_name(struct parser *p)
{
    if (p->token.kind != PTX_TOKEN_NAME)
        parse_expected(p, "a name");
    const char *name = parse_token_text(p);
    parse_next(p);
    return name;
}

uint64_t parse_integer(struct parser *p)
{
    bool is_negative = parse_accept(p, '-');
    if (p->token.kind != PTX_TOKEN_INT)
        parse_expected(p, "a number");
    uint64_t value = p->token.bits;
    parse_next(p);
    return is_negative ? 0 - value : value;
}

void *parse_take(struct parser *p, size_t bytes)
{
    return arena_take(&p->module->arena, bytes);
}

bool parse_space(const struct parser *p, enum ptx_space *space)
{
    static const struct {
        const char *name;
        enum ptx_space space;
    } spaces[] = {
        {"global", PTX_GLOBAL}, {"const", PTX_CONST}, {"shared", PTX_SHARED},
        {"local", PTX_LOCAL},   {"param", PTX_PARAM},
    };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        if (parse_at_directive(p, spaces[i].name)) {
            *space = spaces[i].space;
            return true;
        }
    }
    return false;
}

#define INITIAL_BYTES_MOST ((size_t)1 << 30)

/* ---- variables ---- */

#define DIMENSIONS_MOST 8

static int read_dimensions(struct parser *p, struct ptx_variable *variable, size_t dims[DIMENSIONS_MOST])
{
    uint64_t counts[DIMENSIONS_MOST];
    int levels = 0;
    while (parse_accept(p, '[')) {
        if (levels == DIMENSIONS_MOST)
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "%s has too many dimensions", variable->name);
        counts[levels] = parse_at(p, ']') ? 0 : parse_integer(p);
        if (counts[levels] > INITIAL_BYTES_MOST * 16)
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "%s is too large", variable->name);
        levels++;
        parse_expect(p, ']');
    }
    for (int i = levels - 1; i >= 0; i--) {
        dims[i] = variable->bytes;
        if (counts[i] && variable->bytes > ((size_t)1 << 40) / counts[i])
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "%s is too large", variable->name);
        variable->bytes *= counts[i];
    }
    return levels;
}

/* .ptr .global .align 4: of what the parameter points to, not of itself */
static void skip_pointer_marks(struct parser *p)
{
    if (!parse_at_directive(p, "ptr"))
        return;
    parse_next(p);
    enum ptx_space space;
    while (parse_space(p, &space))
        parse_next(p);
    if (parse_at_directive(p, "align")) {
        parse_next(p);
        parse_integer(p);
    }
}

/* .attribute(.managed, .unified(1, 2)): global memory is where the host reaches it, anyway. */
static void skip_attributes(struct parser *p)
{
    uint32_t depth = 0;
    do {
        if (p->token.kind == PTX_TOKEN_END)
            parse_expected(p, "')'");
        depth += parse_at(p, '(');
        depth -= parse_at(p, ')');
        parse_next(p);
    } while (depth);
}

struct ptx_variable *parse_variable(struct parser *p, enum ptx_space space)
{
    struct ptx_variable *variable = parse_take(p, sizeof *variable);
    variable->space = space;
    uint32_t vector = 1;
    while (p->token.kind == PTX_TOKEN_DOT) {
        const char *word = parse_token_text(p);
        enum ptx_type type = ptx_type_named(word);
        parse_next(p);
        if (strcmp(word, "align") == 0)
            variable->align = (uint32_t)parse_integer(p);
        else if (strcmp(word, "v2") == 0 || strcmp(word, "v4") == 0)
            vector = (uint32_t)(word[1] - '0');
        else if (type != PTX_NONE && type != PTX_PRED)
            variable->type = type;
        else if (strcmp(word, "texref") == 0 || strcmp(word, "samplerref") == 0 || strcmp(word, "surfref") == 0)
            variable->type = PTX_B64; /* a handle, for instructions that are refused where they stand */
        else if (strcmp(word, "attribute") == 0)
            skip_attributes(p);
        else
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, ".%s is not supported in a declaration", word);
        skip_pointer_marks(p);
    }
    if (variable->type == PTX_NONE)
        parse_expected(p, "a type");
    variable->name = parse_name(p);
    variable->bytes = (size_t)ptx_type_bits(variable->type) / 8 * vector;
    if (!variable->align)
        variable->align = (uint32_t)variable->bytes;
    if (variable->align > 4096 || (variable->align & (variable->align - 1)))
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, "alignment of %s is no power of two", variable->name);
    size_t dims[DIMENSIONS_MOST];
    int levels = read_dimensions(p, variable, dims);
    if (parse_accept(p, '=')) {
        if (variable->bytes > INITIAL_BYTES_MOST || (levels && !variable->bytes))
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "initial values for %s of unknown size", variable->name);
        variable->initial = parse_take(p, variable->bytes);
        size_t element = (size_t)ptx_type_bits(variable->type) / 8;
        if (!levels && vector > 1) {
            dims[0] = element;
            levels = 1;
        }
        parse_initial_values(p, variable, dims, 0, levels, 0);
    }
    return variable;
}

struct ptx_variable *ptx_find_variable(const struct ptx_module *module, const char *name)
{
    for (struct ptx_variable *variable = module->variables; variable; variable = variable->next)
        if (variable->name == name)
            return variable;
    return NULL;
}

struct ptx_function *ptx_find_function(const struct ptx_module *module, const char *name)
{
    for (struct ptx_function *function = module->functions; function; function = function->next)
        if (function->name == name)
            return function;
    return NULL;
}

/* A declaration may come before its definition, in linked texts from another source; weak twins are the same. */
static void define_variable(struct ptx_module *module, struct ptx_variable *known, const struct ptx_variable *variable)
{
    struct ptx_variable *next = known->next;
    bool is_placed = known->space == PTX_GLOBAL || known->space == PTX_CONST;
    *known = *variable;
    known->next = next;
    if (is_placed)
        known->number = module->global_count++;
}

static void add_module_variable(struct parser *p, struct ptx_variable *variable, bool is_extern)
{
    struct ptx_module *module = p->module;
    struct ptx_variable *known = ptx_find_variable(module, variable->name);
    if (known) {
        if (known->space != variable->space)
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "%s is declared in two spaces", variable->name);
        if (known->is_extern && !is_extern)
            define_variable(module, known, variable);
        return;
    }
    variable->is_extern = is_extern;
    if (!is_extern && (variable->space == PTX_GLOBAL || variable->space == PTX_CONST))
        variable->number = module->global_count++;
    *module->last_variable = variable;
    module->last_variable = &variable->next;
}

static void check_defined(struct parser *p)
{
    for (const struct ptx_variable *v = p->module->variables; v; v = v->next)
        if (v->is_extern && v->space != PTX_SHARED)
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "extern variable %s is not defined", v->name);
}

/* ---- functions ---- */

static uint32_t read_parameters(struct parser *p, struct ptx_variable **first)
{
    uint32_t count = 0;
    parse_expect(p, '(');
    while (!parse_at(p, ')')) {
        if (!parse_at_directive(p, "param"))
            parse_expected(p, ".param");
        parse_next(p);
        struct ptx_variable *variable = parse_variable(p, PTX_PARAM);
        variable->number = count++;
        *first = variable;
        first = &variable->next;
        if (!parse_accept(p, ','))
            break;
    }
    parse_expect(p, ')');
    return count;
}

static void read_function_marks(struct parser *p, struct ptx_function *function)
{
    function->max_threads = 1024;
    while (p->token.kind == PTX_TOKEN_DOT) {
        const char *word = parse_token_text(p);
        bool is_threads = strcmp(word, "maxntid") == 0 || strcmp(word, "reqntid") == 0;
        parse_next(p);
        if (strcmp(word, "pragma") == 0) {
            while (p->token.kind == PTX_TOKEN_STRING || parse_at(p, ','))
                parse_next(p);
            parse_accept(p, ';');
            continue;
        }
        uint64_t product = 1;
        while (p->token.kind == PTX_TOKEN_INT) {
            product *= parse_integer(p);
            if (!parse_accept(p, ','))
                break;
        }
        if (strcmp(word, "reqnctapercluster") == 0 && product > 1) {
            function->refused = ".reqnctapercluster";
            function->refused_line = p->token.line;
        }
        if (is_threads && product && product < 1024)
            function->max_threads = (uint32_t)product;
    }
}

static void place_parameters(struct ptx_function *function)
{
    size_t offset = 0;
    for (struct ptx_variable *v = function->params; v; v = v->next) {
        offset = (offset + v->align - 1) & ~(size_t)(v->align - 1);
        v->offset = offset;
        offset += v->bytes;
    }
}

static void read_function(struct parser *p, bool is_entry)
{
    struct ptx_function *function = parse_take(p, sizeof *function);
    function->is_entry = is_entry;
    function->line = p->token.line;
    if (parse_at(p, '('))
        function->return_count = read_parameters(p, &function->returns);
    function->name = parse_name(p);
    if (parse_at(p, '('))
        function->param_count = read_parameters(p, &function->params);
    read_function_marks(p, function);
    place_parameters(function);
    struct ptx_function *known = ptx_find_function(p->module, function->name);
    if (known) {
        if (parse_at(p, '{') && known->has_body)
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "%s has two bodies", function->name);
        known->params = function->params;
        known->returns = function->returns;
        known->param_count = function->param_count;
        known->return_count = function->return_count;
        known->max_threads = function->max_threads;
        known->refused = known->refused ? known->refused : function->refused;
        known->refused_line = known->refused_line ? known->refused_line : function->refused_line;
        function = known;
    } else {
        function->number = p->module->function_count++;
        *p->module->last_function = function;
        p->module->last_function = &function->next;
    }
    if (parse_at(p, '{'))
        parse_body(p, function);
    else
        parse_expect(p, ';');
}

uint64_t ptx_function_address(const struct ptx_function *function)
{
    return 0x00f0000000000000u + ((uint64_t)function->number + 1) * 16;
}

static void mark_taken(struct ptx_module *module)
{
    for (struct ptx_variable *v = module->variables; v; v = v->next) {
        for (struct ptx_fixup *fixup = v->fixups; fixup; fixup = fixup->next) {
            struct ptx_function *function = ptx_find_function(module, fixup->symbol);
            if (function)
                function->is_taken = true;
        }
    }
    for (struct ptx_function *f = module->functions; f; f = f->next)
        for (uint32_t i = 0; i < f->insn_count; i++)
            for (uint32_t k = 0; k < f->insns[i].operand_count; k++)
                if (f->insns[i].operands[k].kind == PTX_OP_FUNCTION && strcmp(f->insns[i].opcode, "call") != 0)
                    f->insns[i].operands[k].function->is_taken = true;
}

/* ---- the module ---- */

static void skip_section(struct parser *p)
{
    while (!parse_at(p, '{') && p->token.kind != PTX_TOKEN_END)
        parse_next(p);
    for (uint32_t depth = 0;; parse_next(p)) {
        if (p->token.kind == PTX_TOKEN_END)
            parse_expected(p, "'}'");
        if (parse_at(p, '{'))
            depth++;
        if (parse_at(p, '}') && --depth == 0)
            break;
    }
    parse_next(p);
}

static void read_version(struct parser *p)
{
    parse_next(p);
    if (p->token.kind != PTX_TOKEN_F64)
        parse_expected(p, "a version");
    double version;
    memcpy(&version, &p->token.bits, sizeof version);
    if (!(version >= 1.0 && version < 100.0))
        parse_expected(p, "a version");
    p->module->version = (uint32_t)(version * 10 + 0.5);
    if (p->module->version >= 100)
        parse_refuse(p, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "PTX version %.1f is not known", version);
    parse_next(p);
}

static void read_target(struct parser *p)
{
    parse_next(p);
    do {
        const char *name = parse_name(p);
        if (strncmp(name, "sm_", 3) == 0)
            for (const char *c = name + 3; *c >= '0' && *c <= '9' && p->module->target < 1000; c++)
                p->module->target = p->module->target * 10 + (uint32_t)(*c - '0');
    } while (parse_accept(p, ','));
    static const uint8_t known[] = {50, 52, 53, 60, 61, 62,  70,  72,  75,  80,
                                    86, 87, 88, 89, 90, 100, 101, 103, 110, 120};
    uint32_t target = p->module->target;
    if (target <= known[sizeof known - 1] && !memchr(known, (int)target, sizeof known))
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, "target sm_%u is not known", target);
}

static void read_address_size(struct parser *p)
{
    parse_next(p);
    uint32_t line = p->token.line;
    bool is_64 = parse_integer(p) == 64;
    p->token.line = line;
    if (!is_64)
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, "only .address_size 64 is supported");
}

static bool read_plain_directive(struct parser *p)
{
    if (parse_at_directive(p, "version")) {
        read_version(p);
    } else if (parse_at_directive(p, "target")) {
        read_target(p);
    } else if (parse_at_directive(p, "address_size")) {
        read_address_size(p);
    } else if (parse_at_directive(p, "file") || parse_at_directive(p, "loc")) {
        ptx_lex_skip_line(&p->lexer);
        parse_next(p);
    } else if (parse_at_directive(p, "section")) {
        skip_section(p);
    } else if (parse_at_directive(p, "pragma")) {
        while (p->token.kind != PTX_TOKEN_END && !parse_at(p, ';'))
            parse_next(p);
        parse_expect(p, ';');
    } else {
        return false;
    }
    return true;
}

static void read_declaration(struct parser *p)
{
    bool is_extern = false;
    while (parse_at_directive(p, "extern") || parse_at_directive(p, "visible") || parse_at_directive(p, "weak") ||
           parse_at_directive(p, "common")) {
        is_extern |= parse_at_directive(p, "extern");
        parse_next(p);
    }
    enum ptx_space space;
    if (parse_at_directive(p, "entry") || parse_at_directive(p, "func")) {
        bool is_entry = parse_at_directive(p, "entry");
        parse_next(p);
        if (parse_at_directive(p, "noreturn"))
            parse_next(p);
        read_function(p, is_entry);
    } else if (parse_space(p, &space) && space != PTX_PARAM && space != PTX_LOCAL) {
        parse_next(p);
        do {
            add_module_variable(p, parse_variable(p, space), is_extern);
        } while (parse_at(p, ',') && (parse_next(p), true));
        parse_expect(p, ';');
    } else {
        parse_expected(p, "a directive");
    }
}

static void read_module(struct parser *p, const char *text, size_t bytes)
{
    ptx_lex_start(&p->lexer, text, bytes);
    parse_next(p);
    while (p->token.kind != PTX_TOKEN_END)
        if (!read_plain_directive(p))
            read_declaration(p);
    if (!p->module->version)
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, "no .version");
    if (!p->module->target)
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, "no .target");
    check_defined(p);
    mark_taken(p->module);
}

static struct parser *parser_new(char *why, size_t why_bytes)
{
    struct ptx_module *module = calloc(1, sizeof *module);
    struct parser *p = calloc(1, sizeof *p);
    if (!module || !p)
        abort();
    *p = (struct parser){.module = module, .why = why, .why_bytes = why_bytes};
    module->last_variable = &module->variables;
    module->last_function = &module->functions;
    return p;
}

struct ptx_module *ptx_parse(const char *text, size_t bytes, CUresult *error, char *why, size_t why_bytes)
{
    struct parser *const p = parser_new(why, why_bytes);
    if (setjmp(p->failed))
        ptx_module_release(p->module), p->module = NULL;
    else
        read_module(p, text, bytes);
    *error = p->error;
    struct ptx_module *module = p->module;
    free(p);
    return module;
}

void ptx_module_release(struct ptx_module *module)
{
    arena_release(&module->arena);
    free(module);
}
