/* Loads, stores, atomics, fences. */
#include "tests/device/ptx_emit.h"

#include <string.h>

static const char *const orders[] = {"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", NULL};
static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};

/* Hints about caches change nothing here. */
static void take_hints(struct emit *e)
{
    static const char *const hints[] = {"ca",
                                        "cg",
                                        "cs",
                                        "lu",
                                        "cv",
                                        "wb",
                                        "wt",
                                        "nc",
                                        "L1::no_allocate",
                                        "L1::evict_last",
                                        "L1::evict_first",
                                        "L1::evict_normal",
                                        "L1::evict_unchanged",
                                        "L2::64B",
                                        "L2::128B",
                                        "L2::256B",
                                        "L2::cache_hint",
                                        "L2::evict_last",
                                        "L2::evict_first",
                                        "L2::evict_normal",
                                        "unified",
                                        NULL};
    while (emit_take_of(e, hints) >= 0)
        ;
}

/* True where the access must be one access that other threads see: anything but weak. */
static bool take_order(struct emit *e, bool *acquires, bool *releases)
{
    int order = emit_take_of(e, orders);
    emit_take_of(e, scopes);
    *acquires = order == 3 || order == 5;
    *releases = order == 4 || order == 5;
    return order > 0;
}

struct access {
    enum ptx_space space;
    enum ptx_type type;
    uint32_t count;
    bool is_strong, acquires, releases;
    const char *address;
};

static bool read_access(struct emit *e, struct access *a, uint32_t address_at)
{
    take_hints(e);
    a->is_strong = take_order(e, &a->acquires, &a->releases);
    a->space = emit_take_space(e);
    take_hints(e);
    a->count = emit_take_vector(e);
    a->type = emit_take_type(e);
    if (a->type == PTX_NONE || a->type == PTX_PRED || (ptx_type_bits(a->type) > 64))
        emit_refuse(e, "type");
    if (!emit_expect_operands(e, 2, 3) || e->failed)
        return false;
    a->address = emit_address(e, &e->insn->operands[address_at], a->space);
    return !e->failed;
}

static const struct ptx_operand *element(struct emit *e, const struct ptx_operand *operand, const struct access *a,
                                         uint32_t i)
{
    if (a->count == 1 && operand->kind != PTX_OP_LIST)
        return operand;
    if (operand->kind != PTX_OP_LIST || operand->count != a->count) {
        emit_refuse(e, "the number of elements");
        return operand;
    }
    return &operand->elements[i];
}

/* A misaligned access is noted, not stopped: the low bits of its address are gathered in u<bytes>, which is looked at
 * behind the loop over threads (the context is lost then, whatever was written). All threads of an affine address whose
 * step keeps the alignment have the low bits of the first. */
static void note_alignment(struct emit *e, const struct access *a, uint32_t address_at)
{
    uint32_t bytes = ptx_type_bits(a->type) / 8 * a->count;
    const struct ptx_operand *operand = &e->insn->operands[address_at], *base = operand->elements;
    if (bytes < 2 || bytes > 16 || a->space == PTX_PARAM || base->kind != PTX_OP_REG)
        return;
    struct ptx_shape shape = e->shapes ? e->shapes[base->reg] : (struct ptx_shape){.kind = PTX_VARYING};
    if (shape.kind == PTX_AFFINE && shape.step % (int64_t)bytes == 0)
        emit_c(e, "u%u |= (uint32_t)h%u + (uint32_t)%lld;\n", bytes, base->reg, (long long)operand->offset);
    else
        emit_c(e, "u%u |= (uint32_t)(uint64_t)a_;\n", bytes);
}

static const char *load(struct emit *e, const struct access *a, const char *base, uint32_t i)
{
    uint32_t bytes = ptx_type_bits(a->type) / 8;
    return emit_format(e, "LOAD%s(%s, %s + %u)", a->is_strong ? "_VOLATILE" : "", ptx_type_c(a->type), base, i * bytes);
}

void emit_ld(struct emit *e)
{
    struct access a;
    if (!read_access(e, &a, 1))
        return;
    if (a.is_strong && (a.space == PTX_GENERIC || a.space == PTX_GLOBAL))
        emit_c(e, "ptx_relax(B);\n");
    emit_c(e, "{ const uint8_t *const a_ = (const uint8_t *)%s;\n", a.address);
    note_alignment(e, &a, 1);
    const struct ptx_operand *result = &e->insn->operands[0];
    /* All are read before any is written: the address may be in one of the results. a_ sees to that. */
    for (uint32_t i = 0; i < a.count; i++)
        emit_set(e, element(e, result, &a, i), a.type, load(e, &a, "a_", i));
    emit_c(e, "}\n");
    if (a.acquires)
        emit_c(e, "__atomic_thread_fence(__ATOMIC_ACQUIRE);\n");
}

