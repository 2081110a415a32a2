/* links: trace/file.c trace/records.c trace/records_events.c trace/lifetime.c trace/size.c trace/report.c trace/page.c
 * trace/words.c trace/terminal.c trace/model%.c trace/kinds.c trace/symbols.c trace/definitions.c */
#include "trace/lifetime.h"
#include "trace/report.h"
#include "trace/size.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_trace.XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/trace", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails if something was left */
}

static size_t count_files(void)
{
    DIR *listing = opendir(folder);
    size_t count = 0;
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing));)
        count += entry->d_name[0] != '.';
    closedir(listing);
    return count;
}

/* A chain of `layers`: forward keeps one version per layer, backward reads it and frees it. */
static void write_iteration(struct trace_writer *writer, uint32_t layers, uint64_t index)
{
    uint32_t operations = 2 * layers + 1;
    uint32_t forward = trace_writer_name(writer, "_Z12relu_forwardPfPKf"),
             backward = trace_writer_name(writer, "backward");
    uint32_t loss = trace_writer_name(writer, "loss"), clock = trace_writer_name(writer, "reads a clock");
    trace_writer_iteration(writer, &(struct trace_iteration){.index = index,
                                                             .operation_count = operations,
                                                             .allocation_count = layers + 1,
                                                             .version_count = layers + 1,
                                                             .stream_count = 1,
                                                             .fixed_bytes = 1 << 20,
                                                             .demand_peak_bytes = (1 << 20) + (uint64_t)layers * 65536,
                                                             .nanoseconds = operations * 1000,
                                                             .out_bytes_per_ns = 12.5,
                                                             .in_bytes_per_ns = 11});
    for (uint32_t i = 0; i < layers; i++)
        trace_writer_allocation(
            writer,
            &(struct trace_allocation){
                .bytes = 65000, .footprint_bytes = 65536, .kind = TRACE_PLANNED, .born = i, .ends = operations - i});
    trace_writer_allocation(writer, &(struct trace_allocation){.bytes = 4,
                                                               .footprint_bytes = 512,
                                                               .kind = TRACE_GIVEN,
                                                               .ends = TRACE_NONE,
                                                               .reason = clock,
                                                               .is_small = 1});
    for (uint32_t i = 0; i <= layers; i++)
        trace_writer_version(writer, &(struct trace_version){.bytes = i < layers ? 65536 : 512,
                                                             .allocation = i,
                                                             .producer = i,
                                                             .replaces = TRACE_NONE,
                                                             .droppable_from = i < layers ? 0 : TRACE_NONE,
                                                             .is_swappable = i < layers,
                                                             .is_kept = i == layers});
    for (uint32_t i = 0; i < operations; i++) {
        bool is_forward = i < layers, is_loss = i == layers;
        uint32_t reads[2] = {is_forward ? i - 1 : operations - i - 1, 0}, writes[1] = {i};
        trace_writer_operation(writer,
                               &(struct trace_operation){.nanoseconds = 1000 + i,
                                                         .kind = TRACE_LAUNCH,
                                                         .name = is_forward ? forward
                                                                 : is_loss  ? loss
                                                                            : backward,
                                                         .replayable_until = is_forward ? operations : 0,
                                                         .reason = is_loss ? clock : 0,
                                                         .grid = {i + 1, 1, 1},
                                                         .block = {256, 1, 1},
                                                         .read_count = i == 0 ? 0 : 1,
                                                         .write_count = i <= layers},
                               is_loss ? (uint32_t[]){layers - 1} : reads, writes);
    }
}

static int write_trace(uint32_t layers, uint32_t iterations)
{
    struct trace_writer *writer = trace_writer_open(path);
    assert_non_null(writer);
    trace_writer_run(writer, &(struct trace_run){.cap_bytes = 3 << 20,
                                                 .device_bytes = 1u << 30,
                                                 .frame_bytes = 65536,
                                                 .program = trace_writer_name(writer, "python train.py"),
                                                 .device = trace_writer_name(writer, "a device")});
    for (uint32_t i = 0; i < iterations; i++)
        write_iteration(writer, layers, 3 + i);
    return trace_writer_close(writer);
}

