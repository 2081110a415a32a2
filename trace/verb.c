#include "trace/verb.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int verb_refuse(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fprintf(stderr, "reprise: ");
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    return 2;
}

/* `word` is the option's name, or NAME=VALUE. */
static const struct verb_option *find_option(const struct verb_option *options, const char *word)
{
    size_t length = strcspn(word, "=");
    for (; options->name; options++)
        if (strlen(options->name) == length && strncmp(options->name, word, length) == 0)
            return options;
    return NULL;
}

bool verb_arguments(const char *verb, int argc, char **argv, const char **path, const struct verb_option *options)
{
    *path = NULL;
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] != '-' || !argv[i][1]) {
            if (*path)
                return verb_refuse("%s: one file is enough, and %s is a second one", verb, argv[i]), false;
            *path = argv[i];
            continue;
        }
        const struct verb_option *option = find_option(options, argv[i]);
        if (!option)
            return verb_refuse("%s: there is no option %s", verb, argv[i]), false;
        const char *value = strchr(argv[i], '=');
        if (!value && i + 1 == argc)
            return verb_refuse("%s: %s needs a value", verb, argv[i]), false;
        *option->value = value ? value + 1 : argv[++i];
    }
    return *path || (verb_refuse("%s: which file?", verb), false);
}

static unsigned long long size_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? (unsigned long long)about.st_size : 0;
}

const struct trace_recorded *verb_open(const char *path, struct trace *trace)
{
    char why[512];
    if (!trace_read(path, trace, why, sizeof why)) {
        verb_refuse("%s", why);
        return NULL;
    }
    if (trace->iteration_count == 0) {
        if (trace->is_cut)
            verb_refuse("%s: cut off at byte %llu, before an iteration was recorded", path, size_of(path));
        else
            verb_refuse("%s: no iteration was recorded", path);
        trace_release(trace);
        return NULL;
    }
    if (trace->is_cut)
        verb_refuse("%s: cut off at byte %llu: the last iteration before that is taken", path, size_of(path));
    return &trace->iterations[trace->iteration_count - 1];
}

static void copy_operations(const struct trace_recorded *recorded, struct policy_problem *out)
{
    for (uint32_t i = 0; i < out->operation_count; i++) {
        const struct trace_operation *from = &recorded->operations[i];
        out->operations[i] = (struct policy_operation){.nanoseconds = from->nanoseconds,
                                                       .workspace_bytes = from->workspace_bytes,
                                                       .scratch_bytes = from->scratch_bytes,
                                                       .first_read = out->read_count,
                                                       .read_count = from->read_count,
                                                       .first_write = out->write_count,
                                                       .write_count = from->write_count,
                                                       .replayable_until = from->replayable_until};
        memcpy(out->reads + out->read_count, trace_reads(recorded, i), from->read_count * sizeof *out->reads);
        memcpy(out->writes + out->write_count, trace_writes(recorded, i), from->write_count * sizeof *out->writes);
        out->read_count += from->read_count;
        out->write_count += from->write_count;
    }
}

bool verb_problem(const struct trace *trace, const struct trace_recorded *recorded, struct policy_problem *out)
{
    const struct trace_iteration *head = &recorded->head;
    *out = (struct policy_problem){.operation_count = head->operation_count,
                                   .version_count = head->version_count,
                                   .operations = calloc(head->operation_count + (size_t)1, sizeof *out->operations),
                                   .versions = calloc(head->version_count + (size_t)1, sizeof *out->versions),
                                   .reads = calloc(recorded->list_count + (size_t)1, sizeof *out->reads),
                                   .writes = calloc(recorded->list_count + (size_t)1, sizeof *out->writes),
                                   .fixed_bytes = head->fixed_bytes,
                                   .frame_bytes = trace->run.frame_bytes,
                                   .out_bytes_per_ns = head->out_bytes_per_ns,
                                   .in_bytes_per_ns = head->in_bytes_per_ns};
    if (!out->operations || !out->versions || !out->reads || !out->writes) {
        verb_problem_release(out);
        return false;
    }
    for (uint32_t v = 0; v < out->version_count; v++) {
        const struct trace_version *from = &recorded->versions[v];
        out->versions[v] = (struct policy_version){.bytes = from->bytes,
                                                   .producer = from->producer,
                                                   .replaces = from->replaces,
                                                   .droppable_from = from->droppable_from,
                                                   .is_kept = from->is_kept,
                                                   .is_swappable = from->is_swappable};
    }
    copy_operations(recorded, out);
    return true;
}

void verb_problem_release(struct policy_problem *problem)
{
    free(problem->operations);
    free(problem->versions);
    free(problem->reads);
    free(problem->writes);
    *problem = (struct policy_problem){0};
}
