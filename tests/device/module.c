#include "tests/device/driver.h"
#include "tests/device/module.h"
#include "shim/fatbin.h"
#include "tests/device/context.h"
#include "tests/device/memory.h"
#include "tests/device/settings.h"
#include "tests/device/stats.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHY_BYTES 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *loaded; /* under lock */
static struct module *buried; /* under lock; kept for their dead function handles */

static void explain(const struct load_log *log, const char *why)
{
    size_t length = strlen(why);
    if (log == NULL || log->text == NULL || log->bytes == 0) {
        fprintf(stderr, "cpu device: %s\n", why);
        return;
    }
    snprintf(log->text, log->bytes, "%s", why);
    if (log->used != NULL)
        *log->used = (void *)(uintptr_t)(length < log->bytes ? length : log->bytes - 1);
}

/* Whoever gives a log hears at once which kernels can never run; the others can. */
static void name_refused(struct module *module, const struct load_log *log)
{
    char all[4096] = "", why[WHY_BYTES];
    size_t used = 0;
    if (log == NULL || log->text == NULL)
        return;
    for (size_t i = 0; i < module->function_count; i++)
        if (!program_check(module->program, i, why, sizeof why) && used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s: %s", used ? "\n" : "",
                                     module->functions[i].entry->name, why);
    explain(log, all);
}

/* The entry to take: the newest PTX that the device may run. */
static bool choose_entry(const void *image, size_t known_bytes, struct fatbin_entry *best)
{
    struct fatbin fatbin;
    struct fatbin_entry entry;
    bool is_found = false;
    if (!fatbin_open(image, known_bytes, &fatbin))
        return false;
    while (fatbin_next(&fatbin, &entry)) {
        if (entry.kind != FATBIN_PTX || entry.target > settings()->capability)
            continue;
        if (is_found && entry.target <= best->target)
            continue;
        *best = entry;
        is_found = true;
    }
    return is_found;
}

CUresult module_read_text(const void *image, size_t known_bytes, char **text, size_t *bytes, char *why,
                          size_t why_bytes)
{
    struct fatbin fatbin;
    struct fatbin_entry entry;
    switch (image_kind(image, known_bytes)) {
    case IMAGE_TEXT:
        *bytes = known_bytes == SIZE_MAX ? strlen(image) : strnlen(image, known_bytes);
        *text = strndup(image, *bytes);
        return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    case IMAGE_FATBIN:
    case IMAGE_WRAPPER:
        if (!fatbin_open(image, known_bytes, &fatbin)) {
            snprintf(why, why_bytes, "the fatbin is broken");
            return CUDA_ERROR_INVALID_IMAGE;
        }
        if (!choose_entry(image, known_bytes, &entry)) {
            snprintf(why, why_bytes, "the fatbin carries no PTX for compute capability %u.%u or below",
                     settings()->capability / 10, settings()->capability % 10);
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
        }
        *text = fatbin_text(&entry, bytes, why, why_bytes);
        return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    case IMAGE_ELF:
        snprintf(why, why_bytes, "a cubin cannot run on the CPU device: only PTX can");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    default:
        snprintf(why, why_bytes, "the image is neither PTX nor a fatbin");
        return CUDA_ERROR_INVALID_IMAGE;
    }
}

static size_t align_up(size_t offset, size_t align)
{
    return align > 1 ? (offset + align - 1) / align * align : offset;
}

static CUresult place_globals(struct module *module)
{
    size_t count = program_global_count(module->program), bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct program_global *global = program_global(module->program, i);
        bytes = align_up(bytes, global->align) + global->bytes;
    }
    if (count == 0)
        return CUDA_SUCCESS;
    CUresult result = memory_allocate(module->device, bytes > 0 ? bytes : 1, USE_PLAIN, NULL, NULL, &module->globals);
    if (result != CUDA_SUCCESS)
        return result;
    bytes = 0;
    for (size_t i = 0; i < count; i++) {
        struct program_global *global = program_global(module->program, i);
        bytes = align_up(bytes, global->align);
        global->address = (void *)(module->globals + bytes);
        bytes += global->bytes;
    }
    program_initialise_globals(module->program);
    return CUDA_SUCCESS;
}

