/* Modules, libraries and functions: loaded programs and handles into them.
 *
 * A library's kernels and a module's functions are the same objects: a CUkernel may be used wherever a
 * CUfunction is expected. Module globals are device memory, allocated at load. A library with globals has them once
 * for every context that uses it. Modules go with their context or by unload, after the device is idle; libraries by
 * unload. */
#pragma once
#include "tests/device/program.h"

struct module;

/* The state of launches in the form before CUDA 4. */
struct old_launch {
    unsigned block[3], shared_bytes;
    size_t argument_bytes;
    unsigned char arguments[];
};

struct function {
    enum handle_kind magic;
    struct module *module;
    size_t index;
    const struct program_entry *entry;
    int dynamic_shared_limit;
    int cache_config, carveout;
    struct old_launch *old; /* NULL: never used */
    _Atomic bool is_prepared;
    _Atomic uint32_t nanoseconds_per_block; /* 0: not known yet */
};

struct module {
    enum handle_kind magic;  /* HANDLE_MODULE or HANDLE_LIBRARY */
    struct context *context; /* NULL: a library's */
    uint64_t context_id;
    struct program *program;
    CUdeviceptr globals;  /* one allocation for all; 0: none */
    int device;           /* where they are */
    struct context *home; /* of a library: the context whose globals these are; NULL: nobody's yet */
    uint64_t home_id;
    char *text; /* of a library with globals, for its instances */
    size_t text_bytes;
    struct module *instances; /* of a library: the same once more, for other contexts, linked by next */
    size_t function_count;
    struct function *functions;
    struct module *next;
};

/* Where the caller's JIT options want the reason for a failure, and how long it is. */
struct load_log {
    char *text;
    size_t bytes;
    void **used; /* the option's value, which says at first how much room there is; or NULL */
};

/* The PTX of an image (text, a fatbin or a wrapper of one), NUL-terminated, to be freed; else the reason in `why`. */
CUresult module_read_text(const void *image, size_t known_bytes, char **text, size_t *bytes, char *why,
                          size_t why_bytes);
/* A whole file, followed by a NUL, to be freed; NULL if it cannot be read. */
char *module_read_file(const char *path, size_t *bytes);

/* From PTX text, a fatbin (the newest PTX not above the device's capability) or a wrapper of one. */
CUresult module_load(const void *image, size_t known_bytes, struct context *context, const struct load_log *log,
                     struct module **out);
void module_unload(struct module *module);
/* CUDA_ERROR_INVALID_PTX, with a line on stderr, where an instruction of the function is refused. */
CUresult function_check(struct function *function);
struct function *module_find_function(struct module *module, const char *name);
CUresult module_find_global(struct module *module, const char *name, CUdeviceptr *address, size_t *bytes);

/* The library as the context sees it (a module is always itself): with the context's own globals. */
CUresult module_in_context(struct module *module, struct context *context, struct module **out);

CUresult function_find(CUfunction handle, struct function **out);
/* The same function of module_in_context. */
CUresult function_in_context(struct function *function, struct context *context, struct function **out);
/* Compiled and ready to run; CUDA_ERROR_INVALID_PTX or what else went wrong, with a line on stderr. */
CUresult function_prepare(struct function *function);

/* The log of cuModuleLoadDataEx and kin. */
struct load_log load_log_of(unsigned count, const CUjit_option *options, void **values);
