#include "tests/ptx/conformance.h"
#include "tests/device/program.h"

#include <ctype.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MOST      4096
#define PARAMETERS_MOST 16

enum match { EXACT, ANY_NAN, ANYTHING, NEAR };
struct expected {
    enum match match;
    uint64_t bits;
    uint64_t ulps;
};

struct buffer {
    uint8_t *data;
    unsigned bytes; /* per word */
    char type[16];
    size_t count, expected_count;
    struct expected *expected;
};

struct test {
    const char *file;
    unsigned line;
    char name[128];
    unsigned block, grid, shared;
    unsigned long long seed;
    int fault;
    char refused[128];
    uint8_t params[512];
    size_t param_bytes;
    struct buffer buffers[PARAMETERS_MOST];
    unsigned buffer_count;
};

static struct {
    sigjmp_buf back;
    int code;
} caught;
static unsigned failures, checks;

static void fault(struct program_worker *worker, CUresult code, const char *what)
{
    (void)worker;
    (void)what;
    caught.code = (int)code;
    siglongjmp(caught.back, 1);
}

static void on_segv(int number)
{
    (void)number;
    caught.code = CUDA_ERROR_ILLEGAL_ADDRESS;
    siglongjmp(caught.back, 1);
}

static unsigned bytes_of(const char *type)
{
    unsigned bits = (unsigned)strtoul(type + 1, NULL, 10);
    return bits >= 8 ? bits / 8 : 4;
}

static struct expected read_expected(const char *word)
{
    if (strcmp(word, "nan") == 0)
        return (struct expected){.match = ANY_NAN};
    if (strcmp(word, "*") == 0)
        return (struct expected){.match = ANYTHING};
    char *end;
    uint64_t bits = *word == '-' ? (uint64_t)strtoll(word, &end, 0) : strtoull(word, &end, 0);
    if (*end == '~')
        return (struct expected){.match = NEAR, .bits = bits, .ulps = strtoull(end + 1, NULL, 10)};
    return (struct expected){.match = EXACT, .bits = bits};
}

static void put_parameter(struct test *test, const void *data, size_t bytes)
{
    test->param_bytes = (test->param_bytes + bytes - 1) & ~(bytes - 1);
    memcpy(test->params + test->param_bytes, data, bytes);
    test->param_bytes += bytes;
}

static void add_word(struct buffer *buffer, bool is_input, const char *word)
{
    struct expected e = read_expected(word);
    if (is_input) {
        memcpy(buffer->data + buffer->count * buffer->bytes, &e.bits, buffer->bytes);
        buffer->count++;
    } else {
        buffer->expected[buffer->expected_count++] = e;
    }
}

static void read_buffer(struct test *test, const char *kind, char *type, char *words)
{
    struct buffer *buffer = &test->buffers[test->buffer_count++];
    buffer->bytes = bytes_of(type);
    snprintf(buffer->type, sizeof buffer->type, "%.15s", type);
    buffer->data = calloc(WORDS_MOST, 16);
    buffer->expected = calloc(WORDS_MOST, sizeof *buffer->expected);
    bool is_input = strcmp(kind, "out") != 0;
    for (char *word = strtok(words, " \t\n"); word; word = strtok(NULL, " \t\n")) {
        if (strcmp(word, ">") == 0)
            is_input = false;
        else
            add_word(buffer, is_input, word);
    }
    put_parameter(test, &buffer->data, sizeof buffer->data);
}

static void read_line(struct test *test, char *line)
{
    char kind[16] = "", type[16] = "";
    int used = 0;
    sscanf(line, "%15s %15[a-z0-9]: %n", kind, type, &used);
    if (strcmp(kind, "value") == 0) {
        struct expected e = read_expected(strtok(line + used, " \t\n"));
        put_parameter(test, &e.bits, bytes_of(type));
    } else if (strcmp(kind, "fault") == 0) {
        test->fault = atoi(line + 6);
    } else if (strcmp(kind, "refused") == 0) {
        snprintf(test->refused, sizeof test->refused, "%s", line + 8);
        test->refused[strcspn(test->refused, "\n")] = 0;
    } else if (used) {
        read_buffer(test, kind, type, line + used);
    } else {
        fprintf(stderr, "%s: bad line: %s", test->file, line);
        failures++;
    }
}

static void read_run(struct test *test, char *line)
{
    test->block = test->grid = 1;
    sscanf(line, "run %127s", test->name);
    char *at;
    if ((at = strstr(line, "block=")))
        test->block = (unsigned)atoi(at + 6);
    if ((at = strstr(line, "grid=")))
        test->grid = (unsigned)atoi(at + 5);
    if ((at = strstr(line, "shared=")))
        test->shared = (unsigned)atoi(at + 7);
    if ((at = strstr(line, "seed=")))
        test->seed = strtoull(at + 5, NULL, 10);
}

static double value_of(const struct buffer *buffer, uint64_t bits)
{
    if (buffer->bytes == 8) {
        double d;
        memcpy(&d, &bits, 8);
        return d;
    }
    if (buffer->bytes == 2)
        return ((bits & 0x7fff) > (strcmp(buffer->type, "b16") == 0 ? 0x7f80u : 0x7c00u)) ? (double)__builtin_nanf("")
                                                                                          : 0.0;
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, 4);
    return (double)f;
}

