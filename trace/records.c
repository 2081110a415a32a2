#include "trace/records.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool records_refuse(struct records *records, const char *fault)
{
    if (!records->fault)
        records->fault = fault;
    return false;
}

bool records_grow(struct records *records, void *array_pointer, uint32_t count, uint32_t *capacity, size_t element)
{
    void *array;
    memcpy(&array, array_pointer, sizeof array);
    if (count < *capacity)
        return true;
    uint32_t wanted = *capacity ? *capacity * 2 : 16;
    void *bigger = *capacity > UINT32_MAX / 4 ? NULL : realloc(array, wanted * element);
    if (!bigger)
        return records_refuse(records, "there is no memory for it");
    memcpy(array_pointer, &bigger, sizeof bigger);
    *capacity = wanted;
    return true;
}

static struct trace_recorded *last_iteration(const struct records *records)
{
    return records->trace->iteration_count ? &records->trace->iterations[records->trace->iteration_count - 1] : NULL;
}

bool records_name_is_known(const struct records *records, uint32_t number)
{
    return number < records->trace->name_count;
}

static bool is_position(const struct trace_recorded *recorded, uint32_t position)
{
    return position <= recorded->head.operation_count;
}

static bool take_name(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace *trace = records->trace;
    struct trace_name head;
    if (bytes < sizeof head)
        return records_refuse(records, "a name record is too short");
    memcpy(&head, body, sizeof head);
    const char *text = (const char *)body + sizeof head;
    if (head.number != trace->name_count || head.text_bytes > TRACE_NAME_MOST ||
        head.text_bytes > bytes - sizeof head || memchr(text, '\0', head.text_bytes))
        return records_refuse(records, "a name record is not well-formed");
    if (!records_grow(records, &trace->names, trace->name_count, &records->name_capacity, sizeof *trace->names))
        return false;
    char *copy = malloc(head.text_bytes + 1);
    if (!copy)
        return records_refuse(records, "there is no memory for it");
    memcpy(copy, text, head.text_bytes);
    copy[head.text_bytes] = '\0';
    trace->names[trace->name_count++] = copy;
    return true;
}

static bool take_run(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace_run *run = &records->trace->run;
    if (bytes != sizeof *run || records->has_run)
        return records_refuse(records, "its run record is not well-formed");
    memcpy(run, body, sizeof *run);
    records->has_run = true;
    return (records_name_is_known(records, run->program) && records_name_is_known(records, run->device)) ||
           records_refuse(records, "a name is missing");
}

static bool has_come(const struct records *records, const struct trace_recorded *recorded)
{
    uint64_t produced = 0;
    for (uint32_t v = 0; v < records->versions_seen; v++)
        produced += recorded->versions[v].producer != TRACE_NONE;
    return records->allocations_seen == recorded->head.allocation_count &&
           records->versions_seen == recorded->head.version_count &&
           records->operations_seen == recorded->head.operation_count && records->writes_seen == produced;
}

bool records_are_between(const struct records *records)
{
    const struct trace_recorded *last = last_iteration(records);
    return records->has_run && !records->is_short &&
           (!last || (records->allocations_seen == last->head.allocation_count &&
                      records->versions_seen == last->head.version_count &&
                      records->operations_seen == last->head.operation_count));
}

/* What the last iteration announced has come. */
static bool is_complete(struct records *records)
{
    const struct trace_recorded *recorded = last_iteration(records);
    return !recorded || has_come(records, recorded) || records_refuse(records, "an iteration is not complete");
}

static bool is_speed(double speed)
{
    return isfinite(speed) && speed >= 0;
}

