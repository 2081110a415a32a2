/* The records of a trace file, taken one after the other into a struct trace. Behind trace/file.c, which finds them in
 * the blocks; nobody else needs this.
 *
 * Nothing is believed: every size, count, number and order is checked before it is used. After the first fault the
 * trace holds what was taken so far and is only good for trace_release. */
#pragma once
#include "trace/file.h"

struct records {
    struct trace *trace;
    size_t file_bytes; /* no count can announce more than fits into them */
    const char *fault; /* NULL: none yet */
    uint64_t record_count;
    bool has_run, has_end;
    uint32_t name_capacity, iteration_capacity, list_capacity;
    uint32_t allocations_seen, versions_seen, operations_seen; /* of the last iteration */
    uint64_t writes_seen;
};

/* False with records->fault. A name record of number 0 must come first; it is no part of the file. */
bool records_take(struct records *records, const struct trace_record *record, const unsigned char *body);

/* Notes the fault unless there was one before. Returns false. */
bool records_refuse(struct records *records, const char *fault);
