/* Words of PTX. A token is a slice of the text; numbers are decoded. */
#pragma once
#include "tests/device/ptx.h"

enum ptx_token_kind {
    PTX_TOKEN_END,
    PTX_TOKEN_NAME, /* add, %r1, $L__BB0_1, foo */
    PTX_TOKEN_DOT,  /* .reg, .shared::cta: text without the dot */
    PTX_TOKEN_INT,
    PTX_TOKEN_F32,
    PTX_TOKEN_F64,
    PTX_TOKEN_STRING,
    PTX_TOKEN_PUNCT,
    PTX_TOKEN_BAD
};

struct ptx_token {
    enum ptx_token_kind kind;
    const char *text;
    size_t bytes;
    uint64_t bits;
    uint32_t line;
};

struct ptx_lexer {
    const char *at, *end;
    uint32_t line;
};

void ptx_lex_start(struct ptx_lexer *lexer, const char *text, size_t bytes);
struct ptx_token ptx_lex_next(struct ptx_lexer *lexer);
void ptx_lex_skip_line(struct ptx_lexer *lexer);
