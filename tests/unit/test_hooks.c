/* links: shim/hook_%.c shim/arguments.c shim/touch.c */
/* Every hook of driver.def is called, three times: with the gate closed, with it open, and with an engine that
 * refuses. The driver must be called exactly once, by the same function or the one that stands for it, with the same
 * arguments; the gate must be left as often as it was entered; a refusal must not reach the driver.
 *
 * No hook's parameters are known here. All of them get numbers that are addresses of zeros and modest counts at once:
 * memory at a low address. */
#include "shim/code.h"
#include "shim/driver.h"
#include "shim/engine.h"
#include "shim/functions.h"
#include "shim/gate.h"
#include "shim/hooks.h"
#include "shim/outside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define ARGUMENTS   12
#define LOW_ADDRESS 0x10000ul
#define LOW_BYTES   (64ul << 20)

typedef CUresult (*any_function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                                 uintptr_t, uintptr_t, uintptr_t, uintptr_t);

struct driver driver;

static struct {
    bool is_gate_open, does_engine_refuse;
    uint32_t fill;    /* every word of the structures that hooks are given */
    CUresult answer;  /* of the driver function under test */
    const char *base; /* its name without _ptsz and _ptds */
    int entered, left, calls, wrong_arguments, engine_calls;
    int argument_count;
    uintptr_t arguments[ARGUMENTS];
    char called[64];
} test;

bool gate_enter(void)
{
    test.entered += test.is_gate_open;
    return test.is_gate_open;
}

CUresult gate_leave(CUresult result)
{
    test.left++;
    return result;
}

/* The engine. */
static CUresult engine_answer(void)
{
    test.engine_calls++;
    return test.does_engine_refuse ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult engine_allocate(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    (void)bytes;
    (void)stream;
    *out = 0;
    return engine_answer();
}

CUresult engine_free(CUdeviceptr address, CUstream stream, bool *is_ours)
{
    (void)address;
    (void)stream;
    *is_ours = test.does_engine_refuse;
    return engine_answer();
}

bool engine_find(CUdeviceptr address, CUdeviceptr *base, size_t *bytes)
{
    (void)address;
    (void)base;
    (void)bytes;
    return false;
}

bool engine_owns(CUdeviceptr address)
{
    (void)address;
    return test.does_engine_refuse;
}

void engine_arena(CUdeviceptr *begin, CUdeviceptr *end)
{
    *begin = *end = 0;
}

CUresult engine_submit(struct operation *operation)
{
    CUresult result = engine_answer();
    return result == CUDA_SUCCESS ? operation->forward(operation->call) : result;
}

CUresult engine_pin(CUdeviceptr address, const char *reason)
{
    (void)address;
    assert_non_null(reason);
    return engine_answer();
}

CUresult engine_scan(const void *host, size_t bytes, CUdeviceptr destination)
{
    (void)host;
    (void)bytes;
    (void)destination;
    return engine_answer();
}

CUresult engine_charge(size_t bytes, const char *what)
{
    (void)bytes;
    assert_non_null(what);
    return engine_answer();
}

void engine_refund(size_t bytes)
{
    (void)bytes;
}

CUresult engine_charge_variables(size_t bytes)
{
    (void)bytes;
    return engine_answer();
}

void engine_refund_variables(size_t bytes)
{
    (void)bytes;
}

void engine_before_host_function(CUstream stream)
{
    (void)stream;
}

CUresult engine_after_sync(CUresult result)
{
    return result;
}

void engine_stream_destroyed(CUstream stream)
{
    (void)stream;
}

void engine_context_destroyed(CUcontext context)
{
    (void)context;
}

bool engine_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    (void)free_bytes;
    (void)total_bytes;
    return false;
}

/* What else the hooks use. */
const struct function_facts *launch_facts(CUfunction function)
{
    static const struct function_facts facts = {.name = "?"};
    (void)function;
    return &facts;
}

