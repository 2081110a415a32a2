/* What is told at exit: one JSON object, DESIGN section 11. Counters are running totals; a row is the difference of
 * two snapshots. Callers hold the engine's turn. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum phase { PHASE_PASS_THROUGH, PHASE_RECORDING, PHASE_PROBATION, PHASE_PLANNED, PHASE_REACTIVE };

const char *phase_name(enum phase phase);

void stats_open(void);
void stats_launched(void);
void stats_set_phase(enum phase phase);
enum phase stats_phase(void);
void stats_demand(uint64_t bytes); /* what the program holds now */
void stats_out_of_memory(void);
void stats_planned(uint64_t nanoseconds, uint64_t peak_bytes, bool is_swapping);

/* Operation `position` is about to run. */
void stats_snapshot(uint64_t position);
/* One iteration is [last row's end, position); nothing happens if that is empty. */
void stats_row(uint64_t position);
/* Rows begin here: what came before was not part of an iteration. */
void stats_skip_to(uint64_t position);
uint64_t stats_rows_end(void);
uint64_t stats_launches_before(uint64_t position); /* kernel launches before that operation; 0 if it is forgotten */
uint32_t stats_row_count(void);

/* Writes the file; `path` may be NULL. The closing line is said at SAY_INFO. */
void stats_write(const char *path);
