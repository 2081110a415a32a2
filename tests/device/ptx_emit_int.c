/* Integer arithmetic, logic, shifts, bit fields. */
#include "tests/device/ptx_emit.h"

#include <string.h>

/* What only advises the hardware: whatever it says changes no result. */
void emit_nothing(struct emit *e)
{
    e->used_modifiers = e->used_operands = ~0u;
}

/* prefetch{.space}.level [a]; discard and applypriority [a], bytes */
void emit_advice(struct emit *e)
{
    uint32_t count = *e->insn->opcode == 'p' ? 1 : 2;
    static const char *const levels[] = {"L1", "L2", "L2::evict_normal", "L2::evict_last", NULL};
    enum ptx_space space = emit_take_space(e);
    if (emit_take_of(e, levels) < 0)
        emit_refuse(e, "this form");
    if (!emit_expect_operands(e, count, count))
        return;
    emit_address(e, &e->insn->operands[0], space);
    if (count > 1)
        emit_in(e, 1, PTX_U32);
}

/* nanosleep.u32 t, setmaxnreg.inc.sync.aligned.u32 n */
void emit_advised_number(struct emit *e)
{
    bool sleeps = *e->insn->opcode == 'n';
    if (!sleeps && !((emit_take(e, "inc") || emit_take(e, "dec")) && emit_take(e, "sync") && emit_take(e, "aligned")))
        emit_refuse(e, "this form");
    if (emit_take_type(e) != PTX_U32)
        emit_refuse(e, "type");
    if (emit_expect_operands(e, 1, 1))
        emit_in(e, 0, PTX_U32);
}

static const char *type_name(enum ptx_type type)
{
    static const char *names[] = {
#define T(name, spelling, bits, c) spelling,
        PTX_TYPES(T)
#undef T
    };
    return names[type];
}

static enum ptx_type take_integer(struct emit *e)
{
    enum ptx_type type = emit_take_type(e);
    bool is_one = (type >= PTX_B16 && type <= PTX_B64) || (type >= PTX_U16 && type <= PTX_U64) ||
                  (type >= PTX_S16 && type <= PTX_S64);
    if (!is_one)
        emit_refuse(e, "type");
    return type;
}

static bool is_bits(enum ptx_type type)
{
    return type >= PTX_B8 && type <= PTX_B128;
}

static enum ptx_type widened(enum ptx_type type)
{
    switch (type) {
    case PTX_U16:
        return PTX_U32;
    case PTX_S16:
        return PTX_S32;
    case PTX_U32:
        return PTX_U64;
    case PTX_S32:
        return PTX_S64;
    default:
        return PTX_NONE;
    }
}

/* add and sub; with .cc they leave the carry in cc. */
void emit_int_add(struct emit *e, enum ptx_type type)
{
    bool is_add = strcmp(e->insn->opcode, "add") == 0;
    const char *a = emit_in(e, 1, type), *b = emit_in(e, 2, type);
    if (emit_take(e, "cc")) {
        uint32_t bits = ptx_type_bits(type);
        if (bits < 32)
            emit_refuse(e, "type");
        emit_out(e, type, "ptx_%sc_u%u(%s, %s, 0, &cc)", is_add ? "add" : "sub", bits, a, b);
    } else if (emit_take(e, "sat")) {
        if (type != PTX_S32)
            emit_refuse(e, "type");
        emit_out(e, type, "ptx_%s_sat_s32(%s, %s)", is_add ? "add" : "sub", a, b);
    } else {
        emit_out(e, type, "%s %c %s", a, is_add ? '+' : '-', b);
    }
}

void emit_carry(struct emit *e)
{
    bool is_add = strcmp(e->insn->opcode, "addc") == 0;
    bool leaves_carry = emit_take(e, "cc");
    enum ptx_type type = take_integer(e);
    if (type == PTX_U16 || type == PTX_S16 || is_bits(type))
        emit_refuse(e, "type");
    emit_out(e, type, "ptx_%s_u%u(%s, %s, cc, %s)", is_add ? "addc" : "subc", ptx_type_bits(type), emit_in(e, 1, type),
             emit_in(e, 2, type), leaves_carry ? "&cc" : "&(uint32_t){0}");
}

