/* Modules, stacks, threads and events of a trace file; and, when all have come, what belongs together. */
#include "trace/records.h"
#include <stdlib.h>
#include <string.h>

#define EVENTS_MOST (UINT32_MAX / 4)

/* Places */

static bool take_module(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace *trace = records->trace;
    struct trace_module module;
    if (bytes != sizeof module)
        return records_refuse(records, "a module record is not well-formed");
    memcpy(&module, body, sizeof module);
    if (module.number != trace->module_count || !records_name_is_known(records, module.path) ||
        module.build_id_bytes > TRACE_BUILD_ID_MOST || module.begin > module.end)
        return records_refuse(records, "a module record is not well-formed");
    if (!records_grow(records, &trace->modules, trace->module_count, &records->events.module_capacity, sizeof module))
        return false;
    trace->modules[trace->module_count++] = module;
    return true;
}

static bool is_frame(const struct records *records, const struct trace_frame *frame)
{
    return frame->kind <= TRACE_PYTHON && frame->module < records->trace->module_count &&
           records_name_is_known(records, frame->function) && records_name_is_known(records, frame->file);
}

static bool take_stack(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace *trace = records->trace;
    struct trace_stack stack;
    if (bytes < sizeof stack)
        return records_refuse(records, "a stack record is too short");
    memcpy(&stack, body, sizeof stack);
    if (stack.number != trace->stack_count || stack.frame_count > TRACE_STACK_MOST || stack.is_cut > 1 ||
        bytes != sizeof stack + stack.frame_count * sizeof(struct trace_frame))
        return records_refuse(records, "a stack record is not well-formed");
    if (!records_grow(records, &trace->stacks, trace->stack_count, &records->events.stack_capacity,
                      sizeof *trace->stacks))
        return false;
    struct trace_frame *frames = malloc(stack.frame_count * sizeof *frames + 1);
    if (!frames)
        return records_refuse(records, "there is no memory for it");
    memcpy(frames, body + sizeof stack, stack.frame_count * sizeof *frames);
    trace->stacks[trace->stack_count++] = (struct trace_frames){frames, stack.frame_count, stack.is_cut};
    for (uint32_t i = 0; i < stack.frame_count; i++)
        if (!is_frame(records, &frames[i]))
            return records_refuse(records, "a stack record is not well-formed");
    return true;
}

static bool take_thread(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace *trace = records->trace;
    struct trace_thread thread;
    if (bytes != sizeof thread)
        return records_refuse(records, "a thread record is not well-formed");
    memcpy(&thread, body, sizeof thread);
    if (thread.number != trace->thread_count || !records_name_is_known(records, thread.name))
        return records_refuse(records, "a thread record is not well-formed");
    if (!records_grow(records, &trace->threads, trace->thread_count, &records->events.thread_capacity, sizeof thread))
        return false;
    trace->threads[trace->thread_count++] = thread;
    return true;
}

bool records_begin_places(struct records *records)
{
    static const unsigned char zeros[sizeof(struct trace_module)];
    struct trace *trace = records->trace; /* lists of no touches have an address, too */
    return records_grow(records, &trace->touches, 0, &records->events.touch_capacity, sizeof *trace->touches) &&
           take_module(records, zeros, sizeof(struct trace_module)) &&
           take_stack(records, zeros, sizeof(struct trace_stack)) &&
           take_thread(records, zeros, sizeof(struct trace_thread));
}

bool records_take_place(struct records *records, const struct trace_record *record, const unsigned char *body)
{
    size_t bytes = record->bytes - sizeof *record;
    return record->kind == TRACE_MODULE  ? take_module(records, body, bytes)
           : record->kind == TRACE_STACK ? take_stack(records, body, bytes)
                                         : take_thread(records, body, bytes);
}

/* Events */

