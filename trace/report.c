#include "trace/report.h"
#include "trace/lifetime.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_SHOWN    12
#define CURVE_COLUMNS 72
#define CURVE_ROWS    10
#define NAME_WIDTH    44

const char *report_size(uint64_t bytes, char *buffer)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    unsigned unit = 0;
    while (size >= 1024 && unit < 4) {
        size /= 1024;
        unit++;
    }
    snprintf(buffer, 16, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
    return buffer;
}

void report_plain_name(const char *mangled, char *out, size_t bytes)
{
    size_t used = 0;
    const char *at = mangled;
    bool is_nested = strncmp(at, "_ZN", 3) == 0;
    if (strncmp(at, "_Z", 2) == 0)
        at += is_nested ? 3 : 2;
    /* Without N there is one name; what follows it are the parameters' types. */
    for (bool is_first = true; isdigit((unsigned char)*at) && (is_nested || is_first); is_first = false) {
        char *end;
        unsigned long length = strtoul(at, &end, 10);
        if (length == 0 || length > strlen(end))
            break;
        int put = snprintf(out + used, bytes - used, "%s%.*s", used ? "::" : "", (int)length, end);
        used = used + (size_t)put < bytes ? used + (size_t)put : bytes - 1;
        at = end + length;
    }
    if (used == 0)
        snprintf(out, bytes, "%s", mangled);
}

/* Rows of a table: things of one plain name added up (a template's instances are one thing to the reader). */

struct row {
    uint32_t name; /* the trace's number of the first name that looks like this */
    uint64_t count, bytes, nanoseconds, bad_count;
};

struct table {
    struct row *rows; /* one per name of the trace; only the first of equal ones is used */
    uint32_t *first;  /* per name: the row it counts in */
    uint32_t count;
};

static int by_time(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->nanoseconds != b->nanoseconds)
        return a->nanoseconds < b->nanoseconds ? 1 : -1;
    return a->count != b->count ? (a->count < b->count ? 1 : -1) : (a->name > b->name) - (a->name < b->name);
}

static int by_bytes(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : by_time(left, right);
}

struct spelled {
    char plain[NAME_WIDTH + 1];
    uint32_t name;
};

static int by_spelling(const void *left, const void *right)
{
    const struct spelled *a = left, *b = right;
    int order = strcmp(a->plain, b->plain);
    return order ? order : (a->name > b->name) - (a->name < b->name);
}

static void table_end(struct table *table)
{
    free(table->rows);
    free(table->first);
}

static bool table_begin(struct table *table, const struct trace *trace)
{
    struct spelled *spelled = calloc(trace->name_count, sizeof *spelled);
    *table = (struct table){.rows = calloc(trace->name_count, sizeof *table->rows),
                            .first = calloc(trace->name_count, sizeof *table->first),
                            .count = trace->name_count};
    if (!spelled || !table->rows || !table->first) {
        free(spelled);
        table_end(table);
        return false;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        table->rows[i].name = spelled[i].name = i;
        report_plain_name(trace->names[i], spelled[i].plain, sizeof spelled->plain);
    }
    qsort(spelled, table->count, sizeof *spelled, by_spelling);
    for (uint32_t i = 0; i < table->count; i++) {
        bool is_same = i > 0 && strcmp(spelled[i].plain, spelled[i - 1].plain) == 0;
        table->first[spelled[i].name] = is_same ? table->first[spelled[i - 1].name] : spelled[i].name;
    }
    free(spelled);
    return true;
}

static struct row *row_of(const struct table *table, uint32_t name)
{
    return &table->rows[table->first[name]];
}

static void write_name(FILE *out, const struct trace *trace, uint32_t name)
{
    char plain[NAME_WIDTH + 1];
    report_plain_name(name ? trace->names[name] : "?", plain, sizeof plain);
    fprintf(out, "  %-*s", NAME_WIDTH, plain);
}

/* The highest demand in one of CURVE_COLUMNS slices of the iteration; every slice has an operation at least. */
static uint64_t demand_of_column(const struct lifetime *lifetime, uint32_t column)
{
    uint64_t count = lifetime->position_count, highest = 0;
    uint64_t from = column * count / CURVE_COLUMNS, to = (column + 1) * count / CURVE_COLUMNS;
    for (uint64_t i = from; i < to || i == from; i++)
        highest = lifetime->demand[i] > highest ? lifetime->demand[i] : highest;
    return highest;
}

