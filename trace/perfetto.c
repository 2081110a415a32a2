#include "trace/perfetto.h"
#include "trace/perfetto.pb-c.h"
#include <stdlib.h>
#include <string.h>

#define SEQUENCE        1u
#define STATE_CLEARED   1u /* SEQ_INCREMENTAL_STATE_CLEARED */
#define STATE_NEEDED    2u /* SEQ_NEEDS_INCREMENTAL_STATE */
#define FLOWS_PER_SLICE 64u

enum track { PROCESS = 1, HELD, FRAMES, OUTSIDE, CAP, ITERATIONS, PHASES, FIRST_STREAM = 64 };

/* One arrow. */
struct flow {
    uint32_t operation; /* of the view that is written */
    uint64_t id;
    bool is_end;
};

struct perfetto {
    FILE *out;
    const struct model *model;
    const struct model_view *view;
    struct flow *flows;  /* by operation */
    uint64_t *flow_ends; /* by id: when its producer ended */
    uint32_t flow_count;
    unsigned char *bytes;
    size_t capacity;
    bool is_out_of_memory;
};

static void put_packet(struct perfetto *perfetto, Reprise__Packet *packet)
{
    packet->has_trusted_packet_sequence_id = 1;
    packet->trusted_packet_sequence_id = SEQUENCE;
    Reprise__Packet *packets[] = {packet};
    Reprise__Trace trace = REPRISE__TRACE__INIT;
    trace.n_packet = 1;
    trace.packet = packets;
    size_t bytes = reprise__trace__get_packed_size(&trace);
    if (bytes > perfetto->capacity) {
        unsigned char *bigger = realloc(perfetto->bytes, bytes * 2);
        if (!bigger) {
            perfetto->is_out_of_memory = true;
            return;
        }
        perfetto->bytes = bigger;
        perfetto->capacity = bytes * 2;
    }
    fwrite(perfetto->bytes, 1, reprise__trace__pack(&trace, perfetto->bytes), perfetto->out);
}

static char *string_of(const struct perfetto *perfetto, uint32_t string)
{
    return perfetto->model->strings[string];
}

/* Names are said once, by number: a string's number plus one. The first packet of the sequence. */
static void put_names(struct perfetto *perfetto)
{
    const struct model_view *view = perfetto->view;
    bool *is_used = calloc(perfetto->model->string_count + (size_t)1, sizeof *is_used);
    if (!is_used) {
        perfetto->is_out_of_memory = true;
        return;
    }
    for (uint32_t i = 0; i < view->operation_count; i++)
        is_used[view->operations[i].name] = true;
    uint32_t flags = STATE_CLEARED;
    for (uint32_t i = 0; i < perfetto->model->string_count; i++) {
        if (!is_used[i] && i > 0)
            continue;
        Reprise__EventName name = REPRISE__EVENT_NAME__INIT, *names[] = {&name};
        Reprise__Interned interned = REPRISE__INTERNED__INIT;
        Reprise__Packet packet = REPRISE__PACKET__INIT;
        name.has_iid = 1;
        name.iid = i + 1ull;
        name.name = i ? string_of(perfetto, i) : "?";
        interned.n_event_names = 1;
        interned.event_names = names;
        packet.interned_data = &interned;
        packet.has_sequence_flags = 1;
        packet.sequence_flags = flags;
        put_packet(perfetto, &packet);
        flags = STATE_NEEDED;
    }
    free(is_used);
}

static void put_track(struct perfetto *perfetto, uint64_t uuid, char *name, bool is_counter)
{
    Reprise__Counter counter = REPRISE__COUNTER__INIT;
    Reprise__Track track = REPRISE__TRACK__INIT;
    Reprise__Packet packet = REPRISE__PACKET__INIT;
    counter.has_unit = 1;
    counter.unit = REPRISE__COUNTER__UNIT__SIZE_BYTES;
    track.has_uuid = track.has_parent_uuid = 1;
    track.uuid = uuid;
    track.parent_uuid = PROCESS;
    track.name = name;
    track.counter = is_counter ? &counter : NULL;
    packet.track_descriptor = &track;
    put_packet(perfetto, &packet);
}