static void test_round_trip(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 100, 3000};
    for (size_t s = 0; s < 4; s++) {
        struct trace trace;
        char why[200] = "";
        assert_int_equal(write_trace(sizes[s], 2), 0);
        assert_int_equal(count_files(), 1);
        assert_true(trace_read(path, &trace, why, sizeof why));
        assert_int_equal(trace.run.cap_bytes, 3 << 20);
        assert_string_equal(trace.names[trace.run.program], "python train.py");
        assert_int_equal(trace.iteration_count, 2);
        assert_int_equal(trace.name_count, 7);
        const struct trace_recorded *last = &trace.iterations[1];
        assert_int_equal(last->head.index, 4);
        assert_true(fabs(last->head.out_bytes_per_ns - 12.5) < 1e-12);
        assert_int_equal(last->head.operation_count, 2 * sizes[s] + 1);
        for (uint32_t i = 0; i < last->head.operation_count; i++) {
            const struct trace_operation *operation = &last->operations[i];
            assert_int_equal(operation->nanoseconds, 1000 + i);
            assert_int_equal(operation->grid[0], i + 1);
            if (i <= sizes[s])
                assert_int_equal(trace_writes(last, i)[0], i);
            if (i > 0)
                assert_int_equal(trace_reads(last, i)[0], i < sizes[s]    ? i - 1
                                                          : i == sizes[s] ? i - 1
                                                                          : 2 * sizes[s] - i);
        }
        assert_string_equal(trace.names[last->operations[0].name], "_Z12relu_forwardPfPKf");
        assert_int_equal(last->allocations[sizes[s]].is_small, 1);
        trace_release(&trace);
    }
}

static unsigned char *read_file(size_t *count)
{
    struct stat about;
    int descriptor = open(path, O_RDONLY);
    assert_true(descriptor >= 0 && fstat(descriptor, &about) == 0);
    unsigned char *bytes = malloc((size_t)about.st_size);
    assert_int_equal(read(descriptor, bytes, (size_t)about.st_size), about.st_size);
    close(descriptor);
    *count = (size_t)about.st_size;
    return bytes;
}

static void expect_refused(const unsigned char *bytes, size_t count, const char *reason)
{
    struct trace trace;
    char why[200] = "";
    unsigned char *copy = malloc(count ? count : 1); /* exact, for the sanitizer */
    memcpy(copy, bytes, count);
    assert_false(trace_read_bytes(copy, count, "FILE", &trace, why, sizeof why));
    assert_null(trace.names);
    assert_int_equal(strncmp(why, "FILE: ", 6), 0);
    assert_null(strchr(why, '\n'));
    if (reason)
        assert_non_null(strstr(why, reason));
    free(copy);
}

static void test_cut_off(void **state)
{
    (void)state;
    size_t count;
    assert_int_equal(write_trace(40, 2), 0);
    unsigned char *bytes = read_file(&count);
    uint32_t last_count = 0;
    for (size_t length = 0; length < count; length++) {
        struct trace trace;
        char why[200];
        unsigned char *copy = malloc(length ? length : 1);
        memcpy(copy, bytes, length);
        if (length < sizeof(struct trace_header)) {
            expect_refused(copy, length, "not a trace");
        } else {
            assert_true(trace_read_bytes(copy, length, "FILE", &trace, why, sizeof why));
            assert_true(trace.is_cut);
            assert_true(trace.iteration_count >= last_count && trace.iteration_count <= 2);
            last_count = trace.iteration_count;
            trace_release(&trace);
        }
        free(copy);
    }
    free(bytes);
}

static void test_every_flipped_bit_shows(void **state)
{
    (void)state;
    size_t count;
    assert_int_equal(write_trace(4, 1), 0);
    unsigned char *bytes = read_file(&count);
    for (size_t at = 0; at < count; at++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1 << bit);
            expect_refused(bytes, count, NULL);
            bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
    unsigned char *longer = calloc(1, count + 64);
    memcpy(longer, bytes, count);
    expect_refused(longer, count + 8, NULL);
    expect_refused(longer, count + 64, NULL);
    free(longer);
    free(bytes);
}

