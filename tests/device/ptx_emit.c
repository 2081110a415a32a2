/* An entry as C: the functions it calls, its regions, its tables. */
#include "tests/device/ptx_emit.h"
#include "tests/device/ptx_fold.h"
#include "tests/device/ptx_inline.h"
#include "tests/device/ptx_yield.h"

#include <stdio.h>
#include <string.h>

/* ---- which functions and shared variables an entry reaches ---- */

struct reach {
    struct ptx_module *module;
    struct ptx_layout *layout;
    uint8_t *seen;
};

static void place_shared(struct reach *reach, struct ptx_variable *variable)
{
    struct ptx_layout *layout = reach->layout;
    if (variable->space != PTX_SHARED || variable->is_placed)
        return;
    variable->is_placed = true;
    if (variable->is_extern) {
        layout->uses_dynamic_shared = true;
        return;
    }
    layout->shared_bytes = (layout->shared_bytes + variable->align - 1) & ~(size_t)(variable->align - 1);
    variable->offset = layout->shared_bytes;
    layout->shared_bytes += variable->bytes;
}

static void reach_function(struct reach *reach, struct ptx_function *function);

static void reach_operand(struct reach *reach, const struct ptx_operand *operand)
{
    if (operand->variable)
        place_shared(reach, operand->variable);
    if (operand->function)
        reach_function(reach, operand->function);
    for (uint32_t i = 0; operand->elements && operand->kind != PTX_OP_TABLE && i < operand->count; i++)
        reach_operand(reach, &operand->elements[i]);
}

static bool has_indirect_call(const struct ptx_function *function)
{
    for (uint32_t i = 0; i < function->insn_count; i++) {
        const struct ptx_insn *insn = &function->insns[i];
        bool is_direct = strcmp(insn->opcode, "call") != 0;
        for (uint32_t k = 0; k < insn->operand_count; k++)
            is_direct |= insn->operands[k].kind == PTX_OP_FUNCTION;
        if (!is_direct)
            return true;
    }
    return false;
}

/* A strong load that a later branch goes back over. */
static bool polls(const struct ptx_function *function)
{
    uint32_t last_load = UINT32_MAX;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        const struct ptx_insn *insn = &function->insns[i];
        if (ptx_insn_is_strong_load(insn) && !ptx_insn_has_modifier(insn, "shared"))
            last_load = i;
        for (uint32_t k = 0; k < insn->operand_count; k++)
            if (insn->operands[k].kind == PTX_OP_LABEL && last_load != UINT32_MAX &&
                insn->operands[k].label <= last_load)
                return true;
    }
    return false;
}

static void reach_function(struct reach *reach, struct ptx_function *function)
{
    if (reach->seen[function->number])
        return;
    reach->seen[function->number] = 1;
    reach->layout->polls |= polls(function);
    if (has_indirect_call(function))
        for (struct ptx_function *f = reach->module->functions; f; f = f->next)
            if (f->is_taken && !f->is_entry)
                reach_function(reach, f);
    for (uint32_t i = 0; i < function->insn_count; i++)
        for (uint32_t k = 0; k < function->insns[i].operand_count; k++)
            reach_operand(reach, &function->insns[i].operands[k]);
}

static void forget_places(struct ptx_module *module)
{
    for (struct ptx_variable *v = module->variables; v; v = v->next)
        v->is_placed = false;
    for (struct ptx_function *f = module->functions; f; f = f->next)
        for (struct ptx_variable *v = f->locals; v; v = v->next)
            v->is_placed = false;
}

static void place_dynamic_shared(struct ptx_module *module, struct ptx_layout *layout)
{
    size_t start = layout->uses_dynamic_shared ? (layout->shared_bytes + 15) & ~(size_t)15 : layout->shared_bytes;
    for (struct ptx_variable *v = module->variables; v; v = v->next)
        if (v->space == PTX_SHARED && v->is_extern)
            v->offset = start;
    layout->shared_bytes = start;
}

