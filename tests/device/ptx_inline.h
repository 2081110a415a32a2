#pragma once
#include "tests/device/ptx.h"

/* Puts functions in which threads wait for each other into the entry that calls them, as only an entry's threads can
 * stop half-way. False with *name where that does not end: such a function calls itself. */
bool ptx_inline_waiting_calls(struct ptx_module *module, struct ptx_function *entry, const char **name);
