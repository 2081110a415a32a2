/* What an allocation is to the training: found afterwards from how long it lives and who reads and writes it. */
#pragma once
#include "trace/file.h"

enum kind {
    KIND_UNKNOWN,    /* never touched by an operation */
    KIND_WEIGHTS,    /* outlives iterations; read by several operations of each, written at its end or never */
    KIND_OPTIMISER,  /* outlives iterations; touched only by the operations that write weights */
    KIND_GRADIENT,   /* outlives iterations, or is born late in one; read by the operations that write weights */
    KIND_INPUT,      /* filled from the host, read by few */
    KIND_ACTIVATION, /* born in an iteration, read again after others have run */
    KIND_TEMPORARY,  /* born in an iteration, read soon after it is written and freed */
    KIND_WORKSPACE,  /* touched by one operation at a time: written and read within it */
    KIND_OUTSIDE,    /* taken past the pool */
    KIND_OWN,        /* Reprise's */
    KIND_COUNT
};

const char *kind_name(enum kind kind); /* "weights", "optimiser state", ... */

/* One per life of the trace, to be freed; NULL if there is no memory. */
unsigned char *kinds_make(const struct trace *trace);
