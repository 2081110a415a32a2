/* links: trace/file.c trace/records.c trace/records_events.c trace/lifetime.c
 * trace/report.c trace/page.c trace/words.c trace/terminal.c trace/model%.c trace/kinds.c trace/symbols.c
 * trace/definitions.c */
/* Damaged traces into the trace reader. The hashes are made right again, so that the damage reaches the records. */
#include "tests/fuzz/fuzz.h"
#include "trace/lifetime.h"
#include "trace/report.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char *const fuzz_tokens[] = {"\xff\xff\xff\xff", "\xff\xff\xff\x7f", NULL};

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

void fuzz_feed(const unsigned char *bytes, size_t count)
{
    FILE *sink = fopen("/dev/null", "w");
    struct trace trace;
    char why[300];
    unsigned char *sealed = malloc(count ? count : 1);
    if (!sink || !sealed)
        abort();
    memcpy(sealed, bytes, count);
    seal(sealed, count);
    if (trace_read_bytes(sealed, count, "input", &trace, why, sizeof why)) {
        report_write(sink, &trace);
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

void fuzz_write_samples(const char *directory)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/chain", directory);
    write_sample(path);
}
