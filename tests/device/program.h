/* From PTX text to blocks that run on this CPU: the contract between the PTX translator (ptx_*.c,
 * program.c) and the driver (everything else in tests/device/).
 *
 * A program is one loaded PTX module. Its entries are translated to C and compiled at first use, cached
 * on disk. The driver owns memory, streams and worker threads; the translator owns what one block does. */
#pragma once
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program;

struct program_param {
    uint32_t offset, bytes, align;
};

struct program_entry {
    const char *name; /* as in the PTX (mangled) */
    uint32_t param_count;
    const struct program_param *params;
    size_t param_bytes;      /* size of the whole argument block */
    size_t shared_bytes;     /* static shared memory */
    size_t local_bytes;      /* .local memory per thread */
    uint32_t max_threads;    /* .maxntid product, 1024 if not given */
    uint32_t register_count; /* a plausible number for cuFuncGetAttribute */
    bool waits_for_blocks;   /* a loop of it polls memory, as if for an earlier block (decoupled look-back):
                                such a grid's blocks must be started in their order */
};

struct program_global {
    const char *name;
    size_t bytes, align;
    bool is_constant;
    const void *initial; /* bytes long, or NULL: zeros. Address relocations: see fixups */
    void *address;       /* set by the driver before the first entry is compiled */
};

/* Parses PTX. NULL on failure, with one line in why that names line and instruction; *error is then the
 * CUresult for the caller (CUDA_ERROR_INVALID_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, ...). */
struct program *program_parse(const char *text, size_t bytes, CUresult *error, char *why, size_t why_bytes);
void program_release(struct program *program);

/* 75 for .target sm_75: what CU_FUNC_ATTRIBUTE_PTX_VERSION answers. */
uint32_t program_target(const struct program *program);

size_t program_entry_count(const struct program *program);
const struct program_entry *program_entry(const struct program *program, size_t index);
size_t program_global_count(const struct program *program);
struct program_global *program_global(struct program *program, size_t index);
/* Writes initial values (relocations to other globals included) to the addresses the driver has set. */
void program_initialise_globals(struct program *program);

/* One grid in flight. The driver fills it; it lives until all blocks are done. */
struct program_grid {
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    const void *params; /* param_bytes long, already copied */
    uint64_t seed;      /* 0: natural order of threads; else adversarial order of warps/threads between barriers */
    bool is_cooperative;
    void *barrier; /* cooperative: 64 bytes of zeros, shared by the grid's blocks, which then must all
                      be run at the same time, each on a thread of its own; else NULL */
};

/* Per worker thread. `fault` does not return; it is called for trap, assert, misaligned access and the
 * like. SIGSEGV inside program_run_block is the driver's business (it jumps out with siglongjmp);
 * program_run_block must therefore hold no lock and own no heap memory that is not in `scratch`. */
struct program_worker {
    void (*fault)(struct program_worker *worker, CUresult code, const char *what);
    void *scratch; /* grown by program_run_block with malloc/realloc; kept between blocks */
    size_t scratch_bytes;
    void *self; /* the driver's */
};

/* Translates the entry, without compiling it: false, with why, if an instruction of it is refused. */
bool program_check(struct program *program, size_t entry, char *why, size_t why_bytes);

/* Compiles the entry if needed (thread-safe; on-disk cache; *was_compiled says whether the C compiler ran). */
bool program_prepare(struct program *program, size_t entry, bool *was_compiled, char *why, size_t why_bytes);

/* Runs block `index` (linear, x fastest) of the grid on the calling thread, to its end. */
void program_run_block(struct program *program, size_t entry, const struct program_grid *grid, uint64_t index,
                       struct program_worker *worker);
