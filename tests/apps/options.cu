#include "tests/apps/options.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void options_refuse(const char *program, const char *why, const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program, why, what);
    exit(2);
}

void options_check_elements(const char *program, double elements)
{
    if (elements > INT_MAX)
        options_refuse(program, "sizes out of range", "a tensor would have over 2^31 elements");
}

static void print_option(const struct option *option)
{
    printf("  --%-8s N   %d..%d (default %d)\n", option->name, option->least, option->most, *option->value);
}

static void print_help(const char *program, const struct option *options, size_t count, const struct option *common,
                       size_t common_count)
{
    printf("usage: %s [options]\n", program);
    for (size_t i = 0; i < count; i++)
        print_option(&options[i]);
    for (size_t i = 0; i < common_count; i++)
        print_option(&common[i]);
    printf("  --timing    seconds per iteration on stderr\n"
           "  --check     compare gradients with finite differences, then leave\n");
    exit(0);
}

static const struct option *find_option(const struct option *options, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return nullptr;
}

static void read_value(const char *program, const struct option *option, const char *text)
{
    char *end;
    errno = 0;
    long value = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || value < option->least || value > option->most) {
        fprintf(stderr, "%s: --%s wants a number in %d..%d, not '%s'\n", program, option->name, option->least,
                option->most, text ? text : "");
        exit(2);
    }
    *option->value = static_cast<int>(value);
}

void options_parse(int argc, char **argv, const struct option *options, size_t count, struct run_settings *settings)
{
    const struct option common[] = {{"iters", &settings->iterations, 1, 1000000},
                                    {"threads", &settings->threads, 1, 2}};
    const size_t common_count = sizeof common / sizeof common[0];
    const char *slash = strrchr(argv[0], '/'), *program = slash ? slash + 1 : argv[0];
    for (int i = 1; i < argc; i++) {
        const char *name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : "";
        const struct option *option = find_option(options, count, name);
        if (!option)
            option = find_option(common, common_count, name);
        if (option)
            read_value(program, option, argv[++i]);
        else if (strcmp(name, "timing") == 0)
            settings->has_timing = true;
        else if (strcmp(name, "check") == 0)
            settings->is_check = true;
        else if (strcmp(name, "help") == 0)
            print_help(program, options, count, common, common_count);
        else
            options_refuse(program, "unknown argument", argv[i]);
    }
}
