/* What stands in a trace, for the tests: show_trace FILE [stacks]. One `key value` per line; with `stacks`, one line
 * per stack in use: its uses by allocations and by operations, then its places, innermost first, the origin marked. */
#include "trace/symbols.h"
#include <stdio.h>
#include <stdlib.h>

static int by_word(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* The most that the program held at once in arena and slabs. */
static uint64_t peak_demand(const struct trace *trace)
{
    uint64_t(*changes)[2] = calloc(2 * (size_t)trace->life_count + 1, sizeof *changes), held = 0, peak = 0;
    size_t count = 0;
    if (!changes)
        exit(2);
    for (uint32_t i = 0; i < trace->life_count; i++) {
        const struct trace_life *life = &trace->lives[i];
        if (life->source > TRACE_SLAB)
            continue;
        changes[count][0] = life->held_sequence;
        changes[count++][1] = life->footprint_bytes;
        changes[count][0] = life->freed_sequence;
        changes[count++][1] = 0 - life->footprint_bytes;
    }
    qsort(changes, count, sizeof *changes, by_word);
    for (size_t i = 0; i < count && changes[i][0] != TRACE_NEVER; i++) {
        held += changes[i][1];
        peak = held > peak ? held : peak;
    }
    free(changes);
    return peak;
}

static uint64_t peak_on_device(const struct trace *trace)
{
    uint64_t peak = 0;
    for (uint32_t i = 0; i < trace->resident_count; i++) {
        uint64_t held = trace->residents[i].frames_bytes + trace->residents[i].outside_bytes;
        peak = held > peak ? held : peak;
    }
    return peak;
}

/* Every sum that a counter tells, made from the allocations: 1 if all agree. */
static int counters_agree(const struct trace *trace)
{
    uint32_t life = 0, freed = 0;
    uint64_t held = 0;
    uint64_t(*frees)[2] = calloc((size_t)trace->life_count + 1, sizeof *frees);
    size_t count = 0;
    bool agree = frees != NULL;
    for (uint32_t i = 0; agree && i < trace->life_count; i++) {
        if (trace->lives[i].source <= TRACE_SLAB && trace->lives[i].freed_sequence != TRACE_NEVER) {
            frees[count][0] = trace->lives[i].freed_sequence;
            frees[count++][1] = trace->lives[i].footprint_bytes;
        }
    }
    if (agree)
        qsort(frees, count, sizeof *frees, by_word);
    for (uint32_t i = 0; agree && i < trace->resident_count; i++) {
        uint64_t now = trace->residents[i].event.sequence;
        for (; life < trace->life_count && trace->lives[life].held_sequence < now; life++)
            held += trace->lives[life].source <= TRACE_SLAB ? trace->lives[life].footprint_bytes : 0;
        for (; freed < count && frees[freed][0] < now; freed++)
            held -= frees[freed][1];
        agree = held == trace->residents[i].demand_bytes;
    }
    free(frees);
    return agree;
}

static void show_counts(const struct trace *trace)
{
    uint32_t replays = 0, timed = 0, launched = 0, by_source[4] = {0}, ended = 0;
    for (uint32_t i = 0; i < trace->submitted_count; i++) {
        replays += trace->submitted[i].is_replay;
        timed += trace->submitted[i].nanoseconds != 0;
        launched += trace->submitted[i].kind == TRACE_LAUNCH;
    }
    for (uint32_t i = 0; i < trace->life_count; i++) {
        by_source[trace->lives[i].source]++;
        ended += trace->lives[i].freed_at != TRACE_NEVER;
    }
    printf("cut %d\nlost %llu\nlives %u\nfreed %u\noutside %u\n", trace->is_cut, (unsigned long long)trace->lost_count,
           trace->life_count, ended, by_source[TRACE_OUTSIDE]);
    printf("submitted %u\nlaunches %u\nreplays %u\ntimed %u\ntouches %u\n", trace->submitted_count, launched, replays,
           timed, trace->touch_count);
    printf("threads %u\nstacks %u\nphases %u\nboundaries %u\nmoves %u\nanalysed %u\n", trace->thread_count - 1,
           trace->stack_count - 1, trace->phase_count, trace->boundary_count, trace->shift_count,
           trace->iteration_count);
    printf("process %u\nrank %d\ncap %llu\n", trace->run.process, (int)trace->run.rank,
           (unsigned long long)trace->run.cap_bytes);
    printf("demand_peak %llu\ndevice_peak %llu\ncounters_agree %d\n", (unsigned long long)peak_demand(trace),
           (unsigned long long)peak_on_device(trace), counters_agree(trace));
}

static void show_stack(struct symbols *symbols, uint32_t number)
{
    const struct symbols_stack *stack = symbols_stack(symbols, number);
    for (uint32_t i = 0; i < stack->count; i++) {
        const struct symbols_place *place = stack->places[i];
        printf("%s%s%s (%s:%u)", i ? " < " : " ", i == stack->origin ? "*" : "", place->function,
               place->file ? place->file : place->module, place->line);
    }
}

static void show_stacks(const struct trace *trace)
{
    struct symbols *symbols = symbols_open(trace);
    uint32_t *uses = calloc(2 * (size_t)trace->stack_count, sizeof *uses);
    if (!symbols || !uses)
        exit(2);
    for (uint32_t i = 0; i < trace->life_count; i++)
        uses[2 * trace->lives[i].stack]++;
    for (uint32_t i = 0; i < trace->submitted_count; i++)
        uses[2 * trace->submitted[i].stack + 1]++;
    for (uint32_t i = 0; i < trace->stack_count; i++) {
        printf("stack %u %u", uses[2 * i], uses[2 * i + 1]);
        show_stack(symbols, i);
        printf("\n");
    }
    free(uses);
    symbols_close(symbols);
}

int main(int argc, char **argv)
{
    struct trace trace;
    char why[512];
    if (argc < 2 || !trace_read(argv[1], &trace, why, sizeof why)) {
        fprintf(stderr, "%s\n", argc < 2 ? "usage: show_trace FILE [stacks]" : why);
        return 2;
    }
    show_counts(&trace);
    if (argc > 2)
        show_stacks(&trace);
    trace_release(&trace);
    return 0;
}
