/* What the tests of the engine's calls share: a device whose allocations hold contents that tell them apart. */
#pragma once
#include "tests/unit/child.h"
#include "tests/unit/fake_driver.h"
#include "tests/unit/network.h"

#include "shim/engine.h"

#define FRAME 16384u
#define LARGE (4u * FRAME)
#define WORDS (LARGE / 8)

static const struct machine *machine;

static inline void open_device(uint64_t device_frames, uint64_t cap_frames, enum fake_order order)
{
    fake_config.cap_bytes = cap_frames * FRAME;
    fake_config.log_level = getenv("UNITS_LOG") != NULL ? atoi(getenv("UNITS_LOG")) : 0;
    fake_open(&(struct fake_settings){
        .memory_bytes = device_frames * FRAME, .granularity = FRAME, .order = order, .seed = 9});
    machine = engine_machine_open(
        &(struct engine_machine){.stream = CU_STREAM_LEGACY, .is_readable = true, .cap_bytes = fake_config.cap_bytes});
}

static inline CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;
    REQUIRE_EQUAL(engine_allocate(&address, bytes, NULL), CUDA_SUCCESS);
    return address;
}

static inline void give_up(CUdeviceptr address)
{
    bool is_ours = false;
    REQUIRE_EQUAL(engine_free(address, NULL, &is_ours), CUDA_SUCCESS);
    REQUIRE(is_ours);
}

/* A content that tells which allocation it is. */
static inline void fill(CUdeviceptr address, uint64_t value)
{
    static uint64_t values[WORDS];
    for (uint64_t i = 0; i < WORDS; i++) {
        values[i] = value * 1000003 + i;
    }
    REQUIRE(machine->copy_in(address, values, LARGE));
}

static inline bool is_filled(CUdeviceptr address, uint64_t value)
{
    static uint64_t values[WORDS];
    REQUIRE(machine->copy_out(values, address, LARGE));
    for (uint64_t i = 0; i < WORDS; i++) {
        if (values[i] != value * 1000003 + i) {
            return false;
        }
    }
    return true;
}

static inline bool activate(CUdeviceptr address)
{
    return machine->launch(NETWORK_activate, &(struct network_arguments){.pointers = {address}, .words = WORDS});
}

/* `count` large allocations, all filled. */
static inline void fill_many(CUdeviceptr *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        list[i] = allocate(LARGE);
        fill(list[i], i + 1);
    }
}

#define engine_test(body)                                                                                              \
    static void test_##body(void **unused)                                                                             \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        assert_child(body, NULL);                                                                                      \
    }
