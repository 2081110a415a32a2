/* Floating point arithmetic, and the operations that integers and floats share by name. */
#include "tests/device/ptx_emit.h"

#include <string.h>

static const char *const roundings[] = {"rn", "rz", "rm", "rp", NULL};

struct float_mode {
    int rounding;
    bool ftz, sat, relu;
};

/* What an instruction may carry: all else stays untaken, and refuses it. */
enum { NEAREST = 1, DIRECTED = 2, FLUSHES = 4, SATURATES = 8, CLIPS = 16, ROUNDS = NEAREST | DIRECTED };

static struct float_mode take_mode(struct emit *e, unsigned allowed)
{
    struct float_mode mode = {.rounding = -1};
    if (allowed & DIRECTED)
        mode.rounding = emit_take_of(e, roundings);
    else if ((allowed & NEAREST) && emit_take(e, "rn"))
        mode.rounding = 0;
    mode.ftz = (allowed & FLUSHES) && emit_take(e, "ftz");
    mode.sat = (allowed & SATURATES) && emit_take(e, "sat");
    mode.relu = (allowed & CLIPS) && !mode.sat && emit_take(e, "relu");
    return mode;
}

/* add, sub, mul, fma, mad */
static struct float_mode take_arithmetic_mode(struct emit *e, enum ptx_type type, bool is_fused)
{
    unsigned clips = is_fused ? CLIPS : 0;
    switch (type) {
    case PTX_F32:
        return take_mode(e, ROUNDS | FLUSHES | SATURATES);
    case PTX_F32X2:
        return take_mode(e, ROUNDS | FLUSHES);
    case PTX_F64:
        return take_mode(e, ROUNDS);
    case PTX_F16:
    case PTX_F16X2:
        return take_mode(e, NEAREST | FLUSHES | SATURATES | clips);
    default:
        return take_mode(e, NEAREST | clips);
    }
}

static bool is_small_float(enum ptx_type type)
{
    return type == PTX_F16 || type == PTX_F16X2 || type == PTX_BF16 || type == PTX_BF16X2;
}

static bool is_pair(enum ptx_type type)
{
    return type == PTX_F16X2 || type == PTX_BF16X2;
}

static const char *small_name(enum ptx_type type)
{
    return type == PTX_F16 || type == PTX_F16X2 ? "f16" : "bf16";
}

/* An operand, flushed where the instruction says so. */
static const char *float_in(struct emit *e, uint32_t index, enum ptx_type type, struct float_mode mode)
{
    const char *value = emit_in(e, index, type);
    return mode.ftz && type == PTX_F32 ? emit_format(e, "ptx_ftz_f32(%s)", value) : value;
}

static void float_out(struct emit *e, enum ptx_type type, struct float_mode mode, const char *value)
{
    if (mode.ftz)
        value = emit_format(e, "ptx_ftz_f32(%s)", value);
    if (mode.sat)
        value = emit_format(e, type == PTX_F32 ? "ptx_sat_f32(%s)" : "ptx_sat_f64(%s)", value);
    emit_out(e, type, "%s", value);
}

/* f(a, b, ...) on f16 or bf16, on both halves of a pair. */
static void small_out(struct emit *e, enum ptx_type type, struct float_mode mode, const char *function,
                      uint32_t operands)
{
    const char *in[3], *name = small_name(type), *halves[2] = {"0", "0"};
    for (uint32_t i = 0; i < operands; i++)
        in[i] = emit_in(e, i + 1, type);
    if (e->failed)
        return;
    for (int half = 0; half < (is_pair(type) ? 2 : 1); half++) {
        const char *call = emit_format(e, "ptx_%s_%s(", function, name);
        for (uint32_t i = 0; i < operands; i++) {
            const char *part = emit_format(e, half ? "(uint16_t)(%s >> 16)" : "(uint16_t)%s", in[i]);
            part = mode.ftz ? emit_format(e, "ptx_ftz_%s(%s)", name, part) : part;
            call = emit_format(e, "%s%s%s", call, i ? ", " : "", part);
        }
        call = emit_format(e, "%s)", call);
        if (mode.ftz)
            call = emit_format(e, "ptx_ftz_%s(%s)", name, call);
        if (mode.sat)
            call = emit_format(e, "ptx_sat_%s(%s)", name, call);
        halves[half] = mode.relu ? emit_format(e, "ptx_relu_%s(%s)", name, call) : call;
    }
    if (is_pair(type))
        emit_out(e, type, "%s | (uint32_t)%s << 16", halves[0], halves[1]);
    else
        emit_out(e, type, "%s", halves[0]);
}

