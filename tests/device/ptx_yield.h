/* Threads of a block that walk memory side by side, as in a grid-stride loop, are kept in step: a point where each lets
 * the others go on is put ahead of the branch back. Else each thread would run its whole loop alone, and touch one
 * element of every cache line. Only for small inner loops over global memory that hold few values and that all threads
 * of a row leave together, or one part of it ahead of the rest; what the kernel computes is the same. */
#pragma once
#include "tests/device/ptx.h"

/* Before shapes and flow are built for code. Once per entry. */
void ptx_add_yields(struct ptx_module *module, struct ptx_function *entry);
