/* links: trace/file.c trace/records.c trace/records_events.c trace/report.c trace/page.c trace/words.c trace/terminal.c
 * trace/model%.c trace/kinds.c trace/symbols.c trace/definitions.c trace/output.c trace/html_data.c */
/* The model of a trace and the page of text: sums, kinds, sizes of the page, names that want to harm. */
#include "trace/html_data.h"
#include "trace/output.h"
#include "trace/report.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { LAYERS = 12, ITERATIONS = 3, BYTES = 1 << 16, WEIGHT = 1 << 12 };

#define HOSTILE "</script><img src=x onerror=alert(1)>\033[31m\xff\xc2\x9b"

static char folder[] = "/tmp/test_report.XXXXXX";
static char path[64];
static const char *kernel_name = "_Z12relu_forwardPfPKf";

static struct {
    struct trace_writer *writer;
    uint64_t sequence, now, id, number;
    uint32_t stack;
} run;

static struct trace_event event(void)
{
    run.now += 1000;
    return (struct trace_event){run.sequence++, run.now, 1, run.stack};
}

static uint64_t hold(uint64_t bytes, uint32_t source)
{
    struct trace_held held = {.event = event(),
                              .id = ++run.id,
                              .address = run.id << 20,
                              .bytes = bytes,
                              .footprint_bytes = bytes,
                              .source = source};
    trace_writer_event(run.writer, TRACE_HELD, &held, sizeof held);
    return held.id;
}

static void let_go(uint64_t id)
{
    struct trace_freed freed = {event(), id};
    trace_writer_event(run.writer, TRACE_FREED, &freed, sizeof freed);
}

static uint64_t operate(const char *name, enum trace_operation_kind kind, const struct trace_touch *touches,
                        uint32_t count)
{
    struct {
        struct trace_ran ran;
        struct trace_touch touches[8];
    } body = {
        .ran = {
            .number = ++run.number, .kind = kind, .name = trace_writer_name(run.writer, name), .touch_count = count}};
    body.ran.event = event();
    memcpy(body.touches, touches, count * sizeof *touches);
    trace_writer_event(run.writer, TRACE_RAN, &body, sizeof body.ran + count * sizeof *touches);
    return body.ran.number;
}

enum { READ = TRACE_MAY_READ, WRITE = TRACE_MAY_WRITE, UPDATE = READ | WRITE };

/* Forward makes an activation per layer, backward reads it and makes a gradient, the optimiser updates weight and
 * state. */
static void iterate(const uint64_t *weights, const uint64_t *states, uint64_t index)
{
    uint64_t activations[LAYERS + 1], first = run.number + 1;
    activations[0] = hold(BYTES, TRACE_ARENA);
    operate("copy", TRACE_COPY_IN, &(struct trace_touch){activations[0], WRITE | TRACE_EXACT, 0}, 1);
    for (int i = 0; i < LAYERS; i++) {
        activations[i + 1] = hold(BYTES, TRACE_ARENA);
        uint64_t workspace = hold(WEIGHT, TRACE_SLAB);
        operate(kernel_name, TRACE_LAUNCH,
                (struct trace_touch[]){{weights[i], READ, 0},
                                       {activations[i], READ, 0},
                                       {activations[i + 1], WRITE, 0},
                                       {workspace, UPDATE, 0}},
                4);
        let_go(workspace);
    }
    for (int i = LAYERS; i-- > 0;) {
        uint64_t gradient = hold(WEIGHT, TRACE_SLAB);
        operate("backward", TRACE_LAUNCH,
                (struct trace_touch[]){{activations[i + 1], READ, 0}, {activations[i], READ, 0}, {gradient, WRITE, 0}},
                3);
        operate("sgd", TRACE_LAUNCH,
                (struct trace_touch[]){{weights[i], UPDATE, 0}, {states[i], UPDATE, 0}, {gradient, READ, 0}}, 3);
        let_go(gradient);
        let_go(activations[i + 1]);
    }
    let_go(activations[0]);
    struct trace_boundary boundary = {event(), index, first, run.number + 1, TRACE_RECORDING, 0};
    trace_writer_event(run.writer, TRACE_BOUNDARY, &boundary, sizeof boundary);
}