/* Two floats side by side: each half as the operation on floats would give it. */
static void pair_out(struct emit *e, const char *function, const char *sign, uint32_t operands)
{
    struct float_mode mode = take_arithmetic_mode(e, PTX_F32X2, operands == 3);
    const char *halves[2] = {"0", "0"};
    for (uint32_t half = 0; half < 2 && !e->failed; half++) {
        const char *in[3];
        for (uint32_t i = 0; i < operands; i++) {
            in[i] = emit_format(e, half ? "ptx_f32((uint32_t)(%s >> 32))" : "ptx_f32((uint32_t)%s)",
                                emit_in(e, i + 1, PTX_B64));
            in[i] = mode.ftz ? emit_format(e, "ptx_ftz_f32(%s)", in[i]) : in[i];
        }
        const char *value;
        if (mode.rounding > 0)
            value = operands == 3
                        ? emit_format(e, "ptx_fma_f32_%s(%s, %s, %s)", roundings[mode.rounding], in[0], in[1], in[2])
                        : emit_format(e, "ptx_%s_f32_%s(%s, %s)", function, roundings[mode.rounding], in[0], in[1]);
        else
            value = operands == 3 ? emit_format(e, "__builtin_fmaf(%s, %s, %s)", in[0], in[1], in[2])
                                  : emit_format(e, "%s %s %s", in[0], sign, in[1]);
        halves[half] = emit_format(e, mode.ftz ? "ptx_u32(ptx_ftz_f32(%s))" : "ptx_u32(%s)", value);
    }
    emit_out(e, PTX_B64, "(uint64_t)%s << 32 | %s", halves[1], halves[0]);
}

/* a OP b, or ptx_<name>_<type>_<mode>(a, b) where the rounding is directed. */
static void binary(struct emit *e, enum ptx_type type, const char *name, const char *sign)
{
    if (type == PTX_F32X2) {
        pair_out(e, name, sign, 2);
        return;
    }
    struct float_mode mode = take_arithmetic_mode(e, type, false);
    if (is_small_float(type)) {
        small_out(e, type, mode, name, 2);
        return;
    }
    const char *a = float_in(e, 1, type, mode), *b = float_in(e, 2, type, mode);
    if (mode.rounding > 0)
        float_out(e, type, mode,
                  emit_format(e, "ptx_%s_%s_%s(%s, %s)", name, type == PTX_F32 ? "f32" : "f64",
                              roundings[mode.rounding], a, b));
    else
        float_out(e, type, mode, emit_format(e, "%s %s %s", a, sign, b));
}

static enum ptx_type take_number(struct emit *e)
{
    enum ptx_type type = emit_take_type(e);
    if (type == PTX_NONE || type == PTX_PRED || type == PTX_B8 || type == PTX_B16 || type == PTX_B32 ||
        type == PTX_B64 || type == PTX_U8 || type == PTX_S8 || type == PTX_B128 || type >= PTX_U16X2 ||
        type == PTX_TF32 || type == PTX_F32X2)
        emit_refuse(e, "type");
    return type;
}

/* The pair of floats is for add, sub, mul and fma only. */
static enum ptx_type take_number_or_pair(struct emit *e)
{
    return emit_take(e, "f32x2") ? PTX_F32X2 : take_number(e);
}