void emit_st(struct emit *e)
{
    struct access a;
    if (!read_access(e, &a, 0))
        return;
    uint32_t bytes = ptx_type_bits(a.type) / 8;
    if (a.releases)
        emit_c(e, "__atomic_thread_fence(__ATOMIC_RELEASE);\n");
    emit_c(e, "{ uint8_t *const a_ = (uint8_t *)%s;\n", a.address);
    note_alignment(e, &a, 0);
    for (uint32_t i = 0; i < a.count; i++)
        emit_c(e, "STORE%s(%s, a_ + %u, %s);\n", a.is_strong ? "_VOLATILE" : "", ptx_type_c(a.type), i * bytes,
               emit_value(e, element(e, &e->insn->operands[1], &a, i), a.type));
    emit_c(e, "}\n");
}

/* cp.async.mbarrier.arrive{.noinc}.shared.b64 [barrier]: the copies are done, so the thread arrives now; without
 * .noinc it first makes itself expected, which comes to nothing. */
static void emit_cp_arrive(struct emit *e)
{
    bool is_counted = emit_take(e, "noinc");
    enum ptx_space space = emit_take_space(e);
    if (!emit_take(e, "arrive") || emit_take_type(e) != PTX_B64 || !emit_expect_operands(e, 1, 1))
        emit_refuse(e, "this form");
    else if (is_counted)
        emit_c(e, "ptx_mbarrier_arrive(%s, 1, 0);\n", emit_address(e, &e->insn->operands[0], space));
}

/* cp.async.ca.shared.global [to], [from], bytes{, valid}; the groups that are waited for are always complete. */
void emit_cp(struct emit *e)
{
    static const char *const waits[] = {"commit_group", "wait_group", "wait_all", NULL};
    if (!emit_take(e, "async") || emit_take_of(e, waits) >= 0)
        return;
    if (emit_take(e, "mbarrier")) {
        emit_cp_arrive(e);
        return;
    }
    take_hints(e);
    uint64_t bytes;
    if ((!emit_take(e, "shared") && !emit_take(e, "shared::cta")) || !emit_take(e, "global") ||
        !emit_expect_operands(e, 3, 5) || !emit_constant(&e->insn->operands[2], &bytes) ||
        (bytes != 4 && bytes != 8 && bytes != 16)) {
        emit_refuse(e, "this form");
        return;
    }
    take_hints(e);
    bool has_valid = e->insn->operand_count > 3 && !ptx_insn_has_modifier(e->insn, "L2::cache_hint");
    emit_c(e, "ptx_copy(%s, (const uint8_t *)%s, %u, %s);\n", emit_address(e, &e->insn->operands[0], PTX_SHARED),
           emit_address(e, &e->insn->operands[1], PTX_GLOBAL), (uint32_t)bytes,
           has_valid || e->insn->operand_count == 5 ? emit_in(e, 3, PTX_U32) : "16");
}

/* ---- mbarrier: an object of 8 bytes in shared memory, which one thread of the machine alone touches ---- */

static const char *const mbarrier_operations[] = {"init",     "inval",     "arrive",      "arrive_drop",   "test_wait",
                                                  "try_wait", "expect_tx", "complete_tx", "pending_count", NULL};
enum { INIT, INVAL, ARRIVE, DROP, TEST, TRY, EXPECT, COMPLETE, PENDING };

static void emit_mbarrier_wait(struct emit *e, const char *address, bool by_parity)
{
    if (by_parity)
        emit_out(e, PTX_PRED, "ptx_mbarrier_passed(%s, %s)", address, emit_in(e, 2, PTX_U32));
    else
        emit_out(e, PTX_PRED, "ptx_mbarrier_passed(%s, (uint32_t)(%s >> 63))", address, emit_in(e, 2, PTX_B64));
}

void emit_mbarrier(struct emit *e)
{
    int operation = emit_take_of(e, mbarrier_operations);
    bool expects = operation == ARRIVE && emit_take(e, "expect_tx");
    bool by_parity = emit_take(e, "parity");
    emit_take(e, "noComplete");
    emit_take_of(e, orders);
    emit_take_of(e, scopes);
    enum ptx_space space = emit_take(e, "shared::cluster") ? PTX_SHARED : emit_take_space(e);
    if (operation < 0 || (emit_take_type(e) != PTX_B64 && operation < EXPECT) ||
        (space != PTX_SHARED && space != PTX_GENERIC)) {
        emit_refuse(e, "this form");
        return;
    }
    if (operation == PENDING) {
        emit_out(e, PTX_U32, "(uint32_t)%s & 0xfffff", emit_in(e, 1, PTX_B64));
        return;
    }
    bool has_result = operation >= ARRIVE && operation <= TRY;
    if (!emit_expect_operands(e, has_result || operation != INVAL ? 2 : 1, 4))
        return;
    const char *address = emit_address(e, &e->insn->operands[has_result], space);
    bool has_count = e->insn->operand_count > (has_result ? 2u : 1u);
    const char *count = has_count ? emit_in(e, has_result ? 2 : 1, PTX_U32) : "1";
    if (operation == INIT)
        emit_c(e, "ptx_mbarrier_init(%s, %s);\n", address, count);
    else if (operation == EXPECT || operation == COMPLETE)
        emit_c(e, "ptx_mbarrier_expect(%s, %c(int64_t)%s);\n", address, operation == EXPECT ? '+' : '-', count);
    else if (operation == TEST || operation == TRY)
        emit_mbarrier_wait(e, address, by_parity);
    else if (operation != INVAL) {
        if (expects)
            emit_c(e, "ptx_mbarrier_expect(%s, %s);\n", address, count);
        emit_out(e, PTX_B64, "ptx_mbarrier_arrive(%s, %s, %d)", address, expects ? "1" : count, operation == DROP);
    }
}