static void write_run(bool is_cut)
{
    uint64_t weights[LAYERS], states[LAYERS];
    memset(&run, 0, sizeof run);
    run.writer = trace_writer_open(path);
    assert_non_null(run.writer);
    trace_writer_run(run.writer, &(struct trace_run){.device_bytes = 1u << 30,
                                                     .frame_bytes = BYTES,
                                                     .program = trace_writer_name(run.writer, "python train.py"),
                                                     .rank = TRACE_NONE});
    struct trace_frame frames[2] = {{.kind = TRACE_PYTHON,
                                     .function = trace_writer_name(run.writer, "forward"),
                                     .file = trace_writer_name(run.writer, "model.py"),
                                     .line = 31},
                                    {.kind = TRACE_PYTHON,
                                     .function = trace_writer_name(run.writer, "main"),
                                     .file = trace_writer_name(run.writer, "train.py"),
                                     .line = 7}};
    trace_writer_stack(run.writer, &(struct trace_stack){.number = 1, .frame_count = 2}, frames);
    trace_writer_thread(run.writer, &(struct trace_thread){.number = 1, .id = 99});
    run.stack = 1;
    for (int i = 0; i < LAYERS; i++) {
        weights[i] = hold(WEIGHT, TRACE_ARENA);
        states[i] = hold(WEIGHT, TRACE_ARENA);
        operate("copy", TRACE_COPY_IN, &(struct trace_touch){weights[i], WRITE | TRACE_EXACT, 0}, 1);
        operate("set", TRACE_SET, &(struct trace_touch){states[i], WRITE | TRACE_EXACT, 0}, 1);
    }
    hold(3 * BYTES, TRACE_OUTSIDE);
    for (uint64_t i = 0; i < ITERATIONS; i++)
        iterate(weights, states, i);
    if (is_cut) {
        trace_writer_flush(run.writer);
        trace_writer_abandon(run.writer);
    } else {
        assert_int_equal(trace_writer_close(run.writer), 0);
    }
}

static void read_model(struct trace *trace, struct model *model)
{
    char why[200];
    assert_true(trace_read(path, trace, why, sizeof why));
    assert_true(model_make(trace, model));
}

static void release(struct trace *trace, struct model *model)
{
    model_release(model);
    trace_release(trace);
}

/* The sums of the header, at every position. */
static void expect_sums(const struct model_view *view)
{
    uint64_t kinds = 0, verdicts = 0, sites = 0, most = 0;
    for (uint32_t p = 0; p < view->position_count; p++) {
        uint64_t held = 0;
        for (uint32_t i = 0; i < view->span_count; i++)
            held += model_is_at(&view->spans[i], p) ? view->spans[i].bytes : 0;
        assert_int_equal(held, view->held[p]);
        most = held > most ? held : most;
        assert_true(view->clock_ns[p] <= view->clock_ns[p + 1]);
    }
    assert_int_equal(most, view->peak_bytes);
    for (int i = 0; i < KIND_COUNT; i++)
        kinds += view->kind_bytes[i];
    for (int i = 0; i < MODEL_VERDICTS; i++)
        verdicts += view->verdict_bytes[i];
    for (uint32_t i = 0; i < view->site_count; i++)
        sites += view->sites[i].peak_bytes;
    assert_int_equal(kinds, most);
    assert_int_equal(verdicts, most);
    assert_int_equal(sites, most);
}

