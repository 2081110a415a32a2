/* Basic blocks, the points where a thread waits for others, and which registers live across them. */
#include "tests/device/ptx.h"

#include <string.h>

static void visit_operand(const struct ptx_operand *operand, void (*visit)(void *, uint32_t, bool), void *context,
                          bool written)
{
    switch (operand->kind) {
    case PTX_OP_REG:
        visit(context, operand->reg, written);
        break;
    case PTX_OP_ADDRESS:
        visit_operand(operand->elements, visit, context, false);
        break;
    case PTX_OP_LIST:
    case PTX_OP_PAIR:
        for (uint32_t i = 0; i < operand->count; i++)
            visit_operand(&operand->elements[i], visit, context, written);
        break;
    default:
        break;
    }
}

void ptx_visit_registers(const struct ptx_insn *insn, void (*visit)(void *context, uint32_t reg, bool written),
                         void *context)
{
    if (insn->guard != PTX_NO_REG)
        visit(context, insn->guard, false);
    uint32_t outputs = ptx_insn_outputs(insn);
    for (uint32_t i = 0; i < insn->operand_count; i++)
        visit_operand(&insn->operands[i], visit, context, i < outputs);
}

/* Calls visit for each label that the instruction may jump to. */
static void visit_targets(const struct ptx_insn *insn, void (*visit)(void *, uint32_t), void *context)
{
    for (uint32_t i = 0; i < insn->operand_count; i++) {
        const struct ptx_operand *operand = &insn->operands[i];
        if (operand->kind == PTX_OP_LABEL)
            visit(context, operand->label);
        if (operand->kind == PTX_OP_TABLE)
            for (uint32_t k = 0; k < operand->count; k++)
                visit(context, operand->elements[k].label);
    }
}

static void mark_leader(void *context, uint32_t label)
{
    uint8_t *leaders = context;
    leaders[label] = 1;
}

static void find_blocks(struct ptx_arena *arena, struct ptx_flow *flow)
{
    const struct ptx_function *f = flow->function;
    uint8_t *leaders = arena_take(arena, f->insn_count + 1);
    leaders[0] = 1;
    for (uint32_t i = 0; i < f->insn_count; i++) {
        visit_targets(&f->insns[i], mark_leader, leaders);
        if (f->insns[i].op->flow != PTX_FLOW_NEXT || ptx_insn_is_sync(&f->insns[i]))
            leaders[i + 1] = 1;
    }
    flow->block_of = arena_take(arena, (f->insn_count + 1) * sizeof *flow->block_of);
    for (uint32_t i = 0; i < f->insn_count; i++)
        flow->block_count += leaders[i];
    flow->blocks = arena_take(arena, flow->block_count * sizeof *flow->blocks);
    uint32_t block = UINT32_MAX;
    for (uint32_t i = 0; i < f->insn_count; i++) {
        if (leaders[i])
            flow->blocks[++block].first = i;
        flow->blocks[block].end = i + 1;
        flow->block_of[i] = block;
    }
}

struct successor_list {
    struct ptx_flow *flow;
    struct ptx_block_of_code *block;
};

static void count_target(void *context, uint32_t label)
{
    (void)label;
    ++*(uint32_t *)context;
}

static void add_target(void *context, uint32_t label)
{
    struct successor_list *list = context;
    list->block->successors[list->block->successor_count++] = list->flow->block_of[label];
}

static void link_block(struct ptx_arena *arena, struct ptx_flow *flow, uint32_t index)
{
    struct ptx_block_of_code *block = &flow->blocks[index];
    const struct ptx_insn *last = &flow->function->insns[block->end - 1];
    bool is_sync = ptx_insn_is_sync(last);
    uint32_t targets = 1;
    visit_targets(last, count_target, &targets);
    block->successors = arena_take(arena, targets * sizeof *block->successors);
    block->resume = block->sync = UINT32_MAX;
    bool goes_on =
        index + 1 < flow->block_count && (last->guard != PTX_NO_REG || (last->op->flow == PTX_FLOW_NEXT && !is_sync));
    if (goes_on)
        block->successors[block->successor_count++] = index + 1;
    if (is_sync) {
        block->resume = index + 1;
        block->sync = flow->sync_count++;
    }
    struct successor_list list = {flow, block};
    visit_targets(last, add_target, &list);
}

