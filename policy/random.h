/* Numbers that look random and are the same everywhere: SplitMix64 (Steele, Lea, Flood 2014). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

static inline uint64_t random_draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In [0, 1). */
static inline double random_share(uint64_t *state)
{
    return (double)(random_draw(state) >> 11) * 0x1p-53;
}

static inline uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return limit ? (uint32_t)(random_draw(state) % limit) : 0;
}
