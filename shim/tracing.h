/* What the engine tells the trace (--trace, record; trace/event.h): the stream of events, and analysed iterations.
 *
 * Without a trace every function returns at once. A trace that cannot be written is said once and otherwise ignored: it
 * never disturbs the program. Callers hold the engine's turn, but for tracing_stack. */
#pragma once
#include "shim/script.h"
#include "shim/space.h"
#include "shim/stats.h"
#include "trace/event.h"

struct touches; /* learn.h */

/* The calls that led here; 0: not known, or no trace. Before the turn is taken. */
uint32_t tracing_stack(void);

void tracing_open(void); /* the engine is open and the context current */
void tracing_finish(void);

void tracing_held(struct allocation *allocation, uint32_t stack);
void tracing_freed(const struct allocation *allocation);
/* Memory that Reprise takes for itself, for ever: fingerprints, scratch. */
void tracing_own(uint64_t bytes, const char *what);

/* Memory past the pool. What is given back is told apart by its size only: of equal sizes the newest goes. */
void tracing_charged(uint64_t bytes, const char *what, uint32_t stack);
void tracing_refunded(uint64_t bytes);

/* The number that the next operation gets. */
uint64_t tracing_next(void);
/* It has been submitted. */
void tracing_ran(const struct operation *operation, const struct touches *touches, uint32_t stream);
void tracing_replayed(const struct script_operation *operation, uint64_t number, uint32_t stream);
/* nanoseconds 0 or 1: not measured. */
void tracing_timed(uint64_t number, uint64_t nanoseconds);

void tracing_moved(enum trace_movement movement, uint64_t id, uint64_t bytes);
void tracing_phase(enum phase phase);

/* The next operation stands at this position of the main lane. */
void tracing_position(uint64_t position);
/* Iteration `index` was [begin, end) of the main lane. */
void tracing_iteration(uint64_t index, uint64_t begin, uint64_t end, enum phase phase);

/* The iteration of `script` and `problem`, whose fixed and swap figures are set. `index` is its number within the run.
 */
void tracing_write(const struct script *script, const struct policy_problem *problem, uint64_t index);
