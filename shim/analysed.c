/* Analysed iterations for the trace: from script and problem to records. */
#include "shim/recorder.h"
#include "shim/say.h"
#include "shim/store.h"
#include "shim/tracing.h"
#include "trace/file.h"

#include <string.h>

#include "shim/inside.h"

/* What a script does not hold, per slot and position. */
struct facts {
    const struct script *script;
    const struct policy_problem *problem;
    uint32_t *born;   /* per slot: the first operation that touches it */
    uint64_t *demand; /* per position; change of the bytes held */
    size_t bytes;     /* of the memory behind both */
    uint64_t peak_bytes, run_nanoseconds;
};

static uint32_t end_of(const struct facts *facts, uint32_t slot)
{
    uint32_t ends = facts->script->slots[slot].ends;
    return ends == SCRIPT_NONE ? facts->script->operation_count : ends;
}

static void find_births(struct facts *facts)
{
    const struct script *script = facts->script;
    for (uint32_t slot = 0; slot < script->slot_count; slot++)
        facts->born[slot] = 0;
    for (uint32_t i = script->operation_count; i-- > 0;) {
        const struct script_operation *operation = &script->operations[i];
        for (uint32_t j = 0; j < operation->touch_count; j++)
            facts->born[script->touches[operation->first_touch + j].slot] = i;
    }
    for (uint32_t slot = 0; slot < script->slot_count; slot++)
        if (script->slots[slot].kind == SLOT_GIVEN)
            facts->born[slot] = 0;
}

static void find_peak(struct facts *facts)
{
    const struct script *script = facts->script;
    uint64_t held = facts->problem->fixed_bytes;
    for (uint32_t slot = 0; slot < script->slot_count; slot++) {
        if (script->slots[slot].kind == SLOT_GIVEN)
            continue;
        uint64_t bytes = space_allocation_footprint(script->slots[slot].bytes);
        facts->demand[facts->born[slot]] += bytes;
        facts->demand[end_of(facts, slot)] -= bytes;
    }
    for (uint32_t i = 0; i < script->operation_count; i++) {
        held += facts->demand[i];
        facts->peak_bytes = held > facts->peak_bytes ? held : facts->peak_bytes;
        facts->run_nanoseconds += script->operations[i].nanoseconds;
    }
}

static bool gather(struct facts *facts, const struct script *script, const struct policy_problem *problem)
{
    size_t births = (script->slot_count + (size_t)1) & ~(size_t)1;
    *facts = (struct facts){.script = script, .problem = problem};
    facts->bytes = births * sizeof *facts->born + (script->operation_count + (size_t)1) * sizeof *facts->demand;
    facts->born = store_reserve(facts->bytes, "the trace");
    if (facts->born == NULL)
        return false;
    facts->demand = (uint64_t *)(void *)(facts->born + births);
    find_births(facts);
    find_peak(facts);
    return true;
}

/* Records in memory that will be given to the recorder. */
struct parcel {
    unsigned char *memory;
    size_t used, mapped;
};

static size_t record_bytes(size_t body)
{
    return (sizeof(struct trace_record) + body + 7) & ~(size_t)7;
}

static size_t most_bytes(const struct facts *facts)
{
    const struct policy_problem *problem = facts->problem;
    return RECORDER_GIVE_HEAD + record_bytes(sizeof(struct trace_iteration)) +
           facts->script->slot_count * record_bytes(sizeof(struct trace_allocation)) +
           problem->version_count * record_bytes(sizeof(struct trace_version)) +
           problem->operation_count * record_bytes(sizeof(struct trace_operation) + 8) +
           ((size_t)problem->read_count + problem->write_count) * sizeof(uint32_t);
}

static unsigned char *put(struct parcel *parcel, enum trace_kind kind, const void *body, size_t bytes, size_t more)
{
    struct trace_record record = {(uint32_t)kind, (uint32_t)record_bytes(bytes + more)};
    unsigned char *at = parcel->memory + parcel->used;
    memcpy(at, &record, sizeof record);
    memcpy(at + sizeof record, body, bytes);
    parcel->used += record.bytes;
    return at + sizeof record + bytes;
}

static void write_allocations(struct parcel *parcel, const struct facts *facts)
{
    static const uint32_t kinds[] = {
        [SLOT_GIVEN] = TRACE_GIVEN, [SLOT_FIXED] = TRACE_FIXED, [SLOT_PLANNED] = TRACE_PLANNED};
    for (uint32_t i = 0; i < facts->script->slot_count; i++) {
        const struct script_slot *slot = &facts->script->slots[i];
        put(parcel, TRACE_ALLOCATION,
            &(struct trace_allocation){
                .bytes = slot->bytes,
                .footprint_bytes = space_allocation_footprint(slot->bytes),
                .kind = kinds[slot->kind],
                .born = facts->born[i],
                .ends = slot->ends == SCRIPT_NONE ? TRACE_NONE : slot->ends,
                .reason = slot->kind == SLOT_FIXED ? recorder_name("pinned, shared, or written by someone unseen") : 0,
                .is_small = slot->is_small,
                .id = slot->traced,
                .stack = slot->stack,
            },
            sizeof(struct trace_allocation), 0);
    }
}

