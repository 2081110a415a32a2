/* links: trace/file.c trace/records.c trace/records_events.c */
/* The verbs of the command line, as a user calls them: $BUILD/reprise-trace (BUILD: build if unset). */
#include "trace/file.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_verbs.XXXXXX";
static char chain[64], linked[64], empty[64], svg[64], answer[65536];

/* A chain of `layers` equal layers: forward makes one version each, backward reads it and the one below. */
static void write_chain(struct trace_writer *writer, uint32_t layers, uint64_t bytes, double bytes_per_ns)
{
    uint32_t operations = 2 * layers;
    trace_writer_iteration(writer, &(struct trace_iteration){.operation_count = operations,
                                                             .allocation_count = layers,
                                                             .version_count = layers,
                                                             .stream_count = 1,
                                                             .fixed_bytes = bytes,
                                                             .demand_peak_bytes = (layers + 1) * bytes,
                                                             .nanoseconds = operations * 1000,
                                                             .out_bytes_per_ns = bytes_per_ns,
                                                             .in_bytes_per_ns = bytes_per_ns});
    for (uint32_t i = 0; i < layers; i++)
        trace_writer_allocation(
            writer,
            &(struct trace_allocation){
                .bytes = bytes, .footprint_bytes = bytes, .kind = TRACE_PLANNED, .born = i, .ends = operations - i});
    for (uint32_t i = 0; i < layers; i++)
        trace_writer_version(
            writer, &(struct trace_version){
                        .bytes = bytes, .allocation = i, .producer = i, .replaces = TRACE_NONE, .is_swappable = 1});
    for (uint32_t i = 0; i < operations; i++) {
        bool is_forward = i < layers;
        uint32_t own = is_forward ? i : operations - 1 - i;
        uint32_t reads[2] = {is_forward ? own - 1 : own, own - 1}, writes[1] = {own};
        uint32_t read_count = is_forward ? own > 0 : 1 + (own > 0);
        trace_writer_operation(
            writer,
            &(struct trace_operation){.nanoseconds = 1000,
                                      .name = trace_writer_name(writer, is_forward ? "forward" : "backward"),
                                      .replayable_until = is_forward ? operations : 0,
                                      .read_count = read_count,
                                      .write_count = is_forward},
            reads, writes);
    }
}

static int write_files(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(chain, sizeof chain, "%s/chain", folder);
    snprintf(linked, sizeof linked, "%s/linked", folder);
    snprintf(empty, sizeof empty, "%s/empty", folder);
    snprintf(svg, sizeof svg, "%s/curve.svg", folder);
    struct trace_writer *writer = trace_writer_open(chain);
    trace_writer_run(writer, &(struct trace_run){.device_bytes = 1u << 30, .frame_bytes = 1 << 20});
    write_chain(writer, 64, 1 << 20, 0);
    if (trace_writer_close(writer) != 0)
        return -1;
    writer = trace_writer_open(linked);
    trace_writer_run(writer, &(struct trace_run){.device_bytes = 1u << 30, .frame_bytes = 1 << 20});
    write_chain(writer, 64, 1 << 20, 1e6); /* a link on which a copy costs next to nothing */
    if (trace_writer_close(writer) != 0)
        return -1;
    writer = trace_writer_open(empty);
    trace_writer_run(writer, &(struct trace_run){.device_bytes = 1u << 30});
    return trace_writer_close(writer);
}

static int remove_files(void **state)
{
    (void)state;
    unlink(chain);
    unlink(linked);
    unlink(empty);
    unlink(svg);
    return rmdir(folder);
}