static void put_process(struct perfetto *perfetto)
{
    const struct trace *trace = perfetto->model->trace;
    Reprise__Process process = REPRISE__PROCESS__INIT;
    Reprise__Track track = REPRISE__TRACK__INIT;
    Reprise__Packet packet = REPRISE__PACKET__INIT;
    process.has_pid = 1;
    process.pid = (int32_t)trace->run.process;
    process.process_name = string_of(perfetto, perfetto->model->program);
    track.has_uuid = 1;
    track.uuid = PROCESS;
    track.process = &process;
    packet.track_descriptor = &track;
    put_packet(perfetto, &packet);
}

static uint32_t stream_count(const struct model_view *view)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->operation_count; i++)
        count = view->operations[i].stream >= count ? view->operations[i].stream + 1 : count;
    return count;
}

static void put_tracks(struct perfetto *perfetto, const bool *has_stream, uint32_t streams)
{
    put_process(perfetto);
    put_track(perfetto, HELD, "held by the program", true);
    put_track(perfetto, FRAMES, "frames taken", true);
    put_track(perfetto, OUTSIDE, "taken past the frames", true);
    put_track(perfetto, CAP, "cap", true);
    put_track(perfetto, ITERATIONS, "iterations", false);
    put_track(perfetto, PHASES, "phases", false);
    for (uint32_t i = 0; i < streams; i++) {
        char name[32];
        snprintf(name, sizeof name, "stream %u", i);
        if (has_stream[i])
            put_track(perfetto, FIRST_STREAM + i, name, false);
    }
}

static void put_counter(struct perfetto *perfetto, enum track track, uint64_t ns, uint64_t value)
{
    Reprise__Event event = REPRISE__EVENT__INIT;
    Reprise__Packet packet = REPRISE__PACKET__INIT;
    event.has_type = event.has_track_uuid = event.has_counter_value = 1;
    event.type = REPRISE__EVENT__TYPE__COUNTER;
    event.track_uuid = track;
    event.counter_value = (int64_t)value;
    packet.has_timestamp = 1;
    packet.timestamp = ns;
    packet.track_event = &event;
    put_packet(perfetto, &packet);
}

static void put_counters(struct perfetto *perfetto)
{
    const struct model_view *view = perfetto->view;
    const struct trace *trace = perfetto->model->trace;
    uint64_t before = 0;
    for (uint32_t p = 0; p < view->position_count; p++) {
        if (p == 0 || view->held[p] != before)
            put_counter(perfetto, HELD, view->clock_ns[p], view->held[p]);
        before = view->held[p];
    }
    for (uint32_t i = 0; view == &perfetto->model->run && i < trace->resident_count; i++) {
        put_counter(perfetto, FRAMES, trace->residents[i].event.nanoseconds, trace->residents[i].frames_bytes);
        put_counter(perfetto, OUTSIDE, trace->residents[i].event.nanoseconds, trace->residents[i].outside_bytes);
    }
    if (trace->run.cap_bytes) {
        put_counter(perfetto, CAP, 0, trace->run.cap_bytes);
        put_counter(perfetto, CAP, view->clock_ns[view->position_count], trace->run.cap_bytes);
    }
}

static void put_event(struct perfetto *perfetto, Reprise__Event *event, uint64_t track, uint64_t ns,
                      Reprise__Event__Type type)
{
    Reprise__Packet packet = REPRISE__PACKET__INIT;
    event->has_type = event->has_track_uuid = 1;
    event->type = type;
    event->track_uuid = track;
    packet.has_timestamp = packet.has_sequence_flags = 1;
    packet.timestamp = ns;
    packet.sequence_flags = STATE_NEEDED;
    packet.track_event = event;
    put_packet(perfetto, &packet);
}

