/* Points where a thread waits: what it leaves behind there, and the tables that the scheduler reads. */
#include "tests/device/ptx_emit_sync.h"

#include <string.h>

static const struct ptx_operand full_mask = {.kind = PTX_OP_INT, .bits = 0xffffffffu};

static void split_pair(const struct ptx_operand *operand, struct sync *s)
{
    s->result = operand->kind == PTX_OP_PAIR ? &operand->elements[0] : operand;
    s->predicate = operand->kind == PTX_OP_PAIR ? &operand->elements[1] : NULL;
}

static const struct ptx_operand *operand_at(struct emit *e, uint32_t index)
{
    if (index < e->insn->operand_count) {
        emit_use_operand(e, &e->insn->operands[index]);
        return &e->insn->operands[index];
    }
    emit_refuse(e, "an operand is missing");
    return &full_mask;
}

/* The slot's array from the warp's first thread on, or 0 where nobody reads the result. */
static const char *slot_of(struct emit *e, const struct ptx_operand *operand, const char *type)
{
    if (!operand || operand->kind != PTX_OP_REG || e->slots[operand->reg] == UINT32_MAX)
        return "0";
    return emit_format(e, "(SLOT(%s, %u) + first)", type, e->slots[operand->reg]);
}

static const char *each_result(struct emit *e, const struct ptx_operand *operand, const char *value)
{
    if (!operand || operand->kind != PTX_OP_REG || e->slots[operand->reg] == UINT32_MAX)
        return "";
    const struct ptx_register *reg = &e->function->regs[operand->reg];
    const char *type = reg->type == PTX_PRED ? "uint8_t" : ptx_register_c(reg);
    return emit_format(e, "{ %s *d_ = SLOT(%s, %u) + first; EACH_LANE { %s v_ = %s; d_[lane] = %s; } }", type, type,
                       e->slots[operand->reg], reg->type == PTX_PRED ? "uint8_t" : "uint32_t", value,
                       reg->is_float ? "ptx_f32(v_)" : "v_");
}

static void read_shfl(struct emit *e, struct sync *s)
{
    static const char *const modes[] = {"up", "down", "bfly", "idx", NULL};
    emit_take(e, "sync");
    int mode = emit_take_of(e, modes);
    if (emit_take_type(e) != PTX_B32 || mode < 0 || !emit_expect_operands(e, 5, 5)) {
        emit_refuse(e, "this form");
        return;
    }
    split_pair(operand_at(e, 0), s);
    uint64_t b = 0, c = 0;
    bool b_known = emit_constant(operand_at(e, 2), &b), c_known = emit_constant(operand_at(e, 3), &c);
    s->a = emit_in(e, 1, PTX_B32);
    s->b = b_known ? NULL : emit_in(e, 2, PTX_B32);
    s->c = c_known ? NULL : emit_in(e, 3, PTX_B32);
    s->mask = operand_at(e, 4);
    const char *d = slot_of(e, s->result, "uint32_t");
    s->run = emit_format(
        e,
        "uint32_t unused[32]; (void)unused; ptx_shfl(%d, (const uint32_t *)B->exchange_a + first, %s, %s, %uu, %uu, "
        "%s, %s, lanes);",
        mode, b_known ? "0" : "B->exchange_b + first", c_known ? "0" : "B->exchange_c + first", (uint32_t)b,
        (uint32_t)c, strcmp(d, "0") == 0 ? "unused" : emit_format(e, "(uint32_t *)%s", d),
        slot_of(e, s->predicate, "uint8_t"));
}

static void read_vote(struct emit *e, struct sync *s)
{
    static const char *const modes[] = {"all", "any", "uni", "ballot", NULL};
    static const char *const values[] = {"(b_ == lanes)", "(b_ != 0)", "(b_ == lanes || b_ == 0)", "b_"};
    emit_take(e, "sync");
    int mode = emit_take_of(e, modes);
    enum ptx_type type = emit_take_type(e);
    if (mode < 0 || type != (mode == 3 ? PTX_B32 : PTX_PRED) || !emit_expect_operands(e, 3, 3)) {
        emit_refuse(e, "this form");
        return;
    }
    split_pair(operand_at(e, 0), s);
    s->a = emit_in(e, 1, PTX_PRED);
    s->mask = operand_at(e, 2);
    s->run = emit_format(e, "uint32_t b_ = ptx_ballot((const uint32_t *)B->exchange_a + first, lanes); (void)b_; %s",
                         each_result(e, s->result, values[mode]));
}