static const char *product(struct emit *e, enum ptx_type type, int part)
{
    const char *a = emit_in(e, 1, type), *b = emit_in(e, 2, type);
    if (part == 0)
        return emit_format(e, "(%s)(%s * (%s)%s)", ptx_type_c(type), a,
                           ptx_type_bits(type) == 16 ? "uint32_t" : ptx_type_c(type), b);
    if (part == 1)
        return emit_format(e, "ptx_mulhi_%s(%s, %s)", type_name(type), a, b);
    if (widened(type) == PTX_NONE) {
        emit_refuse(e, "type");
        return "0";
    }
    return emit_format(e, "((%s)%s * %s)", ptx_type_c(widened(type)), a, b);
}

static const char *const parts[] = {"lo", "hi", "wide", NULL};

void emit_int_mul(struct emit *e, enum ptx_type type)
{
    int part = emit_take_of(e, parts);
    if (part < 0) {
        emit_refuse(e, "neither .lo, .hi nor .wide");
        return;
    }
    if (part == 1 && type >= PTX_B8 && type <= PTX_B64)
        emit_refuse(e, "type");
    emit_out(e, part == 2 ? widened(type) : type, "%s", product(e, type, part));
}

void emit_int_mad(struct emit *e, enum ptx_type type)
{
    int part = emit_take_of(e, parts);
    enum ptx_type result = part == 2 ? widened(type) : type;
    if (part < 0) {
        emit_refuse(e, "neither .lo, .hi nor .wide");
        return;
    }
    const char *multiplied = product(e, type, part);
    if (e->failed)
        return;
    const char *added = emit_in(e, 3, result);
    if (emit_take(e, "cc")) {
        if (ptx_type_bits(type) < 32 || part == 2)
            emit_refuse(e, "this form");
        emit_out(e, result, "ptx_addc_u%u(%s, %s, 0, &cc)", ptx_type_bits(result), multiplied, added);
    } else if (emit_take(e, "sat")) {
        if (type != PTX_S32 || part != 1)
            emit_refuse(e, "saturation");
        emit_out(e, result, "ptx_add_sat_s32(%s, %s)", multiplied, added);
    } else {
        emit_out(e, result, "%s + %s", multiplied, added);
    }
}

void emit_carry_mad(struct emit *e)
{
    bool leaves_carry = emit_take(e, "cc");
    int part = emit_take_of(e, parts);
    enum ptx_type type = take_integer(e);
    if ((part != 0 && part != 1) || type == PTX_U16 || type == PTX_S16 || is_bits(type))
        emit_refuse(e, "part or type");
    else
        emit_out(e, type, "ptx_addc_u%u(%s, %s, cc, %s)", ptx_type_bits(type), product(e, type, part),
                 emit_in(e, 3, type), leaves_carry ? "&cc" : "&(uint32_t){0}");
}

void emit_mul24(struct emit *e)
{
    bool is_high = emit_take(e, "hi"), adds = strcmp(e->insn->opcode, "mad24") == 0;
    if (!is_high && !emit_take(e, "lo"))
        emit_refuse(e, "neither .lo nor .hi");
    enum ptx_type type = take_integer(e);
    if (type != PTX_U32 && type != PTX_S32)
        emit_refuse(e, "type");
    const char *multiplied = emit_format(e, "ptx_mul24_%s(%s, %s, %d)", type_name(type), emit_in(e, 1, type),
                                         emit_in(e, 2, type), is_high ? 16 : 0);
    if (adds && is_high && type == PTX_S32 && emit_take(e, "sat"))
        emit_out(e, type, "ptx_add_sat_s32(%s, %s)", multiplied, emit_in(e, 3, type));
    else
        emit_out(e, type, adds ? "%s + %s" : "%s", multiplied, adds ? emit_in(e, 3, type) : "");
}

void emit_int_div(struct emit *e, enum ptx_type type)
{
    emit_out(e, type, "ptx_div_%s(%s, %s)", type_name(type), emit_in(e, 1, type), emit_in(e, 2, type));
}

