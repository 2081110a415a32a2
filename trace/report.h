/* A trace as a page of text: where the memory goes, what it costs to do without. */
#pragma once
#include "trace/file.h"
#include <stdio.h>

/* False if there is no memory. */
bool report_write(FILE *out, const struct trace *trace);

/* "12.3 MiB". Overwrites its buffer of 16 bytes. */
const char *report_size(uint64_t bytes, char *buffer);

/* The part of a mangled C++ name that a reader knows: "relu_forward_kernel". At most `bytes` bytes with the NUL. */
void report_plain_name(const char *mangled, char *out, size_t bytes);
