/* From a kernel's text to its facts (shim/code.h): which parameter words reach which addresses.
 *
 * One set of origins per register, growing until nothing changes; control flow, call context and the order of
 * instructions are ignored, so the answer covers every execution. Shared memory is one cell, so is local memory. */
#pragma once
#include "shim/code.h"
#include "shim/code_text.h"

/* The named pieces of one module. Lookups return NULL for an unknown name. */
struct module_text {
    struct arena arena; /* owns the arrays and the text */
    struct slice text;
    struct text_function *functions;
    uint32_t function_count, function_capacity;
    struct text_variable *variables;
    uint32_t variable_count, variable_capacity;
    uint32_t *function_slots, *variable_slots; /* open addressing: index + 1 */
    uint32_t function_slot_count, variable_slot_count;
};

const struct text_function *module_find_function(const struct module_text *module, struct slice name);
const struct text_variable *module_find_variable(const struct module_text *module, struct slice name);

/* Facts of `entry`, allocated from `keep`; NULL only if there is no memory even for the answer. */
struct code_facts *flow_analyse(const struct module_text *module, const struct text_function *entry,
                                struct arena *keep);
