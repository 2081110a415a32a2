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
    if (strcmp(insn->opcode, "mbarrier") == 0)
        return has_modifier(insn, "arrive") || has_modifier(insn, "arrive_drop") || has_modifier(insn, "test_wait") ||
               has_modifier(insn, "try_wait") || has_modifier(insn, "pending_count");
    if (insn->op->flow != PTX_FLOW_SYNC)
        return insn->op->outputs;
    if (insn->opcode[0] == 'b')
        return has_modifier(insn, "red");
    return insn->opcode[0] == 'w' && has_modifier(insn, "store") ? 0 : insn->op->outputs;
}

bool ptx_insn_is_strong_load(const struct ptx_insn *insn)
{
    return strcmp(insn->opcode, "ld") == 0 &&
           (has_modifier(insn, "volatile") || has_modifier(insn, "relaxed") || has_modifier(insn, "acquire"));
}

/* Changes nothing that another thread sees. */
static bool is_quiet(const struct ptx_insn *insn)
{
    static const char *const quiet[] = {"add",    "and",  "bra",       "cvt", "cvta", "fence", "ld",
                                        "membar", "mov",  "nanosleep", "not", "or",   "poll",  "selp",
                                        "set",    "setp", "shl",       "shr", "sub",  "xor"};
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
        if (strcmp(insn->opcode, quiet[i]) == 0)
            return true;
    return false;
}

#define WAITING_LOOP_MOST 64u

/* True if control can come back to instruction `at` through quiet instructions only. */
static bool is_in_waiting_loop(const struct ptx_function *f, uint32_t at)
{
    for (uint32_t i = at; i < f->insn_count && i < at + WAITING_LOOP_MOST && is_quiet(&f->insns[i]); i++) {
        const struct ptx_insn *insn = &f->insns[i];
        bool goes_back = strcmp(insn->opcode, "bra") == 0 && insn->operand_count == 1 &&
                         insn->operands[0].kind == PTX_OP_LABEL && insn->operands[0].label <= at;
        uint32_t first = goes_back ? insn->operands[0].label : at;
        while (goes_back && first < at && is_quiet(&f->insns[first]))
            first++;
        if (goes_back && first == at)
            return true;
    }
    return false;
}

void ptx_mark_polls(struct ptx_function *f)
{
    const struct ptx_op *poll = ptx_op_named("poll");
    for (uint32_t i = 0; i < f->insn_count; i++)
        if (strcmp(f->insns[i].opcode, "poll") == 0 && is_in_waiting_loop(f, i))
            f->insns[i].op = poll;
}

bool ptx_insn_is_sync(const struct ptx_insn *insn)
{
    return insn->op->flow == PTX_FLOW_SYNC;
}