/* ---- atomics ---- */

static const char *const operations[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", NULL};

/* The name of the prelude's function, or NULL. Floats travel as their bits. */
static const char *atomic_name(struct emit *e, int operation, enum ptx_type type)
{
    uint32_t bits = ptx_type_bits(type);
    bool is_signed = ptx_type_is_signed(type), is_word = bits == 32 || bits == 64;
    bool is_float = type >= PTX_F16 && type <= PTX_F64;
    const char *name = operations[operation];
    switch (operation) {
    case 0:
        if (type == PTX_F16 || type == PTX_F16X2 || type == PTX_BF16 || type == PTX_BF16X2 || type == PTX_F32 ||
            type == PTX_F64)
            return emit_format(e, "add_%s",
                               type == PTX_F16      ? "f16"
                               : type == PTX_F16X2  ? "f16x2"
                               : type == PTX_BF16   ? "bf16"
                               : type == PTX_BF16X2 ? "bf16x2"
                               : type == PTX_F32    ? "f32"
                                                    : "f64");
        return is_word && type >= PTX_U32 ? emit_format(e, "add_u%u", bits) : NULL;
    case 1:
    case 2:
        return is_word && type >= PTX_U32 && !is_float ? emit_format(e, "%s_%c%u", name, is_signed ? 's' : 'u', bits)
                                                       : NULL;
    case 7:
        return is_word || bits == 16 ? emit_format(e, "cas_b%u", bits) : NULL;
    case 8:
    case 9:
        return type == PTX_U32 ? emit_format(e, "%s_u32", name) : NULL;
    default:
        return is_word && !is_float ? emit_format(e, "%s_b%u", name, bits) : NULL;
    }
}

static enum ptx_type bits_type(enum ptx_type type)
{
    switch (ptx_type_bits(type)) {
    case 16:
        return PTX_B16;
    case 32:
        return PTX_B32;
    default:
        return PTX_B64;
    }
}

/* Emits the call; `first` is the operand index of the address. */
static const char *atomic_call(struct emit *e, uint32_t first, enum ptx_type *bits)
{
    bool acquires, releases;
    take_order(e, &acquires, &releases);
    enum ptx_space space = emit_take_space(e);
    take_hints(e);
    emit_take(e, "noftz");
    int operation = emit_take_of(e, operations);
    if (emit_take_vector(e) != 1)
        emit_refuse(e, "vectors");
    enum ptx_type type = emit_take_type(e);
    const char *name = operation < 0 || type == PTX_NONE ? NULL : atomic_name(e, operation, type);
    if (!name || (space != PTX_GENERIC && space != PTX_GLOBAL && space != PTX_SHARED)) {
        emit_refuse(e, "operation, type or space");
        return NULL;
    }
    uint32_t operands = first + (operation == 7 ? 3 : 2);
    if (!emit_expect_operands(e, operands, operands + 1))
        return NULL;
    *bits = bits_type(type);
    const char *address = emit_address(e, &e->insn->operands[first], space);
    const char *value = emit_in(e, first + 1, *bits);
    if (operation == 7)
        value = emit_format(e, "%s, %s", value, emit_in(e, first + 2, *bits));
    return emit_format(e, "ptx_atom_%s_%s(%s, %s)", name, space == PTX_SHARED ? "shared" : "global", address, value);
}

void emit_atom(struct emit *e)
{
    enum ptx_type type;
    const char *call = atomic_call(e, 1, &type);
    if (call)
        emit_out(e, type, "%s", call);
}

void emit_red(struct emit *e)
{
    enum ptx_type type;
    const char *call = atomic_call(e, 0, &type);
    if (call)
        emit_c(e, "(void)%s;\n", call);
}

void emit_fence(struct emit *e)
{
    static const char *const kinds[] = {"sc", "acq_rel", "acquire", "release", "gl", NULL};
    emit_take_of(e, kinds);
    emit_take_of(e, scopes);
    emit_c(e, "__atomic_thread_fence(__ATOMIC_SEQ_CST);\n");
}
