/* The table of operations, from ptx_ops.def. */
#include "tests/device/ptx_emit.h"

#include <string.h>

static const struct ptx_op ops[] = {
#define OP(name, outputs, flow, handler) { #name, outputs, PTX_FLOW_##flow, emit_##handler },
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

/* bar and barrier write only where they reduce: their first operand is then the result. */
uint32_t ptx_insn_outputs(const struct ptx_insn *insn)
{
    if (insn->opcode[0] != 'b' || insn->opcode[1] != 'a' || insn->op->flow != PTX_FLOW_SYNC)
        return insn->op->outputs;
    for (uint32_t i = 0; i < insn->modifier_count; i++)
        if (strcmp(insn->modifiers[i], "red") == 0)
            return 1;
    return 0;
}

bool ptx_insn_is_sync(const struct ptx_insn *insn)
{
    return insn->op->flow == PTX_FLOW_SYNC;
}