static bool take_held(struct records *records, const unsigned char *body)
{
    struct trace *trace = records->trace;
    struct trace_held held;
    memcpy(&held, body, sizeof held);
    if (held.id == 0 || held.source > TRACE_OWN || !records_name_is_known(records, held.what))
        return records_refuse(records, "an allocation event is not well-formed");
    if (!records_grow(records, &trace->lives, trace->life_count, &records->events.life_capacity, sizeof *trace->lives))
        return false;
    trace->lives[trace->life_count++] = (struct trace_life){
        .id = held.id,
        .address = held.address,
        .bytes = held.bytes,
        .footprint_bytes = held.footprint_bytes,
        .held_at = held.event.nanoseconds,
        .freed_at = TRACE_NEVER,
        .held_sequence = held.event.sequence,
        .freed_sequence = TRACE_NEVER,
        .source = held.source,
        .what = held.what,
        .thread = held.event.thread,
        .stack = held.event.stack,
    };
    return true;
}

static bool take_freed(struct records *records, const unsigned char *body)
{
    struct records_events *events = &records->events;
    struct trace_freed freed;
    memcpy(&freed, body, sizeof freed);
    if (!records_grow(records, &events->frees, events->free_count, &events->free_capacity, sizeof *events->frees))
        return false;
    events->frees[events->free_count++] =
        (struct records_free){freed.event.sequence, freed.event.nanoseconds, freed.id};
    return true;
}

static bool take_timed(struct records *records, const unsigned char *body)
{
    struct records_events *events = &records->events;
    struct trace_timed timed;
    memcpy(&timed, body, sizeof timed);
    if (!records_grow(records, &events->times, events->time_count, &events->time_capacity, sizeof *events->times))
        return false;
    events->times[events->time_count++] = (struct records_time){timed.event.sequence, timed.number, timed.nanoseconds};
    return true;
}

static bool take_touches(struct records *records, uint32_t count, const unsigned char *from)
{
    struct records_events *events = &records->events;
    struct trace *trace = records->trace;
    for (uint32_t i = 0; i < count; i++) {
        struct trace_touch touch;
        memcpy(&touch, from + i * sizeof touch, sizeof touch);
        if (!records_grow(records, &trace->touches, trace->touch_count, &events->touch_capacity,
                          sizeof *trace->touches) ||
            !records_grow(records, &events->touch_ids, trace->touch_count, &events->touch_id_capacity,
                          sizeof *events->touch_ids))
            return false;
        events->touch_ids[trace->touch_count] = touch.id;
        trace->touches[trace->touch_count++] = (struct trace_touched){TRACE_NONE, touch.access};
    }
    return true;
}

static bool take_ran(struct records *records, const unsigned char *body, size_t bytes)
{
    struct trace *trace = records->trace;
    struct trace_ran ran;
    if (bytes < sizeof ran)
        return records_refuse(records, "an operation event is too short");
    memcpy(&ran, body, sizeof ran);
    if (ran.touch_count > TRACE_TOUCH_MOST || bytes != sizeof ran + ran.touch_count * sizeof(struct trace_touch) ||
        ran.kind > TRACE_SET || ran.is_replay > 1 || (ran.number == 0 && !ran.is_replay) ||
        !records_name_is_known(records, ran.name))
        return records_refuse(records, "an operation event is not well-formed");
    if (!records_grow(records, &trace->submitted, trace->submitted_count, &records->events.submitted_capacity,
                      sizeof *trace->submitted))
        return false;
    trace->submitted[trace->submitted_count++] = (struct trace_submitted){
        .sequence = ran.event.sequence,
        .at = ran.event.nanoseconds,
        .number = ran.number,
        .moved_bytes = ran.moved_bytes,
        .first_touch = trace->touch_count,
        .touch_count = ran.touch_count,
        .thread = ran.event.thread,
        .stack = ran.event.stack,
        .kind = ran.kind,
        .name = ran.name,
        .stream = ran.stream,
        .grid = {ran.grid[0], ran.grid[1], ran.grid[2]},
        .block = {ran.block[0], ran.block[1], ran.block[2]},
        .shared_bytes = ran.shared_bytes,
        .is_replay = ran.is_replay,
    };
    return take_touches(records, ran.touch_count, body + sizeof ran);
}

static bool take_phase(struct records *records, const unsigned char *body)
{
    struct trace *trace = records->trace;
    struct trace_phase_change phase;
    memcpy(&phase, body, sizeof phase);
    if (phase.phase > TRACE_REACTIVE)
        return records_refuse(records, "a phase event is not well-formed");
    if (!records_grow(records, &trace->phases, trace->phase_count, &records->events.phase_capacity, sizeof phase))
        return false;
    trace->phases[trace->phase_count++] = phase;
    return true;
}

