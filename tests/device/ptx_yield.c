#include "tests/device/ptx_yield.h"
#include "tests/device/ptx_shape.h"

#include <string.h>

#define FUNCTION_MOST 4000u /* what lives where is worked out once per loop */
#define BODY_MOST     160u
#define LIVE_MOST     12u
#define CARRIED_MOST  8u

/* ---- loops ---- */

/* Instructions [first, end], the last one the branch back. */
struct walk {
    uint32_t first, end, carried_count;
    struct carried {
        uint32_t reg, inside, outside; /* the only instructions that set it in the loop and elsewhere */
        uint32_t start, current, next; /* registers: its value at first, at the top, behind `inside` */
    } carried[CARRIED_MOST];
};

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

static bool is_kept_out(const struct ptx_insn *insn)
{
    static const char *const kept_out[] = {"call", "brx", "poll", "atom"};
    for (size_t i = 0; i < sizeof kept_out / sizeof *kept_out; i++)
        if (strcmp(insn->opcode, kept_out[i]) == 0)
            return true;
    return ptx_insn_is_sync(insn);
}

/* True if only the first instruction of the loop is reached from elsewhere. */
static bool has_one_entry(const struct ptx_function *f, const struct walk *w)
{
    for (uint32_t i = 0; i < f->insn_count; i++) {
        const struct ptx_insn *insn = &f->insns[i];
        bool is_inside = i >= w->first && i <= w->end;
        if (!is_inside && is_branch(insn) && insn->operands[0].label > w->first && insn->operands[0].label <= w->end)
            return false;
    }
    return true;
}

/* A guarded branch back over plain code that reads or writes global memory, no other branch back among it. */
static bool ends_walk(const struct ptx_function *f, uint32_t at, struct walk *w)
{
    const struct ptx_insn *branch = &f->insns[at];
    if (!is_branch(branch) || branch->guard == PTX_NO_REG || branch->operands[0].label > at ||
        at - branch->operands[0].label > BODY_MOST)
        return false;
    bool walks = false;
    *w = (struct walk){.first = branch->operands[0].label, .end = at};
    for (uint32_t i = w->first; i < at; i++) {
        const struct ptx_insn *insn = &f->insns[i];
        if (is_kept_out(insn) || (is_branch(insn) && insn->operands[0].label <= i))
            return false;
        walks |= is_walk(insn);
    }
    return walks && has_one_entry(f, w);
}

/* ---- registers that a loop carries round: they get names of their own at each place ---- */

struct writes {
    uint32_t reg, count;
};

static void count_write(void *context, uint32_t reg, bool written)
{
    struct writes *writes = context;
    writes->count += written && reg == writes->reg;
}

static uint32_t write_count(const struct ptx_insn *insn, uint32_t reg)
{
    struct writes writes = {reg, 0};
    ptx_visit_registers(insn, count_write, &writes);
    return writes.count;
}

/* The one instruction that sets the register in or out of the loop, or UINT32_MAX. */
static uint32_t only_write(const struct ptx_function *f, const struct walk *w, uint32_t reg, bool inside)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = inside ? w->first : 0; i < (inside ? w->end : f->insn_count); i++) {
        const struct ptx_insn *insn = &f->insns[i];
        if ((!inside && i >= w->first && i <= w->end) || !write_count(insn, reg))
            continue;
        bool is_plain = insn->guard == PTX_NO_REG && insn->operands[0].kind == PTX_OP_REG &&
                        ptx_insn_outputs(insn) == 1 && insn->op->flow == PTX_FLOW_NEXT;
        if (found != UINT32_MAX || !is_plain)
            return UINT32_MAX;
        found = i;
    }
    return found;
}

/* True if every way round the loop passes instruction `at`. */
static bool is_always_passed(const struct ptx_function *f, const struct walk *w, uint32_t at)
{
    for (uint32_t i = w->first; i < at; i++)
        if (is_branch(&f->insns[i]) && f->insns[i].operands[0].label > at && f->insns[i].operands[0].label <= w->end)
            return false;
    return true;
}