static void test_sums_and_kinds(void **state)
{
    (void)state;
    struct trace trace;
    struct model model;
    write_run(false);
    read_model(&trace, &model);
    expect_sums(&model.run);
    const uint64_t *kinds = model.run.kind_bytes;
    assert_int_equal(model.run.peak_bytes, (2 * LAYERS + 1) * WEIGHT + (LAYERS + 4) * (uint64_t)BYTES);
    assert_int_equal(kinds[KIND_WEIGHTS], LAYERS * WEIGHT);
    assert_int_equal(kinds[KIND_STATE], LAYERS * WEIGHT);
    assert_int_equal(kinds[KIND_ACTIVATION], LAYERS * BYTES);
    assert_int_equal(kinds[KIND_INPUT], BYTES);
    assert_int_equal(kinds[KIND_OUTSIDE], 3 * BYTES);
    uint64_t gradients = 0;
    for (uint32_t i = 0; i < model.run.span_count; i++)
        gradients += model.run.spans[i].kind == KIND_GRADIENT;
    assert_int_equal(gradients, LAYERS * ITERATIONS);
    assert_int_equal(model.iteration_count, ITERATIONS);
    assert_int_equal(model.iterations[1].operations, 1 + 3 * LAYERS);
    assert_string_equal(model.strings[model.stacks[1].place], "model.py:31");
    release(&trace, &model);
}

static char *page_of(const struct model *model, const struct terminal *terminal)
{
    char *page = NULL;
    size_t bytes;
    FILE *out = open_memstream(&page, &bytes);
    assert_true(report_page(out, model, terminal));
    fclose(out);
    return page;
}

static void expect_fit(const char *page, unsigned columns, unsigned rows)
{
    unsigned lines = 0;
    for (const char *at = page; *at; at = strchr(at, '\n') + 1, lines++) {
        size_t width = strcspn(at, "\n");
        assert_true(width <= columns);
        for (size_t i = 0; i < width; i++)
            assert_true((unsigned char)at[i] >= 0x20 && (unsigned char)at[i] < 0x7f);
    }
    assert_true(lines < rows);
}

static void test_page_fits(void **state)
{
    (void)state;
    struct trace trace;
    struct model model;
    write_run(false);
    read_model(&trace, &model);
    for (unsigned rows = 24; rows <= 60; rows++)
        for (unsigned columns = 80; columns <= 160; columns += 40) {
            char *page = page_of(&model, &(struct terminal){.columns = columns, .rows = rows});
            expect_fit(page, columns, rows);
            assert_non_null(strstr(page, "activations"));
            assert_non_null(strstr(page, "relu_forward"));
            assert_non_null(strstr(page, "model.py:31"));
            assert_non_null(strstr(page, "recording"));
            free(page);
        }
    char *page = page_of(&model, &(struct terminal){.columns = 80, .rows = 50, .has_colour = true});
    assert_non_null(strstr(page, "\033["));
    free(page);
    release(&trace, &model);
}

/* Names come from other people's programs: a terminal gets nothing to act upon. */
static void test_hostile_names(void **state)
{
    (void)state;
    struct trace trace;
    struct model model;
    kernel_name = HOSTILE;
    write_run(false);
    kernel_name = "_Z12relu_forwardPfPKf";
    read_model(&trace, &model);
    for (int has_unicode = 0; has_unicode < 2; has_unicode++) {
        char *page = page_of(&model, &(struct terminal){.columns = 120, .rows = 50, .has_unicode = has_unicode});
        assert_null(strchr(page, '\033'));
        assert_null(strchr(page, '\xff'));
        assert_null(strstr(page, "\xc2\x9b"));
        assert_non_null(strstr(page, "</script>"));
        free(page);
    }
    char *json = NULL;
    size_t bytes;
    FILE *out = open_memstream(&json, &bytes);
    html_string(out, HOSTILE);
    fclose(out);
    assert_null(strchr(json, '<'));
    assert_null(strchr(json, '\033'));
    assert_null(strchr(json, '\xff'));
    assert_non_null(strstr(json, "\\u003c/script\\u003e"));
    free(json);
    release(&trace, &model);
}

