// Our device kernels, compiled to PTX for compute_75 (see shim/kernels.h for what each does).
//
// No barriers, no shared memory, one atomic or two per thread; inner loops are kept rolled and simple, so that
// a translator to scalar code can vectorise them as well as a GPU can coalesce them.
#include "shim/kernels.h"

namespace {

// The words of one thread: first, first + step, ... below end.
struct walk {
    uint64_t first, end, step;
};

__device__ __forceinline__ uint64_t thread_number() {
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ walk walk_run(uint64_t words, uint64_t run_words) {
    uint64_t first = thread_number() * run_words;
    uint64_t end = first + run_words;
    return {first, end < words ? end : words, 1};
}

__device__ __forceinline__ walk walk_strided(uint64_t words) {
    return {thread_number(), words, (uint64_t)gridDim.x * blockDim.x};
}

__device__ __forceinline__ uint64_t load_bytes(const unsigned char *at, uint64_t count) {
    uint64_t word = 0;
#pragma unroll 1
    for (uint64_t i = 0; i < count; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

// The partial word at the end, or 0. Thread 0 takes it.
__device__ __forceinline__ uint64_t load_tail(uint64_t data, uint64_t bytes) {
    return load_bytes((const unsigned char *)(data + bytes / 8 * 8), bytes % 8);
}

// Step is a template parameter where it is 1: the loop is then recognisably contiguous.
template <bool is_strided>
__device__ __forceinline__ void fingerprint(const kernels_fingerprint &arguments) {
    uint64_t words = arguments.bytes / 8, first = 0, second = 0;
    walk mine = is_strided ? walk_strided(words) : walk_run(words, arguments.run_words);
    uint64_t step = is_strided ? mine.step : 1;
    if (arguments.data % 8 == 0) {
        const uint64_t *data = (const uint64_t *)arguments.data;
#pragma unroll 1
        for (uint64_t i = mine.first; i < mine.end; i += step)
            kernels_absorb(data[i], (uint32_t)i, &first, &second);
    } else {
#pragma unroll 1
        for (uint64_t i = mine.first; i < mine.end; i += step)
            kernels_absorb(load_bytes((const unsigned char *)arguments.data + 8 * i, 8), (uint32_t)i, &first, &second);
    }
    bool has_tail = thread_number() == 0 && arguments.bytes % 8 != 0;
    if (has_tail)
        kernels_absorb(load_tail(arguments.data, arguments.bytes), (uint32_t)words, &first, &second);
    if (mine.first < mine.end || has_tail) {
        atomicAdd((unsigned long long *)arguments.slot, first);
        atomicAdd((unsigned long long *)arguments.slot + 1, second);
    }
}

template <bool is_strided>
__device__ __forceinline__ void compare_bytes(const kernels_compare_bytes &arguments) {
    uint64_t words = arguments.bytes / 8, different = 0;
    walk mine = is_strided ? walk_strided(words) : walk_run(words, arguments.run_words);
    uint64_t step = is_strided ? mine.step : 1;
    if ((arguments.left | arguments.right) % 8 == 0) {
        const uint64_t *left = (const uint64_t *)arguments.left, *right = (const uint64_t *)arguments.right;
#pragma unroll 1
        for (uint64_t i = mine.first; i < mine.end; i += step)
            different += left[i] != right[i];
    } else {
#pragma unroll 1
        for (uint64_t i = mine.first; i < mine.end; i += step)
            different += load_bytes((const unsigned char *)arguments.left + 8 * i, 8) !=
                         load_bytes((const unsigned char *)arguments.right + 8 * i, 8);
    }
    if (thread_number() == 0 && arguments.bytes % 8 != 0)
        different += load_tail(arguments.left, arguments.bytes) != load_tail(arguments.right, arguments.bytes);
    if (different)
        atomicAdd((unsigned long long *)arguments.different, different);
}

template <bool is_strided>
__device__ __forceinline__ void scan_pointers(const kernels_scan_pointers &arguments) {
    uint64_t words = arguments.bytes / 8;
    walk mine = is_strided ? walk_strided(words) : walk_run(words, arguments.run_words);
    uint64_t step = is_strided ? mine.step : 1;
    const uint64_t *data = (const uint64_t *)arguments.data;
    uint64_t span = arguments.high - arguments.low;
#pragma unroll 1
    for (uint64_t i = mine.first; i < mine.end; i += step) {
        if (data[i] - arguments.low < span) {
            uint64_t at = atomicAdd((unsigned long long *)arguments.found, 1);
            if (at < arguments.capacity)
                ((uint64_t *)arguments.list)[at] = data[i];
        }
    }
}

template <bool is_strided>
__device__ __forceinline__ void fill_pattern(const kernels_fill_pattern &arguments) {
    uint64_t words = arguments.bytes / 8;
    walk mine = is_strided ? walk_strided(words) : walk_run(words, arguments.run_words);
    uint64_t step = is_strided ? mine.step : 1;
    unsigned char *bytes = (unsigned char *)arguments.data;
    if (arguments.data % 8 == 0) {
        uint64_t *data = (uint64_t *)arguments.data;
#pragma unroll 1
        for (uint64_t i = mine.first; i < mine.end; i += step)
            data[i] = kernels_pattern(i, arguments.seed);
    } else {
#pragma unroll 1
        for (uint64_t i = mine.first * 8; i < mine.end * 8; i += is_strided && i % 8 == 7 ? step * 8 - 7 : 1)
            bytes[i] = (unsigned char)(kernels_pattern(i / 8, arguments.seed) >> (i % 8 * 8));
    }
    if (thread_number() == 0)
#pragma unroll 1
        for (uint64_t i = words * 8; i < arguments.bytes; i++)
            bytes[i] = (unsigned char)(kernels_pattern(words, arguments.seed) >> (i % 8 * 8));
}

__device__ __forceinline__ void raise(uint64_t address, uint64_t index) {
    volatile kernels_report *report = (volatile kernels_report *)address;
    report->index = index;
    __threadfence_system();
    report->is_raised = 1;
}

template <bool is_strided>
__device__ __forceinline__ void repair(const kernels_repair &arguments) {
    if (*(const uint64_t *)arguments.different == 0)
        return;
    uint64_t words = arguments.bytes / 8;
    walk mine = is_strided ? walk_strided(words) : walk_run(words, arguments.run_words);
    uint64_t step = is_strided ? mine.step : 1;
    unsigned char *to = (unsigned char *)arguments.data;
    const unsigned char *from = (const unsigned char *)arguments.copy;
    if ((arguments.data | arguments.copy) % 8 == 0) {
#pragma unroll 1
        for (uint64_t i = mine.first; i < mine.end; i += step)
            ((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
    } else {
#pragma unroll 1
        for (uint64_t i = mine.first; i < mine.end; i += step)
#pragma unroll 1
            for (uint64_t j = 8 * i; j < 8 * i + 8; j++)
                to[j] = from[j];
    }
    if (thread_number() == 0) {
#pragma unroll 1
        for (uint64_t j = 8 * words; j < arguments.bytes; j++)
            to[j] = from[j];
        raise(arguments.report, arguments.index);
    }
}

template <bool is_strided>
__device__ __forceinline__ void count_pattern(const kernels_count_pattern &arguments) {
    uint64_t words = arguments.bytes / 8, count = 0, bytes = 0;
    walk mine = is_strided ? walk_strided(words) : walk_run(words, arguments.run_words);
    uint64_t step = is_strided ? mine.step : 1;
    const uint64_t *data = (const uint64_t *)arguments.data;
#pragma unroll 1
    for (uint64_t i = mine.first; i < mine.end; i += step) {
        uint64_t difference = data[i] ^ kernels_pattern(i, arguments.seed);
        count += ((uint32_t)difference == 0) + ((uint32_t)(difference >> 32) == 0);
        bytes += kernels_zero_bytes(difference);
    }
    if (thread_number() == 0 && arguments.bytes > 0) {
        const unsigned char *each = (const unsigned char *)arguments.data;
        uint64_t tail = arguments.bytes % 8, last = arguments.bytes - 1;
        if (tail) {
            uint64_t whole = load_tail(arguments.data, arguments.bytes) ^ kernels_pattern(words, arguments.seed);
            uint64_t mask = ((uint64_t)1 << 8 * tail) - 1, difference = whole & mask;
            count += (uint32_t)difference == 0;
            count += tail > 4 && (uint32_t)(difference >> 32) == 0;
            bytes += kernels_zero_bytes(difference | ~mask);
        }
        bytes += each[0] == (unsigned char)kernels_pattern(0, arguments.seed) ? KERNELS_EDGE : 0;
        bytes += each[last] == (unsigned char)(kernels_pattern(last / 8, arguments.seed) >> (last % 8 * 8)) ? KERNELS_EDGE
                                                                                                          : 0;
    }
    if (bytes) {
        atomicAdd((unsigned long long *)arguments.count, count);
        atomicAdd((unsigned long long *)arguments.count + 1, bytes);
    }
}

} // namespace

#define BUFFER_KERNEL(name) \
    extern "C" __global__ void reprise_##name##_runs(kernels_##name arguments) { \
        name<false>(arguments); \
    } \
    extern "C" __global__ void reprise_##name##_strided(kernels_##name arguments) { \
        name<true>(arguments); \
    }

BUFFER_KERNEL(fingerprint)
BUFFER_KERNEL(compare_bytes)
BUFFER_KERNEL(scan_pointers)
BUFFER_KERNEL(fill_pattern)
BUFFER_KERNEL(count_pattern)
BUFFER_KERNEL(repair)

extern "C" __global__ void reprise_compare_fingerprints(kernels_compare_fingerprints arguments) {
    uint64_t i = thread_number();
    if (i >= arguments.count)
        return;
    const uint64_t *expected = (const uint64_t *)arguments.expected + 2 * i;
    uint64_t *actual = (uint64_t *)arguments.actual + 2 * i;
    uint64_t times = arguments.times ? ((const uint32_t *)arguments.times)[i] : 1;
    bool is_equal = actual[0] == times * expected[0] && actual[1] == times * expected[1];
    if (arguments.is_reset)
        actual[0] = actual[1] = 0;
    if (is_equal)
        return;
    raise(arguments.report, arguments.first + i);
}
