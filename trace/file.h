/* Writing and reading trace files (format: trace/event.h). Both sides stand in trace/file.c.
 *
 * The writer runs inside somebody else's process: no malloc, no stdio; memory is mapped, bytes go out through
 * write(2) on a close-on-exec descriptor. The file has its own name from the start and grows by whole blocks, so that
 * whatever was written can be read if the program is killed. After the first error everything is ignored, and the
 * error is told: a trace that fails never disturbs the program. One thread at a time.
 *
 * The reader believes nothing: sizes, counts, numbers and order are checked before they are used, and a file that
 * is not as it should be is refused with one line. A file that was cut off is no fault: trace->is_cut. It uses
 * malloc. */
#pragma once
#include "trace/event.h"

struct trace_writer;

/* NULL with errno if the file cannot be made. What was there under that name is overwritten. */
struct trace_writer *trace_writer_open(const char *path);

/* The same into a file that is open and empty; closes the descriptor at the end, not if it fails. */
struct trace_writer *trace_writer_start(int descriptor);

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

/* Module, stack and thread numbers run from 1 in the order of these calls. */
void trace_writer_module(struct trace_writer *writer, const struct trace_module *module);
void trace_writer_stack(struct trace_writer *writer, const struct trace_stack *stack, const struct trace_frame *frames);
void trace_writer_thread(struct trace_writer *writer, const struct trace_thread *thread);

/* An event of any kind (TRACE_HELD .. TRACE_LOST): its struct, and for RAN the touches behind it. */
void trace_writer_event(struct trace_writer *writer, enum trace_kind kind, const void *body, size_t bytes);

/* Records that were put together elsewhere, a whole number of them, none longer than a block. Not checked. */
void trace_writer_records(struct trace_writer *writer, const void *records, size_t bytes);

/* Hands what was written so far to the system. */
void trace_writer_flush(struct trace_writer *writer);

/* 0, or the errno of the first thing that failed; EINVAL: records out of order. */
int trace_writer_error(const struct trace_writer *writer);

/* Writes END. 0, or trace_writer_error; the file then stays as a cut one. Releases the writer in any case. */
int trace_writer_close(struct trace_writer *writer);

/* Leaves the file cut. */
void trace_writer_abandon(struct trace_writer *writer);

/* A file in memory. Names are NUL-terminated; names[0] is "". */
struct trace_recorded {
    struct trace_iteration head;
    struct trace_allocation *allocations;
    struct trace_version *versions;
    struct trace_operation *operations;
    uint32_t *first_lists; /* per operation: its reads, then its writes, in lists */
    uint32_t *lists;
    uint32_t list_count;
};

#define TRACE_NEVER UINT64_MAX

/* One allocation of the run. */
struct trace_life {
    uint64_t id, address, bytes, footprint_bytes;
    uint64_t held_at, freed_at;             /* nanoseconds of the run; TRACE_NEVER: still held at the end */
    uint64_t held_sequence, freed_sequence; /* TRACE_NEVER as above */
    uint32_t source, what;                  /* enum trace_source; name */
    uint32_t thread, stack;
};

struct trace_touched {
    uint32_t life;   /* TRACE_NONE: its HELD is lost */
    uint32_t access; /* enum trace_access */
};

/* One operation of the run, or a replay of one. */
struct trace_submitted {
    uint64_t sequence, at;
    uint64_t number;      /* of a replay: of what it repeats, 0: not known */
    uint64_t nanoseconds; /* on the device; 0: not measured */
    uint64_t moved_bytes;
    uint32_t first_touch, touch_count; /* in trace->touches */
    uint32_t thread, stack;
    uint32_t kind, name, stream; /* enum trace_operation_kind; name; number */
    uint32_t grid[3], block[3], shared_bytes;
    bool is_replay;
};

struct trace_shift {
    struct trace_event event;
    uint64_t id, bytes;
    uint32_t life;     /* TRACE_NONE: not known, or its HELD is lost */
    uint32_t movement; /* enum trace_movement */
};

struct trace_frames { /* of one stack */
    struct trace_frame *frames;
    uint32_t count;
    bool is_cut;
};

/* All numbers in it have been checked: names, modules, stacks and threads are below their counts, whose element 0
 * stands for "not known". The arrays of events are each in the order of their sequence. */
struct trace {
    struct trace_run run;
    bool is_cut;         /* no END: the program was killed, or is still running */
    uint64_t lost_count; /* events that are missing, by LOST; and in a cut file those that fit to nothing */
    uint64_t end_at;     /* of the last event */
    char **names;
    uint32_t name_count;
    struct trace_recorded *iterations; /* analysed ones */
    uint32_t iteration_count;
    struct trace_module *modules;
    struct trace_frames *stacks;
    struct trace_thread *threads;
    uint32_t module_count, stack_count, thread_count;
    struct trace_life *lives;
    struct trace_submitted *submitted;
    struct trace_touched *touches;
    struct trace_phase_change *phases;
    struct trace_boundary *boundaries;
    struct trace_shift *shifts;
    struct trace_resident *residents;
    struct trace_lost *losses;
    uint32_t life_count, submitted_count, phase_count, boundary_count, shift_count, resident_count, loss_count;
    uint32_t touch_count;
};

/* Index of the life with this id, of the operation (not a replay) with this number; TRACE_NONE: there is none. */
uint32_t trace_find_life(const struct trace *trace, uint64_t id);
uint32_t trace_find_submitted(const struct trace *trace, uint64_t number);

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
