/* The contract of program.h over the PTX passes: which entries and globals a module has, when an entry's code is
 * compiled, and the memory that one block needs. */
#include "tests/device/program.h"
#include "tests/device/ptx.h"
#include "tests/device/ptx_compile.h"
#include "tests/device/ptx_heap.h"
#include "tests/device/ptx_print.h"
#include "tests/device/ptx_schedule.h"
#include "tests/device/ptx_window.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct entry {
    struct program_entry public;
    struct ptx_function *function;
    bool uses_dynamic_shared;
    _Atomic(const struct ptx_kernel *) kernel; /* NULL until it is prepared */
    const char *refused;                       /* why it cannot be */
    struct ptx_text text;                      /* its C, from the check until it is compiled */
};

/* The lock guards everything that preparing changes: the module's marks, the entries, the handles. */
struct program {
    struct ptx_module *module;
    size_t entry_count, global_count;
    struct entry *entries;
    struct program_global *globals;
    struct ptx_variable **variables; /* of the globals */
    void **addresses;                /* of the globals, as emitted code reads them */
    pthread_mutex_t lock;
    bool is_grouped;
    size_t handle_count;
    void **handles;
};

static void *take(struct program *program, size_t bytes)
{
    return arena_take(&program->module->arena, bytes + 1);
}

/* ---- reading ---- */

static void describe_entry(struct program *program, struct entry *entry, struct ptx_function *function)
{
    struct ptx_layout layout;
    ptx_layout_entry(program->module, function, &layout);
    struct program_param *params = take(program, (function->param_count + 1) * sizeof *params);
    uint32_t count = 0;
    for (const struct ptx_variable *v = function->params; v; v = v->next)
        params[count++] =
            (struct program_param){.offset = (uint32_t)v->offset, .bytes = (uint32_t)v->bytes, .align = v->align};
    entry->function = function;
    entry->uses_dynamic_shared = layout.uses_dynamic_shared;
    entry->public = (struct program_entry){
        .name = function->name,
        .param_count = count,
        .params = params,
        .param_bytes = layout.param_bytes,
        .shared_bytes = layout.shared_bytes,
        .local_bytes = layout.local_bytes,
        .max_threads = function->max_threads,
        .register_count = function->reg_count < 16    ? 16
                          : function->reg_count > 255 ? 255
                                                      : function->reg_count,
        .waits_for_blocks = layout.polls,
    };
}

static void describe_globals(struct program *program)
{
    program->globals = take(program, program->module->global_count * sizeof *program->globals);
    program->variables = take(program, program->module->global_count * sizeof *program->variables);
    program->addresses = take(program, program->module->global_count * sizeof *program->addresses);
    for (struct ptx_variable *v = program->module->variables; v; v = v->next) {
        if (v->space != PTX_GLOBAL && v->space != PTX_CONST)
            continue;
        program->variables[program->global_count] = v;
        program->globals[program->global_count++] = (struct program_global){
            .name = v->name,
            .bytes = v->bytes,
            .align = v->align,
            .is_constant = v->space == PTX_CONST,
            .initial = v->initial,
        };
    }
}

/* Every address in an initial value must be that of a function, or of a variable which the driver places. */
static bool check_fixups(struct program *program, char *why, size_t why_bytes)
{
    for (size_t i = 0; i < program->global_count; i++) {
        for (const struct ptx_fixup *fixup = program->variables[i]->fixups; fixup; fixup = fixup->next) {
            const struct ptx_variable *target = ptx_find_variable(program->module, fixup->symbol);
            if ((target && (target->space == PTX_GLOBAL || target->space == PTX_CONST)) ||
                ptx_find_function(program->module, fixup->symbol))
                continue;
            snprintf(why, why_bytes, "PTX line %u: the address of %s in an initial value is not supported", fixup->line,
                     fixup->symbol);
            return false;
        }
    }
    return true;
}

