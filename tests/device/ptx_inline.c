#include "tests/device/ptx_inline.h"

#include <string.h>

#define INSTRUCTIONS_MOST (1u << 18)
#define ROUNDS_MOST       64

/* ---- which functions wait ---- */

static struct ptx_function *called(const struct ptx_insn *insn)
{
    if (strcmp(insn->opcode, "call") != 0)
        return NULL;
    for (uint32_t i = 0; i < insn->operand_count; i++)
        if (insn->operands[i].kind == PTX_OP_FUNCTION)
            return insn->operands[i].function->has_body && !insn->operands[i].function->is_entry
                       ? insn->operands[i].function
                       : NULL;
    return NULL;
}

/* Until nothing changes: a function waits if it holds a sync or calls one that waits. */
static bool *find_waiting(struct ptx_module *module)
{
    bool *waits = arena_take(&module->arena, module->function_count + 1);
    for (bool changed = true; changed;) {
        changed = false;
        for (struct ptx_function *f = module->functions; f; f = f->next) {
            for (uint32_t i = 0; !waits[f->number] && i < f->insn_count; i++) {
                const struct ptx_function *callee = called(&f->insns[i]);
                if (!ptx_insn_is_sync(&f->insns[i]) && !(callee && waits[callee->number]))
                    continue;
                waits[f->number] = true;
                changed = true;
            }
        }
    }
    return waits;
}

/* ---- copying ---- */

/* How operands of one function become those of another. */
struct renaming {
    struct ptx_module *module;
    uint32_t first_register;
    const uint32_t *labels;           /* old instruction -> new one */
    struct ptx_variable **from, **to; /* variables */
    uint32_t variable_count;
};

static void rename_operand(const struct renaming *r, struct ptx_operand *operand)
{
    if (operand->kind == PTX_OP_REG)
        operand->reg += r->first_register;
    if (operand->kind == PTX_OP_LABEL)
        operand->label = r->labels[operand->label];
    for (uint32_t i = 0; operand->variable && i < r->variable_count; i++) {
        if (operand->variable == r->from[i]) {
            operand->variable = r->to[i];
            break;
        }
    }
    if (!operand->elements || !operand->count)
        return;
    struct ptx_operand *elements = arena_take(&r->module->arena, operand->count * sizeof *elements);
    memcpy(elements, operand->elements, operand->count * sizeof *elements);
    for (uint32_t i = 0; i < operand->count; i++)
        rename_operand(r, &elements[i]);
    operand->elements = elements;
}

static struct ptx_insn renamed(const struct renaming *r, const struct ptx_insn *insn)
{
    struct ptx_insn copy = *insn;
    if (copy.guard != PTX_NO_REG)
        copy.guard += r->first_register;
    copy.operands = arena_take(&r->module->arena, (copy.operand_count + 1) * sizeof *copy.operands);
    if (copy.operand_count)
        memcpy(copy.operands, insn->operands, copy.operand_count * sizeof *copy.operands);
    for (uint32_t i = 0; i < copy.operand_count; i++)
        rename_operand(r, &copy.operands[i]);
    return copy;
}

static struct ptx_insn jump(struct ptx_module *module, const struct ptx_insn *at, uint32_t target, uint32_t guard,
                            bool negated)
{
    struct ptx_operand *label = arena_take(&module->arena, sizeof *label);
    *label = (struct ptx_operand){.kind = PTX_OP_LABEL, .name = "", .label = target};
    return (struct ptx_insn){.line = at->line,
                             .guard = guard,
                             .guard_is_negated = negated,
                             .op = ptx_op_named("bra"),
                             .opcode = "bra",
                             .operand_count = 1,
                             .operands = label};
}

/* ---- one call ---- */

static uint32_t add_registers(struct ptx_module *module, struct ptx_function *entry, const struct ptx_function *callee)
{
    uint32_t first = entry->reg_count, count = first + callee->reg_count;
    struct ptx_register *regs = arena_take(&module->arena, (count + 1) * sizeof *regs);
    if (first)
        memcpy(regs, entry->regs, first * sizeof *regs);
    if (callee->reg_count)
        memcpy(regs + first, callee->regs, callee->reg_count * sizeof *regs);
    entry->regs = regs;
    entry->reg_count = entry->reg_room = count;
    return first;
}

/* Variables that pass values live in the frame: the thread may stop while they hold them. */
static void pair_arguments(struct renaming *r, struct ptx_variable *formal, const struct ptx_operand *list)
{
    for (uint32_t i = 0; formal && list && i < list->count; i++, formal = formal->next) {
        struct ptx_variable *actual = list->elements[i].variable;
        if (!actual)
            continue;
        actual->space = PTX_LOCAL;
        r->from[r->variable_count] = formal;
        r->to[r->variable_count++] = actual;
    }
}

