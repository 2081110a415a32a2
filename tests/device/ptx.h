/* PTX in memory, and the passes over it: read (ptx_lex.c, ptx_parse*.c), flow (ptx_flow.c), C (ptx_emit*.c).
 *
 * Everything hangs in the arena of its module and lives as long as it. Names are interned there, so that equal
 * names are equal pointers. A function's registers are numbered from 0 across all its scopes. */
#pragma once
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name, spelling, bits, C type of a value */
#define PTX_TYPES(T)                                                                                                   \
    T(NONE, "", 0, "void")                                                                                             \
    T(PRED, "pred", 1, "_Bool")                                                                                        \
    T(B8, "b8", 8, "uint8_t")                                                                                          \
    T(B16, "b16", 16, "uint16_t")                                                                                      \
    T(B32, "b32", 32, "uint32_t")                                                                                      \
    T(B64, "b64", 64, "uint64_t")                                                                                      \
    T(B128, "b128", 128, "u128")                                                                                       \
    T(U8, "u8", 8, "uint8_t")                                                                                          \
    T(U16, "u16", 16, "uint16_t")                                                                                      \
    T(U32, "u32", 32, "uint32_t")                                                                                      \
    T(U64, "u64", 64, "uint64_t")                                                                                      \
    T(S8, "s8", 8, "int8_t")                                                                                           \
    T(S16, "s16", 16, "int16_t")                                                                                       \
    T(S32, "s32", 32, "int32_t")                                                                                       \
    T(S64, "s64", 64, "int64_t")                                                                                       \
    T(F16, "f16", 16, "uint16_t")                                                                                      \
    T(F16X2, "f16x2", 32, "uint32_t")                                                                                  \
    T(BF16, "bf16", 16, "uint16_t")                                                                                    \
    T(BF16X2, "bf16x2", 32, "uint32_t")                                                                                \
    T(TF32, "tf32", 32, "uint32_t")                                                                                    \
    T(F32, "f32", 32, "float")                                                                                         \
    T(F32X2, "f32x2", 64, "uint64_t")                                                                                  \
    T(F64, "f64", 64, "double")                                                                                        \
    T(U16X2, "u16x2", 32, "uint32_t")                                                                                  \
    T(S16X2, "s16x2", 32, "uint32_t") T(E4M3X2, "e4m3x2", 16, "uint16_t") T(E5M2X2, "e5m2x2", 16, "uint16_t")

enum ptx_type {
#define T(name, spelling, bits, c) PTX_##name,
    PTX_TYPES(T)
#undef T
        PTX_TYPE_COUNT
};

enum ptx_space { PTX_GENERIC, PTX_REG, PTX_GLOBAL, PTX_CONST, PTX_SHARED, PTX_LOCAL, PTX_PARAM };

