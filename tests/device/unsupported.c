/* Functions of the driver that the CPU device does not have: each says so, once.
 *
 * Compiled without cuda.h: the callers' argument lists do not matter to a function that looks at none. */
#include <stdatomic.h>
#include <stdio.h>

#define NOT_SUPPORTED 801 /* CUDA_ERROR_NOT_SUPPORTED */

static int refuse(atomic_flag *was_said, const char *name)
{
    if (!atomic_flag_test_and_set(was_said))
        fprintf(stderr, "cpu device: %s is not supported\n", name);
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
#define EXPORT(symbol, name, version, variant, state) DEFINE_##state(symbol)
#include "tests/device/exports.def"
