/* links: tests/device/whole.c */
#include "tests/unit/device_fixture.h"

static CUmemGenericAllocationHandle create(size_t bytes)
{
    CUmemAllocationProp properties = device_memory();
    CUmemGenericAllocationHandle handle;
    succeeds(cuMemCreate(&handle, bytes, &properties, 0));
    return handle;
}

static CUdeviceptr reserve(size_t bytes)
{
    CUdeviceptr base;
    succeeds(cuMemAddressReserve(&base, bytes, 0, 0, 0));
    return base;
}

static void granularity_is_the_setting(void **unused)
{
    (void)unused;
    CUmemAllocationProp properties = device_memory();
    size_t bytes;
    succeeds(cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    assert_int_equal(bytes, FRAME);
    fails(cuMemGetAllocationGranularity(NULL, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    properties.location.id = 1;
    fails(cuMemGetAllocationGranularity(&bytes, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
    properties.type = 0;
    fails(cuMemGetAllocationGranularity(&bytes, &properties, 0), CUDA_ERROR_INVALID_VALUE);
}

static void reserve_refuses(void **unused)
{
    (void)unused;
    CUdeviceptr base;
    fails(cuMemAddressReserve(&base, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAddressReserve(&base, FRAME + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAddressReserve(&base, FRAME, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAddressReserve(&base, FRAME, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAddressReserve(NULL, FRAME, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAddressReserve(&base, (size_t)1 << 60, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    succeeds(cuMemAddressReserve(&base, FRAME, 1 << 20, 0, 0));
    assert_int_equal(base % (1 << 20), 0);
    fails(cuMemAddressFree(base, 2 * FRAME), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAddressFree(base + FRAME, FRAME), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemAddressFree(base, FRAME));
    fails(cuMemAddressFree(base, FRAME), CUDA_ERROR_INVALID_VALUE);
}

static void create_refuses(void **unused)
{
    (void)unused;
    CUmemAllocationProp properties = device_memory();
    CUmemGenericAllocationHandle handle;
    fails(cuMemCreate(&handle, 0, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemCreate(&handle, FRAME / 2, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemCreate(&handle, FRAME, &properties, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemCreate(&handle, FRAME, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemCreate(&handle, DEVICE_BYTES + FRAME, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
    fails(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
    properties.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    fails(cuMemCreate(&handle, FRAME, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
}

static void map_refuses(void **unused)
{
    (void)unused;
    CUdeviceptr base = reserve(4 * FRAME);
    CUmemGenericAllocationHandle handle = create(2 * FRAME);
    fails(cuMemMap(base, FRAME, FRAME, handle, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemMap(base, 3 * FRAME, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemMap(base, 2 * FRAME, 0, handle, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemMap(base + 1, FRAME, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemMap(base + 3 * FRAME, 2 * FRAME, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemMap(base, 2 * FRAME, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr elsewhere;
    succeeds(cuMemAlloc_v2(&elsewhere, 4 * FRAME));
    fails(cuMemMap(elsewhere, FRAME, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemFree_v2(elsewhere));
    succeeds(cuMemMap(base, 2 * FRAME, 0, handle, 0));
    fails(cuMemMap(base + FRAME, FRAME, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAddressFree(base, 4 * FRAME), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemFree_v2(base), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemUnmap(base, 2 * FRAME));
    succeeds(cuMemRelease(handle));
    succeeds(cuMemAddressFree(base, 4 * FRAME));
}

static void unmap_takes_whole_mappings(void **unused)
{
    (void)unused;
    CUdeviceptr base = reserve(4 * FRAME);
    CUmemGenericAllocationHandle two = create(2 * FRAME), one = create(FRAME);
    succeeds(cuMemMap(base, 2 * FRAME, 0, two, 0));
    succeeds(cuMemMap(base + 2 * FRAME, FRAME, 0, one, 0));
    fails(cuMemUnmap(base, FRAME), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemUnmap(base + FRAME, FRAME), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemUnmap(base, 4 * FRAME), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemUnmap(base, 0), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemUnmap(base, 3 * FRAME));
    fails(cuMemUnmap(base, 3 * FRAME), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemRelease(one));
    succeeds(cuMemRelease(two));
    succeeds(cuMemAddressFree(base, 4 * FRAME));
}

static void access_is_set_anew(void **unused)
{
    (void)unused;
    CUdeviceptr base = reserve(2 * FRAME);
    CUmemGenericAllocationHandle handle = create(FRAME);
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    unsigned long long flags = 99;
    fails(set_access(base, FRAME, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemMap(base, FRAME, 0, handle, 0));
    succeeds(cuMemGetAccess(&flags, &location, base));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    fails(set_access(base, 2 * FRAME, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_ERROR_INVALID_VALUE);
    fails(set_access(base, FRAME, 2), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemSetAccess(base, FRAME, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    succeeds(set_access(base, FRAME, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    succeeds(cuMemGetAccess(&flags, &location, base + 5));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    succeeds(cuMemUnmap(base, FRAME));
    fails(cuMemGetAccess(&flags, &location, base), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemMap(base, FRAME, 0, handle, 0));
    succeeds(cuMemGetAccess(&flags, &location, base));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    succeeds(cuMemUnmap(base, FRAME));
    succeeds(cuMemRelease(handle));
    succeeds(cuMemAddressFree(base, 2 * FRAME));
}

static void aliases_are_real(void **unused)
{
    (void)unused;
    CUdeviceptr base = reserve(8 * FRAME);
    CUmemGenericAllocationHandle a = create(2 * FRAME), b = create(FRAME);
    succeeds(cuMemMap(base, 2 * FRAME, 0, a, 0));
    succeeds(cuMemMap(base + 2 * FRAME, FRAME, 0, b, 0));
    succeeds(cuMemMap(base + 4 * FRAME, FRAME, 0, b, 0));
    succeeds(cuMemMap(base + 5 * FRAME, 2 * FRAME, 0, a, 0));
    succeeds(set_access(base, 3 * FRAME, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    succeeds(set_access(base + 4 * FRAME, 3 * FRAME, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    succeeds(cuMemsetD32_v2(base, 0x11111111, FRAME / 2));
    succeeds(cuMemsetD32_v2(base + 4 * FRAME, 0x22222222, FRAME / 4));
    static uint32_t words[3 * FRAME / 4];
    succeeds(cuMemcpyDtoH_v2(words, base, sizeof words));
    for (size_t i = 0; i < sizeof words / 4; i++)
        assert_int_equal(words[i], i < FRAME / 2 ? 0x11111111 : 0x22222222);
    succeeds(cuMemcpyDtoH_v2(words, base + 5 * FRAME, 2 * FRAME));
    assert_int_equal(words[FRAME / 4 + 7], 0x11111111);
    succeeds(cuMemUnmap(base, 3 * FRAME));
    succeeds(cuMemUnmap(base + 4 * FRAME, 3 * FRAME));
    succeeds(cuMemRelease(a));
    succeeds(cuMemRelease(b));
    succeeds(cuMemAddressFree(base, 8 * FRAME));
}

/* Frames go back only when neither the handle nor a mapping holds them. */
static void memory_lives_as_long_as_its_holders(void **unused)
{
    (void)unused;
    size_t before = free_bytes();
    CUdeviceptr base = reserve(2 * FRAME);
    CUmemGenericAllocationHandle handle = create(FRAME), again;
    assert_int_equal(before - free_bytes(), FRAME);
    succeeds(cuMemMap(base, FRAME, 0, handle, 0));
    succeeds(cuMemRelease(handle));
    fails(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(before - free_bytes(), FRAME);
    succeeds(cuMemRetainAllocationHandle(&again, (void *)base));
    succeeds(cuMemMap(base + FRAME, FRAME, 0, again, 0));
    succeeds(cuMemUnmap(base, 2 * FRAME));
    assert_int_equal(before - free_bytes(), FRAME);
    CUmemAllocationProp properties;
    succeeds(cuMemGetAllocationPropertiesFromHandle(&properties, again));
    assert_int_equal(properties.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    succeeds(cuMemRelease(again));
    assert_int_equal(free_bytes(), before);
    fails(cuMemRetainAllocationHandle(&again, (void *)base), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemAddressFree(base, 2 * FRAME));
}

/* All frames in pieces, then the whole again: fragments are gathered. */
static void fragments_are_gathered(void **unused)
{
    (void)unused;
    CUmemGenericAllocationHandle handles[DEVICE_BYTES / FRAME];
    size_t count = free_bytes() / FRAME;
    for (size_t i = 0; i < count; i++)
        handles[i] = create(FRAME);
    assert_int_equal(free_bytes(), 0);
    CUdeviceptr memory;
    fails(cuMemAlloc_v2(&memory, 1), CUDA_ERROR_OUT_OF_MEMORY);
    for (size_t i = 0; i < count; i += 2)
        succeeds(cuMemRelease(handles[i]));
    size_t half = (count + 1) / 2 * FRAME;
    succeeds(cuMemAlloc_v2(&memory, half));
    succeeds(cuMemsetD8_v2(memory, 7, half));
    succeeds(cuCtxSynchronize());
    succeeds(cuMemFree_v2(memory));
    for (size_t i = 1; i < count; i += 2)
        succeeds(cuMemRelease(handles[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(granularity_is_the_setting),
        cmocka_unit_test(reserve_refuses),
        cmocka_unit_test(create_refuses),
        cmocka_unit_test(map_refuses),
        cmocka_unit_test(unmap_takes_whole_mappings),
        cmocka_unit_test(access_is_set_anew),
        cmocka_unit_test(aliases_are_real),
        cmocka_unit_test(memory_lives_as_long_as_its_holders),
        cmocka_unit_test(fragments_are_gathered),
    };
    return cmocka_run_group_tests(tests, start_device, NULL);
}
