/* Asynchronous copies, which are done at once, and the barriers in memory that they and threads arrive at. */
#include "tests/device/ptx_emit.h"

#include <string.h>

/* ---- mbarrier: an object of 8 bytes in shared memory, which one thread of the machine alone touches ---- */

static const char *const mbarrier_operations[] = {"init",     "inval",     "arrive",      "arrive_drop",   "test_wait",
                                                  "try_wait", "expect_tx", "complete_tx", "pending_count", NULL};
enum { INIT, INVAL, ARRIVE, DROP, TEST, TRY, EXPECT, COMPLETE, PENDING };

/* test_wait and try_wait p, [barrier], state or parity{, hint of a time} */
static void emit_mbarrier_wait(struct emit *e, int operation, const char *address, bool by_parity)
{
    if (operation == TRY && e->insn->operand_count > 3)
        emit_in(e, 3, PTX_U32);
    if (by_parity)
        emit_out(e, PTX_PRED, "ptx_mbarrier_passed(%s, %s)", address, emit_in(e, 2, PTX_U32));
    else
        emit_out(e, PTX_PRED, "ptx_mbarrier_passed(%s, (uint32_t)(%s >> 63))", address, emit_in(e, 2, PTX_B64));
}

static void emit_mbarrier_arrive(struct emit *e, bool drops, bool expects, const char *address, const char *count)
{
    if (expects)
        emit_c(e, "ptx_mbarrier_expect(%s, %s);\n", address, count);
    emit_out(e, PTX_B64, "ptx_mbarrier_arrive(%s, %s, %d)", address, expects ? "1" : count, drops);
}

void emit_mbarrier(struct emit *e)
{
    int operation = emit_take_of(e, mbarrier_operations);
    bool arrives = operation == ARRIVE || operation == DROP, waits = operation == TEST || operation == TRY;
    bool expects = arrives && emit_take(e, "expect_tx"), by_parity = waits && emit_take(e, "parity");
    bool is_counted = expects || (arrives && emit_take(e, "noComplete"));
    if (arrives || waits || operation == EXPECT || operation == COMPLETE)
        emit_take_order(e);
    enum ptx_space space = emit_take_space(e);
    if (operation < 0 || (emit_take_type(e) != PTX_B64 && operation < EXPECT) ||
        (space != PTX_SHARED && space != PTX_GENERIC)) {
        emit_refuse(e, "this form");
        return;
    }
    if (operation == PENDING) {
        emit_out(e, PTX_U32, "(uint32_t)%s & 0xfffff", emit_in(e, 1, PTX_B64));
        return;
    }
    bool has_result = arrives || waits;
    if (!emit_expect_operands(e, is_counted ? 3 : has_result || operation != INVAL ? 2 : 1, 4))
        return;
    const char *address = emit_address(e, &e->insn->operands[has_result], space);
    bool has_count = e->insn->operand_count > (has_result ? 2u : 1u);
    const char *count = has_count && !waits && operation != INVAL ? emit_in(e, has_result ? 2 : 1, PTX_U32) : "1";
    if (operation == INIT)
        emit_c(e, "ptx_mbarrier_init(%s, %s);\n", address, count);
    else if (operation == EXPECT || operation == COMPLETE)
        emit_c(e, "ptx_mbarrier_expect(%s, %c(int64_t)%s);\n", address, operation == EXPECT ? '+' : '-', count);
    else if (waits)
        emit_mbarrier_wait(e, operation, address, by_parity);
    else if (arrives)
        emit_mbarrier_arrive(e, operation == DROP, expects, address, count);
}

/* ---- copies ---- */

/* cp.async.mbarrier.arrive{.noinc}.shared.b64 [barrier]: the copies are done, so the thread arrives now; without
 * .noinc it first makes itself expected, which comes to nothing. */
static void emit_cp_arrive(struct emit *e)
{
    bool is_counted = emit_take(e, "noinc");
    enum ptx_space space = emit_take_space(e);
    if (!emit_take(e, "arrive") || emit_take_type(e) != PTX_B64 || !emit_expect_operands(e, 1, 1)) {
        emit_refuse(e, "this form");
        return;
    }
    const char *address = emit_address(e, &e->insn->operands[0], space);
    if (is_counted)
        emit_c(e, "ptx_mbarrier_arrive(%s, 1, 0);\n", address);
}

/* commit_group, wait_all, wait_group{.read} n: the groups that are waited for are always complete. */
static bool emit_cp_wait(struct emit *e, bool is_bulk)
{
    uint64_t left;
    if (emit_take(e, "commit_group") || (!is_bulk && emit_take(e, "wait_all")))
        return emit_expect_operands(e, 0, 0) || true;
    if (!emit_take(e, "wait_group"))
        return false;
    if (is_bulk)
        emit_take(e, "read");
    if (!emit_expect_operands(e, 1, 1) || !emit_constant(&e->insn->operands[0], &left))
        emit_refuse(e, "the number of groups must be a constant");
    else
        emit_use_operand(e, &e->insn->operands[0]);
    return true;
}

