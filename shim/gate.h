/* Who may enter the engine.
 *
 * A hook asks gate_enter() first. True: this call belongs to the engine; gate_leave() must follow on every
 * way out. False: forward to the driver and do nothing else. It is false
 *   - when neither cap nor trace nor stats are wanted (decided at the first call);
 *   - on a thread that is already inside: whatever the driver or the engine calls goes straight through;
 *   - in a child of fork, once its parent had entered: contexts and locks do not survive fork;
 *   - after the program has begun to exit and the engine has finished.
 * Between the two calls signals may arrive and the thread may be cancelled only where the driver allows it.
 * errno is the same after gate_leave as before gate_enter. */
#pragma once
#include <cuda.h>
#include <stdbool.h>

bool gate_enter(void);
CUresult gate_leave(CUresult result); /* returns `result` */
