/* links: tests/device/whole.c */
#include "tests/unit/device_fixture.h"
#include "tests/device/stats.h"

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr memory = 0;
    succeeds(cuMemAlloc_v2(&memory, bytes));
    return memory;
}

static void small_ones_share_frames(void **unused)
{
    (void)unused;
    size_t before = free_bytes();
    CUdeviceptr small[100];
    for (size_t i = 0; i < 100; i++) {
        small[i] = allocate(i + 1);
        assert_int_equal(small[i] % 512, 0);
        for (size_t k = 0; k < i; k++)
            assert_true(small[k] + 512 <= small[i] || small[i] + 512 <= small[k]);
    }
    assert_int_equal(before - free_bytes(), FRAME);
    CUdeviceptr base;
    size_t bytes;
    succeeds(cuMemGetAddressRange_v2(&base, &bytes, small[41] + 41));
    assert_int_equal(base, small[41]);
    assert_int_equal(bytes, 42);
    fails(cuMemFree_v2(small[3] + 512 * 2000), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemFree_v2(small[3] + 1), CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < 100; i++)
        succeeds(cuMemFree_v2(small[i]));
    fails(cuMemFree_v2(small[3]), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(free_bytes(), before);
}

static void large_ones_have_their_own(void **unused)
{
    (void)unused;
    size_t before = free_bytes();
    CUdeviceptr a = allocate(FRAME), b = allocate(FRAME + 1);
    assert_int_equal(before - free_bytes(), 3 * FRAME);
    fails(cuMemFree_v2(b + FRAME), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemFree_v2(a));
    fails(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemGetAddressRange_v2(NULL, NULL, a), CUDA_ERROR_NOT_FOUND);
    succeeds(cuMemFree_v2(b));
    assert_int_equal(free_bytes(), before);
}

static void refuses_what_does_not_fit(void **unused)
{
    (void)unused;
    CUdeviceptr memory = 1;
    fails(cuMemAlloc_v2(&memory, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAlloc_v2(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAlloc_v2(&memory, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    fails(cuMemAlloc_v2(&memory, free_bytes() + 1), CUDA_ERROR_OUT_OF_MEMORY);
    memory = allocate(free_bytes());
    CUdeviceptr more;
    fails(cuMemAlloc_v2(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(stats_peak(), DEVICE_BYTES);
    succeeds(cuMemFree_v2(memory));
}

/* Parked allocations of one size make way for one of another. */
static void freed_memory_serves_other_sizes(void **unused)
{
    (void)unused;
    size_t total = free_bytes(), count = total / (2 * FRAME);
    CUdeviceptr pieces[DEVICE_BYTES / FRAME];
    for (size_t i = 0; i < count; i++)
        pieces[i] = allocate(2 * FRAME);
    for (size_t i = 0; i < count; i++)
        succeeds(cuMemFree_v2(pieces[i]));
    CUdeviceptr whole = allocate(total);
    succeeds(cuMemsetD8_v2(whole, 1, total));
    succeeds(cuMemFree_v2(whole));
    CUdeviceptr again = allocate(2 * FRAME);
    succeeds(cuMemFree_v2(again));
    assert_int_equal(free_bytes(), total);
}

static void copies_check_their_addresses(void **unused)
{
    (void)unused;
    char host[64] = "abc";
    CUdeviceptr memory = allocate(FRAME);
    fails(cuMemcpyHtoD_v2(memory, host, FRAME + 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemcpyHtoD_v2((CUdeviceptr)host, host, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemcpyDtoH_v2(host, 0, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemsetD32_v2(memory + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemsetD8_v2(memory, 0, FRAME + 1), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemcpyHtoD_v2(memory, host, 0));
    succeeds(cuMemFree_v2(memory));
    fails(cuMemcpyHtoD_v2(memory, host, 4), CUDA_ERROR_INVALID_VALUE);
}

static void rows_and_boxes_arrive(void **unused)
{
    (void)unused;
    unsigned char from[6][16], to[6][16];
    for (size_t i = 0; i < sizeof from; i++)
        ((unsigned char *)from)[i] = (unsigned char)i;
    memset(to, 0, sizeof to);
    size_t pitch;
    CUdeviceptr memory;
    succeeds(cuMemAllocPitch_v2(&memory, &pitch, 10, 6, 4));
    CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = from,
                        .srcPitch = 16,
                        .srcXInBytes = 2,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = memory,
                        .dstPitch = pitch,
                        .WidthInBytes = 10,
                        .Height = 6};
    CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = memory,
                         .srcPitch = pitch,
                         .srcY = 1,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = to,
                         .dstPitch = 16,
                         .WidthInBytes = 10,
                         .Height = 5};
    succeeds(cuMemcpy2D_v2(&in));
    succeeds(cuMemcpy2D_v2(&out));
    for (size_t row = 0; row < 5; row++)
        assert_memory_equal(to[row], from[row + 1] + 2, 10);
    assert_int_equal(to[5][0], 0);
    succeeds(cuMemsetD2D8_v2(memory, pitch, 9, 3, 2));
    succeeds(cuMemcpyDtoH_v2(to, memory + pitch, 4));
    assert_int_equal(to[0][2], 9);
    assert_int_equal(to[0][3], from[1][5]);
    in.dstPitch = 4;
    fails(cuMemcpy2D_v2(&in), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemFree_v2(memory));
}

static void pointers_know_what_they_are(void **unused)
{
    (void)unused;
    CUdeviceptr memory = allocate(2 * FRAME), start = 0, at_device = 0;
    void *pinned;
    unsigned type = 0;
    size_t bytes = 0;
    succeeds(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 9));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    succeeds(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 9));
    succeeds(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory + 9));
    assert_int_equal(start, memory);
    assert_int_equal(bytes, 2 * FRAME);
    fails(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&type), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemHostAlloc(&pinned, 100, 0));
    succeeds(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)pinned + 99));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    succeeds(cuMemHostGetDevicePointer_v2(&at_device, pinned, 0));
    assert_int_equal(at_device, (CUdeviceptr)pinned);
    succeeds(cuMemsetD8_v2(at_device, 5, 100));
    assert_int_equal(((char *)pinned)[99], 5);
    succeeds(cuMemFreeHost(pinned));
    fails(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
    static char own[100];
    succeeds(cuMemHostRegister_v2(own, sizeof own, 0));
    fails(cuMemHostRegister_v2(own + 50, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    fails(cuMemFreeHost(own), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemHostUnregister(own));
    fails(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    succeeds(cuMemFree_v2(memory));
}

static void pools_count(void **unused)
{
    (void)unused;
    CUmemoryPool pool;
    CUstream stream;
    CUdeviceptr memory, all;
    cuuint64_t used = 1, high = 0;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    succeeds(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    succeeds(cuMemPoolCreate(&pool, &properties));
    succeeds(cuMemAllocFromPoolAsync(&memory, 3 * FRAME, pool, stream));
    succeeds(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 3 * FRAME);
    size_t rest = free_bytes();
    succeeds(cuMemFreeAsync(memory, stream));
    /* Does not fit before the free is reached: waits for it. */
    succeeds(cuMemAllocAsync(&all, rest + 3 * FRAME, stream));
    succeeds(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    succeeds(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &high));
    assert_int_equal(used, 0);
    assert_int_equal(high, 3 * FRAME);
    fails(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemFreeAsync(all, stream));
    succeeds(cuStreamSynchronize(stream));
    succeeds(cuMemPoolDestroy(pool));
    succeeds(cuStreamDestroy_v2(stream));
}

static void a_context_takes_its_memory_with_it(void **unused)
{
    (void)unused;
    size_t before = free_bytes();
    CUcontext context;
    succeeds(cuCtxCreate_v2(&context, 0, 0));
    allocate(5);
    CUdeviceptr large = allocate(3 * FRAME);
    allocate(500);
    assert_int_equal(before - free_bytes(), 4 * FRAME);
    succeeds(cuCtxDestroy_v2(context));
    assert_int_equal(free_bytes(), before);
    fails(cuMemFree_v2(large), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ones_share_frames),
        cmocka_unit_test(large_ones_have_their_own),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(freed_memory_serves_other_sizes),
        cmocka_unit_test(copies_check_their_addresses),
        cmocka_unit_test(rows_and_boxes_arrive),
        cmocka_unit_test(pointers_know_what_they_are),
        cmocka_unit_test(pools_count),
        cmocka_unit_test(a_context_takes_its_memory_with_it),
    };
    return cmocka_run_group_tests(tests, start_device, NULL);
}
