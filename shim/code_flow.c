#include "shim/code_flow.h"
#include "shim/code_steps.h"
#include <string.h>

/* Origins of a value: one bit each. Element 0 holds the flags below, then one bit per kernel parameter whose
 * address was taken, then one bit per word of the kernel's parameters. */
#define FROM_MEMORY   ((uint64_t)1 << 0) /* at least 8 bytes loaded from memory: may be a pointer */
#define FROM_NARROW   ((uint64_t)1 << 1) /* fewer: may be part of one */
#define FROM_SHARED   ((uint64_t)1 << 2) /* address of shared memory */
#define FROM_LOCAL    ((uint64_t)1 << 3)
#define FROM_TABLE    ((uint64_t)1 << 4) /* address of constant or initialised module memory */
#define FROM_VARIABLE ((uint64_t)1 << 5) /* address of other module memory */
#define FROM_BARRIER  ((uint64_t)1 << 6) /* address of the driver's grid barrier */

struct flow {
    struct steps steps;
    struct code_facts *facts;
    struct code_param *params;
    uint64_t *origins;                       /* width elements per name */
    uint32_t width, first_param, first_word; /* in elements */
    uint64_t *shared, *local;                /* what may lie in shared and local memory */
    uint64_t *address, *value;               /* scratch sets */
    uint32_t *base_param;                    /* per name: parameter + 1 that it is the address of, 0 if not known */
    int64_t *base_offset;
    uint64_t *loaded, *stored, *escaped; /* the answer */
    bool has_changed;
};

static uint64_t *origins_of(struct flow *flow, uint32_t id)
{
    return flow->origins + (size_t)id * flow->width;
}

static void join(struct flow *flow, uint64_t *into, const uint64_t *from)
{
    uint64_t added = 0;
    for (uint32_t i = 0; i < flow->width; i++) {
        added |= from[i] & ~into[i];
        into[i] |= from[i];
    }
    flow->has_changed |= added != 0;
}

static void clear(struct flow *flow, uint64_t *set)
{
    memset(set, 0, flow->width * sizeof *set);
}

static void set_bit(uint64_t *bits, uint32_t bit)
{
    bits[bit / 64] |= (uint64_t)1 << (bit % 64);
}

static bool has_words(const struct flow *flow, const uint64_t *set)
{
    uint64_t any = 0;
    for (uint32_t i = flow->first_word; i < flow->width; i++)
        any |= set[i];
    return any != 0;
}

/* Adds the words of parameter `param` that bytes [offset, offset + bytes) overlap. */
static void add_words(struct flow *flow, uint64_t *set, uint32_t param, int64_t offset, int64_t bytes)
{
    const struct code_param *known = &flow->params[param];
    if (offset < 0 || bytes > (int64_t)known->bytes ||
        offset > (int64_t)known->bytes - bytes) { /* not what the text says it is */
        offset = 0;
        bytes = known->bytes;
    }
    for (int64_t word = offset / 8; word * 8 < offset + bytes; word++)
        set_bit(set + flow->first_word, known->first_word + (uint32_t)word);
}

static void add_places(struct flow *flow, uint64_t *set, const struct step *step, uint32_t from, uint32_t to)
{
    for (uint32_t p = from; p < to && p < step->place_count; p++) {
        const struct place *place = &flow->steps.places[step->first_place + p];
        for (uint32_t n = 0; n < place->count; n++) {
            uint32_t id = flow->steps.ids[place->first + n];
            for (uint32_t i = 0; i < flow->width; i++)
                set[i] |= origins_of(flow, id)[i];
            if (flow->steps.names[id].origin == NAME_CELL)
                set[0] |= FROM_LOCAL;
        }
    }
}

static const struct place *place_of(const struct flow *flow, const struct step *step, uint32_t index)
{
    return &flow->steps.places[step->first_place + index];
}

static uint32_t place_id(const struct flow *flow, const struct place *place, uint32_t n)
{
    return flow->steps.ids[place->first + n];
}