static int64_t ordered(uint64_t bits, unsigned bytes)
{
    uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

static bool matches(const struct buffer *buffer, uint64_t bits, struct expected e)
{
    double value = value_of(buffer, bits);
    uint64_t mask = buffer->bytes == 8 ? ~0ull : ((uint64_t)1 << (8 * buffer->bytes)) - 1;
    int64_t distance = ordered(bits, buffer->bytes) - ordered(e.bits & mask, buffer->bytes);
    switch (e.match) {
    case ANYTHING:
        return true;
    case ANY_NAN:
        return value != value;
    case NEAR:
        return value == value && (uint64_t)(distance < 0 ? -distance : distance) <= e.ulps;
    default:
        return bits == (e.bits & mask);
    }
}

static void compare(const struct test *test, const struct buffer *buffer, unsigned number)
{
    for (size_t i = 0; i < buffer->expected_count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, buffer->data + i * buffer->bytes, buffer->bytes);
        checks++;
        if (matches(buffer, bits, buffer->expected[i]))
            continue;
        failures++;
        printf("%s:%u: %s: parameter %u, word %zu: is 0x%llx, expected 0x%llx%s\n", test->file, test->line, test->name,
               number, i, (unsigned long long)bits, (unsigned long long)buffer->expected[i].bits,
               buffer->expected[i].match == ANY_NAN ? " (NaN)" : "");
    }
}

static void fail(const struct test *test, const char *why)
{
    failures++;
    printf("%s:%u: %s: %s\n", test->file, test->line, test->name, why);
}

static void run_grid(struct program *program, size_t entry, const struct test *test)
{
    struct program_worker worker = {.fault = fault};
    struct program_grid grid = {.grid = {test->grid, 1, 1},
                                .block = {test->block, 1, 1},
                                .dynamic_shared_bytes = test->shared,
                                .params = test->params,
                                .seed = test->seed};
    caught.code = 0;
    struct sigaction action = {.sa_handler = on_segv, .sa_flags = SA_NODEFER}, before;
    sigaction(SIGSEGV, &action, &before);
    if (sigsetjmp(caught.back, 0) == 0)
        for (unsigned i = 0; i < test->grid; i++)
            program_run_block(program, entry, &grid, i, &worker);
    sigaction(SIGSEGV, &before, NULL);
    free(worker.scratch);
}

static void run_test(struct program *program, struct test *test)
{
    size_t entry = 0;
    char why[400] = "";
    bool was_compiled;
    while (entry < program_entry_count(program) && strcmp(program_entry(program, entry)->name, test->name) != 0)
        entry++;
    checks++;
    if (entry == program_entry_count(program)) {
        fail(test, "no such entry");
    } else if (!program_prepare(program, entry, &was_compiled, why, sizeof why)) {
        if (!*test->refused || !strstr(why, test->refused))
            fail(test, why);
    } else if (*test->refused) {
        fail(test, "was not refused");
    } else if (program_entry(program, entry)->param_bytes != test->param_bytes) {
        fail(test, "the parameters do not fit");
    } else {
        run_grid(program, entry, test);
        if (caught.code != test->fault)
            fail(test, caught.code ? "faulted" : "did not fault");
        for (unsigned i = 0; i < test->buffer_count && !caught.code; i++)
            compare(test, &test->buffers[i], i);
    }
    for (unsigned i = 0; i < test->buffer_count; i++) {
        free(test->buffers[i].data);
        free(test->buffers[i].expected);
    }
}

static struct program *load(const char *file, const char *text, size_t bytes)
{
    CUresult error;
    char why[400];
    struct program *program = program_parse(text, bytes, &error, why, sizeof why);
    if (!program) {
        printf("%s: %s\n", file, why);
        failures++;
        return NULL;
    }
    for (size_t i = 0; i < program_global_count(program); i++)
        program_global(program, i)->address = calloc(1, program_global(program, i)->bytes + 16);
    program_initialise_globals(program);
    return program;
}

static void run_tests(struct program *program, const char *file, char *text)
{
    struct test test = {.file = file};
    unsigned number = 0;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        number++;
        if (strncmp(line, "//! ", 4) != 0)
            continue;
        if (strncmp(line + 4, "run ", 4) == 0) {
            if (test.line)
                run_test(program, &test);
            test = (struct test){.file = file, .line = number};
            read_run(&test, line + 4);
        } else {
            read_line(&test, line + 4);
        }
    }
    if (test.line)
        run_test(program, &test);
}

static void run_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t bytes = 0, room = 0;
    while (file && !feof(file)) {
        if (bytes + 65536 > room)
            text = realloc(text, (room = room * 2 + 131072) + 1);
        bytes += fread(text + bytes, 1, 65536, file);
    }
    if (!file) {
        perror(path);
        failures++;
        return;
    }
    fclose(file);
    text[bytes] = 0;
    struct program *program = load(path, text, bytes);
    if (program) {
        run_tests(program, path, text);
        for (size_t i = 0; i < program_global_count(program); i++)
            free(program_global(program, i)->address);
        program_release(program);
    }
    free(text);
}

unsigned conformance_run(const char *path, unsigned *checked)
{
    failures = checks = 0;
    run_file(path);
    *checked = checks;
    return failures;
}