static void test_cut_and_empty(void **state)
{
    (void)state;
    struct trace trace;
    struct model model;
    write_run(true);
    read_model(&trace, &model);
    char *page = page_of(&model, &(struct terminal){.columns = 80, .rows = 50});
    assert_non_null(strstr(page, "was cut off"));
    expect_fit(page, 80, 50);
    free(page);
    release(&trace, &model);
    run.writer = trace_writer_open(path);
    trace_writer_run(run.writer, &(struct trace_run){.device_bytes = 1});
    assert_int_equal(trace_writer_close(run.writer), 0);
    read_model(&trace, &model);
    page = page_of(&model, &(struct terminal){.columns = 80, .rows = 50});
    assert_non_null(strstr(page, "Nothing was recorded"));
    free(page);
    release(&trace, &model);
}

static void test_longest(void **state)
{
    (void)state;
    struct trace trace;
    struct model model;
    uint32_t all[512], some[7];
    write_run(false);
    read_model(&trace, &model);
    uint32_t count = model_longest(&model.run, KIND_COUNT, all, 512);
    assert_int_equal(count, model.run.span_count);
    for (uint32_t i = 1; i < count; i++)
        assert_true(model_byte_seconds(&model.run, &model.run.spans[all[i - 1]]) >=
                    model_byte_seconds(&model.run, &model.run.spans[all[i]]));
    assert_int_equal(model_longest(&model.run, KIND_COUNT, some, 7), 7);
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(some[i], all[i]);
    release(&trace, &model);
}

static void test_plain_names(void **state)
{
    (void)state;
    char out[20];
    report_plain_name("_Z12relu_forwardPfPKf", out, sizeof out);
    assert_string_equal(out, "relu_forward");
    report_plain_name("_ZN2at6native3addEv", out, sizeof out);
    assert_string_equal(out, "at::native::add");
    report_plain_name("_Z13matmul_kernel6matmul", out, sizeof out);
    assert_string_equal(out, "matmul_kernel");
    report_plain_name("triton_poi_0", out, sizeof out);
    assert_string_equal(out, "triton_poi_0");
    report_plain_name("_Z99short", out, sizeof out);
    assert_string_equal(out, "_Z99short");
    report_plain_name("_Z30a_name_that_is_too_long_for_itv", out, sizeof out);
    assert_string_equal(out, "a_name_that_is_too_");
}

static void put_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void expect_file(const char *name, const char *text)
{
    char got[64] = "";
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    size_t count = fread(got, 1, sizeof got - 1, file);
    got[count] = '\0';
    fclose(file);
    assert_string_equal(got, text);
}

static void test_outputs(void **state)
{
    (void)state;
    struct output output;
    char why[200], target[128], link[128];
    struct stat about;
    snprintf(target, sizeof target, "%s/out", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    assert_true(output_begin(&output, target, why, sizeof why)); /* a new file */
    put_file(output.part, "one");
    assert_int_not_equal(access(target, F_OK), 0); /* not before it is whole */
    assert_true(output_end(&output, why, sizeof why));
    expect_file(target, "one");
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink(target, link), 0);
    assert_true(output_begin(&output, link, why, sizeof why)); /* through a link, which stays one */
    put_file(output.part, "two");
    assert_true(output_end(&output, why, sizeof why));
    expect_file(target, "two");
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(stat(target, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    assert_true(output_begin(&output, target, why, sizeof why)); /* given up: what was there stays */
    put_file(output.part, "three");
    output_abandon(&output);
    expect_file(target, "two");
    assert_int_not_equal(access(output.part, F_OK), 0);
    assert_false(output_begin(&output, folder, why, sizeof why));
    assert_non_null(strstr(why, "not a regular file"));
    assert_false(output_begin(&output, "/dev/null", why, sizeof why));
    assert_non_null(strstr(why, "not a regular file"));
    assert_false(output_begin(&output, "/no/such/folder/out", why, sizeof why));
    unlink(link);
    unlink(target);
}

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
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_and_kinds), cmocka_unit_test(test_page_fits), cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_cut_and_empty),  cmocka_unit_test(test_longest),   cmocka_unit_test(test_plain_names),
        cmocka_unit_test(test_outputs),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