/* Joins `set` into every name of the step's first operand. */
static void set_results(struct flow *flow, const struct step *step, const uint64_t *set)
{
    const struct place *result = place_of(flow, step, 0);
    for (uint32_t n = 0; n < result->count; n++) {
        const struct name *name = &flow->steps.names[place_id(flow, result, n)];
        if (name->origin == NAME_REGISTER)
            join(flow, origins_of(flow, place_id(flow, result, n)), set);
    }
}

static void join_narrow(uint64_t *set)
{
    if (set[0] & FROM_NARROW)
        set[0] |= FROM_MEMORY;
}

static void run_arithmetic(struct flow *flow, const struct step *step)
{
    uint32_t count = step->place_count, from = step->kind == STEP_ADDEND ? 3 : 1;
    if (count == 0)
        return;
    clear(flow, flow->value);
    if (step->kind == STEP_SHIFT_LEFT) {
        const struct place *distance = place_of(flow, step, count - 1);
        if (count != 3 || !distance->has_immediate || (distance->immediate > 0 && distance->immediate < 8))
            return;
        add_places(flow, flow->value, step, 1, 2);
        if (distance->immediate >= 8)
            join_narrow(flow->value);
    } else {
        add_places(flow, flow->value, step, from, count);
        if (step->joins)
            join_narrow(flow->value);
    }
    set_results(flow, step, flow->value);
}

/* Origins of the address operand `index` into flow->address; the displacement does not matter. */
static const uint64_t *address_of(struct flow *flow, const struct step *step, uint32_t index)
{
    const struct place *place = place_of(flow, step, index);
    clear(flow, flow->address);
    if (place->count > 0) {
        uint32_t id = place_id(flow, place, 0); /* further names are coordinates */
        memcpy(flow->address, origins_of(flow, id), flow->width * sizeof *flow->address);
        if (flow->steps.names[id].origin == NAME_CELL)
            flow->address[0] |= FROM_LOCAL;
    }
    return flow->address;
}

struct reach_of_access {
    bool global, shared, local;
};

/* Where an access of this space through this address may go. */
static struct reach_of_access reach_of(const struct flow *flow, enum step_space space, const uint64_t *address)
{
    struct reach_of_access reach = {
        .global = space == IN_GLOBAL || space == IN_CONST, .shared = space == IN_SHARED, .local = space == IN_LOCAL};
    if (space != IN_GENERIC)
        return reach;
    reach.shared = address[0] & FROM_SHARED;
    reach.local = address[0] & FROM_LOCAL;
    bool is_param = false;
    for (uint32_t i = flow->first_param; i < flow->first_word; i++)
        is_param |= address[i] != 0;
    reach.global = has_words(flow, address) ||
                   (address[0] & (FROM_MEMORY | FROM_TABLE | FROM_VARIABLE | FROM_BARRIER)) ||
                   !(reach.shared || reach.local || is_param);
    return reach;
}

/* A load from parameter memory: true if the place names it, with the words of element n in *set. */
static bool load_param(struct flow *flow, const struct step *step, const struct place *place, uint32_t n, uint64_t *set)
{
    if (place->count == 0 || (step->space != IN_PARAM && step->space != IN_GENERIC))
        return false;
    uint32_t id = place_id(flow, place, 0);
    const struct name *name = &flow->steps.names[id];
    int64_t at = place->immediate + (int64_t)n * step->bytes;
    if (name->origin == NAME_PARAM) {
        add_words(flow, set, name->param, at, step->bytes);
        return true;
    }
    if (flow->base_param[id]) {
        add_words(flow, set, flow->base_param[id] - 1, flow->base_offset[id] + at, step->bytes);
        return true;
    }
    if (name->origin == NAME_CELL) {
        memcpy(set, origins_of(flow, id), flow->width * sizeof *set);
        return true;
    }
    return false;
}

static void add_named_params(struct flow *flow, uint64_t *set, const uint64_t *address)
{
    for (uint32_t p = 0; p < flow->facts->param_count; p++)
        if (address[flow->first_param + p / 64] >> (p % 64) & 1)
            add_words(flow, set, p, 0, flow->params[p].bytes);
}