static uint8_t *reach_entry(struct ptx_module *module, struct ptx_function *entry, struct ptx_layout *layout)
{
    *layout = (struct ptx_layout){0};
    struct reach reach = {module, layout, arena_take(&module->arena, module->function_count + 1)};
    forget_places(module);
    reach_function(&reach, entry);
    place_dynamic_shared(module, layout);
    for (struct ptx_variable *v = entry->params; v; v = v->next)
        layout->param_bytes = v->offset + v->bytes;
    for (struct ptx_variable *v = entry->locals; v; v = v->next) {
        if (v->space != PTX_LOCAL)
            continue;
        v->offset = (layout->local_bytes + v->align - 1) & ~(size_t)(v->align - 1);
        layout->local_bytes = v->offset + v->bytes;
    }
    layout->local_bytes = (layout->local_bytes + 15) & ~(size_t)15;
    return reach.seen;
}

void ptx_layout_entry(struct ptx_module *module, struct ptx_function *entry, struct ptx_layout *layout)
{
    reach_entry(module, entry, layout);
}

/* ---- statements ---- */

void emit_insn(struct emit *e, const struct ptx_insn *insn)
{
    e->insn = insn;
    e->used_modifiers = e->used_operands = 0;
    bool is_guarded = insn->guard != PTX_NO_REG;
    if (is_guarded)
        emit_c(e, "if (%sr%u) {\n", insn->guard_is_negated ? "!" : "", insn->guard);
    insn->op->emit(e);
    if (is_guarded)
        emit_c(e, "}\n");
    uint32_t all = (1u << insn->modifier_count) - 1;
    for (uint32_t i = 0; (e->used_modifiers & all) != all && i < insn->modifier_count; i++)
        if (!(e->used_modifiers >> i & 1))
            emit_refuse(e, ".%s is not supported", insn->modifiers[i]);
    uint32_t count = insn->operand_count < 32 ? insn->operand_count : 32;
    for (uint32_t i = 0; i < count; i++)
        if (!(e->used_operands >> i & 1))
            emit_refuse(e, "operand %u is not expected", i + 1);
}

static uint32_t next_included(const struct ptx_flow *flow, const uint8_t *included, uint32_t block)
{
    do
        block++;
    while (block < flow->block_count && !included[block]);
    return block;
}

static bool is_hoisted_insn(const struct emit *e, uint32_t index)
{
    const struct ptx_insn *insn = &e->function->insns[index];
    return insn->operand_count && insn->operands[0].kind == PTX_OP_REG && ptx_insn_outputs(insn) == 1 &&
           emit_is_hoisted(e, insn->operands[0].reg) && e->shapes[insn->operands[0].reg].insn == index;
}

static void emit_blocks(struct emit *e, const uint8_t *included)
{
    const struct ptx_flow *flow = e->flow;
    for (uint32_t b = 0; b < flow->block_count && !e->failed; b++) {
        if (!included[b])
            continue;
        const struct ptx_block_of_code *block = &flow->blocks[b];
        e->block = b;
        emit_c(e, "b%u: __attribute__((unused));\n", b);
        for (uint32_t i = block->first; i < block->end && !e->failed; i++)
            if (!is_hoisted_insn(e, i))
                emit_insn(e, &e->function->insns[i]);
        /* The block behind, where control falls through to it, may stand elsewhere or be left out. */
        bool falls = block->successor_count && block->successors[0] == b + 1;
        const struct ptx_insn *last = &e->function->insns[block->end - 1];
        if (falls && (last->guard != PTX_NO_REG || last->op->flow == PTX_FLOW_NEXT) &&
            next_included(flow, included, b) != b + 1)
            emit_c(e, "goto b%u;\n", b + 1);
    }
}

/* ---- variables of C ---- */

struct marks {
    uint8_t *used;
    uint8_t *written;
};

