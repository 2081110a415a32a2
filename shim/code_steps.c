#include "shim/code_steps.h"
#include <string.h>

#define GROW(steps, array, count, capacity)                                                                            \
    grow(&(steps)->arena, (void **)&(steps)->array, (steps)->count, &(steps)->capacity, sizeof *(steps)->array)

/* Room for one more element; the old array is left to the arena. */
static bool grow(struct arena *arena, void **array, uint32_t count, uint32_t *capacity, size_t element)
{
    if (count < *capacity)
        return true;
    uint32_t wanted = *capacity ? *capacity * 2 : 64;
    void *bigger = arena_take(arena, wanted * element);
    if (!bigger)
        return false;
    if (count)
        memcpy(bigger, *array, count * element);
    *array = bigger;
    *capacity = wanted;
    return true;
}

static bool fail(struct steps *steps, const char *reason)
{
    if (!steps->unreadable_reason)
        steps->unreadable_reason = steps->arena.has_failed ? "no memory to read the code" : reason;
    return false;
}

static void say_impure(struct steps *steps, const char *reason)
{
    if (!steps->impure_reason)
        steps->impure_reason = reason;
}

/* Names */

static bool rehash(struct steps *steps)
{
    uint32_t wanted = steps->slot_count ? steps->slot_count * 2 : 1024;
    uint32_t *slots = arena_take(&steps->arena, wanted * sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t id = 0; id < steps->name_count; id++) {
        uint64_t at = slice_hash(steps->names[id].text, steps->names[id].scope);
        while (slots[at & (wanted - 1)])
            at++;
        slots[at & (wanted - 1)] = id + 1;
    }
    steps->name_slots = slots;
    steps->slot_count = wanted;
    return true;
}

static uint32_t *find_slot(struct steps *steps, struct slice text, uint32_t scope)
{
    for (uint64_t at = slice_hash(text, scope);; at++) {
        uint32_t *slot = &steps->name_slots[at & (steps->slot_count - 1)];
        if (!*slot)
            return slot;
        const struct name *name = &steps->names[*slot - 1];
        if (name->scope == scope && name->text.bytes == text.bytes && !memcmp(name->text.at, text.at, text.bytes))
            return slot;
    }
}

#define NO_NAME UINT32_MAX

/* A new id for (text, scope); an older one of the same spelling is hidden from now on (scopes of calls). */
static uint32_t declare(struct steps *steps, struct slice text, uint32_t scope, enum name_origin origin)
{
    if (!GROW(steps, names, name_count, name_capacity) ||
        ((steps->name_count + 1) * 2 > steps->slot_count && !rehash(steps))) {
        fail(steps, "no memory");
        return NO_NAME;
    }
    uint32_t id = steps->name_count++;
    steps->names[id] = (struct name){.text = text, .scope = scope, .origin = origin};
    *find_slot(steps, text, scope) = id + 1;
    return id;
}