static void run_load(struct flow *flow, const struct step *step)
{
    if (step->place_count < 2)
        return;
    const struct place *result = place_of(flow, step, 0), *from = place_of(flow, step, 1);
    const uint64_t *address = address_of(flow, step, 1);
    struct reach_of_access reach = reach_of(flow, step->space, address);
    for (uint32_t n = 0; n < result->count; n++) {
        clear(flow, flow->value);
        if (!load_param(flow, step, from, n, flow->value)) {
            add_named_params(flow, flow->value, address);
            if (reach.global)
                flow->value[0] |= step->bytes >= 8 ? FROM_MEMORY : FROM_NARROW;
            for (uint32_t i = 0; i < flow->width; i++)
                flow->value[i] |= (reach.shared ? flow->shared[i] : 0) | (reach.local ? flow->local[i] : 0);
            if (step->space == IN_PARAM || reach.local) /* through the address of a cell */
                for (uint32_t i = flow->first_word; i < flow->width; i++)
                    flow->value[i] |= address[i];
        }
        uint32_t id = place_id(flow, result, n);
        if (flow->steps.names[id].origin == NAME_REGISTER)
            join(flow, origins_of(flow, id), flow->value);
    }
}

static void run_store(struct flow *flow, const struct step *step)
{
    if (step->place_count < 1)
        return;
    const struct place *to = place_of(flow, step, 0);
    const uint64_t *address = address_of(flow, step, 0);
    struct reach_of_access reach = reach_of(flow, step->space, address);
    clear(flow, flow->value);
    add_places(flow, flow->value, step, 1, step->place_count);
    if (to->count > 0 && flow->steps.names[place_id(flow, to, 0)].origin == NAME_CELL)
        join(flow, origins_of(flow, place_id(flow, to, 0)), flow->value);
    if (reach.shared)
        join(flow, flow->shared, flow->value);
    if (reach.local || step->space == IN_PARAM)
        join(flow, flow->local, flow->value);
}

static void run_call(struct flow *flow, const struct step *step)
{
    const struct reached *callee = &flow->steps.functions[step->callee];
    bool has_results = place_of(flow, step, 0)->form == OPERAND_GROUP;
    uint32_t arguments = has_results ? 2 : 1;
    if (arguments < step->place_count) {
        const struct place *given = place_of(flow, step, arguments);
        for (uint32_t n = 0; n < given->count && n < callee->formal_count; n++)
            join(flow, origins_of(flow, flow->steps.ids[callee->first_formal + n]),
                 origins_of(flow, place_id(flow, given, n)));
    }
    if (!has_results)
        return;
    const struct place *taken = place_of(flow, step, 0);
    for (uint32_t n = 0; n < taken->count && n < callee->result_count; n++)
        join(flow, origins_of(flow, place_id(flow, taken, n)),
             origins_of(flow, flow->steps.ids[callee->first_result + n]));
}

static void run_copy(struct flow *flow, const struct step *step)
{
    if (step->space != IN_SHARED || step->source_space == IN_SHARED)
        return;
    clear(flow, flow->value);
    flow->value[0] = FROM_MEMORY | FROM_NARROW;
    join(flow, flow->shared, flow->value);
}

static void run_step(struct flow *flow, const struct step *step)
{
    switch (step->kind) {
    case STEP_UNION:
    case STEP_ADDEND:
    case STEP_SHIFT_LEFT:
        run_arithmetic(flow, step);
        break;
    case STEP_LOAD:
        run_load(flow, step);
        break;
    case STEP_ATOMIC: /* its result is what was there; what it leaves counts as a store */
        run_load(flow, step);
        if (step->space == IN_SHARED || step->space == IN_GENERIC) {
            clear(flow, flow->value);
            add_places(flow, flow->value, step, 2, step->place_count);
            join(flow, flow->shared, flow->value);
        }
        break;
    case STEP_STORE:
    case STEP_REDUCE:
        run_store(flow, step);
        break;
    case STEP_COPY:
        run_copy(flow, step);
        break;
    case STEP_CALL:
        run_call(flow, step);
        break;
    case STEP_TEXTURE:
        clear(flow, flow->value);
        flow->value[0] = FROM_NARROW;
        set_results(flow, step, flow->value);
        break;
    default:
        break;
    }
}