static void mark_register(void *context, uint32_t reg, bool written)
{
    struct marks *marks = context;
    marks->used[reg] = 1;
    if (written && marks->written)
        marks->written[reg] = 1;
}

static void mark_bases(const struct ptx_insn *insn, uint8_t *used)
{
    for (uint32_t k = 0; k < insn->operand_count; k++)
        if (insn->operands[k].kind == PTX_OP_ADDRESS && insn->operands[k].elements->kind == PTX_OP_REG)
            used[insn->operands[k].elements->reg] = 2;
}

static struct marks mark_registers(struct emit *e, const uint8_t *included)
{
    uint32_t count = e->function->reg_count + 1;
    struct marks marks = {arena_take(e->arena, count), arena_take(e->arena, count)};
    struct marks reads = {marks.used, NULL};
    for (uint32_t b = 0; b < e->flow->block_count; b++) {
        const struct ptx_block_of_code *block = &e->flow->blocks[b];
        for (uint32_t i = block->first; included[b] && i < block->end; i++) {
            const struct ptx_insn *insn = &e->function->insns[i];
            ptx_visit_registers(insn, mark_register, ptx_insn_is_sync(insn) ? &reads : &marks);
        }
    }
    for (uint32_t b = 0; b < e->flow->block_count; b++)
        for (uint32_t i = e->flow->blocks[b].first; included[b] && i < e->flow->blocks[b].end; i++)
            mark_bases(&e->function->insns[i], marks.used);
    return marks;
}

static void declare_registers(struct emit *e, const uint8_t *used)
{
    for (uint32_t reg = 0; reg < e->function->reg_count; reg++)
        if (used[reg] && !emit_is_hoisted(e, reg))
            emit_c(e, "%s r%u;\n", ptx_register_c(&e->function->regs[reg]), reg);
}

static void declare_arrays(struct emit *e)
{
    for (struct ptx_variable *v = e->function->locals; v; v = v->next)
        if ((v->space == PTX_LOCAL || v->space == PTX_PARAM) && !ptx_in_frame(e, v))
            emit_c(e, "uint8_t v%u[%zu] __attribute__((aligned(%u), unused));\n", v->number, v->bytes ? v->bytes : 1,
                   v->align < 16 ? 16 : v->align);
}

static bool uses_carry(const struct ptx_function *function)
{
    for (uint32_t i = 0; i < function->insn_count; i++) {
        const struct ptx_insn *insn = &function->insns[i];
        if (strcmp(insn->opcode, "addc") == 0 || strcmp(insn->opcode, "subc") == 0 || strcmp(insn->opcode, "madc") == 0)
            return true;
        for (uint32_t k = 0; k < insn->modifier_count; k++)
            if (strcmp(insn->modifiers[k], "cc") == 0)
                return true;
    }
    return false;
}

#define ALIGNMENT_NOTES "uint32_t u2 = 0, u4 = 0, u8 = 0, u16 = 0;\n"
#define ALIGNMENT_CHECK "if ((u2 & 1) | (u4 & 3) | (u8 & 7) | (u16 & 15)) B->fault(B, 716, \"misaligned address\");\n"

/* ---- functions ---- */

static void emit_prototype(struct emit *e, const struct ptx_function *f)
{
    emit_c(e, "static void %s(const struct ptx_place *place_", emit_function_name(e, f));
    for (const struct ptx_variable *v = f->returns; v; v = v->next)
        emit_c(e, ", uint8_t *v%u", v->number);
    for (const struct ptx_variable *v = f->params; v; v = v->next)
        emit_c(e, ", uint8_t *v%u", v->number);
    emit_c(e, ")");
}

static uint8_t *reached_blocks(struct emit *e)
{
    uint8_t *included = arena_take(e->arena, e->flow->block_count + 1);
    for (uint32_t b = 0; b < e->flow->block_count; b++)
        included[b] = e->flow->blocks[b].is_reached;
    return included;
}

