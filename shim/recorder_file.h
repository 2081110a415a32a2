/* Which file a process records into.
 *
 * REPRISE_TRACE is FILE. Of a process with a rank (RANK, OMPI_COMM_WORLD_RANK, ...: config.h) it is FILE.rankR. That
 * name goes to the first process that uses the device; any other one gets its own number behind it, FILE.PID or
 * FILE.rankR.PID. "First" is the first since the launcher started; without the launcher, one that finds nobody
 * writing there: what an earlier run left is overwritten then.
 * If FILE holds %p (the process's number) or %r (its rank, 0 if it has none), these are put in their places, nothing
 * is appended, and what is there is overwritten unless somebody is writing it. %% stands for %.
 *
 * Whoever writes a file holds a lock on it (fcntl), so nobody writes into another's. */
#pragma once
#include "trace/file.h"

#define RECORDER_PATH_MOST 4096

/* The name without a process's number behind it; `is_whole`: the pattern says all, nothing is to be appended. False:
 * too long, or a % that means nothing. */
bool recorder_file_name(const char *pattern, uint32_t rank, uint32_t process, char out[RECORDER_PATH_MOST],
                        bool *is_whole);

/* NULL: said why. */
struct trace_writer *recorder_file_open(void);