static bool take_iteration(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace *trace = records->trace;
    struct trace_iteration head;
    if (bytes != sizeof head || !records->has_run)
        return records_refuse(records, "an iteration record is not well-formed");
    memcpy(&head, body, sizeof head);
    if (!is_complete(records))
        return false;
    /* Every announced record takes room in the file, so that no count asks for more memory than the file is long. */
    uint64_t least = (uint64_t)head.allocation_count * sizeof(struct trace_allocation) +
                     (uint64_t)head.version_count * sizeof(struct trace_version) +
                     (uint64_t)head.operation_count * sizeof(struct trace_operation);
    if (!is_speed(head.out_bytes_per_ns) || !is_speed(head.in_bytes_per_ns))
        return records_refuse(records, "an iteration record is not well-formed");
    records->is_short = least > records->file_bytes;
    if (records->is_short)
        return true;
    if (!records_grow(records, &trace->iterations, trace->iteration_count, &records->iteration_capacity,
                      sizeof *trace->iterations))
        return false;
    struct trace_recorded *recorded = &trace->iterations[trace->iteration_count++];
    *recorded =
        (struct trace_recorded){.head = head,
                                .allocations = calloc(head.allocation_count + (size_t)1, sizeof *recorded->allocations),
                                .versions = calloc(head.version_count + (size_t)1, sizeof *recorded->versions),
                                .operations = calloc(head.operation_count + (size_t)1, sizeof *recorded->operations),
                                .first_lists = calloc(head.operation_count + (size_t)1, sizeof *recorded->first_lists)};
    records->allocations_seen = records->versions_seen = records->operations_seen = records->list_capacity = 0;
    records->writes_seen = 0;
    return (recorded->allocations && recorded->versions && recorded->operations && recorded->first_lists) ||
           records_refuse(records, "there is no memory for it");
}

static bool take_allocation(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace_recorded *recorded = last_iteration(records);
    if (!recorded || bytes != sizeof *recorded->allocations ||
        records->allocations_seen == recorded->head.allocation_count)
        return records_refuse(records, "an allocation record is out of place");
    struct trace_allocation *allocation = &recorded->allocations[records->allocations_seen++];
    memcpy(allocation, body, sizeof *allocation);
    bool has_life = is_position(recorded, allocation->born) &&
                    (allocation->ends == TRACE_NONE ||
                     (allocation->ends >= allocation->born && is_position(recorded, allocation->ends)));
    return (allocation->kind <= TRACE_PLANNED && has_life && allocation->is_small <= 1 &&
            records_name_is_known(records, allocation->reason) && records_name_is_known(records, allocation->origin) &&
            allocation->stack < records->trace->stack_count) ||
           records_refuse(records, "an allocation record is not well-formed");
}

static bool take_version(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace_recorded *recorded = last_iteration(records);
    if (!recorded || bytes != sizeof *recorded->versions || records->versions_seen == recorded->head.version_count ||
        records->allocations_seen != recorded->head.allocation_count)
        return records_refuse(records, "a version record is out of place");
    uint32_t number = records->versions_seen++;
    struct trace_version *version = &recorded->versions[number];
    memcpy(version, body, sizeof *version);
    bool is_produced = version->producer == TRACE_NONE || version->producer < recorded->head.operation_count;
    bool is_replacing =
        version->replaces == TRACE_NONE || (version->replaces < number && version->producer != TRACE_NONE &&
                                            recorded->versions[version->replaces].allocation == version->allocation);
    return (version->allocation < recorded->head.allocation_count && is_produced && is_replacing &&
            version->is_kept <= 1 && version->is_swappable <= 1 &&
            (version->droppable_from == TRACE_NONE || is_position(recorded, version->droppable_from))) ||
           records_refuse(records, "a version record is not well-formed");
}

static bool take_lists(struct records *records, struct trace_recorded *recorded,
                       const struct trace_operation *operation, const unsigned char *body)
{
    uint32_t number = records->operations_seen - 1, count = operation->read_count + operation->write_count;
    recorded->first_lists[number] = recorded->list_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t version;
        memcpy(&version, body + i * sizeof version, sizeof version);
        if (version >= recorded->head.version_count ||
            (i >= operation->read_count && recorded->versions[version].producer != number))
            return records_refuse(records, "an operation names a version that it cannot have");
        if (!records_grow(records, &recorded->lists, recorded->list_count, &records->list_capacity,
                          sizeof *recorded->lists))
            return false;
        recorded->lists[recorded->list_count++] = version;
    }
    records->writes_seen += operation->write_count;
    return true;
}