/* The memory over the iteration. */
static void write_curve(FILE *out, const struct lifetime *lifetime)
{
    uint64_t columns[CURVE_COLUMNS];
    if (lifetime->position_count == 0)
        return;
    uint64_t peak = lifetime->demand[lifetime->peak_position];
    char size[16];
    for (uint32_t column = 0; column < CURVE_COLUMNS; column++)
        columns[column] = demand_of_column(lifetime, column);
    fprintf(out, "\nMemory held over the iteration (operations left to right)\n");
    for (int row = CURVE_ROWS; row > 0; row--) {
        bool has_label = row == CURVE_ROWS || row == CURVE_ROWS / 2;
        fprintf(out, "  %10s |", has_label ? report_size(peak / CURVE_ROWS * (uint64_t)row, size) : "");
        for (int column = 0; column < CURVE_COLUMNS; column++) {
            bool is_filled = columns[column] > 0 && (double)columns[column] * CURVE_ROWS >= (double)peak * (row - 0.5);
            fputc(is_filled ? '#' : ' ', out);
        }
        fputc('\n', out);
    }
    fprintf(out, "  %10s +", "");
    for (int column = 0; column < CURVE_COLUMNS; column++)
        fputc('-', out);
    fputc('\n', out);
}

static void write_head(FILE *out, const struct trace *trace, const struct trace_recorded *recorded,
                       const struct lifetime *lifetime)
{
    const struct trace_iteration *head = &recorded->head;
    char size[16];
    fprintf(out, "Program     %s\n", trace->run.program ? trace->names[trace->run.program] : "?");
    fprintf(out, "Device      %s", trace->run.device ? trace->names[trace->run.device] : "?");
    fprintf(out, ", %s\n", report_size(trace->run.device_bytes, size));
    fprintf(out, "Cap         %s\n", trace->run.cap_bytes ? report_size(trace->run.cap_bytes, size) : "none");
    fprintf(out, "Iteration   %llu of the run (%u in this file): %u operations on %u streams, %.3f ms\n",
            (unsigned long long)head->index, trace->iteration_count, head->operation_count, head->stream_count,
            (double)head->nanoseconds / 1e6);
    fprintf(out, "Memory      peak %s", report_size(head->demand_peak_bytes, size));
    fprintf(out, ", held throughout %s\n", report_size(head->fixed_bytes, size));
    if (lifetime->position_count) {
        char plain[NAME_WIDTH + 1];
        report_plain_name(trace->names[recorded->operations[lifetime->peak_position].name], plain, sizeof plain);
        fprintf(out, "Peak at     operation %u of %u: %s\n", lifetime->peak_position, lifetime->position_count, plain);
    }
}

static bool write_kernels(FILE *out, const struct trace *trace, const struct trace_recorded *recorded)
{
    struct table table;
    uint64_t total = 0;
    if (!table_begin(&table, trace))
        return false;
    for (uint32_t i = 0; i < recorded->head.operation_count; i++) {
        const struct trace_operation *operation = &recorded->operations[i];
        struct row *row = row_of(&table, operation->name);
        row->count++;
        row->nanoseconds += operation->nanoseconds;
        row->bad_count += operation->replayable_until == 0;
        total += operation->nanoseconds;
    }
    qsort(table.rows, table.count, sizeof *table.rows, by_time);
    fprintf(out, "\nOperations by time\n  %-*s %8s %11s %7s  %s\n", NAME_WIDTH, "name", "runs", "time", "share",
            "not replayable");
    for (uint32_t i = 0; i < table.count && i < ROWS_SHOWN && table.rows[i].count; i++) {
        const struct row *row = &table.rows[i];
        write_name(out, trace, row->name);
        fprintf(out, " %8llu %8.3f ms %6.1f%%  ", (unsigned long long)row->count, (double)row->nanoseconds / 1e6,
                total ? 100.0 * (double)row->nanoseconds / (double)total : 0);
        if (row->bad_count)
            fprintf(out, "%llu", (unsigned long long)row->bad_count);
        fputc('\n', out);
    }
    table_end(&table);
    return true;
}

static const char *verdict(const struct trace_recorded *recorded, const struct trace_version *version)
{
    bool is_replayable =
        version->producer != TRACE_NONE && recorded->operations[version->producer].replayable_until != 0;
    if (version->droppable_from != TRACE_NONE && is_replayable)
        return "recompute";
    return version->is_swappable ? "swap" : "hold";
}

