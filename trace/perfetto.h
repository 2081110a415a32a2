/* A model as a trace of Perfetto (format: trace/perfetto.proto): counters of what was held and taken, a track of slices
 * per stream, tracks of iterations and phases, and flows from producers to consumers in the analysed iteration.
 *
 * A slice is as long as the operation took on the device, and begins when it was submitted, or when the one before it
 * on its stream and those that it reads from had ended; what was not measured is an instant. */
#pragma once
#include "trace/model.h"
#include <stdio.h>

/* Errors of writing are left in `out` (ferror). False if there is no memory. */
bool perfetto_write(FILE *out, const struct model *model);
