/* Mutation fuzzing without any tool: a seed input is damaged in a few places and fed to a reader, over and over; the
 * sanitizers judge. A fuzzer is a program that calls mutate_run; `FUZZER SECONDS [SEED]`. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct mutate_target {
    const unsigned char *sample;
    size_t sample_bytes;
    const char *const *tokens; /* inserted beside random bytes; NULL-terminated, may be NULL */
    void (*feed)(const unsigned char *bytes, size_t count);
};

/* Runs for the time that the arguments say; returns the exit status. The input that is being fed when a sanitizer stops
 * the program can be had again with the seed that was printed. */
int mutate_run(int argc, char **argv, const struct mutate_target *target);

/* A whole file; exits with one line if it cannot be read. */
unsigned char *mutate_read(const char *path, size_t *bytes);