static void copy_locals(struct renaming *r, struct ptx_function *entry, const struct ptx_function *callee)
{
    for (struct ptx_variable *v = callee->locals; v; v = v->next) {
        if (v->space == PTX_SHARED)
            continue;
        struct ptx_variable *copy = arena_take(&r->module->arena, sizeof *copy);
        *copy = *v;
        copy->number = entry->variable_count++;
        copy->next = entry->locals;
        entry->locals = copy;
        r->from[r->variable_count] = v;
        r->to[r->variable_count++] = copy;
    }
}

static void pair_variables(struct renaming *r, struct ptx_function *entry, const struct ptx_function *callee,
                           const struct ptx_insn *call)
{
    uint32_t count = callee->param_count + callee->return_count + 1;
    for (struct ptx_variable *v = callee->locals; v; v = v->next)
        count++;
    r->from = arena_take(&r->module->arena, count * sizeof(struct ptx_variable *));
    r->to = arena_take(&r->module->arena, count * sizeof(struct ptx_variable *));
    const struct ptx_operand *operands = call->operands;
    uint32_t target = operands[0].kind == PTX_OP_FUNCTION ? 0 : 1;
    if (target == 1)
        pair_arguments(r, callee->returns, &operands[0]);
    if (target + 1 < call->operand_count && operands[target + 1].kind == PTX_OP_LIST)
        pair_arguments(r, callee->params, &operands[target + 1]);
    copy_locals(r, entry, callee);
}

/* Writes the callee's body at `at` of the new list; `behind` is what follows it. */
static void put_body(struct ptx_module *module, struct ptx_function *entry, const struct ptx_insn *call,
                     struct ptx_insn *insns, uint32_t at, uint32_t behind)
{
    const struct ptx_function *callee = called(call);
    if (callee->refused && !entry->refused) {
        entry->refused = callee->refused;
        entry->refused_line = callee->refused_line;
    }
    struct renaming r = {.module = module, .first_register = add_registers(module, entry, callee)};
    pair_variables(&r, entry, callee, call);
    if (call->guard != PTX_NO_REG)
        insns[at++] = jump(module, call, behind, call->guard, !call->guard_is_negated);
    uint32_t *labels = arena_take(&module->arena, (callee->insn_count + 1) * sizeof *labels);
    for (uint32_t i = 0; i < callee->insn_count; i++)
        labels[i] = at + i;
    r.labels = labels;
    for (uint32_t i = 0; i < callee->insn_count; i++) {
        const struct ptx_insn *insn = &callee->insns[i];
        bool returns = strcmp(insn->opcode, "ret") == 0;
        uint32_t guard = insn->guard == PTX_NO_REG ? PTX_NO_REG : insn->guard + r.first_register;
        insns[at + i] = returns ? jump(module, insn, behind, guard, insn->guard_is_negated) : renamed(&r, insn);
    }
}

static bool is_inlined(const struct ptx_insn *insn, const bool *waits)
{
    const struct ptx_function *callee = called(insn);
    return callee && waits[callee->number];
}

/* All waiting calls that the entry has now. False if there is none. */
static bool inline_round(struct ptx_module *module, struct ptx_function *entry, const bool *waits)
{
    uint32_t old_count = entry->insn_count, count = 0;
    bool any = false;
    uint32_t *starts = arena_take(&module->arena, (old_count + 1) * sizeof *starts);
    for (uint32_t i = 0; i < old_count; i++) {
        const struct ptx_insn *insn = &entry->insns[i];
        bool inlines = is_inlined(insn, waits);
        starts[i] = count;
        count += inlines ? called(insn)->insn_count + (insn->guard != PTX_NO_REG) : 1;
        any |= inlines;
    }
    if (!any || count > INSTRUCTIONS_MOST)
        return any;
    starts[old_count] = count;
    struct ptx_insn *insns = arena_take(&module->arena, (count + 1) * sizeof *insns);
    struct renaming same = {.module = module, .labels = starts};
    const struct ptx_insn *old = entry->insns;
    for (uint32_t i = 0; i < old_count; i++) {
        if (is_inlined(&old[i], waits))
            put_body(module, entry, &old[i], insns, starts[i], starts[i + 1]);
        else
            insns[starts[i]] = renamed(&same, &old[i]);
    }
    entry->insns = insns;
    entry->insn_count = entry->insn_room = count;
    return true;
}

bool ptx_inline_waiting_calls(struct ptx_module *module, struct ptx_function *entry, const char **name)
{
    const bool *waits = find_waiting(module);
    if (entry->is_folded)
        return true;
    for (int round = 0; round < ROUNDS_MOST && entry->insn_count < INSTRUCTIONS_MOST; round++)
        if (!inline_round(module, entry, waits))
            return true;
    *name = entry->name;
    for (uint32_t i = 0; i < entry->insn_count; i++)
        if (is_inlined(&entry->insns[i], waits))
            *name = called(&entry->insns[i])->name;
    return false;
}
