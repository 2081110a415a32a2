/* What a kernel's code says about itself, read from its PTX text.
 *
 * For every kernel: its parameters, through which 8-byte words of them it may load and store, whether it
 * follows pointers found in memory, and whether running it twice may give two results. The analysis ignores
 * control flow and keeps, per register, the set of parameter words that its value may be derived from; calls
 * are followed into the module's own functions. What is not understood makes a kernel unreadable, never pure.
 *
 * Assumptions, stated: a pointer is not built by multiplication, nor by shifting left by 1 to 7 bits (that is
 * how an index is scaled); a value narrower than 8 bytes that comes from memory is an index unless two of
 * them are put together. The driver may run a cubin of the same name: it is taken to come from the same
 * source. Where one image holds a kernel for several targets, the union of what they do counts.
 *
 * Ownership: facts belong to the module they came from and live until code_drop_module. Threads: every
 * code_*_module and code_lookup may be called from any thread; no driver function is called under the lock.
 * Memory: code_add_module uses malloc (decompression); code_lookup uses only mmap, and analyses a kernel at its
 * first look-up. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct function_facts; /* shim/launch.h */

struct code_param {
    uint32_t bytes;
    uint32_t offset;     /* by PTX's rule of natural alignment; the driver's word counts, see code_fill_facts */
    uint32_t first_word; /* words first_word .. first_word + (bytes + 7) / 8 - 1 of the bitmaps are its own */
};

struct code_facts {
    const char *name;
    const char *unreadable_reason; /* NULL if the code was understood; else everything below but the params is void */
    const char *impure_reason;     /* NULL if two runs on equal inputs give equal bytes */
    bool has_indirect_load, has_indirect_store;     /* through pointers loaded from memory, textures, surfaces */
    bool reads_module_memory, writes_module_memory; /* __device__ or __constant__ variables */
    uint32_t param_count;
    const struct code_param *params;
    uint32_t word_count;                         /* over all params; each param starts a new word */
    const uint64_t *loaded_words, *stored_words; /* (word_count + 63) / 64 elements; atomics are in both */
    const uint64_t *escaped_words; /* their value may be stored in memory: a pointer becomes known there */
    bool has_unaligned_params;     /* some parameter larger than 8 bytes may hold pointers off 8-byte words */
};

/* One PTX text, for tests and tools. NULL if there is no memory or the text is not PTX. */
struct code *code_read(const char *ptx, size_t bytes);
const struct code_facts *code_find(struct code *code, const char *name); /* NULL: no such kernel */
void code_release(struct code *code);

/* Registers the device code of a loaded module or library. `owner` is the CUmodule or CUlibrary handle, `image`
 * what was given to the driver (text, container, wrapper; an ELF image has nothing to read). Adding an owner again
 * replaces it. Returns the number of PTX texts found. */
size_t code_add_module(const void *owner, const void *image);

/* The same for an image in a file (cuModuleLoad, cuLibraryLoadFromFile): `bytes` bounds it. */
size_t code_add_module_bytes(const void *owner, const void *image, size_t bytes);

void code_drop_module(const void *owner);

/* What was added under `key` is `owner`'s from now on, and takes the place of what that had. */
void code_rename_module(const void *key, const void *owner);

/* Device memory of this owner's variables (.global, .const), in bytes; of the texts for several targets, the largest.
 */
size_t code_module_variable_bytes(const void *owner);

/* The kernel `name` of this owner; NULL if it is not known. With owner == NULL: the kernel of that name in any module,
 * and NULL if several modules have one that differs (the handle's module was never seen). */
const struct code_facts *code_lookup(const void *owner, const char *name);

/* Lays the facts out over the argument block as the driver placed the parameters: offsets[i], sizes[i] from
 * cuFuncGetParamInfo. Sets is_readable, is_impure, impure_reason, has_indirect_access, has_indirect_store,
 * has_unaligned_params, reads_module_memory, writes_module_memory, stored_words, loaded_words and escaped_words of *out
 * and nothing else. Returns false and sets is_readable = false if the code is unreadable or the parameters do not
 * agree. */
bool code_fill_facts(const struct code_facts *facts, uint32_t param_count, const uint32_t *offsets,
                     const uint32_t *sizes, struct function_facts *out);
