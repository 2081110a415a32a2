/* The inside of a function: registers, local variables, labels, instructions. */
#include "tests/device/ptx_parse.h"

#include <string.h>

#define REGISTERS_MOST (1u << 22)
#define NESTING_MOST   200

static uint32_t add_registers(struct parser *p, enum ptx_type type, uint64_t count)
{
    struct ptx_function *f = p->function;
    if (count > REGISTERS_MOST || f->reg_count + count > REGISTERS_MOST)
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, "too many registers");
    if (f->reg_count + count > f->reg_room) {
        uint32_t room = (f->reg_count + (uint32_t)count) * 2 + 64;
        struct ptx_register *regs = parse_take(p, room * sizeof *regs);
        if (f->reg_count)
            memcpy(regs, f->regs, f->reg_count * sizeof *regs);
        f->regs = regs;
        f->reg_room = room;
    }
    uint32_t base = f->reg_count;
    for (uint32_t i = 0; i < count; i++)
        f->regs[base + i] = (struct ptx_register){.type = type, .is_float = ptx_type_is_float(type)};
    f->reg_count += (uint32_t)count;
    return base;
}

static void read_registers(struct parser *p)
{
    uint32_t width = 1;
    enum ptx_type type = PTX_NONE;
    while (p->token.kind == PTX_TOKEN_DOT) {
        const char *word = parse_token_text(p);
        if (strcmp(word, "v2") == 0 || strcmp(word, "v4") == 0)
            width = (uint32_t)(word[1] - '0');
        else
            type = ptx_type_named(word);
        parse_next(p);
    }
    if (type == PTX_NONE)
        parse_expected(p, "a register type");
    do {
        struct reg_range *range = parse_take(p, sizeof *range);
        range->prefix = parse_name(p);
        range->prefix_bytes = strlen(range->prefix);
        range->width = width;
        uint64_t count = 1;
        if (parse_accept(p, '<')) {
            count = parse_integer(p);
            range->count = (uint32_t)(count > REGISTERS_MOST ? REGISTERS_MOST : count);
            parse_expect(p, '>');
        }
        range->base = add_registers(p, type, count > REGISTERS_MOST ? count : count * width);
        range->next = p->scope->ranges;
        p->scope->ranges = range;
    } while (parse_accept(p, ','));
    parse_expect(p, ';');
}

/* The first register of the name, or PTX_NO_REG. A range %r<5> has the names %r0 to %r4. */
static uint32_t register_in_range(const struct reg_range *range, const char *name)
{
    if (!range->count)
        return name == range->prefix ? range->base : PTX_NO_REG;
    if (strncmp(name, range->prefix, range->prefix_bytes) != 0)
        return PTX_NO_REG;
    const char *digit = name + range->prefix_bytes;
    if (!*digit || (*digit == '0' && digit[1]))
        return PTX_NO_REG;
    uint64_t number = 0;
    for (; *digit; digit++) {
        if (*digit < '0' || *digit > '9' || number > REGISTERS_MOST)
            return PTX_NO_REG;
        number = number * 10 + (uint64_t)(*digit - '0');
    }
    return number < range->count ? range->base + (uint32_t)number * range->width : PTX_NO_REG;
}

static uint32_t find_register(const struct parser *p, const char *name, uint32_t *width)
{
    for (const struct scope *scope = p->scope; scope; scope = scope->parent) {
        for (const struct reg_range *range = scope->ranges; range; range = range->next) {
            uint32_t reg = register_in_range(range, name);
            if (reg != PTX_NO_REG) {
                *width = range->width;
                return reg;
            }
        }
    }
    return PTX_NO_REG;
}

/* Variables of a scope are chained through a list of their own, as `next` belongs to the function. */
static struct ptx_variable *find_variable(const struct parser *p, const char *name)
{
    for (struct ptx_variable *v = p->function->locals; v; v = v->next)
        if (v->name == name)
            return v;
    for (struct ptx_variable *v = p->function->params; v; v = v->next)
        if (v->name == name)
            return v;
    for (struct ptx_variable *v = p->function->returns; v; v = v->next)
        if (v->name == name)
            return v;
    return ptx_find_variable(p->module, name);
}