static void read_match(struct emit *e, struct sync *s)
{
    bool is_all = emit_take(e, "all");
    if (!is_all && !emit_take(e, "any"))
        emit_refuse(e, "neither .any nor .all");
    emit_take(e, "sync");
    enum ptx_type type = emit_take_type(e);
    if ((type != PTX_B32 && type != PTX_B64) || !emit_expect_operands(e, 3, 3)) {
        emit_refuse(e, "this form");
        return;
    }
    split_pair(operand_at(e, 0), s);
    s->a = emit_in(e, 1, type);
    s->a_is_wide = type == PTX_B64;
    s->mask = operand_at(e, 2);
    const char *c = ptx_type_c(type);
    const char *values = emit_format(e, "const %s *a_ = (const %s *)B->exchange_a + first; (void)a_;", c, c);
    const char *same = emit_format(e, "ptx_match_%s(a_, a_[lane], lanes)", c);
    const char *result = is_all ? emit_format(e, "(%s == lanes ? lanes : 0)", same) : same;
    s->run = emit_format(e, "%s %s %s", values, each_result(e, s->result, result),
                         each_result(e, s->predicate, emit_format(e, "(%s == lanes)", same)));
}

static void read_redux(struct emit *e, struct sync *s)
{
    static const char *const operations[] = {"add", "min", "max", "and", "or", "xor", NULL};
    emit_take(e, "sync");
    int operation = emit_take_of(e, operations);
    enum ptx_type type = emit_take_type(e);
    bool fits = operation >= 3 ? type == PTX_B32 : type == PTX_U32 || type == PTX_S32;
    if (operation < 0 || !fits || !emit_expect_operands(e, 3, 3)) {
        emit_refuse(e, "operation or type");
        return;
    }
    split_pair(operand_at(e, 0), s);
    s->a = emit_in(e, 1, type);
    s->mask = operand_at(e, 2);
    s->run =
        emit_format(e, "uint32_t r_ = ptx_redux_%s_%s((const uint32_t *)B->exchange_a + first, lanes); (void)r_; %s",
                    operations[operation],
                    type == PTX_B32   ? "b32"
                    : type == PTX_U32 ? "u32"
                                      : "s32",
                    each_result(e, s->result, "r_"));
}

static void read_activemask(struct emit *e, struct sync *s)
{
    if (emit_take_type(e) != PTX_B32)
        emit_refuse(e, "type");
    s->kind = PTX_SYNC_FREE;
    split_pair(operand_at(e, 0), s);
    s->run = each_result(e, s->result, "lanes");
}

static void read_poll(struct emit *e, struct sync *s)
{
    (void)e;
    s->kind = PTX_SYNC_POLL;
}

static void read_elect(struct emit *e, struct sync *s)
{
    emit_take(e, "sync");
    split_pair(operand_at(e, 0), s);
    s->mask = operand_at(e, 1);
    s->run = emit_format(e, "%s %s", each_result(e, s->result, "(uint32_t)__builtin_ctz(lanes)"),
                         each_result(e, s->predicate, "(lane == (uint32_t)__builtin_ctz(lanes))"));
}

/* The block is the whole cluster: arriving alone does nothing, and who waits does so for all threads of the block. */
static void read_cluster_barrier(struct emit *e, struct sync *s)
{
    static const struct ptx_operand own = {.kind = PTX_OP_INT, .bits = PTX_CLUSTER_BARRIER};
    static const char *const orders[] = {"acquire", "release", "relaxed", NULL};
    emit_take_of(e, orders);
    if (emit_take(e, "arrive")) {
        s->kind = PTX_SYNC_POLL;
    } else if (emit_take(e, "wait")) {
        s->kind = PTX_SYNC_BARRIER;
        s->barrier = &own;
    } else {
        emit_refuse(e, "this form");
    }
}

/* bar{.cta}.sync a{, b}; .arrive a, b; .red.OP d, a{, b}, p; bar.warp.sync mask */
static void read_barrier(struct emit *e, struct sync *s)
{
    static const char *const reductions[] = {"and", "or", "popc", NULL};
    emit_take(e, "cta");
    if (strcmp(e->insn->opcode, "barrier") == 0)
        emit_take(e, "aligned");
    if (emit_take(e, "cluster")) {
        read_cluster_barrier(e, s);
        return;
    }
    if (emit_take(e, "warp")) {
        emit_take(e, "sync");
        s->mask = operand_at(e, 0);
        return;
    }
    uint32_t last = e->insn->operand_count, first = 0;
    s->kind = PTX_SYNC_BARRIER;
    if (emit_take(e, "red")) {
        int reduction = emit_take_of(e, reductions);
        enum ptx_type type = emit_take_type(e);
        if (reduction < 0 || type != (reduction == 2 ? PTX_U32 : PTX_PRED) || !emit_expect_operands(e, 3, 4)) {
            emit_refuse(e, "this form");
            return;
        }
        s->reduction = (enum ptx_reduction)(reduction + 1);
        s->result = operand_at(e, 0);
        s->a = emit_in(e, --last, PTX_PRED);
        first = 1;
    } else if (emit_take(e, "arrive")) {
        s->kind = PTX_SYNC_ARRIVE;
        emit_expect_operands(e, 2, 2);
    } else if (!emit_take(e, "sync")) {
        emit_refuse(e, "this form");
    }
    s->barrier = operand_at(e, first);
    s->count = last - first > 1 ? operand_at(e, first + 1) : NULL;
    uint64_t constant;
    if (emit_constant(s->barrier, &constant) && constant >= PTX_CLUSTER_BARRIER)
        emit_refuse(e, "a barrier number above 15");
    s->b = emit_constant(s->barrier, &constant) ? NULL : emit_value(e, s->barrier, PTX_U32);
    s->c = !s->count || emit_constant(s->count, &constant) ? NULL : emit_value(e, s->count, PTX_U32);
}