/* The number of bytes to read of those to write: an operand, all, or none where a predicate says that the source is to
 * be ignored. */
static const char *source_bytes(struct emit *e, uint32_t count)
{
    if (count == 3)
        return "16";
    const struct ptx_operand *operand = &e->insn->operands[3];
    if (operand->kind == PTX_OP_REG && e->function->regs[operand->reg].type == PTX_PRED)
        return emit_format(e, "(%s ? 0 : 16)", emit_in(e, 3, PTX_PRED));
    return emit_in(e, 3, PTX_U32);
}

/* cp.async.ca.shared.global [to], [from], bytes{, valid or ignored}{, policy} */
static void emit_cp_plain(struct emit *e)
{
    uint64_t bytes;
    bool all_levels = emit_take(e, "ca");
    bool has_policy = ptx_insn_has_modifier(e->insn, "L2::cache_hint");
    emit_take_hints(e);
    if ((!emit_take(e, "shared") && !emit_take(e, "shared::cta")) || !emit_take(e, "global") ||
        !emit_expect_operands(e, 3u + has_policy, 4u + has_policy) || !emit_constant(&e->insn->operands[2], &bytes) ||
        (bytes != 16 && (!all_levels || (bytes != 4 && bytes != 8)))) {
        emit_refuse(e, "this form");
        return;
    }
    emit_use_operand(e, &e->insn->operands[2]);
    emit_c(e, "ptx_copy(%s, (const uint8_t *)%s, %u, %s);\n", emit_address(e, &e->insn->operands[0], PTX_SHARED),
           emit_address(e, &e->insn->operands[1], PTX_GLOBAL), (uint32_t)bytes,
           source_bytes(e, e->insn->operand_count - has_policy));
}

/* True where the copy goes from shared memory to global: the order of the two words says it. */
static bool goes_out(const struct ptx_insn *insn)
{
    for (uint32_t i = 0; i < insn->modifier_count; i++)
        if (strcmp(insn->modifiers[i], "global") == 0 || strncmp(insn->modifiers[i], "shared", 6) == 0)
            return insn->modifiers[i][0] == 'g';
    return false;
}

/* cp.async.bulk.TO.FROM.mbarrier::complete_tx::bytes [to], [from], bytes, [barrier]{, policy}, and
 * cp.async.bulk.global.shared::cta.bulk_group [to], [from], bytes{, policy} */
static void emit_cp_bulk(struct emit *e)
{
    bool out = goes_out(e->insn), has_policy = ptx_insn_has_modifier(e->insn, "L2::cache_hint");
    emit_take_hints(e);
    bool completes = emit_take(e, "mbarrier::complete_tx::bytes");
    if (!completes && !emit_take(e, "bulk_group"))
        emit_refuse(e, "neither .mbarrier::complete_tx::bytes nor .bulk_group");
    enum ptx_space spaces[2] = {emit_take_space(e), emit_take_space(e)};
    bool has_global = spaces[0] == PTX_GLOBAL || spaces[1] == PTX_GLOBAL;
    uint32_t count = completes ? 4 : 3;
    if (out == completes || (!has_global && (spaces[0] != PTX_SHARED || spaces[1] != PTX_SHARED)) ||
        !emit_expect_operands(e, count + has_policy, count + has_policy)) {
        emit_refuse(e, "this form");
        return;
    }
    enum ptx_space to = out ? PTX_GLOBAL : PTX_SHARED, from = out || !has_global ? PTX_SHARED : PTX_GLOBAL;
    const char *bytes = emit_in(e, 2, PTX_U32);
    emit_c(e, "ptx_bulk_copy(B, %s, %s, %s);\n", emit_address(e, &e->insn->operands[0], to),
           emit_address(e, &e->insn->operands[1], from), bytes);
    if (completes)
        emit_c(e, "ptx_mbarrier_expect(%s, -(int64_t)%s);\n", emit_address(e, &e->insn->operands[3], PTX_SHARED),
               bytes);
}

void emit_cp(struct emit *e)
{
    if (!emit_take(e, "async"))
        return;
    bool is_bulk = emit_take(e, "bulk");
    if (emit_cp_wait(e, is_bulk))
        return;
    if (is_bulk)
        emit_cp_bulk(e);
    else if (emit_take(e, "mbarrier"))
        emit_cp_arrive(e);
    else
        emit_cp_plain(e);
}
