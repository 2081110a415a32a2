#include "tests/device/ptx_lex.h"

#include <stdlib.h>
#include <string.h>

void ptx_lex_start(struct ptx_lexer *lexer, const char *text, size_t bytes)
{
    const char *nul = memchr(text, 0, bytes);
    *lexer = (struct ptx_lexer){.at = text, .end = nul ? nul : text + bytes, .line = 1};
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_part(char c)
{
    return is_name_start(c) || is_digit(c);
}

static bool at_pair(const struct ptx_lexer *lexer, char a, char b)
{
    return lexer->end - lexer->at >= 2 && lexer->at[0] == a && lexer->at[1] == b;
}

static void skip_blanks(struct ptx_lexer *lexer)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '\n') {
            lexer->line++;
            lexer->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            lexer->at++;
        } else if (at_pair(lexer, '/', '/')) {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                lexer->at++;
        } else if (at_pair(lexer, '/', '*')) {
            lexer->at += 2;
            while (lexer->at < lexer->end && !at_pair(lexer, '*', '/'))
                lexer->line += *lexer->at++ == '\n';
            lexer->at = lexer->end - lexer->at >= 2 ? lexer->at + 2 : lexer->end;
        } else {
            return;
        }
    }
}

void ptx_lex_skip_line(struct ptx_lexer *lexer)
{
    while (lexer->at < lexer->end && *lexer->at != '\n')
        lexer->at++;
}

static int digit_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* Digits of the base; more than 64 bits wrap, as nothing valid has them. */
static uint64_t read_digits(struct ptx_lexer *lexer, int base)
{
    uint64_t value = 0;
    while (lexer->at < lexer->end && digit_value(*lexer->at) < base)
        value = value * (uint64_t)base + (uint64_t)digit_value(*lexer->at++);
    return value;
}

static bool read_decimal_float(struct ptx_lexer *lexer, struct ptx_token *token)
{
    const char *p = lexer->at;
    while (p < lexer->end && is_digit(*p))
        p++;
    bool is_float = false;
    if (p < lexer->end && *p == '.') {
        is_float = true;
        p++;
        while (p < lexer->end && is_digit(*p))
            p++;
    }
    if (p < lexer->end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        if (q < lexer->end && (*q == '+' || *q == '-'))
            q++;
        if (q < lexer->end && is_digit(*q)) {
            is_float = true;
            while (q < lexer->end && is_digit(*q))
                q++;
            p = q;
        }
    }
    char copy[64];
    size_t bytes = (size_t)(p - lexer->at);
    if (!is_float || bytes >= sizeof copy)
        return false;
    memcpy(copy, lexer->at, bytes);
    copy[bytes] = 0;
    double value = strtod(copy, NULL);
    memcpy(&token->bits, &value, sizeof value);
    token->kind = PTX_TOKEN_F64;
    lexer->at = p;
    return true;
}

static void read_number(struct ptx_lexer *lexer, struct ptx_token *token)
{
    token->kind = PTX_TOKEN_INT;
    char second = lexer->end - lexer->at >= 2 ? lexer->at[1] : 0;
    if (*lexer->at == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
        bool is_single = second == 'f' || second == 'F';
        lexer->at += 2;
        const char *start = lexer->at;
        token->bits = read_digits(lexer, 16);
        token->kind = is_single ? PTX_TOKEN_F32 : PTX_TOKEN_F64;
        if (lexer->at - start != (is_single ? 8 : 16))
            token->kind = PTX_TOKEN_BAD;
        return;
    }
    if (read_decimal_float(lexer, token))
        return;
    if (*lexer->at == '0' && (second == 'x' || second == 'X' || second == 'b' || second == 'B')) {
        lexer->at += 2;
        token->bits = read_digits(lexer, second == 'x' || second == 'X' ? 16 : 2);
    } else {
        token->bits = read_digits(lexer, *lexer->at == '0' ? 8 : 10);
    }
    if (lexer->at < lexer->end && *lexer->at == 'U')
        lexer->at++;
}

static void read_string(struct ptx_lexer *lexer, struct ptx_token *token)
{
    token->kind = PTX_TOKEN_STRING;
    lexer->at++;
    while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
        lexer->at++;
    if (lexer->at < lexer->end && *lexer->at == '"')
        lexer->at++;
    else
        token->kind = PTX_TOKEN_BAD;
}

static void read_dot(struct ptx_lexer *lexer, struct ptx_token *token)
{
    token->kind = PTX_TOKEN_DOT;
    token->text = ++lexer->at;
    while (lexer->at < lexer->end && (is_name_part(*lexer->at) || at_pair(lexer, ':', ':'))) {
        if (*lexer->at == ':')
            lexer->at++;
        lexer->at++;
    }
}

struct ptx_token ptx_lex_next(struct ptx_lexer *lexer)
{
    skip_blanks(lexer);
    struct ptx_token token = {.kind = PTX_TOKEN_END, .text = lexer->at, .line = lexer->line};
    if (lexer->at >= lexer->end)
        return token;
    char c = *lexer->at;
    if (is_name_start(c)) {
        token.kind = PTX_TOKEN_NAME;
        while (lexer->at < lexer->end && is_name_part(*lexer->at))
            lexer->at++;
    } else if (is_digit(c)) {
        read_number(lexer, &token);
    } else if (c == '"') {
        read_string(lexer, &token);
    } else if (c == '.') {
        read_dot(lexer, &token);
    } else {
        token.kind = PTX_TOKEN_PUNCT;
        lexer->at++;
    }
    token.bytes = (size_t)(lexer->at - token.text);
    return token;
}