static bool take_operation(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace_recorded *recorded = last_iteration(records);
    if (!recorded || bytes < sizeof *recorded->operations ||
        records->operations_seen == recorded->head.operation_count ||
        records->versions_seen != recorded->head.version_count)
        return records_refuse(records, "an operation record is out of place");
    struct trace_operation *operation = &recorded->operations[records->operations_seen++];
    memcpy(operation, body, sizeof *operation);
    uint64_t list_bytes = ((uint64_t)operation->read_count + operation->write_count) * sizeof(uint32_t);
    if (((sizeof *operation + list_bytes + 7) & ~(uint64_t)7) != bytes || operation->kind > TRACE_SET ||
        operation->stream >= recorded->head.stream_count || !is_position(recorded, operation->replayable_until) ||
        !records_name_is_known(records, operation->name) || !records_name_is_known(records, operation->reason) ||
        operation->stack >= records->trace->stack_count)
        return records_refuse(records, "an operation record is not well-formed");
    return take_lists(records, recorded, operation, body + sizeof *operation);
}

static bool take_end(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace_end end;
    if (bytes != sizeof end || !records->has_run || !is_complete(records))
        return records_refuse(records, "its end is not well-formed");
    memcpy(&end, body, sizeof end);
    records->has_end = true;
    return (end.record_count == records->record_count && end.iteration_count == records->trace->iteration_count) ||
           records_refuse(records, "records are missing");
}

bool records_begin(struct records *records)
{
    static const struct trace_name empty = {0, 0};
    return take_name(records, (const unsigned char *)&empty, sizeof empty) && records_begin_places(records);
}

bool records_take(struct records *records, const struct trace_record *record, const unsigned char *body)
{
    size_t bytes = record->bytes - sizeof *record;
    bool is_of_iteration = record->kind >= TRACE_ALLOCATION && record->kind <= TRACE_OPERATION;
    if (records->is_short && is_of_iteration)
        return true;
    if (records->is_short && (record->kind == TRACE_END || record->kind == TRACE_ITERATION))
        return records_refuse(records, "an iteration record announces what is not there");
    switch (record->kind) {
    case TRACE_NAME:
        return take_name(records, body, bytes);
    case TRACE_RUN:
        return take_run(records, body, bytes);
    case TRACE_ITERATION:
        return take_iteration(records, body, bytes);
    case TRACE_ALLOCATION:
        return take_allocation(records, body, bytes);
    case TRACE_VERSION_RECORD:
        return take_version(records, body, bytes);
    case TRACE_OPERATION:
        return take_operation(records, body, bytes);
    case TRACE_END:
        return take_end(records, body, bytes);
    case TRACE_MODULE:
    case TRACE_STACK:
    case TRACE_THREAD:
        return records_take_place(records, record, body);
    default:
        if (record->kind >= TRACE_HELD && record->kind < TRACE_KINDS)
            return records_take_event(records, record, body);
        return records_refuse(records, "it holds a record of an unknown kind");
    }
}

void records_release_iteration(struct trace_recorded *recorded)
{
    free(recorded->allocations);
    free(recorded->versions);
    free(recorded->operations);
    free(recorded->first_lists);
    free(recorded->lists);
    *recorded = (struct trace_recorded){0};
}

bool records_finish(struct records *records)
{
    struct trace *trace = records->trace;
    trace->is_cut = !records->has_end;
    if (!records->has_run && !trace->is_cut)
        return records_refuse(records, "it has no run record");
    const struct trace_recorded *last = last_iteration(records);
    if (trace->is_cut && last && !has_come(records, last))
        records_release_iteration(&trace->iterations[--trace->iteration_count]);
    return records_finish_events(records);
}
