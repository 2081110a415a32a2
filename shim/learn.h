/* Recording: what the operations of the main lane touch, read and write, how long they take, and the script
 * and planning problem made from one iteration of it.
 *
 * Around every recorded operation each allocation it touches is fingerprinted on the device, before and after:
 * changed = written. What the kernel's code says it may store through is added. A fresh allocation is filled
 * with a pattern first, so that any write shows.
 * A content that changed between two recorded operations was written by someone we did not see: the
 * allocation is `unexplained`, fixed where it is, and no operation that reads it is replayed.
 * Positions are counts of recorded operations since learn_begin. Callers hold the engine's turn. */
#pragma once
#include "shim/script.h"
#include "shim/space.h"

/* What one operation touches: its uses grouped by allocation, and what is reached through pointers in memory. */
struct touch {
    uint32_t allocation;
    bool is_stored, is_loaded; /* may be, by what is known of the operation */
    bool is_exact;             /* is_stored and is_loaded are facts, not possibilities */
    bool is_full_write;        /* overwrites every byte without reading */
    bool is_hidden;
    bool was_fresh;
    bool is_published; /* its address may be stored in memory by the operation */
};

#define TOUCHES_MAX 1024

struct touches {
    uint32_t count;
    struct touch items[TOUCHES_MAX];
    uint32_t of_use[LAUNCH_MAX_USES]; /* touch index of each use; SCRIPT_NONE: dangling address */
    bool is_overfull;                 /* more than fit: the operation cannot be planned */
};

void learn_begin(void);
bool learn_is_on(void);
void learn_stop(void);
uint32_t learn_count(void); /* operations recorded */

void learn_allocated(struct allocation *allocation);
void learn_freed(struct allocation *allocation);

/* Before and after the operation is issued on `stream`. The first returns the record's number, SCRIPT_NONE if the
 * record had to be dropped (counted): then the window that holds it is unusable. */
uint32_t learn_before(const struct operation *operation, uint64_t signature, struct touches *touches, uint32_t stream);
void learn_after(uint32_t record, const struct touches *touches, uint32_t stream);

/* An operation beside the main lane: what it does to memory that is not ours has no position in the recording. */
void learn_foreign(const struct operation *operation);

/* A recipe of this function was refuted: it is never replayed again. */
void learn_reject(CUfunction function, const char *name, const char *reason);
uint32_t learn_rejected(void);
bool learn_is_rejected(CUfunction function);

/* Builds script and problem for the window [first, first + count). They live until the next call with the same `bank`
 * (0 or 1). False: the window cannot be used; said why. cap and fixed bytes are left 0 for the caller. */
bool learn_make(uint32_t bank, uint32_t first, uint32_t count, uint32_t stream, struct script *script,
                struct policy_problem *problem);
/* Completes the script from script->plan. */
void learn_annotate(struct script *script, const struct policy_problem *problem);
uint64_t learn_dropped_records(void);