static void put_end(struct perfetto *perfetto, uint64_t track, uint64_t ns)
{
    Reprise__Event event = REPRISE__EVENT__INIT;
    put_event(perfetto, &event, track, ns, REPRISE__EVENT__TYPE__SLICE_END);
}

static void put_named_slice(struct perfetto *perfetto, enum track track, char *name, uint64_t from, uint64_t to)
{
    Reprise__Event event = REPRISE__EVENT__INIT;
    event.name = name;
    put_event(perfetto, &event, track, from, REPRISE__EVENT__TYPE__SLICE_BEGIN);
    put_end(perfetto, track, to);
}

static void put_iterations(struct perfetto *perfetto)
{
    const struct model *model = perfetto->model;
    const struct trace *trace = model->trace;
    char name[64];
    for (uint32_t i = 0; i < model->iteration_count; i++) {
        const struct model_iteration *row = &model->iterations[i];
        snprintf(name, sizeof name, "iteration %llu (%s)", (unsigned long long)row->index,
                 model_phase_names[row->phase]);
        put_named_slice(perfetto, ITERATIONS, name, row->start_ns, row->end_ns);
    }
    for (uint32_t i = 0; i < trace->phase_count; i++) {
        uint64_t to = i + 1 < trace->phase_count ? trace->phases[i + 1].event.nanoseconds : trace->end_at;
        snprintf(name, sizeof name, "%s", model_phase_names[trace->phases[i].phase]);
        put_named_slice(perfetto, PHASES, name, trace->phases[i].event.nanoseconds, to);
    }
}

struct notes {
    Reprise__Annotation items[4], *pointers[4];
    size_t count;
};

static void add_note(struct notes *notes, char *name, char *text, uint64_t number)
{
    Reprise__Annotation *item = &notes->items[notes->count];
    reprise__annotation__init(item);
    item->name = name;
    item->string_value = text;
    item->has_uint_value = text == NULL;
    item->uint_value = number;
    notes->pointers[notes->count++] = item;
}

/* flow: the first one of this operation; the next operation's is returned. */
static uint32_t put_operation(struct perfetto *perfetto, uint32_t number, uint32_t flow, uint64_t *ends)
{
    const struct model_operation *operation = &perfetto->view->operations[number];
    Reprise__Event event = REPRISE__EVENT__INIT;
    uint64_t begun[FLOWS_PER_SLICE], ended[FLOWS_PER_SLICE];
    uint64_t from = operation->start_ns > *ends ? operation->start_ns : *ends;
    char *category = (char *)(uintptr_t)(operation->is_replay ? "replay" : model_operation_kind_names[operation->kind]);
    struct notes notes = {.count = 0};
    for (; flow < perfetto->flow_count && perfetto->flows[flow].operation == number; flow++) {
        const struct flow *one = &perfetto->flows[flow];
        if (one->is_end && perfetto->flow_ends[one->id] > from)
            from = perfetto->flow_ends[one->id];
        if (one->is_end)
            ended[event.n_terminating_flow_ids++] = one->id;
        else
            begun[event.n_flow_ids++] = one->id;
    }
    event.flow_ids = begun;
    event.terminating_flow_ids = ended;
    event.has_name_iid = 1;
    event.name_iid = operation->name + 1ull;
    event.n_categories = 1;
    event.categories = &category;
    if (operation->place)
        add_note(&notes, "place", string_of(perfetto, operation->place), 0);
    if (operation->moved_bytes)
        add_note(&notes, "bytes", NULL, operation->moved_bytes);
    if (operation->reason)
        add_note(&notes, "not recomputable", string_of(perfetto, operation->reason), 0);
    event.n_debug_annotations = notes.count;
    event.debug_annotations = notes.pointers;
    uint64_t track = FIRST_STREAM + (uint64_t)operation->stream;
    for (size_t i = 0; i < event.n_flow_ids; i++)
        perfetto->flow_ends[begun[i]] = from + operation->nanoseconds;
    *ends = from + operation->nanoseconds;
    if (!operation->nanoseconds) {
        put_event(perfetto, &event, track, from, REPRISE__EVENT__TYPE__INSTANT);
        return flow;
    }
    put_event(perfetto, &event, track, from, REPRISE__EVENT__TYPE__SLICE_BEGIN);
    put_end(perfetto, track, *ends);
    return flow;
}

