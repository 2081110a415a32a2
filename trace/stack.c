#include "trace/stack.h"
#include <dlfcn.h>
#include <stdatomic.h>

#define LIBRARY "libunwind.so.8"

enum state { STACK_UNKNOWN, STACK_OPENING, STACK_OPEN, STACK_MISSING };

static _Atomic int state;
static int (*unwind)(void **addresses, int most); /* unw_backtrace: set once, before STACK_OPEN */

static bool open_library(const struct stack_linker *linker)
{
    int expected = STACK_UNKNOWN;
    if (!atomic_compare_exchange_strong(&state, &expected, STACK_OPENING))
        return atomic_load_explicit(&state, memory_order_acquire) == STACK_OPEN;
    void *library = linker->open(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *function = library ? linker->find(library, "unw_backtrace") : NULL;
    __builtin_memcpy(&unwind, &function, sizeof function);
    atomic_store_explicit(&state, function ? STACK_OPEN : STACK_MISSING, memory_order_release);
    return function != NULL;
}

uint32_t stack_capture(const struct stack_linker *linker, void **addresses, uint32_t most)
{
    int now = atomic_load_explicit(&state, memory_order_acquire);
    if (now != STACK_OPEN && (now != STACK_UNKNOWN || !open_library(linker)))
        return 0;
    int count = unwind(addresses, (int)most);
    return count > 0 ? (uint32_t)count : 0;
}

bool stack_is_available(void)
{
    return atomic_load_explicit(&state, memory_order_acquire) != STACK_MISSING;
}

uint64_t stack_hash(uint64_t before, void *const *addresses, uint32_t count)
{
    uint64_t hash = before ^ (uint64_t)count << 56;
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ (uintptr_t)addresses[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash | 1;
}
