#include "trace/kinds.h"
#include <stdlib.h>

/* What is known of a life. Operations are numbers in trace->submitted, stretches in the order of the run. */
struct usage {
    uint32_t first_write, last_read;      /* TRACE_NONE: none */
    uint32_t stretch, stretches;          /* the last one that touched it; how many did */
    uint32_t carried, overwritten;        /* stretches after the first, by what they did first */
    uint32_t touches, plain_reads, reads; /* operations; plain: on the device, that do not write it */
    bool has_kernel_writes, has_copies_in, feeds_weights;
};

struct analysis {
    const struct trace *trace;
    struct usage *usages; /* per life */
    uint32_t *stretch_of; /* per operation */
    uint32_t *turn_of;    /* per stretch: an operation */
    uint32_t stretch_count;
    unsigned char *kinds;
};

const char *kind_name(enum kind kind)
{
    static const char *const names[KIND_COUNT] = {"unknown", "weights",      "optimiser state", "gradients",
                                                  "inputs",  "activations",  "temporaries",     "workspace",
                                                  "outside", "Reprise's own"};
    return names[kind];
}

/* A stretch begins with the first operation and behind the last one of each iteration. Replays belong to the operation
 * that they stand before. */
static void cut_stretches(struct analysis *analysis)
{
    const struct trace *trace = analysis->trace;
    for (uint32_t i = 0; i < trace->boundary_count; i++) {
        uint32_t first = trace_find_submitted(trace, trace->boundaries[i].first);
        uint32_t end = trace_find_submitted(trace, trace->boundaries[i].end);
        if (first != TRACE_NONE)
            analysis->stretch_of[first] = 1;
        if (end != TRACE_NONE)
            analysis->stretch_of[end] = 1;
    }
    uint32_t stretch = 0;
    for (uint32_t i = 0; i < trace->submitted_count; i++) {
        stretch += i > 0 && analysis->stretch_of[i];
        analysis->stretch_of[i] = stretch;
    }
    analysis->stretch_count = stretch + 1;
}

static void note_touch(struct analysis *analysis, uint32_t operation, const struct trace_touched *touched)
{
    struct usage *usage = &analysis->usages[touched->life];
    const struct trace_submitted *submitted = &analysis->trace->submitted[operation];
    uint32_t stretch = analysis->stretch_of[operation];
    bool reads = touched->access & TRACE_MAY_READ, writes = touched->access & TRACE_MAY_WRITE;
    if (usage->touches == 0 || usage->stretch != stretch) {
        if (usage->touches > 0)
            *(reads ? &usage->carried : &usage->overwritten) += 1;
        usage->stretches++;
        usage->stretch = stretch;
    }
    usage->touches++;
    if (reads) {
        usage->reads++;
        usage->plain_reads += !writes && submitted->kind != TRACE_COPY_OUT; /* a checkpoint reads everything */
        usage->last_read = operation;
    }
    if (writes) {
        if (usage->first_write == TRACE_NONE)
            usage->first_write = operation;
        if (submitted->kind == TRACE_COPY_IN)
            usage->has_copies_in = true;
        else
            usage->has_kernel_writes = true;
    }
}

static bool is_lasting(const struct usage *usage)
{
    return usage->stretches > 1 && usage->carried + usage->overwritten > 0;
}

static bool is_carried(const struct usage *usage)
{
    return is_lasting(usage) && usage->carried > 0 && usage->carried >= usage->overwritten;
}

static void walk(struct analysis *analysis)
{
    const struct trace *trace = analysis->trace;
    for (uint32_t i = 0; i < trace->life_count; i++)
        analysis->usages[i].first_write = analysis->usages[i].last_read = TRACE_NONE;
    for (uint32_t i = 0; i < trace->submitted_count; i++) {
        const struct trace_submitted *submitted = &trace->submitted[i];
        for (uint32_t t = 0; t < submitted->touch_count && !submitted->is_replay; t++) {
            const struct trace_touched *touched = &trace->touches[submitted->first_touch + t];
            if (touched->life != TRACE_NONE)
                note_touch(analysis, i, touched);
        }
    }
}

static bool is_weight(const struct analysis *analysis, uint32_t life)
{
    return is_carried(&analysis->usages[life]) && analysis->usages[life].plain_reads > 0;
}