static void make_functions(struct module *module)
{
    module->function_count = program_entry_count(module->program);
    module->functions = calloc(module->function_count + 1, sizeof *module->functions);
    if (module->functions == NULL)
        abort();
    for (size_t i = 0; i < module->function_count; i++) {
        struct function *function = &module->functions[i];
        function->magic = HANDLE_FUNCTION;
        function->module = module;
        function->index = i;
        function->entry = program_entry(module->program, i);
        function->carveout = -1;
        size_t used = function->entry->shared_bytes;
        function->dynamic_shared_limit = used < 48u << 10 ? (int)((48u << 10) - used) : 0;
    }
}

/* Functions stay where they are for ever, marked dead: a stale handle is refused. Under lock. */
static void bury(struct module *module)
{
    for (struct module *instance = module->instances, *next; instance != NULL; instance = next) {
        next = instance->next;
        bury(instance);
    }
    module->instances = NULL;
    for (size_t i = 0; i < module->function_count; i++)
        module->functions[i].magic = HANDLE_DEAD;
    for (size_t i = 0; i < module->function_count; i++) {
        free(module->functions[i].old);
        module->functions[i].old = NULL;
    }
    if (module->globals != 0)
        memory_release(module->globals);
    program_release(module->program);
    module->program = NULL;
    free(module->text);
    module->text = NULL;
    module->magic = HANDLE_DEAD;
    module->next = buried;
    buried = module;
}

/* The library's globals in that context are gone: the next context starts with fresh ones. Under lock. */
static void forget_instances(struct module *library, struct context *context)
{
    if (library->home == context) {
        library->home = NULL;
        program_initialise_globals(library->program);
    }
    for (struct module **link = &library->instances; *link != NULL;) {
        struct module *instance = *link;
        if (instance->home != context) {
            link = &instance->next;
            continue;
        }
        *link = instance->next;
        bury(instance);
    }
}

static void forget_context(struct context *context)
{
    pthread_mutex_lock(&lock);
    for (struct module **link = &loaded; *link != NULL;) {
        struct module *module = *link;
        if (module->context == NULL && module->globals != 0)
            forget_instances(module, context);
        if (module->context != context) {
            link = &module->next;
            continue;
        }
        *link = module->next;
        bury(module);
    }
    pthread_mutex_unlock(&lock);
}

/* A module that nobody knows yet, its globals on that device. */
static CUresult module_parse(const char *text, size_t bytes, struct context *context, int device,
                             const struct load_log *log, struct module **out)
{
    char why[WHY_BYTES] = "the image cannot be read";
    struct module *module = calloc(1, sizeof *module);
    if (module == NULL)
        abort();
    CUresult result = CUDA_ERROR_INVALID_PTX;
    module->program = program_parse(text, bytes, &result, why, sizeof why);
    if (module->program == NULL) {
        explain(log, why);
        free(module);
        return result;
    }
    if (program_target(module->program) > settings()->capability) {
        snprintf(why, sizeof why, "the PTX is for sm_%u, the device's compute capability is %u.%u",
                 program_target(module->program), settings()->capability / 10, settings()->capability % 10);
        explain(log, why);
        program_release(module->program);
        free(module);
        return CUDA_ERROR_INVALID_PTX;
    }
    module->device = device;
    module->magic = context != NULL ? HANDLE_MODULE : HANDLE_LIBRARY;
    module->context = context;
    make_functions(module);
    result = place_globals(module);
    if (result == CUDA_SUCCESS) {
        name_refused(module, log);
        *out = module;
        return CUDA_SUCCESS;
    }
    program_release(module->program);
    free(module->functions);
    free(module);
    return result;
}