static void check_known(struct emit *e, const struct ptx_function *f)
{
    if (f->refused && !e->failed) {
        e->failed = true;
        snprintf(e->why, e->why_bytes, "PTX line %u, %.100s: instruction %s is not supported", f->refused_line, f->name,
                 f->refused);
    }
}

static void emit_function(struct emit *e, struct ptx_function *f)
{
    check_known(e, f);
    e->function = f;
    e->flow = ptx_flow_build(e->arena, f);
    uint8_t *included = reached_blocks(e);
    emit_prototype(e, f);
    emit_c(
        e,
        "\n{\nconst struct ptx_place place = *place_; (void)place;\nstruct ptx_block *const B = place.block; (void)B;\n"
        "const uint32_t t = place.thread, x = place.x, y = place.y, z = place.z; (void)t; (void)x; (void)y; (void)z;\n"
        "uint8_t *const S = B->shared; (void)S;\nconst uint8_t *const P = B->params; (void)P;\n");
    if (uses_carry(f))
        emit_c(e, "uint32_t cc = 0;\n");
    declare_registers(e, mark_registers(e, included).used);
    declare_arrays(e);
    emit_c(e, ALIGNMENT_NOTES);
    emit_blocks(e, included);
    emit_c(e, "next: __attribute__((unused));\n" ALIGNMENT_CHECK "}\n");
}

/* ---- regions ---- */

static void include_from(const struct ptx_flow *flow, uint8_t *included, uint32_t *stack, uint32_t start)
{
    uint32_t depth = 0;
    if (!included[start])
        stack[depth++] = start;
    included[start] = 1;
    while (depth) {
        const struct ptx_block_of_code *block = &flow->blocks[stack[--depth]];
        for (uint32_t i = 0; i < block->successor_count; i++) {
            if (!included[block->successors[i]]) {
                included[block->successors[i]] = 1;
                stack[depth++] = block->successors[i];
            }
        }
    }
}

static uint32_t entry_block(const struct ptx_flow *flow, uint32_t region)
{
    return region ? flow->blocks[flow->syncs[region - 1]].resume : 0;
}

static bool has_bit(const uint64_t *set, uint32_t bit)
{
    return set[bit / 64] >> (bit % 64) & 1;
}

static void enter_block(struct emit *e, uint32_t block)
{
    const uint64_t *live = e->flow->blocks[block].live_in;
    for (uint32_t reg = 0; live && reg < e->function->reg_count; reg++) {
        if (!has_bit(live, reg) || e->slots[reg] == UINT32_MAX)
            continue;
        emit_c(e, "r%u = s%u[k];\n", reg, reg);
    }
    emit_c(e, "goto b%u;\n", block);
}

/* Nothing but the region itself reaches slots and states while it runs: hence restrict. */
static void declare_slots(struct emit *e, const uint8_t *used)
{
    if (!e->flow->sync_count)
        return;
    for (uint32_t reg = 0; reg < e->function->reg_count; reg++) {
        const struct ptx_register *r = &e->function->regs[reg];
        const char *type = r->type == PTX_PRED ? "uint8_t" : ptx_register_c(r);
        if (used[reg] && e->slots[reg] != UINT32_MAX)
            emit_c(e, "%s *const restrict s%u = SLOT(%s, %u);\n", type, reg, type, e->slots[reg]);
    }
    emit_c(e, "uint16_t *const restrict at = B->at;\nuint32_t *const restrict xa = (uint32_t *)B->exchange_a;\n"
              "uint64_t *const restrict xw = B->exchange_a;\nuint32_t *const restrict xb = B->exchange_b;\n"
              "uint32_t *const restrict xc = B->exchange_c;\nuint32_t *const restrict xm = B->exchange_mask;\n"
              "uint32_t *const restrict xx = B->exchange_words;\n");
}

