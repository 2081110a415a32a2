/* Following a script: the program's operations are matched against it one by one, and what the plan wants
 * between them is done as they arrive. Decisions are made on the calling thread in launch order.
 *
 * An operation that is not the expected one ends the following: everything the program holds is restored, and
 * residency is on demand again until an iteration begins that matches. Callers hold the engine's turn. */
#pragma once
#include "shim/learn.h"
#include "shim/script.h"

struct follow_counts {
    uint64_t replayed, replayed_nanoseconds;
};

/* From now on this script is followed where iterations match; NULL: none. Not while an iteration is on. */
void follow_install(const struct script *script, bool is_probation, bool keeps_copies);
void follow_end_probation(void);
const struct script *follow_script(void);
bool follow_is_on(void);       /* an iteration is in progress */
bool follow_is_complete(void); /* ... and its last operation has been issued */

/* Could an iteration begin with this operation? */
bool follow_matches_start(uint64_t signature);
/* Begins one: all that is given is brought into frames. False: not possible now, nothing changed. */
bool follow_begin(uint32_t stream);
/* True: the operation was the expected one and was issued; *result is the driver's. False: it was not, or the plan
 * could not be carried out; the iteration was left, the operation was not issued. */
bool follow_operation(struct operation *operation, uint64_t signature, const struct touches *touches, uint32_t stream,
                      CUresult *result);
void follow_finish(void); /* a complete iteration: does what is left, ends it */
void follow_leave(void);  /* ends it wherever it is */
bool follow_is_leaving(void);

/* The program frees an allocation. True: the plan still needs its content and keeps the place. */
bool follow_free(struct allocation *allocation);
struct follow_counts follow_count(void);
#define FOLLOW_SHORT  "the plan ran out of frames"
#define FOLLOW_PINNED "the address of an activation became known outside the arguments"
const char *follow_trouble(void); /* why the last iteration was left; NULL: it was completed */