static void read_sync(struct emit *e, struct sync *s)
{
    static const struct {
        const char *name;
        void (*read)(struct emit *, struct sync *);
    } readers[] = {
        {"shfl", read_shfl},
        {"vote", read_vote},
        {"match", read_match},
        {"redux", read_redux},
        {"mma", read_matrix_product},
        {"wmma", read_wmma},
        {"ldmatrix", read_matrix_move},
        {"stmatrix", read_matrix_move},
        {"movmatrix", read_matrix_transpose},
        {"activemask", read_activemask},
        {"poll", read_poll},
        {"elect", read_elect},
        {"bar", read_barrier},
        {"barrier", read_barrier},
    };
    *s = (struct sync){.kind = PTX_SYNC_WARP};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strcmp(e->insn->opcode, readers[i].name) == 0)
            readers[i].read(e, s);
}

static void store_live(struct emit *e, uint32_t reg)
{
    emit_c(e, "s%u[k] = r%u;\n", reg, reg);
}

static bool has_bit(const uint64_t *set, uint32_t bit)
{
    return set[bit / 64] >> (bit % 64) & 1;
}

void emit_suspend(struct emit *e)
{
    struct sync s;
    uint64_t constant;
    if (!e->function->is_entry) {
        emit_refuse(e, "in a function that is called");
        return;
    }
    read_sync(e, &s);
    if (e->failed)
        return;
    const struct ptx_block_of_code *block = &e->flow->blocks[e->block];
    if (s.a)
        emit_c(e, "%s[k] = %s;\n", s.a_is_wide ? "xw" : "xa", s.a);
    if (s.b)
        emit_c(e, "xb[k] = %s;\n", s.b);
    if (s.c)
        emit_c(e, "xc[k] = %s;\n", s.c);
    for (uint32_t i = 0; i < s.word_count; i++)
        emit_c(e, "xx[%u * (uint64_t)B->stride + k] = %s;\n", i, s.words[i]);
    if (s.mask && !emit_constant(s.mask, &constant))
        emit_c(e, "xm[k] = %s;\n", emit_value(e, s.mask, PTX_B32));
    const uint64_t *live = e->flow->blocks[block->resume].live_in;
    for (uint32_t reg = 0; reg < e->function->reg_count; reg++)
        if (has_bit(live, reg) && e->changed[reg] && e->slots[reg] != UINT32_MAX)
            store_live(e, reg);
    emit_c(e, "at[k] = PTX_WAITS | %u; goto next;\n", block->sync);
}

/* ---- tables ---- */

static void emit_sync_row(struct emit *e, uint32_t number, const struct sync *s)
{
    uint64_t mask = 0, barrier = 0, count = 0;
    bool mask_known = !s->mask || emit_constant(s->mask, &mask),
         barrier_known = !s->barrier || emit_constant(s->barrier, &barrier);
    bool count_known = !s->count || emit_constant(s->count, &count);
    uint32_t slot = s->reduction && s->result->kind == PTX_OP_REG ? e->slots[s->result->reg] : UINT32_MAX;
    emit_c(e, "{ %d, %u, ", s->kind, e->insn->line);
    if (s->run)
        emit_c(e, "k%u_s%u, ", e->entry->number, number);
    else
        emit_c(e, "0, ");
    emit_c(e, "0x%xu, %u, %u, %d, %d, %d, %d, %uu },\n", (uint32_t)mask, (uint32_t)barrier, (uint32_t)count, mask_known,
           barrier_known, count_known, s->reduction, slot);
}

void emit_syncs(struct emit *e)
{
    struct sync *syncs = arena_take(e->arena, (e->flow->sync_count + 1) * sizeof *syncs);
    for (uint32_t i = 0; i < e->flow->sync_count && !e->failed; i++) {
        const struct ptx_block_of_code *block = &e->flow->blocks[e->flow->syncs[i]];
        e->insn = &e->function->insns[block->end - 1];
        e->used_modifiers = 0;
        read_sync(e, &syncs[i]);
        e->exchange_words = syncs[i].word_count > e->exchange_words ? syncs[i].word_count : e->exchange_words;
        if (syncs[i].run)
            emit_c(e,
                   "static void k%u_s%u(struct ptx_block *B, uint32_t first, uint32_t lanes)\n{ (void)B; (void)first; "
                   "(void)lanes; %s }\n",
                   e->entry->number, i, syncs[i].run);
    }
    emit_c(e, "static const struct ptx_sync k%u_syncs[] = {\n", e->entry->number);
    for (uint32_t i = 0; i < e->flow->sync_count && !e->failed; i++) {
        e->insn = &e->function->insns[e->flow->blocks[e->flow->syncs[i]].end - 1];
        emit_sync_row(e, i, &syncs[i]);
    }
    emit_c(e, "{ 0 } };\n");
}
