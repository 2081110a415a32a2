/* Dropout from a counter-based generator (Philox 4x32, 10 rounds).
 *
 * The mask of element i depends on seed, offset and i alone; both are arguments of the kernel. A generator's
 * offset moves on with every call, as frameworks do, so no two calls draw the same numbers. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct generator {
    uint64_t seed, offset;
};

/* y = x * mask / keep, keep = the share that survives; mask holds 0 or 1 per element. */
void dropout_forward(float *y, uint8_t *mask, const float *x, size_t count, float keep, struct generator *generator);
void dropout_backward(float *dx, const float *dy, const uint8_t *mask, size_t count, float keep);