/* Judging: what the addresses, now known, say about the kernel. */

static void say_impure(struct flow *flow, const char *reason)
{
    if (!flow->facts->impure_reason)
        flow->facts->impure_reason = reason;
}

static void mark_words(struct flow *flow, uint64_t *marks, const uint64_t *set)
{
    for (uint32_t i = flow->first_word; i < flow->width; i++)
        marks[i - flow->first_word] |= set[i];
}

/* An access to global memory through operand `index`. False if it only serves the grid barrier. */
static bool judge_access(struct flow *flow, const struct step *step, uint32_t index, enum step_space space,
                         bool is_load, bool is_store)
{
    if (index >= step->place_count || space == IN_PARAM)
        return true;
    const uint64_t *address = address_of(flow, step, index);
    if (!reach_of(flow, space, address).global)
        return true;
    bool is_indirect = address[0] & FROM_MEMORY, has_param = has_words(flow, address);
    bool is_module = address[0] & (FROM_TABLE | FROM_VARIABLE);
    if ((address[0] & FROM_BARRIER) && !is_indirect && !has_param && !is_module)
        return false;
    is_indirect |= !has_param && !is_module; /* we do not know where it comes from */
    if (is_load) {
        mark_words(flow, flow->loaded, address);
        flow->facts->has_indirect_load |= is_indirect;
        flow->facts->reads_module_memory |= is_module;
        if (address[0] & FROM_VARIABLE)
            say_impure(flow, "reads a module variable");
    }
    if (is_store) {
        mark_words(flow, flow->stored, address);
        flow->facts->has_indirect_store |= is_indirect;
        flow->facts->writes_module_memory |= is_module;
        if (is_module)
            say_impure(flow, "writes a module variable");
    }
    return true;
}

/* Operands from `first` on are written to memory through operand `index`: pointers among them can be found there. */
static void judge_escape(struct flow *flow, const struct step *step, uint32_t index, uint32_t first)
{
    if (index >= step->place_count || step->bytes < 8 || step->space == IN_PARAM ||
        !reach_of(flow, step->space, address_of(flow, step, index)).global)
        return;
    clear(flow, flow->value);
    add_places(flow, flow->value, step, first, step->place_count);
    mark_words(flow, flow->escaped, flow->value);
}

static void judge_atomic(struct flow *flow, const struct step *step)
{
    uint32_t address = step->kind == STEP_ATOMIC ? 1 : 0;
    if (!judge_access(flow, step, address, step->space, true, true))
        return;
    judge_escape(flow, step, address, address + 1);
    if (!step->is_commutative)
        say_impure(flow, step->is_float ? "adds floating-point numbers by atomics" : "exchanges by atomics");
    if (step->kind != STEP_ATOMIC || step->place_count == 0)
        return;
    const struct place *result = place_of(flow, step, 0);
    for (uint32_t n = 0; n < result->count; n++)
        if (flow->steps.names[place_id(flow, result, n)].uses > 0)
            say_impure(flow, "uses the result of an atomic");
}

/* A tensor map is the address of a parameter, or memory that is reached through a pointer. */
static void judge_tensor_map(struct flow *flow, const struct step *step, uint32_t index, bool is_store)
{
    const uint64_t *address = address_of(flow, step, index);
    clear(flow, flow->value);
    add_named_params(flow, flow->value, address);
    if (!has_words(flow, flow->value)) {
        judge_access(flow, step, index, IN_GLOBAL, true, false);
        if (is_store)
            flow->facts->has_indirect_store = true;
        else
            flow->facts->has_indirect_load = true;
        return;
    }
    mark_words(flow, is_store ? flow->stored : flow->loaded, flow->value);
}

