/* Writes a trace of a made-up training run: make_trace OUT RECORDS [SEED [cut|lossy|hostile]].
 *
 * A stack of layers: forward keeps an activation per layer and works with a short-lived buffer, backward reads the
 * activations and frees them, an optimiser walks over the weights and its state. As many iterations as fit into
 * RECORDS events; the second is analysed and timed. Two threads: forward and backward. The call stacks lie in this
 * program, so that they can be looked up; one in five is a Python one. `cut`: no END. `lossy`: some events are missing.
 * `hostile`: names that would be markup in a page and commands to a terminal.
 */
#include "trace/file.h"
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef LAYERS
#define LAYERS 96u
#endif
#define WEIGHTS    (2u * LAYERS)
#define OPERATIONS (2 * LAYERS + 1 + LAYERS)
#define FRAME      65536u
#define STACKS     (3u * LAYERS + 4)

static struct {
    struct trace_writer *writer;
    uint64_t sequence, now, next_id, number, random, skipped;
    uint64_t weights[WEIGHTS], activations[LAYERS], demand;
    uint32_t program, file, functions[4], kernels[5];
    bool is_lossy, is_hostile;
} run;

static uint64_t draw(uint64_t below)
{
    run.random = run.random * 6364136223846793005u + 1442695040888963407u;
    return (run.random >> 33) % below;
}

static struct trace_event event(uint32_t thread, uint32_t stack)
{
    run.now += 500 + draw(3000);
    return (struct trace_event){run.sequence++, run.now, thread, stack};
}

static uint64_t layer_bytes(uint32_t layer)
{
    return (uint64_t)FRAME * (4 + layer % 7);
}

static uint64_t hold(uint64_t bytes, uint32_t stack, uint32_t source, uint32_t what)
{
    uint64_t footprint = (bytes + FRAME - 1) / FRAME * FRAME;
    run.demand += footprint;
    struct trace_held held = {
        event(1, stack), ++run.next_id, 0x700000000000u + run.next_id * FRAME * 16, bytes, footprint, source, what};
    trace_writer_event(run.writer, TRACE_HELD, &held, sizeof held);
    return held.id;
}

static void let_go(uint64_t id, uint64_t bytes, uint32_t thread)
{
    run.demand -= (bytes + FRAME - 1) / FRAME * FRAME;
    if (run.is_lossy && draw(50) == 0) {
        run.skipped++;
        return;
    }
    struct trace_freed freed = {event(thread, 0), id};
    trace_writer_event(run.writer, TRACE_FREED, &freed, sizeof freed);
}

static void work(uint32_t kernel, uint32_t stack, uint32_t thread, const struct trace_touch *touches, uint32_t count)
{
    unsigned char body[sizeof(struct trace_ran) + 8 * sizeof *touches];
    struct trace_ran ran = {.event = event(thread, stack),
                            .number = ++run.number,
                            .kind = TRACE_LAUNCH,
                            .name = run.kernels[kernel],
                            .stream = thread - 1,
                            .grid = {64, 1, 1},
                            .block = {256, 1, 1},
                            .touch_count = count};
    memcpy(body, &ran, sizeof ran);
    memcpy(body + sizeof ran, touches, count * sizeof *touches);
    trace_writer_event(run.writer, TRACE_RAN, body, sizeof ran + count * sizeof *touches);
}

/* Where the stacks lie. */
__attribute__((noinline)) static void forward(uint32_t layer)
{
    uint64_t bytes = layer_bytes(layer), scratch = hold(FRAME, 3 * layer + 2, TRACE_ARENA, 0);
    run.activations[layer] = hold(bytes, 3 * layer + 1, TRACE_ARENA, 0);
    struct trace_touch touches[] = {{run.weights[layer], TRACE_MAY_READ | TRACE_EXACT, 0},
                                    {layer ? run.activations[layer - 1] : run.weights[layer], TRACE_MAY_READ, 0},
                                    {scratch, TRACE_MAY_READ | TRACE_MAY_WRITE, 0},
                                    {run.activations[layer], TRACE_MAY_WRITE | TRACE_EXACT, 0}};
    work(layer % 3, 3 * layer + 1, 1, touches, 4);
    let_go(scratch, FRAME, 1);
}

__attribute__((noinline)) static void backward(uint32_t layer)
{
    struct trace_touch touches[] = {{run.activations[layer], TRACE_MAY_READ, 0},
                                    {run.weights[layer], TRACE_MAY_READ, 0}};
    work(3, 3 * layer + 3, 2, touches, 2);
    let_go(run.activations[layer], layer_bytes(layer), 2);
}

