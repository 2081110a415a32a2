/* cvt, cvta, isspacep, mov. */
#include "tests/device/ptx_emit.h"

#include <string.h>

static const char *const integral[] = {"rni", "rzi", "rmi", "rpi", NULL};
static const char *const roundings[] = {"rn", "rz", "rm", "rp", NULL};

struct conversion {
    enum ptx_type to, from;
    int integral, rounding; /* -1: not given */
    bool ftz, sat, relu, satfinite;
    const char *value; /* the operand */
};

static bool is_half(enum ptx_type type)
{
    return type == PTX_F16 || type == PTX_BF16;
}

static bool is_integer(enum ptx_type type)
{
    return type >= PTX_U8 && type <= PTX_S64;
}

static bool is_small(enum ptx_type type)
{
    return is_half(type) || type == PTX_F16X2 || type == PTX_BF16X2 || type == PTX_TF32 || type == PTX_E4M3X2 ||
           type == PTX_E5M2X2;
}

static bool is_floating(enum ptx_type type)
{
    return ptx_type_is_float(type) || is_small(type);
}

static const char *half_value(struct emit *e, enum ptx_type type, const char *bits)
{
    return emit_format(e, type == PTX_F16 ? "ptx_half_value(%s)" : "ptx_bf16_value(%s)", bits);
}

static const char *half_bits(struct emit *e, enum ptx_type type, enum ptx_type from, const char *value)
{
    return emit_format(e, "ptx_%s_%s(%s)", type == PTX_F16 ? "half" : "bf16", from == PTX_F64 ? "f64" : "f32", value);
}

/* The float `value` as f16 or bf16, with all that the conversion asks for. */
static const char *small_bits(struct emit *e, const struct conversion *c, enum ptx_type half, enum ptx_type from,
                              const char *value)
{
    const char *name = half == PTX_F16 ? "f16" : "bf16", *bits;
    if (c->rounding == 0)
        bits = half_bits(e, half, from, value);
    else
        bits = emit_format(e, "ptx_%s_%s_f64((double)%s)", half == PTX_F16 ? "half" : "bf16", roundings[c->rounding],
                           value);
    if (c->satfinite)
        bits = emit_format(e, "ptx_satfinite_%s(%s)", name, bits);
    if (c->relu)
        bits = emit_format(e, "ptx_relu_%s(%s)", name, bits);
    return c->sat ? emit_format(e, "ptx_sat_%s(%s)", name, bits) : bits;
}

static void integer_to_integer(struct emit *e, const struct conversion *c)
{
    if (!c->sat) {
        emit_out(e, c->to, "%s", c->value);
        return;
    }
    uint32_t bits = ptx_type_bits(c->to);
    bool to_signed = ptx_type_is_signed(c->to), from_signed = ptx_type_is_signed(c->from);
    const char *wide = from_signed ? "int64_t" : "uint64_t";
    uint64_t most =
        bits == 64 ? (to_signed ? INT64_MAX : UINT64_MAX) : ((uint64_t)1 << (to_signed ? bits - 1 : bits)) - 1;
    const char *above =
        emit_format(e, "%s > 0 && (uint64_t)(%s)%s > 0x%llxull", c->value, wide, c->value, (unsigned long long)most);
    const char *below = !from_signed ? "0"
                        : !to_signed ? emit_format(e, "%s < 0", c->value)
                        : bits == 64
                            ? "0"
                            : emit_format(e, "(int64_t)%s < -0x%llxll - 1", c->value, (unsigned long long)most);
    const char *least = to_signed ? emit_format(e, "(-0x%llxll - 1)", (unsigned long long)most) : "0";
    emit_out(e, c->to, "%s ? (%s)0x%llxull : %s ? (%s)%s : (%s)%s", above, ptx_type_c(c->to), (unsigned long long)most,
             below, ptx_type_c(c->to), least, ptx_type_c(c->to), c->value);
}

