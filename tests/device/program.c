/* Placeholder while the translator is being written: refuses every module. */
#include "tests/device/program.h"

#include <stdio.h>

struct program *program_parse(const char *text, size_t bytes, CUresult *error, char *why, size_t why_bytes)
{
    (void)text;
    (void)bytes;
    *error = CUDA_ERROR_NOT_SUPPORTED;
    snprintf(why, why_bytes, "the PTX translator is not there yet");
    return NULL;
}

void program_release(struct program *program) { (void)program; }
size_t program_entry_count(const struct program *program) { (void)program; return 0; }
const struct program_entry *program_entry(const struct program *program, size_t index) { (void)program; (void)index; return NULL; }
size_t program_global_count(const struct program *program) { (void)program; return 0; }
struct program_global *program_global(struct program *program, size_t index) { (void)program; (void)index; return NULL; }
void program_initialise_globals(struct program *program) { (void)program; }

bool program_prepare(struct program *program, size_t entry, bool *was_compiled, char *why, size_t why_bytes)
{
    (void)program;
    (void)entry;
    *was_compiled = false;
    snprintf(why, why_bytes, "the PTX translator is not there yet");
    return false;
}

void program_run_block(struct program *program, size_t entry, const struct program_grid *grid, uint64_t index,
                       struct program_worker *worker)
{
    (void)program;
    (void)entry;
    (void)grid;
    (void)index;
    worker->fault(worker, CUDA_ERROR_NOT_SUPPORTED, "the PTX translator is not there yet");
}
