#include "tests/device/ptx_shape.h"

#include <string.h>

static const struct ptx_shape varying = {PTX_VARYING, 0, UINT32_MAX};

bool ptx_insn_has_modifier(const struct ptx_insn *insn, const char *modifier)
{
    for (uint32_t i = 0; i < insn->modifier_count; i++)
        if (strcmp(insn->modifiers[i], modifier) == 0)
            return true;
    return false;
}

static struct ptx_shape special_shape(const char *name)
{
    static const char *const uniform[] = {
        "%tid.y",   "%tid.z",   "%ntid.x",   "%ntid.y",   "%ntid.z",   "%ctaid.x",
        "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
    };
    if (strcmp(name, "%tid.x") == 0)
        return (struct ptx_shape){PTX_AFFINE, 1, 0};
    for (size_t i = 0; i < sizeof uniform / sizeof *uniform; i++)
        if (strcmp(name, uniform[i]) == 0)
            return (struct ptx_shape){PTX_UNIFORM, 0, 0};
    return varying;
}

struct ptx_shape ptx_operand_shape(const struct ptx_shape *shapes, const struct ptx_operand *operand)
{
    switch (operand->kind) {
    case PTX_OP_REG:
        return shapes[operand->reg];
    case PTX_OP_INT:
    case PTX_OP_F32:
    case PTX_OP_F64:
        return (struct ptx_shape){PTX_UNIFORM, 0, 0};
    case PTX_OP_SPECIAL:
        return special_shape(operand->name);
    case PTX_OP_VARIABLE:
        /* Addresses of what all threads share. */
        return operand->variable->space == PTX_GLOBAL || operand->variable->space == PTX_CONST ||
                       operand->variable->space == PTX_SHARED
                   ? (struct ptx_shape){PTX_UNIFORM, 0, 0}
                   : varying;
    default:
        return varying;
    }
}

struct finder {
    const struct ptx_function *function;
    struct ptx_shape *shapes;
    const struct ptx_insn *insn;
    bool *refuted; /* results of lane that do not keep the shape they start with */
};

static struct ptx_shape shape_at(const struct finder *f, uint32_t index)
{
    return index < f->insn->operand_count ? ptx_operand_shape(f->shapes, &f->insn->operands[index]) : varying;
}

/* The constant operand as a signed number of the instruction's width. */
static bool constant_at(const struct finder *f, uint32_t index, uint32_t bits, int64_t *value)
{
    if (index >= f->insn->operand_count)
        return false;
    const struct ptx_operand *operand = &f->insn->operands[index];
    if (operand->kind != PTX_OP_INT && operand->kind != PTX_OP_F32 && operand->kind != PTX_OP_F64)
        return false;
    *value = bits == 32 ? (int32_t)operand->bits : (int64_t)operand->bits;
    return true;
}

static struct ptx_shape affine(int64_t step)
{
    bool is_plain = step > -((int64_t)1 << 40) && step < (int64_t)1 << 40;
    return step == 0  ? (struct ptx_shape){PTX_UNIFORM, 0, 0}
           : is_plain ? (struct ptx_shape){PTX_AFFINE, step, 0}
                      : varying;
}

/* a + sign * b */
static struct ptx_shape sum(struct ptx_shape a, struct ptx_shape b, int64_t sign)
{
    if (a.kind == PTX_VARYING || b.kind == PTX_VARYING)
        return varying;
    return affine(a.step + sign * b.step);
}

/* operands[a] * operands[b], of which one may be affine if the other is a constant */
static struct ptx_shape product(const struct finder *f, uint32_t a, uint32_t b, uint32_t bits)
{
    struct ptx_shape left = shape_at(f, a), right = shape_at(f, b);
    int64_t constant;
    if (left.kind == PTX_UNIFORM && right.kind == PTX_UNIFORM)
        return left;
    if (left.kind == PTX_AFFINE && constant_at(f, b, bits, &constant) && constant > -65536 && constant < 65536)
        return affine(left.step * constant);
    if (right.kind == PTX_AFFINE && constant_at(f, a, bits, &constant) && constant > -65536 && constant < 65536)
        return affine(right.step * constant);
    return varying;
}