void emit_rem(struct emit *e)
{
    enum ptx_type type = take_integer(e);
    if (type >= PTX_B8 && type <= PTX_B64)
        emit_refuse(e, "type");
    emit_out(e, type, "ptx_rem_%s(%s, %s)", type_name(type), emit_in(e, 1, type), emit_in(e, 2, type));
}

void emit_int_minmax(struct emit *e, enum ptx_type type)
{
    const char *a = emit_in(e, 1, type), *b = emit_in(e, 2, type);
    const char *order = strcmp(e->insn->opcode, "min") == 0 ? "<" : ">";
    if (emit_take(e, "relu")) {
        if (type != PTX_S32)
            emit_refuse(e, "type");
        emit_out(e, type, "(%s %s %s ? %s : %s) > 0 ? (%s %s %s ? %s : %s) : 0", a, order, b, a, b, a, order, b, a, b);
        return;
    }
    emit_out(e, type, "%s %s %s ? %s : %s", a, order, b, a, b);
}

void emit_sad(struct emit *e)
{
    enum ptx_type type = take_integer(e);
    if (is_bits(type))
        emit_refuse(e, "type");
    const char *a = emit_in(e, 1, type), *b = emit_in(e, 2, type);
    emit_out(e, type, "%s + (%s < %s ? %s - %s : %s - %s)", emit_in(e, 3, type), a, b, b, a, a, b);
}

void emit_logic(struct emit *e)
{
    enum ptx_type type = emit_take_type(e);
    char sign = *e->insn->opcode == 'a' ? '&' : *e->insn->opcode == 'o' ? '|' : '^';
    if (type != PTX_PRED && (type < PTX_B16 || type > PTX_B64))
        emit_refuse(e, "type");
    emit_out(e, type, "%s %c %s", emit_in(e, 1, type), sign, emit_in(e, 2, type));
}

void emit_not(struct emit *e)
{
    enum ptx_type type = emit_take_type(e);
    if (type != PTX_PRED && (type < PTX_B16 || type > PTX_B64))
        emit_refuse(e, "type");
    emit_out(e, type, type == PTX_PRED ? "!(%s)" : "~%s", emit_in(e, 1, type));
}

void emit_cnot(struct emit *e)
{
    enum ptx_type type = take_integer(e);
    if (!is_bits(type))
        emit_refuse(e, "type");
    emit_out(e, type, "%s == 0", emit_in(e, 1, type));
}

void emit_shift(struct emit *e)
{
    enum ptx_type type = take_integer(e);
    bool is_left = strcmp(e->insn->opcode, "shl") == 0;
    if (is_left && !is_bits(type))
        emit_refuse(e, "type");
    uint32_t bits = ptx_type_bits(type);
    char kind = is_left ? 'b' : ptx_type_is_signed(type) ? 's' : 'u';
    const char *count = emit_in(e, 2, PTX_U32);
    uint64_t constant;
    if (e->insn->operand_count == 3 && emit_constant(&e->insn->operands[2], &constant) && (uint32_t)constant < bits)
        emit_out(e, type, "%s %s %u", emit_in(e, 1, type), is_left ? "<<" : ">>", (uint32_t)constant);
    else
        emit_out(e, type, "ptx_%s_%c%u(%s, %s)", is_left ? "shl" : "shr", kind, bits, emit_in(e, 1, type), count);
}

void emit_shf(struct emit *e)
{
    bool is_left = emit_take(e, "l");
    if (!is_left && !emit_take(e, "r"))
        emit_refuse(e, "neither .l nor .r");
    bool clamps = emit_take(e, "clamp");
    if (!clamps && !emit_take(e, "wrap"))
        emit_refuse(e, "neither .clamp nor .wrap");
    if (emit_take_type(e) != PTX_B32)
        emit_refuse(e, "type");
    const char *count = emit_in(e, 3, PTX_U32);
    const char *bounded = emit_format(e, clamps ? "(%s > 32 ? 32 : %s)" : "(%s & 31)", count, count);
    emit_out(e, PTX_B32, "ptx_shf_%c(%s, %s, %s)", is_left ? 'l' : 'r', emit_in(e, 1, PTX_B32), emit_in(e, 2, PTX_B32),
             bounded);
}

