/* Writing and reading trace files (format: trace/event.h). Both sides stand in trace/file.c.
 *
 * The writer runs inside somebody else's process: no malloc, no stdio; memory is mapped, bytes go out through
 * write(2) on a close-on-exec descriptor. It writes to PATH.part and renames it to PATH when it is closed, so a file
 * of the right name is whole. After the first error everything is ignored, and the error is told at close: a
 * trace that fails never disturbs the program.
 *
 * The reader believes nothing: sizes, counts, numbers and order are checked before they are used, and a file that
 * is not as it should be is refused with one line. It uses malloc. */
#pragma once
#include "trace/event.h"

struct trace_writer;

/* NULL with errno if the file cannot be made. */
struct trace_writer *trace_writer_open(const char *path);

/* The number of a name, written at its first use; longer ones are cut at TRACE_NAME_MOST. NULL or "": 0. */
uint32_t trace_writer_name(struct trace_writer *writer, const char *name);

/* Records in the order that event.h demands. counts in the iteration are what will follow. */
void trace_writer_run(struct trace_writer *writer, const struct trace_run *run);
void trace_writer_iteration(struct trace_writer *writer, const struct trace_iteration *iteration);
void trace_writer_allocation(struct trace_writer *writer, const struct trace_allocation *allocation);
void trace_writer_version(struct trace_writer *writer, const struct trace_version *version);
/* reads, writes: read_count and write_count version numbers. At most TRACE_LISTS_MOST together. */
void trace_writer_operation(struct trace_writer *writer, const struct trace_operation *operation, const uint32_t *reads,
                            const uint32_t *writes);
#define TRACE_LISTS_MOST 8192u

/* Completes the file and gives it its name. 0, or the errno of the first thing that failed (the part file is then
 * removed; EINVAL: records out of order). Releases the writer in any case. */
int trace_writer_close(struct trace_writer *writer);

/* Gives up: removes the part file. */
void trace_writer_abandon(struct trace_writer *writer);

/* A whole file in memory. Names are NUL-terminated; names[0] is "". */
struct trace_recorded {
    struct trace_iteration head;
    struct trace_allocation *allocations;
    struct trace_version *versions;
    struct trace_operation *operations;
    uint32_t *first_lists; /* per operation: its reads, then its writes, in lists */
    uint32_t *lists;
    uint32_t list_count;
};

struct trace {
    struct trace_run run;
    char **names;
    uint32_t name_count;
    struct trace_recorded *iterations;
    uint32_t iteration_count;
};

/* False with one line in `why` that names the file. *out is then empty. */
bool trace_read(const char *path, struct trace *out, char *why, size_t why_bytes);
/* The same from memory; `label` stands for the file's name. */
bool trace_read_bytes(const void *bytes, size_t count, const char *label, struct trace *out, char *why,
                      size_t why_bytes);
void trace_release(struct trace *trace);

static inline const uint32_t *trace_reads(const struct trace_recorded *recorded, uint32_t operation)
{
    return recorded->lists + recorded->first_lists[operation];
}

static inline const uint32_t *trace_writes(const struct trace_recorded *recorded, uint32_t operation)
{
    return trace_reads(recorded, operation) + recorded->operations[operation].read_count;
}
