/* A trace as a page of text: where the memory goes, what it costs to do without. */
#pragma once
#include "trace/model.h"
#include "trace/terminal.h"
#include <stdio.h>

/* At most terminal->rows - 1 lines (from 24 on) of at most terminal->columns columns (from 80 on). Bytes of names that
 * a terminal would act upon are written as '?'. False if there is no memory. */
bool report_page(FILE *out, const struct model *model, const struct terminal *terminal);

/* The page of a trace for a file or a pipe. */
bool report_write(FILE *out, const struct trace *trace);

/* "12.3 MiB". Overwrites its buffer of 16 bytes. */
const char *report_size(uint64_t bytes, char *buffer);

/* "12.3 ms". Overwrites its buffer of 16 bytes. */
const char *report_time(double seconds, char *buffer);

/* The part of a mangled C++ name that a reader knows: "relu_forward_kernel". At most `bytes` bytes with the NUL. */
void report_plain_name(const char *mangled, char *out, size_t bytes);

/* Bytes of the well-formed UTF-8 character at the beginning of `text`; 0: there is none. */
size_t report_character_bytes(const char *text);
