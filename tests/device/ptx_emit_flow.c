/* Branches, calls, returns. */
#include "tests/device/ptx_emit.h"

#include <string.h>

void emit_jump(struct emit *e, uint32_t label)
{
    emit_c(e, "goto b%u;\n", e->flow->block_of[label]);
}

void emit_bra(struct emit *e)
{
    emit_take(e, "uni");
    if (!emit_expect_operands(e, 1, 1))
        return;
    emit_use_operand(e, &e->insn->operands[0]);
    if (e->insn->operands[0].kind != PTX_OP_LABEL)
        emit_refuse(e, "the target must be a label");
    else
        emit_jump(e, e->insn->operands[0].label);
}

void emit_brx(struct emit *e)
{
    emit_take(e, "uni");
    if (!emit_take(e, "idx") || !emit_expect_operands(e, 2, 2) || e->insn->operands[1].kind != PTX_OP_TABLE) {
        emit_refuse(e, "this form");
        return;
    }
    const struct ptx_operand *table = &e->insn->operands[1];
    emit_use_operand(e, table);
    emit_c(e, "switch (%s) {\n", emit_in(e, 0, PTX_U32));
    for (uint32_t i = 0; i < table->count; i++) {
        emit_c(e, "case %u: ", i);
        emit_jump(e, table->elements[i].label);
    }
    emit_c(e, "default: B->fault(B, 715, \"brx.idx: the index is outside its table\");\n}\n");
}

void emit_exit(struct emit *e)
{
    if (!e->function->is_entry)
        emit_refuse(e, "exit in a function that is called");
    else
        emit_c(e, "%sgoto next;\n", e->flow->sync_count ? "at[k] = PTX_DONE; " : "");
}

void emit_ret(struct emit *e)
{
    emit_take(e, "uni");
    if (e->function->is_entry)
        emit_exit(e);
    else
        emit_c(e, "goto next;\n");
}

void emit_trap(struct emit *e)
{
    emit_c(e, "B->fault(B, 719, \"trap\");\n");
}

/* ---- calls ---- */

const char *emit_function_name(struct emit *e, const struct ptx_function *function)
{
    if (!function->has_body)
        emit_refuse(e, "%s has no body", function->name);
    if (function->is_entry)
        emit_refuse(e, "%s is an entry", function->name);
    return emit_format(e, "f%u_%u", e->entry->number, function->number);
}

static const char *argument(struct emit *e, const struct ptx_operand *operand)
{
    if (operand->kind != PTX_OP_VARIABLE ||
        (operand->variable->space != PTX_PARAM && operand->variable->space != PTX_LOCAL)) {
        emit_refuse(e, "arguments must be .param variables");
        return "0";
    }
    return emit_format(e, "(uint8_t *)%s", emit_variable(e, operand->variable, 0, true));
}

struct call {
    const struct ptx_operand *results, *target, *arguments;
};

/* call (r), f, (a, b), prototype; every part but f may be missing. */
static struct call read_call(struct emit *e)
{
    struct call call = {0};
    uint32_t i = 0, count = e->insn->operand_count;
    const struct ptx_operand *operands = e->insn->operands;
    if (i < count && operands[i].kind == PTX_OP_LIST)
        call.results = &operands[i++];
    if (i < count)
        call.target = &operands[i++];
    if (i < count && operands[i].kind == PTX_OP_LIST)
        call.arguments = &operands[i++];
    if (i < count && operands[i].kind == PTX_OP_PROTOTYPE)
        i++;
    e->used_operands = ~0u;
    if (i != count || !call.target)
        emit_refuse(e, "this form");
    return call;
}

static const char *listed(struct emit *e, const char *text, const struct ptx_operand *list)
{
    for (uint32_t i = 0; list && i < list->count; i++)
        text = emit_format(e, "%s, %s", text, argument(e, &list->elements[i]));
    return text;
}

static const char *parameter(struct emit *e, const struct ptx_operand *list, uint32_t index, const char *type)
{
    if (!list || index >= list->count) {
        emit_refuse(e, "an argument is missing");
        return "0";
    }
    return emit_format(e, "LOAD(%s, %s)", type, argument(e, &list->elements[index]));
}

/* Functions of the device's own library. */
static bool emit_known_call(struct emit *e, const struct call *call)
{
    const char *name = call->target->function->name;
    const struct ptx_operand *a = call->arguments;
    if (strcmp(name, "vprintf") == 0) {
        const char *count = emit_format(e, "B->print((const char *)%s, (const void *)%s)",
                                        parameter(e, a, 0, "uint64_t"), parameter(e, a, 1, "uint64_t"));
        if (call->results && call->results->count == 1)
            emit_c(e, "STORE(uint32_t, %s, (uint32_t)%s);\n", argument(e, &call->results->elements[0]), count);
        else
            emit_c(e, "%s;\n", count);
        return true;
    }
    if (strcmp(name, "malloc") == 0 && call->results && call->results->count == 1) {
        emit_c(e, "STORE(uint64_t, %s, (uint64_t)B->allocate(%s));\n", argument(e, &call->results->elements[0]),
               parameter(e, a, 0, "uint64_t"));
        return true;
    }
    if (strcmp(name, "free") == 0) {
        emit_c(e, "B->release((void *)%s);\n", parameter(e, a, 0, "uint64_t"));
        return true;
    }
    if (strcmp(name, "__assertfail") == 0 || strcmp(name, "__assert_fail") == 0) {
        emit_c(e, "B->failed_assert(B, (const char *)%s, (const char *)%s, %s, (const char *)%s);\n",
               parameter(e, a, 0, "uint64_t"), parameter(e, a, 1, "uint64_t"), parameter(e, a, 2, "uint32_t"),
               parameter(e, a, 3, "uint64_t"));
        return true;
    }
    return false;
}

/* A choice among all functions whose address is taken and whose arguments fit. */
static void emit_indirect_call(struct emit *e, const struct call *call, const char *arguments)
{
    uint32_t parameters = call->arguments ? call->arguments->count : 0,
             results = call->results ? call->results->count : 0;
    emit_c(e, "switch (%s) {\n", emit_value(e, call->target, PTX_U64));
    for (const struct ptx_function *f = e->module->functions; f; f = f->next)
        if (f->is_taken && f->has_body && !f->is_entry && f->param_count == parameters && f->return_count == results)
            emit_c(e, "case 0x%llxull: %s(%s); break;\n", (unsigned long long)ptx_function_address(f),
                   emit_function_name(e, f), arguments);
    emit_c(e, "default: B->fault(B, 718, \"call: no function at this address\");\n}\n");
}

void emit_call(struct emit *e)
{
    emit_take(e, "uni");
    struct call call = read_call(e);
    if (e->failed)
        return;
    const char *arguments = listed(e, listed(e, "&place", call.results), call.arguments);
    if (call.target->kind == PTX_OP_FUNCTION) {
        const struct ptx_function *f = call.target->function;
        if (!f->has_body && emit_known_call(e, &call))
            return;
        if (f->param_count != (call.arguments ? call.arguments->count : 0) ||
            f->return_count != (call.results ? call.results->count : 0))
            emit_refuse(e, "the number of arguments");
        emit_c(e, "%s(%s);\n", emit_function_name(e, f), arguments);
        return;
    }
    emit_indirect_call(e, &call, arguments);
}
