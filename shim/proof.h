/* Proofs: fingerprints on the device, comparison of what was rebuilt with what was dropped, and the scan for
 * pointers in device memory. Owner of the kernels in kernels.cu.
 *
 * A fingerprint is 128 bits, a sum over the words of the buffer, accumulated into a slot in device memory.
 * Nothing here waits but the functions that say so. The mismatch flag is in pinned host memory: the device
 * raises it, the host looks. Callers hold the engine's turn. */
#pragma once
#include "shim/streams.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define PROOF_NONE UINT32_MAX

/* Loads the kernels into the current context and takes the tables' memory. False: said why. */
bool proof_open(uint32_t stream);
bool proof_is_open(void);

/* Recording log: fingerprints in order of request. */
uint32_t proof_log(CUdeviceptr address, uint64_t bytes, uint32_t stream);
void proof_log_collect(uint32_t stream);       /* waits for everything logged */
const uint64_t *proof_log_get(uint32_t index); /* after collect: two words; NULL if unknown */
void proof_log_reset(void);
void proof_fill(CUdeviceptr address, uint64_t bytes, uint32_t stream);
/* How much of it is still as proof_fill left it; the log entry says for proof_is_unwritten whether that can be chance:
 * a byte in 256 is as it was by chance. */
uint32_t proof_log_unwritten(CUdeviceptr address, uint64_t bytes, uint32_t stream);
bool proof_is_unwritten(uint32_t index, uint64_t bytes);
/* The same bytes wherever it is: for contents that are compared although the program does not write all of them. */
void proof_fill_alike(CUdeviceptr address, uint64_t bytes, uint32_t stream);

/* Pointers in memory. */
void proof_scan(CUdeviceptr address, uint64_t bytes, uint32_t holder, uint32_t stream);
struct proof_pointer {
    uint64_t value;
    uint32_t holder;
};
/* Waits for all scans; gives what they found (valid until the next call). *is_overfull: not all was kept. */
uint32_t proof_scan_collect(uint32_t stream, const struct proof_pointer **found, bool *is_overfull);
bool proof_scan_is_pending(void);

/* A plan's comparisons: `count` versions, numbered by script_version.print. */
bool proof_plan(uint32_t count, uint32_t stream);
void proof_new_iteration(uint32_t stream); /* forgets expectations */
void proof_expect(uint32_t version, CUdeviceptr address, uint64_t bytes, uint32_t stream);
bool proof_is_expected(uint32_t version);
/* Enqueues fingerprint and comparison of what was rebuilt. */
void proof_rebuilt(uint32_t version, CUdeviceptr address, uint64_t bytes, uint32_t stream);
bool proof_mismatch(uint32_t *version); /* looks at the flag; does not wait */
/* Waits. Whether the rebuilt bytes equal the host copy (which is in pinned memory). */
bool proof_equals(CUdeviceptr address, const void *host, uint64_t bytes, uint32_t stream);
/* The same without waiting: what differs is copied back from the host copy in stream order, and reported. */
void proof_audit(uint32_t version, CUdeviceptr address, const void *host, uint64_t bytes, uint32_t stream);
/* Was something copied back since the last call? Does not wait. */
bool proof_repaired(uint32_t *version);
/* Waits. Compares just this version's fingerprint now. */
bool proof_verify_now(uint32_t version, CUdeviceptr address, uint64_t bytes, uint32_t stream);
uint64_t proof_device_bytes(void);