static bool is_number_float(enum ptx_type type)
{
    return ptx_type_is_float(type) || is_small_float(type) || type == PTX_F32X2;
}

/* Two 16-bit integers side by side. */
static bool emit_int_pair(struct emit *e)
{
    bool is_signed = emit_take(e, "s16x2");
    if (!is_signed && !emit_take(e, "u16x2"))
        return false;
    bool is_sum = strcmp(e->insn->opcode, "add") == 0, relu = is_signed && !is_sum && emit_take(e, "relu");
    if (strcmp(e->insn->opcode, "sub") == 0)
        emit_refuse(e, "this form");
    const char *value = emit_format(e, "ptx_%s_%s(%s, %s)", e->insn->opcode, is_signed ? "s16x2" : "u16x2",
                                    emit_in(e, 1, PTX_B32), emit_in(e, 2, PTX_B32));
    emit_out(e, PTX_B32, relu ? "ptx_max_s16x2(%s, 0)" : "%s", value);
    return true;
}

void emit_add(struct emit *e)
{
    if (emit_int_pair(e))
        return;
    enum ptx_type type = take_number_or_pair(e);
    bool is_add = strcmp(e->insn->opcode, "add") == 0;
    if (is_number_float(type))
        binary(e, type, is_add ? "add" : "sub", is_add ? "+" : "-");
    else
        emit_int_add(e, type);
}

void emit_mul(struct emit *e)
{
    enum ptx_type type = take_number_or_pair(e);
    if (is_number_float(type))
        binary(e, type, "mul", "*");
    else
        emit_int_mul(e, type);
}

static void fused(struct emit *e, enum ptx_type type)
{
    if (type == PTX_F32X2) {
        pair_out(e, "fma", "", 3);
        return;
    }
    struct float_mode mode = take_arithmetic_mode(e, type, true);
    if (is_small_float(type)) {
        small_out(e, type, mode, "fma", 3);
        return;
    }
    const char *a = float_in(e, 1, type, mode), *b = float_in(e, 2, type, mode), *c = float_in(e, 3, type, mode);
    if (mode.rounding > 0)
        float_out(e, type, mode,
                  emit_format(e, "ptx_fma_%s_%s(%s, %s, %s)", type == PTX_F32 ? "f32" : "f64", roundings[mode.rounding],
                              a, b, c));
    else
        float_out(e, type, mode, emit_format(e, "__builtin_fma%s(%s, %s, %s)", type == PTX_F32 ? "f" : "", a, b, c));
}

void emit_fma(struct emit *e)
{
    enum ptx_type type = take_number_or_pair(e);
    if (!is_number_float(type))
        emit_refuse(e, "type");
    else
        fused(e, type);
}

void emit_mad(struct emit *e)
{
    enum ptx_type type = take_number(e);
    if (ptx_type_is_float(type))
        fused(e, type);
    else if (is_number_float(type))
        emit_refuse(e, "type");
    else
        emit_int_mad(e, type);
}

void emit_div(struct emit *e)
{
    enum ptx_type type = take_number(e);
    if (!is_number_float(type)) {
        emit_int_div(e, type);
        return;
    }
    bool is_single = type == PTX_F32, is_approximate = is_single && emit_take(e, "approx");
    bool is_full = is_single && !is_approximate && emit_take(e, "full");
    if (!ptx_type_is_float(type)) {
        emit_refuse(e, "type");
        return;
    }
    struct float_mode mode = take_mode(e, (is_single ? FLUSHES : 0u) | (is_approximate || is_full ? 0u : ROUNDS));
    const char *a = float_in(e, 1, type, mode), *b = float_in(e, 2, type, mode);
    if (is_approximate)
        float_out(e, type, mode, emit_format(e, "ptx_div_approx_f32(%s, %s)", a, b));
    else if (mode.rounding > 0)
        float_out(e, type, mode,
                  emit_format(e, "ptx_div_%s_%s(%s, %s)", is_single ? "f32" : "f64", roundings[mode.rounding], a, b));
    else if (!is_full && mode.rounding < 0)
        emit_refuse(e, "neither .approx, .full nor a rounding");
    else
        float_out(e, type, mode, emit_format(e, "%s / %s", a, b));
}