static const struct named_table *find_table(const struct parser *p, const char *name)
{
    for (const struct scope *scope = p->scope; scope; scope = scope->parent)
        for (const struct named_table *table = scope->tables; table; table = table->next)
            if (table->name == name)
                return table;
    return NULL;
}

static void use_label(struct parser *p, struct ptx_operand *operand, const char *name)
{
    operand->kind = PTX_OP_LABEL;
    operand->name = name;
    struct label_use *use = parse_take(p, sizeof *use);
    *use = (struct label_use){.next = p->uses, .operand = operand, .scope = p->scope, .line = p->token.line};
    p->uses = use;
}

static bool is_special_name(const char *name)
{
    return name[0] == '%' || strcmp(name, "WARP_SZ") == 0;
}

static void read_component(struct parser *p, struct ptx_operand *operand, uint32_t width)
{
    static const char letters[] = "xyzwrgba";
    const char *letter = p->token.bytes == 1 ? memchr(letters, *p->token.text, 8) : NULL;
    if (!letter || (uint32_t)(letter - letters) % 4 >= width)
        parse_expected(p, "a component of the vector register");
    operand->reg += (uint32_t)(letter - letters) % 4;
    parse_next(p);
}

static void read_register_use(struct parser *p, struct ptx_operand *operand, uint32_t reg, uint32_t width)
{
    operand->kind = PTX_OP_REG;
    operand->reg = reg;
    if (width == 1)
        return;
    if (p->token.kind == PTX_TOKEN_DOT) {
        read_component(p, operand, width);
        return;
    }
    operand->kind = PTX_OP_LIST;
    operand->count = width;
    operand->elements = parse_take(p, width * sizeof *operand->elements);
    for (uint32_t i = 0; i < width; i++)
        operand->elements[i] = (struct ptx_operand){.kind = PTX_OP_REG, .reg = reg + i};
}

static void read_offset(struct parser *p, struct ptx_operand *operand)
{
    if (parse_accept(p, '+') || parse_at(p, '-'))
        operand->offset = (int64_t)((uint64_t)operand->offset + parse_integer(p));
}

static void read_named(struct parser *p, struct ptx_operand *operand)
{
    const char *name = parse_name(p);
    uint32_t width;
    uint32_t reg = find_register(p, name, &width);
    const struct named_table *table;
    if (reg != PTX_NO_REG) {
        read_register_use(p, operand, reg, width);
    } else if (name[0] == '_' && !name[1]) {
        operand->kind = PTX_OP_SINK;
    } else if (is_special_name(name)) {
        operand->kind = PTX_OP_SPECIAL;
        operand->name = name;
        if (p->token.kind == PTX_TOKEN_DOT) {
            operand->name = arena_format(&p->module->arena, "%s.%s", name, parse_token_text(p));
            parse_next(p);
        }
    } else if ((operand->variable = find_variable(p, name))) {
        operand->kind = PTX_OP_VARIABLE;
        operand->name = name;
        if (parse_accept(p, '[')) { /* an element, by its index */
            operand->offset = (int64_t)(parse_integer(p) * (ptx_type_bits(operand->variable->type) / 8));
            parse_expect(p, ']');
        }
    } else if ((operand->function = ptx_find_function(p->module, name))) {
        operand->kind = PTX_OP_FUNCTION;
        operand->name = name;
    } else if ((table = find_table(p, name))) {
        *operand = table->operand;
    } else {
        use_label(p, operand, name);
    }
}

static void read_constant(struct parser *p, struct ptx_operand *operand, bool is_negative)
{
    operand->bits = p->token.bits;
    switch (p->token.kind) {
    case PTX_TOKEN_INT:
        operand->kind = PTX_OP_INT;
        if (is_negative)
            operand->bits = 0 - operand->bits;
        break;
    case PTX_TOKEN_F32:
        operand->kind = PTX_OP_F32;
        operand->bits ^= is_negative ? (uint64_t)1 << 31 : 0;
        break;
    case PTX_TOKEN_F64:
        operand->kind = PTX_OP_F64;
        operand->bits ^= is_negative ? (uint64_t)1 << 63 : 0;
        break;
    default:
        parse_expected(p, "an operand");
    }
    parse_next(p);
}