const struct parameter *functions_parameters(const struct function_facts *facts)
{
    (void)facts;
    return NULL;
}

void functions_forget(const void *owner)
{
    (void)owner;
}

size_t code_add_module(const void *owner, const void *image)
{
    (void)owner;
    (void)image;
    return 0;
}

size_t code_add_module_bytes(const void *owner, const void *image, size_t bytes)
{
    (void)owner;
    (void)image;
    (void)bytes;
    return 0;
}

void code_rename_module(const void *key, const void *owner)
{
    (void)key;
    (void)owner;
}

size_t code_module_variable_bytes(const void *owner)
{
    (void)owner;
    return 0;
}

void code_drop_module(const void *owner)
{
    (void)owner;
}

bool launch_find_uses(struct operation *operation, CUdeviceptr begin, CUdeviceptr end)
{
    (void)begin;
    (void)end;
    operation->use_count = 0;
    return true;
}

/* Copies and sets are issued by launch.c, which test_launch.c covers: here that counts as the driver's call. */
CUresult launch_issue(const struct operation *operation, const unsigned char *arguments)
{
    (void)operation;
    (void)arguments;
    test.calls++;
    return test.answer;
}

bool outside_add(enum outside_kind kind, uint64_t key, uint64_t bytes)
{
    (void)kind;
    (void)key;
    (void)bytes;
    return true;
}

uint64_t outside_take(enum outside_kind kind, uint64_t key)
{
    (void)kind;
    (void)key;
    return 0;
}

bool outside_retain(enum outside_kind kind, uint64_t key)
{
    (void)kind;
    (void)key;
    return true;
}

bool outside_release(enum outside_kind kind, uint64_t key, uint64_t *bytes)
{
    (void)kind;
    (void)key;
    *bytes = 0;
    return true;
}

bool outside_find(enum outside_kind kind, uint64_t key, uint64_t *bytes)
{
    (void)kind;
    (void)key;
    *bytes = 0;
    return false;
}

uint64_t outside_set(enum outside_kind kind, uint64_t key, uint64_t bytes)
{
    (void)kind;
    (void)key;
    (void)bytes;
    return 0;
}

/* The driver: one function per row, which knows its own name. */
static size_t base_length(const char *name)
{
    size_t length = strlen(name);
    bool is_per_thread =
        length > 5 && (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0);
    return is_per_thread ? length - 5 : length;
}

/* Narrow parameters arrive with their lower half only. */
static bool is_same(uintptr_t one, uintptr_t other)
{
    return one == other || (uint32_t)one == (uint32_t)other || (unsigned char)one == other;
}

static CUresult called(const char *name, const uintptr_t *arguments)
{
    if (strlen(test.base) != base_length(name) || strncmp(test.base, name, base_length(name)) != 0) {
        if (strcmp(name, "cuCtxGetCurrent") != 0)
            return CUDA_ERROR_NOT_SUPPORTED;
        *(uintptr_t *)arguments[0] = test.does_engine_refuse; /* without a context the driver gives the error */
        return CUDA_SUCCESS;
    }
    test.calls++;
    snprintf(test.called, sizeof test.called, "%s", name);
    for (int i = 0; i < test.argument_count; i++)
        test.wrong_arguments += !is_same(arguments[i], test.arguments[i]);
    return test.answer;
}

