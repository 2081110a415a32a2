/* Iterations: where they begin and end, when one has been recorded well enough to be planned, and the plan.
 *
 * Every operation of the main lane passes iterate_arrived before it runs. Callers hold the engine's turn. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

bool iterate_open(void);
/* The next operation of the main lane has arrived. Afterwards follow_is_on() tells whether it belongs to a plan. */
void iterate_arrived(uint64_t signature, const char *kernel, uint32_t stream); /* kernel: NULL for copies and sets */
/* Another stream is the main lane from now on: what was seen of iterations does not count. */
void iterate_new_lane(void);
/* Memory is short and no plan is in force: recording begins (or begins anew). */
void iterate_record(uint32_t stream);
/* The plan was left in the middle of an iteration. */
void iterate_left(uint32_t stream);
/* The process ends: a complete iteration gets its row. Makes no driver call. */
void iterate_finish(void);
/* Smallest cap for which a plan is known, if the planner has said so; 0: it has not. */
uint64_t iterate_floor_bytes(void);
