#include "trace/records.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SLOTS (1u << 17) /* a power of two; names beyond half of it are not kept */

/* Both sides */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *from = bytes;
    for (; count >= 8; from += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, from, 8);
        hash = mix(hash, word);
    }
    uint64_t last = 0;
    memcpy(&last, from, count);
    return mix(hash, last ^ (uint64_t)count << 56);
}

static uint64_t hash_head(uint64_t before, const struct trace_block *block)
{
    return mix(before, (uint64_t)block->number << 32 | block->bytes);
}

static uint64_t hash_block(const struct trace_block *block, const void *payload)
{
    return hash_bytes(block->head_hash, payload, block->bytes);
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

/* Writer */

struct name_slot {
    uint64_t hash;   /* two names of one hash would be taken for one: 2^-64 */
    uint32_t number; /* 0: free */
};

struct trace_writer {
    int descriptor;
    int error;                /* the first errno; then nothing is written any more */
    struct trace_block block; /* being filled */
    unsigned char payload[TRACE_BLOCK_MOST];
    uint64_t hash;
    uint64_t record_count, iteration_count;
    bool has_run;
    uint32_t allocations_due, versions_due, operations_due;
    uint32_t name_count, module_count, stack_count, thread_count;
    struct name_slot slots[NAME_SLOTS];
};

static void fail(struct trace_writer *writer, int error)
{
    if (!writer->error)
        writer->error = error;
}

static void write_all(struct trace_writer *writer, const void *bytes, size_t count)
{
    const char *from = bytes;
    while (count > 0 && !writer->error) {
        ssize_t done = write(writer->descriptor, from, count);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            fail(writer, done < 0 ? errno : EIO);
            return;
        }
        from += done;
        count -= (size_t)done;
    }
}

static void end_block(struct trace_writer *writer)
{
    struct trace_block *block = &writer->block;
    if (block->bytes == 0)
        return;
    block->head_hash = hash_head(writer->hash, block);
    block->hash = writer->hash = hash_block(block, writer->payload);
    write_all(writer, block, sizeof *block);
    write_all(writer, writer->payload, block->bytes);
    *block = (struct trace_block){.number = block->number + 1};
}

/* Room for a record of `body` bytes in the current block; NULL after an error. */
static unsigned char *begin_record(struct trace_writer *writer, enum trace_kind kind, size_t body)
{
    size_t bytes = padded(sizeof(struct trace_record) + body);
    if (bytes > TRACE_BLOCK_MOST)
        fail(writer, EINVAL);
    if (writer->error)
        return NULL;
    if (writer->block.bytes + bytes > TRACE_BLOCK_MOST)
        end_block(writer);
    unsigned char *at = writer->payload + writer->block.bytes;
    memset(at, 0, bytes);
    struct trace_record record = {(uint32_t)kind, (uint32_t)bytes};
    memcpy(at, &record, sizeof record);
    writer->block.bytes += (uint32_t)bytes;
    writer->record_count++;
    return at + sizeof record;
}

static void put_record(struct trace_writer *writer, enum trace_kind kind, const void *body, size_t bytes)
{
    unsigned char *at = begin_record(writer, kind, bytes);
    if (at)
        memcpy(at, body, bytes);
}

struct trace_writer *trace_writer_start(int descriptor)
{
    struct trace_writer *writer =
        mmap(NULL, sizeof *writer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (writer == MAP_FAILED)
        return NULL;
    writer->descriptor = descriptor;
    struct trace_header header = {TRACE_MAGIC, TRACE_VERSION, sizeof header};
    write_all(writer, &header, sizeof header);
    return writer;
}

struct trace_writer *trace_writer_open(const char *path)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct trace_writer *writer = descriptor < 0 ? NULL : trace_writer_start(descriptor);
    if (!writer && descriptor >= 0) {
        int error = errno;
        close(descriptor);
        errno = error;
    }
    return writer;
}

static bool put_name(struct trace_writer *writer, const char *name, size_t length)
{
    struct trace_name head = {.number = writer->name_count + 1, .text_bytes = (uint32_t)length};
    unsigned char *at = begin_record(writer, TRACE_NAME, sizeof head + length);
    if (!at)
        return false;
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, name, length);
    writer->name_count++;
    return true;
}

uint32_t trace_writer_name(struct trace_writer *writer, const char *name)
{
    if (!name || !*name)
        return 0;
    size_t length = strnlen(name, TRACE_NAME_MOST);
    uint64_t hash = hash_bytes(0, name, length);
    struct name_slot *slot = &writer->slots[hash % NAME_SLOTS];
    while (slot->number && slot->hash != hash)
        slot = slot == &writer->slots[NAME_SLOTS - 1] ? writer->slots : slot + 1;
    if (slot->number)
        return slot->number;
    if (writer->name_count >= NAME_SLOTS / 2)
        return 0;
    if (!put_name(writer, name, length))
        return 0;
    *slot = (struct name_slot){hash, writer->name_count};
    return writer->name_count;
}