/* ---- arena and names ---- */
struct ptx_arena {
    struct ptx_chunk *chunk;
};
void *arena_take(struct ptx_arena *arena, size_t bytes); /* zeroed; aborts when memory is out */
const char *arena_format(struct ptx_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_release(struct ptx_arena *arena);

/* A text that grows at its end. */
struct ptx_text {
    char *data;
    size_t used, room;
};
void text_append(struct ptx_text *text, const char *data, size_t bytes);
void text_release(struct ptx_text *text);

/* ---- the module ---- */
struct ptx_fixup { /* an address in an initial value */
    struct ptx_fixup *next;
    size_t at;
    uint32_t bytes; /* written: the address shifted right by `shift`, low bytes */
    uint32_t shift;
    const char *symbol;
    int64_t addend;
    uint32_t line;
};

struct ptx_variable {
    const char *name;
    enum ptx_space space;
    enum ptx_type type;
    uint32_t align;
    uint32_t number; /* GLOBAL, CONST: index among the module's; else unique in its function */
    size_t bytes;
    size_t offset;    /* PARAM of an entry: in the argument block; LOCAL: in the frame */
    bool is_extern;   /* SHARED: dynamic */
    bool is_placed;   /* SHARED: has an offset in the entry being laid out */
    uint8_t *initial; /* or NULL */
    struct ptx_fixup *fixups;
    struct ptx_variable *next;
};

enum ptx_operand_kind {
    PTX_OP_NONE,
    PTX_OP_REG,  /* reg, is_negated */
    PTX_OP_SINK, /* _ */
    PTX_OP_INT,  /* bits */
    PTX_OP_F32,
    PTX_OP_F64,      /* bits */
    PTX_OP_SPECIAL,  /* name */
    PTX_OP_VARIABLE, /* variable + offset */
    PTX_OP_FUNCTION, /* function */
    PTX_OP_LABEL,    /* label, an instruction index once the body is read */
    PTX_OP_ADDRESS,  /* [elements[0] + offset] */
    PTX_OP_LIST,     /* {a, b} or (a, b) */
    PTX_OP_PAIR,     /* p|q as elements */
    PTX_OP_TABLE,    /* branch targets: elements are labels */
    PTX_OP_PROTOTYPE /* of an indirect call */
};

struct ptx_operand {
    enum ptx_operand_kind kind;
    bool is_negated;
    uint32_t reg, label, count;
    int64_t offset;
    uint64_t bits;
    const char *name;
    struct ptx_variable *variable;
    struct ptx_function *function;
    struct ptx_operand *elements;
};

#define PTX_MODIFIERS 16
#define PTX_NO_REG    UINT32_MAX
#define PTX_NO_LABEL  UINT32_MAX

struct ptx_insn {
    uint32_t line;
    uint32_t guard; /* PTX_NO_REG: always */
    bool guard_is_negated;
    const struct ptx_op *op; /* never NULL */
    const char *opcode;      /* as written, modifiers left out */
    uint32_t modifier_count, operand_count;
    const char *modifiers[PTX_MODIFIERS];
    struct ptx_operand *operands;
};

struct ptx_register {
    enum ptx_type type;
    bool is_float;
};

struct ptx_function {
    const char *name;
    uint32_t line, number;
    bool is_entry, has_body, is_folded, is_stepped;
    bool is_taken;                         /* its address is a value somewhere in the module */
    struct ptx_variable *params, *returns; /* in order */
    uint32_t param_count, return_count;
    struct ptx_variable *locals; /* .local, .shared, .param inside the body */
    struct ptx_register *regs;
    uint32_t reg_count, reg_room;
    struct ptx_insn *insns;
    uint32_t insn_count, insn_room;
    uint32_t variable_count;
    uint32_t max_threads;
    uint32_t refused_line; /* an instruction nobody knows: the function is refused when used */
    const char *refused;
    struct ptx_function *next;
};

struct ptx_module {
    struct ptx_arena arena;
    struct ptx_name **names;        /* interned, a hash table */
    uint32_t version, target;       /* 90 for 9.0; 75 for sm_75 */
    struct ptx_variable *variables; /* GLOBAL, CONST, SHARED */
    struct ptx_variable **last_variable;
    struct ptx_function *functions;
    struct ptx_function **last_function;
    uint32_t global_count, function_count;
};

const char *ptx_intern(struct ptx_module *module, const char *text, size_t bytes);
/* NULL with *error and why on bad input. */
struct ptx_module *ptx_parse(const char *text, size_t bytes, CUresult *error, char *why, size_t why_bytes);
void ptx_module_release(struct ptx_module *module);
/* What the address of a function is to a kernel: a number that only an indirect call understands. */
uint64_t ptx_function_address(const struct ptx_function *function);
struct ptx_function *ptx_find_function(const struct ptx_module *module, const char *name);
struct ptx_variable *ptx_find_variable(const struct ptx_module *module, const char *name);

enum ptx_type ptx_type_named(const char *spelling); /* PTX_NONE if it is no type */
uint32_t ptx_type_bits(enum ptx_type type);
/* The bits of a double as those of the nearest float. */
uint32_t ptx_narrow_double(uint64_t bits);
const char *ptx_type_c(enum ptx_type type);
bool ptx_type_is_float(enum ptx_type type); /* f32 or f64: a C float */
bool ptx_type_is_signed(enum ptx_type type);

/* ---- operations ---- */
enum ptx_flow_kind {
    PTX_FLOW_NEXT,   /* goes on */
    PTX_FLOW_BRANCH, /* bra, brx */
    PTX_FLOW_END,    /* ret, exit */
    PTX_FLOW_STOP,   /* trap */
    PTX_FLOW_SYNC    /* the thread stops here until others have arrived */
};

struct emit;
struct ptx_op {
    const char *name;
    uint8_t outputs; /* how many leading operands are written */
    enum ptx_flow_kind flow;
    void (*emit)(struct emit *e); /* writes C for e->insn, or refuses */
};
const struct ptx_op *ptx_op_named(const char *name); /* by the word before the first dot; NULL if unknown */
bool ptx_insn_is_sync(const struct ptx_insn *insn);
/* A load that is one with what other threads store: volatile, relaxed, acquire. */
bool ptx_insn_is_strong_load(const struct ptx_insn *insn);
/* "poll" is ours: it stands ahead of a load (or mbarrier wait) in a loop that only waits, and lets others run. */
void ptx_mark_polls(struct ptx_function *function);
uint32_t ptx_insn_outputs(const struct ptx_insn *insn); /* leading operands that are written */

/* ---- flow ---- */
struct ptx_block_of_code {
    uint32_t first, end; /* instructions [first, end) */
    uint32_t successor_count;
    uint32_t *successors; /* blocks; without those reached only through a suspension */
    uint32_t resume;      /* where the last instruction is a sync: the block behind it; else UINT32_MAX */
    uint32_t sync;        /* its number, or UINT32_MAX */
    bool is_reached;
    uint64_t *live_in; /* bit sets over registers */
};

struct ptx_flow {
    const struct ptx_function *function;
    uint32_t block_count, sync_count, words;
    struct ptx_block_of_code *blocks;
    uint32_t *block_of; /* instruction -> block */
    uint32_t *syncs;    /* sync number -> block that ends with it */
};
struct ptx_flow *ptx_flow_build(struct ptx_arena *arena, const struct ptx_function *function);

/* The registers that are live where the block begins, of a function without syncs too. */
const uint64_t *ptx_flow_live_in(struct ptx_arena *arena, struct ptx_flow *flow, uint32_t block);

/* Calls visit for each register that the instruction reads (written false) or writes. */
void ptx_visit_registers(const struct ptx_insn *insn, void (*visit)(void *context, uint32_t reg, bool written),
                         void *context);

/* ---- C ---- */
/* What an emitted entry needs at run time besides its code. */
struct ptx_layout {
    size_t param_bytes, shared_bytes, local_bytes;
    bool uses_dynamic_shared, polls; /* polls: strong loads in a loop */
};
void ptx_layout_entry(struct ptx_module *module, struct ptx_function *entry, struct ptx_layout *layout);

/* Appends C for the entry, with the functions it calls, to `text`. False with why where something is refused. */
bool ptx_emit_entry(struct ptx_module *module, struct ptx_function *entry, struct ptx_text *text, char *why,
                    size_t why_bytes);
