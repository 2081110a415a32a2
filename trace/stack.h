/* The calls that led here. The only user of libunwind.
 *
 * libunwind is opened with dlopen for ourselves alone: as a library of a preloaded one, its _Unwind_* functions and
 * backtrace would take the place of the program's. A thread that comes while another is still opening it gets no
 * frames: nobody waits. Capture before taking any lock; it may enter the dynamic linker. No malloc of its own. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How to look up `name` in the open library `handle`: the real dlopen and dlsym. */
struct stack_linker {
    void *(*open)(const char *name, int flags);
    void *(*find)(void *handle, const char *name);
};

/* Return addresses, innermost first, the caller's own one included. 0: there is no libunwind, or it is being opened. */
uint32_t stack_capture(const struct stack_linker *linker, void **addresses, uint32_t most);

/* False once it is known that there is no libunwind. */
bool stack_is_available(void);

uint64_t stack_hash(uint64_t before, void *const *addresses, uint32_t count);