static enum ptx_type first_type(const struct ptx_insn *insn, uint32_t skip)
{
    for (uint32_t i = 0; i < insn->modifier_count; i++) {
        enum ptx_type type = ptx_type_named(insn->modifiers[i]);
        if (type != PTX_NONE && skip-- == 0)
            return type;
    }
    return PTX_NONE;
}

static bool is_word(enum ptx_type type)
{
    return type == PTX_B32 || type == PTX_B64 || type == PTX_U32 || type == PTX_U64 || type == PTX_S32 ||
           type == PTX_S64;
}

/* Operations that are linear in their operands. */
static struct ptx_shape linear_shape(const struct finder *f, enum ptx_type type)
{
    const char *op = f->insn->opcode;
    uint32_t bits = ptx_type_bits(type);
    bool is_wide = ptx_insn_has_modifier(f->insn, "wide"), is_low = ptx_insn_has_modifier(f->insn, "lo");
    int64_t constant;
    if (!is_word(type) || ptx_insn_has_modifier(f->insn, "sat") || ptx_insn_has_modifier(f->insn, "cc"))
        return varying;
    if (strcmp(op, "mov") == 0)
        return shape_at(f, 1);
    if (strcmp(op, "cvta") == 0)
        return shape_at(f, 1);
    if (strcmp(op, "add") == 0)
        return sum(shape_at(f, 1), shape_at(f, 2), 1);
    if (strcmp(op, "sub") == 0)
        return sum(shape_at(f, 1), shape_at(f, 2), -1);
    if (strcmp(op, "shl") == 0 && constant_at(f, 2, 32, &constant) && constant >= 0 && constant < 20 &&
        shape_at(f, 1).kind == PTX_AFFINE)
        return affine(shape_at(f, 1).step * ((int64_t)1 << constant));
    if (strcmp(op, "mul") == 0 && (is_wide || is_low))
        return product(f, 1, 2, bits);
    if (strcmp(op, "mad") == 0 && (is_wide || is_low))
        return sum(product(f, 1, 2, bits), shape_at(f, 3), 1);
    enum ptx_type from = first_type(f->insn, 1);
    if (strcmp(op, "cvt") == 0 && is_word(from) && (ptx_type_bits(from) != 64 || bits == 64))
        return shape_at(f, 1);
    return varying;
}

/* lane d, a, start: what a thread carries round a loop (ptx_yield.c). It varies as at the start, if what comes out of
 * the loop does: that is supposed here, and looked at when all shapes are known. */
static bool is_lane(const struct ptx_insn *insn)
{
    return strcmp(insn->opcode, "lane") == 0;
}

static bool is_pure(const struct ptx_insn *insn)
{
    static const char *const pure[] = {
        "abs", "add", "and", "bfe", "cvt", "cvta", "div",  "fma", "mad", "max", "min", "mov",
        "mul", "neg", "not", "or",  "rem", "selp", "setp", "shl", "shr", "sub", "xor",
    };
    for (size_t i = 0; i < sizeof pure / sizeof *pure; i++)
        if (strcmp(insn->opcode, pure[i]) == 0)
            return !ptx_insn_has_modifier(insn, "cc");
    return false;
}

static bool is_parameter_load(const struct ptx_insn *insn)
{
    return strcmp(insn->opcode, "ld") == 0 && ptx_insn_has_modifier(insn, "param") && insn->operand_count == 2 &&
           insn->operands[1].kind == PTX_OP_ADDRESS && insn->operands[1].elements->kind == PTX_OP_VARIABLE;
}

static bool is_entry_parameter(const struct ptx_function *function, const struct ptx_variable *variable)
{
    for (const struct ptx_variable *v = function->params; v; v = v->next)
        if (v == variable)
            return function->is_entry;
    return false;
}

