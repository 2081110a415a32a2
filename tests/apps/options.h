/* Command line of the training programs: `--name N` for every row of a table, and the flags that all have. */
#pragma once
#include <stddef.h>

struct option {
    const char *name; /* without the dashes */
    int *value;       /* holds the default */
    int least, most;
};

struct run_settings {
    int iterations;  /* --iters */
    int threads;     /* --threads 2: backward pass and optimiser run on a second thread */
    bool has_timing; /* --timing: seconds per iteration on stderr */
    bool is_check;   /* --check: compare gradients with finite differences, then leave */
};

/* An unknown flag or a malformed value: one line on stderr, exit 2. --help: the table on stdout, exit 0. */
void options_parse(int argc, char **argv, const struct option *options, size_t count, struct run_settings *settings);
/* Refuses a network whose greatest tensor has more elements than an int counts. */
void options_check_elements(const char *program, double elements);
/* Ends the program as for a malformed value. */
[[noreturn]] void options_refuse(const char *program, const char *why, const char *what);
