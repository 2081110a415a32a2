/* What the two halves of the reader share: ptx_parse.c (module level) and ptx_body.c (inside a function).
 * A bad text ends in parse_refuse, which jumps back to ptx_parse; all memory is the module's arena. */
#pragma once
#include "tests/device/ptx_lex.h"

#include <setjmp.h>

struct reg_range {
    struct reg_range *next;
    const char *prefix;
    size_t prefix_bytes;
    uint32_t base, count, width;
};
struct named_table {
    struct named_table *next;
    const char *name;
    struct ptx_operand operand;
};
struct label_mark {
    struct label_mark *next;
    const char *name;
    const struct scope *scope;
    uint32_t insn;
};
struct label_use {
    struct label_use *next;
    struct ptx_operand *operand;
    const struct scope *scope;
    uint32_t line;
};

/* A pair of braces. Names are looked for from the innermost outwards. */
struct scope {
    struct scope *parent;
    struct reg_range *ranges;
    struct ptx_variable *variables;
    struct named_table *tables;
};

struct parser {
    struct ptx_module *module;
    struct ptx_lexer lexer;
    struct ptx_token token; /* the one looked at */
    struct ptx_function *function;
    struct scope *scope;
    struct label_mark *labels;
    struct label_use *uses;
    jmp_buf failed;
    CUresult error;
    char *why;
    size_t why_bytes;
};

_Noreturn void parse_refuse(struct parser *p, CUresult error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void parse_expected(struct parser *p, const char *what);
void parse_next(struct parser *p);
bool parse_at(const struct parser *p, char punct);
bool parse_at_directive(const struct parser *p, const char *name);
bool parse_accept(struct parser *p, char punct);
void parse_expect(struct parser *p, char punct);
const char *parse_name(struct parser *p);
uint64_t parse_integer(struct parser *p);
const char *parse_token_text(struct parser *p);
void *parse_take(struct parser *p, size_t bytes);

/* [.align N] .type name [dims] [= initial], without the space directive and the closing mark. */
struct ptx_variable *parse_variable(struct parser *p, enum ptx_space space);
bool parse_space(const struct parser *p, enum ptx_space *space);
void parse_body(struct parser *p, struct ptx_function *function);
/* Row by row: `dims` are bytes per element of each of the `levels` of nesting, `depth` the one that is read. */
void parse_initial_values(struct parser *p, struct ptx_variable *variable, const size_t *dims, int depth, int levels,
                          size_t at);