static bool is_due(struct trace_writer *writer, bool condition)
{
    if (!condition)
        fail(writer, EINVAL);
    return condition && !writer->error;
}

static bool is_between_iterations(const struct trace_writer *writer)
{
    return writer->has_run && !writer->allocations_due && !writer->versions_due && !writer->operations_due;
}

void trace_writer_run(struct trace_writer *writer, const struct trace_run *run)
{
    if (!is_due(writer, !writer->has_run))
        return;
    writer->has_run = true;
    put_record(writer, TRACE_RUN, run, sizeof *run);
}

void trace_writer_iteration(struct trace_writer *writer, const struct trace_iteration *iteration)
{
    if (!is_due(writer, is_between_iterations(writer)))
        return;
    writer->allocations_due = iteration->allocation_count;
    writer->versions_due = iteration->version_count;
    writer->operations_due = iteration->operation_count;
    writer->iteration_count++;
    put_record(writer, TRACE_ITERATION, iteration, sizeof *iteration);
}

void trace_writer_allocation(struct trace_writer *writer, const struct trace_allocation *allocation)
{
    if (!is_due(writer, writer->allocations_due > 0))
        return;
    writer->allocations_due--;
    put_record(writer, TRACE_ALLOCATION, allocation, sizeof *allocation);
}

void trace_writer_version(struct trace_writer *writer, const struct trace_version *version)
{
    if (!is_due(writer, !writer->allocations_due && writer->versions_due > 0))
        return;
    writer->versions_due--;
    put_record(writer, TRACE_VERSION_RECORD, version, sizeof *version);
}

void trace_writer_operation(struct trace_writer *writer, const struct trace_operation *operation, const uint32_t *reads,
                            const uint32_t *writes)
{
    size_t read_count = operation->read_count, write_count = operation->write_count;
    if (!is_due(writer, !writer->allocations_due && !writer->versions_due && writer->operations_due > 0 &&
                            read_count + write_count <= TRACE_LISTS_MOST))
        return;
    writer->operations_due--;
    unsigned char *at =
        begin_record(writer, TRACE_OPERATION, sizeof *operation + (read_count + write_count) * sizeof *reads);
    if (!at)
        return;
    memcpy(at, operation, sizeof *operation);
    at += sizeof *operation;
    if (read_count)
        memcpy(at, reads, read_count * sizeof *reads);
    if (write_count)
        memcpy(at + read_count * sizeof *reads, writes, write_count * sizeof *writes);
}

void trace_writer_module(struct trace_writer *writer, const struct trace_module *module)
{
    if (is_due(writer, module->number == writer->module_count + 1)) {
        writer->module_count++;
        put_record(writer, TRACE_MODULE, module, sizeof *module);
    }
}

void trace_writer_stack(struct trace_writer *writer, const struct trace_stack *stack, const struct trace_frame *frames)
{
    if (!is_due(writer, stack->number == writer->stack_count + 1 && stack->frame_count <= TRACE_STACK_MOST))
        return;
    unsigned char *at = begin_record(writer, TRACE_STACK, sizeof *stack + stack->frame_count * sizeof *frames);
    if (!at)
        return;
    writer->stack_count++;
    memcpy(at, stack, sizeof *stack);
    if (stack->frame_count)
        memcpy(at + sizeof *stack, frames, stack->frame_count * sizeof *frames);
}

void trace_writer_thread(struct trace_writer *writer, const struct trace_thread *thread)
{
    if (is_due(writer, thread->number == writer->thread_count + 1)) {
        writer->thread_count++;
        put_record(writer, TRACE_THREAD, thread, sizeof *thread);
    }
}

void trace_writer_event(struct trace_writer *writer, enum trace_kind kind, const void *body, size_t bytes)
{
    if (is_due(writer, is_between_iterations(writer) && kind >= TRACE_HELD && kind < TRACE_KINDS))
        put_record(writer, kind, body, bytes);
}

void trace_writer_records(struct trace_writer *writer, const void *records, size_t bytes)
{
    for (const unsigned char *at = records, *end = at + bytes; at < end;) {
        struct trace_record record;
        memcpy(&record, at, sizeof record);
        writer->iteration_count += record.kind == TRACE_ITERATION;
        writer->name_count += record.kind == TRACE_NAME;
        put_record(writer, (enum trace_kind)record.kind, at + sizeof record, record.bytes - sizeof record);
        at += record.bytes;
    }
}

void trace_writer_flush(struct trace_writer *writer)
{
    end_block(writer);
}

int trace_writer_error(const struct trace_writer *writer)
{
    return writer->error;
}

int trace_writer_close(struct trace_writer *writer)
{
    if (is_due(writer, is_between_iterations(writer))) {
        struct trace_end end = {writer->record_count, writer->iteration_count};
        put_record(writer, TRACE_END, &end, sizeof end);
        end_block(writer);
    }
    if (close(writer->descriptor) != 0)
        fail(writer, errno);
    int error = writer->error;
    munmap(writer, sizeof *writer);
    return error;
}