static void float_to_integer(struct emit *e, const struct conversion *c)
{
    bool is_double = c->from == PTX_F64;
    const char *value = is_half(c->from) ? half_value(e, c->from, c->value) : c->value;
    if (c->integral < 0) {
        emit_refuse(e, "a rounding to integers is wanted");
        return;
    }
    if (c->ftz)
        value = emit_format(e, "ptx_ftz_f32(%s)", value);
    const char *type = is_double ? "double" : "float";
    emit_out(e, c->to, "ptx_%s_to_%s(ptx_%s_%s(%s))", type, ptx_type_c(c->to), integral[c->integral], type, value);
}

static void integer_to_float(struct emit *e, const struct conversion *c)
{
    bool is_double = c->to == PTX_F64;
    const char *value;
    if (c->rounding < 0) {
        emit_refuse(e, "a rounding is wanted");
        return;
    }
    if (is_half(c->to)) {
        /* Through a double: 64-bit integers beyond its 53 bits are far beyond what f16 holds, and bf16's 8 bits
         * are cut from a sticky value. */
        value = ptx_type_bits(c->from) == 64
                    ? emit_format(e, "ptx_odd_%s(%s)", ptx_type_is_signed(c->from) ? "s64" : "u64", c->value)
                    : emit_format(e, "(double)%s", c->value);
        emit_out(e, c->to, "%s", small_bits(e, c, c->to, PTX_F64, value));
        return;
    }
    const char *type = is_double ? "double" : "float";
    if (c->rounding == 0)
        value = emit_format(e, "(%s)%s", type, c->value);
    else if (ptx_type_is_signed(c->from))
        value = emit_format(e, "ptx_from_u64_%s_%s(%s < 0 ? 0 - (uint64_t)(int64_t)%s : (uint64_t)%s, %s < 0)", type,
                            roundings[c->rounding], c->value, c->value, c->value, c->value);
    else
        value = emit_format(e, "ptx_from_u64_%s_%s(%s, 0)", type, roundings[c->rounding], c->value);
    if (c->sat)
        value = emit_format(e, "ptx_sat_%s(%s)", is_double ? "f64" : "f32", value);
    emit_out(e, c->to, "%s", value);
}

static const char *rounded_to_integral(struct emit *e, const struct conversion *c, const char *value, const char *type)
{
    return c->integral < 0 ? value : emit_format(e, "ptx_%s_%s(%s)", integral[c->integral], type, value);
}

static void same_float(struct emit *e, const struct conversion *c)
{
    bool is_double = c->to == PTX_F64;
    const char *value = c->ftz ? emit_format(e, "ptx_ftz_f32(%s)", c->value) : c->value;
    value = rounded_to_integral(e, c, value, is_double ? "double" : "float");
    if (c->sat)
        value = emit_format(e, "ptx_sat_%s(%s)", is_double ? "f64" : "f32", value);
    emit_out(e, c->to, "%s", value);
}

static void narrow_or_widen(struct emit *e, const struct conversion *c)
{
    const char *value;
    if (c->to == PTX_F64) {
        value = emit_format(e, c->ftz ? "(double)ptx_ftz_f32(%s)" : "(double)%s", c->value);
    } else if (c->rounding < 0) {
        emit_refuse(e, "a rounding is wanted");
        return;
    } else {
        value = c->rounding == 0 ? emit_format(e, "(float)(%s)", c->value)
                                 : emit_format(e, "ptx_cvt_f64_f32_%s(%s)", roundings[c->rounding], c->value);
        value = c->ftz ? emit_format(e, "ptx_ftz_f32(%s)", value) : value;
    }
    if (c->sat)
        value = emit_format(e, "ptx_sat_%s(%s)", c->to == PTX_F64 ? "f64" : "f32", value);
    emit_out(e, c->to, "%s", value);
}

