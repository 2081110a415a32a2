/* Random numbers from a counter: the same (stream, index) gives the same bits on every machine. */
#pragma once
#include <stdint.h>

inline uint64_t random_bits(uint64_t stream, uint64_t index)
{
    uint64_t z = stream * 0xd1342543de82ef95u + index * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In [-1, 1). */
inline float random_signed(uint64_t stream, uint64_t index)
{
    return static_cast<float>(static_cast<int32_t>(random_bits(stream, index) >> 32)) * (1.0f / 2147483648.0f);
}

inline int random_below(uint64_t stream, uint64_t index, int limit)
{
    return static_cast<int>((random_bits(stream, index) >> 32) % static_cast<uint64_t>(limit));
}