static bool take_boundary(struct records *records, const unsigned char *body)
{
    struct trace *trace = records->trace;
    struct trace_boundary boundary;
    memcpy(&boundary, body, sizeof boundary);
    if (boundary.phase > TRACE_REACTIVE || boundary.first > boundary.end)
        return records_refuse(records, "a boundary event is not well-formed");
    if (!records_grow(records, &trace->boundaries, trace->boundary_count, &records->events.boundary_capacity,
                      sizeof boundary))
        return false;
    trace->boundaries[trace->boundary_count++] = boundary;
    return true;
}

static bool take_moved(struct records *records, const unsigned char *body)
{
    struct records_events *events = &records->events;
    struct trace *trace = records->trace;
    struct trace_moved moved;
    memcpy(&moved, body, sizeof moved);
    if (moved.movement > TRACE_AUDIT)
        return records_refuse(records, "a movement event is not well-formed");
    if (!records_grow(records, &trace->shifts, trace->shift_count, &events->shift_capacity, sizeof *trace->shifts))
        return false;
    trace->shifts[trace->shift_count++] = (struct trace_shift){
        .event = moved.event, .id = moved.id, .bytes = moved.bytes, .life = TRACE_NONE, .movement = moved.movement};
    return true;
}

static bool take_resident(struct records *records, const unsigned char *body)
{
    struct trace *trace = records->trace;
    struct trace_resident resident;
    memcpy(&resident, body, sizeof resident);
    if (!records_grow(records, &trace->residents, trace->resident_count, &records->events.resident_capacity,
                      sizeof resident))
        return false;
    trace->residents[trace->resident_count++] = resident;
    return true;
}

static bool take_lost(struct records *records, const unsigned char *body)
{
    struct trace *trace = records->trace;
    struct trace_lost lost;
    memcpy(&lost, body, sizeof lost);
    if (!records_grow(records, &trace->losses, trace->loss_count, &records->events.loss_capacity, sizeof lost))
        return false;
    trace->losses[trace->loss_count++] = lost;
    trace->lost_count += lost.count;
    return true;
}

static bool take_by_kind(struct records *records, uint32_t kind, const unsigned char *body, size_t bytes)
{
    static const struct {
        size_t bytes;
        bool (*take)(struct records *records, const unsigned char *body);
    } kinds[] = {
        [TRACE_HELD] = {sizeof(struct trace_held), take_held},
        [TRACE_FREED] = {sizeof(struct trace_freed), take_freed},
        [TRACE_TIMED] = {sizeof(struct trace_timed), take_timed},
        [TRACE_PHASE] = {sizeof(struct trace_phase_change), take_phase},
        [TRACE_BOUNDARY] = {sizeof(struct trace_boundary), take_boundary},
        [TRACE_MOVED] = {sizeof(struct trace_moved), take_moved},
        [TRACE_RESIDENT] = {sizeof(struct trace_resident), take_resident},
        [TRACE_LOST] = {sizeof(struct trace_lost), take_lost},
    };
    if (kind == TRACE_RAN)
        return take_ran(records, body, bytes);
    return bytes == kinds[kind].bytes ? kinds[kind].take(records, body)
                                      : records_refuse(records, "an event is not well-formed");
}

bool records_take_event(struct records *records, const struct trace_record *record, const unsigned char *body)
{
    struct trace *trace = records->trace;
    size_t bytes = record->bytes - sizeof *record;
    struct trace_event event;
    if (!records_are_between(records) || bytes < sizeof event || records->events.event_count == EVENTS_MOST)
        return records_refuse(records, "an event is out of place");
    memcpy(&event, body, sizeof event);
    if (event.thread >= trace->thread_count || event.stack >= trace->stack_count)
        return records_refuse(records, "an event names a thread or a stack that is not there");
    records->events.event_count++;
    trace->end_at = event.nanoseconds > trace->end_at ? event.nanoseconds : trace->end_at;
    return take_by_kind(records, record->kind, body, bytes);
}

/* When all have come */

/* Puts an array into the order of the uint64_t that stands at `offset` of each element; it is nearly in order. */
static int by_first_word(const void *left, const void *right)
{
    uint64_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return a < b ? -1 : a > b;
}

