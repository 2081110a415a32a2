/* The trace: what is written down of a run, and the project's glossary for it.
 *
 *   operation   a launch, copy or memset of one iteration, in the order of submission
 *   allocation  memory that the program asked for; exists from `born` to `ends`
 *   version     the content of an allocation between two writes; exists from its producer to its replacement
 *   iteration   operations 0 .. operation_count - 1 with the allocations and versions that they touch
 *   verdict     what may be done with a version: recompute it, swap it, only hold it; with the reason
 *   position    p means just before operation p; operation_count is the iteration's end
 *
 * File format, version 1. Little-endian, every struct below without padding.
 *   file    = header, block, block, ...
 *   block   = struct trace_block, payload of `bytes` bytes
 *   payload = records, each struct trace_record followed by its body; `bytes` of a record counts both and is a
 *             multiple of 8; a record never crosses a block
 *   order   = RUN, then per iteration ITERATION, its ALLOCATIONs, its VERSIONs, its OPERATIONs in order; NAME records
 *             stand anywhere before the first record that uses them; END is the last record of the last block
 * A block's hash covers its payload, its number and the hash of the block before it: a flipped bit, a lost or swapped
 * block shows. A file without END was cut off. While a file is written it has another name (see file.h).
 *
 * Compatibility: a reader refuses a version that it does not know. A change of any struct below is a new version. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC      "reprise\x1a"
#define TRACE_VERSION    1u
#define TRACE_NONE       UINT32_MAX /* no operation, version, allocation */
#define TRACE_BLOCK_MOST 65536u     /* bytes of payload */
#define TRACE_NAME_MOST  4096u

struct trace_header {
    char magic[8];
    uint32_t version, header_bytes;
};

struct trace_block {
    uint32_t bytes, number;
    uint64_t hash;
};

enum trace_kind {
    TRACE_NAME = 1,
    TRACE_RUN,
    TRACE_ITERATION,
    TRACE_ALLOCATION,
    TRACE_VERSION_RECORD,
    TRACE_OPERATION,
    TRACE_END
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
};

struct trace_end {
    uint64_t record_count; /* all before END */
    uint64_t iteration_count;
};

_Static_assert(sizeof(struct trace_run) == 40 && sizeof(struct trace_iteration) == 64, "no padding");
_Static_assert(sizeof(struct trace_allocation) == 40 && sizeof(struct trace_version) == 32, "no padding");
_Static_assert(sizeof(struct trace_operation) == 88, "no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian");
