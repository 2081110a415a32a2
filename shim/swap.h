/* Host copies of contents: swapping, and the copies that probation and audits keep.
 *
 * What a plan foresees is copied on a stream of our own in each direction, beside the kernels; what is needed at once,
 * on the stream of the operation that needs it. Buffers are pinned and pooled by size; a buffer that a copy still uses
 * is used again behind that copy.
 * Callers hold the engine's turn. */
#pragma once
#include "shim/streams.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct host_copy {
    void *memory;
    uint64_t bytes, capacity;
    struct last_use last;
    struct host_copy *next;
};

enum swap_reason { SWAP_TRAFFIC, SWAP_AUDIT }; /* counted apart */

struct swap_counts {
    uint64_t out_bytes, in_bytes, audited_bytes;
};

/* Copies `bytes` at `address` to the host, in order on `stream`. NULL: no host memory, or the driver failed. */
struct host_copy *swap_out(CUdeviceptr address, uint64_t bytes, uint32_t stream, enum swap_reason reason);
bool swap_in(struct host_copy *copy, CUdeviceptr address, uint32_t stream, enum swap_reason reason);
void swap_release(struct host_copy *copy);
enum swap_direction { SWAP_OUT, SWAP_IN };
/* The stream for copies that a plan foresees; `otherwise` if none could be made. */
uint32_t swap_stream(enum swap_direction direction, uint32_t otherwise);
/* Waits until the copy's bytes are on the host. */
void swap_finish(const struct host_copy *copy);

struct swap_speed {
    double out_bytes_per_ns, in_bytes_per_ns; /* to and from pinned host memory */
};

/* Copies `bytes` at `address`, memory that nobody else uses meanwhile, to the host and back a few times and waits for
 * it: the best speed of each. False, and 0: no host memory, or the driver failed. */
bool swap_measure(CUdeviceptr address, uint64_t bytes, uint32_t stream, struct swap_speed *speed);

struct swap_counts swap_count(void);