static void test_foreign_and_newer(void **state)
{
    (void)state;
    struct trace trace;
    char why[200];
    size_t count;
    assert_int_equal(write_trace(2, 1), 0);
    unsigned char *bytes = read_file(&count);
    expect_refused((const unsigned char *)"{\"json\": 1, \"and\": [2, 3]}", 26, "not a trace");
    bytes[8] = TRACE_VERSION + 1;
    expect_refused(bytes, count, "newer");
    bytes[8] = 0;
    expect_refused(bytes, count, "older");
    free(bytes);
    assert_false(trace_read("/no/such/file", &trace, why, sizeof why));
    assert_string_equal(why, "/no/such/file: No such file or directory");
    assert_false(trace_read("/tmp", &trace, why, sizeof why));
    trace_release(&trace);
}

/* Blocks whose hashes are right but whose records lie: what a hash cannot catch. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static void seal(unsigned char *bytes, size_t count)
{
    uint64_t hash = 0;
    struct trace_block block;
    for (size_t at = sizeof(struct trace_header); at < count; at += sizeof block + block.bytes) {
        memcpy(&block, bytes + at, sizeof block);
        hash = mix(hash, (uint64_t)block.number << 32 | block.bytes);
        block.head_hash = hash;
        for (uint32_t i = 0; i < block.bytes; i += 8) {
            uint64_t word;
            memcpy(&word, bytes + at + sizeof block + i, 8);
            hash = mix(hash, word);
        }
        block.hash = hash = mix(hash, 0);
        memcpy(bytes + at, &block, sizeof block);
    }
}

static void test_lying_records(void **state)
{
    (void)state;
    size_t count, refused = 0, accepted = 0;
    uint64_t random = 11;
    assert_int_equal(write_trace(6, 2), 0);
    unsigned char *bytes = read_file(&count), *copy = malloc(count);
    memcpy(copy, bytes, count);
    seal(copy, count);
    assert_memory_equal(copy, bytes, count);
    for (int round = 0; round < 20000; round++) {
        struct trace trace;
        char why[200];
        memcpy(copy, bytes, count);
        for (int flips = 0; flips <= round % 3; flips++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t at = 32 + (random >> 20) % (count - 32);
            copy[at] = (unsigned char)(random >> 60 & 1 ? 0xff : random >> 50);
        }
        seal(copy, count);
        if (trace_read_bytes(copy, count, "FILE", &trace, why, sizeof why)) {
            struct lifetime lifetime; /* what was accepted can be worked with */
            FILE *sink = fopen("/dev/null", "w");
            accepted++;
            for (uint32_t i = 0; i < trace.iteration_count; i++) {
                assert_true(lifetime_make(&trace.iterations[i], &lifetime));
                lifetime_release(&lifetime);
            }
            assert_true(report_write(sink, &trace));
            fclose(sink);
            trace_release(&trace);
        } else {
            refused++;
        }
    }
    assert_true(refused > 1000 && accepted > 1000);
    free(bytes);
    free(copy);
}

static void test_writer_refuses_disorder(void **state)
{
    (void)state;
    unlink(path);
    struct trace_writer *writer = trace_writer_open(path);
    trace_writer_iteration(writer, &(struct trace_iteration){.index = 0}); /* before RUN */
    assert_int_equal(trace_writer_close(writer), EINVAL);
    writer = trace_writer_open(path);
    trace_writer_run(writer, &(struct trace_run){.cap_bytes = 0});
    trace_writer_iteration(writer, &(struct trace_iteration){.operation_count = 1, .stream_count = 1});
    assert_int_equal(trace_writer_error(writer), 0);
    assert_int_equal(trace_writer_close(writer), EINVAL); /* the operation is missing */
    writer = trace_writer_open(path);
    trace_writer_run(writer, &(struct trace_run){.cap_bytes = 0});
    trace_writer_version(writer, &(struct trace_version){.bytes = 0});
    assert_int_equal(trace_writer_close(writer), EINVAL);
    writer = trace_writer_open(path);
    trace_writer_event(writer, TRACE_FREED, &(struct trace_freed){.id = 1}, sizeof(struct trace_freed));
    assert_int_equal(trace_writer_error(writer), EINVAL);
    trace_writer_abandon(writer);
    assert_null(trace_writer_open("/no/such/folder/trace"));
    assert_int_equal(errno, ENOENT);
}

static void test_full_disk(void **state)
{
    (void)state;
    struct rlimit old, limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 100000;
    setrlimit(RLIMIT_FSIZE, &limit);
    int error = write_trace(2000, 1);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(error, EFBIG);
    struct trace trace;
    char why[200];
    assert_true(trace_read(path, &trace, why, sizeof why));
    assert_true(trace.is_cut && trace.iteration_count == 0);
    trace_release(&trace);
}

