/* Declares hook_NAME for every HOOK row of driver.def, with the type that cuda.h gives NAME: a hook that does not
 * fit does not compile. */
#pragma once
#include <cuda.h>

#define FN_HOOK(name) __attribute__((visibility("hidden"))) extern __typeof__(name) hook_##name;
#define FN_CALL(name)
#define FN(name, since, verb) FN_##verb(name)
#include "shim/driver.def"
#undef FN
#undef FN_CALL
#undef FN_HOOK
