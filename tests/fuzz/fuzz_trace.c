/* links: trace/file.c trace/records.c trace/records_events.c trace/lifetime.c
 * trace/report.c trace/page.c trace/words.c trace/terminal.c trace/model%.c trace/kinds.c trace/symbols.c
 * trace/definitions.c trace/html.c trace/html_data.c */
/* Damaged traces into the trace reader. The hashes are made right again, so that the damage reaches the records. */
#include "tests/fuzz/fuzz.h"
#include "trace/html.h"
#include "trace/lifetime.h"
#include "trace/report.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char *const fuzz_tokens[] = {"\xff\xff\xff\xff", "\xff\xff\xff\x7f", NULL};

/* The page that html.c writes its data into. */
extern const char html_page[];
const char html_page[] = "@DATA@\n";

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* As trace/file.c hashes; the sizes of the blocks are kept within the file. */
static void seal(unsigned char *bytes, size_t count)
{
    uint64_t hash = 0;
    struct trace_block block;
    for (size_t at = sizeof(struct trace_header); at + sizeof block <= count; at += sizeof block + block.bytes) {
        memcpy(&block, bytes + at, sizeof block);
        if (block.bytes > count - at - sizeof block)
            block.bytes = (uint32_t)(count - at - sizeof block) / 8 * 8;
        hash = mix(hash, (uint64_t)block.number << 32 | block.bytes);
        block.head_hash = hash;
        for (uint32_t i = 0; i + 8 <= block.bytes; i += 8) {
            uint64_t word;
            memcpy(&word, bytes + at + sizeof block + i, 8);
            hash = mix(hash, word);
        }
        block.hash = hash = mix(hash, 0);
        memcpy(bytes + at, &block, sizeof block);
    }
}

/* What is promised of every trace that is taken. */
static void check(const struct trace *trace)
{
    bool is_good = true;
    for (uint32_t i = 0; i < trace->touch_count; i++)
        is_good = is_good && (trace->touches[i].life == TRACE_NONE || trace->touches[i].life < trace->life_count);
    for (uint32_t i = 0; i < trace->shift_count; i++)
        is_good = is_good && (trace->shifts[i].life == TRACE_NONE || trace->shifts[i].life < trace->life_count);
    for (uint32_t i = 0; i < trace->submitted_count; i++) {
        const struct trace_submitted *one = &trace->submitted[i];
        is_good = is_good && (uint64_t)one->first_touch + one->touch_count <= trace->touch_count &&
                  one->stack < trace->stack_count && one->thread < trace->thread_count &&
                  one->name < trace->name_count && (one->is_replay || trace_find_submitted(trace, one->number) == i) &&
                  (i == 0 || one[-1].sequence < one->sequence);
    }
    for (uint32_t i = 0; i < trace->life_count; i++) {
        const struct trace_life *life = &trace->lives[i];
        is_good = is_good && trace_find_life(trace, life->id) == i && life->freed_at >= life->held_at &&
                  life->stack < trace->stack_count && life->what < trace->name_count;
    }
    if (!is_good)
        abort();
}

void fuzz_feed(const unsigned char *bytes, size_t count)
{
    FILE *sink = fopen("/dev/null", "w");
    struct trace trace;
    struct model model;
    char why[300];
    unsigned char *sealed = malloc(count ? count : 1);
    if (!sink || !sealed)
        abort();
    memcpy(sealed, bytes, count);
    seal(sealed, count);
    if (trace_read_bytes(sealed, count, "input", &trace, why, sizeof why)) {
        check(&trace);
        report_write(sink, &trace);
        if (model_make(&trace, &model)) {
            html_write(sink, &model, NULL, "");
            model_release(&model);
        }
        trace_release(&trace);
    }
    free(sealed);
    fclose(sink);
}

/* A small trace: a chain of layers whose backward reads what its forward made. */
static void write_sample(const char *path)
{
    enum { LAYERS = 5, OPERATIONS = 2 * LAYERS };
    struct trace_writer *writer = trace_writer_open(path);
    trace_writer_run(writer,
                     &(struct trace_run){.frame_bytes = 65536, .program = trace_writer_name(writer, "program")});
    trace_writer_iteration(writer, &(struct trace_iteration){.operation_count = OPERATIONS,
                                                             .allocation_count = LAYERS,
                                                             .version_count = LAYERS,
                                                             .stream_count = 1});
    for (uint32_t i = 0; i < LAYERS; i++)
        trace_writer_allocation(
            writer,
            &(struct trace_allocation){
                .bytes = 4096, .footprint_bytes = 65536, .kind = TRACE_PLANNED, .born = i, .ends = OPERATIONS - i});
    for (uint32_t i = 0; i < LAYERS; i++)
        trace_writer_version(
            writer, &(struct trace_version){.bytes = 65536, .allocation = i, .producer = i, .replaces = TRACE_NONE});
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        uint32_t own = i < LAYERS ? i : OPERATIONS - 1 - i;
        trace_writer_operation(
            writer,
            &(struct trace_operation){.nanoseconds = 1000,
                                      .name = trace_writer_name(writer, i < LAYERS ? "forward" : "backward"),
                                      .read_count = i >= LAYERS,
                                      .write_count = i < LAYERS},
            &own, &own);
    }
    trace_writer_close(writer);
}