/* rcp and sqrt: .approx for f32, else a rounding. False where it is neither, .approx taken. */
static bool take_unary_mode(struct emit *e, enum ptx_type *type, struct float_mode *mode)
{
    *type = emit_take_type(e);
    bool is_approximate = emit_take(e, "approx");
    *mode = (struct float_mode){.rounding = -1};
    if (!ptx_type_is_float(*type) || (is_approximate && *type == PTX_F64))
        return false;
    *mode = take_mode(e, (*type == PTX_F32 ? FLUSHES : 0u) | (is_approximate ? 0u : ROUNDS));
    return is_approximate || mode->rounding >= 0;
}

void emit_rcp(struct emit *e)
{
    enum ptx_type type;
    struct float_mode mode;
    if (!take_unary_mode(e, &type, &mode)) {
        if (type == PTX_F64 && emit_take(e, "ftz"))
            emit_out(e, type, "ptx_rcp_ftz_f64(%s)", emit_in(e, 1, type));
        else
            emit_refuse(e, "type or rounding");
        return;
    }
    const char *a = float_in(e, 1, type, mode), *one = type == PTX_F32 ? "1.0f" : "1.0";
    if (mode.rounding > 0)
        float_out(
            e, type, mode,
            emit_format(e, "ptx_div_%s_%s(%s, %s)", type == PTX_F32 ? "f32" : "f64", roundings[mode.rounding], one, a));
    else
        float_out(e, type, mode, emit_format(e, "%s / %s", one, a));
}

void emit_sqrt(struct emit *e)
{
    enum ptx_type type;
    struct float_mode mode;
    if (!take_unary_mode(e, &type, &mode)) {
        emit_refuse(e, "type or rounding");
        return;
    }
    const char *a = float_in(e, 1, type, mode);
    if (mode.rounding > 0)
        float_out(e, type, mode,
                  emit_format(e, "ptx_sqrt_%s_%s(%s)", type == PTX_F32 ? "f32" : "f64", roundings[mode.rounding], a));
    else
        float_out(e, type, mode, emit_format(e, "__builtin_sqrt%s(%s)", type == PTX_F32 ? "f" : "", a));
}

/* ex2, lg2, sin, cos, tanh, rsqrt */
void emit_approximation(struct emit *e)
{
    const char *name = e->insn->opcode;
    enum ptx_type type = emit_take_type(e);
    if (!emit_take(e, "approx"))
        emit_refuse(e, "not .approx");
    bool is_tanh = strcmp(name, "tanh") == 0, is_exponential = strcmp(name, "ex2") == 0;
    bool is_half = type == PTX_F16 || type == PTX_F16X2;
    struct float_mode mode = take_mode(e, is_tanh || is_half ? 0 : FLUSHES);
    if (type == PTX_F64 && strcmp(name, "rsqrt") == 0)
        emit_out(e, type, mode.ftz ? "ptx_rsqrt_ftz_f64(%s)" : "ptx_rsqrt_f64(%s)", emit_in(e, 1, type));
    else if (is_small_float(type) && (is_exponential || is_tanh) && (is_half || is_tanh || mode.ftz))
        small_out(e, type, mode, name, 1);
    else if (type != PTX_F32)
        emit_refuse(e, "type");
    else
        float_out(e, type, mode, emit_format(e, "ptx_%s_f32(%s)", name, float_in(e, 1, type, mode)));
}

