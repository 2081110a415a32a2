/* What a region computes once per row of threads: uniform registers, the first values of affine ones, and how many
 * threads the row may have before one of them wraps or a comparison of them changes its answer. */
#include "tests/device/ptx_emit.h"

#include <string.h>

bool emit_is_hoisted(const struct emit *e, uint32_t reg)
{
    return e->shapes && e->shapes[reg].kind != PTX_VARYING;
}

static void need_register(void *context, uint32_t reg, bool written)
{
    uint8_t *needed = context;
    if (!written)
        needed[reg] = 1;
}

/* Marks what the used ones are computed from: an instruction stands behind those that set its operands. */
static uint8_t *needed_registers(struct emit *e, const uint8_t *used)
{
    const struct ptx_function *f = e->function;
    uint8_t *needed = arena_take(e->arena, f->reg_count + 1);
    memcpy(needed, used, f->reg_count);
    for (uint32_t i = f->insn_count; i-- > 0;) {
        const struct ptx_insn *insn = &f->insns[i];
        if (!insn->operand_count || insn->operands[0].kind != PTX_OP_REG)
            continue;
        uint32_t reg = insn->operands[0].reg;
        if (emit_is_hoisted(e, reg) && e->shapes[reg].insn == i && needed[reg])
            ptx_visit_registers(insn, need_register, needed);
    }
    return needed;
}

static const char *order_of(const struct ptx_insn *insn, const char *const *orders)
{
    for (; *orders; orders++)
        if (ptx_insn_has_modifier(insn, *orders))
            return *orders;
    return NULL;
}

static enum ptx_type modifier_type(const struct ptx_insn *insn, uint32_t skip)
{
    for (uint32_t i = 0; i < insn->modifier_count; i++) {
        enum ptx_type type = ptx_type_named(insn->modifiers[i]);
        if (type != PTX_NONE && skip-- == 0)
            return type;
    }
    return PTX_NONE;
}

/* The row ends before the 32-bit operand wraps, read with this sign. */
static void cut_at_wrap(struct emit *e, uint32_t index, bool is_signed)
{
    struct ptx_shape shape = ptx_operand_shape(e->shapes, &e->insn->operands[index]);
    if (shape.kind == PTX_AFFINE)
        emit_c(e, "n = ptx_until_wrap_%s(%s, %lldll, n);\n", is_signed ? "s32" : "u32", emit_in(e, index, PTX_U32),
               (long long)shape.step);
}

static void cut_at_change(struct emit *e)
{
    static const char *const equal[] = {"eq", "ne", NULL}, *const after[] = {"le", "gt", "ls", "hi", NULL};
    struct ptx_shape a = ptx_operand_shape(e->shapes, &e->insn->operands[1]);
    uint32_t moving = a.kind == PTX_AFFINE ? 1 : 2;
    struct ptx_shape shape = ptx_operand_shape(e->shapes, &e->insn->operands[moving]);
    enum ptx_type type = modifier_type(e->insn, 0) == PTX_S32 ? PTX_S32 : PTX_U32;
    cut_at_wrap(e, moving, type == PTX_S32);
    const char *value = emit_in(e, moving, type), *bound = emit_in(e, 3 - moving, type);
    /* a <= b is a < b + 1; with the operands swapped, a < b is !(b < a + 1). */
    bool is_after = (order_of(e->insn, after) != NULL) != (moving == 2);
    if (order_of(e->insn, equal))
        emit_c(e, "n = ptx_until_equal(%s, %lldll, %s, n);\n", value, (long long)shape.step, bound);
    else
        emit_c(e, "n = ptx_until_order(%s, %lldll, (int64_t)%s%s, n);\n", value, (long long)shape.step, bound,
               is_after ? " + 1" : "");
}

/* lane d, a, start: in the head, what the row's first thread carries, and the row ends before a thread that does not
 * carry on from it; in the loop over threads, if it could not be put there, plainly a. */