/* Runs the command with these arguments; everything it says is in `answer`. Returns its exit status. */
static int run(const char *format, ...)
{
    char arguments[512], command[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(arguments, sizeof arguments, format, values);
    va_end(values);
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    snprintf(command, sizeof command, "%s/reprise-trace %s 2>&1", build, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t count = fread(answer, 1, sizeof answer - 1, pipe);
    answer[count] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* One line on stderr that holds `part`, exit status 2. */
static void expect_refusal(const char *part, const char *arguments)
{
    assert_int_equal(run("%s", arguments), 2);
    assert_non_null(strstr(answer, part));
    assert_int_equal(strncmp(answer, "reprise: ", 9), 0);
    assert_ptr_equal(strchr(answer, '\n'), answer + strlen(answer) - 1);
}

static void test_bad_usage(void **state)
{
    char arguments[256];
    (void)state;
    expect_refusal("usage", "");
    expect_refusal("frob", "frob");
    expect_refusal("which file", "report");
    expect_refusal("/no/such: No such file", "report /no/such");
    expect_refusal("not a trace", "report Makefile");
    expect_refusal("second one", "report a b");
    expect_refusal("--html needs a value", "report a --html");
    expect_refusal("--html a is the recording itself", "report a --html a");
    expect_refusal("--html and --sqlite are one file", "report a --html b --sqlite b");
    expect_refusal("no option --pdf", "report a --pdf b");
    expect_refusal("no option --frob", "curve a --frob b");
    expect_refusal("--svg needs a value", "curve a --svg");
    snprintf(arguments, sizeof arguments, "plan %s", chain);
    expect_refusal("--cap SIZE is needed", arguments);
    snprintf(arguments, sizeof arguments, "plan %s --cap 7gigs", chain);
    expect_refusal("7gigs is not a size", arguments);
    snprintf(arguments, sizeof arguments, "plan %s --cap 1GiB", empty);
    expect_refusal("no iteration", arguments);
    snprintf(arguments, sizeof arguments, "curve %s --svg /no/such/folder/x.svg", chain);
    assert_int_equal(run("%s", arguments), 2);
    assert_non_null(strstr(answer, "could not be written"));
}

static void test_report(void **state)
{
    (void)state;
    assert_int_equal(run("report %s", chain), 0);
    assert_non_null(strstr(answer, "operation 63 of 128"));
    assert_non_null(strstr(answer, "Recomputable: 64.0 MiB"));
    assert_int_equal(run("report %s --html /dev/null", chain), 2);
    assert_non_null(strstr(answer, "report: /dev/null: it is not a regular file"));
    assert_int_equal(run("report %s --sqlite /no/such/folder/x", chain), 2);
    assert_non_null(strstr(answer, "report: /no/such/folder/x: No such file"));
    assert_int_equal(run("report %s", empty), 0);
    assert_non_null(strstr(answer, "Nothing was recorded"));
}

static double ratio_of_answer(void)
{
    const char *at = strstr(answer, "= ");
    assert_non_null(at);
    return strtod(at + 2, NULL);
}

static void test_plan(void **state)
{
    (void)state;
    assert_int_equal(run("plan %s --cap 100MiB", chain), 0);
    assert_true(ratio_of_answer() < 1.00001);
    assert_non_null(strstr(answer, "Replays     0 of 128"));
    assert_int_equal(run("plan %s --cap 20MiB", chain), 0);
    double ratio = ratio_of_answer();
    assert_true(ratio > 1.1 && ratio <= 1.5); /* one more forward pass at most, and more than none */
    assert_null(strstr(answer, "Replays     0 of"));
    assert_non_null(strstr(answer, "(without dropping 65.0 MiB;"));
    assert_int_equal(run("plan %s --cap 2MiB", chain), 1);
    assert_non_null(strstr(answer, "no plan is possible under this cap: operation "));
    assert_non_null(strstr(answer, "; the smallest that would do is"));
}

/* Which operation's results go, what that saves and costs, and whether it is worth it. */
static void test_plan_explains(void **state)
{
    (void)state;
    assert_int_equal(run("plan %s --cap 20MiB", chain), 0);
    assert_non_null(strstr(answer, " forward\n"));
    assert_null(strstr(answer, " backward\n"));
    assert_non_null(strstr(answer, "no plan without swapping is below"));
    assert_non_null(strstr(answer, "Worth it    if memory stops the job: 69 % less"));
    assert_null(strstr(answer, "copies to the host"));
    assert_int_equal(run("plan %s --cap 100MiB", chain), 0);
    assert_non_null(strstr(answer, "Worth it    not needed: the program holds at most 65.0 MiB"));
    assert_int_equal(run("plan %s --cap 20MiB", linked), 0);
    assert_non_null(strstr(answer, "copies to the host cost less"));
}

/* A recording that was cut off says where; what came whole before is planned. */
static void test_cut(void **state)
{
    (void)state;
    char cut[64], where[64];
    snprintf(cut, sizeof cut, "%s/cut", folder);
    struct trace_writer *writer = trace_writer_open(cut);
    trace_writer_run(writer, &(struct trace_run){.device_bytes = 1u << 30, .frame_bytes = 1 << 20});
    write_chain(writer, 64, 1 << 20, 0);
    trace_writer_flush(writer);
    trace_writer_abandon(writer);
    struct stat about;
    assert_int_equal(stat(cut, &about), 0);
    for (int part = 0; part < 2; part++) {
        snprintf(where, sizeof where, "cut: cut off at byte %lld", (long long)about.st_size / (1 + part));
        assert_int_equal(run("plan %s --cap=20MiB", cut), part ? 2 : 0);
        assert_non_null(strstr(answer, where));
        assert_int_equal(truncate(cut, about.st_size / 2), 0);
    }
    unlink(cut);
}

/* The lowest cap that the plan speaks of has a plan, and the curve has none below it. */
static void test_limits(void **state)
{
    (void)state;
    assert_int_equal(run("plan %s --cap 20MiB", chain), 0);
    const char *below = strstr(answer, "            below "), *second = below ? strstr(below + 18, " below ") : NULL;
    assert_non_null(second);
    double loss = strtod(below + 18, NULL), least = strtod(second + 7, NULL);
    assert_true(least > 2 && least < loss && loss < 20);
    assert_int_equal(run("plan %s --cap %.1fMiB", chain, least + 0.1), 0);
    assert_true(ratio_of_answer() > 2);
    assert_int_equal(run("plan %s --cap %.1fMiB", chain, loss + 0.1), 0);
    assert_true(ratio_of_answer() <= 2.1);
    assert_int_equal(run("curve %s", chain), 0);
    for (char *line = strtok(answer, "\n"); line; line = strtok(NULL, "\n")) {
        const char *percent = strstr(line, "% ");
        if (percent && strtod(percent + 1, NULL) >= 1)
            assert_true(strtod(line, NULL) > least - 0.1);
    }
}

/* The text form of a problem is read where a trace is. */
static void test_text(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "%s/text", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "reprise-problem 1\nop 10 name=make\nout 100\nop 10 name=other : 0\nout 100\n"
                  "op 10\nout 100\nop 10 : 0 2\nop 10 : 1\nend\n");
    fclose(file);
    assert_int_equal(run("plan %s --cap 200", path), 0);
    assert_non_null(strstr(answer, "  other\n"));
    assert_int_equal(run("curve %s", path), 0);
    assert_non_null(strstr(answer, "memory cap, B"));
    assert_int_equal(run("plan - --cap 200 <%s", path), 0);
    assert_non_null(strstr(answer, "  other\n"));
    assert_int_equal(run("plan /dev/stdin --cap=200 <<END\n$(cat %s)\nEND\n", path), 0);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "reprise-problem 1\nop 10\nout 100\nop 10 : 7\nend\n");
    fclose(file);
    char part[128], arguments[128];
    snprintf(part, sizeof part, "%s:4: no such version: 7", path);
    snprintf(arguments, sizeof arguments, "plan %s --cap 200", path);
    expect_refusal(part, arguments);
    snprintf(arguments, sizeof arguments, "curve %s", path);
    expect_refusal(part, arguments);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "reprise-problem 1\nop 10\nout 100\n");
    fclose(file);
    snprintf(part, sizeof part, "%s:3: cut off", path);
    expect_refusal(part, arguments);
    unlink(path);
}

