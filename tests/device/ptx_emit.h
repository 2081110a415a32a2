/* What the files that write C share. One struct emit per entry; handlers of operations (ptx_emit_*.c, found through
 * the table in ptx_ops.c) write the statement for e->insn. Registers are C variables r0, r1, ... of the type they are
 * declared with; the place of a thread is t, x, y, z; B is its block, S its shared memory, P its parameters. */
#pragma once
#include "tests/device/ptx.h"
#include "tests/device/ptx_shape.h"

struct emit {
    struct ptx_module *module;
    struct ptx_arena *arena;
    struct ptx_text *text;
    struct ptx_function *entry;
    struct ptx_function *function; /* being written: the entry or one that it calls */
    const struct ptx_flow *flow;
    const struct ptx_layout *layout;
    const struct ptx_insn *insn;
    uint32_t used_modifiers;        /* bits of insn->modifiers that a handler has understood */
    uint32_t used_operands;         /* bits of insn->operands that a handler has read or written */
    uint32_t block;                 /* being written */
    const uint32_t *slots;          /* register -> byte offset, UINT32_MAX without */
    const uint8_t *changed;         /* registers that the region writes */
    const struct ptx_shape *shapes; /* of the entry's registers; NULL in other functions */
    uint32_t exchange_words;        /* most that a sync has */
    bool failed;
    char *why;
    size_t why_bytes;
};

void emit_refuse(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emit_c(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- modifiers: those that no handler takes make the instruction refused ---- */
bool emit_take(struct emit *e, const char *modifier);
int emit_take_of(struct emit *e, const char *const *choices); /* index of the first present; -1: none */
enum ptx_type emit_take_type(struct emit *e);                 /* the first type not yet taken, or PTX_NONE */
enum ptx_space emit_take_space(struct emit *e);               /* PTX_GENERIC if none is named */
uint32_t emit_take_vector(struct emit *e);                    /* 1, 2, 4, 8 */
void emit_take_hints(struct emit *e);                         /* about caches: they change nothing here */
int emit_take_order(struct emit *e); /* .weak is 0, anything stronger above, -1 if none; the scope with it */
bool emit_expect_operands(struct emit *e, uint32_t least, uint32_t most);
/* Operands that no handler uses make the instruction refused, too. Reading and writing marks them. */
void emit_use_operand(struct emit *e, const struct ptx_operand *operand);

/* ---- values ---- */
const char *emit_value(struct emit *e, const struct ptx_operand *operand, enum ptx_type type);
const char *emit_in(struct emit *e, uint32_t index, enum ptx_type type);
void emit_set(struct emit *e, const struct ptx_operand *operand, enum ptx_type type, const char *expression);
void emit_out(struct emit *e, enum ptx_type type, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *emit_address(struct emit *e, const struct ptx_operand *operand, enum ptx_space space);
const char *emit_special(struct emit *e, const char *name);
const char *emit_variable(struct emit *e, const struct ptx_variable *variable, int64_t offset, bool generic);
bool emit_constant(const struct ptx_operand *operand, uint64_t *bits);
const char *emit_format(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *ptx_register_c(const struct ptx_register *reg);
bool ptx_in_frame(const struct emit *e, const struct ptx_variable *variable);

/* What is computed ahead of a loop over threads (ptx_emit_head.c). `used` marks registers
 * that the region touches: 1, or 2 where one is the base of an address. */
void emit_head(struct emit *e, const uint8_t *used);
bool emit_is_hoisted(const struct emit *e, uint32_t reg);
void emit_loop_values(struct emit *e, const uint8_t *used);
void emit_insn(struct emit *e, const struct ptx_insn *insn);

/* The suspension at a sync, and the tables that describe it (ptx_emit_sync.c). */
void emit_suspend(struct emit *e);
void emit_syncs(struct emit *e);
void emit_jump(struct emit *e, uint32_t label);
const char *emit_function_name(struct emit *e, const struct ptx_function *function);

/* The handlers. Those of one name for integers and floats start in ptx_emit_float.c. */
#define OP(name, outputs, flow, handler) void emit_##handler(struct emit *e);
#include "tests/device/ptx_ops.def"
#undef OP
void emit_int_add(struct emit *e, enum ptx_type type);
void emit_int_mul(struct emit *e, enum ptx_type type);
void emit_int_mad(struct emit *e, enum ptx_type type);
void emit_int_div(struct emit *e, enum ptx_type type);
void emit_int_minmax(struct emit *e, enum ptx_type type);