/* What an operation reads that writes weights is a gradient, unless it is something better known. */
static void find_gradients(struct analysis *analysis)
{
    const struct trace *trace = analysis->trace;
    for (uint32_t i = 0; i < trace->submitted_count; i++) {
        const struct trace_submitted *submitted = &trace->submitted[i];
        const struct trace_touched *touches = trace->touches + submitted->first_touch;
        bool is_update = false;
        for (uint32_t t = 0; t < submitted->touch_count && submitted->kind == TRACE_LAUNCH; t++)
            is_update |= touches[t].life != TRACE_NONE && touches[t].access & TRACE_MAY_WRITE &&
                         touches[t].access & TRACE_MAY_READ && is_weight(analysis, touches[t].life);
        for (uint32_t t = 0; t < submitted->touch_count && is_update; t++)
            if (touches[t].life != TRACE_NONE && !(touches[t].access & TRACE_MAY_WRITE))
                analysis->usages[touches[t].life].feeds_weights = true;
    }
}

static bool is_read_later(const struct usage *usage)
{
    return usage->first_write != TRACE_NONE && usage->last_read != TRACE_NONE && usage->last_read > usage->first_write;
}

static bool find_turns(struct analysis *analysis)
{
    const struct trace *trace = analysis->trace;
    uint64_t *change = calloc(trace->submitted_count + (size_t)2, sizeof *change), carried = 0;
    uint64_t *most = calloc(analysis->stretch_count + (size_t)1, sizeof *most);
    for (uint32_t i = 0; change && most && i < trace->life_count; i++) {
        const struct usage *usage = &analysis->usages[i];
        if (is_lasting(usage) || !is_read_later(usage))
            continue;
        change[usage->first_write + 1] += trace->lives[i].footprint_bytes;
        change[usage->last_read + 1] -= trace->lives[i].footprint_bytes;
    }
    for (uint32_t i = 0; change && most && i < trace->submitted_count; i++) {
        uint32_t stretch = analysis->stretch_of[i];
        carried += change[i]; /* modulo 2^64 */
        if (carried > most[stretch]) {
            most[stretch] = carried;
            analysis->turn_of[stretch] = i;
        }
    }
    bool has_memory = change && most;
    free(change);
    free(most);
    return has_memory;
}

static enum kind kind_of(const struct analysis *analysis, uint32_t life)
{
    const struct usage *usage = &analysis->usages[life];
    uint32_t source = analysis->trace->lives[life].source;
    if (source == TRACE_OUTSIDE)
        return KIND_OUTSIDE;
    if (source == TRACE_OWN)
        return KIND_OWN;
    if (usage->touches == 0)
        return KIND_UNKNOWN;
    if (is_carried(usage))
        return usage->plain_reads > 0 ? KIND_WEIGHTS : KIND_STATE;
    if (usage->has_copies_in && !usage->has_kernel_writes)
        return KIND_INPUT;
    if (usage->feeds_weights)
        return KIND_GRADIENT;
    if (usage->touches == 1 || !is_read_later(usage))
        return KIND_WORKSPACE;
    uint32_t turn = analysis->turn_of[analysis->stretch_of[usage->first_write]];
    return is_lasting(usage) || (usage->first_write < turn && usage->last_read >= turn) ? KIND_ACTIVATION
                                                                                        : KIND_TEMPORARY;
}

unsigned char *kinds_make(const struct trace *trace)
{
    struct analysis analysis = {.trace = trace,
                                .usages = calloc(trace->life_count + (size_t)1, sizeof *analysis.usages),
                                .stretch_of = calloc(trace->submitted_count + (size_t)1, sizeof *analysis.stretch_of),
                                .kinds = calloc(trace->life_count + (size_t)1, sizeof *analysis.kinds)};
    bool has_memory = analysis.usages && analysis.stretch_of && analysis.kinds;
    if (has_memory) {
        cut_stretches(&analysis);
        analysis.turn_of = calloc(analysis.stretch_count + (size_t)1, sizeof *analysis.turn_of);
        walk(&analysis);
        find_gradients(&analysis);
        has_memory = analysis.turn_of && find_turns(&analysis);
    }
    for (uint32_t i = 0; has_memory && i < trace->life_count; i++)
        analysis.kinds[i] = (unsigned char)kind_of(&analysis, i);
    free(analysis.usages);
    free(analysis.stretch_of);
    free(analysis.turn_of);
    if (!has_memory) {
        free(analysis.kinds);
        return NULL;
    }
    return analysis.kinds;
}