/* What lies in memory at the peak, by the operation that made it. */
static bool write_held(FILE *out, const struct trace *trace, const struct trace_recorded *recorded,
                       const struct lifetime *lifetime)
{
    static const char *const verdicts[] = {"recompute", "swap", "hold"};
    uint64_t by_verdict[3] = {0};
    struct table table;
    char size[16];
    if (!table_begin(&table, trace))
        return false;
    for (uint32_t v = 0; v < recorded->head.version_count; v++) {
        const struct trace_version *version = &recorded->versions[v];
        if (!lifetime_holds(recorded, lifetime, v, lifetime->peak_position))
            continue;
        for (int i = 0; i < 3; i++)
            if (strcmp(verdict(recorded, version), verdicts[i]) == 0)
                by_verdict[i] += version->bytes;
        uint32_t name = version->producer == TRACE_NONE ? 0 : recorded->operations[version->producer].name;
        struct row *row = row_of(&table, name);
        row->count++;
        row->bytes += version->bytes;
        row->nanoseconds += lifetime->ends[v] - (version->producer == TRACE_NONE ? 0 : version->producer);
    }
    fprintf(out, "\nAt the peak: can be recomputed %s", report_size(by_verdict[0], size));
    fprintf(out, ", swapped only %s", report_size(by_verdict[1], size));
    fprintf(out, ", must be held %s", report_size(by_verdict[2], size));
    fprintf(out, ", throughout %s\n", report_size(recorded->head.fixed_bytes, size));
    qsort(table.rows, table.count, sizeof *table.rows, by_bytes);
    fprintf(out, "\nMade by, among what is held at the peak\n  %-*s %8s %11s  %s\n", NAME_WIDTH, "name", "pieces",
            "bytes", "mean life (operations)");
    for (uint32_t i = 0; i < table.count && i < ROWS_SHOWN && table.rows[i].count; i++) {
        const struct row *row = &table.rows[i];
        write_name(out, trace, row->name);
        fprintf(out, " %8llu %11s  %.0f\n", (unsigned long long)row->count, report_size(row->bytes, size),
                (double)row->nanoseconds / (double)row->count);
    }
    table_end(&table);
    return true;
}

/* Why operations are not replayed and allocations not planned. */
static bool write_reasons(FILE *out, const struct trace *trace, const struct trace_recorded *recorded)
{
    struct table table;
    char size[16];
    if (!table_begin(&table, trace))
        return false;
    for (uint32_t i = 0; i < recorded->head.operation_count; i++)
        row_of(&table, recorded->operations[i].reason)->count += recorded->operations[i].reason != 0;
    for (uint32_t i = 0; i < recorded->head.allocation_count; i++) {
        const struct trace_allocation *allocation = &recorded->allocations[i];
        row_of(&table, allocation->reason)->bad_count += allocation->reason != 0;
        row_of(&table, allocation->reason)->bytes += allocation->reason ? allocation->footprint_bytes : 0;
    }
    qsort(table.rows, table.count, sizeof *table.rows, by_bytes);
    bool has_any = false;
    for (uint32_t i = 0; i < table.count; i++) {
        const struct row *row = &table.rows[i];
        if (!row->count && !row->bad_count)
            continue;
        if (!has_any)
            fprintf(out, "\nWhat cannot be recomputed, and why\n");
        has_any = true;
        fprintf(out, "  %s:", trace->names[row->name]);
        if (row->count)
            fprintf(out, " %llu operations", (unsigned long long)row->count);
        if (row->bad_count)
            fprintf(out, "%s %llu allocations, %s", row->count ? "," : "", (unsigned long long)row->bad_count,
                    report_size(row->bytes, size));
        fputc('\n', out);
    }
    table_end(&table);
    return true;
}

bool report_write(FILE *out, const struct trace *trace)
{
    if (trace->iteration_count == 0) {
        fprintf(out, "No iteration was recorded: the program ended, or changed, before one had repeated.\n");
        return true;
    }
    const struct trace_recorded *recorded = &trace->iterations[trace->iteration_count - 1];
    struct lifetime lifetime;
    if (!lifetime_make(recorded, &lifetime))
        return false;
    write_head(out, trace, recorded, &lifetime);
    write_curve(out, &lifetime);
    bool is_whole = write_held(out, trace, recorded, &lifetime) && write_kernels(out, trace, recorded) &&
                    write_reasons(out, trace, recorded);
    lifetime_release(&lifetime);
    return is_whole;
}
