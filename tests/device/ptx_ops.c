/* The table of operations, from ptx_ops.def. */
#include "tests/device/ptx_emit.h"

#include <string.h>

static const struct ptx_op ops[] = {
#define OP(name, outputs, flow, handler) {#name, outputs, PTX_FLOW_##flow, emit_##handler},
#include "tests/device/ptx_ops.def"
#undef OP
};

/* The rows are in alphabetical order. */
const struct ptx_op *ptx_op_named(const char *name)
{
    size_t low = 0, high = sizeof ops / sizeof *ops;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, ops[middle].name);
        if (order == 0)
            return &ops[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static bool has_modifier(const struct ptx_insn *insn, const char *modifier)
{
    for (uint32_t i = 0; i < insn->modifier_count; i++)
        if (strcmp(insn->modifiers[i], modifier) == 0)
            return true;
    return false;
}

/* bar and barrier write only where they reduce: their first operand is then the result. wmma.store only reads. */
uint32_t ptx_insn_outputs(const struct ptx_insn *insn)
{
    if (insn->op->flow != PTX_FLOW_SYNC)
        return insn->op->outputs;
    if (insn->opcode[0] == 'b')
        return has_modifier(insn, "red");
    return insn->opcode[0] == 'w' && has_modifier(insn, "store") ? 0 : insn->op->outputs;
}

bool ptx_insn_is_sync(const struct ptx_insn *insn)
{
    return insn->op->flow == PTX_FLOW_SYNC;
}