static void read_operand(struct parser *p, struct ptx_operand *operand, int depth);

#define OPERANDS_MOST 80

/* a, b, c up to the closing mark, which is consumed (0: up to ';', which is not). */
static uint32_t read_operands(struct parser *p, char closing, struct ptx_operand **operands, int depth)
{
    struct ptx_operand list[OPERANDS_MOST];
    struct label_use *uses_before = p->uses;
    uint32_t count = 0;
    while (closing ? !parse_at(p, closing) : !parse_at(p, ';')) {
        if (count == OPERANDS_MOST)
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "too many operands");
        list[count] = (struct ptx_operand){0};
        read_operand(p, &list[count++], depth);
        if (!parse_accept(p, ','))
            break;
    }
    if (closing)
        parse_expect(p, closing);
    *operands = parse_take(p, count * sizeof **operands + 1);
    memcpy(*operands, list, count * sizeof **operands);
    for (struct label_use *use = p->uses; use != uses_before; use = use->next)
        if (use->operand >= list && use->operand < list + count)
            use->operand = *operands + (use->operand - list);
    return count;
}

static void read_address(struct parser *p, struct ptx_operand *operand, int depth)
{
    operand->kind = PTX_OP_ADDRESS;
    operand->elements = parse_take(p, sizeof *operand->elements);
    read_operand(p, operand->elements, depth);
    operand->count = 1;
    operand->offset = operand->elements->offset;
    read_offset(p, operand);
    if (parse_accept(p, ',')) { /* coordinates in a tensor: no instruction that is done takes this form */
        struct ptx_operand coordinates = {0};
        read_operand(p, &coordinates, depth);
        *operand = (struct ptx_operand){.kind = PTX_OP_NONE};
    }
    parse_expect(p, ']');
}

static void read_operand(struct parser *p, struct ptx_operand *operand, int depth)
{
    if (depth > 3)
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, "operands are nested too deep");
    if (parse_accept(p, '[')) {
        read_address(p, operand, depth + 1);
    } else if (parse_at(p, '{') || parse_at(p, '(')) {
        char closing = parse_at(p, '{') ? '}' : ')';
        parse_next(p);
        operand->kind = PTX_OP_LIST;
        operand->count = read_operands(p, closing, &operand->elements, depth + 1);
    } else if (parse_accept(p, '!')) {
        read_named(p, operand);
        operand->is_negated = true;
        if (operand->kind != PTX_OP_REG)
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "'!' needs a predicate");
    } else if (p->token.kind == PTX_TOKEN_NAME) {
        read_named(p, operand);
        if (operand->kind == PTX_OP_VARIABLE && depth < 2)
            read_offset(p, operand);
    } else {
        bool is_negative = parse_accept(p, '-');
        read_constant(p, operand, is_negative);
    }
    if (depth == 0 && parse_accept(p, '|')) {
        struct ptx_operand *pair = parse_take(p, 2 * sizeof *pair);
        pair[0] = *operand;
        if (pair[0].kind == PTX_OP_LABEL)
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "unknown register %s", pair[0].name);
        read_operand(p, &pair[1], 1);
        *operand = (struct ptx_operand){.kind = PTX_OP_PAIR, .count = 2, .elements = pair};
    }
}

static struct ptx_insn *add_insn(struct parser *p)
{
    struct ptx_function *f = p->function;
    if (f->insn_count == f->insn_room) {
        uint32_t room = f->insn_room * 2 + 64;
        struct ptx_insn *insns = parse_take(p, room * sizeof *insns);
        if (f->insn_count)
            memcpy(insns, f->insns, f->insn_count * sizeof *insns);
        f->insns = insns;
        f->insn_room = room;
    }
    return &f->insns[f->insn_count++];
}

static void read_guard(struct parser *p, struct ptx_insn *insn)
{
    insn->guard = PTX_NO_REG;
    if (!parse_accept(p, '@'))
        return;
    insn->guard_is_negated = parse_accept(p, '!');
    struct ptx_operand guard = {0};
    read_named(p, &guard);
    if (guard.kind != PTX_OP_REG)
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, "a guard must be a predicate register");
    insn->guard = guard.reg;
}

