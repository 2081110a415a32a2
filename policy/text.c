#include "policy/text.h"
#include "policy/graph.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct text_problem *out;
    char *rest; /* what is left of the present line */
    unsigned long line;
    bool has_header, has_operation, has_end;
    char *why;
    size_t why_bytes;
};

static bool complain(struct reader *r, const char *what, const char *word)
{
    if (r->why && r->why_bytes)
        snprintf(r->why, r->why_bytes, "%lu: %s%s%.60s", r->line, what, word ? ": " : "", word ? word : "");
    return false;
}

static char *next_word(struct reader *r)
{
    char *word = r->rest + strspn(r->rest, " \t\r\n");
    if (!*word || *word == '#')
        return NULL;
    r->rest = word + strcspn(word, " \t\r\n");
    if (*r->rest)
        *r->rest++ = 0;
    return word;
}

static bool parse_number(const char *word, uint64_t limit, uint64_t *out)
{
    char *end;
    if (!word || *word < '0' || *word > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(word, &end, 10);
    if (errno || *end || value > limit)
        return false;
    *out = value;
    return true;
}

static bool read_number(struct reader *r, uint64_t limit, uint64_t *out)
{
    const char *word = next_word(r);
    return parse_number(word, limit, out) || complain(r, "a number is expected", word ? word : "end of line");
}

static const char *value_of(const char *word, const char *key)
{
    size_t length = strlen(key);
    return strncmp(word, key, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static bool read_version_attributes(struct reader *r, uint32_t index, bool may_replace)
{
    struct policy_problem *p = &r->out->builder.problem;
    struct policy_version *version = &p->versions[index];
    for (char *word; (word = next_word(r));) {
        uint64_t number;
        const char *value;
        if (strcmp(word, "kept") == 0)
            version->is_kept = true;
        else if (strcmp(word, "swappable") == 0)
            version->is_swappable = true;
        else if (!may_replace && strcmp(word, "host") == 0)
            version->may_start_on_host = true;
        else if (strcmp(word, "droppable=never") == 0)
            version->droppable_from = POLICY_NONE;
        else if ((value = value_of(word, "droppable")) && parse_number(value, POLICY_NONE - 1, &number))
            version->droppable_from = (uint32_t)number;
        else if (may_replace && (value = value_of(word, "replaces")) && parse_number(value, POLICY_NONE - 1, &number))
            version->replaces = (uint32_t)number;
        else
            return complain(r, "unknown attribute of a version", word);
    }
    return true;
}

static bool read_version(struct reader *r, bool is_input)
{
    uint64_t bytes;
    if (!is_input && !r->has_operation)
        return complain(r, "out without an operation", NULL);
    if (!read_number(r, UINT64_MAX, &bytes))
        return false;
    struct problem_builder *b = &r->out->builder;
    uint32_t index = is_input ? builder_input(b, bytes) : builder_write(b, bytes);
    if (b->has_failed)
        return complain(r, "out of memory", NULL);
    return read_version_attributes(r, index, !is_input);
}

/* Room for `count` names, the new ones NULL. */
static bool grow_names(struct reader *r, uint32_t count)
{
    struct text_problem *out = r->out;
    char **names = realloc(out->names, sizeof *names * count);
    if (!names)
        return complain(r, "out of memory", NULL);
    out->names = names;
    while (out->name_count < count)
        names[out->name_count++] = NULL;
    return true;
}

static bool set_name(struct reader *r, const char *name)
{
    struct text_problem *out = r->out;
    uint32_t count = out->builder.problem.operation_count;
    if (out->name_count < count && !grow_names(r, count * 2))
        return false;
    free(out->names[count - 1]);
    out->names[count - 1] = strdup(name);
    return out->names[count - 1] || complain(r, "out of memory", NULL);
}

static bool read_operation_attribute(struct reader *r, uint32_t o, const char *word)
{
    struct policy_operation *op = &r->out->builder.problem.operations[o];
    uint64_t number;
    const char *value;
    if ((value = value_of(word, "workspace")) && parse_number(value, UINT64_MAX, &number))
        op->workspace_bytes = number;
    else if ((value = value_of(word, "scratch")) && parse_number(value, UINT64_MAX, &number))
        op->scratch_bytes = number;
    else if (strcmp(word, "until=never") == 0)
        op->replayable_until = 0;
    else if ((value = value_of(word, "until")) && parse_number(value, POLICY_NONE, &number))
        op->replayable_until = (uint32_t)number;
    else if ((value = value_of(word, "name")))
        return set_name(r, value);
    else
        return complain(r, "unknown attribute of an operation", word);
    return true;
}

static bool read_operation(struct reader *r)
{
    uint64_t nanoseconds, version;
    if (!read_number(r, UINT64_MAX, &nanoseconds))
        return false;
    struct problem_builder *b = &r->out->builder;
    uint32_t o = builder_operation(b, nanoseconds);
    char *word;
    if (b->has_failed)
        return complain(r, "out of memory", NULL);
    r->has_operation = true;
    while ((word = next_word(r)) && strcmp(word, ":") != 0)
        if (!read_operation_attribute(r, o, word))
            return false;
    while (word && (word = next_word(r))) {
        if (!parse_number(word, POLICY_NONE - 1, &version) || version >= b->problem.version_count)
            return complain(r, "no such version", word);
        builder_read(b, (uint32_t)version);
    }
    return !b->has_failed || complain(r, "out of memory", NULL);
}

static bool read_bandwidth(struct reader *r)
{
    double *into[] = {&r->out->builder.problem.out_bytes_per_ns, &r->out->builder.problem.in_bytes_per_ns};
    for (int k = 0; k < 2; k++) {
        char *word = next_word(r), *end = NULL;
        double value = word ? strtod(word, &end) : -1;
        if (!word || *end || !(value >= 0 && value < 1e12))
            return complain(r, "a bandwidth is expected", word ? word : "end of line");
        *into[k] = value;
    }
    return true;
}

static bool read_line(struct reader *r)
{
    char *word = next_word(r);
    uint64_t number;
    if (!word)
        return true;
    if (r->has_end)
        return complain(r, "behind the end", word);
    if (!r->has_header) {
        if (strcmp(word, "reprise-problem") != 0)
            return complain(r, "not a problem file: it must begin with reprise-problem 1", NULL);
        r->has_header = true;
        return read_number(r, UINT64_MAX, &number) &&
               (number == 1 || complain(r, "unknown version of the format", NULL));
    }
    if (strcmp(word, "op") == 0)
        return read_operation(r);
    bool is_version = true;
    bool is_done = strcmp(word, "in") == 0    ? read_version(r, true)
                   : strcmp(word, "out") == 0 ? read_version(r, false)
                                              : (is_version = false);
    if (is_version)
        return is_done;
    if (strcmp(word, "fixed") == 0)
        is_done = read_number(r, UINT64_MAX, &r->out->builder.problem.fixed_bytes);
    else if (strcmp(word, "frame") == 0)
        is_done = read_number(r, UINT64_MAX, &r->out->builder.problem.frame_bytes);
    else if (strcmp(word, "bandwidth") == 0)
        is_done = read_bandwidth(r);
    else if (strcmp(word, "end") == 0)
        is_done = r->has_end = true;
    else
        return complain(r, "unknown statement", word);
    return is_done && (!(word = next_word(r)) || complain(r, "left over", word));
}

static bool read_all(struct reader *r, FILE *input)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    bool is_right = true;
    while (is_right && (length = getline(&line, &capacity, input)) >= 0) {
        r->line++;
        r->rest = line;
        is_right = strlen(line) == (size_t)length ? read_line(r) : complain(r, "a zero byte", NULL);
    }
    free(line);
    if (is_right && ferror(input))
        return complain(r, "cannot be read", NULL);
    if (is_right && !r->has_header)
        return complain(r, "empty: it must begin with reprise-problem 1", NULL);
    if (is_right && !r->has_end)
        return complain(r, "cut off: the line `end` is missing", NULL);
    return is_right;
}

/* Is this line the statement of an operation (is_operation), or of a version? */
static bool is_statement(const char *line, bool is_operation)
{
    line += strspn(line, " \t\r\n");
    size_t length = strcspn(line, " \t\r\n#");
    if (is_operation)
        return length == 2 && strncmp(line, "op", 2) == 0;
    return (length == 2 && strncmp(line, "in", 2) == 0) || (length == 3 && strncmp(line, "out", 3) == 0);
}

/* The line of what a reason begins with, "operation N" or "version N"; `otherwise` where it does not, or the input
 * cannot be read again. */
static unsigned long find_line(FILE *input, const char *reason, unsigned long otherwise)
{
    unsigned long number, left, found = 0;
    bool is_operation = sscanf(reason, "operation %lu", &number) == 1;
    if ((!is_operation && sscanf(reason, "version %lu", &number) != 1) || fseek(input, 0, SEEK_SET) != 0)
        return otherwise;
    char *line = NULL;
    size_t capacity = 0;
    left = number + 1;
    while (left && getline(&line, &capacity, input) >= 0) {
        found++;
        left -= is_statement(line, is_operation);
    }
    free(line);
    return left ? otherwise : found;
}

bool text_read(FILE *input, struct text_problem *out, char *why, size_t why_bytes)
{
    struct reader r = {.out = out, .why = why, .why_bytes = why_bytes};
    *out = (struct text_problem){0};
    char reason[200] = "";
    bool is_right = read_all(&r, input);
    if (is_right && out->names && out->name_count < out->builder.problem.operation_count)
        is_right = grow_names(&r, out->builder.problem.operation_count);
    if (is_right && !policy_problem_is_valid(&out->builder.problem, reason, sizeof reason)) {
        r.line = find_line(input, reason, r.line);
        is_right = complain(&r, reason, NULL);
    }
    if (!is_right)
        text_release(out);
    return is_right;
}

void text_release(struct text_problem *problem)
{
    for (uint32_t k = 0; k < problem->name_count; k++)
        free(problem->names[k]);
    free(problem->names);
    builder_release(&problem->builder);
    *problem = (struct text_problem){0};
}
