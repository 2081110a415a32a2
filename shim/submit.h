/* Running one operation of the program: through the plan if one is in force, else with residency on demand.
 *
 * The main lane is the stream that most kernels are launched on; only its operations make up iterations. What other
 * lanes touch stays where it is while they use it. Callers hold the engine's turn. */
#pragma once
#include "shim/learn.h"

/* Issues the operation. `touches` is working memory of the caller. */
CUresult submit_operation(struct operation *operation, struct touches *touches);

uint32_t submit_lane(void);         /* stream number of the main lane; the legacy stream before one is known */
void submit_press(uint32_t stream); /* memory is short: residency is managed from now on, and recorded */
void submit_leave_plan(void);       /* ends the iteration in progress wherever it is */
void submit_yield_plan(void);       /* the same, if one is in progress that is not being left already */
