/* Our own device kernels: their names, arguments and launch shapes. Shared by shim/kernels.cu (compiled to PTX)
 * and the C code that launches them.
 *
 * Each kernel takes one by-value struct: void *params[] = {&arguments}. Those that walk over a buffer exist
 * in two forms with the same result:
 *   _runs      each thread walks over a contiguous run; for devices with few, fast processors
 *   _strided   neighbouring threads touch neighbouring words; for GPUs (coalesced accesses)
 * kernels_shape chooses. Addresses are device addresses unless said otherwise. Nothing here waits. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* name, argument struct; X-list: enum, table of names and look-ups come from here */
#define KERNELS_LIST(K)                                                                                                \
    K(fingerprint_runs)                                                                                                \
    K(fingerprint_strided)                                                                                             \
    K(compare_bytes_runs)                                                                                              \
    K(compare_bytes_strided)                                                                                           \
    K(scan_pointers_runs)                                                                                              \
    K(scan_pointers_strided)                                                                                           \
    K(fill_pattern_runs)                                                                                               \
    K(fill_pattern_strided)                                                                                            \
    K(count_pattern_runs)                                                                                              \
    K(count_pattern_strided)                                                                                           \
    K(repair_runs)                                                                                                     \
    K(repair_strided)                                                                                                  \
    K(compare_fingerprints)

enum kernels_index {
#define K(name) KERNELS_##name,
    KERNELS_LIST(K)
#undef K
        KERNELS_COUNT
};

/* The symbol of kernel i is "reprise_" and its name. */
#define KERNELS_SYMBOL_PREFIX "reprise_"

/* Adds a 128-bit sum over the buffer to slot[0], slot[1] (the caller zeroes them). The sum does not depend on the
 * order in which it is made; it depends on every byte and on where it stands. Any alignment, any size; fast if
 * `data` is a multiple of 8. Running it c times on the same bytes gives c times the sum, modulo 2^64. */
struct kernels_fingerprint {
    uint64_t data, bytes;
    uint64_t slot;      /* uint64_t[2] */
    uint64_t run_words; /* from kernels_shape, as in every struct below */
};

/* Adds to *different the number of 8-byte words (the last may be partial) in which the two buffers differ. */
struct kernels_compare_bytes {
    uint64_t left, right, bytes; /* either may be pinned host memory */
    uint64_t different;          /* uint64_t */
    uint64_t run_words;
};

/* If *different is not 0: copies the buffer from `copy`, and reports `index`. Else does nothing. So a comparison can be
 * acted on in stream order, and nobody waits for it. */
struct kernels_repair {
    uint64_t data, copy, bytes; /* `copy` may be pinned host memory */
    uint64_t different;         /* uint64_t */
    uint64_t report;            /* struct kernels_report, in pinned host memory */
    uint64_t index;
    uint64_t run_words;
};

/* Appends every 8-byte-aligned word w of the buffer with low <= w < high to list. found[0] counts all of them, also
 * those beyond `capacity`, which are not written: found[0] > capacity is the overflow. data must be a multiple of 8. */
struct kernels_scan_pointers {
    uint64_t data, bytes;
    uint64_t low, high;
    uint64_t list; /* uint64_t[capacity] */
    uint64_t capacity;
    uint64_t found; /* uint64_t */
    uint64_t run_words;
};

/* Fills the buffer with words that depend on seed and position; none of them is 0 in all bytes for long. */
struct kernels_fill_pattern {
    uint64_t data, bytes;
    uint64_t seed;
    uint64_t run_words;
};

/* What is as fill_pattern left it: adds to count[0] the number of aligned 4-byte words (the last may be partial), to
 * count[1] the number of bytes, and KERNELS_EDGE more for each of the first and the last byte. data: a multiple of 8.
 */
#define KERNELS_EDGE ((uint64_t)1 << 48)
struct kernels_count_pattern {
    uint64_t data, bytes;
    uint64_t seed;
    uint64_t count; /* uint64_t[2] */
    uint64_t run_words;
};