struct program *program_parse(const char *text, size_t bytes, CUresult *error, char *why, size_t why_bytes)
{
    struct ptx_module *module = ptx_parse(text, bytes, error, why, why_bytes);
    if (!module)
        return NULL;
    struct program *program = calloc(1, sizeof *program);
    if (!program)
        abort();
    program->module = module;
    pthread_mutex_init(&program->lock, NULL);
    program->entries = take(program, module->function_count * sizeof *program->entries);
    for (struct ptx_function *f = module->functions; f; f = f->next)
        if (f->is_entry && f->has_body)
            describe_entry(program, &program->entries[program->entry_count++], f);
    program->handles = take(program, (program->entry_count + 1) * sizeof *program->handles);
    describe_globals(program);
    if (!check_fixups(program, why, why_bytes)) {
        *error = CUDA_ERROR_INVALID_PTX;
        program_release(program);
        return NULL;
    }
    return program;
}

void program_release(struct program *program)
{
    for (size_t i = 0; i < program->handle_count; i++)
        dlclose(program->handles[i]);
    for (size_t i = 0; i < program->entry_count; i++)
        text_release(&program->entries[i].text);
    pthread_mutex_destroy(&program->lock);
    ptx_module_release(program->module);
    free(program);
}

uint32_t program_target(const struct program *program)
{
    return program->module->target;
}

size_t program_entry_count(const struct program *program)
{
    return program->entry_count;
}

const struct program_entry *program_entry(const struct program *program, size_t index)
{
    return index < program->entry_count ? &program->entries[index].public : NULL;
}

size_t program_global_count(const struct program *program)
{
    return program->global_count;
}

struct program_global *program_global(struct program *program, size_t index)
{
    return index < program->global_count ? &program->globals[index] : NULL;
}

static void write_fixup(struct program *program, uint8_t *at, const struct ptx_fixup *fixup)
{
    const struct ptx_variable *target = ptx_find_variable(program->module, fixup->symbol);
    uint64_t address = target ? (uint64_t)(uintptr_t)program->globals[target->number].address
                              : ptx_function_address(ptx_find_function(program->module, fixup->symbol));
    uint64_t value = (address + (uint64_t)fixup->addend) >> fixup->shift;
    memcpy(at + fixup->at, &value, fixup->bytes < 8 ? fixup->bytes : 8);
}

void program_initialise_globals(struct program *program)
{
    for (size_t i = 0; i < program->global_count; i++) {
        const struct program_global *global = &program->globals[i];
        if (!global->address)
            continue;
        if (global->initial)
            memcpy(global->address, global->initial, global->bytes);
        else
            memset(global->address, 0, global->bytes);
        for (const struct ptx_fixup *fixup = program->variables[i]->fixups; fixup; fixup = fixup->next)
            write_fixup(program, global->address, fixup);
    }
}

/* ---- preparing ---- */

/* Small modules are compiled as one: the compiler's start costs more than a kernel. */
#define GROUP_INSTRUCTIONS 4000u

static bool is_small(const struct program *program)
{
    uint64_t instructions = 0;
    for (const struct ptx_function *f = program->module->functions; f; f = f->next)
        instructions += f->insn_count;
    return instructions <= GROUP_INSTRUCTIONS;
}

/* Once: afterwards the entry has its C, or why it was refused. */
static void emit_entry(struct program *program, struct entry *entry)
{
    char why[400];
    if (entry->refused || entry->text.used)
        return;
    if (!ptx_emit_entry(program->module, entry->function, &entry->text, why, sizeof why)) {
        entry->refused = arena_format(&program->module->arena, "%s", why);
        text_release(&entry->text);
    }
}

static void find_kernel(struct entry *entry, void *handle)
{
    char symbol[40];
    snprintf(symbol, sizeof symbol, "ptx_kernel_%u", entry->function->number);
    const struct ptx_kernel *kernel = dlsym(handle, symbol);
    if (kernel)
        atomic_store_explicit(&entry->kernel, kernel, memory_order_release);
}