#define FN(name, since, verb)                                                                                          \
    static CUresult fake_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f,          \
                                uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j, uintptr_t k, uintptr_t l)          \
    {                                                                                                                  \
        return called(#name, (uintptr_t[]){a, b, c, d, e, f, g, h, i, j, k, l});                                       \
    }
#include "shim/driver.def"
#undef FN

struct arity {
    const char *name;
    int count;
};

static const struct arity arities[] = {
#define ARITY(name, count) {#name, count},
#include "gen/driver_arity.def"
#undef ARITY
};

/* 12 arguments are passed: a function with more, or with a structure by value, cannot be compared this way. */
static int arity_of(const char *name)
{
    if (strncmp(name, "cuIpcOpenMemHandle", strlen("cuIpcOpenMemHandle")) == 0)
        return 1;
    if (strncmp(name, "cuLaunchKernelEx", strlen("cuLaunchKernelEx")) == 0)
        return 0; /* the configuration is a copy */
    for (size_t i = 0; i < sizeof arities / sizeof *arities; i++)
        if (strcmp(arities[i].name, name) == 0)
            return arities[i].count < ARGUMENTS ? arities[i].count : ARGUMENTS;
    fail_msg("%s is not in cuda.h", name);
    return 0;
}

struct hook {
    const char *name;
    any_function call;
};

static const struct hook hooks[] = {
#define FN_HOOK(name) {#name, (any_function)(void (*)(void))hook_##name},
#define FN_CALL(name)
#define FN(name, since, verb) FN_##verb(name)
#include "shim/driver.def"
#undef FN
#undef FN_HOOK
#undef FN_CALL
};

/* These two answer with what they were given: tested with the doors. */
CUresult hook_cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    (void)symbol;
    (void)function;
    (void)version;
    (void)flags;
    test.calls++;
    return test.answer;
}

CUresult hook_cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *status)
{
    (void)status;
    return hook_cuGetProcAddress(symbol, function, version, flags);
}

/* A set of rows whose pitch is less than their width is wrong before anyone is asked. */
static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strncmp(name, *list, strlen(*list)) == 0)
            return true;
    return false;
}

static CUresult call_hook(const struct hook *hook)
{
    char base[64];
    const uintptr_t *a = test.arguments;
    snprintf(base, sizeof base, "%.*s", (int)base_length(hook->name), hook->name);
    test.base = base;
    test.entered = test.left = test.calls = test.wrong_arguments = test.engine_calls = 0;
    test.argument_count = arity_of(hook->name);
    for (size_t i = 0; i < (1 << 16) / sizeof(uint32_t); i++)
        ((uint32_t *)LOW_ADDRESS)[i] = test.fill;
    return hook->call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
}

static int set_up(void **state)
{
    void *low = mmap((void *)LOW_ADDRESS, LOW_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    (void)state;
    if (low != (void *)LOW_ADDRESS)
        return 1;
    /* Rising by a multiple of every element size, so that a pitch is above a width. */
    for (int i = 0; i < ARGUMENTS; i++)
        test.arguments[i] = LOW_ADDRESS + 0x400 * (uintptr_t)i;
#define FN(name, since, verb) driver.name = (__typeof__(driver.name))(void (*)(void))fake_##name;
#include "shim/driver.def"
#undef FN
    return 0;
}

static void check_once(const struct hook *hook, CUresult result, const char *when)
{
    static const char *const early[] = {"cuMemsetD2D", NULL};
    if (is_one_of(hook->name, early) && result == CUDA_ERROR_INVALID_VALUE && test.calls == 0)
        return;
    if (test.calls != 1 || test.wrong_arguments || result != test.answer || test.entered != test.left)
        fail_msg("%s, %s: %d calls (%s), %d wrong arguments, answer %d for %d, gate entered %d left %d", hook->name,
                 when, test.calls, test.called, test.wrong_arguments, result, test.answer, test.entered, test.left);
}

static void test_gate_closed(void **state)
{
    (void)state;
    test.is_gate_open = false;
    test.answer = CUDA_ERROR_UNKNOWN;
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        CUresult result = call_hook(&hooks[i]);
        assert_int_equal(test.engine_calls, 0);
        /* The 32-bit forms of these two ask by the 64-bit ones. */
        if (strcmp(hooks[i].name, "cuMemGetInfo") != 0 && strcmp(hooks[i].name, "cuDeviceTotalMem") != 0)
            check_once(&hooks[i], result, "gate closed");
    }
}

