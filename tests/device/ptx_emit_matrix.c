/* mma, wmma, ldmatrix and stmatrix: operations of a whole warp on tiles (ptx_matrix.h does them). */
#include "tests/device/ptx_emit_sync.h"

#include <string.h>

static const struct ptx_operand whole_warp = {.kind = PTX_OP_INT, .bits = 0xffffffffu};

static void add_word(struct emit *e, struct sync *s, const char *value)
{
    if (s->word_count == PTX_WORDS_MOST)
        emit_refuse(e, "too many registers");
    else
        s->words[s->word_count++] = value;
}

static const struct ptx_operand *list_at(struct emit *e, uint32_t index)
{
    static const struct ptx_operand nothing;
    if (index < e->insn->operand_count) {
        emit_use_operand(e, &e->insn->operands[index]);
        return &e->insn->operands[index];
    }
    emit_refuse(e, "an operand is missing");
    return &nothing;
}

static uint32_t list_count(const struct ptx_operand *operand)
{
    return operand->kind == PTX_OP_LIST ? operand->count : 1;
}

static const struct ptx_operand *list_element(const struct ptx_operand *operand, uint32_t i)
{
    return operand->kind == PTX_OP_LIST ? &operand->elements[i] : operand;
}

/* All registers of the operand, two words for a double. */
static void add_registers(struct emit *e, struct sync *s, const struct ptx_operand *operand, bool is_double)
{
    for (uint32_t i = 0; i < list_count(operand) && !e->failed; i++) {
        if (is_double) {
            const char *value = emit_value(e, list_element(operand, i), PTX_B64);
            add_word(e, s, emit_format(e, "(uint32_t)(%s)", value));
            add_word(e, s, emit_format(e, "(uint32_t)(%s >> 32)", value));
        } else {
            add_word(e, s, emit_value(e, list_element(operand, i), PTX_B32));
        }
    }
}

static void add_address(struct emit *e, struct sync *s, uint32_t index, enum ptx_space space)
{
    const char *address = emit_address(e, list_at(e, index), space);
    add_word(e, s, emit_format(e, "(uint32_t)(uint64_t)%s", address));
    add_word(e, s, emit_format(e, "(uint32_t)((uint64_t)%s >> 32)", address));
}

/* d_[word][lane] to the slots of the results. */
static const char *put_results(struct emit *e, const struct ptx_operand *results, bool is_double)
{
    const char *text = "";
    for (uint32_t i = 0; i < list_count(results); i++) {
        const struct ptx_operand *operand = list_element(results, i);
        if (operand->kind != PTX_OP_REG || e->slots[operand->reg] == UINT32_MAX)
            continue;
        const struct ptx_register *reg = &e->function->regs[operand->reg];
        const char *type = ptx_register_c(reg),
                   *value = is_double
                                ? emit_format(e, "((uint64_t)d_[%u][lane] << 32 | d_[%u][lane])", 2 * i + 1, 2 * i)
                                : emit_format(e, "d_[%u][lane]", i);
        if (reg->is_float)
            value = emit_format(e, is_double ? "ptx_f64(%s)" : "ptx_f32(%s)", value);
        text =
            emit_format(e, "%s EACH_LANE SLOT(%s, %u)[first + lane] = %s;", text, type, e->slots[operand->reg], value);
    }
    return text;
}

struct tile {
    const char *type, *role;
    uint32_t registers, rows, columns;
};

static const char *tile_text(struct emit *e, struct tile tile)
{
    return emit_format(e, "(struct ptx_tile){ %s, %s, %u, %u, %u }", tile.type, tile.role, tile.registers, tile.rows,
                       tile.columns);
}

static const char *element_name(const char *type)
{
    static const struct {
        const char *ptx, *c;
    } names[] = {
        {"f16", "PTX_F16_"}, {"bf16", "PTX_BF16_"}, {"tf32", "PTX_TF32_"}, {"f32", "PTX_F32_"},   {"f64", "PTX_F64_"},
        {"s8", "PTX_S8_"},   {"u8", "PTX_U8_"},     {"s32", "PTX_S32_"},   {"e4m3", "PTX_E4M3_"}, {"e5m2", "PTX_E5M2_"},
    };
    for (size_t i = 0; type && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].ptx, type) == 0)
            return names[i].c;
    return NULL;
}

/* The next modifier that is an element type. */
static const char *take_element(struct emit *e)
{
    for (uint32_t i = 0; i < e->insn->modifier_count; i++) {
        if (!(e->used_modifiers >> i & 1) && element_name(e->insn->modifiers[i])) {
            e->used_modifiers |= 1u << i;
            return e->insn->modifiers[i];
        }
    }
    return NULL;
}

static uint32_t element_bits(const char *type)
{
    static const char *const bytes = "s8 u8 e4m3 e5m2", *const halves = "f16 bf16";
    return strstr(bytes, type) ? 8 : strcmp(type, "f64") == 0 ? 64 : strstr(halves, type) ? 16 : 32;
}