/* For each i < count: actual[i] must equal times[i] x expected[i] in both halves. If not, writes first + i to
 * report->index and then 1 to report->is_raised. With several mismatches one of them is reported. is_reset: actual[i]
 * is zeroed afterwards, ready for the next sum. */
struct kernels_report {
    uint64_t is_raised, index;
};

struct kernels_compare_fingerprints {
    uint64_t expected, actual; /* uint64_t[2 x count] each */
    uint64_t times;            /* uint32_t[count]; 0: all once */
    uint64_t count;
    uint64_t report; /* struct kernels_report, in pinned host memory */
    uint64_t first, is_reset;
};

struct kernels_shape {
    bool is_strided;
    uint32_t grid, block;
    uint64_t run_words;
};

#define KERNELS_RUN_WORDS      1024 /* 8 KiB per thread: two atomics per run are nothing beside it */
#define KERNELS_FEW_PROCESSORS 8

/* How to launch one of the buffer kernels over `bytes` (at least 1 block, also for 0 bytes). `processors` is
 * CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT. */
static inline struct kernels_shape kernels_shape(uint64_t bytes, uint32_t processors)
{
    uint64_t words = bytes / 8 + (bytes % 8 != 0);
    struct kernels_shape shape = {.is_strided = processors > KERNELS_FEW_PROCESSORS};
    if (shape.is_strided) {
        uint64_t most = (uint64_t)processors * 8; /* blocks of 256: a full multiprocessor */
        uint64_t wanted = words / (256ul * 8) + 1;
        shape.block = 256;
        shape.grid = (uint32_t)(wanted < most ? wanted : most);
    } else {
        uint64_t runs = words / KERNELS_RUN_WORDS + 1;
        shape.block = runs < 16 ? (uint32_t)runs : 16;
        shape.grid = (uint32_t)((runs + shape.block - 1) / shape.block);
        shape.run_words = KERNELS_RUN_WORDS;
    }
    return shape;
}

/* The launch for compare_fingerprints. */
static inline struct kernels_shape kernels_pair_shape(uint64_t count)
{
    struct kernels_shape shape = {.block = count < 128 ? (uint32_t)count + (count == 0) : 128};
    shape.grid = (uint32_t)((count + shape.block - 1) / shape.block + (count == 0));
    return shape;
}

/* The arithmetic of one word, used by the kernels and by whoever wants the same sum on the host. */
#ifdef __CUDACC__
#define KERNELS_INLINE static __device__ __forceinline__
#else
#define KERNELS_INLINE static inline
#endif

/* Multiplications of keyed halves (NH), with keys mixed from the position: equal words in other places, swapped
 * words and runs of zeros all show. The two sums must not both have the key 0 at a position: then a high half beside
 * a low half of zeros would not show at all. */
KERNELS_INLINE void kernels_absorb(uint64_t word, uint32_t position, uint64_t *first, uint64_t *second)
{
    uint32_t low = (uint32_t)word, high = (uint32_t)(word >> 32);
    uint32_t x = position * 0x9e3779b1u + 0x27d4eb2fu;
    x ^= x >> 15;
    uint32_t y = x * 0x85ebca77u;
    uint32_t z = (y ^ y >> 16) + 0x165667b1u;
    *first += (uint64_t)(low + y) * (uint32_t)(high + (x ^ 0x7f4a7c15u));
    *second += (uint64_t)(uint32_t)(low + z) * (uint32_t)(high + (y ^ 0xc2b2ae3du));
}

/* How many of its bytes are 0. */
KERNELS_INLINE uint64_t kernels_zero_bytes(uint64_t word)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7fu;
    uint64_t zeros = ~(((word & low) + low) | word | low);
    return (zeros >> 7) * 0x0101010101010101u >> 56;
}

KERNELS_INLINE uint64_t kernels_pattern(uint64_t position, uint64_t seed)
{
    uint64_t x = (position + seed) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29 ^ 0x5bd1e9955bd1e995u;
}