/* Regions [from, to) as one function; more than one where they share too much code. */
static void emit_region(struct emit *e, uint32_t from, uint32_t to)
{
    const struct ptx_flow *flow = e->flow;
    uint8_t *included = arena_take(e->arena, flow->block_count + 1);
    uint32_t *stack = arena_take(e->arena, (flow->block_count + 1) * sizeof *stack);
    for (uint32_t region = from; region < to; region++)
        include_from(flow, included, stack, entry_block(flow, region));
    struct marks marks = mark_registers(e, included);
    for (uint32_t region = from; flow->sync_count && region < to; region++)
        for (uint32_t reg = 0; reg < e->function->reg_count; reg++)
            marks.used[reg] |=
                !emit_is_hoisted(e, reg) && has_bit(flow->blocks[entry_block(flow, region)].live_in, reg);
    e->changed = marks.written;
    emit_c(e,
           "static void k%u_r%u(struct ptx_block *B, uint32_t first, uint32_t end, uint32_t entry)\n{\n(void)entry;\n"
           "uint8_t *const S = B->shared; (void)S;\nconst uint8_t *const P = B->params; (void)P;\n"
           "const uint32_t nx = B->ntid[0], ny = B->ntid[1], flat = B->threads == nx;\n",
           e->entry->number, from);
    declare_slots(e, marks.used);
    emit_c(e, "for (uint32_t t0 = first; t0 < end;) {\n"
              "const uint32_t x0 = flat ? t0 : t0 %% nx, y = flat ? 0 : t0 / nx %% ny, z = flat ? 0 : t0 / nx / ny; "
              "(void)y; (void)z;\n"
              "uint32_t n = end - t0 < nx - x0 ? end - t0 : nx - x0;\n");
    emit_head(e, marks.used);
    emit_c(e, ALIGNMENT_NOTES);
    emit_c(e, "for (uint64_t i = 0; i < n; i++) {\nconst uint64_t k = (uint64_t)t0 + i;\n"
              "const uint32_t t = t0 + (uint32_t)i, x = x0 + (uint32_t)i; (void)x; (void)t; (void)k;\n");
    emit_loop_values(e, marks.used);
    if (e->layout->local_bytes)
        emit_c(e, "uint8_t *const L = B->local + (uint64_t)t * %zu; (void)L;\n", e->layout->local_bytes);
    emit_c(e, "const struct ptx_place place = { B, t, x, y, z, 0 }; (void)place;\n");
    if (uses_carry(e->function))
        emit_c(e, "uint32_t cc = 0;\n");
    declare_registers(e, marks.used);
    declare_arrays(e);
    if (to - from == 1) {
        enter_block(e, entry_block(flow, from));
    } else {
        emit_c(e, "switch (entry) {\n");
        for (uint32_t region = from; region < to; region++) {
            emit_c(e, "case %u:\n", region);
            enter_block(e, entry_block(flow, region));
        }
        emit_c(e, "default: __builtin_unreachable();\n}\n");
    }
    emit_blocks(e, included);
    emit_c(e, "next: __attribute__((unused));\n}\n" ALIGNMENT_CHECK "t0 += n;\n}\n}\n");
}

/* Registers that some thread holds while it waits get a slot each, wide ones first. Returns the bytes per thread. */
static uint32_t place_slots(struct emit *e)
{
    uint32_t count = e->function->reg_count, bytes = 0;
    uint32_t *slots = arena_take(e->arena, (count + 1) * sizeof *slots);
    memset(slots, 0xff, (count + 1) * sizeof *slots);
    static const uint32_t widths[] = {64, 32, 16, 8, 1};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        for (uint32_t reg = 0; reg < count; reg++) {
            bool lives = false;
            for (uint32_t s = 0; s < e->flow->sync_count && !lives; s++)
                lives = has_bit(e->flow->blocks[e->flow->blocks[e->flow->syncs[s]].resume].live_in, reg);
            if (!lives || emit_is_hoisted(e, reg) || ptx_type_bits(e->function->regs[reg].type) != widths[w])
                continue;
            slots[reg] = bytes;
            bytes += widths[w] == 1 ? 1 : widths[w] / 8;
        }
    }
    e->slots = slots;
    return (bytes + 7) & ~7u;
}

