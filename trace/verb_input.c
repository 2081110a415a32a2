#include "trace/verb_input.h"
#include "trace/report.h"
#include "trace/symbols.h"
#include "trace/verb.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 64, SITE_BYTES = 160, SITE_PLACES = 2, PROGRAM_WIDTH = 34 };

/* An operation with what it is grouped by. */
struct labelled {
    const char *name, *site;
    uint32_t operation;
};

static int by_label(const void *left, const void *right)
{
    const struct labelled *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    if (!order && a->site && b->site)
        order = strcmp(a->site, b->site);
    else if (!order)
        order = (a->site != NULL) - (b->site != NULL);
    return order;
}

static bool make_groups(struct verb_input *input, struct labelled *labels)
{
    uint32_t count = input->problem->operation_count;
    input->groups = calloc((size_t)count + 1, sizeof *input->groups);
    input->group_of = calloc((size_t)count + 1, sizeof *input->group_of);
    if (!input->groups || !input->group_of)
        return false;
    qsort(labels, count, sizeof *labels, by_label);
    for (uint32_t k = 0; k < count; k++) {
        if (!k || by_label(&labels[k - 1], &labels[k]) != 0)
            input->groups[input->group_count++] = (struct verb_group){labels[k].name, labels[k].site};
        input->group_of[labels[k].operation] = input->group_count - 1;
    }
    return true;
}

