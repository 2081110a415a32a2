#include "shim/code.h"
#include "shim/code_flow.h"
#include "shim/fatbin.h"
#include "shim/launch.h"
#include <pthread.h>
#include <string.h>

/* One PTX text. Facts are made at the first look-up of a kernel, under the lock of whoever owns the code. */
struct code {
    struct module_text module;
    struct code_facts **facts; /* per function; NULL: not looked at yet */
};

/* The module's index */

static bool grow_array(struct arena *arena, void **array, uint32_t count, uint32_t *capacity, size_t element)
{
    if (count < *capacity)
        return true;
    uint32_t wanted = *capacity ? *capacity * 2 : 32;
    void *bigger = arena_take(arena, wanted * element);
    if (!bigger)
        return false;
    if (count)
        memcpy(bigger, *array, count * element);
    *array = bigger;
    *capacity = wanted;
    return true;
}

static bool add_function(void *self, const struct text_function *function)
{
    struct module_text *module = self;
    if (!grow_array(&module->arena, (void **)&module->functions, module->function_count, &module->function_capacity,
                    sizeof *function))
        return false;
    module->functions[module->function_count++] = *function;
    return true;
}

static bool add_variable(void *self, const struct text_variable *variable)
{
    struct module_text *module = self;
    if (!grow_array(&module->arena, (void **)&module->variables, module->variable_count, &module->variable_capacity,
                    sizeof *variable))
        return false;
    module->variables[module->variable_count++] = *variable;
    return true;
}

static bool same_slice(struct slice a, struct slice b)
{
    return a.bytes == b.bytes && memcmp(a.at, b.at, a.bytes) == 0;
}

static uint32_t slot_count_for(uint32_t count)
{
    uint32_t slots = 16;
    while (slots < count * 2)
        slots *= 2;
    return slots;
}

static uint32_t *function_slot(const struct module_text *module, struct slice name)
{
    for (uint64_t at = slice_hash(name, 0);; at++) {
        uint32_t *slot = &module->function_slots[at & (module->function_slot_count - 1)];
        if (!*slot || same_slice(module->functions[*slot - 1].name, name))
            return slot;
    }
}

static uint32_t *variable_slot(const struct module_text *module, struct slice name)
{
    for (uint64_t at = slice_hash(name, 0);; at++) {
        uint32_t *slot = &module->variable_slots[at & (module->variable_slot_count - 1)];
        if (!*slot || same_slice(module->variables[*slot - 1].name, name))
            return slot;
    }
}

static bool index_module(struct module_text *module)
{
    module->function_slot_count = slot_count_for(module->function_count);
    module->variable_slot_count = slot_count_for(module->variable_count);
    module->function_slots = arena_take(&module->arena, module->function_slot_count * sizeof(uint32_t));
    module->variable_slots = arena_take(&module->arena, module->variable_slot_count * sizeof(uint32_t));
    if (!module->function_slots || !module->variable_slots)
        return false;
    for (uint32_t i = 0; i < module->function_count; i++) {
        uint32_t *slot = function_slot(module, module->functions[i].name);
        if (!*slot || module->functions[i].body.at) /* a definition beats its declaration */
            *slot = i + 1;
    }
    for (uint32_t i = 0; i < module->variable_count; i++)
        *variable_slot(module, module->variables[i].name) = i + 1;
    return true;
}

const struct text_function *module_find_function(const struct module_text *module, struct slice name)
{
    uint32_t slot = *function_slot(module, name);
    return slot ? &module->functions[slot - 1] : NULL;
}

const struct text_variable *module_find_variable(const struct module_text *module, struct slice name)
{
    uint32_t slot = *variable_slot(module, name);
    return slot ? &module->variables[slot - 1] : NULL;
}

/* One text */

struct code *code_read(const char *ptx, size_t bytes)
{
    struct arena arena = {0};
    struct code *code = arena_take(&arena, sizeof *code);
    char *text = arena_take(&arena, bytes + 1);
    struct text_visitor visitor = {.function = add_function, .variable = add_variable};
    if (!code || !text)
        goto fail;
    memcpy(text, ptx, bytes);
    text_blank_comments(text, bytes);
    code->module.arena = arena;
    code->module.text = (struct slice){text, bytes};
    visitor.self = &code->module;
    if (text_each(code->module.text, &visitor) && index_module(&code->module)) {
        code->facts = arena_take(&code->module.arena, (code->module.function_count + 1) * sizeof *code->facts);
        if (code->facts)
            return code;
    }
    arena = code->module.arena;
fail:
    arena_release(&arena);
    return NULL;
}

const struct code_facts *code_find(struct code *code, const char *name)
{
    uint32_t slot = *function_slot(&code->module, (struct slice){name, strlen(name)});
    if (!slot)
        return NULL;
    const struct text_function *function = &code->module.functions[slot - 1];
    if (!function->is_entry || !function->body.at)
        return NULL;
    if (!code->facts[slot - 1])
        code->facts[slot - 1] = flow_analyse(&code->module, function, &code->module.arena);
    return code->facts[slot - 1];
}

