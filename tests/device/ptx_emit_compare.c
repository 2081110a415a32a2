/* Comparisons and selections. */
#include "tests/device/ptx_emit.h"

#include <string.h>

static const char *const orders[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "lo",  "ls",  "hi", "hs",
                                     "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", NULL};

/* An unordered comparison is the negation of the ordered one of the opposite sense. */
static const char *const signs[] = {"==", "!=", "<",  "<=", ">",  ">=", "<",  "<=", ">",
                                    ">=", NULL, "!=", NULL, NULL, NULL, NULL, NULL, NULL};
static const char *const opposite_signs[] = {[12] = ">=", [13] = ">", [14] = "<=", [15] = "<"};

static bool is_half(enum ptx_type type)
{
    return type == PTX_F16 || type == PTX_BF16;
}

static bool is_pair(enum ptx_type type)
{
    return type == PTX_F16X2 || type == PTX_BF16X2;
}

static const char *condition_of(struct emit *e, int order, bool is_float, const char *a, const char *b)
{
    if (order == 1 && is_float)
        return emit_format(e, "(%s < %s || %s > %s)", a, b, a, b);
    switch (order) {
    case 10:
        return emit_format(e, "(!(%s < %s) && !(%s > %s))", a, b, a, b);
    case 16:
        return emit_format(e, "(%s == %s && %s == %s)", a, a, b, b);
    case 17:
        return emit_format(e, "(%s != %s || %s != %s)", a, a, b, b);
    case 12:
    case 13:
    case 14:
    case 15:
        return emit_format(e, "(!(%s %s %s))", a, opposite_signs[order], b);
    default:
        return emit_format(e, "(%s %s %s)", a, signs[order], b);
    }
}

struct comparison {
    int join; /* with the predicate at 3; -1: none */
    enum ptx_type type;
    bool is_pair;
    const char *conditions[2]; /* low half, high half; else the first */
};

static const char *const joins[] = {"and", "or", "xor", NULL};

/* An operand as a C number: half 0 or 1 of a pair, else the whole. */
static const char *number(struct emit *e, uint32_t index, enum ptx_type type, bool ftz, int half)
{
    const char *value = emit_in(e, index, type);
    if (ftz && type == PTX_F32)
        return emit_format(e, "ptx_ftz_f32(%s)", value);
    if (is_pair(type))
        value = emit_format(e, half ? "(uint16_t)(%s >> 16)" : "(uint16_t)%s", value);
    if (!is_pair(type) && !is_half(type))
        return value;
    bool is_f16 = type == PTX_F16 || type == PTX_F16X2;
    value = ftz && is_f16 ? emit_format(e, "ptx_ftz_f16(%s)", value) : value;
    return emit_format(e, is_f16 ? "ptx_half_value(%s)" : "ptx_bf16_value(%s)", value);
}

static const char *joined(struct emit *e, const char *condition, int join)
{
    return join < 0 ? condition : emit_format(e, "(%s %c %s)", condition, "&|^"[join], emit_in(e, 3, PTX_PRED));
}

static bool is_compared(enum ptx_type type)
{
    return (type >= PTX_B16 && type <= PTX_B64) || (type >= PTX_U16 && type <= PTX_U64) ||
           (type >= PTX_S16 && type <= PTX_S64) || ptx_type_is_float(type) || is_half(type) || is_pair(type);
}

/* Bits are equal or not; lo, ls, hi, hs are for unsigned numbers, equ to nan for floats. */
static bool fits_order(int order, enum ptx_type type, bool is_float)
{
    bool is_unsigned = type >= PTX_U16 && type <= PTX_U64;
    if (type <= PTX_B128)
        return order == 0 || order == 1;
    return order >= 0 && (order < 6 || (order < 10 && is_unsigned) || (order >= 10 && is_float));
}

