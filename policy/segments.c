#include "policy/segments.h"

bool segments_may_drop(const struct graph *g, uint32_t pivot, uint32_t v)
{
    const struct policy_version *version = &g->problem->versions[v];
    return version->producer != POLICY_NONE && version->producer < pivot && g->last_need[v] >= pivot &&
           g->rebuildable_until[v] >= g->last_need[v] && version->droppable_from <= pivot &&
           graph_replaced_at(g, v) >= pivot;
}

static uint64_t droppable_output_bytes(const struct graph *g, uint32_t pivot, uint32_t o, uint32_t *count)
{
    const struct policy_problem *p = g->problem;
    const struct policy_operation *op = &p->operations[o];
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < op->write_count; k++) {
        uint32_t v = p->writes[op->first_write + k];
        if (!segments_may_drop(g, pivot, v))
            continue;
        bytes += p->versions[v].bytes;
        (*count)++;
    }
    return bytes;
}

uint32_t segments_droppable_count(const struct graph *g, uint32_t pivot)
{
    uint32_t count = 0;
    for (uint32_t o = 0; o < pivot; o++)
        droppable_output_bytes(g, pivot, o, &count);
    return count;
}

uint64_t segments_droppable_bytes(const struct graph *g, uint32_t pivot)
{
    uint32_t count = 0;
    uint64_t bytes = 0;
    for (uint32_t o = 0; o < pivot; o++)
        bytes += droppable_output_bytes(g, pivot, o, &count);
    return bytes;
}

uint32_t segments_by_bytes(const struct graph *g, uint32_t pivot, uint64_t budget, uint32_t *segment_of)
{
    uint32_t segment = 0, count = 0;
    uint64_t bytes = 0;
    for (uint32_t o = 0; o < pivot; o++) {
        segment_of[o] = segment;
        bytes += droppable_output_bytes(g, pivot, o, &count);
        if (bytes >= budget) {
            segment++;
            bytes = 0;
        }
    }
    return segment + 1;
}

uint32_t segments_by_count(const struct graph *g, uint32_t pivot, uint32_t count, uint32_t *segment_of)
{
    uint64_t total = segments_droppable_count(g, pivot);
    uint32_t done = 0;
    for (uint32_t o = 0; o < pivot; o++) {
        uint64_t segment = total ? (uint64_t)done * count / total : 0;
        segment_of[o] = segment < count ? (uint32_t)segment : count - 1;
        droppable_output_bytes(g, pivot, o, &done);
    }
    return count;
}

uint32_t segments_by_time(const struct graph *g, uint32_t pivot, uint32_t count, uint32_t *segment_of)
{
    double total = (double)g->clock[pivot] + 1;
    for (uint32_t o = 0; o < pivot; o++) {
        double segment = (double)g->clock[o] / total * count;
        segment_of[o] = segment < count ? (uint32_t)segment : count - 1;
    }
    return count;
}

void segments_mark_crossing(const struct graph *g, uint32_t pivot, const uint32_t *segment_of, bool *is_crossing)
{
    for (uint32_t v = 0; v < g->problem->version_count; v++) {
        uint32_t producer = g->problem->versions[v].producer, last = producer;
        is_crossing[v] = false;
        if (producer == POLICY_NONE || producer >= pivot)
            continue;
        for (uint32_t k = g->reader_first[v]; k < g->reader_first[v + 1] && g->readers[k] < pivot; k++)
            last = g->readers[k];
        is_crossing[v] = segment_of[last] != segment_of[producer];
    }
}
