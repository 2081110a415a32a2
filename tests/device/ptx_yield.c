#include "tests/device/ptx_yield.h"

#include <string.h>

#define BODY_MOST 160u
#define LIVE_MOST 12u

static bool has_modifier(const struct ptx_insn *insn, const char *modifier)
{
    for (uint32_t i = 0; i < insn->modifier_count; i++)
        if (strcmp(insn->modifiers[i], modifier) == 0)
            return true;
    return false;
}

static bool is_branch(const struct ptx_insn *insn)
{
    return strcmp(insn->opcode, "bra") == 0 && insn->operand_count == 1 && insn->operands[0].kind == PTX_OP_LABEL;
}

static bool is_walk(const struct ptx_insn *insn)
{
    bool is_access = strcmp(insn->opcode, "ld") == 0 || strcmp(insn->opcode, "st") == 0;
    return is_access && has_modifier(insn, "global") && !ptx_insn_is_strong_load(insn);
}

/* A guarded branch back over plain code that reads or writes global memory, no other branch back among it. */
static bool ends_walk(const struct ptx_function *f, uint32_t at)
{
    const struct ptx_insn *branch = &f->insns[at];
    if (!is_branch(branch) || branch->guard == PTX_NO_REG || branch->operands[0].label > at ||
        at - branch->operands[0].label > BODY_MOST)
        return false;
    bool walks = false;
    for (uint32_t i = branch->operands[0].label; i < at; i++) {
        const struct ptx_insn *insn = &f->insns[i];
        if (ptx_insn_is_sync(insn) || strcmp(insn->opcode, "call") == 0 || strcmp(insn->opcode, "brx") == 0 ||
            strcmp(insn->opcode, "poll") == 0 || strcmp(insn->opcode, "atom") == 0 ||
            (is_branch(insn) && insn->operands[0].label <= i))
            return false;
        walks |= is_walk(insn);
    }
    return walks;
}

static void move_labels(struct ptx_insn *insns, uint32_t count, const uint32_t *starts)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < insns[i].operand_count; k++)
            if (insns[i].operands[k].kind == PTX_OP_LABEL)
                insns[i].operands[k].label = starts[insns[i].operands[k].label];
}

static uint32_t live_count(const struct ptx_flow *flow, uint32_t block)
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < flow->words; w++)
        count += (uint32_t)__builtin_popcountll(flow->blocks[block].live_in[w]);
    return count;
}

/* Where too much would have to be kept for each thread the point is none after all. */
static void drop_costly(struct ptx_module *module, struct ptx_function *f, const uint32_t *yields, uint32_t count)
{
    const struct ptx_flow *flow = ptx_flow_build(&module->arena, f);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t resume = flow->blocks[flow->block_of[yields[i]]].resume;
        if (live_count(flow, resume) > LIVE_MOST)
            f->insns[yields[i]].op = ptx_op_named("pmevent");
    }
}

/* Branches that go by a table: their functions are left as they are. */
static bool has_table(const struct ptx_function *f)
{
    for (uint32_t i = 0; i < f->insn_count; i++)
        if (strcmp(f->insns[i].opcode, "brx") == 0)
            return true;
    return false;
}

void ptx_add_yields(struct ptx_module *module, struct ptx_function *f)
{
    uint32_t *starts = arena_take(&module->arena, (f->insn_count + 1) * sizeof *starts), added = 0;
    uint32_t *yields = arena_take(&module->arena, (f->insn_count + 1) * sizeof *yields);
    bool *ends = arena_take(&module->arena, f->insn_count + 1);
    if (f->is_stepped || has_table(f))
        return;
    f->is_stepped = true;
    for (uint32_t i = 0; i < f->insn_count; i++) {
        starts[i] = i + added;
        ends[i] = ends_walk(f, i);
        added += ends[i];
    }
    if (!added)
        return;
    uint32_t count = f->insn_count + added, at = 0, yield_count = 0;
    struct ptx_insn *insns = arena_take(&module->arena, (count + 1) * sizeof *insns);
    for (uint32_t i = 0; i < f->insn_count; i++) {
        if (ends[i]) {
            yields[yield_count++] = at;
            insns[at++] = (struct ptx_insn){
                .line = f->insns[i].line, .guard = PTX_NO_REG, .op = ptx_op_named("poll"), .opcode = "poll"};
        }
        insns[at++] = f->insns[i];
    }
    move_labels(insns, count, starts);
    f->insns = insns;
    f->insn_count = f->insn_room = count;
    drop_costly(module, f, yields, yield_count);
}