static void send(struct trace_writer *writer, enum trace_kind kind, void *event, size_t bytes, uint64_t *sequence)
{
    struct trace_event head = {*sequence, 100 * *sequence, 1 + (uint32_t)(*sequence % 2),
                               1 + (uint32_t)(*sequence % 2)};
    memcpy(event, &head, sizeof head);
    trace_writer_event(writer, kind, event, bytes);
    ++*sequence;
}

static void send_layer(struct trace_writer *writer, uint64_t layer, uint64_t *sequence)
{
    struct {
        struct trace_ran ran;
        struct trace_touch touches[2];
    } run = {{.number = layer, .name = 1, .grid = {8, 1, 1}, .block = {32, 1, 1}, .touch_count = 2},
             {{layer, TRACE_MAY_WRITE | TRACE_EXACT, 0}, {layer > 1 ? layer - 1 : layer, TRACE_MAY_READ, 0}}};
    struct trace_held held = {.id = layer, .address = layer << 20, .bytes = 1000, .footprint_bytes = 65536};
    struct trace_moved moved = {.id = layer, .bytes = 1000, .movement = (uint32_t)layer % 5};
    struct trace_timed timed = {.number = layer, .nanoseconds = 5000};
    struct trace_resident resident = {.frames_bytes = 65536 * layer, .demand_bytes = 65536 * layer};
    send(writer, TRACE_HELD, &held, sizeof held, sequence);
    send(writer, TRACE_RAN, &run, sizeof run, sequence);
    send(writer, TRACE_MOVED, &moved, sizeof moved, sequence);
    run.ran.is_replay = 1;
    run.ran.touch_count = 0;
    send(writer, TRACE_RAN, &run.ran, sizeof run.ran, sequence);
    send(writer, TRACE_TIMED, &timed, sizeof timed, sequence);
    send(writer, TRACE_RESIDENT, &resident, sizeof resident, sequence);
}

/* Events of all kinds, with stacks of both kinds. */
static void write_events(const char *path, bool is_lossy, bool is_cut)
{
    enum { LAYERS = 6 };
    uint64_t sequence = 0;
    struct trace_writer *writer = trace_writer_open(path);
    uint32_t name = trace_writer_name(writer, "kernel");
    trace_writer_run(writer, &(struct trace_run){.frame_bytes = 65536, .program = name, .rank = TRACE_NONE});
    trace_writer_module(writer, &(struct trace_module){.number = 1,
                                                       .path = trace_writer_name(writer, "module"),
                                                       .begin = 4096,
                                                       .end = 8192,
                                                       .build_id_bytes = 20});
    for (uint32_t i = 1; i <= 2; i++) {
        struct trace_frame frames[] = {{.module = 1, .offset = 64 * i},
                                       {.kind = TRACE_PYTHON, .function = name, .file = name, .line = i}};
        trace_writer_stack(writer, &(struct trace_stack){.number = i, .frame_count = 2}, frames);
        trace_writer_thread(writer, &(struct trace_thread){.number = i, .id = i, .name = name});
    }
    struct trace_phase_change phase = {.phase = TRACE_RECORDING};
    send(writer, TRACE_PHASE, &phase, sizeof phase, &sequence);
    for (uint64_t layer = 1; layer <= LAYERS; layer++)
        send_layer(writer, layer, &sequence);
    for (uint64_t layer = 1 + is_lossy; layer <= LAYERS; layer++) {
        struct trace_freed freed = {.id = layer};
        send(writer, TRACE_FREED, &freed, sizeof freed, &sequence);
    }
    struct trace_boundary boundary = {.first = 1, .end = LAYERS + 1, .phase = TRACE_RECORDING};
    send(writer, TRACE_BOUNDARY, &boundary, sizeof boundary, &sequence);
    struct trace_lost lost = {.count = 1};
    if (is_lossy)
        send(writer, TRACE_LOST, &lost, sizeof lost, &sequence);
    trace_writer_flush(writer);
    if (is_cut)
        trace_writer_abandon(writer);
    else
        trace_writer_close(writer);
}

void fuzz_write_samples(const char *directory)
{
    static const char *const names[] = {"whole", "lossy", "cut", "lossy_cut"};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/chain", directory);
    write_sample(path);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        write_events(path, i & 1, i & 2);
    }
}