static uint32_t add_register(struct ptx_module *module, struct ptx_function *f, enum ptx_type type)
{
    if (f->reg_count == f->reg_room) {
        struct ptx_register *regs = arena_take(&module->arena, (f->reg_count + 32) * sizeof *regs);
        memcpy(regs, f->regs, f->reg_count * sizeof *regs);
        f->regs = regs;
        f->reg_room = f->reg_count + 32;
    }
    f->regs[f->reg_count] = (struct ptx_register){.type = type};
    return f->reg_count++;
}

static void find_carried(struct ptx_module *module, struct ptx_function *f, struct walk *w)
{
    for (uint32_t i = w->first; i < w->end && w->carried_count < CARRIED_MOST; i++) {
        const struct ptx_insn *insn = &f->insns[i];
        if (!insn->operand_count || insn->operands[0].kind != PTX_OP_REG || ptx_insn_outputs(insn) != 1)
            continue;
        uint32_t reg = insn->operands[0].reg, bits = ptx_type_bits(f->regs[reg].type);
        if ((bits != 32 && bits != 64) || f->regs[reg].is_float || only_write(f, w, reg, true) != i ||
            !is_always_passed(f, w, i))
            continue;
        uint32_t outside = only_write(f, w, reg, false);
        if (outside == UINT32_MAX)
            continue;
        enum ptx_type type = f->regs[reg].type;
        w->carried[w->carried_count++] = (struct carried){reg,
                                                          i,
                                                          outside,
                                                          add_register(module, f, type),
                                                          add_register(module, f, type),
                                                          add_register(module, f, type)};
    }
}

/* ---- the new list of instructions ---- */

struct builder {
    struct ptx_module *module;
    struct ptx_function *function;
    struct ptx_insn *insns;
    uint32_t count;
};

static struct ptx_operand *registers(struct builder *b, uint32_t a, uint32_t c, uint32_t d)
{
    struct ptx_operand *operands = arena_take(&b->module->arena, 3 * sizeof *operands);
    uint32_t regs[3] = {a, c, d};
    for (uint32_t i = 0; i < 3; i++)
        operands[i] = (struct ptx_operand){.kind = PTX_OP_REG, .reg = regs[i]};
    return operands;
}

static void put_own(struct builder *b, uint32_t line, const char *op, uint32_t count, struct ptx_operand *operands)
{
    struct ptx_insn *insn = &b->insns[b->count++];
    *insn = (struct ptx_insn){.line = line,
                              .guard = PTX_NO_REG,
                              .op = ptx_op_named(op),
                              .opcode = op,
                              .operand_count = count,
                              .operands = operands};
    if (count) {
        insn->modifier_count = 1;
        insn->modifiers[0] = ptx_type_bits(b->function->regs[operands[0].reg].type) == 64 ? "b64" : "b32";
    }
}

static void rename_register(struct builder *b, struct ptx_operand *operand, uint32_t from, uint32_t to)
{
    if (operand->kind == PTX_OP_REG && operand->reg == from)
        operand->reg = to;
    if (!operand->elements || !operand->count || operand->kind == PTX_OP_TABLE)
        return;
    struct ptx_operand *elements = arena_take(&b->module->arena, operand->count * sizeof *elements);
    memcpy(elements, operand->elements, operand->count * sizeof *elements);
    for (uint32_t i = 0; i < operand->count; i++)
        rename_register(b, &elements[i], from, to);
    operand->elements = elements;
}

/* Instruction i, which stands in the loop or sets what it carries. */
static void put_renamed(struct builder *b, const struct walk *w, uint32_t i)
{
    struct ptx_insn insn = b->function->insns[i];
    uint32_t outputs = ptx_insn_outputs(&insn);
    bool is_inside = i >= w->first && i <= w->end;
    struct ptx_operand *operands = arena_take(&b->module->arena, (insn.operand_count + 1) * sizeof *operands);
    if (insn.operand_count)
        memcpy(operands, insn.operands, insn.operand_count * sizeof *operands);
    insn.operands = operands;
    const struct carried *set = NULL;
    for (uint32_t c = 0; c < w->carried_count; c++) {
        const struct carried *carried = &w->carried[c];
        uint32_t now = i <= carried->inside ? carried->current : carried->next;
        for (uint32_t k = outputs; is_inside && k < insn.operand_count; k++)
            rename_register(b, &operands[k], carried->reg, now);
        if (i != carried->inside && i != carried->outside)
            continue;
        operands[0].reg = is_inside ? carried->next : carried->start;
        set = carried;
    }
    b->insns[b->count++] = insn;
    if (set)
        put_own(b, insn.line, "mov", 2, registers(b, set->reg, operands[0].reg, 0));
}

