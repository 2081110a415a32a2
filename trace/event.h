/* The trace: what is written down of a run, and the project's glossary for it.
 *
 *   operation   a launch, copy or memset, in the order of submission
 *   allocation  memory that the program asked for; exists from HELD to FREED, or from `born` to `ends` of an iteration
 *   version     the content of an allocation between two writes; exists from its producer to its replacement
 *   iteration   operations 0 .. operation_count - 1 with the allocations and versions that they touch
 *   verdict     what may be done with a version: recompute it, swap it, only hold it; with the reason
 *   position    p means just before operation p; operation_count is the iteration's end
 *   event       something that happened at one moment of the run: an allocation, a free, an operation, ...
 *   stack       the calls that led to an event, innermost first
 *
 * File format, version 2. Little-endian, every struct below without padding.
 *   file    = header, block, block, ...
 *   block   = struct trace_block, payload of `bytes` bytes
 *   payload = records, each struct trace_record followed by its body; `bytes` of a record counts both and is a
 *             multiple of 8; a record never crosses a block
 *   order   = RUN first (names may stand before it); then events and analysed iterations as they come. An iteration is
 *             ITERATION, its ALLOCATIONs, its VERSIONs, its OPERATIONs in order, with no event between. NAME, MODULE,
 *             STACK and THREAD stand anywhere before the first record that uses them. END is the last record of the
 *             last block
 * A block's head_hash covers its size, its number and the hash of the block before it; its hash covers the payload too:
 * a flipped bit, a lost or swapped block shows. A file that ends without END was cut off: the program was killed, or
 * is still running. Whole blocks of it are good, a last block that is not all there is left out.
 *
 * Events of all threads share one order, `sequence` (0, 1, 2, ...; what LOST tells of has none). In the file they are
 * nearly sorted by it: threads are drained one after the other. So a file that was cut off may lack some of the last.
 * Allocations have an id, operations that are no replays a number: both are above 0 and grow with the sequence.
 *
 * Compatibility: a reader refuses a version that it does not know. A change of any struct below is a new version. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC      "reprise\x1a"
#define TRACE_VERSION    2u
#define TRACE_NONE       UINT32_MAX /* no operation, version, allocation */
#define TRACE_BLOCK_MOST 65536u     /* bytes of payload */
#define TRACE_NAME_MOST  4096u
#define TRACE_STACK_MOST 64u   /* frames */
#define TRACE_TOUCH_MOST 1024u /* touches of one operation */

struct trace_header {
    char magic[8];
    uint32_t version, header_bytes;
};

struct trace_block {
    uint32_t bytes, number;
    uint64_t head_hash, hash;
};

enum trace_kind {
    TRACE_NAME = 1,
    TRACE_RUN,
    TRACE_ITERATION,
    TRACE_ALLOCATION,
    TRACE_VERSION_RECORD,
    TRACE_OPERATION,
    TRACE_END,
    TRACE_MODULE,
    TRACE_STACK,
    TRACE_THREAD,
    TRACE_HELD, /* from here on: events */
    TRACE_FREED,
    TRACE_RAN,
    TRACE_TIMED,
    TRACE_PHASE,
    TRACE_BOUNDARY,
    TRACE_MOVED,
    TRACE_RESIDENT,
    TRACE_LOST,
    TRACE_KINDS /* their number, plus one */
};

struct trace_record {
    uint32_t kind, bytes;
};

/* Body of NAME: the struct, then text_bytes bytes, then zeros to a multiple of 8. Names are numbered from 1 in the
 * order of their records; 0 means none. */
struct trace_name {
    uint32_t number, text_bytes;
};

struct trace_run {
    uint64_t cap_bytes; /* 0: none */
    uint64_t device_bytes, frame_bytes;
    uint64_t started_unix_ns;
    uint32_t program, device; /* names */
    uint32_t process;         /* its number in the system */
    uint32_t rank;            /* among the processes of a job; TRACE_NONE: the environment does not say */
};