void trace_writer_abandon(struct trace_writer *writer)
{
    close(writer->descriptor);
    munmap(writer, sizeof *writer);
}

/* Reader */

struct reader {
    const unsigned char *bytes;
    size_t count;
    struct records records;
};

static bool refuse(struct reader *reader, const char *fault)
{
    return records_refuse(&reader->records, fault);
}

static bool take_block(struct reader *reader, const unsigned char *payload, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        struct trace_record record;
        if (reader->records.has_end || bytes - at < sizeof record)
            return refuse(reader, "a record is out of place");
        memcpy(&record, payload + at, sizeof record);
        if (record.bytes < sizeof record || record.bytes % 8 != 0 || record.bytes > bytes - at)
            return refuse(reader, "a record is not well-formed");
        if (!records_take(&reader->records, &record, payload + at + sizeof record))
            return false;
        reader->records.record_count++;
        at += record.bytes;
    }
    return true;
}

static bool take_header(struct reader *reader)
{
    struct trace_header header;
    if (reader->count < sizeof header || memcmp(reader->bytes, TRACE_MAGIC, sizeof header.magic) != 0)
        return refuse(reader, "it is not a trace of Reprise");
    memcpy(&header, reader->bytes, sizeof header);
    if (header.version != TRACE_VERSION)
        return refuse(reader,
                      header.version > TRACE_VERSION ? "a newer Reprise wrote it" : "an older Reprise wrote it");
    return header.header_bytes == sizeof header || refuse(reader, "its header is damaged");
}

static bool take_file(struct reader *reader)
{
    if (!take_header(reader))
        return false;
    uint64_t hash = 0;
    uint32_t number = 0;
    for (size_t at = sizeof(struct trace_header); at < reader->count; number++) {
        struct trace_block block;
        size_t left = reader->count - at;
        if (reader->records.has_end)
            return refuse(reader, "something follows its end");
        if (left < sizeof block)
            break;
        memcpy(&block, reader->bytes + at, sizeof block);
        if (block.number != number || block.bytes % 8 != 0 || block.bytes > TRACE_BLOCK_MOST || block.bytes == 0 ||
            block.head_hash != hash_head(hash, &block))
            return refuse(reader, "it is damaged");
        if (block.bytes > left - sizeof block)
            break;
        const unsigned char *payload = reader->bytes + at + sizeof block;
        hash = hash_block(&block, payload);
        if (hash != block.hash)
            return refuse(reader, "it is damaged");
        if (!take_block(reader, payload, block.bytes))
            return false;
        at += sizeof block + block.bytes;
    }
    return records_finish(&reader->records);
}

bool trace_read_bytes(const void *bytes, size_t count, const char *label, struct trace *out, char *why,
                      size_t why_bytes)
{
    struct reader reader = {.bytes = bytes, .count = count, .records = {.trace = out, .file_bytes = count}};
    *out = (struct trace){0};
    if (records_begin(&reader.records) && take_file(&reader)) {
        records_abandon(&reader.records);
        return true;
    }
    snprintf(why, why_bytes, "%s: %s", label, reader.records.fault);
    records_abandon(&reader.records);
    trace_release(out);
    return false;
}

bool trace_read(const char *path, struct trace *out, char *why, size_t why_bytes)
{
    *out = (struct trace){0};
    struct stat about;
    unsigned char *bytes = NULL;
    size_t count = 0;
    bool is_read = false;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &about) != 0)
        goto out;
    if (!S_ISREG(about.st_mode)) {
        snprintf(why, why_bytes, "%s: %s", path,
                 S_ISDIR(about.st_mode) ? "it is a directory" : "it is not a regular file");
        close(descriptor);
        return false;
    }
    bytes = malloc((size_t)about.st_size + 1);
    for (ssize_t done = 1; bytes && done > 0 && count < (size_t)about.st_size; count += (size_t)done) {
        done = read(descriptor, bytes + count, (size_t)about.st_size - count);
        if (done < 0)
            goto out;
    }
    is_read = bytes != NULL;
out:
    if (is_read)
        is_read = trace_read_bytes(bytes, count, path, out, why, why_bytes);
    else
        snprintf(why, why_bytes, "%s: %s", path, strerror(errno));
    free(bytes);
    if (descriptor >= 0)
        close(descriptor);
    return is_read;
}

void trace_release(struct trace *trace)
{
    for (uint32_t i = 0; i < trace->name_count; i++)
        free(trace->names[i]);
    free(trace->names);
    for (uint32_t i = 0; i < trace->iteration_count; i++)
        records_release_iteration(&trace->iterations[i]);
    free(trace->iterations);
    records_release_events(trace);
    *trace = (struct trace){0};
}