static void judge_copy(struct flow *flow, const struct step *step)
{
    bool is_reduction = slice_starts(step->opcode, "cp.reduce");
    bool is_store = step->space == IN_GLOBAL;
    if (step->place_count < 2)
        return;
    if (is_reduction && !step->is_commutative)
        say_impure(flow, "adds floating-point numbers by atomics");
    if (step->is_tensor) {
        judge_tensor_map(flow, step, is_store ? 0 : 1, is_store);
        if (is_store && is_reduction)
            judge_tensor_map(flow, step, 0, false);
        return;
    }
    if (is_store && step->source_space == IN_SHARED)
        mark_words(flow, flow->escaped, flow->shared);
    judge_access(flow, step, 0, step->space, is_reduction, true);
    judge_access(flow, step, 1, step->source_space, true, false);
}

static void judge_step(struct flow *flow, const struct step *step)
{
    switch (step->kind) {
    case STEP_LOAD:
        judge_access(flow, step, 1, step->space, true, false);
        break;
    case STEP_STORE:
        judge_access(flow, step, 0, step->space, false, true);
        judge_escape(flow, step, 0, 1);
        break;
    case STEP_ATOMIC:
    case STEP_REDUCE:
        judge_atomic(flow, step);
        break;
    case STEP_COPY:
        judge_copy(flow, step);
        break;
    case STEP_TEXTURE:
        flow->facts->has_indirect_load = true;
        break;
    case STEP_SURFACE:
        flow->facts->has_indirect_load = flow->facts->has_indirect_store = true;
        break;
    default:
        break;
    }
}

/* Setting up */

/* Registers that are set once, to a parameter's address plus a constant, keep the exact place. */
static void find_bases(struct flow *flow)
{
    for (uint32_t s = 0; s < flow->steps.step_count; s++) {
        const struct step *step = &flow->steps.steps[s];
        bool is_add = slice_starts(step->opcode, "add.") && step->place_count == 3;
        bool is_move =
            (slice_starts(step->opcode, "mov.") || slice_starts(step->opcode, "cvta")) && step->place_count == 2;
        if (!is_add && !is_move)
            continue;
        const struct place *to = place_of(flow, step, 0), *from = place_of(flow, step, 1);
        int64_t offset = is_add ? place_of(flow, step, 2)->immediate : from->immediate;
        if (to->count != 1 || from->count != 1 || (is_add && place_of(flow, step, 2)->count != 0))
            continue;
        uint32_t id = place_id(flow, to, 0), source = place_id(flow, from, 0);
        const struct name *name = &flow->steps.names[source];
        if (flow->steps.names[id].definitions != 1)
            continue;
        flow->base_param[id] = name->origin == NAME_PARAM ? name->param + 1 : flow->base_param[source];
        flow->base_offset[id] = name->origin == NAME_PARAM ? offset : flow->base_offset[source] + offset;
    }
}

static void set_first_origins(struct flow *flow)
{
    static const uint64_t flags[] = {[NAME_SHARED] = FROM_SHARED,
                                     [NAME_LOCAL] = FROM_LOCAL,
                                     [NAME_TABLE] = FROM_TABLE,
                                     [NAME_VARIABLE] = FROM_VARIABLE,
                                     [NAME_BARRIER] = FROM_BARRIER};
    for (uint32_t id = 0; id < flow->steps.name_count; id++) {
        const struct name *name = &flow->steps.names[id];
        if (name->origin == NAME_PARAM)
            set_bit(origins_of(flow, id) + flow->first_param, name->param);
        else
            origins_of(flow, id)[0] = flags[name->origin];
    }
}