static void put_first(struct ptx_text *text, const char *data, size_t bytes)
{
    struct ptx_text whole = {0};
    text_append(&whole, data, bytes);
    text_append(&whole, text->data, text->used);
    text_release(text);
    *text = whole;
}

/* Compiles entries [first, end) that are not yet, as one file. */
static bool compile_entries(struct program *program, size_t first, size_t end, bool *was_compiled, char *why,
                            size_t why_bytes)
{
    struct ptx_text text = {0};
    for (size_t i = first; i < end; i++) {
        struct entry *entry = &program->entries[i];
        emit_entry(program, entry);
        if (entry->text.used)
            text_append(&text, entry->text.data, entry->text.used);
        text_release(&entry->text);
    }
    if (!text.used) {
        text_release(&text);
        return true;
    }
    if (strstr(text.data, "ptx_matrix_"))
        put_first(&text, ptx_matrix_head, (size_t)(ptx_matrix_head_end - ptx_matrix_head));
    void *handle = ptx_compile(text.data, text.used, was_compiled, why, why_bytes);
    text_release(&text);
    if (!handle)
        return false;
    program->handles[program->handle_count++] = handle;
    for (size_t i = first; i < end; i++)
        if (!program->entries[i].refused)
            find_kernel(&program->entries[i], handle);
    return true;
}

static bool prepare_locked(struct program *program, size_t index, bool *was_compiled, char *why, size_t why_bytes)
{
    struct entry *entry = &program->entries[index];
    if (atomic_load_explicit(&entry->kernel, memory_order_acquire))
        return true;
    for (size_t i = 0; i < program->global_count; i++)
        program->addresses[i] = program->globals[i].address;
    bool together = is_small(program);
    bool fine =
        entry->refused || compile_entries(program, together ? 0 : index, together ? program->entry_count : index + 1,
                                          was_compiled, why, why_bytes);
    if (entry->refused) {
        snprintf(why, why_bytes, "%s", entry->refused);
        return false;
    }
    return fine;
}

bool program_check(struct program *program, size_t index, char *why, size_t why_bytes)
{
    struct entry *entry = &program->entries[index];
    if (atomic_load_explicit(&entry->kernel, memory_order_acquire))
        return true;
    pthread_mutex_lock(&program->lock);
    if (!atomic_load_explicit(&entry->kernel, memory_order_relaxed))
        emit_entry(program, entry);
    if (entry->refused)
        snprintf(why, why_bytes, "%s", entry->refused);
    pthread_mutex_unlock(&program->lock);
    return !entry->refused;
}

bool program_prepare(struct program *program, size_t entry, bool *was_compiled, char *why, size_t why_bytes)
{
    *was_compiled = false;
    if (atomic_load_explicit(&program->entries[entry].kernel, memory_order_acquire))
        return true;
    pthread_mutex_lock(&program->lock);
    bool fine = prepare_locked(program, entry, was_compiled, why, why_bytes);
    pthread_mutex_unlock(&program->lock);
    return fine;
}

/* ---- running ---- */

_Noreturn static void fault(struct ptx_block *block, int code, const char *what)
{
    struct program_worker *worker = block->worker;
    worker->fault(worker, (CUresult)code, what);
    abort();
}

_Noreturn static void failed_assert(struct ptx_block *block, const char *message, const char *file, uint32_t line,
                                    const char *function)
{
    char text[512];
    int length = snprintf(text, sizeof text, "%s:%u: %s: block: [%u,%u,%u], Assertion `%s` failed.\n", file, line,
                          function, block->ctaid[0], block->ctaid[1], block->ctaid[2], message);
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1) < 0)
        fault(block, CUDA_ERROR_ASSERT, "assert, and its message could not be written");
    fault(block, CUDA_ERROR_ASSERT, "assert");
}

static uint64_t read_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void relax(void)
{
    sched_yield();
}

#define PROCESSORS 64u

