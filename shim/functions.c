#include "shim/functions.h"

#include "shim/code.h"
#include "shim/driver.h"
#include "shim/say.h"
#include "shim/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/inside.h"

#define FUNCTION_BUCKETS (1u << 18) /* a power of two; programs with more kernels launch the rest unread */
#define FUNCTIONS_MAX    (FUNCTION_BUCKETS / 2)
#define FUNCTION_BYTES   (1ull << 30) /* address space for the entries */
#define PARAMETERS_MAX   4096
#define NAME_MAX_BYTES   4096

struct function {
    struct function_facts facts;  /* first: a pointer to it is a pointer to this */
    const void *module, *library; /* NULL: not told by the driver */
    _Atomic bool is_forgotten;
    uint32_t parameter_count;
    struct parameter parameters[];
};

static struct {
    pthread_mutex_t lock; /* for adding: count, entries, writes to buckets */
    _Atomic(struct function *) *_Atomic buckets;
    struct bump entries;
    uint32_t count;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Stands for any handle once there is no room for more. */
static struct function unread = {.facts = {.name = "?"}};

static size_t bucket_of(CUfunction handle)
{
    return (size_t)(((uintptr_t)handle >> 3) * 0x9e3779b97f4a7c15u >> 32) % FUNCTION_BUCKETS;
}

static struct function *find(CUfunction handle)
{
    _Atomic(struct function *) *buckets = atomic_load_explicit(&state.buckets, memory_order_acquire);
    if (buckets == NULL)
        return NULL;
    for (size_t bucket = bucket_of(handle);; bucket = (bucket + 1) % FUNCTION_BUCKETS) {
        struct function *function = atomic_load_explicit(&buckets[bucket], memory_order_acquire);
        if (function == NULL)
            return NULL;
        if (function->facts.function == handle && !atomic_load_explicit(&function->is_forgotten, memory_order_relaxed))
            return function;
    }
}

/* What the driver tells of a handle, before there is an entry for it. */
struct answers {
    CUfunction handle;
    bool is_kernel; /* CUkernel in disguise */
    bool has_param_info;
    uint32_t count, argument_bytes;
    const char *name;
    const void *module, *library;
    struct parameter parameters[PARAMETERS_MAX];
};

static CUresult ask_parameter(const struct answers *answers, uint32_t index, size_t *offset, size_t *bytes)
{
    return answers->is_kernel ? driver.cuKernelGetParamInfo((CUkernel)answers->handle, index, offset, bytes)
                              : driver.cuFuncGetParamInfo(answers->handle, index, offset, bytes);
}

/* True if the driver answered to the end. */
static bool ask_parameters(struct answers *answers)
{
    answers->count = 0;
    answers->argument_bytes = 0;
    for (uint32_t i = 0; i < PARAMETERS_MAX; i++) {
        size_t offset = 0, bytes = 0;
        CUresult result = ask_parameter(answers, i, &offset, &bytes);
        if (result == CUDA_ERROR_INVALID_VALUE)
            return true;
        if (result != CUDA_SUCCESS || offset + bytes > LAUNCH_MAX_ARGUMENT_BYTES)
            return false;
        answers->parameters[i] = (struct parameter){(uint32_t)offset, (uint32_t)bytes};
        answers->count = i + 1;
        if (offset + bytes > answers->argument_bytes)
            answers->argument_bytes = (uint32_t)(offset + bytes);
    }
    return false;
}

/* A CUkernel may come where a CUfunction is expected, and a driver may read either through cuFunc*: so the
 * first form is asked first, and a plain "no parameters" is believed only if the other form agrees. */
static void ask_driver(struct answers *answers)
{
    CUlibrary library = NULL;
    CUmodule module = NULL;
    answers->is_kernel = false;
    answers->has_param_info = ask_parameters(answers);
    if (!answers->has_param_info || answers->count == 0) {
        answers->is_kernel = true;
        bool is_answered = ask_parameters(answers);
        answers->is_kernel = is_answered && (answers->count > 0 || !answers->has_param_info);
        answers->has_param_info = answers->has_param_info || is_answered;
    }
    answers->name = NULL;
    if (driver.cuFuncGetName(&answers->name, answers->handle) != CUDA_SUCCESS &&
        driver.cuKernelGetName(&answers->name, (CUkernel)answers->handle) != CUDA_SUCCESS)
        answers->name = NULL;
    if (driver.cuFuncGetModule(&module, answers->handle) != CUDA_SUCCESS)
        module = NULL;
    if ((answers->is_kernel || module == NULL) &&
        driver.cuKernelGetLibrary(&library, (CUkernel)answers->handle) != CUDA_SUCCESS)
        library = NULL;
    answers->module = module;
    answers->library = library;
}

/* The name outlives the module in our copy. */
static const char *keep_name(const char *name)
{
    if (name == NULL)
        return "?";
    size_t bytes = strnlen(name, NAME_MAX_BYTES - 1) + 1;
    char *copy = bump_take(&state.entries, bytes);
    if (copy == NULL)
        return "?";
    memcpy(copy, name, bytes - 1);
    copy[bytes - 1] = 0;
    return copy;
}

static bool has_structs(const struct answers *answers)
{
    for (uint32_t i = 0; i < answers->count; i++)
        if (answers->parameters[i].bytes > 8)
            return true;
    return false;
}

static void read_code(struct function *function)
{
    const struct function_facts *facts = &function->facts;
    if (!facts->has_param_info)
        return;
    const struct code_facts *code = NULL;
    if (function->library)
        code = code_lookup(function->library, facts->name);
    if (code == NULL && function->module)
        code = code_lookup(function->module, facts->name);
    if (code == NULL)
        code = code_lookup(NULL, facts->name);
    if (code == NULL || code->param_count != facts->param_count)
        return;
    uint32_t offsets[PARAMETERS_MAX], sizes[PARAMETERS_MAX];
    for (uint32_t i = 0; i < facts->param_count; i++) {
        offsets[i] = function->parameters[i].offset;
        sizes[i] = function->parameters[i].bytes;
    }
    code_fill_facts(code, facts->param_count, offsets, sizes, &function->facts);
}

static bool open_locked(void)
{
    if (atomic_load_explicit(&state.buckets, memory_order_relaxed))
        return true;
    void *buckets = store_reserve(FUNCTION_BUCKETS * sizeof(struct function *), "the table of kernels");
    if (buckets == NULL || !bump_open(&state.entries, FUNCTION_BYTES, "what is known of kernels"))
        return false;
    atomic_store_explicit(&state.buckets, (_Atomic(struct function *) *)buckets, memory_order_release);
    return true;
}

static struct function *make_locked(const struct answers *answers)
{
    struct function *function =
        bump_take(&state.entries, sizeof *function + answers->count * sizeof *answers->parameters);
    if (function == NULL)
        return NULL;
    *function = (struct function){
        .facts = {.function = answers->handle,
                  .name = keep_name(answers->name),
                  .param_count = answers->count,
                  .argument_bytes = answers->argument_bytes,
                  .has_param_info = answers->has_param_info,
                  .has_unaligned_params = has_structs(answers)},
        .module = answers->module,
        .library = answers->library,
        .parameter_count = answers->count,
    };
    memcpy(function->parameters, answers->parameters, answers->count * sizeof *answers->parameters);
    read_code(function);
    return function;
}

static struct function *add(const struct answers *answers)
{
    pthread_mutex_lock(&state.lock);
    struct function *function = find(answers->handle); /* another thread may have been faster */
    if (function == NULL && open_locked() && state.count < FUNCTIONS_MAX)
        function = make_locked(answers);
    if (function && find(answers->handle) == NULL) {
        _Atomic(struct function *) *buckets = state.buckets;
        size_t bucket = bucket_of(answers->handle);
        while (atomic_load_explicit(&buckets[bucket], memory_order_relaxed))
            bucket = (bucket + 1) % FUNCTION_BUCKETS;
        atomic_store_explicit(&buckets[bucket], function, memory_order_release);
        state.count++;
    }
    pthread_mutex_unlock(&state.lock);
    return function ? function : &unread;
}

const struct function_facts *launch_facts(CUfunction handle)
{
    struct function *function = find(handle);
    if (__builtin_expect(function != NULL, 1))
        return &function->facts;
    struct answers answers;
    answers.handle = handle;
    ask_driver(&answers);
    return &add(&answers)->facts;
}

const struct parameter *functions_parameters(const struct function_facts *facts)
{
    return ((const struct function *)(const void *)facts)->parameters;
}

void functions_forget(const void *owner)
{
    _Atomic(struct function *) *buckets = atomic_load_explicit(&state.buckets, memory_order_acquire);
    for (size_t bucket = 0; buckets && bucket < FUNCTION_BUCKETS; bucket++) {
        struct function *function = atomic_load_explicit(&buckets[bucket], memory_order_acquire);
        /* A kernel whose owner the driver does not tell may be this one's. */
        if (function && (function->module == owner || function->library == owner ||
                         (function->module == NULL && function->library == NULL)))
            atomic_store_explicit(&function->is_forgotten, true, memory_order_relaxed);
    }
}