static int by_operation(const void *left, const void *right)
{
    const struct flow *a = left, *b = right;
    if (a->operation != b->operation)
        return a->operation < b->operation ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* The operation of the view that an operation of the analysed iteration is; TRACE_NONE: it is not in it. */
static uint32_t operation_of(const struct perfetto *perfetto, uint32_t analysed)
{
    const struct model *model = perfetto->model;
    if (perfetto->view == &model->iteration)
        return analysed;
    uint64_t number = model->recorded->operations[analysed].number;
    return number ? trace_find_submitted(model->trace, number) : TRACE_NONE;
}

/* An arrow from the producer of each version to each of its readers; FLOWS_PER_SLICE at most from or to one. */
static bool find_flows(struct perfetto *perfetto)
{
    const struct trace_recorded *recorded = perfetto->model->recorded;
    if (!recorded)
        return true;
    perfetto->flows = calloc(recorded->list_count * (size_t)2 + 1, sizeof *perfetto->flows);
    perfetto->flow_ends = calloc(recorded->list_count + (size_t)1, sizeof *perfetto->flow_ends);
    if (!perfetto->flows || !perfetto->flow_ends)
        return false;
    uint64_t id = 0;
    unsigned char *begun = calloc(perfetto->view->operation_count + (size_t)1, 1);
    unsigned char *ended = calloc(perfetto->view->operation_count + (size_t)1, 1);
    bool has_memory = begun && ended;
    for (uint32_t i = 0; has_memory && i < recorded->head.operation_count; i++)
        for (uint32_t r = 0; r < recorded->operations[i].read_count; r++) {
            uint32_t producer = recorded->versions[trace_reads(recorded, i)[r]].producer;
            uint32_t from = producer == TRACE_NONE ? TRACE_NONE : operation_of(perfetto, producer);
            uint32_t to = operation_of(perfetto, i);
            if (from == TRACE_NONE || to == TRACE_NONE || from == to || begun[from] == FLOWS_PER_SLICE ||
                ended[to] == FLOWS_PER_SLICE)
                continue;
            begun[from]++;
            ended[to]++;
            perfetto->flows[perfetto->flow_count++] = (struct flow){from, ++id, false};
            perfetto->flows[perfetto->flow_count++] = (struct flow){to, id, true};
        }
    free(begun);
    free(ended);
    qsort(perfetto->flows, perfetto->flow_count, sizeof *perfetto->flows, by_operation);
    return has_memory;
}

static void put_all(struct perfetto *perfetto, uint64_t *ends, bool *has_stream, uint32_t streams)
{
    const struct model_view *view = perfetto->view;
    for (uint32_t i = 0; i < view->operation_count; i++)
        has_stream[view->operations[i].stream] = true;
    put_names(perfetto);
    put_tracks(perfetto, has_stream, streams);
    put_counters(perfetto);
    put_iterations(perfetto);
    for (uint32_t i = 0, flow = 0; i < view->operation_count; i++)
        flow = put_operation(perfetto, i, flow, &ends[view->operations[i].stream]);
}

bool perfetto_write(FILE *out, const struct model *model)
{
    struct perfetto perfetto = {.out = out, .model = model, .view = model_main_view(model)};
    uint32_t streams = stream_count(perfetto.view);
    uint64_t *ends = calloc(streams + (size_t)1, sizeof *ends);
    bool *has_stream = calloc(streams + (size_t)1, sizeof *has_stream);
    bool has_memory = ends && has_stream && find_flows(&perfetto);
    if (has_memory)
        put_all(&perfetto, ends, has_stream, streams);
    free(ends);
    free(has_stream);
    free(perfetto.flows);
    free(perfetto.flow_ends);
    free(perfetto.bytes);
    return has_memory && !perfetto.is_out_of_memory;
}
