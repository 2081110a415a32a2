/* The environment, read once, before the program's main; constant from then on.
 *
 * A malformed value ends the process with status 2 and one line that names it: never a silent default.
 *
 *   REPRISE_CAP         bytes of device memory for the job: 7GiB, 1.5GiB, 500MiB, 64KiB, 1GB, 4096 (trace/size.h);
 *                       unset: no cap
 *   REPRISE_SWAP        1 (default) or 0: may a plan move activations to host memory?
 *   REPRISE_STRICT      0 (default) or 1: unmap what is dropped, so that an unforeseen access faults
 *   REPRISE_VERIFY      always (default) or sample: which rebuilds are compared
 *   REPRISE_TRACE       file for the trace of the run (recorder_file.h)
 *   REPRISE_TRACE_RING  bytes that the events of one thread may take until they are written (default 8MiB); rounded up
 *                       to a power of two
 *   REPRISE_TRACE_NEW   0 (default) or 1: never overwrite a trace; the launcher has removed the old ones
 *   REPRISE_STATS       file for one JSON object at exit
 *   REPRISE_LOG         quiet, error, warning (default), info, debug
 *   REPRISE_MARKER      name of a kernel whose launch begins an iteration, in place of detection
 *   REPRISE_SEED        number that chooses which drops are audited (default 1)
 * Beside these, the rank of the process in its job: the first that is set and a number of RANK, OMPI_COMM_WORLD_RANK,
 * PMIX_RANK, PMI_RANK, MV2_COMM_WORLD_RANK, SLURM_PROCID, LOCAL_RANK; none if the matching size says that there is one
 * process only.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verify_mode { VERIFY_ALWAYS, VERIFY_SAMPLE };

struct config {
    uint64_t cap_bytes; /* 0: no cap */
    bool may_swap, is_strict;
    enum verify_mode verify_mode;
    const char *trace_path, *stats_path; /* NULL: not asked for */
    const char *marker;                  /* NULL: detect */
    uint64_t seed;
    uint64_t trace_ring_bytes; /* a power of two */
    bool is_trace_new;
    uint32_t rank; /* UINT32_MAX: none */
    int log_level; /* enum say_level */
};

/* Any thread, any time; async-signal-safe once main has started. */
const struct config *config(void);

/* Reads `environment` (NULL-terminated NAME=VALUE strings). False: *name is the variable at fault, *why what
 * it should have been. The strings must outlive the result. */
bool config_parse(char *const *environment, struct config *out, const char **name, const char **why);
