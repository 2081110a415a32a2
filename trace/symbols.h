/* From addresses to names: functions, files and lines of the frames of a trace, found afterwards in the files that the
 * program had loaded (ELF symbols, DWARF lines; libdw).
 *
 * A file counts only if its build id is the recorded one. Where it is missing, another one, or stripped, a frame is
 * told as module+offset. Everything is looked up once and kept: text stays valid until symbols_close. One thread at a
 * time. */
#pragma once
#include "trace/file.h"

struct symbols;

struct symbols_place {
    const char *function; /* demangled, without parameters; "libfoo.so+0x1234" if it is not known. Never NULL or "" */
    const char *file;     /* as the compiler or Python noted it; NULL: not known */
    const char *module;   /* last part of the path of the library or program; "python" for Python frames */
    uint32_t line;        /* 0: not known */
    bool is_python;
};

/* NULL if there is no memory. The trace must outlive it. */
struct symbols *symbols_open(const struct trace *trace);
void symbols_close(struct symbols *symbols);

/* The frame's innermost place. */
const struct symbols_place *symbols_frame(struct symbols *symbols, const struct trace_frame *frame);

/* Index of the frame in the stack that a reader wants to be told: the innermost one that belongs to the program and
 * not to the machinery below it (the CUDA runtime, Reprise, the C library, allocators' wrappers, Python's
 * standard library and site-packages). TRACE_NONE: an empty stack. */
uint32_t symbols_origin(struct symbols *symbols, uint32_t stack);

/* "function (file.c:12)" of that frame; "?" if there is no stack. Kept, and the same pointer for the same text: two
 * stacks have one call site if and only if the pointers are equal. */
const char *symbols_describe(struct symbols *symbols, uint32_t stack);