/* a CMP b for the operands at 1 and 2, not yet joined. */
static struct comparison read_comparison(struct emit *e, int join)
{
    struct comparison c = {.join = join, .conditions = {"0", "0"}};
    int order = emit_take_of(e, orders);
    c.type = emit_take_type(e);
    c.is_pair = is_pair(c.type);
    bool is_float = ptx_type_is_float(c.type) || is_half(c.type) || c.is_pair;
    bool ftz = (c.type == PTX_F32 || c.type == PTX_F16 || c.type == PTX_F16X2) && emit_take(e, "ftz");
    if (!is_compared(c.type) || !fits_order(order, c.type, is_float)) {
        emit_refuse(e, "comparison or type");
        return c;
    }
    for (int half = 0; half < (c.is_pair ? 2 : 1); half++)
        c.conditions[half] =
            condition_of(e, order, is_float, number(e, 1, c.type, ftz, half), number(e, 2, c.type, ftz, half));
    return c;
}

void emit_setp(struct emit *e)
{
    int join = emit_take_of(e, joins);
    struct comparison c = read_comparison(e, join);
    if (!emit_expect_operands(e, join < 0 ? 3 : 4, join < 0 ? 3 : 4))
        return;
    const struct ptx_operand *result = &e->insn->operands[0];
    emit_use_operand(e, result);
    if (result->kind != PTX_OP_PAIR) {
        emit_out(e, PTX_PRED, "%s", joined(e, c.conditions[0], join));
        return;
    }
    const char *second = c.is_pair ? c.conditions[1] : emit_format(e, "!%s", c.conditions[0]);
    emit_c(e, "{ _Bool c_ = %s, d_ = %s;\n", joined(e, c.conditions[0], join), joined(e, second, join));
    emit_set(e, &result->elements[0], PTX_PRED, "c_");
    emit_set(e, &result->elements[1], PTX_PRED, "d_");
    emit_c(e, "}\n");
}

/* set.CMP.TYPE.SOURCE: all ones, or 1.0, where true */
void emit_compare_set(struct emit *e)
{
    int join = emit_take_of(e, joins);
    enum ptx_type result = emit_take_type(e);
    struct comparison c = read_comparison(e, join);
    const char *first = joined(e, c.conditions[0], join), *second = joined(e, c.conditions[1], join);
    uint32_t one = result == PTX_F16 || result == PTX_F16X2 ? 0x3c00 : 0x3f80;
    if (c.is_pair && result == c.type)
        emit_out(e, result, "(%s ? 0x%xu : 0) | (%s ? 0x%xu : 0) << 16", first, one, second, one);
    else if (c.is_pair && (result == PTX_U32 || result == PTX_S32))
        emit_out(e, result, "(%s ? 0xffffu : 0) | (%s ? 0xffffu : 0) << 16", first, second);
    else if (c.is_pair)
        emit_refuse(e, "type");
    else if (result == PTX_F32)
        emit_out(e, result, "%s ? 1.0f : 0.0f", first);
    else if (is_half(result) && is_half(c.type))
        emit_out(e, result, "%s ? 0x%x : 0", first, one);
    else if (result == PTX_U32 || result == PTX_S32 || ((result == PTX_U16 || result == PTX_S16) && is_half(c.type)))
        emit_out(e, result, "%s ? -1 : 0", first);
    else
        emit_refuse(e, "type");
}

static bool is_moved(enum ptx_type type)
{
    return is_compared(type) && !is_half(type) && !is_pair(type);
}

void emit_selp(struct emit *e)
{
    enum ptx_type type = emit_take_type(e);
    if (!is_moved(type))
        emit_refuse(e, "type");
    emit_out(e, type, "%s ? %s : %s", emit_in(e, 3, PTX_PRED), emit_in(e, 1, type), emit_in(e, 2, type));
}

void emit_slct(struct emit *e)
{
    enum ptx_type type = emit_take_type(e), by = emit_take_type(e);
    bool ftz = by == PTX_F32 && emit_take(e, "ftz");
    if (!is_moved(type) || (by != PTX_S32 && by != PTX_F32))
        emit_refuse(e, "type");
    emit_out(e, type, "%s >= 0 ? %s : %s", number(e, 3, by, ftz, 0), emit_in(e, 1, type), emit_in(e, 2, type));
}
