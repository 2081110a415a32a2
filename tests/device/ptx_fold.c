/* Registers that are set once, to a constant, are replaced by it: they need no place across barriers, and masks and
 * shift counts show their value. */
#include "tests/device/ptx.h"
#include "tests/device/ptx_fold.h"

#include <string.h>

struct definitions {
    uint32_t *count;
};

static void count_writes(void *context, uint32_t reg, bool written)
{
    struct definitions *d = context;
    if (written)
        d->count[reg]++;
}

static bool is_constant(const struct ptx_operand *operand)
{
    return operand->kind == PTX_OP_INT || operand->kind == PTX_OP_F32 || operand->kind == PTX_OP_F64;
}

static void replace(struct ptx_operand *operand, struct ptx_operand *const *constants)
{
    if (operand->kind == PTX_OP_REG && !operand->is_negated && constants[operand->reg])
        *operand = *constants[operand->reg];
    if (operand->kind == PTX_OP_ADDRESS)
        replace(operand->elements, constants);
    if (operand->kind == PTX_OP_LIST)
        for (uint32_t i = 0; i < operand->count; i++)
            replace(&operand->elements[i], constants);
}

/* The constant as the register holds it: of its width, good for integer and float readers alike. */
static struct ptx_operand *held_constant(struct ptx_arena *arena, const struct ptx_insn *insn,
                                         const struct ptx_register *reg)
{
    struct ptx_operand *held = arena_take(arena, sizeof *held);
    *held = insn->operands[1];
    uint32_t bits = ptx_type_bits(reg->type);
    if (held->kind == PTX_OP_F64 && bits == 32) {
        held->bits = ptx_narrow_double(held->bits);
    }
    if (bits < 64)
        held->bits &= ((uint64_t)1 << bits) - 1;
    held->kind = bits == 32 ? PTX_OP_F32 : bits == 64 ? PTX_OP_F64 : PTX_OP_INT;
    return held;
}

void ptx_fold_constants(struct ptx_arena *arena, struct ptx_function *f)
{
    if (f->is_folded)
        return;
    f->is_folded = true;
    struct definitions d = {arena_take(arena, (f->reg_count + 1) * sizeof *d.count)};
    struct ptx_operand **constants = arena_take(arena, (f->reg_count + 1) * sizeof(struct ptx_operand *));
    for (uint32_t i = 0; i < f->insn_count; i++)
        ptx_visit_registers(&f->insns[i], count_writes, &d);
    for (uint32_t i = 0; i < f->insn_count; i++) {
        struct ptx_insn *insn = &f->insns[i];
        if (insn->guard != PTX_NO_REG || strcmp(insn->opcode, "mov") != 0 || insn->operand_count != 2)
            continue;
        const struct ptx_operand *target = insn->operands;
        if (target->kind == PTX_OP_REG && d.count[target->reg] == 1 && is_constant(&insn->operands[1]) &&
            f->regs[target->reg].type != PTX_PRED)
            constants[target->reg] = held_constant(arena, insn, &f->regs[target->reg]);
    }
    for (uint32_t i = 0; i < f->insn_count; i++)
        for (uint32_t k = ptx_insn_outputs(&f->insns[i]); k < f->insns[i].operand_count; k++)
            replace(&f->insns[i].operands[k], constants);
}