/* a CMP b for a 32-bit affine a and a uniform b, or the other way round */
static bool is_cut_comparison(const struct finder *f)
{
    static const char *const orders[] = {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"};
    enum ptx_type type = first_type(f->insn, 0);
    struct ptx_shape a = shape_at(f, 1), b = shape_at(f, 2);
    bool has_order = false;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        has_order |= ptx_insn_has_modifier(f->insn, orders[i]);
    return strcmp(f->insn->opcode, "setp") == 0 && has_order && is_word(type) && ptx_type_bits(type) == 32 &&
           a.kind + b.kind == 3 && (f->insn->operand_count == 3 || shape_at(f, 3).kind == PTX_UNIFORM);
}

static struct ptx_shape insn_shape(const struct finder *f)
{
    const struct ptx_insn *insn = f->insn;
    if (is_parameter_load(insn))
        return is_entry_parameter(f->function, insn->operands[1].elements->variable)
                   ? (struct ptx_shape){PTX_UNIFORM, 0, 0}
                   : varying;
    if (is_lane(insn))
        return f->refuted[insn->operands[0].reg] ? varying : shape_at(f, 2);
    if (!is_pure(insn))
        return varying;
    bool all_uniform = true;
    for (uint32_t i = 1; i < insn->operand_count; i++)
        all_uniform &= shape_at(f, i).kind == PTX_UNIFORM;
    if (all_uniform || is_cut_comparison(f))
        return (struct ptx_shape){PTX_UNIFORM, 0, 0};
    return linear_shape(f, first_type(insn, 0));
}

static void count_writes(void *context, uint32_t reg, bool written)
{
    uint32_t *counts = context;
    if (written)
        counts[reg]++;
}

static void find_once(struct finder *f, const uint32_t *writes)
{
    const struct ptx_function *function = f->function;
    for (uint32_t i = 0; i <= function->reg_count; i++)
        f->shapes[i] = varying;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        f->insn = &function->insns[i];
        bool is_single = f->insn->guard == PTX_NO_REG && f->insn->operand_count && ptx_insn_outputs(f->insn) == 1 &&
                         f->insn->operands[0].kind == PTX_OP_REG && writes[f->insn->operands[0].reg] == 1;
        if (!is_single)
            continue;
        struct ptx_shape shape = insn_shape(f);
        if (shape.kind == PTX_AFFINE && function->regs[f->insn->operands[0].reg].is_float)
            shape = varying;
        shape.insn = shape.kind == PTX_VARYING ? UINT32_MAX : i;
        f->shapes[f->insn->operands[0].reg] = shape;
    }
}

/* Every value that is moved into what a lane carries must have the lane's shape. True if one had not. */
static bool refute_lanes(struct finder *f)
{
    const struct ptx_function *function = f->function;
    bool any = false;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        const struct ptx_insn *lane = &function->insns[i];
        if (!is_lane(lane) || f->refuted[lane->operands[0].reg])
            continue;
        struct ptx_shape supposed = f->shapes[lane->operands[0].reg];
        for (uint32_t k = 0; k < function->insn_count && supposed.kind != PTX_VARYING; k++) {
            const struct ptx_insn *move = &function->insns[k];
            if (strcmp(move->opcode, "mov") != 0 || move->operands[0].kind != PTX_OP_REG ||
                move->operands[0].reg != lane->operands[1].reg)
                continue;
            struct ptx_shape moved = ptx_operand_shape(f->shapes, &move->operands[1]);
            if (moved.kind == supposed.kind && moved.step == supposed.step)
                continue;
            f->refuted[lane->operands[0].reg] = any = true;
            break;
        }
    }
    return any;
}

struct ptx_shape *ptx_find_shapes(struct ptx_arena *arena, const struct ptx_function *function)
{
    uint32_t count = function->reg_count + 1;
    uint32_t *writes = arena_take(arena, count * sizeof *writes);
    struct finder f = {function, arena_take(arena, count * sizeof *f.shapes), NULL, arena_take(arena, count)};
    for (uint32_t i = 0; i < function->insn_count; i++)
        ptx_visit_registers(&function->insns[i], count_writes, writes);
    do
        find_once(&f, writes);
    while (refute_lanes(&f));
    return f.shapes;
}