static const char *name_of_kind(uint32_t kind)
{
    switch (kind) {
    case TRACE_COPY_IN:
        return "copy to the device";
    case TRACE_COPY_OUT:
        return "copy to the host";
    case TRACE_COPY_DEVICE:
        return "copy on the device";
    case TRACE_SET:
        return "memory set";
    default:
        return "launch";
    }
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "dropout_forward (dropout.cu:40) < attend (block.cu:116) < forward (block.cu:130)": from the origin outwards, as many
 * as tell apart what one function does for several callers. */
static void describe_site(struct symbols *symbols, uint32_t number, char *out)
{
    const struct symbols_stack *stack = symbols_stack(symbols, number);
    size_t used = 0;
    for (uint32_t k = stack->origin; k < stack->count && k - stack->origin < SITE_PLACES && used < SITE_BYTES; k++) {
        const struct symbols_place *place = stack->places[k];
        used +=
            (size_t)snprintf(out + used, SITE_BYTES - used, "%s%s", k > stack->origin ? " < " : "", place->function);
        if (place->file && place->line && used < SITE_BYTES)
            used += (size_t)snprintf(out + used, SITE_BYTES - used, " (%s:%u)", last_part(place->file), place->line);
    }
}

/* Per stack of the trace where its operations were submitted; "" where that is not known. */
static bool describe_sites(struct verb_input *input, const struct trace_recorded *recorded)
{
    struct symbols *symbols = symbols_open(&input->trace);
    input->sites = calloc((size_t)input->trace.stack_count + 1, SITE_BYTES);
    if (symbols && input->sites)
        for (uint32_t o = 0; o < recorded->head.operation_count; o++) {
            uint32_t number = recorded->operations[o].stack;
            char *site = input->sites + (size_t)number * SITE_BYTES;
            if (number && !*site)
                describe_site(symbols, number, site);
        }
    bool has_memory = symbols && input->sites;
    symbols_close(symbols);
    return has_memory;
}

static void label_recorded(struct verb_input *input, const struct trace_recorded *recorded, struct labelled *labels)
{
    for (uint32_t o = 0; o < recorded->head.operation_count; o++) {
        const struct trace_operation *operation = &recorded->operations[o];
        char *name = input->names + (size_t)o * NAME_BYTES;
        if (operation->name)
            report_plain_name(input->trace.names[operation->name], name, NAME_BYTES);
        else
            snprintf(name, NAME_BYTES, "%s", name_of_kind(operation->kind));
        const char *site = input->sites + (size_t)operation->stack * SITE_BYTES;
        labels[o] = (struct labelled){name, *site ? site : NULL, o};
    }
}

static void label_text(struct verb_input *input, struct labelled *labels)
{
    for (uint32_t o = 0; o < input->problem->operation_count; o++) {
        const char *name = o < input->text.name_count ? input->text.names[o] : NULL;
        labels[o] = (struct labelled){name ? name : "operation", NULL, o};
    }
}

static bool open_trace(const char *path, struct verb_input *input)
{
    const struct trace_recorded *recorded = verb_open(path, &input->trace);
    if (!recorded)
        return false;
    if (!verb_problem(&input->trace, recorded, &input->recorded))
        return verb_refuse("%s: there is no memory for it", path) == 0;
    input->problem = &input->recorded;
    input->demand_peak_bytes = recorded->head.demand_peak_bytes;
    uint32_t count = recorded->head.operation_count;
    struct labelled *labels = calloc((size_t)count + 1, sizeof *labels);
    input->names = calloc((size_t)count + 1, NAME_BYTES);
    bool is_labelled = labels && input->names && describe_sites(input, recorded);
    if (is_labelled) {
        label_recorded(input, recorded, labels);
        is_labelled = make_groups(input, labels);
    }
    free(labels);
    const char *program = input->trace.names[input->trace.run.program];
    snprintf(input->heading, sizeof input->heading, "%.*s%s, iteration %llu, %u operations", PROGRAM_WIDTH, program,
             strlen(program) > PROGRAM_WIDTH ? "..." : "", (unsigned long long)recorded->head.index, count);
    return is_labelled || verb_refuse("%s: there is no memory for it", path) == 0;
}

static bool open_text(FILE *file, const char *path, struct verb_input *input)
{
    char why[256];
    if (!text_read(file, &input->text, why, sizeof why))
        return verb_refuse("%s:%s", path, why) == 0;
    input->problem = &input->text.builder.problem;
    struct labelled *labels = calloc((size_t)input->problem->operation_count + 1, sizeof *labels);
    bool is_labelled = labels != NULL;
    if (is_labelled) {
        label_text(input, labels);
        is_labelled = make_groups(input, labels);
    }
    free(labels);
    snprintf(input->heading, sizeof input->heading, "a problem of %u operations", input->problem->operation_count);
    return is_labelled || verb_refuse("%s: there is no memory for it", path) == 0;
}

/* The file, or a copy of what comes through a pipe; NULL with errno. "-" is standard input. */
static FILE *open_seekable(const char *path, bool *is_piped)
{
    FILE *file = strcmp(path, "-") == 0 ? fdopen(dup(STDIN_FILENO), "r") : fopen(path, "r");
    *is_piped = file && fseek(file, 0, SEEK_CUR) != 0;
    if (!*is_piped)
        return file;
    FILE *copy = tmpfile();
    char bytes[4096];
    for (size_t count; copy && (count = fread(bytes, 1, sizeof bytes, file)) > 0;)
        if (fwrite(bytes, 1, count, copy) != count) {
            fclose(copy);
            copy = NULL;
        }
    fclose(file);
    if (copy)
        rewind(copy);
    return copy;
}

static bool open_either(FILE *file, bool is_piped, const char *path, struct verb_input *out)
{
    char magic[sizeof TRACE_MAGIC - 1] = "";
    size_t length = fread(magic, 1, sizeof magic, file);
    if (ferror(file))
        return verb_refuse("%s: %s", path, strerror(errno)) == 0;
    if (!length)
        return verb_refuse("%s: it is empty", path) == 0;
    bool is_trace = memcmp(magic, TRACE_MAGIC, sizeof magic) == 0;
    if (is_trace && is_piped)
        return verb_refuse("%s: a recording is read from a file, not from a pipe", path) == 0;
    bool is_text = !is_trace && memchr("#r \t\r\n", magic[0], 6) && !memchr(magic, 0, length);
    return is_text && fseek(file, 0, SEEK_SET) == 0 ? open_text(file, path, out) : open_trace(path, out);
}

bool verb_input_open(const char *path, struct verb_input *out)
{
    bool is_piped;
    *out = (struct verb_input){0};
    FILE *file = open_seekable(path, &is_piped);
    if (!file)
        return verb_refuse("%s: %s", path, strerror(errno)) == 0;
    bool is_open = open_either(file, is_piped, path, out);
    fclose(file);
    if (!is_open)
        verb_input_close(out);
    return is_open;
}

void verb_input_close(struct verb_input *input)
{
    trace_release(&input->trace);
    verb_problem_release(&input->recorded);
    text_release(&input->text);
    free(input->groups);
    free(input->group_of);
    free(input->names);
    free(input->sites);
    *input = (struct verb_input){0};
}