/* By sequence, which is the first member of every element but the lives. False: two of them have the same. */
static bool sort(void *array, uint32_t count, size_t element, int (*compare)(const void *left, const void *right))
{
    const char *elements = array;
    bool is_sorted = true, is_unique = true;
    for (uint32_t i = 1; i < count && is_sorted; i++)
        is_sorted = compare(elements + (i - 1) * element, elements + i * element) < 0;
    if (!is_sorted)
        qsort(array, count, element, compare);
    for (uint32_t i = 1; i < count && !is_sorted && is_unique; i++)
        is_unique = compare(elements + (i - 1) * element, elements + i * element) < 0;
    return is_unique;
}

static int by_held_sequence(const void *left, const void *right)
{
    const struct trace_life *a = left, *b = right;
    return a->held_sequence < b->held_sequence ? -1 : a->held_sequence > b->held_sequence;
}

static bool sort_all(struct records *records)
{
    struct trace *trace = records->trace;
    struct records_events *events = &records->events;
    return (sort(trace->lives, trace->life_count, sizeof *trace->lives, by_held_sequence) &&
            sort(trace->submitted, trace->submitted_count, sizeof *trace->submitted, by_first_word) &&
            sort(trace->phases, trace->phase_count, sizeof *trace->phases, by_first_word) &&
            sort(trace->boundaries, trace->boundary_count, sizeof *trace->boundaries, by_first_word) &&
            sort(trace->shifts, trace->shift_count, sizeof *trace->shifts, by_first_word) &&
            sort(trace->residents, trace->resident_count, sizeof *trace->residents, by_first_word) &&
            sort(trace->losses, trace->loss_count, sizeof *trace->losses, by_first_word) &&
            sort(events->frees, events->free_count, sizeof *events->frees, by_first_word) &&
            sort(events->times, events->time_count, sizeof *events->times, by_first_word)) ||
           records_refuse(records, "two events have one place in the sequence");
}

static bool numbers_grow(struct records *records)
{
    const struct trace *trace = records->trace;
    uint64_t last = 0;
    for (uint32_t i = 0; i < trace->life_count; last = trace->lives[i++].id)
        if (trace->lives[i].id <= last)
            return records_refuse(records, "the ids of allocations do not grow");
    last = 0;
    for (uint32_t i = 0; i < trace->submitted_count; i++) {
        if (trace->submitted[i].is_replay)
            continue;
        if (trace->submitted[i].number <= last)
            return records_refuse(records, "the numbers of operations do not grow");
        last = trace->submitted[i].number;
    }
    return true;
}

/* An event that belongs to nothing: something is missing. In a whole file without losses that cannot be. */
static bool miss(struct records *records, const char *fault)
{
    struct trace *trace = records->trace;
    if (!trace->is_cut && trace->loss_count == 0)
        return records_refuse(records, fault);
    trace->lost_count++;
    return true;
}

static bool match_frees(struct records *records)
{
    struct trace *trace = records->trace;
    for (uint32_t i = 0; i < records->events.free_count; i++) {
        const struct records_free *freed = &records->events.frees[i];
        uint32_t index = trace_find_life(trace, freed->id);
        struct trace_life *life = index == TRACE_NONE ? NULL : &trace->lives[index];
        if (!life) {
            if (!miss(records, "something is freed that was not held"))
                return false;
            continue;
        }
        if (life->freed_sequence != TRACE_NEVER || life->held_sequence > freed->sequence || life->held_at > freed->at)
            return records_refuse(records, "something is freed twice, or before it was held");
        life->freed_sequence = freed->sequence;
        life->freed_at = freed->at;
    }
    return true;
}

static bool match_touches(struct records *records)
{
    struct trace *trace = records->trace;
    for (uint32_t i = 0; i < trace->touch_count; i++) {
        trace->touches[i].life = trace_find_life(trace, records->events.touch_ids[i]);
        if (trace->touches[i].life == TRACE_NONE && !miss(records, "an operation touches what was not held"))
            return false;
    }
    for (uint32_t i = 0; i < trace->shift_count; i++) {
        trace->shifts[i].life = trace->shifts[i].id ? trace_find_life(trace, trace->shifts[i].id) : TRACE_NONE;
        if (trace->shifts[i].id && trace->shifts[i].life == TRACE_NONE &&
            !miss(records, "something is moved that was not held"))
            return false;
    }
    return true;
}

