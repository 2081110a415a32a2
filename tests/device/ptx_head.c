/* The text of the headers that emitted C starts with. They are included as well, so that a change of theirs rebuilds this. */
#include "tests/device/ptx_compile.h"
#include "tests/device/ptx_run.h"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "tests/device/ptx_prelude.h"

__asm__(".section .rodata\n"
        ".global ptx_head\n"
        "ptx_head:\n"
        ".incbin \"tests/device/ptx_run.h\"\n"
        ".incbin \"tests/device/ptx_prelude.h\"\n"
        ".global ptx_head_end\n"
        "ptx_head_end:\n"
        ".byte 0\n"
        ".previous\n");