__attribute__((noinline)) static void optimise(uint32_t layer)
{
    struct trace_touch touches[] = {{run.weights[layer], TRACE_MAY_READ | TRACE_MAY_WRITE | TRACE_EXACT, 0},
                                    {run.weights[LAYERS + layer], TRACE_MAY_READ | TRACE_MAY_WRITE | TRACE_EXACT, 0}};
    work(4, STACKS - 1, 1, touches, 2);
}

static int first_module(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    *(uint64_t *)out = info->dlpi_addr;
    return 1;
}

static void write_stacks(void)
{
    extern const char __executable_start[], etext[];
    void (*const places[])(uint32_t) = {forward, backward, optimise};
    struct trace_module module = {.number = 1,
                                  .path = run.program,
                                  .begin = (uint64_t)(uintptr_t)__executable_start,
                                  .end = (uint64_t)(uintptr_t)etext};
    dl_iterate_phdr(first_module, &module.bias);
    trace_writer_module(run.writer, &module);
    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t place = i >= 3 * LAYERS ? 2 : i % 3 == 2;
        struct trace_frame frames[12] = {0};
        struct trace_stack stack = {.number = i + 1, .frame_count = i % 5 == 4 ? 4 : 12};
        for (uint32_t f = 0; f < stack.frame_count; f++) {
            uint64_t address = (uint64_t)(uintptr_t)places[(place + f / 2) % 3] - module.bias;
            frames[f] = (struct trace_frame){.module = 1, .offset = address + 4 + (f == 0 ? i % 24 : f)};
            if (stack.frame_count == 4 && f > 0)
                frames[f] = (struct trace_frame){
                    .kind = TRACE_PYTHON, .function = run.functions[f], .file = run.file, .line = 10 + i / (f * f)};
        }
        trace_writer_stack(run.writer, &stack, frames);
    }
}

static void write_head(void)
{
    static const char *const functions[] = {"forward", "layer_forward", "step", "<module>"};
    static const char *const kernels[] = {"_Z14matmul_forwardPfPKfS1_i", "_Z12relu_forwardPfPKfi",
                                          "_Z17attention_forwardPfPKfi", "_Z8backwardPfPKfS1_i", "_Z9sgd_stepPfS_f"};
    static const char hostile[] = "</script><img src=x onerror=\"harmed=1\"><b harm=''>\033]0;harm\007\xff";
    char path[4096] = "";
    if (!realpath("/proc/self/exe", path))
        exit(2);
    run.program = trace_writer_name(run.writer, path);
    run.file = trace_writer_name(run.writer, "train.py");
    for (int i = 0; i < 4; i++)
        run.functions[i] = trace_writer_name(run.writer, run.is_hostile ? hostile : functions[i]);
    for (int i = 0; i < 5; i++)
        run.kernels[i] = trace_writer_name(run.writer, run.is_hostile ? hostile : kernels[i]);
    trace_writer_run(run.writer, &(struct trace_run){.cap_bytes = 300u * FRAME,
                                                     .device_bytes = 1u << 30,
                                                     .frame_bytes = FRAME,
                                                     .started_unix_ns = 1700000000000000000u,
                                                     .program = run.program,
                                                     .device = trace_writer_name(
                                                         run.writer, run.is_hostile ? hostile : "a made-up device"),
                                                     .process = 1234,
                                                     .rank = TRACE_NONE});
    write_stacks();
    uint32_t names[] = {trace_writer_name(run.writer, "forward"), trace_writer_name(run.writer, "backward")};
    for (uint32_t i = 0; i < 2; i++)
        trace_writer_thread(run.writer, &(struct trace_thread){.number = i + 1, .id = 1234 + i, .name = names[i]});
    hold(6 * FRAME, STACKS, TRACE_OUTSIDE, trace_writer_name(run.writer, "a pool"));
    for (uint32_t i = 0; i < WEIGHTS; i++)
        run.weights[i] = hold(FRAME * (uint64_t)(2 + i % 3), 3 * LAYERS + 1 + i / LAYERS, TRACE_ARENA, 0);
}

