/* Operands and modifiers as C. */
#include "tests/device/ptx_emit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *spelled(struct emit *e)
{
    const char *text = e->insn->opcode;
    for (uint32_t i = 0; i < e->insn->modifier_count; i++)
        text = arena_format(e->arena, "%s.%s", text, e->insn->modifiers[i]);
    return text;
}

void emit_refuse(struct emit *e, const char *format, ...)
{
    if (e->failed)
        return;
    e->failed = true;
    char message[200];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    snprintf(e->why, e->why_bytes, "PTX line %u, %.100s: %s: %s", e->insn->line, e->function->name, spelled(e),
             message);
}

void emit_c(struct emit *e, const char *format, ...)
{
    char line[512];
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if ((size_t)length < sizeof line) {
        text_append(e->text, line, (size_t)length);
    } else {
        char *longer = arena_take(e->arena, (size_t)length + 1);
        vsnprintf(longer, (size_t)length + 1, format, again);
        text_append(e->text, longer, (size_t)length);
    }
    va_end(again);
}

const char *emit_format(struct emit *e, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = arena_take(e->arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

/* ---- modifiers ---- */

bool emit_take(struct emit *e, const char *modifier)
{
    for (uint32_t i = 0; i < e->insn->modifier_count; i++) {
        if (!(e->used_modifiers >> i & 1) && strcmp(e->insn->modifiers[i], modifier) == 0) {
            e->used_modifiers |= 1u << i;
            return true;
        }
    }
    return false;
}

int emit_take_of(struct emit *e, const char *const *choices)
{
    for (int i = 0; choices[i]; i++)
        if (emit_take(e, choices[i]))
            return i;
    return -1;
}

enum ptx_type emit_take_type(struct emit *e)
{
    for (uint32_t i = 0; i < e->insn->modifier_count; i++) {
        enum ptx_type type = ptx_type_named(e->insn->modifiers[i]);
        if (!(e->used_modifiers >> i & 1) && type != PTX_NONE) {
            e->used_modifiers |= 1u << i;
            return type;
        }
    }
    return PTX_NONE;
}

enum ptx_space emit_take_space(struct emit *e)
{
    static const struct {
        const char *name;
        enum ptx_space space;
    } spaces[] = {
        {"global", PTX_GLOBAL},
        {"const", PTX_CONST},
        {"shared", PTX_SHARED},
        {"local", PTX_LOCAL},
        {"param", PTX_PARAM},
        {"shared::cta", PTX_SHARED},
        {"shared::cluster", PTX_SHARED},
        {"param::entry", PTX_PARAM},
        {"param::func", PTX_PARAM},
    };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (emit_take(e, spaces[i].name))
            return spaces[i].space;
    return PTX_GENERIC;
}

uint32_t emit_take_vector(struct emit *e)
{
    return emit_take(e, "v2") ? 2 : emit_take(e, "v4") ? 4 : emit_take(e, "v8") ? 8 : 1;
}

bool emit_expect_operands(struct emit *e, uint32_t least, uint32_t most)
{
    uint32_t count = e->insn->operand_count;
    if (count < least || count > most)
        emit_refuse(e, "%u operands", count);
    return !e->failed;
}

void emit_use_operand(struct emit *e, const struct ptx_operand *operand)
{
    for (uint32_t i = 0; i < e->insn->operand_count; i++)
        if (operand == &e->insn->operands[i])
            e->used_operands |= 1u << i;
}

/* ---- reading ---- */

const char *ptx_register_c(const struct ptx_register *reg)
{
    if (reg->is_float)
        return ptx_type_bits(reg->type) == 32 ? "float" : "double";
    switch (ptx_type_bits(reg->type)) {
    case 1:
        return "_Bool";
    case 8:
        return "uint8_t";
    case 16:
        return "uint16_t";
    case 32:
        return "uint32_t";
    default:
        return "uint64_t";
    }
}

bool emit_constant(const struct ptx_operand *operand, uint64_t *bits)
{
    *bits = operand->bits;
    return operand->kind == PTX_OP_INT || operand->kind == PTX_OP_F32 || operand->kind == PTX_OP_F64;
}

static const char *constant_value(struct emit *e, const struct ptx_operand *operand, enum ptx_type type)
{
    uint64_t bits = operand->bits;
    if (type == PTX_F32) {
        if (operand->kind == PTX_OP_F64) {
            bits = ptx_narrow_double(bits);
        } else if (operand->kind == PTX_OP_INT) {
            emit_refuse(e, "an integer where a float is wanted");
        }
        return emit_format(e, "ptx_f32(0x%xu)", (uint32_t)bits);
    }
    if (type == PTX_F64) {
        if (operand->kind != PTX_OP_F64)
            emit_refuse(e, "a double is wanted");
        return emit_format(e, "ptx_f64(0x%llxull)", (unsigned long long)bits);
    }
    if (type == PTX_PRED)
        return bits ? "1" : "0";
    return emit_format(e, "(%s)0x%llxull", ptx_type_c(type), (unsigned long long)bits);
}

static const char *register_value(struct emit *e, const struct ptx_operand *operand, enum ptx_type type)
{
    const struct ptx_register *reg = &e->function->regs[operand->reg];
    uint32_t have = ptx_type_bits(reg->type), want = ptx_type_bits(type);
    if ((type == PTX_PRED) != (reg->type == PTX_PRED) || have > 64 || have < want)
        emit_refuse(e, "a .%s register where .%s is wanted", have == 1 ? "pred" : emit_format(e, "b%u", have),
                    want == 1 ? "pred" : emit_format(e, "b%u", want));
    if (type == PTX_PRED)
        return emit_format(e, operand->is_negated ? "!r%u" : "r%u", operand->reg);
    if (ptx_type_is_float(type)) {
        if (reg->is_float && have == want)
            return emit_format(e, "r%u", operand->reg);
        return emit_format(e, want == 32 ? "ptx_f32((uint32_t)r%u)" : "ptx_f64(r%u)", operand->reg);
    }
    if (reg->is_float)
        return emit_format(e, "(%s)%s(r%u)", ptx_type_c(type), have == 32 ? "ptx_u32" : "ptx_u64", operand->reg);
    return emit_format(e, "(%s)r%u", ptx_type_c(type), operand->reg);
}

bool ptx_in_frame(const struct emit *e, const struct ptx_variable *variable)
{
    return e->function->is_entry && variable->space == PTX_LOCAL && (e->flow->sync_count || variable->bytes > 2048);
}

const char *emit_variable(struct emit *e, const struct ptx_variable *variable, int64_t offset, bool generic)
{
    long long at = offset;
    switch (variable->space) {
    case PTX_GLOBAL:
    case PTX_CONST:
        return emit_format(e, "((uint64_t)B->globals[%u] + %lldll)", variable->number, at);
    case PTX_SHARED:
        return emit_format(e, "(%s%zuull + %lldll)", generic ? "(uint64_t)S + " : "", variable->offset, at);
    case PTX_PARAM:
        for (const struct ptx_variable *v = e->function->params; e->function->is_entry && v; v = v->next)
            if (v == variable)
                return emit_format(e, "((uint64_t)P + %lldll)", (long long)variable->offset + at);
        return emit_format(e, "((uint64_t)v%u + %lldll)", variable->number, at);
    default:
        if (ptx_in_frame(e, variable))
            return emit_format(e, "((uint64_t)L + %lldll)", (long long)variable->offset + at);
        return emit_format(e, "((uint64_t)v%u + %lldll)", variable->number, at);
    }
}

const char *emit_value(struct emit *e, const struct ptx_operand *operand, enum ptx_type type)
{
    emit_use_operand(e, operand);
    switch (operand->kind) {
    case PTX_OP_REG:
        return register_value(e, operand, type);
    case PTX_OP_INT:
    case PTX_OP_F32:
    case PTX_OP_F64:
        return constant_value(e, operand, type);
    case PTX_OP_SPECIAL:
        return emit_format(e, "(%s)%s", ptx_type_c(type), emit_special(e, operand->name));
    case PTX_OP_VARIABLE:
        return emit_format(e, "(%s)%s", ptx_type_c(type), emit_variable(e, operand->variable, operand->offset, false));
    case PTX_OP_FUNCTION:
        return emit_format(e, "(%s)0x%llxull", ptx_type_c(type),
                           (unsigned long long)ptx_function_address(operand->function));
    default:
        emit_refuse(e, "an operand of this form");
        return "0";
    }
}

const char *emit_in(struct emit *e, uint32_t index, enum ptx_type type)
{
    if (index >= e->insn->operand_count) {
        emit_refuse(e, "an operand is missing");
        return "0";
    }
    return emit_value(e, &e->insn->operands[index], type);
}

/* ---- writing ---- */

void emit_set(struct emit *e, const struct ptx_operand *operand, enum ptx_type type, const char *expression)
{
    emit_use_operand(e, operand);
    if (operand->kind == PTX_OP_SINK) {
        emit_c(e, "(void)(%s);\n", expression);
        return;
    }
    if (operand->kind != PTX_OP_REG) {
        emit_refuse(e, "the result must be a register");
        return;
    }
    const struct ptx_register *reg = &e->function->regs[operand->reg];
    uint32_t have = ptx_type_bits(reg->type), want = ptx_type_bits(type);
    if ((type == PTX_PRED) != (reg->type == PTX_PRED) || have > 64 || have < want) {
        emit_refuse(e, "a result of %u bits in a register of %u", want, have);
        return;
    }
    if (type == PTX_PRED || (ptx_type_is_float(type) && reg->is_float && have == want))
        emit_c(e, "r%u = %s;\n", operand->reg, expression);
    else if (ptx_type_is_float(type))
        emit_c(e, "r%u = %s(%s);\n", operand->reg, want == 32 ? "ptx_u32" : "ptx_u64", expression);
    else if (reg->is_float)
        emit_c(e, "r%u = %s((%s)(%s));\n", operand->reg, have == 32 ? "ptx_f32" : "ptx_f64", ptx_type_c(type),
               expression);
    else
        emit_c(e, "r%u = (%s)(%s)(%s);\n", operand->reg, ptx_register_c(reg), ptx_type_c(type), expression);
}

void emit_out(struct emit *e, enum ptx_type type, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *expression = arena_take(e->arena, (size_t)length + 1);
    vsnprintf(expression, (size_t)length + 1, format, again);
    va_end(again);
    if (!e->insn->operand_count)
        emit_refuse(e, "an operand is missing");
    else
        emit_set(e, &e->insn->operands[0], type, expression);
}

/* ---- addresses ---- */

const char *emit_address(struct emit *e, const struct ptx_operand *operand, enum ptx_space space)
{
    emit_use_operand(e, operand);
    if (operand->kind != PTX_OP_ADDRESS) {
        emit_refuse(e, "an address is wanted");
        return "0";
    }
    const struct ptx_operand *base = operand->elements;
    long long offset = operand->offset;
    uint64_t bits;
    if (base->kind == PTX_OP_VARIABLE) {
        bool generic = space != PTX_SHARED || base->variable->space != PTX_SHARED;
        const char *address = emit_variable(e, base->variable, offset, generic);
        return emit_format(e, generic ? "(uint8_t *)%s" : "(S + %s)", address);
    }
    const char *value;
    if (emit_constant(base, &bits)) {
        value = emit_format(e, "0x%llxull", (unsigned long long)bits + (unsigned long long)offset);
    } else if (base->kind == PTX_OP_REG) {
        /* A 32-bit address plus its offset is taken to stay below 2^32: one that does not is outside every window. */
        bool is_wide = ptx_type_bits(e->function->regs[base->reg].type) == 64;
        const char *start = is_wide ? register_value(e, base, PTX_U64)
                            : e->shapes && e->shapes[base->reg].kind == PTX_AFFINE
                                ? emit_format(e, "w%u", base->reg)
                                : emit_format(e, "(uint64_t)%s", register_value(e, base, PTX_U32));
        value = emit_format(e, offset ? "(%s + (uint64_t)%lldll)" : "%s", start, offset);
    } else {
        emit_refuse(e, "an address of this form");
        return "0";
    }
    return emit_format(e, space == PTX_SHARED ? "(S + %s)" : "(uint8_t *)(uint64_t)%s", value);
}

/* ---- special registers ---- */

static const struct {
    const char *name, *c;
} specials[] = {
    {"%tid.x", "x"},
    {"%tid.y", "y"},
    {"%tid.z", "z"},
    {"%ntid.x", "B->ntid[0]"},
    {"%ntid.y", "B->ntid[1]"},
    {"%ntid.z", "B->ntid[2]"},
    {"%ctaid.x", "B->ctaid[0]"},
    {"%ctaid.y", "B->ctaid[1]"},
    {"%ctaid.z", "B->ctaid[2]"},
    {"%nctaid.x", "B->nctaid[0]"},
    {"%nctaid.y", "B->nctaid[1]"},
    {"%nctaid.z", "B->nctaid[2]"},
    {"%laneid", "(t & 31)"},
    {"%warpid", "(t >> 5)"},
    {"%nwarpid", "(B->stride >> 5)"},
    {"%smid", "B->smid"},
    {"%nsmid", "B->nsmid"},
    {"%gridid", "B->gridid"},
    {"%lanemask_eq", "(1u << (t & 31))"},
    {"%lanemask_lt", "((1u << (t & 31)) - 1)"},
    {"%lanemask_le", "((2u << (t & 31)) - 1)"},
    {"%lanemask_gt", "(~((2u << (t & 31)) - 1))"},
    {"%lanemask_ge", "(~((1u << (t & 31)) - 1))"},
    {"%clock", "B->clock()"},
    {"%clock64", "B->clock()"},
    {"%clock_hi", "(B->clock() >> 32)"},
    {"%globaltimer", "B->clock()"},
    {"%globaltimer_lo", "(uint32_t)B->clock()"},
    {"%globaltimer_hi", "(B->clock() >> 32)"},
    {"%dynamic_smem_size", "B->dynamic_shared"},
    {"%total_smem_size", "B->total_shared"},
    {"%aggr_smem_size", "B->total_shared"},
    {"WARP_SZ", "32"},
    {"%envreg1", "(B->grid_barrier >> 32)"},
    {"%envreg2", "B->grid_barrier"},
    {"%is_explicit_cluster", "0"},
    {"%cluster_ctarank", "0"},
    {"%cluster_nctarank", "1"},
    {"%cluster_ctaid.x", "0"},
    {"%cluster_ctaid.y", "0"},
    {"%cluster_ctaid.z", "0"},
    {"%cluster_nctaid.x", "1"},
    {"%cluster_nctaid.y", "1"},
    {"%cluster_nctaid.z", "1"},
    {"%clusterid.x", "B->ctaid[0]"},
    {"%clusterid.y", "B->ctaid[1]"},
    {"%clusterid.z", "B->ctaid[2]"},
    {"%nclusterid.x", "B->nctaid[0]"},
    {"%nclusterid.y", "B->nctaid[1]"},
    {"%nclusterid.z", "B->nctaid[2]"},
};

const char *emit_special(struct emit *e, const char *name)
{
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (strcmp(specials[i].name, name) == 0)
            return specials[i].c;
    emit_refuse(e, "special register %s", name);
    return "0";
}