static uint32_t processor(void)
{
    static atomic_uint next;
    static _Thread_local uint32_t own;
    if (!own)
        own = atomic_fetch_add(&next, 1) + 1;
    return (own - 1) % PROCESSORS;
}

static size_t padded(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static uint8_t *scratch_of(struct program_worker *worker, size_t bytes)
{
    if (worker->scratch_bytes < bytes + 64) {
        free(worker->scratch);
        worker->scratch_bytes = 0;
        worker->scratch = malloc(bytes * 2 + 64);
        if (!worker->scratch)
            worker->fault(worker, CUDA_ERROR_OUT_OF_MEMORY, "no memory for a block");
        worker->scratch_bytes = bytes * 2 + 64;
    }
    return (uint8_t *)padded((size_t)worker->scratch);
}

/* Cuts the worker's scratch into the block's arrays; shared memory has a window of its own. */
static void place_block(struct ptx_block *block, const struct ptx_kernel *kernel, size_t shared_bytes,
                        struct program_worker *worker)
{
    size_t threads = block->stride, waits = kernel->sync_count ? threads : 0;
    uint8_t *window = ptx_shared_window(shared_bytes);
    size_t sizes[] = {window ? 0 : padded(shared_bytes),
                      padded(waits * 8),
                      padded(waits * 4),
                      padded(waits * 4),
                      padded(waits * 4),
                      padded(waits * kernel->slot_bytes),
                      padded(waits * 2),
                      padded(threads * kernel->local_bytes),
                      padded(waits * 4 * kernel->exchange_words)};
    uint8_t *parts[sizeof sizes / sizeof *sizes];
    size_t total = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        total += sizes[i];
    uint8_t *at = scratch_of(worker, total);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        parts[i] = at;
        at += sizes[i];
    }
    block->shared = window ? window : parts[0];
    block->exchange_a = (uint64_t *)parts[1];
    block->exchange_b = (uint32_t *)parts[2];
    block->exchange_c = (uint32_t *)parts[3];
    block->exchange_mask = (uint32_t *)parts[4];
    block->slots = parts[5];
    block->at = (uint16_t *)parts[6];
    block->local = parts[7];
    block->local_bytes = sizes[7];
    block->exchange_words = (uint32_t *)parts[8];
}

void program_run_block(struct program *program, size_t entry, const struct program_grid *grid, uint64_t index,
                       struct program_worker *worker)
{
    const struct entry *e = &program->entries[entry];
    const struct ptx_kernel *kernel = atomic_load_explicit(&e->kernel, memory_order_acquire);
    uint32_t threads = grid->block[0] * grid->block[1] * grid->block[2];
    size_t shared_bytes = e->public.shared_bytes + grid->dynamic_shared_bytes;
    struct ptx_block block = {
        .ntid = {grid->block[0], grid->block[1], grid->block[2]},
        .nctaid = {grid->grid[0], grid->grid[1], grid->grid[2]},
        .ctaid = {(uint32_t)(index % grid->grid[0]), (uint32_t)(index / grid->grid[0] % grid->grid[1]),
                  (uint32_t)(index / grid->grid[0] / grid->grid[1])},
        .threads = threads,
        .stride = (threads + 31) & ~31u,
        .smid = processor(),
        .nsmid = PROCESSORS,
        .dynamic_shared = grid->dynamic_shared_bytes,
        .total_shared = (uint32_t)shared_bytes,
        .params = grid->params,
        .globals = program->addresses,
        .fault = fault,
        .clock = read_clock,
        .print = ptx_print,
        .relax = relax,
        .allocate = ptx_heap_take,
        .release = ptx_heap_give,
        .grid_barrier = (uint64_t)(uintptr_t)grid->barrier,
        .failed_assert = failed_assert,
        .worker = worker,
    };
    place_block(&block, kernel, shared_bytes, worker);
    uint64_t seed = grid->seed ? (grid->seed ^ (index + 1) * 0x9e3779b97f4a7c15u) | 1 : 0;
    ptx_schedule_block(kernel, &block, seed);
}
