/* Sizes as people write them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* A whole or decimal number, then nothing, B, KB, MB, GB, TB (powers of 1000) or K, M, G, T, KiB, MiB, GiB, TiB (powers
 * of 1024), nothing else. False for anything else, for 0 and for what does not fit into 63 bits. No malloc, no stdio.
 */
bool size_parse(const char *text, uint64_t *bytes);