/* Answered by the engine, by others of the driver's functions, or not at all where an answer is the program's. */
static const char *const not_forwarded[] = {"cuMemGetInfo", "cuDeviceTotalMem", NULL};

static void test_gate_open(void **state)
{
    static const CUresult answers[] = {CUDA_ERROR_UNKNOWN, CUDA_SUCCESS};
    (void)state;
    test.is_gate_open = true;
    test.does_engine_refuse = false;
    for (int answer = 0; answer < 2; answer++) {
        test.answer = answers[answer];
        for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
            CUresult result = call_hook(&hooks[i]);
            assert_int_equal(test.entered, test.left);
            if (!is_one_of(hooks[i].name, not_forwarded))
                check_once(&hooks[i], result, "gate open");
        }
    }
}

/* Calls that ask the engine for nothing it could refuse. */
static const char *const never_refused[] = {
    "cuGetProcAddress", "cuMemGetInfo", "cuDeviceTotalMem", "cuMemGetAddressRange", "cuMemFree", "cuMemPool",
    "cuIpcClose", "cuDestroyExternal", "cuDeviceGraphMemTrim", "cuMemRelease", "cuMemUnmap", "cuMemImport",
    "cuArrayDestroy", "cuMipmappedArrayDestroy", "cuLaunchHostFunc", "cuStreamAddCallback", "cuMemcpyAtoH",
    "cuStreamSynchronize", "cuStreamQuery", "cuStreamDestroy", "cuStreamBegin", "cuStreamEnd", "cuEvent", "cuCtxSync",
    "cuCtxDe", "cuDevicePrimary", "cuModule", "cuLibrary",
    /* and those that no pattern of words makes ask: test_charges.c */
    "cuMemAllocPitch_v2", "cuIpcOpenMemHandle", "cuCtxSetLimit", "cuMemMap", "cuMipmappedArrayCreate", "cuMemsetD2D",
    "cuGraphAddKernelNode", "cuGraphKernelNodeSetParams", "cuGraphExecKernelNodeSetParams", "cuGraphAddBatchMemOpNode",
    "cuGraphBatchMemOpNodeSetParams", "cuGraphExecBatchMemOpNodeSetParams", "cuGraphLaunch", NULL};

/* Structures of ones or twos name device memory, in one enumeration or another. Those that hold pointers to follow
 * are only given as zeros. */
static bool can_fill(const char *name)
{
    return strstr(name, "KernelNode") == NULL && strstr(name, "BatchMemOpNode") == NULL &&
           strstr(name, "LaunchCooperativeKernelMultiDevice") == NULL && strncmp(name, "cuModule", 8) != 0 &&
           strncmp(name, "cuLibrary", 9) != 0 && strncmp(name, "cuLaunchKernel", 14) != 0;
}

/* Whatever the engine refuses is not given to the driver: the program gets the engine's answer. */
static void test_engine_refuses(void **state)
{
    bool is_refused[sizeof hooks / sizeof *hooks] = {false};
    int refused = 0;
    (void)state;
    test.is_gate_open = true;
    test.does_engine_refuse = true;
    test.answer = CUDA_SUCCESS;
    for (test.fill = 0; test.fill <= 2; test.fill++)
        for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
            if (test.fill && !can_fill(hooks[i].name))
                continue;
            CUresult result = call_hook(&hooks[i]);
            assert_int_equal(test.entered, test.left);
            if (result != CUDA_ERROR_OUT_OF_MEMORY)
                continue;
            is_refused[i] = true;
            if (test.calls)
                fail_msg("%s reached the driver although the engine had refused", hooks[i].name);
        }
    test.fill = 0;
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        refused += is_refused[i];
        if (!is_refused[i] && !is_one_of(hooks[i].name, never_refused))
            fail_msg("%s was never refused", hooks[i].name);
    }
    assert_true(refused >= 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_closed),
        cmocka_unit_test(test_gate_open),
        cmocka_unit_test(test_engine_refuses),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