static bool is_touched(const struct walk *w, uint32_t i)
{
    bool touched = i >= w->first && i <= w->end;
    for (uint32_t c = 0; c < w->carried_count; c++)
        touched |= w->carried[c].outside == i;
    return touched;
}

static void put_top(struct builder *b, const struct walk *w)
{
    put_own(b, b->function->insns[w->first].line, "poll", 0, NULL);
    for (uint32_t c = 0; c < w->carried_count; c++)
        put_own(b, b->function->insns[w->first].line, "lane", 3,
                registers(b, w->carried[c].current, w->carried[c].reg, w->carried[c].start));
}

/* Writes the function anew with the loop kept in step. Returns where the loop ends now. */
static uint32_t rebuild(struct ptx_module *module, struct ptx_function *f, const struct walk *w)
{
    uint32_t *starts = arena_take(&module->arena, (f->insn_count + 1) * sizeof *starts);
    struct builder b = {module, f, NULL, 0};
    b.insns = arena_take(&module->arena, (f->insn_count + 4 * CARRIED_MOST + 2) * sizeof *b.insns);
    for (uint32_t i = 0; i < f->insn_count; i++) {
        starts[i] = b.count;
        if (i == w->first)
            put_top(&b, w);
        if (is_touched(w, i))
            put_renamed(&b, w, i);
        else
            b.insns[b.count++] = f->insns[i];
    }
    for (uint32_t i = 0; i < b.count; i++)
        if (is_branch(&b.insns[i]))
            b.insns[i].operands[0].label = starts[b.insns[i].operands[0].label];
    f->insns = b.insns;
    f->insn_count = f->insn_room = b.count;
    return starts[w->end];
}

static bool has_table(const struct ptx_function *f)
{
    for (uint32_t i = 0; i < f->insn_count; i++)
        if (strcmp(f->insns[i].opcode, "brx") == 0)
            return true;
    return false;
}

/* Values that each thread would have to keep at instruction `first`, as if it were behind a sync. */
static uint32_t live_count(struct ptx_module *module, const struct ptx_function *f, uint32_t first)
{
    struct ptx_flow *flow = ptx_flow_build(&module->arena, f);
    const uint64_t *live = ptx_flow_live_in(&module->arena, flow, flow->block_of[first]);
    uint32_t count = 0;
    for (uint32_t w = 0; w < flow->words; w++)
        count += (uint32_t)__builtin_popcountll(live[w]);
    return count;
}

/* Threads that leave the loop ending at `end` as each pleases are not held together after all: the point goes, and
 * what is carried is plainly moved. */
static void leave_apart(struct ptx_module *module, struct ptx_function *f, uint32_t end)
{
    const struct ptx_shape *shapes = ptx_find_shapes(&module->arena, f);
    uint32_t at = f->insns[end].operands[0].label;
    if (shapes[f->insns[end].guard].kind == PTX_UNIFORM)
        return;
    f->insns[at].op = ptx_op_named("pmevent");
    for (at++; strcmp(f->insns[at].opcode, "lane") == 0; at++) {
        f->insns[at].opcode = "mov";
        f->insns[at].op = ptx_op_named("mov");
        f->insns[at].operand_count = 2;
    }
}

void ptx_add_yields(struct ptx_module *module, struct ptx_function *f)
{
    if (f->is_stepped || f->insn_count > FUNCTION_MOST || has_table(f))
        return;
    f->is_stepped = true;
    for (uint32_t i = 0; i < f->insn_count; i++) {
        struct walk w;
        if (!ends_walk(f, i, &w) || live_count(module, f, w.first) > LIVE_MOST)
            continue;
        find_carried(module, f, &w);
        i = rebuild(module, f, &w);
        leave_apart(module, f, i);
    }
}
