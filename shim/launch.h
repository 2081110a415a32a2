/* A captured operation (launch, copy or memset) and issuing it again.
 *
 * Whatever the kind, the arguments are one block of bytes, and every word of it that lies in the arena is
 * listed in `uses`. So moving an operation to other memory is: copy the block, overwrite the words.
 *   LAUNCH   the kernel's argument block, laid out by cuFuncGetParamInfo
 *   COPY     struct copy_arguments
 *   SET      struct set_arguments
 * The block and the arrays belong to the caller of engine_submit (they are on its stack); the engine copies
 * what it keeps.
 *
 * Streams are canonical: never NULL. The plain functions' NULL is CU_STREAM_LEGACY, the _ptsz/_ptds
 * variants' NULL is CU_STREAM_PER_THREAD; so one set of driver functions serves both. */
#pragma once
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum operation_kind { OPERATION_LAUNCH, OPERATION_COPY, OPERATION_SET };

#define LAUNCH_MAX_USES           512
#define LAUNCH_MAX_ATTRIBUTES     16
#define LAUNCH_MAX_ARGUMENT_BYTES 32768

struct use {
    uint32_t where;      /* byte offset of the word in the argument block */
    CUdeviceptr address; /* its value: an address in the arena */
};

enum copy_direction { COPY_HOST_TO_DEVICE, COPY_DEVICE_TO_HOST, COPY_DEVICE_TO_DEVICE };

struct copy_arguments {
    uint64_t destination, source; /* device addresses or host pointers, by direction */
    uint64_t bytes;
    uint32_t direction;      /* enum copy_direction */
    uint32_t is_synchronous; /* the program called the blocking form */
};

struct set_arguments {
    uint64_t destination;
    uint64_t pitch;         /* bytes from row to row; 0 for one row */
    uint64_t width, height; /* elements per row, rows (1 for the plain forms) */
    uint32_t element_bytes; /* 1, 2, 4 */
    uint32_t value;
    uint32_t is_synchronous;
    uint32_t unused;
};

/* What is known of a function, looked up once per function handle and kept for ever (hook_module.c drops
 * the entry when its module is unloaded). */
struct function_facts {
    CUfunction function;
    const char *name; /* cuFuncGetName, or "?" */
    uint32_t param_count;
    uint32_t argument_bytes; /* size of the whole block */
    bool has_param_info;     /* false: driver without cuFuncGetParamInfo, or it failed: the launch is opaque */
    bool is_readable;        /* code was read (PTX found) */
    bool is_impure;          /* order-dependent or impure instructions; impure_reason says which */
    const char *impure_reason;
    bool has_indirect_access;                       /* accesses memory through pointers loaded from memory */
    bool has_indirect_store;                        /* ... and writes through them */
    bool reads_module_memory, writes_module_memory; /* variables of its module */
    /* One bit per 8-byte word of the argument block (word w = bytes 8w..8w+7; bit w%64 of element w/64);
     * only valid if is_readable. Blocks longer than 512*8 bytes: words beyond are taken as stored and loaded. */
    uint64_t stored_words[8];  /* memory may be written through this word */
    uint64_t loaded_words[8];  /* memory may be read through this word */
    uint64_t escaped_words[8]; /* the kernel may store this word's value in memory */
    bool has_unaligned_params; /* structs that may hold pointers off 8-byte words (valid even if not is_readable) */
};

struct operation {
    enum operation_kind kind;
    CUstream stream;
    unsigned char *arguments;
    uint32_t argument_bytes;
    uint32_t use_count;
    struct use *uses; /* in ascending order of `where` */
    /* launches only */
    const struct function_facts *facts;
    CUlaunchConfig config;     /* grid, block, shared, stream, attrs (attrs points to the caller's copy) */
    bool is_opaque;            /* arguments could not be read: pins everything it might touch; never replayed */
    bool is_cooperative_multi; /* never replayed */
    bool is_captured;          /* under stream capture: does not run now; never replayed */
    uint32_t stack;            /* where it was called, in the trace; 0: not known */
    /* The program's own way to make this call, used when nothing has to be patched: called with `call`. */
    CUresult (*forward)(void *call);
    void *call;
};

/* Issues the operation with the arguments in `arguments` (of operation->argument_bytes). */
CUresult launch_issue(const struct operation *operation, const unsigned char *arguments);

/* Hash of everything but scalar values and addresses: kind, function, grid, block, shared bytes, argument
 * bytes, copy direction and size. (The engine adds the sizes of the touched allocations.) */
uint64_t launch_signature(const struct operation *operation);

/* Facts for a function handle (CUfunction or CUkernel cast); never NULL. Thread-safe; makes driver calls on the first
 * sight of a handle. */
const struct function_facts *launch_facts(CUfunction function);

/* Fills operation->uses (capacity LAUNCH_MAX_USES) from the argument block: every 8-byte-aligned word, and of
 * packed structs every word, inside [arena_begin, arena_end). Returns false if there were too many. */
bool launch_find_uses(struct operation *operation, CUdeviceptr arena_begin, CUdeviceptr arena_end);
