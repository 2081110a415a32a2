#include "trace/lifetime.h"
#include <stdlib.h>

static uint32_t end_of(const struct trace_recorded *recorded, uint32_t ends)
{
    return ends == TRACE_NONE ? recorded->head.operation_count : ends;
}

/* Allocations that were there before are part of the fixed bytes. */
static void add_demand(const struct trace_recorded *recorded, struct lifetime *out)
{
    uint32_t count = recorded->head.operation_count;
    for (uint32_t i = 0; i < recorded->head.allocation_count; i++) {
        const struct trace_allocation *allocation = &recorded->allocations[i];
        if (allocation->kind == TRACE_GIVEN)
            continue;
        out->demand[allocation->born] += allocation->footprint_bytes;
        out->demand[end_of(recorded, allocation->ends)] -= allocation->footprint_bytes;
    }
    uint64_t held = recorded->head.fixed_bytes;
    for (uint32_t i = 0; i < count; i++) {
        held += out->demand[i];
        out->demand[i] = held;
        if (held > out->demand[out->peak_position])
            out->peak_position = i;
    }
}

static void find_ends(const struct trace_recorded *recorded, struct lifetime *out)
{
    for (uint32_t v = 0; v < recorded->head.version_count; v++) {
        const struct trace_version *version = &recorded->versions[v];
        out->last_read[v] = TRACE_NONE;
        out->ends[v] = end_of(recorded, recorded->allocations[version->allocation].ends);
        if (version->replaces != TRACE_NONE)
            out->ends[version->replaces] = version->producer;
    }
    for (uint32_t i = 0; i < recorded->head.operation_count; i++)
        for (uint32_t r = 0; r < recorded->operations[i].read_count; r++)
            out->last_read[trace_reads(recorded, i)[r]] = i;
}

bool lifetime_make(const struct trace_recorded *recorded, struct lifetime *out)
{
    size_t count = recorded->head.operation_count, versions = recorded->head.version_count;
    *out = (struct lifetime){.position_count = (uint32_t)count,
                             .demand = calloc(count + 1, sizeof *out->demand),
                             .last_read = calloc(versions + 1, sizeof *out->last_read),
                             .ends = calloc(versions + 1, sizeof *out->ends)};
    if (!out->demand || !out->last_read || !out->ends) {
        lifetime_release(out);
        return false;
    }
    add_demand(recorded, out);
    find_ends(recorded, out);
    return true;
}

void lifetime_release(struct lifetime *lifetime)
{
    free(lifetime->demand);
    free(lifetime->last_read);
    free(lifetime->ends);
    *lifetime = (struct lifetime){0};
}

bool lifetime_holds(const struct trace_recorded *recorded, const struct lifetime *lifetime, uint32_t version,
                    uint32_t position)
{
    uint32_t producer = recorded->versions[version].producer;
    return (producer == TRACE_NONE || producer <= position) && position < lifetime->ends[version];
}