static void refuse_function(struct parser *p, uint32_t line, const char *opcode)
{
    if (!p->function->refused) {
        p->function->refused = opcode;
        p->function->refused_line = line;
    }
    while (!parse_at(p, ';')) {
        if (p->token.kind == PTX_TOKEN_END)
            parse_expected(p, "';'");
        parse_next(p);
    }
    parse_next(p);
}

/* Ahead of what a thread may do again and again until another has done something. An mbarrier is for waiting; a load
 * counts only in a loop that does nothing else, which is known when the body is read (ptx_mark_polls). */
static void add_poll(struct parser *p, const struct ptx_insn *insn)
{
    bool waits = strcmp(insn->opcode, "mbarrier") == 0 && insn->modifier_count &&
                 (strcmp(insn->modifiers[0], "test_wait") == 0 || strcmp(insn->modifiers[0], "try_wait") == 0);
    if (!waits && !ptx_insn_is_strong_load(insn))
        return;
    *add_insn(p) = (struct ptx_insn){
        .line = insn->line, .guard = PTX_NO_REG, .op = ptx_op_named(waits ? "poll" : "pmevent"), .opcode = "poll"};
}

static void read_insn(struct parser *p)
{
    struct ptx_insn insn = {.line = p->token.line};
    read_guard(p, &insn);
    insn.opcode = parse_name(p);
    bool is_ours = strcmp(insn.opcode, "poll") == 0 || strcmp(insn.opcode, "lane") == 0;
    insn.op = is_ours ? NULL : ptx_op_named(insn.opcode);
    if (!insn.op) {
        refuse_function(p, insn.line, insn.opcode);
        return;
    }
    while (p->token.kind == PTX_TOKEN_DOT) {
        if (insn.modifier_count == PTX_MODIFIERS)
            parse_refuse(p, CUDA_ERROR_INVALID_PTX, "too many modifiers on %s", insn.opcode);
        insn.modifiers[insn.modifier_count++] = parse_token_text(p);
        parse_next(p);
    }
    insn.operand_count = read_operands(p, 0, &insn.operands, 0);
    parse_expect(p, ';');
    add_poll(p, &insn);
    *add_insn(p) = insn;
}

/* name: .branchtargets a, b;   name: .callprototype (...) _ (...);   name: .calltargets f, g; */
static bool read_table(struct parser *p, const char *name)
{
    bool is_branches = parse_at_directive(p, "branchtargets");
    if (!is_branches && !parse_at_directive(p, "callprototype") && !parse_at_directive(p, "calltargets"))
        return false;
    struct named_table *table = parse_take(p, sizeof *table);
    table->name = name;
    table->operand = (struct ptx_operand){.kind = is_branches ? PTX_OP_TABLE : PTX_OP_PROTOTYPE, .name = name};
    parse_next(p);
    if (is_branches) {
        struct ptx_operand *labels = NULL;
        uint32_t count = 0, room = 0;
        do {
            if (count == room) {
                struct ptx_operand *grown = parse_take(p, (room = room * 2 + 16) * sizeof *grown);
                memcpy(grown, labels ? labels : grown, count * sizeof *grown);
                labels = grown;
            }
            labels[count++] = (struct ptx_operand){.kind = PTX_OP_LABEL, .name = parse_name(p)};
        } while (parse_accept(p, ','));
        for (uint32_t i = 0; i < count; i++)
            use_label(p, &labels[i], labels[i].name);
        table->operand.elements = labels;
        table->operand.count = count;
        parse_expect(p, ';');
    } else {
        while (!parse_accept(p, ';')) {
            if (p->token.kind == PTX_TOKEN_END)
                parse_expected(p, "';'");
            parse_next(p);
        }
    }
    table->next = p->scope->tables;
    p->scope->tables = table;
    return true;
}