static void note_special(struct steps *steps, struct slice text)
{
    static const struct {
        const char *start, *reason;
    } rows[] = {{"%clock", "reads a clock"},
                {"%globaltimer", "reads a clock"},
                {"%smid", "asks which multiprocessor it runs on"},
                {"%nsmid", "asks which multiprocessor it runs on"},
                {"%warpid", "asks which warp slot it runs in"},
                {"%nwarpid", "asks which warp slot it runs in"},
                {"%gridid", "reads a launch number"},
                {"%pm", "reads a performance counter"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (slice_starts(text, rows[i].start))
            say_impure(steps, rows[i].reason);
}

static uint32_t resolve(struct steps *steps, struct slice text, uint32_t scope)
{
    static const enum name_origin origins[] = {[SPACE_SHARED] = NAME_SHARED,
                                               [SPACE_LOCAL] = NAME_LOCAL,
                                               [SPACE_CONST] = NAME_TABLE,
                                               [SPACE_GLOBAL] = NAME_VARIABLE};
    if (steps->slot_count) {
        uint32_t slot = *find_slot(steps, text, scope);
        if (slot)
            return slot - 1;
    }
    if (text.at[0] == '%') {
        note_special(steps, text);
        return declare(steps, text, scope, slice_starts(text, "%envreg") ? NAME_BARRIER : NAME_REGISTER);
    }
    const struct text_variable *variable = module_find_variable(steps->module, text);
    if (!variable)
        return declare(steps, text, scope, NAME_REGISTER);
    enum name_origin origin = origins[variable->space];
    return declare(steps, text, scope, origin == NAME_VARIABLE && variable->has_initial ? NAME_TABLE : origin);
}

/* Opcodes */

struct opcode_row {
    const char *name;
    enum step_kind kind;
};

/* By the first part of the opcode. What is not here makes the kernel unreadable. */
static const struct opcode_row opcode_rows[] = {
    {"mov", STEP_UNION},         {"ld", STEP_LOAD},        {"st", STEP_STORE},        {"add", STEP_UNION},
    {"sub", STEP_UNION},         {"mul", STEP_KILL},       {"mad", STEP_ADDEND},      {"fma", STEP_KILL},
    {"cvt", STEP_UNION},         {"cvta", STEP_UNION},     {"setp", STEP_KILL},       {"set", STEP_KILL},
    {"selp", STEP_UNION},        {"slct", STEP_UNION},     {"shl", STEP_SHIFT_LEFT},  {"shr", STEP_UNION},
    {"shf", STEP_UNION},         {"and", STEP_UNION},      {"or", STEP_UNION},        {"xor", STEP_UNION},
    {"not", STEP_UNION},         {"cnot", STEP_KILL},      {"lop3", STEP_UNION},      {"neg", STEP_UNION},
    {"abs", STEP_UNION},         {"min", STEP_UNION},      {"max", STEP_UNION},       {"bra", STEP_NONE},
    {"brx", STEP_NONE},          {"ret", STEP_NONE},       {"exit", STEP_NONE},       {"trap", STEP_NONE},
    {"brkpt", STEP_NONE},        {"bar", STEP_NONE},       {"barrier", STEP_NONE},    {"membar", STEP_NONE},
    {"fence", STEP_NONE},        {"call", STEP_CALL},      {"atom", STEP_ATOMIC},     {"red", STEP_REDUCE},
    {"addc", STEP_UNION},        {"subc", STEP_UNION},     {"madc", STEP_ADDEND},     {"mul24", STEP_KILL},
    {"mad24", STEP_ADDEND},      {"div", STEP_KILL},       {"rem", STEP_KILL},        {"sad", STEP_KILL},
    {"popc", STEP_KILL},         {"clz", STEP_KILL},       {"bfind", STEP_KILL},      {"fns", STEP_KILL},
    {"brev", STEP_KILL},         {"bfe", STEP_UNION},      {"bfi", STEP_UNION},       {"prmt", STEP_UNION},
    {"szext", STEP_UNION},       {"bmsk", STEP_KILL},      {"dp4a", STEP_KILL},       {"dp2a", STEP_KILL},
    {"rcp", STEP_KILL},          {"sqrt", STEP_KILL},      {"rsqrt", STEP_KILL},      {"sin", STEP_KILL},
    {"cos", STEP_KILL},          {"lg2", STEP_KILL},       {"ex2", STEP_KILL},        {"tanh", STEP_KILL},
    {"testp", STEP_KILL},        {"copysign", STEP_KILL},  {"shfl", STEP_UNION},      {"vote", STEP_KILL},
    {"match", STEP_KILL},        {"redux", STEP_UNION},    {"activemask", STEP_KILL}, {"elect", STEP_KILL},
    {"mma", STEP_KILL},          {"ldmatrix", STEP_KILL},  {"stmatrix", STEP_NONE},   {"movmatrix", STEP_KILL},
    {"cp", STEP_COPY},           {"prefetch", STEP_NONE},  {"prefetchu", STEP_NONE},  {"applypriority", STEP_NONE},
    {"createpolicy", STEP_KILL}, {"nanosleep", STEP_NONE}, {"pmevent", STEP_NONE},    {"mbarrier", STEP_KILL},
    {"wgmma", STEP_KILL},        {"tcgen05", STEP_KILL},   {"setmaxnreg", STEP_NONE}, {"griddepcontrol", STEP_NONE},
    {"isspacep", STEP_KILL},     {"istypep", STEP_KILL},   {"mapa", STEP_UNION},      {"getctarank", STEP_KILL},
    {"tex", STEP_TEXTURE},       {"tld4", STEP_TEXTURE},   {"suld", STEP_TEXTURE},    {"sust", STEP_SURFACE},
    {"sured", STEP_SURFACE},     {"txq", STEP_KILL},       {"suq", STEP_KILL},        {"ldu", STEP_LOAD},
    {"discard", STEP_STORE},     {"vadd", STEP_KILL},      {"vsub", STEP_KILL},       {"vabsdiff", STEP_KILL},
    {"vmin", STEP_KILL},         {"vmax", STEP_KILL},      {"vshl", STEP_KILL},       {"vshr", STEP_KILL},
    {"vset", STEP_KILL},         {"vadd2", STEP_KILL},     {"vsub2", STEP_KILL},      {"vavrg2", STEP_KILL},
    {"vabsdiff2", STEP_KILL},    {"vmin2", STEP_KILL},     {"vmax2", STEP_KILL},      {"vset2", STEP_KILL},
    {"vadd4", STEP_KILL},        {"vsub4", STEP_KILL},     {"vavrg4", STEP_KILL},     {"vabsdiff4", STEP_KILL},
    {"vmin4", STEP_KILL},        {"vmax4", STEP_KILL},     {"vset4", STEP_KILL},      {"pragma", STEP_NONE},
};

static enum step_kind kind_of(struct slice opcode)
{
    struct slice root = {opcode.at, 0};
    while (root.bytes < opcode.bytes && opcode.at[root.bytes] != '.')
        root.bytes++;
    for (size_t i = 0; i < sizeof opcode_rows / sizeof *opcode_rows; i++)
        if (slice_is(root, opcode_rows[i].name))
            return opcode_rows[i].kind;
    if (slice_starts(opcode, "wmma.load"))
        return STEP_LOAD;
    if (slice_starts(opcode, "wmma.store"))
        return STEP_STORE;
    return slice_starts(opcode, "wmma.mma") ? STEP_KILL : STEP_UNKNOWN;
}

/* The state space that stands first at or after `from`; *past is where it ends. */
static enum step_space space_in(struct slice opcode, size_t from, size_t *past)
{
    static const struct {
        const char *suffix;
        enum step_space space;
    } rows[] = {{".global", IN_GLOBAL},
                {".const", IN_CONST},
                {".shared", IN_SHARED},
                {".local", IN_LOCAL},
                {".param", IN_PARAM}};
    for (size_t i = from; i < opcode.bytes; i++) {
        struct slice rest = {opcode.at + i, opcode.bytes - i};
        for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
            if (slice_starts(rest, rows[row].suffix)) {
                *past = i + strlen(rows[row].suffix);
                return rows[row].space;
            }
        }
    }
    *past = opcode.bytes;
    return IN_GENERIC;
}

static uint32_t element_bytes(struct slice opcode)
{
    static const struct {
        const char *suffix;
        uint32_t bytes;
    } rows[] = {{".b128", 16}, {"64", 8}, {"32", 4}, {"f16x2", 4}, {"16", 2}, {"8", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = strlen(rows[i].suffix);
        if (opcode.bytes >= length && !memcmp(opcode.at + opcode.bytes - length, rows[i].suffix, length))
            return rows[i].bytes;
    }
    return 8;
}

static void describe_atomic(struct step *step)
{
    struct slice opcode = step->opcode;
    bool is_swap = slice_has(opcode, ".exch") || slice_has(opcode, ".cas") || slice_has(opcode, ".inc") ||
                   slice_has(opcode, ".dec");
    step->is_commutative = !is_swap && !(step->is_float && slice_has(opcode, ".add"));
}

static void describe_step(struct step *step)
{
    size_t past = 0;
    step->space = space_in(step->opcode, 0, &past);
    step->source_space = space_in(step->opcode, past, &past);
    step->bytes = element_bytes(step->opcode);
    step->is_float = slice_has(step->opcode, ".f16") || slice_has(step->opcode, ".bf16") ||
                     slice_has(step->opcode, ".f32") || slice_has(step->opcode, ".f64");
    step->is_tensor = slice_has(step->opcode, ".tensor");
    step->joins = step->bytes >= 8 && (slice_starts(step->opcode, "mov") || slice_starts(step->opcode, "bfi"));
    if (slice_starts(step->opcode, "cp.reduce"))
        step->is_commutative = !(slice_has(step->opcode, ".add") && (step->is_float || step->is_tensor));
    else
        describe_atomic(step);
    /* cp.async.wait_group, .commit_group, .mbarrier.arrive, prefetches: no data moves into named memory. */
    if (step->kind == STEP_COPY &&
        (slice_has(step->opcode, ".commit_group") || slice_has(step->opcode, ".wait_group") ||
         slice_has(step->opcode, ".wait_all") || slice_starts(step->opcode, "cp.async.mbarrier") ||
         slice_has(step->opcode, ".prefetch")))
        step->kind = STEP_NONE;
}

/* Bodies */

static bool has_result(enum step_kind kind)
{
    return kind == STEP_KILL || kind == STEP_UNION || kind == STEP_ADDEND || kind == STEP_SHIFT_LEFT ||
           kind == STEP_LOAD || kind == STEP_ATOMIC || kind == STEP_TEXTURE;
}

static void count_use(struct steps *steps, const struct step *step, uint32_t place, uint32_t id)
{
    bool is_result = place == 0 && steps->places[step->first_place].form != OPERAND_MEMORY && has_result(step->kind);
    if (step->kind == STEP_CALL)
        is_result = place == 0 && step->place_count > 1 && steps->places[step->first_place].form == OPERAND_GROUP;
    if (is_result)
        steps->names[id].definitions++;
    else
        steps->names[id].uses++;
}

static bool add_places(struct steps *steps, const struct text_statement *statement, uint32_t scope, struct step *step)
{
    step->first_place = steps->place_count;
    step->place_count = statement->operand_count;
    for (uint32_t i = 0; i < statement->operand_count; i++) {
        const struct text_operand *operand = &statement->operands[i];
        if (!GROW(steps, places, place_count, place_capacity))
            return fail(steps, "no memory");
        steps->places[steps->place_count++] = (struct place){.form = operand->form,
                                                             .has_immediate = operand->has_immediate,
                                                             .immediate = operand->immediate,
                                                             .first = steps->id_count,
                                                             .count = operand->name_count};
        for (uint32_t n = 0; n < operand->name_count; n++) {
            uint32_t id = resolve(steps, statement->names[operand->first_name + n], scope);
            if (id == NO_NAME || !GROW(steps, ids, id_count, id_capacity))
                return fail(steps, "no memory");
            steps->ids[steps->id_count++] = id;
            count_use(steps, step, i, id);
        }
    }
    return true;
}

/* Ids for a parameter list, appended to steps->ids. */
static bool add_params(struct steps *steps, struct slice list, uint32_t scope, bool is_entry, uint32_t *first,
                       uint32_t *count)
{
    struct text_declaration declaration;
    bool is_register;
    *first = steps->id_count;
    *count = 0;
    while (text_next_param(&list, &declaration, &is_register)) {
        enum name_origin origin = is_entry ? NAME_PARAM : is_register ? NAME_REGISTER : NAME_CELL;
        uint32_t id = declare(steps, declaration.name, scope, origin);
        if (id == NO_NAME || !GROW(steps, ids, id_count, id_capacity))
            return fail(steps, "no memory");
        steps->names[id].param = (*count)++;
        steps->ids[steps->id_count++] = id;
    }
    return true;
}

/* The number of a function of the analysis, which it joins at its first call. */
static uint32_t reach(struct steps *steps, const struct text_function *function)
{
    for (uint32_t i = 0; i < steps->function_count; i++)
        if (steps->functions[i].function == function)
            return i;
    if (!GROW(steps, functions, function_count, function_capacity))
        return NO_NAME;
    uint32_t number = steps->function_count++;
    struct reached *reached = &steps->functions[number];
    *reached = (struct reached){.function = function};
    if (!add_params(steps, function->params, number + 1, function->is_entry, &reached->first_formal,
                    &reached->formal_count) ||
        !add_params(steps, function->results, number + 1, false, &reached->first_result, &reached->result_count))
        return NO_NAME;
    return number;
}

/* Functions of the CUDA system, called by name and without a body. */
static bool call_system(struct steps *steps, struct slice name)
{
    static const struct {
        const char *name, *reason;
    } rows[] = {{"vprintf", "prints"},
                {"malloc", "allocates device memory"},
                {"free", "allocates device memory"},
                {"__assertfail", NULL},
                {"__assert_fail", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!slice_is(name, rows[i].name))
            continue;
        if (rows[i].reason)
            say_impure(steps, rows[i].reason);
        return true;
    }
    return fail(steps, "calls a function whose code is not in the module");
}

static bool add_call(struct steps *steps, const struct text_statement *statement, struct step *step)
{
    uint32_t callee = statement->operand_count > 0 && statement->operands[0].form == OPERAND_GROUP ? 1 : 0;
    if (callee >= statement->operand_count || statement->operands[callee].name_count != 1)
        return fail(steps, "call of unknown form");
    struct slice name = statement->names[statement->operands[callee].first_name];
    const struct text_function *function = module_find_function(steps->module, name);
    if (!function || function->is_entry)
        return fail(steps, "calls through a function pointer");
    if (!function->body.at) {
        step->kind = STEP_NONE;
        return call_system(steps, name);
    }
    step->callee = reach(steps, function);
    return step->callee != NO_NAME || fail(steps, "no memory");
}

static bool add_statement(struct steps *steps, const struct text_statement *statement, uint32_t scope)
{
    struct step step = {.opcode = statement->opcode, .kind = kind_of(statement->opcode)};
    if (step.kind == STEP_UNKNOWN)
        return fail(steps, "holds an instruction that is not understood");
    describe_step(&step);
    if (slice_starts(step.opcode, "activemask"))
        say_impure(steps, "asks which threads run together");
    if (step.kind == STEP_CALL && !add_call(steps, statement, &step))
        return false;
    if (!add_places(steps, statement, scope, &step))
        return false;
    if (step.kind == STEP_NONE || step.kind == STEP_KILL)
        return true;
    if (!GROW(steps, steps, step_count, step_capacity))
        return fail(steps, "no memory");
    steps->steps[steps->step_count++] = step;
    return true;
}

static bool add_declaration(struct steps *steps, const struct text_statement *statement, uint32_t scope)
{
    enum name_origin origin = slice_starts(statement->opcode, ".param")    ? NAME_CELL
                              : slice_starts(statement->opcode, ".shared") ? NAME_SHARED
                              : slice_starts(statement->opcode, ".local")  ? NAME_LOCAL
                                                                           : NAME_VARIABLE;
    return statement->declared.name.bytes > 0 && declare(steps, statement->declared.name, scope, origin) != NO_NAME;
}

static bool add_function(struct steps *steps, uint32_t number)
{
    struct slice body = steps->functions[number].function->body;
    struct text_statement statement;
    bool is_broken;
    while (text_next_statement(&body, &statement, &is_broken)) {
        bool is_declaration = statement.opcode.at[0] == '.';
        if (!(is_declaration ? add_declaration(steps, &statement, number + 1)
                             : add_statement(steps, &statement, number + 1)))
            return fail(steps, "declares something that is not understood");
    }
    return !is_broken || fail(steps, "its text breaks off");
}

bool steps_build(struct steps *steps, const struct module_text *module, const struct text_function *entry)
{
    *steps = (struct steps){.module = module};
    if (reach(steps, entry) == NO_NAME)
        return fail(steps, "no memory");
    for (uint32_t number = 0; number < steps->function_count; number++)
        if (!add_function(steps, number))
            return false;
    return true;
}