static void to_half(struct emit *e, const struct conversion *c)
{
    if (is_half(c->from) && c->from == c->to) {
        const char *value = rounded_to_integral(e, c, half_value(e, c->from, c->value), "float");
        const char *bits = c->integral < 0 ? c->value : half_bits(e, c->to, PTX_F32, value);
        emit_out(e, c->to, "%s",
                 c->sat ? emit_format(e, "ptx_sat_%s(%s)", c->to == PTX_F16 ? "f16" : "bf16", bits) : bits);
        return;
    }
    const char *value = is_half(c->from) ? half_value(e, c->from, c->value) : c->value;
    if (c->ftz)
        value = emit_format(e, "ptx_ftz_f32(%s)", value);
    if (c->rounding < 0)
        emit_refuse(e, "a rounding is wanted");
    else
        emit_out(e, c->to, "%s", small_bits(e, c, c->to, c->from == PTX_F64 ? PTX_F64 : PTX_F32, value));
}

static void from_half(struct emit *e, const struct conversion *c)
{
    const char *value = half_value(e, c->from, c->value);
    if (c->ftz)
        value = emit_format(e, "ptx_ftz_f32(%s)", value);
    if (c->sat)
        value = emit_format(e, "ptx_sat_f32(%s)", value);
    emit_out(e, c->to, "%s", value);
}

/* cvt.rn.f16x2.f32 d, a, b: a goes to the upper half. */
static void pack_halves(struct emit *e, struct conversion *c)
{
    enum ptx_type half = c->to == PTX_F16X2 ? PTX_F16 : PTX_BF16;
    if ((c->rounding != 0 && c->rounding != 1) || c->from != PTX_F32 || c->sat || c->ftz) {
        emit_refuse(e, "this form");
        return;
    }
    const char *parts[2];
    for (uint32_t i = 0; i < 2; i++)
        parts[i] = small_bits(e, c, half, PTX_F32, emit_in(e, i + 1, PTX_F32));
    emit_out(e, c->to, "(uint32_t)%s << 16 | %s", parts[0], parts[1]);
}

/* cvt.rn.satfinite.e4m3x2.f32 d, a, b (a to the upper byte), .e4m3x2.f16x2 d, a, and .f16x2.e4m3x2 d, a */
static void convert_bytes(struct emit *e, const struct conversion *c)
{
    bool to_bytes = c->to == PTX_E4M3X2 || c->to == PTX_E5M2X2;
    const char *name = c->to == PTX_E4M3X2 || c->from == PTX_E4M3X2 ? "e4m3" : "e5m2", *parts[2] = {"0", "0"};
    if (c->rounding != 0 || c->sat || c->ftz || c->satfinite != to_bytes ||
        (to_bytes ? c->from != PTX_F32 && c->from != PTX_F16X2 : c->to != PTX_F16X2)) {
        emit_refuse(e, "this form");
        return;
    }
    for (uint32_t half = 0; half < 2; half++) {
        const char *value = c->from == PTX_F32 ? emit_in(e, 2 - half, PTX_F32) : emit_in(e, 1, c->from);
        if (c->from == PTX_F16X2)
            value = emit_format(e, "ptx_half_value((uint16_t)(%s >> %u))", value, 16 * half);
        if (to_bytes && c->relu)
            value = emit_format(e, "ptx_relu_f32(%s)", value);
        parts[half] = to_bytes ? emit_format(e, "ptx_%s_f32(%s)", name, value)
                               : emit_format(e, "ptx_half_%s((uint8_t)(%s >> %u))", name, value, 8 * half);
        if (!to_bytes && c->relu)
            parts[half] = emit_format(e, "ptx_relu_f16(%s)", parts[half]);
    }
    emit_out(e, c->to, "(uint32_t)%s << %d | %s", parts[1], to_bytes ? 8 : 16, parts[0]);
}

/* Which modifiers mean something depends on the types: the others stay untaken. */
static struct conversion take_conversion(struct emit *e)
{
    struct conversion c = {.integral = -1, .rounding = -1, .to = emit_take_type(e), .from = emit_take_type(e)};
    bool from_float = is_floating(c.from), to_float = is_floating(c.to);
    bool is_narrowed = to_float && (!from_float || ptx_type_bits(c.to) < ptx_type_bits(c.from) || is_small(c.to));
    if (from_float && (!to_float || c.to == c.from))
        c.integral = emit_take_of(e, integral);
    if (is_narrowed && c.to != c.from)
        c.rounding = emit_take_of(e, roundings);
    c.ftz = (c.from == PTX_F32 || c.to == PTX_F32) && from_float && emit_take(e, "ftz");
    c.sat = emit_take(e, "sat");
    c.relu = is_small(c.to) && from_float && c.to != c.from && emit_take(e, "relu");
    c.satfinite = is_small(c.to) && from_float && c.to != c.from && emit_take(e, "satfinite");
    return c;
}