CUresult module_load(const void *image, size_t known_bytes, struct context *context, const struct load_log *log,
                     struct module **out)
{
    char *text, why[WHY_BYTES] = "the image cannot be read";
    size_t bytes;
    if (image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = module_read_text(image, known_bytes, &text, &bytes, why, sizeof why);
    if (result != CUDA_SUCCESS) {
        explain(log, why);
        return result;
    }
    const struct context *current = context != NULL ? context : context_current();
    result = module_parse(text, bytes, context, current != NULL ? current->device : 0, log, out);
    struct module *module = *out;
    if (result == CUDA_SUCCESS && context == NULL && module->globals != 0) {
        module->text = text;
        module->text_bytes = bytes;
    } else {
        free(text);
    }
    if (result != CUDA_SUCCESS)
        return result;
    context_on_destroy(forget_context);
    pthread_mutex_lock(&lock);
    module->next = loaded;
    loaded = module;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Under lock: the library's instance for the context, if it has one. */
static struct module *find_instance(struct module *library, const struct context *context)
{
    struct module *instance = library;
    while (instance != NULL && (instance->home != context || instance->home_id != context->id))
        instance = instance == library ? library->instances : instance->next;
    return instance;
}

CUresult module_in_context(struct module *module, struct context *context, struct module **out)
{
    *out = module;
    if (module->context != NULL || module->text == NULL)
        return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    struct module *instance = find_instance(module, context);
    if (instance == NULL && module->home == NULL && module->device == context->device) {
        instance = module;
    } else if (instance == NULL) {
        result = module_parse(module->text, module->text_bytes, NULL, context->device, NULL, &instance);
        if (result == CUDA_SUCCESS) {
            instance->next = module->instances;
            module->instances = instance;
        }
    }
    if (result == CUDA_SUCCESS) {
        instance->home = context;
        instance->home_id = context->id;
        *out = instance;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult function_in_context(struct function *function, struct context *context, struct function **out)
{
    struct module *module;
    CUresult result = module_in_context(function->module, context, &module);
    if (result == CUDA_SUCCESS)
        *out = &module->functions[function->index];
    return result;
}

void module_unload(struct module *module)
{
    device_wait();
    pthread_mutex_lock(&lock);
    struct module **link = &loaded;
    while (*link != NULL && *link != module)
        link = &(*link)->next;
    if (*link != NULL) {
        *link = module->next;
        bury(module);
    }
    pthread_mutex_unlock(&lock);
}

struct function *module_find_function(struct module *module, const char *name)
{
    for (size_t i = 0; i < module->function_count; i++)
        if (strcmp(module->functions[i].entry->name, name) == 0)
            return &module->functions[i];
    return NULL;
}

CUresult module_find_global(struct module *module, const char *name, CUdeviceptr *address, size_t *bytes)
{
    size_t count = program_global_count(module->program);
    for (size_t i = 0; i < count; i++) {
        const struct program_global *global = program_global(module->program, i);
        if (strcmp(global->name, name) != 0)
            continue;
        if (address != NULL)
            *address = (CUdeviceptr)global->address;
        if (bytes != NULL)
            *bytes = global->bytes;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult function_find(CUfunction handle, struct function **out)
{
    struct function *function = (struct function *)handle;
    if (function == NULL || ((uintptr_t)function & 7) != 0 || function->magic != HANDLE_FUNCTION)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = function;
    return CUDA_SUCCESS;
}

CUresult function_check(struct function *function)
{
    char why[WHY_BYTES] = "";
    if (program_check(function->module->program, function->index, why, sizeof why))
        return CUDA_SUCCESS;
    fprintf(stderr, "cpu device: %s: %s\n", function->entry->name, why);
    return CUDA_ERROR_INVALID_PTX;
}

CUresult function_prepare(struct function *function)
{
    if (atomic_load_explicit(&function->is_prepared, memory_order_acquire))
        return CUDA_SUCCESS;
    char why[WHY_BYTES] = "";
    bool was_compiled = false;
    if (!program_prepare(function->module->program, function->index, &was_compiled, why, sizeof why)) {
        fprintf(stderr, "cpu device: %s: %s\n", function->entry->name, why);
        return CUDA_ERROR_INVALID_PTX;
    }
    if (was_compiled)
        stats_add_compiled();
    atomic_store_explicit(&function->is_prepared, true, memory_order_release);
    return CUDA_SUCCESS;
}

struct load_log load_log_of(unsigned count, const CUjit_option *options, void **values)
{
    struct load_log log = {NULL, 0, NULL};
    for (unsigned i = 0; options != NULL && values != NULL && i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            log.text = values[i];
        if (options[i] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            continue;
        log.bytes = (unsigned)(uintptr_t)values[i];
        log.used = &values[i];
    }
    return log;
}
