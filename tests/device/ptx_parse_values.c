/* Initial values of variables: numbers, and addresses that are filled in when the module is placed. */
#include "tests/device/ptx_parse.h"

#include <string.h>

static void put_bits(struct ptx_variable *variable, size_t at, uint64_t bits, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes && at + i < variable->bytes; i++)
        variable->initial[at + i] = i < 8 ? (uint8_t)(bits >> (8 * i)) : 0;
}

static void read_address_value(struct parser *p, struct ptx_variable *variable, size_t at, uint32_t bytes,
                               uint64_t mask)
{
    struct ptx_fixup *fixup = parse_take(p, sizeof *fixup);
    fixup->at = at;
    fixup->bytes = bytes;
    fixup->line = p->token.line;
    while (mask && !(mask & 0xff)) {
        mask >>= 8;
        fixup->shift += 8;
    }
    fixup->symbol = parse_name(p);
    if (strcmp(fixup->symbol, "generic") == 0 && parse_accept(p, '(')) {
        fixup->symbol = parse_name(p);
        parse_expect(p, ')');
    }
    if (parse_accept(p, '+'))
        fixup->addend = (int64_t)parse_integer(p);
    else if (parse_at(p, '-'))
        fixup->addend = (int64_t)parse_integer(p);
    fixup->next = variable->fixups;
    variable->fixups = fixup;
}

static uint64_t read_number_value(struct parser *p, enum ptx_type type)
{
    bool is_negative = parse_accept(p, '-');
    struct ptx_token token = p->token;
    uint64_t bits = token.bits;
    if (token.kind == PTX_TOKEN_F64 && type == PTX_F32) {
        bits = ptx_narrow_double(bits);
    } else if (token.kind != PTX_TOKEN_INT && token.kind != PTX_TOKEN_F32 && token.kind != PTX_TOKEN_F64) {
        parse_expected(p, "an initial value");
    }
    parse_next(p);
    if (!is_negative)
        return bits;
    if (token.kind == PTX_TOKEN_INT)
        return 0 - bits;
    return bits ^ (type == PTX_F32 ? (uint64_t)1 << 31 : (uint64_t)1 << 63);
}

static void read_value(struct parser *p, struct ptx_variable *variable, size_t at)
{
    uint32_t bytes = ptx_type_bits(variable->type) / 8;
    if (at + bytes > variable->bytes)
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, "more initial values than %s has elements", variable->name);
    if (p->token.kind == PTX_TOKEN_NAME) {
        read_address_value(p, variable, at, bytes, 0);
        return;
    }
    uint64_t bits = read_number_value(p, variable->type);
    if (parse_accept(p, '(')) {
        read_address_value(p, variable, at, bytes, bits);
        parse_expect(p, ')');
    } else {
        put_bits(variable, at, bits, bytes);
    }
}

void parse_initial_values(struct parser *p, struct ptx_variable *variable, const size_t *dims, int depth, int levels,
                          size_t at)
{
    if (!parse_accept(p, '{')) {
        read_value(p, variable, at);
        return;
    }
    if (depth >= levels)
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, "initial values of %s are nested too deep", variable->name);
    for (size_t i = 0; !parse_at(p, '}'); i++) {
        parse_initial_values(p, variable, dims, depth + 1, levels, at + i * dims[depth]);
        if (!parse_accept(p, ','))
            break;
    }
    parse_expect(p, '}');
}
