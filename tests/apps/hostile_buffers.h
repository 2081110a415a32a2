/* Buffers that a second run of their kernels would not bring back, or that no launch names.
 *
 *     atomics   slots handed out by an atomic counter: the order of the entries is the order blocks ran in
 *     clock     what the clock said when each element was written
 *     sum       float sums by atomicAdd: rounding depends on the order blocks ran in
 *     pointer   filled and read only through a pointer that a kernel stored in device memory
 *
 * A buffer is made in the forward pass, when its digest goes to the host at once, and read again in the backward
 * pass: the digests are equal unless its bytes have changed in between. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum hostile_kind { HOSTILE_ATOMICS, HOSTILE_CLOCK, HOSTILE_SUM, HOSTILE_POINTER, HOSTILE_KINDS };

struct hostile_buffer {
    enum hostile_kind kind;
    uint32_t *data;
    uint32_t **holder; /* HOSTILE_POINTER: the device word that holds the way to `data` */
    size_t count;
    uint64_t digest;
};

const char *hostile_name(enum hostile_kind kind);
struct hostile_buffer hostile_make(enum hostile_kind kind, size_t count, int iteration);
/* Reads the buffer, frees it; true if it is what hostile_make() saw. */
bool hostile_verify(struct hostile_buffer *buffer);