static bool take_shape(struct emit *e, uint32_t *m, uint32_t *n, uint32_t *k)
{
    for (uint32_t i = 0; i < e->insn->modifier_count; i++) {
        const char *word = e->insn->modifiers[i];
        unsigned values[3] = {0};
        static const char letters[] = "mnk";
        const char *at = word;
        int found = 0;
        for (; found < 3 && *at == letters[found]; found++)
            for (at++; *at >= '0' && *at <= '9' && values[found] < 1000; at++)
                values[found] = values[found] * 10 + (unsigned)(*at - '0');
        if (found != 3 || *at)
            continue;
        e->used_modifiers |= 1u << i;
        *m = values[0];
        *n = values[1];
        *k = values[2];
        return true;
    }
    return false;
}

struct product {
    uint32_t m, n, k;
    const char *types[4];
    bool saturates, is_opaque;
}; /* types of d, a, b, c */

/* Registers of all four operands must be as many as the shape needs: so an unknown shape is refused, not misread. */
static bool fits(const struct product *p, const struct ptx_operand *operand, uint32_t which)
{
    uint32_t elements[] = {p->m * p->n, p->m * p->k, p->k * p->n, p->m * p->n};
    uint32_t bits = element_bits(p->types[which]), per = bits >= 32 ? 1 : 32 / bits;
    uint32_t held = list_count(operand) * per * 32;
    return elements[which] <= 1024 &&
           (held == elements[which] || (p->is_opaque && held >= elements[which] && held % elements[which] == 0));
}

static void read_product(struct emit *e, struct sync *s, struct product *p)
{
    static const char *const roles[] = {"PTX_ROLE_C", "PTX_ROLE_A", "PTX_ROLE_B", "PTX_ROLE_C"};
    uint32_t rows[] = {p->m, p->m, p->k, p->m}, columns[] = {p->n, p->k, p->n, p->n};
    const char *tiles[4];
    s->mask = &whole_warp;
    for (uint32_t i = 0; i < 4; i++) {
        const struct ptx_operand *operand = list_at(e, i);
        if (!e->failed && !fits(p, operand, i))
            emit_refuse(e, "this shape or type");
        if (e->failed)
            return;
        tiles[i] = tile_text(e, (struct tile){element_name(p->types[i]), p->is_opaque ? "PTX_ROLE_OPAQUE" : roles[i],
                                              list_count(operand), rows[i], columns[i]});
        if (i)
            add_registers(e, s, operand, element_bits(p->types[i]) == 64);
    }
    s->run = emit_format(e, "uint32_t d_[16][32]; ptx_matrix_product(B, first, %s, %s, %s, %s, %d, d_);%s", tiles[1],
                         tiles[2], tiles[3], tiles[0], p->saturates,
                         put_results(e, list_at(e, 0), element_bits(p->types[0]) == 64));
}

/* Integers saturate, doubles say how they round. */
static void take_product_mode(struct emit *e, struct product *p)
{
    p->saturates = p->types[0] && strcmp(p->types[0], "s32") == 0 && emit_take(e, "satfinite");
    if (p->types[0] && strcmp(p->types[0], "f64") == 0)
        emit_take(e, "rn");
}

/* .row.col, in this order: others are another product. */
static bool take_row_and_column(struct emit *e)
{
    for (uint32_t i = 0; i + 1 < e->insn->modifier_count; i++)
        if (strcmp(e->insn->modifiers[i], "row") == 0)
            return strcmp(e->insn->modifiers[i + 1], "col") == 0 && emit_take(e, "row") && emit_take(e, "col");
    return false;
}

/* mma.sync.aligned.mMnNkK.row.col.D.A.B.C */
void read_matrix_product(struct emit *e, struct sync *s)
{
    struct product p = {0};
    emit_take(e, "sync");
    emit_take(e, "aligned");
    if (!take_shape(e, &p.m, &p.n, &p.k) || !take_row_and_column(e) || !emit_expect_operands(e, 4, 4)) {
        emit_refuse(e, "this form");
        return;
    }
    for (int i = 0; i < 4; i++)
        p.types[i] = take_element(e);
    take_product_mode(e, &p);
    if (!p.types[3] || (p.m != 16 && p.m != 8) || p.n != 8 || (p.m == 8 && element_bits(p.types[1]) == 16))
        emit_refuse(e, "this shape or type");
    else
        read_product(e, s, &p);
}

static void read_wmma_product(struct emit *e, struct sync *s)
{
    struct product p = {.is_opaque = true};
    bool has_layouts = (emit_take(e, "row") || emit_take(e, "col")) && (emit_take(e, "row") || emit_take(e, "col"));
    if (!take_shape(e, &p.m, &p.n, &p.k) || !has_layouts || !emit_expect_operands(e, 4, 4)) {
        emit_refuse(e, "this form");
        return;
    }
    const char *types[4];
    for (int i = 0; i < 4; i++)
        types[i] = take_element(e);
    bool is_short = types[1] && !types[2]; /* .D.C of f16 products */
    p.types[0] = types[0];
    p.types[1] = is_short ? "f16" : types[1];
    p.types[2] = is_short ? "f16" : types[2];
    p.types[3] = is_short ? types[1] : types[3];
    if (!p.types[0] || !p.types[3]) {
        emit_refuse(e, "types");
        return;
    }
    take_product_mode(e, &p);
    read_product(e, s, &p);
}