/* cvt.rna{.satfinite}.tf32.f32, cvt.rn|rz{.satfinite}{.relu}.tf32.f32 */
static void to_tf32(struct emit *e, struct conversion *c)
{
    const char *mode = c->rounding < 0 && emit_take(e, "rna") ? "rna"
                       : c->rounding == 0                     ? "rn"
                       : c->rounding == 1                     ? "rz"
                                                              : NULL;
    if (!mode || c->from != PTX_F32 || c->ftz || c->sat || (mode[2] && c->relu) || !emit_expect_operands(e, 2, 2)) {
        emit_refuse(e, "this form");
        return;
    }
    const char *value = emit_in(e, 1, PTX_F32);
    if (c->relu)
        value = emit_format(e, "ptx_relu_f32(%s)", value);
    emit_out(e, PTX_B32, "ptx_tf32_%s(%s, %d)", mode, value, c->satfinite);
}

void emit_cvt(struct emit *e)
{
    struct conversion c = take_conversion(e);
    if (c.to == PTX_TF32) {
        to_tf32(e, &c);
        return;
    }
    if (c.to == PTX_E4M3X2 || c.to == PTX_E5M2X2 || c.from == PTX_E4M3X2 || c.from == PTX_E5M2X2) {
        convert_bytes(e, &c);
        return;
    }
    if (c.to == PTX_F16X2 || c.to == PTX_BF16X2) {
        pack_halves(e, &c);
        return;
    }
    if (c.from == PTX_NONE || !emit_expect_operands(e, 2, 2)) {
        emit_refuse(e, "types");
        return;
    }
    c.value = emit_in(e, 1, c.from);
    if (is_integer(c.to) && is_integer(c.from))
        integer_to_integer(e, &c);
    else if (is_integer(c.to) && (ptx_type_is_float(c.from) || is_half(c.from)))
        float_to_integer(e, &c);
    else if (is_integer(c.from) && (ptx_type_is_float(c.to) || is_half(c.to)))
        integer_to_float(e, &c);
    else if (is_half(c.to) && (ptx_type_is_float(c.from) || is_half(c.from)))
        to_half(e, &c);
    else if (is_half(c.from) && ptx_type_is_float(c.to))
        from_half(e, &c);
    else if (c.to == c.from && ptx_type_is_float(c.to))
        same_float(e, &c);
    else if (ptx_type_is_float(c.to) && ptx_type_is_float(c.from))
        narrow_or_widen(e, &c);
    else
        emit_refuse(e, "types");
}

/* ---- addresses as values ---- */

void emit_cvta(struct emit *e)
{
    bool to_space = emit_take(e, "to");
    enum ptx_space space = emit_take_space(e);
    enum ptx_type type = emit_take_type(e);
    if (!emit_expect_operands(e, 2, 2))
        return;
    const char *address = emit_in(e, 1, type);
    if (type == PTX_U32 && space != PTX_SHARED)
        emit_refuse(e, "type");
    else if (space == PTX_SHARED)
        emit_out(e, type, to_space ? "%s - (uint64_t)S" : "%s + (uint64_t)S", address);
    else
        emit_out(e, type, "%s", address);
}

static const char *in_constants(struct emit *e, const char *address)
{
    const char *text = "0";
    for (const struct ptx_variable *v = e->module->variables; v; v = v->next)
        if (v->space == PTX_CONST && !v->is_extern)
            text = emit_format(e, "%s || %s - (uint64_t)B->globals[%u] < %zu", text, address, v->number, v->bytes);
    return text;
}