static bool shares_too_much(struct emit *e)
{
    const struct ptx_flow *flow = e->flow;
    uint8_t *included = arena_take(e->arena, flow->block_count + 1);
    uint32_t *stack = arena_take(e->arena, (flow->block_count + 1) * sizeof *stack);
    uint64_t total = 0;
    for (uint32_t region = 0; region <= flow->sync_count; region++) {
        memset(included, 0, flow->block_count);
        include_from(flow, included, stack, entry_block(flow, region));
        for (uint32_t b = 0; b < flow->block_count; b++)
            total += included[b] ? flow->blocks[b].end - flow->blocks[b].first : 0;
    }
    return total > 4ull * e->function->insn_count + 2000;
}

static void emit_regions(struct emit *e)
{
    uint32_t regions = e->flow->sync_count + 1, number = e->entry->number;
    uint32_t slot_bytes = place_slots(e);
    bool together = regions > 1 && shares_too_much(e);
    for (uint32_t region = 0; region < (together ? 1 : regions) && !e->failed; region++)
        emit_region(e, region, together ? regions : region + 1);
    if (e->failed)
        return;
    emit_syncs(e);
    emit_c(e, "static ptx_region *const k%u_regions[] = {", number);
    for (uint32_t region = 0; region < regions; region++)
        emit_c(e, " k%u_r%u,", number, together ? 0 : region);
    emit_c(e, " };\nconst struct ptx_kernel ptx_kernel_%u = { %u, %u, %u, %u, k%u_regions, k%u_syncs };\n", number,
           e->flow->sync_count, slot_bytes, (uint32_t)e->layout->local_bytes, e->exchange_words, number, number);
}

/* ---- the entry ---- */

bool ptx_emit_entry(struct ptx_module *module, struct ptx_function *entry, struct ptx_text *text, char *why,
                    size_t why_bytes)
{
    struct ptx_arena arena = {0};
    struct ptx_layout layout;
    const char *endless;
    if (!ptx_inline_waiting_calls(module, entry, &endless)) {
        snprintf(why, why_bytes, "%s: barriers or warp operations in %s, which calls itself or is too large",
                 entry->name, endless);
        return false;
    }
    uint8_t *reached = reach_entry(module, entry, &layout);
    struct emit e = {.module = module,
                     .arena = &arena,
                     .text = text,
                     .entry = entry,
                     .function = entry,
                     .layout = &layout,
                     .why = why,
                     .why_bytes = why_bytes};
    size_t start = text->used;
    check_known(&e, entry);
    for (struct ptx_function *f = module->functions; f; f = f->next)
        if (reached[f->number])
            ptx_fold_constants(&module->arena, f);
    ptx_add_yields(module, entry);
    static const struct ptx_insn heading = {.opcode = "function"};
    e.insn = &heading;
    for (struct ptx_function *f = module->functions; f; f = f->next) {
        if (reached[f->number] && !f->is_entry && f->has_body) {
            emit_prototype(&e, f);
            emit_c(&e, ";\n");
        }
    }
    for (struct ptx_function *f = module->functions; f && !e.failed; f = f->next)
        if (reached[f->number] && !f->is_entry && f->has_body)
            emit_function(&e, f);
    e.function = entry;
    e.flow = ptx_flow_build(&arena, entry);
    e.shapes = ptx_find_shapes(&arena, entry);
    if (!e.failed)
        emit_regions(&e);
    arena_release(&arena);
    if (e.failed)
        text->used = start;
    return !e.failed;
}
