/* Trust in recipes: what is kept at a drop, and what is compared after a rebuild.
 *
 * Probation (and a random share of drops later: audits): a host copy of what is dropped; the rebuilt bytes are
 * compared at once. Where they differ, the copy is put back, the recipe's kernel is rejected for good, and a new
 * plan is asked for.
 * Always: the fingerprint taken at the first drop is compared, on the device, with that of what was rebuilt. A
 * mismatch has no copy to fall back on: the process stops before the program sees a wrong byte. */
#pragma once
#include "shim/live.h"

struct proven_counts {
    uint64_t verified, audited, mismatched;
};

/* The version's bytes are about to be dropped; is_held: the program can still get at them if the plan is left. False:
 * no host memory for the copy that must be kept. */
bool proven_dropping(struct live *live, uint32_t version, bool is_held);
/* The version was rebuilt in its place. False: the driver failed. */
bool proven_rebuilt(struct live *live, uint32_t version);
/* A recipe was refuted since the last call. */
bool proven_wants_new_plan(void);
struct proven_counts proven_count(void);
/* Looks at the device's flags, without waiting: an audit that failed rejects its recipe; a mismatch without a host copy
 * does not return. `script` names what they are about; may be NULL. */
void proven_look(const struct script *script);