static void add_local(struct parser *p, enum ptx_space space)
{
    parse_next(p);
    if (space == PTX_PARAM && parse_at_directive(p, "reg"))
        parse_refuse(p, CUDA_ERROR_INVALID_PTX, ".reg parameters are not supported");
    do {
        struct ptx_variable *variable = parse_variable(p, space);
        variable->number = p->function->variable_count++;
        /* Newest first: inner scopes hide outer ones, and callseq blocks reuse their names one after another. */
        variable->next = p->function->locals;
        p->function->locals = variable;
    } while (parse_accept(p, ','));
    parse_expect(p, ';');
}

static bool read_body_directive(struct parser *p)
{
    enum ptx_space space;
    if (p->token.kind != PTX_TOKEN_DOT)
        return false;
    if (parse_at_directive(p, "reg")) {
        parse_next(p);
        read_registers(p);
    } else if (parse_at_directive(p, "loc") || parse_at_directive(p, "file")) {
        ptx_lex_skip_line(&p->lexer);
        parse_next(p);
    } else if (parse_at_directive(p, "pragma")) {
        while (p->token.kind != PTX_TOKEN_END && !parse_at(p, ';'))
            parse_next(p);
        parse_expect(p, ';');
    } else if (parse_space(p, &space) && (space == PTX_SHARED || space == PTX_LOCAL || space == PTX_PARAM)) {
        add_local(p, space);
    } else {
        parse_expected(p, "a directive");
    }
    return true;
}

/* A name followed by ':' is a label; anything else starts an instruction. */
static bool read_label(struct parser *p)
{
    if (p->token.kind != PTX_TOKEN_NAME)
        return false;
    struct ptx_lexer lexer = p->lexer;
    struct ptx_token next = ptx_lex_next(&lexer);
    if (next.kind != PTX_TOKEN_PUNCT || *next.text != ':')
        return false;
    const char *name = parse_name(p);
    parse_next(p);
    if (read_table(p, name))
        return true;
    struct label_mark *mark = parse_take(p, sizeof *mark);
    *mark = (struct label_mark){.next = p->labels, .name = name, .scope = p->scope, .insn = p->function->insn_count};
    p->labels = mark;
    return true;
}

static void resolve_label(struct parser *p, struct label_use *use)
{
    for (const struct scope *scope = use->scope; scope; scope = scope->parent) {
        for (struct label_mark *mark = p->labels; mark; mark = mark->next) {
            if (mark->name == use->operand->name && mark->scope == scope) {
                use->operand->label = mark->insn;
                return;
            }
        }
    }
    p->token.line = use->line;
    parse_refuse(p, CUDA_ERROR_INVALID_PTX, "unknown name %s", use->operand->name);
}

static void open_scope(struct parser *p)
{
    struct scope *scope = parse_take(p, sizeof *scope);
    scope->parent = p->scope;
    p->scope = scope;
}

static void number_variables(struct ptx_function *function)
{
    for (struct ptx_variable *v = function->params; v; v = v->next)
        v->number = function->variable_count++;
    for (struct ptx_variable *v = function->returns; v; v = v->next)
        v->number = function->variable_count++;
}

void parse_body(struct parser *p, struct ptx_function *function)
{
    p->function = function;
    p->scope = NULL;
    p->labels = NULL;
    p->uses = NULL;
    function->has_body = true;
    number_variables(function);
    parse_expect(p, '{');
    open_scope(p);
    for (int depth = 1; depth;) {
        if (p->token.kind == PTX_TOKEN_END) {
            parse_expected(p, "'}'");
        } else if (parse_accept(p, '{')) {
            if (++depth > NESTING_MOST)
                parse_refuse(p, CUDA_ERROR_INVALID_PTX, "braces are nested too deep");
            open_scope(p);
        } else if (parse_accept(p, '}')) {
            depth--;
            p->scope = p->scope->parent;
        } else if (!read_body_directive(p) && !read_label(p)) {
            if (!parse_accept(p, ';'))
                read_insn(p);
        }
    }
    struct ptx_insn *last = add_insn(p); /* falling off the end returns */
    *last = (struct ptx_insn){.line = p->token.line, .guard = PTX_NO_REG, .op = ptx_op_named("ret"), .opcode = "ret"};
    for (struct label_use *use = p->uses; use; use = use->next)
        resolve_label(p, use);
    ptx_mark_polls(function);
}
