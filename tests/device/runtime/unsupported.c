/* Functions of the runtime that are not here: each says so, once. Compiled without the runtime's headers: the
 * callers' argument lists do not matter to a function that looks at none. */
#include <stdatomic.h>
#include <stdio.h>

#define NOT_SUPPORTED 801 /* cudaErrorNotSupported */

static int refuse(atomic_flag *was_said, const char *name)
{
    if (!atomic_flag_test_and_set(was_said))
        fprintf(stderr, "cuda runtime: %s is not supported\n", name);
    return NOT_SUPPORTED;
}

#define DEFINE_DONE(symbol)
#define DEFINE_TODO(symbol)                                                                                            \
    __attribute__((visibility("default"))) int symbol(void);                                                           \
    int symbol(void)                                                                                                   \
    {                                                                                                                  \
        static atomic_flag was_said = ATOMIC_FLAG_INIT;                                                                \
        return refuse(&was_said, #symbol);                                                                             \
    }
#define EXPORT(symbol, state) DEFINE_##state(symbol)
#include "tests/device/runtime/exports.def"
