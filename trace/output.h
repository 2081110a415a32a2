/* A file that is written for the user: under another name beside it, and renamed when it is whole. What was there
 * before is replaced only if it is a regular file, and stays if anything fails. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define OUTPUT_PATH_MOST 4096

struct output {
    char path[OUTPUT_PATH_MOST], part[OUTPUT_PATH_MOST]; /* links in `path` are followed */
};

/* False with the reason in `why`. The part file is there, and empty. */
bool output_begin(struct output *output, const char *path, char *why, size_t why_bytes);

/* Gives the part file its name; false with the reason in `why`, and it is gone. */
bool output_end(struct output *output, char *why, size_t why_bytes);

/* Removes the part file. */
void output_abandon(struct output *output);

/* Writes the part file with `write`, which is false where there is no memory; false with the reason in `why`. */
bool output_fill(const char *part, bool (*write)(FILE *out, const void *context), const void *context, char *why,
                 size_t why_bytes);

bool output_is_one_file(const char *a, const char *b);