void code_release(struct code *code)
{
    if (!code)
        return;
    struct arena arena = code->module.arena; /* holds *code itself */
    arena_release(&arena);
}

/* All modules */

struct merged { /* a kernel found in several texts of one module */
    struct merged *next;
    struct code_facts facts;
};

struct module {
    struct module *next;
    const void *owner;
    struct arena arena; /* holds this struct */
    struct code **codes;
    uint32_t code_count, code_capacity;
    struct merged *merged;
};

static struct {
    pthread_mutex_t lock; /* guards everything below, and the laziness of every struct code in it */
    struct module *modules;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool add_text(void *self, const char *text, size_t bytes, uint32_t target)
{
    struct module *module = self;
    (void)target;
    struct code *code = code_read(text, bytes);
    if (!code)
        return true;
    if (grow_array(&module->arena, (void **)&module->codes, module->code_count, &module->code_capacity,
                   sizeof *module->codes))
        module->codes[module->code_count++] = code;
    else
        code_release(code);
    return true;
}

static void release_module(struct module *module)
{
    for (uint32_t i = 0; i < module->code_count; i++)
        code_release(module->codes[i]);
    struct arena arena = module->arena;
    arena_release(&arena);
}

/* Takes the owner's module out of the list; NULL if there is none. Lock held. */
static struct module *take_out(const void *owner)
{
    for (struct module **link = &registry.modules; *link; link = &(*link)->next) {
        struct module *module = *link;
        if (module->owner == owner) {
            *link = module->next;
            return module;
        }
    }
    return NULL;
}

size_t code_add_module_bytes(const void *owner, const void *image, size_t bytes)
{
    struct arena arena = {0};
    struct module *module = arena_take(&arena, sizeof *module);
    if (!module)
        return 0;
    *module = (struct module){.owner = owner, .arena = arena};
    image_each_ptx(image, bytes, add_text, module);
    size_t count = module->code_count;
    pthread_mutex_lock(&registry.lock);
    struct module *old = take_out(owner);
    module->next = registry.modules;
    registry.modules = module;
    pthread_mutex_unlock(&registry.lock);
    if (old)
        release_module(old);
    return count;
}

size_t code_add_module(const void *owner, const void *image)
{
    return code_add_module_bytes(owner, image, SIZE_MAX);
}

void code_drop_module(const void *owner)
{
    pthread_mutex_lock(&registry.lock);
    struct module *module = take_out(owner);
    pthread_mutex_unlock(&registry.lock);
    if (module)
        release_module(module);
}

void code_rename_module(const void *key, const void *owner)
{
    pthread_mutex_lock(&registry.lock);
    struct module *old = take_out(owner), *module = take_out(key);
    if (module) {
        module->owner = owner;
        module->next = registry.modules;
        registry.modules = module;
    }
    pthread_mutex_unlock(&registry.lock);
    if (old)
        release_module(old);
}

static size_t variable_bytes(const struct module_text *module)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < module->variable_count; i++)
        if (module->variables[i].space == SPACE_GLOBAL || module->variables[i].space == SPACE_CONST)
            bytes += module->variables[i].bytes;
    return bytes;
}

size_t code_module_variable_bytes(const void *owner)
{
    size_t most = 0;
    pthread_mutex_lock(&registry.lock);
    for (const struct module *module = registry.modules; module; module = module->next) {
        for (uint32_t i = 0; module->owner == owner && i < module->code_count; i++) {
            size_t bytes = variable_bytes(&module->codes[i]->module);
            most = bytes > most ? bytes : most;
        }
    }
    pthread_mutex_unlock(&registry.lock);
    return most;
}

static bool same_params(const struct code_facts *a, const struct code_facts *b)
{
    if (a->param_count != b->param_count)
        return false;
    for (uint32_t i = 0; i < a->param_count; i++)
        if (a->params[i].bytes != b->params[i].bytes)
            return false;
    return true;
}

static bool same_facts(const struct code_facts *a, const struct code_facts *b)
{
    size_t bytes = (a->word_count + 63) / 64 * sizeof(uint64_t);
    return same_params(a, b) && !a->unreadable_reason == !b->unreadable_reason &&
           !a->impure_reason == !b->impure_reason && a->has_indirect_load == b->has_indirect_load &&
           a->has_indirect_store == b->has_indirect_store && !memcmp(a->loaded_words, b->loaded_words, bytes) &&
           a->reads_module_memory == b->reads_module_memory && a->writes_module_memory == b->writes_module_memory &&
           a->has_unaligned_params == b->has_unaligned_params && !memcmp(a->stored_words, b->stored_words, bytes) &&
           !memcmp(a->escaped_words, b->escaped_words, bytes);
}

static const uint64_t *either(struct arena *arena, const uint64_t *a, const uint64_t *b, uint32_t words)
{
    uint32_t count = (words + 63) / 64;
    uint64_t *both = arena_take(arena, (count + 1) * sizeof *both);
    for (uint32_t i = 0; both && i < count; i++)
        both[i] = a[i] | b[i];
    return both;
}