/* The iteration before this moment, as Reprise analyses it. */
static void write_analysed(uint64_t first_number)
{
    trace_writer_iteration(run.writer, &(struct trace_iteration){.index = 1,
                                                                 .operation_count = 2 * LAYERS,
                                                                 .allocation_count = LAYERS,
                                                                 .version_count = LAYERS,
                                                                 .stream_count = 1,
                                                                 .fixed_bytes = 500u * FRAME,
                                                                 .demand_peak_bytes = 1100u * FRAME,
                                                                 .nanoseconds = 2 * LAYERS * 5000});
    for (uint32_t i = 0; i < LAYERS; i++)
        trace_writer_allocation(run.writer, &(struct trace_allocation){.bytes = layer_bytes(i),
                                                                       .footprint_bytes = layer_bytes(i),
                                                                       .kind = TRACE_PLANNED,
                                                                       .born = i,
                                                                       .ends = 2 * LAYERS - i,
                                                                       .id = run.activations[i],
                                                                       .stack = 3 * i + 1});
    for (uint32_t i = 0; i < LAYERS; i++)
        trace_writer_version(
            run.writer,
            &(struct trace_version){
                .bytes = layer_bytes(i), .allocation = i, .producer = i, .replaces = TRACE_NONE, .is_swappable = 1});
    for (uint32_t i = 0; i < 2 * LAYERS; i++) {
        bool is_forward = i < LAYERS;
        uint32_t layer = is_forward ? i : 2 * LAYERS - 1 - i, before = layer ? layer - 1 : 0;
        bool has_read = !is_forward || layer > 0;
        trace_writer_operation(run.writer,
                               &(struct trace_operation){.nanoseconds = 5000,
                                                         .name = run.kernels[is_forward ? layer % 3 : 3],
                                                         .replayable_until = 2 * LAYERS,
                                                         .read_count = has_read,
                                                         .write_count = is_forward,
                                                         .stack = 3 * layer + (is_forward ? 1 : 3),
                                                         .number = first_number + i},
                               is_forward ? &before : &layer, &layer);
    }
    for (uint32_t i = 0; i < OPERATIONS - 1; i++) {
        struct trace_timed timed = {event(1, 0), first_number + i, 4000 + draw(9000)};
        trace_writer_event(run.writer, TRACE_TIMED, &timed, sizeof timed);
    }
}

static uint32_t phase_of(uint64_t index)
{
    return index < 2 ? TRACE_RECORDING : index < 4 ? TRACE_PROBATION : TRACE_IN_PLAN;
}

static void note_counters(uint64_t index)
{
    struct trace_resident resident = {event(1, 0), 300u * FRAME, 12 * FRAME, 6 * FRAME, run.demand};
    trace_writer_event(run.writer, TRACE_RESIDENT, &resident, sizeof resident);
    if (index == 0 || index == 2 || index == 4) {
        struct trace_phase_change change = {event(1, 0), phase_of(index), 0};
        trace_writer_event(run.writer, TRACE_PHASE, &change, sizeof change);
    }
}

static void move(uint32_t layer, uint32_t movement)
{
    struct trace_moved moved = {event(1, 0), run.activations[layer], layer_bytes(layer), movement, 0};
    trace_writer_event(run.writer, TRACE_MOVED, &moved, sizeof moved);
}

static void iterate(uint64_t index)
{
    uint64_t first_number = run.number + 1;
    note_counters(index);
    for (uint32_t i = 0; i < LAYERS; i++) {
        forward(i);
        if (index >= 2 && i % 4 == 3)
            move(i, i % 8 == 3 ? TRACE_DROP : TRACE_SWAP_OUT);
    }
    for (uint32_t i = LAYERS; i-- > 0;) {
        if (index >= 2 && i % 4 == 3)
            move(i, i % 8 == 3 ? TRACE_REBUILD : TRACE_SWAP_IN);
        backward(i);
    }
    for (uint32_t i = 0; i < LAYERS; i++)
        optimise(i);
    struct trace_boundary boundary = {event(1, 0), index, first_number, run.number + 1, phase_of(index), 0};
    trace_writer_event(run.writer, TRACE_BOUNDARY, &boundary, sizeof boundary);
    if (index == 1)
        write_analysed(first_number);
    if (run.skipped) {
        struct trace_lost lost = {event(2, 0), run.skipped};
        trace_writer_event(run.writer, TRACE_LOST, &lost, sizeof lost);
        run.skipped = 0;
    }
}

int main(int argc, char **argv)
{
    uint64_t wanted = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    const char *end = argc > 4 ? argv[4] : "";
    if (wanted == 0 || !(run.writer = trace_writer_open(argv[1]))) {
        fprintf(stderr, "usage: make_trace OUT RECORDS [SEED [cut|lossy|hostile]]\n");
        return 2;
    }
    run.random = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    run.is_lossy = strcmp(end, "lossy") == 0;
    run.is_hostile = strcmp(end, "hostile") == 0;
    write_head();
    for (uint64_t i = 0; run.sequence < wanted; i++)
        iterate(i);
    if (strcmp(end, "cut") == 0) {
        trace_writer_flush(run.writer);
        trace_writer_abandon(run.writer);
        return 0;
    }
    return trace_writer_close(run.writer) ? 1 : 0;
}
