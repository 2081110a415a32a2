/* The records of a trace file, taken one after the other into a struct trace. Behind trace/file.c, which finds them in
 * the blocks; nobody else needs this.
 *
 * Nothing is believed: every size, count, number and order is checked before it is used. After the first fault the
 * trace holds what was taken so far and is only good for trace_release. */
#pragma once
#include "trace/file.h"

/* Taken before it can be told what they belong to. */
struct records_free {
    uint64_t sequence, at, id;
};
struct records_time {
    uint64_t sequence, number, nanoseconds;
};

struct records_events {
    struct records_free *frees;
    struct records_time *times;
    uint64_t *touch_ids; /* beside trace->touches, which are made of them */
    uint32_t free_count, time_count;
    uint32_t touch_capacity, touch_id_capacity, free_capacity, time_capacity, life_capacity, submitted_capacity,
        phase_capacity, boundary_capacity;
    uint32_t shift_capacity, resident_capacity, loss_capacity;
    uint32_t module_capacity, stack_capacity, thread_capacity;
    uint64_t event_count;
};

struct records {
    struct trace *trace;
    size_t file_bytes; /* no count can announce more than fits into them */
    const char *fault; /* NULL: none yet */
    uint64_t record_count;
    bool has_run, has_end;
    bool is_short; /* an iteration was announced that is longer than the file: it is skipped, and nothing may follow */
    uint32_t name_capacity, iteration_capacity, list_capacity;
    uint32_t allocations_seen, versions_seen, operations_seen; /* of the last iteration */
    uint64_t writes_seen;
    struct records_events events;
};

/* Before the first record. False: no memory. */
bool records_begin(struct records *records);

/* False with records->fault. */
bool records_take(struct records *records, const struct trace_record *record, const unsigned char *body);

/* After the last record: what was announced has come, or the file was cut. Events find what they belong to. */
bool records_finish(struct records *records);

/* Frees what is needed only while records are taken; the trace stays. */
void records_abandon(struct records *records);

void records_release_iteration(struct trace_recorded *recorded);
void records_release_events(struct trace *trace);

/* Between records.c and records_events.c */

/* Notes the fault unless there was one before. Returns false. */
bool records_refuse(struct records *records, const char *fault);
/* Room for one more element at index `count` of the array that `array` points to. */
bool records_grow(struct records *records, void *array, uint32_t count, uint32_t *capacity, size_t element);
/* RUN has come, and no iteration is under way. */
bool records_are_between(const struct records *records);
bool records_name_is_known(const struct records *records, uint32_t number);
bool records_begin_places(struct records *records); /* number 0 of each kind */
bool records_take_place(struct records *records, const struct trace_record *record, const unsigned char *body);
bool records_take_event(struct records *records, const struct trace_record *record, const unsigned char *body);
bool records_finish_events(struct records *records);
