/* A fuzz target is a file fuzz_NAME.c that defines what is below; its first line lists what it links, as a unit test's
 * does. It is built twice: with mutate.c, which damages samples blindly and needs no tool, and, where clang is at hand,
 * with libFuzzer, which is guided by coverage. The sanitizers judge. `make fuzz` runs all (scripts/fuzz). */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Put in beside random bytes; NULL at the end. */
extern const char *const fuzz_tokens[];

/* One input. Returns if it was taken or refused in order; anything else aborts. */
void fuzz_feed(const unsigned char *bytes, size_t count);

/* Samples that no file holds, into the directory. */
void fuzz_write_samples(const char *directory);

/* For fuzz_write_samples: the file directory/name. Exits with one line if it cannot be written. */
void fuzz_write_file(const char *directory, const char *name, const void *bytes, size_t count);