static void test_curve(void **state)
{
    (void)state;
    assert_int_equal(run("curve %s --svg %s", chain, svg), 0);
    double last = 1e9;
    int points = 0;
    for (char *line = strtok(answer, "\n"); line && strcmp(line, "Plans of the literature") != 0;
         line = strtok(NULL, "\n")) {
        const char *percent = strstr(line, "% ");
        if (!percent)
            continue;
        double ratio = strtod(percent + 1, NULL);
        assert_true(ratio <= last && ratio >= 1); /* more memory never costs more time */
        last = ratio;
        points++;
    }
    assert_true(points > 10);
    assert_true(last < 1.00001);
    FILE *file = fopen(svg, "r");
    assert_non_null(file);
    size_t count = fread(answer, 1, sizeof answer - 1, file);
    fclose(file);
    answer[count] = '\0';
    assert_int_equal(strncmp(answer, "<svg ", 5), 0);
    assert_non_null(strstr(answer, "<path class=\"line\""));
    assert_non_null(strstr(answer, "</svg>"));
    assert_null(strstr(answer, "nan"));
}

/* Where copies are nearly free, the second column says so; the first one does not change. */
static void test_curve_with_swaps(void **state)
{
    (void)state;
    assert_int_equal(run("curve %s", chain), 0);
    assert_null(strstr(answer, "with swaps"));
    assert_int_equal(run("curve %s", linked), 0);
    assert_non_null(strstr(answer, "with swaps"));
    int points = 0;
    for (char *line = strtok(answer, "\n"); line && strcmp(line, "Plans of the literature") != 0;
         line = strtok(NULL, "\n")) {
        const char *percent = strstr(line, "% "), *last = strrchr(line, ' ');
        if (!percent)
            continue;
        double share = strtod(percent - 5, NULL), alone = strtod(percent + 1, NULL), swapping = strtod(last, NULL);
        assert_true(swapping >= 1 && (alone < 1 || swapping <= alone));
        if (share > 10 && share < 50)
            assert_true(alone > 1.2 && swapping < 1.2);
        points++;
    }
    assert_true(points > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_usage),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_curve),
        cmocka_unit_test(test_curve_with_swaps),
        cmocka_unit_test(test_plan_explains),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, write_files, remove_files);
}
