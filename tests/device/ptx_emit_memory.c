/* Loads, stores, atomics, fences. */
#include "tests/device/ptx_emit.h"

#include <string.h>

static const char *const orders[] = {"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", NULL};
static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};

/* Hints about caches change nothing here; a policy is the last operand. */
void emit_take_hints(struct emit *e)
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
                                        "L2::evict_last",
                                        "L2::evict_first",
                                        "L2::evict_normal",
                                        "unified",
                                        NULL};
    while (emit_take_of(e, hints) >= 0)
        ;
    if (emit_take(e, "L2::cache_hint") && e->insn->operand_count)
        emit_in(e, e->insn->operand_count - 1, PTX_B64);
}

int emit_take_order(struct emit *e)
{
    int order = emit_take_of(e, orders);
    emit_take_of(e, scopes);
    return order;
}

/* True where the access must be one access that other threads see: anything but weak. */
static bool take_order(struct emit *e, bool *acquires, bool *releases)
{
    int order = emit_take_order(e);
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
    emit_take_hints(e);
    a->is_strong = take_order(e, &a->acquires, &a->releases);
    a->space = emit_take_space(e);
    emit_take_hints(e);
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
    emit_use_operand(e, operand);
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

/* ---- atomics ---- */

static const char *const operations[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", NULL};
enum { ADD, MIN, MAX, AND, OR, XOR, EXCHANGE, SWAP, INCREMENT, DECREMENT };

struct atomic {
    enum ptx_space space;
    int operation;
    uint32_t count; /* elements of a vector, each an operation of its own */
    enum ptx_type type, bits;
    const char *name, *address;
};

static const char *float_name(enum ptx_type type)
{
    switch (type) {
    case PTX_F16:
        return "f16";
    case PTX_F16X2:
        return "f16x2";
    case PTX_BF16:
        return "bf16";
    case PTX_BF16X2:
        return "bf16x2";
    case PTX_F32:
        return "f32";
    case PTX_F64:
        return "f64";
    default:
        return NULL;
    }
}

/* The name of the prelude's function, or NULL. Floats travel as their bits. */
static const char *atomic_name(struct emit *e, const struct atomic *a)
{
    uint32_t bits = ptx_type_bits(a->type);
    bool is_word = bits == 32 || bits == 64, is_number = a->type >= PTX_U32 && a->type <= PTX_S64;
    const char *name = operations[a->operation], *real = float_name(a->type);
    bool is_small = real && bits <= 32 && a->type != PTX_F32;
    switch (a->operation) {
    case ADD:
        if (real)
            return emit_format(e, "add_%s", real);
        return is_word && is_number ? emit_format(e, "add_u%u", bits) : NULL;
    case MIN:
    case MAX: /* of small floats in vectors only */
        if (real)
            return is_small && a->count > 1 ? emit_format(e, "%s_%s", name, real) : NULL;
        return is_word && is_number ? emit_format(e, "%s_%c%u", name, ptx_type_is_signed(a->type) ? 's' : 'u', bits)
                                    : NULL;
    case SWAP:
        return is_word || bits == 16 ? emit_format(e, "cas_b%u", bits) : NULL;
    case INCREMENT:
    case DECREMENT:
        return a->type == PTX_U32 ? emit_format(e, "%s_u32", name) : NULL;
    default:
        return is_word && !real ? emit_format(e, "%s_b%u", name, bits) : NULL;
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

/* Vectors are of floats, up to 16 bytes. */
static bool is_vector_fit(const struct atomic *a)
{
    return a->count == 1 || (float_name(a->type) && a->type != PTX_F64 && a->space != PTX_SHARED &&
                             ptx_type_bits(a->type) * a->count <= 128 && a->operation <= MAX);
}

/* `first` is the operand index of the address. */
static bool read_atomic(struct emit *e, struct atomic *a, uint32_t first)
{
    bool acquires, releases;
    take_order(e, &acquires, &releases);
    a->space = emit_take_space(e);
    emit_take_hints(e);
    a->operation = emit_take_of(e, operations);
    a->count = emit_take_vector(e);
    a->type = emit_take_type(e);
    bool is_small = float_name(a->type) && a->type != PTX_F32 && a->type != PTX_F64;
    if (is_small)
        emit_take(e, "noftz");
    a->name = a->operation < 0 || a->type == PTX_NONE ? NULL : atomic_name(e, a);
    if (!a->name || !is_vector_fit(a) ||
        (a->space != PTX_GENERIC && a->space != PTX_GLOBAL && a->space != PTX_SHARED)) {
        emit_refuse(e, "operation, type or space");
        return false;
    }
    uint32_t operands = first + (a->operation == SWAP ? 3 : 2);
    if (!emit_expect_operands(e, operands, operands + 1))
        return false;
    a->bits = bits_type(a->type);
    a->address = emit_address(e, &e->insn->operands[first], a->space);
    return !e->failed;
}

/* Sums of f32 flush subnormal numbers in global memory, not in shared. */
static const char *where(struct emit *e, const struct atomic *a, uint32_t i, const char *value)
{
    const char *address = emit_format(e, "%s + %u", a->address, i * ptx_type_bits(a->type) / 8);
    if (a->space == PTX_GENERIC && a->type == PTX_F32)
        return emit_format(e,
                           "(ptx_is_shared(B, (uint64_t)(%s)) ? ptx_atom_%s_shared(%s, %s) : "
                           "ptx_atom_%s_global(%s, %s))",
                           address, a->name, address, value, a->name, address, value);
    return emit_format(e, "ptx_atom_%s_%s(%s, %s)", a->name, a->space == PTX_SHARED ? "shared" : "global", address,
                       value);
}

static void emit_atomic(struct emit *e, uint32_t first)
{
    struct atomic a;
    if (!read_atomic(e, &a, first))
        return;
    const struct access parts = {.count = a.count};
    const char *type = ptx_type_c(a.bits);
    emit_c(e, "{\n");
    for (uint32_t i = 0; i < a.count; i++) {
        const struct ptx_operand *operand = element(e, &e->insn->operands[first + 1], &parts, i);
        const char *value = emit_value(e, operand, a.bits);
        if (a.operation == SWAP)
            value = emit_format(e, "%s, %s", value, emit_in(e, first + 2, a.bits));
        emit_c(e, "const %s d%u_ = %s;\n", type, i, where(e, &a, i, value));
    }
    for (uint32_t i = 0; i < a.count; i++) {
        if (first)
            emit_set(e, element(e, &e->insn->operands[0], &parts, i), a.bits, emit_format(e, "d%u_", i));
        else
            emit_c(e, "(void)d%u_;\n", i);
    }
    emit_c(e, "}\n");
}

void emit_atom(struct emit *e)
{
    emit_atomic(e, 1);
}

void emit_red(struct emit *e)
{
    emit_atomic(e, 0);
}

/* ---- fences: all are the strongest ---- */

static void take_proxy(struct emit *e)
{
    static const char *const proxies[] = {"alias", "async", NULL};
    int proxy = emit_take_of(e, proxies);
    if (proxy < 0)
        emit_refuse(e, "this proxy");
    if (proxy == 1)
        emit_take_space(e);
}

void emit_fence(struct emit *e)
{
    static const char *const kinds[] = {"sc", "acq_rel", "acquire", "release", NULL};
    bool is_membar = strcmp(e->insn->opcode, "membar") == 0;
    if (emit_take(e, "proxy")) {
        take_proxy(e);
    } else if (is_membar) {
        emit_take(e, "gl");
        emit_take_of(e, scopes);
    } else {
        emit_take(e, "mbarrier_init");
        emit_take_of(e, kinds);
        emit_take_of(e, scopes);
    }
    emit_c(e, "__atomic_thread_fence(__ATOMIC_SEQ_CST);\n");
}