/* popc, clz, brev */
void emit_bits(struct emit *e)
{
    enum ptx_type type = take_integer(e);
    uint32_t bits = ptx_type_bits(type);
    const char *a = emit_in(e, 1, type);
    if (type != PTX_B32 && type != PTX_B64)
        emit_refuse(e, "type");
    if (*e->insn->opcode == 'p')
        emit_out(e, PTX_U32, "__builtin_popcountll(%s)", a);
    else if (*e->insn->opcode == 'c')
        emit_out(e, PTX_U32, "ptx_clz_b%u(%s)", bits, a);
    else
        emit_out(e, type, "ptx_brev_b%u(%s)", bits, a);
}

void emit_bfind(struct emit *e)
{
    bool is_shift = emit_take(e, "shiftamt");
    enum ptx_type type = take_integer(e);
    if (type >= PTX_B8 && type <= PTX_B64)
        emit_refuse(e, "type");
    const char *found = emit_format(e, "ptx_bfind_%s(%s)", type_name(type), emit_in(e, 1, type));
    if (is_shift)
        emit_out(e, PTX_U32, "%s == ~0u ? ~0u : %u - %s", found, ptx_type_bits(type) - 1, found);
    else
        emit_out(e, PTX_U32, "%s", found);
}

void emit_bfe(struct emit *e)
{
    enum ptx_type type = take_integer(e);
    if (type == PTX_U16 || type == PTX_S16 || (type >= PTX_B8 && type <= PTX_B64))
        emit_refuse(e, "type");
    emit_out(e, type, "ptx_bfe_%s(%s, %s, %s)", type_name(type), emit_in(e, 1, type), emit_in(e, 2, PTX_U32),
             emit_in(e, 3, PTX_U32));
}

void emit_bfi(struct emit *e)
{
    enum ptx_type type = take_integer(e);
    if (type != PTX_B32 && type != PTX_B64)
        emit_refuse(e, "type");
    emit_out(e, type, "ptx_bfi_%s(%s, %s, %s, %s)", type_name(type), emit_in(e, 1, type), emit_in(e, 2, type),
             emit_in(e, 3, PTX_U32), emit_in(e, 4, PTX_U32));
}

static bool take_clamp(struct emit *e)
{
    bool clamps = emit_take(e, "clamp");
    if (!clamps && !emit_take(e, "wrap"))
        emit_refuse(e, "neither .clamp nor .wrap");
    return clamps;
}

void emit_bmsk(struct emit *e)
{
    bool clamps = take_clamp(e);
    if (emit_take_type(e) != PTX_B32)
        emit_refuse(e, "type");
    emit_out(e, PTX_B32, "ptx_bmsk(%s, %s, %d)", emit_in(e, 1, PTX_U32), emit_in(e, 2, PTX_U32), clamps);
}

void emit_szext(struct emit *e)
{
    bool clamps = take_clamp(e);
    enum ptx_type type = take_integer(e);
    if (type != PTX_U32 && type != PTX_S32)
        emit_refuse(e, "type");
    emit_out(e, type, "ptx_szext_%s(%s, %s, %d)", type_name(type), emit_in(e, 1, type), emit_in(e, 2, PTX_U32), clamps);
}

void emit_fns(struct emit *e)
{
    if (emit_take_type(e) != PTX_B32)
        emit_refuse(e, "type");
    emit_out(e, PTX_B32, "ptx_fns(%s, %s, %s)", emit_in(e, 1, PTX_B32), emit_in(e, 2, PTX_U32), emit_in(e, 3, PTX_S32));
}

/* lop3.OP.b32 d|p, a, b, c, table, q: p is whether d is not 0, joined with q. */
static void emit_joined_lop3(struct emit *e, const char *value, char join)
{
    const struct ptx_operand *result = &e->insn->operands[0];
    emit_use_operand(e, result);
    if (result->kind != PTX_OP_PAIR) {
        emit_refuse(e, "the result must be a pair");
        return;
    }
    emit_c(e, "{ const uint32_t d_ = %s; const _Bool p_ = (d_ != 0) %c %s;\n", value, join, emit_in(e, 5, PTX_PRED));
    emit_set(e, &result->elements[0], PTX_B32, "d_");
    emit_set(e, &result->elements[1], PTX_PRED, "p_");
    emit_c(e, "}\n");
}