/* The kernel's parameters, laid out by natural alignment; each starts a new word of the bitmaps. */
static bool read_params(struct code_facts *facts, const struct text_function *entry, struct arena *keep,
                        struct code_param **out)
{
    struct text_declaration declaration;
    bool is_register;
    uint32_t count = 0, words = 0;
    size_t offset = 0;
    for (struct slice list = entry->params; text_next_param(&list, &declaration, &is_register);)
        count++;
    struct code_param *params = arena_take(keep, (count + 1) * sizeof *params);
    if (!params)
        return false;
    struct slice list = entry->params;
    for (uint32_t i = 0; i < count && text_next_param(&list, &declaration, &is_register); i++) {
        size_t align = declaration.align ? declaration.align : 1;
        if (declaration.bytes > 65536 || offset > 1 << 20 || align > 4096)
            return false;
        offset = (offset + align - 1) / align * align;
        params[i] =
            (struct code_param){.bytes = (uint32_t)declaration.bytes, .offset = (uint32_t)offset, .first_word = words};
        facts->has_unaligned_params |= declaration.bytes > 8 && align < 8;
        offset += declaration.bytes;
        words += (uint32_t)(declaration.bytes + 7) / 8;
    }
    facts->params = *out = params;
    facts->param_count = count;
    facts->word_count = words;
    return true;
}

static bool take_tables(struct flow *flow, struct arena *keep)
{
    struct arena *arena = &flow->steps.arena;
    size_t words = (flow->facts->word_count + 63) / 64, names = flow->steps.name_count;
    flow->first_param = 1;
    flow->first_word = flow->first_param + (flow->facts->param_count + 63) / 64;
    flow->width = flow->first_word + (uint32_t)words;
    flow->origins = arena_take(arena, (names + 1) * flow->width * sizeof(uint64_t));
    flow->shared = arena_take(arena, flow->width * sizeof(uint64_t));
    flow->local = arena_take(arena, flow->width * sizeof(uint64_t));
    flow->address = arena_take(arena, flow->width * sizeof(uint64_t));
    flow->value = arena_take(arena, flow->width * sizeof(uint64_t));
    flow->base_param = arena_take(arena, (names + 1) * sizeof *flow->base_param);
    flow->base_offset = arena_take(arena, (names + 1) * sizeof *flow->base_offset);
    flow->loaded = arena_take(keep, (words + 1) * sizeof(uint64_t));
    flow->stored = arena_take(keep, (words + 1) * sizeof(uint64_t));
    flow->escaped = arena_take(keep, (words + 1) * sizeof(uint64_t));
    flow->facts->escaped_words = flow->escaped;
    flow->facts->loaded_words = flow->loaded;
    flow->facts->stored_words = flow->stored;
    return !arena->has_failed && !keep->has_failed;
}

static const char *run(struct flow *flow, const struct module_text *module, const struct text_function *entry,
                       struct arena *keep)
{
    if (!steps_build(&flow->steps, module, entry))
        return flow->steps.unreadable_reason;
    if (!take_tables(flow, keep))
        return "no memory to read the code";
    set_first_origins(flow);
    find_bases(flow);
    flow->facts->impure_reason = flow->steps.impure_reason;
    do {
        flow->has_changed = false;
        for (uint32_t s = 0; s < flow->steps.step_count; s++)
            run_step(flow, &flow->steps.steps[s]);
    } while (flow->has_changed);
    for (uint32_t s = 0; s < flow->steps.step_count; s++)
        judge_step(flow, &flow->steps.steps[s]);
    return NULL;
}

struct code_facts *flow_analyse(const struct module_text *module, const struct text_function *entry, struct arena *keep)
{
    struct flow flow = {.facts = arena_take(keep, sizeof *flow.facts)};
    char *name = arena_take(keep, entry->name.bytes + 1);
    if (!flow.facts || !name)
        return NULL;
    memcpy(name, entry->name.at, entry->name.bytes);
    flow.facts->name = name;
    if (read_params(flow.facts, entry, keep, &flow.params))
        flow.facts->unreadable_reason = run(&flow, module, entry, keep);
    else
        flow.facts->unreadable_reason = "its parameters are not understood";
    arena_release(&flow.steps.arena);
    return flow.facts;
}
