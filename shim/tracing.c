#include "shim/tracing.h"

#include "shim/config.h"
#include "shim/driver.h"
#include "shim/frames.h"
#include "shim/say.h"
#include "shim/space.h"
#include "shim/store.h"
#include "trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/inside.h"

#define PROGRAM_NAME_MOST 512

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

/* The command line, with blanks between its words; "" if it cannot be read. */
static void read_program(char *out)
{
    int descriptor = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t count = descriptor < 0 ? 0 : read(descriptor, out, PROGRAM_NAME_MOST - 1);
    if (descriptor >= 0)
        close(descriptor);
    if (count < 0)
        count = 0;
    while (count > 0 && out[count - 1] == '\0')
        count--;
    for (ssize_t i = 0; i < count; i++)
        if (out[i] == '\0')
            out[i] = ' ';
    out[count] = '\0';
}

static void write_run(struct trace_writer *writer)
{
    char program[PROGRAM_NAME_MOST], device[256] = "";
    size_t device_bytes = 0;
    CUdevice number;
    struct timespec now;
    read_program(program);
    if (driver.cuCtxGetDevice(&number) != CUDA_SUCCESS ||
        driver.cuDeviceGetName(device, sizeof device - 1, number) != CUDA_SUCCESS ||
        driver.cuDeviceTotalMem_v2(&device_bytes, number) != CUDA_SUCCESS)
        say(SAY_DEBUG, "trace: the driver did not say what the device is");
    clock_gettime(CLOCK_REALTIME, &now);
    trace_writer_run(writer, &(struct trace_run){
                                 .cap_bytes = config()->cap_bytes,
                                 .device_bytes = device_bytes,
                                 .frame_bytes = frames_count().frame_bytes,
                                 .started_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
                                 .program = trace_writer_name(writer, program),
                                 .device = trace_writer_name(writer, device),
                             });
}

static void write_allocations(struct trace_writer *writer, const struct facts *facts)
{
    static const uint32_t kinds[] = {
        [SLOT_GIVEN] = TRACE_GIVEN, [SLOT_FIXED] = TRACE_FIXED, [SLOT_PLANNED] = TRACE_PLANNED};
    for (uint32_t i = 0; i < facts->script->slot_count; i++) {
        const struct script_slot *slot = &facts->script->slots[i];
        trace_writer_allocation(
            writer, &(struct trace_allocation){
                        .bytes = slot->bytes,
                        .footprint_bytes = space_allocation_footprint(slot->bytes),
                        .kind = kinds[slot->kind],
                        .born = facts->born[i],
                        .ends = slot->ends == SCRIPT_NONE ? TRACE_NONE : slot->ends,
                        .reason = slot->kind == SLOT_FIXED
                                      ? trace_writer_name(writer, "pinned, shared, or written by someone unseen")
                                      : 0,
                        .is_small = slot->is_small,
                    });
    }
}

static void write_versions(struct trace_writer *writer, const struct facts *facts)
{
    for (uint32_t v = 0; v < facts->problem->version_count; v++) {
        const struct policy_version *version = &facts->problem->versions[v];
        trace_writer_version(writer, &(struct trace_version){
                                         .bytes = version->bytes,
                                         .allocation = facts->script->versions[v].slot,
                                         .producer = version->producer,
                                         .replaces = version->replaces,
                                         .droppable_from = version->droppable_from,
                                         .is_kept = version->is_kept,
                                         .is_swappable = version->is_swappable,
                                     });
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

static void write_operations(struct trace_writer *writer, const struct facts *facts)
{
    const struct policy_problem *problem = facts->problem;
    for (uint32_t i = 0; i < problem->operation_count; i++) {
        const struct script_operation *operation = &facts->script->operations[i];
        const struct policy_operation *cost = &problem->operations[i];
        trace_writer_operation(writer,
                               &(struct trace_operation){
                                   .nanoseconds = cost->nanoseconds,
                                   .workspace_bytes = cost->workspace_bytes,
                                   .scratch_bytes = cost->scratch_bytes,
                                   .kind = kind_of(operation),
                                   .name = trace_writer_name(writer, operation->name),
                                   .replayable_until = cost->replayable_until,
                                   .reason = trace_writer_name(writer, operation->reason),
                                   .moved_bytes = operation->moved_bytes,
                                   .grid = {operation->grid[0], operation->grid[1], operation->grid[2]},
                                   .block = {operation->block[0], operation->block[1], operation->block[2]},
                                   .read_count = cost->read_count,
                                   .write_count = cost->write_count,
                               },
                               problem->reads + cost->first_read, problem->writes + cost->first_write);
    }
}

void tracing_write(const char *path, const struct script *script, const struct policy_problem *problem, uint64_t index)
{
    struct facts facts;
    struct trace_writer *writer = gather(&facts, script, problem) ? trace_writer_open(path) : NULL;
    int error = errno;
    if (writer != NULL) {
        write_run(writer);
        trace_writer_iteration(writer, &(struct trace_iteration){
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
                                       });
        write_allocations(writer, &facts);
        write_versions(writer, &facts);
        write_operations(writer, &facts);
        error = trace_writer_close(writer);
    }
    if (error != 0 || writer == NULL)
        say(SAY_WARNING, "the trace %s was not written: error %d", path, error);
    if (facts.born != NULL)
        store_return(facts.born, facts.bytes);
}