void emit_isspacep(struct emit *e)
{
    enum ptx_space space = emit_take_space(e);
    const char *a = emit_in(e, 1, PTX_U64);
    const char *in_shared = emit_format(e, "(%s - (uint64_t)S < B->total_shared)", a);
    if (space == PTX_SHARED)
        emit_out(e, PTX_PRED, "%s", in_shared);
    else if (space == PTX_GLOBAL)
        emit_out(e, PTX_PRED, "!%s && !ptx_is_local(B, %s) && %s - (uint64_t)P >= %zu && !(%s)", in_shared, a, a,
                 e->layout->param_bytes, in_constants(e, a));
    else if (space == PTX_LOCAL)
        emit_out(e, PTX_PRED, "ptx_is_local(B, %s)", a);
    else if (space == PTX_PARAM)
        emit_out(e, PTX_PRED, "%s - (uint64_t)P < %zu", a, e->layout->param_bytes);
    else if (space == PTX_CONST)
        emit_out(e, PTX_PRED, "%s", in_constants(e, a));
    else
        emit_refuse(e, "space");
}

/* A cluster is one block here: its rank is 0, and an address of that rank is the address. */
void emit_getctarank(struct emit *e)
{
    emit_take_space(e);
    enum ptx_type type = emit_take_type(e);
    if (type != PTX_U32 && type != PTX_U64)
        emit_refuse(e, "type");
    emit_in(e, 1, type);
    emit_out(e, PTX_U32, "0");
}

void emit_mapa(struct emit *e)
{
    emit_take(e, "shared::cluster");
    enum ptx_type type = emit_take_type(e);
    if (type != PTX_U32 && type != PTX_U64)
        emit_refuse(e, "type");
    else
        emit_out(e, type, "ptx_mapa(B, (uint64_t)%s, %s)", emit_in(e, 1, type), emit_in(e, 2, PTX_U32));
}

/* ---- mov ---- */

static void unpack(struct emit *e, enum ptx_type type)
{
    const struct ptx_operand *list = &e->insn->operands[0];
    emit_use_operand(e, list);
    uint32_t bits = list->count ? ptx_type_bits(type) / list->count : 0;
    enum ptx_type part = bits == 8 ? PTX_B8 : bits == 16 ? PTX_B16 : bits == 32 ? PTX_B32 : PTX_NONE;
    if (part == PTX_NONE) {
        emit_refuse(e, "parts");
        return;
    }
    emit_c(e, "{ const %s u_ = %s;\n", ptx_type_c(type), emit_in(e, 1, type));
    for (uint32_t i = 0; i < list->count; i++)
        emit_set(e, &list->elements[i], part, emit_format(e, "(%s)(u_ >> %u)", ptx_type_c(part), i * bits));
    emit_c(e, "}\n");
}

static void pack(struct emit *e, enum ptx_type type)
{
    const struct ptx_operand *list = &e->insn->operands[1];
    emit_use_operand(e, list);
    uint32_t bits = list->count ? ptx_type_bits(type) / list->count : 0;
    enum ptx_type part = bits == 8 ? PTX_B8 : bits == 16 ? PTX_B16 : bits == 32 ? PTX_B32 : PTX_NONE;
    if (part == PTX_NONE) {
        emit_refuse(e, "parts");
        return;
    }
    const char *value = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        const char *piece =
            emit_format(e, "(%s)%s << %u", ptx_type_c(type), emit_value(e, &list->elements[i], part), i * bits);
        value = value ? emit_format(e, "%s | %s", value, piece) : piece;
    }
    emit_out(e, type, "%s", value);
}

void emit_mov(struct emit *e)
{
    enum ptx_type type = emit_take_type(e);
    if (type == PTX_NONE || ptx_type_bits(type) > 64)
        emit_refuse(e, "type");
    if (!emit_expect_operands(e, 2, 2))
        return;
    if (e->insn->operands[0].kind == PTX_OP_LIST)
        unpack(e, type);
    else if (e->insn->operands[1].kind == PTX_OP_LIST)
        pack(e, type);
    else
        emit_out(e, type, "%s", emit_in(e, 1, type));
}

void emit_createpolicy(struct emit *e)
{
    e->used_modifiers = e->used_operands = ~0u;
    emit_out(e, PTX_B64, "0");
}
