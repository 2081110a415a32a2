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

/* A stack with the calls in it that the compiler inlined; what is told as one frame may be several places. */
struct symbols_stack {
    const struct symbols_place **places; /* innermost first */
    uint32_t count;
    uint32_t origin; /* TRACE_NONE: there are no places. Else the one that a reader wants to be told: the innermost one
                        that belongs to the program and not to the machinery below it (the CUDA runtime and the stubs of
                        kernels, Reprise, the C library, Python's standard library and site-packages) */
};

/* Kept: the same pointer for the same number. Number 0, and without memory: no places. */
const struct symbols_stack *symbols_stack(struct symbols *symbols, uint32_t number);