struct trace_iteration {
    uint64_t index; /* of the run, counted from 0 */
    uint32_t operation_count, allocation_count, version_count, stream_count;
    uint64_t fixed_bytes;                     /* held throughout, whatever is planned */
    uint64_t demand_peak_bytes;               /* what the program held at most */
    uint64_t nanoseconds;                     /* of the whole iteration, as recorded; 0: not measured */
    double out_bytes_per_ns, in_bytes_per_ns; /* to and from the host; 0: not known */
};

enum trace_allocation_kind {
    TRACE_GIVEN,  /* there when the iteration begins */
    TRACE_FIXED,  /* born in it, never dropped or moved */
    TRACE_PLANNED /* born in it, contents are versions */
};

struct trace_allocation {
    uint64_t bytes, footprint_bytes; /* as asked for, as it counts against the cap */
    uint32_t kind;                   /* enum trace_allocation_kind */
    uint32_t born, ends;             /* positions; ends TRACE_NONE: still held at the end */
    uint32_t reason;                 /* name: why it is fixed */
    uint32_t origin;                 /* name: where in the program it was made; 0 not recorded */
    uint32_t is_small;               /* lives in a shared slab */
    uint64_t id;                     /* of its HELD; 0: not known */
    uint32_t stack, unused;          /* where it was made; 0: not known */
};

struct trace_version {
    uint64_t bytes; /* footprint */
    uint32_t allocation;
    uint32_t producer;              /* operation, or TRACE_NONE: there at position 0 */
    uint32_t replaces;              /* version whose bytes it takes over, or TRACE_NONE */
    uint32_t droppable_from;        /* position, or TRACE_NONE: never */
    uint32_t is_kept, is_swappable; /* 0 or 1 */
};

enum trace_operation_kind { TRACE_LAUNCH, TRACE_COPY_IN, TRACE_COPY_OUT, TRACE_COPY_DEVICE, TRACE_SET };

/* Body of OPERATION: the struct, then read_count and write_count version numbers (uint32_t), then zeros to a multiple
 * of 8. */
struct trace_operation {
    uint64_t nanoseconds;
    uint64_t workspace_bytes, scratch_bytes;
    uint64_t moved_bytes; /* of copies and sets */
    uint32_t kind;        /* enum trace_operation_kind */
    uint32_t name;
    uint32_t stream;           /* number within the iteration */
    uint32_t replayable_until; /* position; 0: never */
    uint32_t reason;           /* name: why it is not replayed */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint32_t read_count, write_count;
    uint32_t stack;  /* where it was submitted; 0: not known */
    uint64_t number; /* of its RAN; 0: not known */
};

struct trace_end {
    uint64_t record_count; /* all before END */
    uint64_t iteration_count;
};

/* Where code is loaded. */

/* Body of MODULE: the struct, then zeros to a multiple of 8. Modules are numbered from 1. */
#define TRACE_BUILD_ID_MOST 32u
struct trace_module {
    uint32_t number, path; /* path: a name */
    uint64_t bias;         /* address in memory - address in the file's symbol table */
    uint64_t begin, end;   /* addresses in memory */
    uint32_t build_id_bytes, unused;
    unsigned char build_id[TRACE_BUILD_ID_MOST];
};

enum trace_frame_kind { TRACE_NATIVE, TRACE_PYTHON };

struct trace_frame {
    uint32_t kind;   /* enum trace_frame_kind */
    uint32_t module; /* native: 0 if it is not known, then offset is the address */
    uint64_t offset; /* native: return address - bias (the innermost one too: it is where the call returns to) */
    uint32_t function, file; /* python: names */
    uint32_t line, unused;
};

/* Body of STACK: the struct, then frame_count frames, innermost first. Stacks are numbered from 1; 0: not known. */
struct trace_stack {
    uint32_t number, frame_count;
    uint32_t is_cut, unused; /* there were more frames than TRACE_STACK_MOST, or code without unwind information */
};

/* Threads are numbered from 1. */
struct trace_thread {
    uint32_t number, id; /* id: the system's */
    uint32_t name, unused;
};