static void test_file_is_read_while_it_is_written(void **state)
{
    (void)state;
    struct trace trace;
    char why[200];
    struct trace_writer *writer = trace_writer_open(path);
    trace_writer_run(writer, &(struct trace_run){.cap_bytes = 1});
    for (uint64_t i = 0; i < 5; i++) {
        struct trace_held held = {.event = {.sequence = i, .nanoseconds = 10 * i}, .id = i + 1, .bytes = 7};
        trace_writer_event(writer, TRACE_HELD, &held, sizeof held);
        assert_true(trace_read(path, &trace, why, sizeof why));
        assert_true(trace.is_cut);
        assert_int_equal(trace.life_count, i);
        trace_release(&trace);
        trace_writer_flush(writer);
    }
    assert_int_equal(trace_writer_close(writer), 0);
    assert_true(trace_read(path, &trace, why, sizeof why));
    assert_false(trace.is_cut);
    assert_int_equal(trace.life_count, 5);
    assert_int_equal(trace.end_at, 40);
    trace_release(&trace);
}

static void test_names(void **state)
{
    (void)state;
    struct trace trace;
    char why[200], name[6000];
    struct trace_writer *writer = trace_writer_open(path);
    assert_int_equal(trace_writer_name(writer, NULL), 0);
    assert_int_equal(trace_writer_name(writer, ""), 0);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 5000; i++) {
            snprintf(name, sizeof name, "kernel_%u", i);
            assert_int_equal(trace_writer_name(writer, name), i + 1);
        }
    }
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    uint32_t cut = trace_writer_name(writer, name);
    trace_writer_run(writer, &(struct trace_run){.program = cut});
    assert_int_equal(trace_writer_close(writer), 0);
    assert_true(trace_read(path, &trace, why, sizeof why));
    assert_int_equal(strlen(trace.names[cut]), TRACE_NAME_MOST);
    assert_string_equal(trace.names[4321], "kernel_4320");
    trace_release(&trace);
}

static void test_lifetimes(void **state)
{
    (void)state;
    struct trace trace;
    struct lifetime lifetime;
    char why[200];
    assert_int_equal(write_trace(10, 1), 0);
    assert_true(trace_read(path, &trace, why, sizeof why));
    const struct trace_recorded *recorded = &trace.iterations[0];
    assert_true(lifetime_make(recorded, &lifetime));
    assert_int_equal(lifetime.peak_position, 9);
    for (uint32_t i = 0; i < 21; i++) /* layer l is held from l to 20 - l */
        assert_int_equal(lifetime.demand[i], (1 << 20) + (i < 10 ? i + 1 : i < 11 ? 10 : 21 - i) * 65536u);
    assert_int_equal(lifetime.last_read[0], 20);
    assert_int_equal(lifetime.last_read[9], 11);
    assert_int_equal(lifetime.last_read[10], TRACE_NONE);
    assert_int_equal(lifetime.ends[0], 21);
    assert_true(lifetime_holds(recorded, &lifetime, 4, 4));
    assert_false(lifetime_holds(recorded, &lifetime, 4, 3));
    assert_false(lifetime_holds(recorded, &lifetime, 4, 17));
    lifetime_release(&lifetime);
    trace_release(&trace);
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"1", 1},         {"512B", 512},          {"7GiB", 7ull << 30},       {"1.5K", 1536},
                {"2MB", 2000000}, {"0.5TiB", 1ull << 39}, {"1.0000000000001KB", 1000}};
    static const char *const bad[] = {"",
                                      "0",
                                      "GiB",
                                      "-1",
                                      "1e9",
                                      "7 GiB",
                                      "7gib",
                                      "1.",
                                      ".5GB",
                                      "0.0",
                                      "1..5",
                                      "1.5.5G",
                                      "99999999999999999999",
                                      "9999999999G"};
    uint64_t bytes;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(size_parse(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(size_parse(bad[i], &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_every_flipped_bit_shows),
        cmocka_unit_test(test_foreign_and_newer),
        cmocka_unit_test(test_lying_records),
        cmocka_unit_test(test_writer_refuses_disorder),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_file_is_read_while_it_is_written),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_lifetimes),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