void emit_lop3(struct emit *e)
{
    if (emit_take_type(e) != PTX_B32)
        emit_refuse(e, "type");
    uint64_t table;
    static const char *const joins[] = {"and", "or", "xor", NULL};
    int join = emit_take_of(e, joins);
    if (!emit_expect_operands(e, join < 0 ? 5 : 6, join < 0 ? 5 : 6) || !emit_constant(&e->insn->operands[4], &table)) {
        emit_refuse(e, "the table must be a constant");
        return;
    }
    emit_use_operand(e, &e->insn->operands[4]);
    const char *value = emit_format(e, "ptx_lop3(%s, %s, %s, %u)", emit_in(e, 1, PTX_B32), emit_in(e, 2, PTX_B32),
                                    emit_in(e, 3, PTX_B32), (uint32_t)table & 255);
    if (join < 0)
        emit_out(e, PTX_B32, "%s", value);
    else
        emit_joined_lop3(e, value, "&|^"[join]);
}

void emit_prmt(struct emit *e)
{
    static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16", NULL};
    static const char *const tables[] = {
        "0x3210, 0x4321, 0x5432, 0x6543", "0x5670, 0x6701, 0x7012, 0x0123", "0x0000, 0x1111, 0x2222, 0x3333",
        "0x3210, 0x3211, 0x3222, 0x3333", "0x0000, 0x1110, 0x2210, 0x3210", "0x1010, 0x3232, 0x1010, 0x3232",
    };
    if (emit_take_type(e) != PTX_B32)
        emit_refuse(e, "type");
    int mode = emit_take_of(e, modes);
    const char *a = emit_in(e, 1, PTX_B32), *b = emit_in(e, 2, PTX_B32), *c = emit_in(e, 3, PTX_B32);
    if (mode < 0)
        emit_out(e, PTX_B32, "ptx_prmt(%s, %s, %s)", a, b, c);
    else
        emit_out(e, PTX_B32, "ptx_prmt_mode(%s, %s, %s, (const uint16_t[]){ %s })", a, b, c, tables[mode]);
}

/* u32 or s32 */
static enum ptx_type take_word(struct emit *e)
{
    enum ptx_type type = take_integer(e);
    if (type != PTX_U32 && type != PTX_S32)
        emit_refuse(e, "type");
    return type;
}

void emit_dp4a(struct emit *e)
{
    enum ptx_type a = take_word(e), b = take_word(e);
    emit_out(e, PTX_U32, "ptx_dp4a(%s, %s, %s, %d, %d)", emit_in(e, 1, PTX_B32), emit_in(e, 2, PTX_B32),
             emit_in(e, 3, PTX_B32), a == PTX_S32, b == PTX_S32);
}

/* Byte by byte; with .add the sum of all four. */
void emit_vabsdiff4(struct emit *e)
{
    bool saturates = emit_take(e, "sat"), adds = emit_take(e, "add");
    enum ptx_type result = take_word(e), a = take_word(e), b = take_word(e);
    if (saturates || !emit_expect_operands(e, 4, 4)) {
        emit_refuse(e, "this form");
    } else {
        emit_use_operand(e, &e->insn->operands[3]);
        emit_out(e, result, "ptx_vabsdiff4(%s, %s, %s, %d, %d, %d)", emit_in(e, 1, PTX_B32), emit_in(e, 2, PTX_B32),
                 adds ? emit_in(e, 3, PTX_B32) : "0", a == PTX_S32, b == PTX_S32, adds);
    }
}

void emit_dp2a(struct emit *e)
{
    bool is_high = emit_take(e, "hi");
    if (!is_high && !emit_take(e, "lo"))
        emit_refuse(e, "neither .lo nor .hi");
    enum ptx_type a = take_word(e), b = take_word(e);
    emit_out(e, PTX_U32, "ptx_dp2a(%s, %s, %s, %d, %d, %d)", emit_in(e, 1, PTX_B32), emit_in(e, 2, PTX_B32),
             emit_in(e, 3, PTX_B32), a == PTX_S32, b == PTX_S32, is_high);
}
