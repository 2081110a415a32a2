/* The instructions of a kernel and of the functions it calls, reduced to what moves values between names:
 * built by code_steps.c, interpreted by code_flow.c.
 *
 * A name is a register, a parameter, a piece of parameter memory of a call (cell) or a variable; it has one id over
 * the whole analysis. Names of different functions differ. */
#pragma once
#include "shim/code_flow.h"

enum step_kind {
    STEP_NONE,   /* neither moves a value nor touches memory that counts */
    STEP_KILL,   /* its result cannot be an address */
    STEP_UNION,  /* its result may come from any operand */
    STEP_ADDEND, /* a * b + c: only c can be an address */
    STEP_SHIFT_LEFT,
    STEP_LOAD,
    STEP_STORE,
    STEP_ATOMIC,
    STEP_REDUCE,  /* atomic without a result */
    STEP_COPY,    /* cp.async and kin: operand 0 destination, 1 source */
    STEP_TEXTURE, /* reads through a handle */
    STEP_SURFACE, /* writes through a handle */
    STEP_CALL,
    STEP_UNKNOWN
};

enum step_space { IN_GENERIC, IN_GLOBAL, IN_CONST, IN_SHARED, IN_LOCAL, IN_PARAM };

struct place { /* an operand */
    enum operand_form form;
    bool has_immediate;
    int64_t immediate;
    uint32_t first, count; /* slice of steps.ids */
};

struct step {
    enum step_kind kind;
    enum step_space space, source_space; /* source_space: of STEP_COPY */
    uint32_t bytes;                      /* of one element */
    bool is_float, is_tensor;
    bool is_commutative; /* atomics: the order of several does not show in memory */
    bool joins;          /* two narrow values may become one wide one */
    struct slice opcode;
    uint32_t first_place, place_count;
    uint32_t callee; /* STEP_CALL: index of steps.functions */
};

enum name_origin {
    NAME_REGISTER,
    NAME_PARAM,
    NAME_CELL,
    NAME_SHARED,
    NAME_LOCAL,
    NAME_TABLE,
    NAME_VARIABLE,
    NAME_BARRIER
};

struct name {
    struct slice text;
    uint32_t scope;          /* function number + 1; 0: the module's */
    enum name_origin origin; /* TABLE: constant or initialised; VARIABLE: other module memory */
    uint32_t param;          /* NAME_PARAM: which */
    uint32_t definitions, uses;
};

struct reached { /* a function of the analysis */
    const struct text_function *function;
    uint32_t first_formal, formal_count; /* slices of steps.ids */
    uint32_t first_result, result_count;
};

struct steps {
    const struct module_text *module;
    struct arena arena;
    struct reached *functions; /* 0 is the kernel; grows by the calls found */
    uint32_t function_count, function_capacity;
    struct name *names;
    uint32_t name_count, name_capacity;
    uint32_t *name_slots;
    uint32_t slot_count;
    struct step *steps;
    uint32_t step_count, step_capacity;
    struct place *places;
    uint32_t place_count, place_capacity;
    uint32_t *ids;
    uint32_t id_count, id_capacity;
    const char *unreadable_reason, *impure_reason;
};

/* Fills *steps for the kernel; the parameters of the kernel must have the names' `param` in order. The caller
 * releases steps->arena. False with unreadable_reason if the code cannot be understood. */
bool steps_build(struct steps *steps, const struct module_text *module, const struct text_function *entry);
