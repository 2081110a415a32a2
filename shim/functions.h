/* What is known of each kernel handle, learned at its first launch and kept for ever.
 *
 * Invariants
 *   an entry never moves and its facts never change, so pointers to it stay valid after the kernel's module is
 *     gone; a handle that is used anew after an unload gets a new entry
 *   parameters are in the order of the declaration; their bytes lie inside facts->argument_bytes
 * Any thread. Look-ups of known handles take no lock; no driver call is made under the lock. */
#pragma once
#include "shim/launch.h"

struct parameter {
    uint32_t offset, bytes; /* in the argument block, as the driver laid it out */
};

/* facts->param_count elements; facts must come from launch_facts. */
const struct parameter *functions_parameters(const struct function_facts *facts);

/* The module or library (its handle) is about to be unloaded: its kernels' handles may come to mean something else. */
void functions_forget(const void *owner);