void emit_lane(struct emit *e)
{
    enum ptx_type type = emit_take_type(e);
    const struct ptx_operand *operands = e->insn->operands;
    emit_use_operand(e, &operands[2]);
    if (!emit_is_hoisted(e, operands[0].reg)) {
        emit_out(e, type, "%s", emit_in(e, 1, type));
        return;
    }
    emit_use_operand(e, &operands[1]);
    emit_out(e, type, "s%u[t0]", operands[1].reg);
    emit_c(e, "n = ptx_until_stray_u%u(s%u + t0, %lldll, n);\n", ptx_type_bits(type), operands[1].reg,
           (long long)e->shapes[operands[0].reg].step);
}

/* Cuts for the instruction that was just written. */
static void emit_cuts(struct emit *e, const struct ptx_insn *insn)
{
    if (e->failed)
        return;
    e->insn = insn;
    enum ptx_type type = modifier_type(insn, 0);
    bool is_signed = ptx_type_is_signed(type);
    if (strcmp(insn->opcode, "setp") == 0 && ptx_type_bits(type) == 32 &&
        (ptx_operand_shape(e->shapes, &insn->operands[1]).kind == PTX_AFFINE ||
         ptx_operand_shape(e->shapes, &insn->operands[2]).kind == PTX_AFFINE)) {
        cut_at_change(e);
    } else if (ptx_insn_has_modifier(insn, "wide") && ptx_type_bits(type) == 32) {
        cut_at_wrap(e, 1, is_signed);
        cut_at_wrap(e, 2, is_signed);
    } else if (strcmp(insn->opcode, "cvt") == 0) {
        enum ptx_type from = modifier_type(insn, 1);
        if (ptx_type_bits(type) == 64 && ptx_type_bits(from) == 32)
            cut_at_wrap(e, 1, ptx_type_is_signed(from));
    }
}

static bool is_affine(const struct emit *e, uint32_t reg)
{
    return e->shapes && e->shapes[reg].kind == PTX_AFFINE;
}

void emit_head(struct emit *e, const uint8_t *used)
{
    const struct ptx_function *f = e->function;
    uint8_t *needed = needed_registers(e, used);
    emit_c(e, "const uint32_t t = t0, x = x0; (void)t; (void)x;\n");
    for (uint32_t reg = 0; reg < f->reg_count; reg++)
        if (needed[reg] && emit_is_hoisted(e, reg))
            emit_c(e, "%s r%u;\n", ptx_register_c(&f->regs[reg]), reg);
    for (uint32_t i = 0; i < f->insn_count && !e->failed; i++) {
        const struct ptx_insn *insn = &f->insns[i];
        uint32_t reg = insn->operand_count && insn->operands[0].kind == PTX_OP_REG ? insn->operands[0].reg : UINT32_MAX;
        if (reg == UINT32_MAX || !needed[reg] || !emit_is_hoisted(e, reg) || e->shapes[reg].insn != i)
            continue;
        emit_insn(e, insn);
        emit_cuts(e, insn);
    }
    for (uint32_t reg = 0; reg < f->reg_count; reg++) {
        if (!needed[reg] || !is_affine(e, reg))
            continue;
        emit_c(e, "const %s h%u = r%u;\n", ptx_register_c(&f->regs[reg]), reg, reg);
        if (ptx_type_bits(f->regs[reg].type) == 32 && used[reg] == 2)
            emit_c(e, "n = ptx_until_wrap_u32(h%u, %lldll, n);\n", reg, (long long)e->shapes[reg].step);
    }
}

/* Inside the loop: affine registers of thread i. */
void emit_loop_values(struct emit *e, const uint8_t *used)
{
    for (uint32_t reg = 0; reg < e->function->reg_count; reg++) {
        if (!used[reg] || !is_affine(e, reg))
            continue;
        const char *type = ptx_register_c(&e->function->regs[reg]);
        long long step = e->shapes[reg].step;
        emit_c(e, "const %s r%u = h%u + (%s)%lldll * (%s)i; (void)r%u;\n", type, reg, reg, type, step, type, reg);
        if (ptx_type_bits(e->function->regs[reg].type) == 32 && used[reg] == 2)
            emit_c(e, "const uint64_t w%u = (uint64_t)h%u + (uint64_t)%lldll * i;\n", reg, reg, step);
    }
}