void emit_abs(struct emit *e)
{
    enum ptx_type type = take_number(e);
    bool flushes = type == PTX_F32 || type == PTX_F16 || type == PTX_F16X2;
    struct float_mode mode = take_mode(e, flushes ? FLUSHES : 0);
    const char *a = float_in(e, 1, type, mode);
    if (is_small_float(type))
        small_out(e, type, mode, "abs", 1);
    else if (ptx_type_is_float(type))
        float_out(e, type, mode, emit_format(e, type == PTX_F32 ? "ptx_abs_f32(%s)" : "ptx_abs_f64(%s)", a));
    else if (!ptx_type_is_signed(type))
        emit_refuse(e, "type");
    else
        emit_out(e, type, "%s < 0 ? 0 - %s : %s", a, a, a);
}

void emit_neg(struct emit *e)
{
    enum ptx_type type = take_number(e);
    bool flushes = type == PTX_F32 || type == PTX_F16 || type == PTX_F16X2;
    struct float_mode mode = take_mode(e, flushes ? FLUSHES : 0);
    const char *a = float_in(e, 1, type, mode);
    if (is_small_float(type))
        small_out(e, type, mode, "neg", 1);
    else if (ptx_type_is_float(type))
        float_out(e, type, mode, emit_format(e, type == PTX_F32 ? "ptx_neg_f32(%s)" : "ptx_neg_f64(%s)", a));
    else if (!ptx_type_is_signed(type))
        emit_refuse(e, "type");
    else
        emit_out(e, type, "0 - %s", a);
}

/* min, max of floats: {.ftz}{.NaN}{.xorsign.abs}, and three operands for f32. */
static void float_minmax(struct emit *e, enum ptx_type type)
{
    bool keeps_nan = type != PTX_F64 && emit_take(e, "NaN");
    bool takes_signs = type != PTX_F64 && emit_take(e, "xorsign");
    bool flushes = type == PTX_F32 || type == PTX_F16 || type == PTX_F16X2;
    struct float_mode mode = take_mode(e, flushes ? FLUSHES : 0);
    const char *function =
        emit_format(e, "%s%s%s", takes_signs ? "xorsign_" : "", e->insn->opcode, keeps_nan ? "_nan" : "");
    bool has_three = type == PTX_F32 && e->insn->operand_count == 4 && !takes_signs;
    if (!emit_expect_operands(e, 3, has_three ? 4 : 3))
        return;
    if (takes_signs && !emit_take(e, "abs"))
        emit_refuse(e, "xorsign without abs");
    if (is_small_float(type)) {
        small_out(e, type, mode, function, 2);
        return;
    }
    const char *a = float_in(e, 1, type, mode), *b = float_in(e, 2, type, mode);
    const char *name = type == PTX_F32 ? "f32" : "f64";
    const char *value = emit_format(e, "ptx_%s_%s(%s, %s)", function, name, a, b);
    if (has_three)
        value = emit_format(e, "ptx_%s_%s(%s, %s)", function, name, value, float_in(e, 3, type, mode));
    float_out(e, type, mode, value);
}

void emit_minmax(struct emit *e)
{
    if (emit_int_pair(e))
        return;
    enum ptx_type type = take_number(e);
    if (is_number_float(type))
        float_minmax(e, type);
    else
        emit_int_minmax(e, type);
}

void emit_copysign(struct emit *e)
{
    enum ptx_type type = emit_take_type(e);
    if (!ptx_type_is_float(type))
        emit_refuse(e, "type");
    emit_out(e, type, "ptx_copysign_%s(%s, %s)", type == PTX_F32 ? "f32" : "f64", emit_in(e, 1, type),
             emit_in(e, 2, type));
}

void emit_testp(struct emit *e)
{
    static const char *const tests[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal", NULL};
    int test = emit_take_of(e, tests);
    enum ptx_type type = emit_take_type(e);
    if (test < 0 || !ptx_type_is_float(type))
        emit_refuse(e, "type or test");
    else
        emit_out(e, PTX_PRED, "ptx_testp_%s_%s(%s)", tests[test], type == PTX_F32 ? "f32" : "f64", emit_in(e, 1, type));
}
