/* Opens the memory modules over the fake driver, and what their tests share. */
#pragma once
#include "tests/unit/child.h"
#include "tests/unit/fake_driver.h"

#include "shim/frames.h"
#include "shim/streams.h"

#define CORE_FRAME 4096u

static inline void core_open_device(uint32_t device_frames, uint32_t cap_frames, bool is_strict, enum fake_order order)
{
    fake_open(&(struct fake_settings){
        .memory_bytes = (uint64_t)device_frames * CORE_FRAME, .granularity = CORE_FRAME, .order = order, .seed = 7});
    REQUIRE(frames_open(0, (uint64_t)cap_frames * CORE_FRAME, is_strict));
}

/* xorshift: the same sequence everywhere. */
static inline uint64_t core_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline uint32_t core_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(core_random(state) % limit);
}

/* Work for the queue: all words of a buffer become the same value. */
struct core_fill {
    uint64_t address, bytes, value;
};

static inline void core_run_fill(const void *arguments)
{
    const struct core_fill *fill = arguments;
    for (uint64_t i = 0; i < fill->bytes / 8; i++) {
        ((uint64_t *)fill->address)[i] = fill->value + i;
    }
}

static inline CUfunction core_fill_function(void)
{
    static CUfunction function;
    if (function == NULL) {
        function = fake_function("fill", sizeof(struct core_fill), core_run_fill, 1000);
    }
    return function;
}

/* Enqueues the fill on the stream with this number, and counts it. */
static inline void core_fill(uint64_t address, uint64_t bytes, uint64_t value, uint32_t stream)
{
    struct core_fill fill = {address, bytes, value};
    void *parameters[] = {&fill};
    REQUIRE_EQUAL(
        driver.cuLaunchKernel(core_fill_function(), 1, 1, 1, 1, 1, 1, 0, streams_handle(stream), parameters, NULL),
        CUDA_SUCCESS);
    streams_submitted(stream);
}

static inline bool core_is_filled(uint64_t address, uint64_t bytes, uint64_t value)
{
    for (uint64_t i = 0; i < bytes / 8; i++) {
        if (((const uint64_t *)address)[i] != value + i) {
            return false;
        }
    }
    return true;
}

#define core_test(body)                                                                                                \
    static void test_##body(void **unused)                                                                             \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        assert_child(body, NULL);                                                                                      \
    }