/* wmma.load.a.sync.aligned.row.mMnNkK{.space}.TYPE {registers}, [address]{, stride}, and .store.d with the first two
 * swapped */
static void read_wmma_move(struct emit *e, struct sync *s, bool is_load)
{
    uint32_t m, n, k;
    bool is_a = is_load && emit_take(e, "a"), is_b = is_load && emit_take(e, "b");
    bool is_c = emit_take(e, is_load ? "c" : "d");
    emit_take(e, "sync");
    emit_take(e, "aligned");
    bool by_column = emit_take(e, "col");
    enum ptx_space space = emit_take_space(e);
    const char *type = take_element(e);
    if ((!by_column && !emit_take(e, "row")) || !take_shape(e, &m, &n, &k) || !type || !(is_a || is_b || is_c) ||
        !emit_expect_operands(e, 2, 3)) {
        emit_refuse(e, "this form");
        return;
    }
    const struct ptx_operand *registers = list_at(e, is_load ? 0 : 1);
    struct tile tile = {element_name(type), "PTX_ROLE_OPAQUE", list_count(registers), is_b ? k : m, is_a ? k : n};
    uint32_t bits = element_bits(type), held = tile.registers * (bits >= 32 ? 1 : 32 / bits) * 32,
             elements = tile.rows * tile.columns;
    if (!elements || held % elements || tile.registers > 16) {
        emit_refuse(e, "this shape or type");
        return;
    }
    s->mask = &whole_warp;
    add_address(e, s, is_load ? 1 : 0, space);
    add_word(e, s,
             e->insn->operand_count > 2 ? emit_in(e, 2, PTX_U32)
                                        : emit_format(e, "%u", by_column ? tile.rows : tile.columns));
    if (!is_load)
        add_registers(e, s, registers, bits == 64);
    if (is_load)
        s->run = emit_format(e, "uint32_t d_[32][32]; ptx_matrix_read(B, first, %s, %d, d_);%s", tile_text(e, tile),
                             by_column, put_results(e, registers, bits == 64));
    else
        s->run = emit_format(e, "ptx_matrix_write(B, first, %s, %d);", tile_text(e, tile), by_column);
}

void read_wmma(struct emit *e, struct sync *s)
{
    if (emit_take(e, "load")) {
        read_wmma_move(e, s, true);
    } else if (emit_take(e, "store")) {
        read_wmma_move(e, s, false);
    } else if (emit_take(e, "mma")) {
        emit_take(e, "sync");
        emit_take(e, "aligned");
        read_wmma_product(e, s);
    } else {
        emit_refuse(e, "this form");
    }
}

/* ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 {d}, [a]; stmatrix [a], {d} */
void read_matrix_move(struct emit *e, struct sync *s)
{
    bool is_load = e->insn->opcode[0] == 'l';
    emit_take(e, "sync");
    emit_take(e, "aligned");
    uint32_t count = emit_take(e, "x1") ? 1 : emit_take(e, "x2") ? 2 : emit_take(e, "x4") ? 4 : 0;
    bool transposed = emit_take(e, "trans");
    enum ptx_space space = emit_take_space(e);
    if (!emit_take(e, "m8n8") || !count || emit_take_type(e) != PTX_B16 || !emit_expect_operands(e, 2, 2) ||
        list_count(list_at(e, is_load ? 0 : 1)) != count) {
        emit_refuse(e, "this form");
        return;
    }
    s->mask = &whole_warp;
    add_address(e, s, is_load ? 1 : 0, space);
    if (!is_load)
        add_registers(e, s, list_at(e, 1), false);
    if (is_load)
        s->run = emit_format(e, "uint32_t d_[4][32]; ptx_matrix_load(B, first, %u, %d, d_);%s", count, transposed,
                             put_results(e, list_at(e, 0), false));
    else
        s->run = emit_format(e, "ptx_matrix_store(B, first, %u, %d);", count, transposed);
}

/* movmatrix.sync.aligned.m8n8.trans.b16 d, a */
void read_matrix_transpose(struct emit *e, struct sync *s)
{
    emit_take(e, "sync");
    emit_take(e, "aligned");
    if (!emit_take(e, "m8n8") || !emit_take(e, "trans") || emit_take_type(e) != PTX_B16 ||
        !emit_expect_operands(e, 2, 2)) {
        emit_refuse(e, "this form");
        return;
    }
    s->mask = &whole_warp;
    add_word(e, s, emit_in(e, 1, PTX_B32));
    s->run = emit_format(e, "uint32_t d_[1][32]; ptx_matrix_transpose(B, first, d_);%s",
                         put_results(e, list_at(e, 0), false));
}