/* Events. Each body begins with this. */
struct trace_event {
    uint64_t sequence;
    uint64_t nanoseconds; /* since the run's start, by the monotonic clock */
    uint32_t thread, stack;
};

enum trace_source {
    TRACE_ARENA,   /* pages of its own */
    TRACE_SLAB,    /* a piece of a shared slab */
    TRACE_OUTSIDE, /* taken past Reprise's pool and counted against the cap: `what` says how */
    TRACE_OWN      /* taken by Reprise for its own work */
};

struct trace_held {
    struct trace_event event;
    uint64_t id, address;
    uint64_t bytes, footprint_bytes; /* as asked for, as it counts against the cap */
    uint32_t source;                 /* enum trace_source */
    uint32_t what;                   /* name: the call or the kind of thing; 0: a plain allocation */
};

struct trace_freed {
    struct trace_event event;
    uint64_t id;
};

/* What is known of an access when the operation is submitted. The analysed iterations know more. */
enum trace_access {
    TRACE_MAY_READ = 1,
    TRACE_MAY_WRITE = 2,
    TRACE_EXACT = 4,    /* the two above are facts */
    TRACE_WHOLE = 8,    /* overwrites every byte */
    TRACE_INDIRECT = 16 /* reached through a pointer in memory */
};

struct trace_touch {
    uint64_t id; /* of the allocation */
    uint32_t access, unused;
};

/* Body of RAN: the struct, then touch_count touches. */
struct trace_ran {
    struct trace_event event;
    uint64_t number; /* of a replay: of the operation that it repeats, 0 if that is not known */
    uint64_t moved_bytes;
    uint32_t kind; /* enum trace_operation_kind */
    uint32_t name, stream;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint32_t is_replay;
    uint32_t touch_count;
};

/* How long an operation took on the device; measured while iterations are recorded. */
struct trace_timed {
    struct trace_event event;
    uint64_t number;
    uint64_t nanoseconds;
};

enum trace_phase { TRACE_PASS_THROUGH, TRACE_RECORDING, TRACE_PROBATION, TRACE_IN_PLAN, TRACE_REACTIVE };

struct trace_phase_change {
    struct trace_event event;
    uint32_t phase, unused; /* enum trace_phase */
};

/* Iteration `index`, counted from 0: the operations [first, end). Told when it has ended. */
struct trace_boundary {
    struct trace_event event;
    uint64_t index, first, end; /* first, end: numbers of RANs; end may be one that never came */
    uint32_t phase, unused;     /* in which it began */
};

enum trace_movement { TRACE_DROP, TRACE_REBUILD, TRACE_SWAP_OUT, TRACE_SWAP_IN, TRACE_AUDIT };

struct trace_moved {
    struct trace_event event;
    uint64_t id, bytes;
    uint32_t movement, unused; /* enum trace_movement */
};

/* A counter, told when it has changed: what the job takes of the device. */
struct trace_resident {
    struct trace_event event;
    uint64_t frames_bytes;  /* frames that exist */
    uint64_t free_bytes;    /* of these: in use by nothing */
    uint64_t outside_bytes; /* taken past the pool, as it counts against the cap */
    uint64_t demand_bytes;  /* what the program holds in arena and slabs */
};

/* `count` events of this thread found no room and are missing here. */
struct trace_lost {
    struct trace_event event;
    uint64_t count;
};

_Static_assert(sizeof(struct trace_run) == 48 && sizeof(struct trace_iteration) == 64, "no padding");
_Static_assert(sizeof(struct trace_allocation) == 56 && sizeof(struct trace_version) == 32, "no padding");
_Static_assert(sizeof(struct trace_operation) == 104 && sizeof(struct trace_module) == 72, "no padding");
_Static_assert(sizeof(struct trace_frame) == 32 && sizeof(struct trace_event) == 24, "no padding");
_Static_assert(sizeof(struct trace_held) == 64 && sizeof(struct trace_ran) == 88, "no padding");
_Static_assert(sizeof(struct trace_moved) == 48 && sizeof(struct trace_resident) == 56, "no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian");
