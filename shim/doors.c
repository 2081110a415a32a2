#include "shim/doors.h"

#include "shim/driver.h"
#include "shim/hooks.h"
#include "shim/linker.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* One cache line each, so that two doors do not slow one another. doors_entries.c counts in them. */
struct door_count {
    uint64_t calls;
    uint64_t padding[7];
};
__attribute__((visibility("hidden"))) extern struct door_count doors_counts[DOOR_COUNT];
struct door_count doors_counts[DOOR_COUNT] __attribute__((aligned(64)));

#define FN_HOOK(name)                                                                                                  \
    __attribute__((visibility("hidden"))) extern __typeof__(name) through0_##name, through1_##name, through2_##name,   \
        through3_##name, through4_##name;
#define FN_CALL(name)
#define FN(name, since, verb) FN_##verb(name)
#include "shim/driver.def"
#undef FN
#undef FN_HOOK
#undef FN_CALL

/* By row; NULL where the row is not hooked. */
static void *const entries[DRIVER_COUNT][DOOR_COUNT] = {
#define FN_HOOK(name)                                                                                                  \
    [DRIVER_##name] = {(void *)through0_##name, (void *)through1_##name, (void *)through2_##name,                      \
                       (void *)through3_##name, (void *)through4_##name},
#define FN_CALL(name)
#define FN(name, since, verb) FN_##verb(name)
#include "shim/driver.def"
#undef FN
#undef FN_HOOK
#undef FN_CALL
};

struct named_row {
    const char *name;
    int row;
};

/* The HOOK rows of driver.def in the order of strcmp; made by the Makefile. */
static const struct named_row by_name[] = {
#define HOOKED(name) {#name, DRIVER_##name},
#include "gen/hooks_by_name.def"
#undef HOOKED
};

const char *doors_name(enum door door)
{
    static const char *const names[DOOR_COUNT] = {"direct", "dlsym", "dlvsym", "cuGetProcAddress",
                                                  "cuGetProcAddress_v2"};
    return names[door];
}

uint64_t doors_calls(enum door door)
{
    return __atomic_load_n(&doors_counts[door].calls, __ATOMIC_RELAXED);
}

/* -1: not ours. */
static int find_row(const char *name)
{
    if (name[0] != 'c' || name[1] != 'u')
        return -1;
    size_t low = 0, high = sizeof by_name / sizeof *by_name;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = linker_compare(name, by_name[middle].name);
        if (order == 0)
            return by_name[middle].row;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

/* What a look-up answers; also read by the assembly below. */
#define LEAVE_TO_LINKER ((void *)0)
#define ANSWER_NULL     ((void *)-1)

__attribute__((visibility("hidden"))) void *doors_answer(void *handle, const char *name, const void *caller);
__attribute__((visibility("hidden"))) void *doors_answer_version(void *handle, const char *name, const char *version,
                                                                 const void *caller);
/* The overrides below, under names that no other library can take over. */
__attribute__((visibility("hidden"))) extern void *doors_dlsym(void *handle, const char *name);
__attribute__((visibility("hidden"))) extern void *doors_dlvsym(void *handle, const char *name, const char *version);

static bool is_pseudo(void *handle)
{
    return handle == RTLD_DEFAULT || handle == RTLD_NEXT;
}

/* Another preloaded library that looks for the "real" dlsym must find ours, or what it looks up escapes. */
static void *answer_look_up(void *handle, const char *name, const void *found)
{
    const struct linker_functions *real = linker_functions();
    bool is_versioned = linker_compare(name, "dlvsym") == 0;
    if (!is_versioned && linker_compare(name, "dlsym") != 0)
        return LEAVE_TO_LINKER;
    void *ours = is_versioned ? (void *)doors_dlvsym : (void *)doors_dlsym;
    const void *libc_own = is_versioned ? (const void *)real->dlvsym : (const void *)real->dlsym;
    return handle == RTLD_NEXT || found == libc_own ? ours : LEAVE_TO_LINKER;
}

/* A function of that name that is neither ours nor the driver's: somebody else's interposer, to be left alone. */
static bool is_foreign(int row, const void *found)
{
    if (found == entries[row][DOOR_DIRECT])
        return false;
    int known = driver_find_address(found);
    Dl_info info;
    if (known >= 0 || dladdr(found, &info) == 0 || info.dli_fname == NULL)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    return strncmp(file, "libcuda", strlen("libcuda")) != 0;
}

static void *answer(int row, void *handle, const char *name, const char *version, enum door door, const void *caller)
{
    const struct linker_functions *real = linker_functions();
    if (is_pseudo(handle) && !driver_is_present()) {
        /* Our own exported name must not make the program believe in a driver; this sets dlerror. */
        static const char missing[] = "cu (no libcuda is loaded)";
        real->dlsym(RTLD_DEFAULT, missing);
        return ANSWER_NULL;
    }
    if (handle == RTLD_NEXT)
        return linker_has_between(caller, entries[row][DOOR_DIRECT], name) ? LEAVE_TO_LINKER : entries[row][door];
    void *found = version && handle != RTLD_DEFAULT ? real->dlvsym(handle, name, version) : real->dlsym(handle, name);
    if (found == NULL || is_foreign(row, found))
        return LEAVE_TO_LINKER;
    return entries[row][door];
}

void *doors_answer(void *handle, const char *name, const void *caller)
{
    linker_functions();
    if (name == NULL)
        return LEAVE_TO_LINKER;
    if (name[0] == 'd')
        return answer_look_up(handle, name, is_pseudo(handle) ? NULL : linker_functions()->dlsym(handle, name));
    int row = find_row(name);
    return row < 0 ? LEAVE_TO_LINKER : answer(row, handle, name, NULL, DOOR_DLSYM, caller);
}

void *doors_answer_version(void *handle, const char *name, const char *version, const void *caller)
{
    linker_functions();
    if (name == NULL || version == NULL)
        return LEAVE_TO_LINKER;
    if (name[0] == 'd') {
        void *from = handle == RTLD_NEXT ? RTLD_DEFAULT : handle;
        return answer_look_up(handle, name, linker_functions()->dlvsym(from, name, version));
    }
    int row = find_row(name);
    return row < 0 ? LEAVE_TO_LINKER : answer(row, handle, name, version, DOOR_DLVSYM, caller);
}

/* dlsym and dlvsym: ask the function above; if it leaves the answer to the linker, jump there with the
 * caller's own arguments and return address. Assembly, so that it is a jump at every level of optimisation. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl dlsym\n .type dlsym, @function\n dlsym:\n"
        ".globl doors_dlsym\n .hidden doors_dlsym\n doors_dlsym:\n"
        ".cfi_startproc\n"
        "mov (%rsp), %rdx\n"
        "push %rdi\n .cfi_adjust_cfa_offset 8\n"
        "push %rsi\n .cfi_adjust_cfa_offset 8\n"
        "sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n"
        "call doors_answer\n"
        "add $8, %rsp\n .cfi_adjust_cfa_offset -8\n"
        "pop %rsi\n .cfi_adjust_cfa_offset -8\n"
        "pop %rdi\n .cfi_adjust_cfa_offset -8\n"
        "test %rax, %rax\n"
        "jz 1f\n"
        "cmp $-1, %rax\n"
        "jne 2f\n"
        "xor %eax, %eax\n"
        "2: ret\n"
        "1: jmp *linker_found(%rip)\n"
        ".cfi_endproc\n"
        ".size dlsym, . - dlsym\n"
        ".globl dlvsym\n .type dlvsym, @function\n dlvsym:\n"
        ".globl doors_dlvsym\n .hidden doors_dlvsym\n doors_dlvsym:\n"
        ".cfi_startproc\n"
        "mov (%rsp), %rcx\n"
        "push %rdi\n .cfi_adjust_cfa_offset 8\n"
        "push %rsi\n .cfi_adjust_cfa_offset 8\n"
        "push %rdx\n .cfi_adjust_cfa_offset 8\n"
        "call doors_answer_version\n"
        "pop %rdx\n .cfi_adjust_cfa_offset -8\n"
        "pop %rsi\n .cfi_adjust_cfa_offset -8\n"
        "pop %rdi\n .cfi_adjust_cfa_offset -8\n"
        "test %rax, %rax\n"
        "jz 1f\n"
        "cmp $-1, %rax\n"
        "jne 2f\n"
        "xor %eax, %eax\n"
        "2: ret\n"
        "1: jmp *linker_found + 8(%rip)\n"
        ".cfi_endproc\n"
        ".size dlvsym, . - dlvsym\n");
#elif defined(__aarch64__)
#define LOOK_UP(name, answer, caller, slot)                                                                            \
    __asm__(".text\n"                                                                                                  \
            ".p2align 4\n"                                                                                             \
            ".globl " name "\n"                                                                                        \
            ".type " name ", %function\n" name ":\n"                                                                   \
            ".globl doors_" name "\n .hidden doors_" name "\n doors_" name ":\n"                                       \
            ".cfi_startproc\n"                                                                                         \
            "stp x29, x30, [sp, #-48]!\n .cfi_adjust_cfa_offset 48\n"                                                  \
            ".cfi_rel_offset x29, 0\n .cfi_rel_offset x30, 8\n"                                                        \
            "mov x29, sp\n"                                                                                            \
            "stp x0, x1, [sp, #16]\n"                                                                                  \
            "str x2, [sp, #32]\n"                                                                                      \
            "mov " caller ", x30\n"                                                                                    \
            "bl " answer "\n"                                                                                          \
            "mov x17, x0\n"                                                                                            \
            "ldp x0, x1, [sp, #16]\n"                                                                                  \
            "ldr x2, [sp, #32]\n"                                                                                      \
            "ldp x29, x30, [sp], #48\n .cfi_adjust_cfa_offset -48\n .cfi_restore x29\n .cfi_restore x30\n"             \
            "cbz x17, 1f\n"                                                                                            \
            "cmn x17, #1\n"                                                                                            \
            "csel x0, xzr, x17, eq\n"                                                                                  \
            "ret\n"                                                                                                    \
            "1: adrp x16, linker_found\n"                                                                              \
            "add x16, x16, :lo12:linker_found\n"                                                                       \
            "ldr x16, [x16, #" slot "]\n"                                                                              \
            "br x16\n"                                                                                                 \
            ".cfi_endproc\n"                                                                                           \
            ".size " name ", . - " name "\n")
LOOK_UP("dlsym", "doors_answer", "x2", "0");
LOOK_UP("dlvsym", "doors_answer_version", "x3", "8");
#endif

/* By address, so that versions, per-thread forms and functions newer than us come out as the driver has them. */
static void replace(void **function, enum door door)
{
    int row = driver_find_address(*function);
    if (row >= 0 && entries[row][door])
        *function = entries[row][door];
}

CUresult hook_cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    CUresult result = driver.cuGetProcAddress(symbol, function, version, flags);
    if (result == CUDA_SUCCESS && function)
        replace(function, DOOR_GET_PROC_ADDRESS);
    return result;
}

CUresult hook_cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *status)
{
    CUresult result = driver.cuGetProcAddress_v2(symbol, function, version, flags, status);
    if (result == CUDA_SUCCESS && function)
        replace(function, DOOR_GET_PROC_ADDRESS_V2);
    return result;
}
