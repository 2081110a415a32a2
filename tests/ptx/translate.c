/* Translates every kernel of the PTX files named: `translate [--compile|--source] FILE...`. One line per kernel, of
 * fields that tabs separate: the file, the kernel (empty for the whole file), its instructions, the seconds taken, and
 * why it was refused (empty where it was not). With --compile the C compiler runs as well, one kernel at a time; with
 * --source the C itself is printed instead. */
#include "tests/device/program.h"
#include "tests/device/ptx.h"
#include "tests/device/ptx_compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0;
    *bytes = 0;
    while (file && !feof(file)) {
        if (*bytes + 65536 > room && !(text = realloc(text, (room = room * 2 + 131072) + 1)))
            abort();
        *bytes += fread(text + *bytes, 1, 65536, file);
    }
    if (!file) {
        perror(path);
        exit(2);
    }
    fclose(file);
    return text;
}

static void print_line(const char *path, const char *name, uint32_t instructions, double seconds, char *why)
{
    for (char *c = why; *c; c++)
        if (*c == '\t' || *c == '\n')
            *c = ' ';
    printf("%s\t%s\t%u\t%.4f\t%s\n", path, name, instructions, seconds, why);
    fflush(stdout);
}

static bool compile(struct ptx_text *text, char *why, size_t why_bytes)
{
    bool was_compiled;
    struct ptx_text whole = {0};
    if (strstr(text->data, "ptx_matrix_"))
        text_append(&whole, ptx_matrix_head, (size_t)(ptx_matrix_head_end - ptx_matrix_head));
    text_append(&whole, text->data, text->used);
    bool fine = ptx_compile(whole.data, whole.used, &was_compiled, why, why_bytes) != NULL;
    text_release(&whole);
    return fine;
}

static void translate_entry(const char *path, struct ptx_module *module, struct ptx_function *entry, bool compiles)
{
    char why[500] = "";
    struct ptx_text text = {0};
    struct ptx_layout layout;
    double begun = now();
    ptx_layout_entry(module, entry, &layout);
    if (ptx_emit_entry(module, entry, &text, why, sizeof why) && compiles)
        compile(&text, why, sizeof why);
    print_line(path, entry->name, entry->insn_count, now() - begun, why);
    text_release(&text);
}

/* The C of every kernel that is taken, as one file. */
static void print_source(struct ptx_module *module)
{
    struct ptx_text text = {0};
    char why[500];
    text_append(&text, ptx_head, (size_t)(ptx_head_end - ptx_head));
    text_append(&text, ptx_matrix_head, (size_t)(ptx_matrix_head_end - ptx_matrix_head));
    for (struct ptx_function *f = module ? module->functions : NULL; f; f = f->next)
        if (f->is_entry && f->has_body)
            ptx_emit_entry(module, f, &text, why, sizeof why);
    fwrite(text.data, 1, text.used, stdout);
    text_release(&text);
}

static void translate_file(const char *path, bool compiles, bool prints)
{
    size_t bytes;
    char *text = read_file(path, &bytes), why[500] = "";
    CUresult error;
    double begun = now();
    struct ptx_module *module = ptx_parse(text, bytes, &error, why, sizeof why);
    if (prints)
        print_source(module);
    else
        print_line(path, "", 0, now() - begun, why);
    for (struct ptx_function *f = module && !prints ? module->functions : NULL; f; f = f->next)
        if (f->is_entry && f->has_body)
            translate_entry(path, module, f, compiles);
    if (module)
        ptx_module_release(module);
    free(text);
}

int main(int argc, char **argv)
{
    bool compiles = argc > 1 && strcmp(argv[1], "--compile") == 0;
    bool prints = argc > 1 && strcmp(argv[1], "--source") == 0;
    int first = 1 + (compiles || prints);
    if (argc <= first) {
        fprintf(stderr, "usage: translate [--compile|--source] FILE...\n");
        return 2;
    }
    for (int i = first; i < argc; i++)
        translate_file(argv[i], compiles, prints);
    return 0;
}
