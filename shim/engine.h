/* The engine behind the hooks: what the doors and hook_*.c files call. Everything that decides about
 * memory is behind this header.
 *
 * Threads: every function may be called from any thread with any context. Calls that submit work take the
 * engine's turn (engine.c), so that decisions and submissions happen in one order.
 * Re-entrancy: hooks call these only after gate_enter() succeeded; driver calls made by the engine do not
 * come back through the hooks.
 * Off: when no cap, no trace and no stats are wanted, engine_is_on() is false and hooks just forward. */
#pragma once
#include "shim/launch.h"

/* Reserves nothing and calls no driver function; reads the config. Called once by gate. */
bool engine_is_on(void);

/* Program-visible allocation of `bytes` on the current device. `stream` is CU_STREAM_* or a stream for
 * stream-ordered allocations, NULL for cuMemAlloc. CUDA_ERROR_OUT_OF_MEMORY when it cannot be met. */
CUresult engine_allocate(CUdeviceptr *out, size_t bytes, CUstream stream);

/* Frees an allocation. If `address` is not ours, *is_ours = false and nothing was done: the caller forwards. */
CUresult engine_free(CUdeviceptr address, CUstream stream, bool *is_ours);

/* Base and size of the allocation that holds `address`; false if it is not ours. For cuMemGetAddressRange
 * and pointer attributes. */
bool engine_find(CUdeviceptr address, CUdeviceptr *base, size_t *bytes);
bool engine_owns(CUdeviceptr address);
void engine_arena(CUdeviceptr *begin, CUdeviceptr *end); /* both 0 before the first allocation */

/* Runs the operation: makes what it touches resident, follows the plan, issues it. Never NULL uses. */
CUresult engine_submit(struct operation *operation);

/* The allocation that holds `address` becomes resident and is never dropped or moved again while it lives
 * (IPC, exports, textures, graphs, calls that we do not model). No-op for addresses that are not ours. */
CUresult engine_pin(CUdeviceptr address, const char *reason);

/* Host memory that the program copies to device memory at `destination` (0 if unknown): words that look
 * like arena addresses pin what they point to. Call before the copy is submitted. */
CUresult engine_scan(const void *host, size_t bytes, CUdeviceptr destination);

/* Device memory taken outside the arena (pools, arrays, managed, imports, the program's own cuMemCreate...).
 * Charge before the driver call: CUDA_ERROR_OUT_OF_MEMORY if it does not fit under the cap even after
 * evicting; refund when it is released or the driver call failed. */
CUresult engine_charge(size_t bytes, const char *what);
void engine_refund(size_t bytes);

/* The same for variables of modules. They are small and many, and share frames: only their sum is rounded up. What is
 * said before the program has a context is charged when the engine opens. */
CUresult engine_charge_variables(size_t bytes);
void engine_refund_variables(size_t bytes);

/* To be called when a call that lets the program see device results (copies to the host, synchronise, event
 * query/synchronise, stream query) has returned: looks at the mismatch flag (comparisons are enqueued right behind
 * every rebuild) and stops the process with a reason if it is up; returns `result`. */
CUresult engine_after_sync(CUresult result);

/* A host function of the program's is about to be enqueued on `stream`: one of ours goes before it that looks at the
 * flag. Not under capture. */
void engine_before_host_function(CUstream stream);

/* A stream or context is about to be destroyed. */
void engine_stream_destroyed(CUstream stream);
void engine_context_destroyed(CUcontext context);

/* cuMemGetInfo / cuDeviceTotalMem under a cap; false: no cap, forward. Either pointer may be NULL. */
bool engine_memory_info(size_t *free_bytes, size_t *total_bytes);

/* At exit: writes --stats, the closing line. In a forked child: nothing. */
void engine_finish(void);

/* Writes the stats and ends the process with status 3: no wrong result may get out. The reason was said. */
__attribute__((noreturn)) void engine_stop(void);