static void mark_reached(struct ptx_arena *arena, struct ptx_flow *flow)
{
    uint32_t *stack = arena_take(arena, (flow->block_count + 1) * sizeof *stack);
    uint32_t depth = 0;
    stack[depth++] = 0;
    flow->blocks[0].is_reached = true;
    while (depth) {
        const struct ptx_block_of_code *block = &flow->blocks[stack[--depth]];
        for (uint32_t i = 0; i <= block->successor_count; i++) {
            uint32_t next = i < block->successor_count ? block->successors[i] : block->resume;
            if (next != UINT32_MAX && !flow->blocks[next].is_reached) {
                flow->blocks[next].is_reached = true;
                stack[depth++] = next;
            }
        }
    }
}

static void set_bit(uint64_t *set, uint32_t bit, bool value)
{
    if (value)
        set[bit / 64] |= (uint64_t)1 << (bit % 64);
    else
        set[bit / 64] &= ~((uint64_t)1 << (bit % 64));
}

static void remove_written(void *context, uint32_t reg, bool written)
{
    if (written)
        set_bit(context, reg, false);
}

static void add_read(void *context, uint32_t reg, bool written)
{
    if (!written)
        set_bit(context, reg, true);
}

static void keep_guarded(const struct ptx_insn *insn, uint64_t *live)
{
    if (insn->guard == PTX_NO_REG)
        ptx_visit_registers(insn, remove_written, live);
    ptx_visit_registers(insn, add_read, live);
}

/* live = what is live behind the block, then walked back to its start. */
static bool update_live_in(struct ptx_flow *flow, struct ptx_block_of_code *block, uint64_t *live)
{
    memset(live, 0, flow->words * sizeof *live);
    for (uint32_t i = 0; i <= block->successor_count; i++) {
        uint32_t next = i < block->successor_count ? block->successors[i] : block->resume;
        for (uint32_t w = 0; next != UINT32_MAX && w < flow->words; w++)
            live[w] |= flow->blocks[next].live_in[w];
    }
    for (uint32_t i = block->end; i-- > block->first;)
        keep_guarded(&flow->function->insns[i], live);
    if (memcmp(live, block->live_in, flow->words * sizeof *live) == 0)
        return false;
    memcpy(block->live_in, live, flow->words * sizeof *live);
    return true;
}

static void find_live(struct ptx_arena *arena, struct ptx_flow *flow)
{
    flow->words = flow->function->reg_count / 64 + 1;
    for (uint32_t b = 0; b < flow->block_count; b++)
        flow->blocks[b].live_in = arena_take(arena, flow->words * sizeof(uint64_t));
    uint64_t *live = arena_take(arena, flow->words * sizeof *live);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = flow->block_count; b-- > 0;)
            if (flow->blocks[b].is_reached)
                changed |= update_live_in(flow, &flow->blocks[b], live);
    }
}

const uint64_t *ptx_flow_live_in(struct ptx_arena *arena, struct ptx_flow *flow, uint32_t block)
{
    if (!flow->words)
        find_live(arena, flow);
    return flow->blocks[block].live_in;
}

struct ptx_flow *ptx_flow_build(struct ptx_arena *arena, const struct ptx_function *function)
{
    struct ptx_flow *flow = arena_take(arena, sizeof *flow);
    flow->function = function;
    find_blocks(arena, flow);
    for (uint32_t b = 0; b < flow->block_count; b++)
        link_block(arena, flow, b);
    mark_reached(arena, flow);
    flow->syncs = arena_take(arena, (flow->sync_count + 1) * sizeof *flow->syncs);
    for (uint32_t b = 0; b < flow->block_count; b++)
        if (flow->blocks[b].sync != UINT32_MAX)
            flow->syncs[flow->blocks[b].sync] = b;
    if (flow->sync_count)
        find_live(arena, flow);
    return flow;
}
