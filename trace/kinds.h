/* What an allocation is to the training: found afterwards from how long it lives and who reads and writes it.
 *
 * The run is cut into stretches: the iterations, and what lies before, between and after them. An allocation lasts if
 * operations of two stretches touch it. Its content is carried if most stretches read it before they overwrite it.
 * By the first rule that fits:
 *   outside      taken past the pool: arrays, pools, modules
 *   own          taken by Reprise for its own work
 *   unknown      touched by no operation
 *   weights      lasts, carried, and some operation on the device reads it and leaves it as it is
 *   state        lasts, carried: whatever reads it also writes it (momentum, running statistics)
 *   inputs       written only by copies from the host
 *   gradients    read by an operation that writes weights
 *   activations  lasts; or born in a stretch, written before its turn and read after it. The turn is where most bytes
 * are carried from their first write to their last read: where the backward pass begins workspace    touched by one
 * operation, or read by none temporaries  everything else */
#pragma once
#include "trace/file.h"

enum kind {
    KIND_UNKNOWN,
    KIND_WEIGHTS,
    KIND_STATE,
    KIND_GRADIENT,
    KIND_INPUT,
    KIND_ACTIVATION,
    KIND_TEMPORARY,
    KIND_WORKSPACE,
    KIND_OUTSIDE,
    KIND_OWN,
    KIND_COUNT
};

const char *kind_name(enum kind kind); /* "weights", "optimiser state", ... */

/* One per life of the trace, to be freed; NULL if there is no memory. */
unsigned char *kinds_make(const struct trace *trace);