/* What at least one of the two does. */
static const struct code_facts *merge(struct module *module, const struct code_facts *a, const struct code_facts *b)
{
    if (a->unreadable_reason)
        return a;
    if (b->unreadable_reason || same_facts(a, b))
        return b->unreadable_reason ? b : a;
    struct merged *merged = arena_take(&module->arena, sizeof *merged);
    if (!merged)
        return NULL;
    struct code_facts *facts = &merged->facts;
    *facts = *a;
    facts->impure_reason = a->impure_reason ? a->impure_reason : b->impure_reason;
    facts->has_indirect_load |= b->has_indirect_load;
    facts->has_indirect_store |= b->has_indirect_store;
    facts->reads_module_memory |= b->reads_module_memory;
    facts->writes_module_memory |= b->writes_module_memory;
    if (same_params(a, b)) {
        facts->loaded_words = either(&module->arena, a->loaded_words, b->loaded_words, a->word_count);
        facts->stored_words = either(&module->arena, a->stored_words, b->stored_words, a->word_count);
        facts->escaped_words = either(&module->arena, a->escaped_words, b->escaped_words, a->word_count);
        facts->has_unaligned_params |= b->has_unaligned_params;
    }
    if (!same_params(a, b) || !facts->loaded_words || !facts->stored_words || !facts->escaped_words)
        facts->unreadable_reason = "its code differs from target to target";
    merged->next = module->merged;
    module->merged = merged;
    return facts;
}

static const struct code_facts *find_in(struct module *module, const char *name)
{
    for (const struct merged *merged = module->merged; merged; merged = merged->next)
        if (strcmp(merged->facts.name, name) == 0)
            return &merged->facts;
    const struct code_facts *facts = NULL;
    for (uint32_t i = 0; i < module->code_count; i++) {
        const struct code_facts *found = code_find(module->codes[i], name);
        if (found)
            facts = facts ? merge(module, facts, found) : found;
    }
    return facts;
}

const struct code_facts *code_lookup(const void *owner, const char *name)
{
    const struct code_facts *facts = NULL;
    bool is_ambiguous = false;
    pthread_mutex_lock(&registry.lock);
    for (struct module *module = registry.modules; module; module = module->next) {
        if (owner && module->owner != owner)
            continue;
        const struct code_facts *found = find_in(module, name);
        if (found && facts && !same_facts(facts, found))
            is_ambiguous = true;
        facts = facts ? facts : found;
    }
    pthread_mutex_unlock(&registry.lock);
    return is_ambiguous ? NULL : facts;
}

/* Marks the words of the argument block that word `word` of a parameter at `offset` overlaps. */
static void mark(uint64_t *marks, uint32_t offset, uint32_t size, uint32_t word)
{
    uint32_t first = offset + word * 8, last = first + (size - word * 8 < 8 ? size - word * 8 : 8) - 1;
    for (uint32_t at = first / 8; at <= last / 8 && at < 512; at++)
        marks[at / 64] |= (uint64_t)1 << (at % 64);
}

bool code_fill_facts(const struct code_facts *facts, uint32_t param_count, const uint32_t *offsets,
                     const uint32_t *sizes, struct function_facts *out)
{
    out->is_readable = out->is_impure = out->has_indirect_access = out->has_indirect_store = false;
    out->impure_reason = NULL;
    memset(out->stored_words, 0, sizeof out->stored_words);
    memset(out->loaded_words, 0, sizeof out->loaded_words);
    memset(out->escaped_words, 0, sizeof out->escaped_words);
    if (facts->unreadable_reason || facts->param_count != param_count)
        return false;
    for (uint32_t i = 0; i < param_count; i++)
        if (facts->params[i].bytes != sizes[i])
            return false;
    for (uint32_t i = 0; i < param_count; i++) {
        for (uint32_t word = 0; word * 8 < sizes[i]; word++) {
            uint32_t bit = facts->params[i].first_word + word;
            if (facts->loaded_words[bit / 64] >> (bit % 64) & 1)
                mark(out->loaded_words, offsets[i], sizes[i], word);
            if (facts->stored_words[bit / 64] >> (bit % 64) & 1)
                mark(out->stored_words, offsets[i], sizes[i], word);
            if (facts->escaped_words[bit / 64] >> (bit % 64) & 1)
                mark(out->escaped_words, offsets[i], sizes[i], word);
        }
    }
    out->is_readable = true;
    out->has_unaligned_params = facts->has_unaligned_params;
    out->reads_module_memory = facts->reads_module_memory;
    out->writes_module_memory = facts->writes_module_memory;
    out->is_impure = facts->impure_reason != NULL;
    out->impure_reason = facts->impure_reason;
    out->has_indirect_access = facts->has_indirect_load || facts->has_indirect_store;
    out->has_indirect_store = facts->has_indirect_store;
    return true;
}