static void write_versions(struct parcel *parcel, const struct facts *facts)
{
    for (uint32_t v = 0; v < facts->problem->version_count; v++) {
        const struct policy_version *version = &facts->problem->versions[v];
        put(parcel, TRACE_VERSION_RECORD,
            &(struct trace_version){
                .bytes = version->bytes,
                .allocation = facts->script->versions[v].slot,
                .producer = version->producer,
                .replaces = version->replaces,
                .droppable_from = version->droppable_from,
                .is_kept = version->is_kept,
                .is_swappable = version->is_swappable,
            },
            sizeof(struct trace_version), 0);
    }
}

static uint32_t kind_of(const struct script_operation *operation)
{
    static const uint32_t copies[] = {[COPY_HOST_TO_DEVICE] = TRACE_COPY_IN,
                                      [COPY_DEVICE_TO_HOST] = TRACE_COPY_OUT,
                                      [COPY_DEVICE_TO_DEVICE] = TRACE_COPY_DEVICE};
    if (operation->function != NULL)
        return TRACE_LAUNCH;
    return operation->moved_bytes != 0 ? copies[operation->direction] : TRACE_SET;
}

static void write_operation(struct parcel *parcel, const struct facts *facts, uint32_t index)
{
    const struct policy_problem *problem = facts->problem;
    const struct script_operation *operation = &facts->script->operations[index];
    const struct policy_operation *cost = &problem->operations[index];
    size_t read_bytes = cost->read_count * sizeof(uint32_t), write_bytes = cost->write_count * sizeof(uint32_t);
    struct trace_operation record = {
        .nanoseconds = cost->nanoseconds,
        .workspace_bytes = cost->workspace_bytes,
        .scratch_bytes = cost->scratch_bytes,
        .kind = kind_of(operation),
        .name = recorder_name(operation->name),
        .replayable_until = cost->replayable_until,
        .reason = recorder_name(operation->reason),
        .moved_bytes = operation->moved_bytes,
        .grid = {operation->grid[0], operation->grid[1], operation->grid[2]},
        .block = {operation->block[0], operation->block[1], operation->block[2]},
        .read_count = cost->read_count,
        .write_count = cost->write_count,
        .stack = operation->stack,
        .number = operation->number,
    };
    unsigned char *lists = put(parcel, TRACE_OPERATION, &record, sizeof record, read_bytes + write_bytes);
    memcpy(lists, problem->reads + cost->first_read, read_bytes);
    memcpy(lists + read_bytes, problem->writes + cost->first_write, write_bytes);
}

/* Records must fit into blocks. */
static bool can_be_written(const struct policy_problem *problem)
{
    for (uint32_t i = 0; i < problem->operation_count; i++) {
        const struct policy_operation *operation = &problem->operations[i];
        if ((uint64_t)operation->read_count + operation->write_count > TRACE_LISTS_MOST) {
            say(SAY_WARNING, "an iteration is not in the trace: an operation touches more than %u versions",
                TRACE_LISTS_MOST);
            return false;
        }
    }
    return true;
}

void tracing_write(const struct script *script, const struct policy_problem *problem, uint64_t index)
{
    struct facts facts;
    struct parcel parcel = {.used = RECORDER_GIVE_HEAD};
    if (!recorder_is_open() || !can_be_written(problem) || !gather(&facts, script, problem)) {
        return;
    }
    parcel.mapped = most_bytes(&facts);
    parcel.memory = store_reserve(parcel.mapped, "the trace");
    if (parcel.memory != NULL) {
        struct trace_iteration head = {
            .index = index,
            .operation_count = problem->operation_count,
            .allocation_count = script->slot_count,
            .version_count = problem->version_count,
            .stream_count = 1,
            .fixed_bytes = problem->fixed_bytes,
            .demand_peak_bytes = facts.peak_bytes,
            .nanoseconds = facts.run_nanoseconds,
            .out_bytes_per_ns = problem->out_bytes_per_ns,
            .in_bytes_per_ns = problem->in_bytes_per_ns,
        };
        put(&parcel, TRACE_ITERATION, &head, sizeof head, 0);
        write_allocations(&parcel, &facts);
        write_versions(&parcel, &facts);
        for (uint32_t i = 0; i < problem->operation_count; i++) {
            write_operation(&parcel, &facts, i);
        }
        recorder_give(parcel.memory, parcel.used - RECORDER_GIVE_HEAD, parcel.mapped);
    }
    store_return(facts.born, facts.bytes);
}