static bool match_times(struct records *records)
{
    struct trace *trace = records->trace;
    for (uint32_t i = 0; i < records->events.time_count; i++) {
        uint32_t index = trace_find_submitted(trace, records->events.times[i].number);
        if (index != TRACE_NONE)
            trace->submitted[index].nanoseconds = records->events.times[i].nanoseconds;
        else if (!miss(records, "an operation was timed that was not submitted"))
            return false;
    }
    return true;
}

/* Every sequence number below the count of events is there once: what is sorted per kind is checked across kinds. */
static bool mark(unsigned char *seen, uint64_t count, uint64_t sequence)
{
    unsigned char bit = (unsigned char)(1u << (sequence % 8));
    if (sequence >= count || (seen[sequence / 8] & bit))
        return false;
    seen[sequence / 8] |= bit;
    return true;
}

#define MARK_ALL(array, number, member)                                                                                \
    for (uint32_t i = 0; is_whole && i < (number); i++)                                                                \
        is_whole = mark(seen, count, (array)[i].member);

static bool sequence_is_whole(struct records *records)
{
    const struct trace *trace = records->trace;
    const struct records_events *events = &records->events;
    uint64_t count = events->event_count;
    if (trace->is_cut)
        return true;
    unsigned char *seen = calloc(1, count / 8 + 1);
    bool is_whole = seen != NULL;
    MARK_ALL(trace->lives, trace->life_count, held_sequence)
    MARK_ALL(trace->submitted, trace->submitted_count, sequence)
    MARK_ALL(trace->phases, trace->phase_count, event.sequence)
    MARK_ALL(trace->boundaries, trace->boundary_count, event.sequence)
    MARK_ALL(trace->shifts, trace->shift_count, event.sequence)
    MARK_ALL(trace->residents, trace->resident_count, event.sequence)
    MARK_ALL(trace->losses, trace->loss_count, event.sequence)
    MARK_ALL(events->frees, events->free_count, sequence)
    MARK_ALL(events->times, events->time_count, sequence)
    free(seen);
    return is_whole || records_refuse(records, "events are missing, or there twice");
}

bool records_finish_events(struct records *records)
{
    return sort_all(records) && numbers_grow(records) && sequence_is_whole(records) && match_frees(records) &&
           match_touches(records) && match_times(records);
}

uint32_t trace_find_life(const struct trace *trace, uint64_t id)
{
    uint32_t low = 0, high = trace->life_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->lives[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trace->life_count && trace->lives[low].id == id ? low : TRACE_NONE;
}

/* The operation at or before `index` that is no replay; TRACE_NONE: there is none. */
static uint32_t own_before(const struct trace *trace, uint32_t index)
{
    while (index != TRACE_NONE && trace->submitted[index].is_replay)
        index = index == 0 ? TRACE_NONE : index - 1;
    return index;
}

uint32_t trace_find_submitted(const struct trace *trace, uint64_t number)
{
    uint32_t low = 0, high = trace->submitted_count; /* the operation sought is in [low, high) */
    while (low < high) {
        uint32_t middle = own_before(trace, low + (high - low) / 2);
        if (middle == TRACE_NONE || middle < low)
            low = low + (high - low) / 2 + 1; /* nothing but replays up to there */
        else if (trace->submitted[middle].number == number)
            return middle;
        else if (trace->submitted[middle].number < number)
            low = low + (high - low) / 2 + 1;
        else
            high = middle;
    }
    return TRACE_NONE;
}

void records_abandon(struct records *records)
{
    free(records->events.frees);
    free(records->events.times);
    free(records->events.touch_ids);
    records->events = (struct records_events){0};
}

void records_release_events(struct trace *trace)
{
    for (uint32_t i = 0; i < trace->stack_count; i++)
        free(trace->stacks[i].frames);
    free(trace->modules);
    free(trace->stacks);
    free(trace->threads);
    free(trace->lives);
    free(trace->submitted);
    free(trace->touches);
    free(trace->phases);
    free(trace->boundaries);
    free(trace->shifts);
    free(trace->residents);
    free(trace->losses);
}
