/* The entries: per hooked function and door, count the call and go to the hook, all registers as they came.
 * Assembly, because no C function can hand on arguments that it does not know. The direct entry is the exported
 * name itself; through0_NAME is the same place under a name that no other library can take over. */

#if defined(__x86_64__)

#define ENTRY_BODY(name, door) "lock incq doors_counts + 64 * " door "(%rip)\n jmp hook_" name "\n"

#elif defined(__aarch64__)

#define ENTRY_BODY(name, door)                                                                                         \
    "adrp x16, doors_counts + 64 * " door "\n"                                                                         \
    "add x16, x16, :lo12:doors_counts + 64 * " door "\n"                                                               \
    "0: ldxr x17, [x16]\n"                                                                                             \
    "add x17, x17, #1\n"                                                                                               \
    "stxr w15, x17, [x16]\n"                                                                                           \
    "cbnz w15, 0b\n"                                                                                                   \
    "b hook_" name "\n"

#else
#error "add entries for this processor"
#endif

#define ENTRY(symbol, name, door, visibility)                                                                          \
    ".globl " symbol "\n" visibility "\n"                                                                              \
    ".type " symbol ", STT_FUNC\n" symbol ":\n" ENTRY_BODY(name, door) ".size " symbol ", . - " symbol "\n"
#define HIDDEN_ENTRY(prefix, name, door) ENTRY(prefix name, name, door, ".hidden " prefix name)

/* Numbers as in enum door. */
#define FN_HOOK(name)                                                                                                  \
    __asm__(".text\n .p2align 4\n .globl through0_" #name "\n .hidden through0_" #name "\n through0_" #name            \
            ":\n" ENTRY(#name, #name, "0", "") HIDDEN_ENTRY("through1_", #name, "1")                                   \
                HIDDEN_ENTRY("through2_", #name, "2") HIDDEN_ENTRY("through3_", #name, "3")                            \
                    HIDDEN_ENTRY("through4_", #name, "4"));
#define FN_CALL(name)
#define FN(name, since, verb) FN_##verb(name)
#include "shim/driver.def"
