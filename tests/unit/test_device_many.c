/* links: tests/device/whole.c */
/* Several devices: their memory, contexts, peers, and what a thread has current. */
#include "tests/unit/device_fixture.h"
#include "tests/unit/device_kernels.h"
#include "tests/device/stats.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICES 3

static CUcontext primaries[DEVICES];

static int begin(void **state)
{
    setenv("CPUDEV_COUNT", "3", 1);
    if (start_device(state) != 0)
        return -1;
    for (int i = 0; i < DEVICES; i++)
        if (cuDevicePrimaryCtxRetain(&primaries[i], i) != CUDA_SUCCESS)
            return -1;
    return 0;
}

static int on_first(void **state)
{
    (void)state;
    return cuCtxSetCurrent(primaries[0]) == CUDA_SUCCESS ? 0 : -1;
}

static void each_device_has_a_name_of_its_own(void **unused)
{
    (void)unused;
    int count = 0;
    succeeds(cuDeviceGetCount(&count));
    assert_int_equal(count, DEVICES);
    CUdevice device;
    fails(cuDeviceGet(&device, DEVICES), CUDA_ERROR_INVALID_DEVICE);
    fails(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
    CUuuid uuids[DEVICES];
    for (int i = 0; i < DEVICES; i++) {
        char address[16];
        int bus = -1;
        succeeds(cuDeviceGetUuid_v2(&uuids[i], i));
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(&uuids[i], &uuids[k], sizeof *uuids);
        succeeds(cuDeviceGetPCIBusId(address, sizeof address, i));
        succeeds(cuDeviceGetByPCIBusId(&device, address));
        assert_int_equal(device, i);
        succeeds(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
        assert_int_equal(bus, i);
    }
    fails(cuDeviceGetByPCIBusId(&device, "0000:55:00.0"), CUDA_ERROR_INVALID_DEVICE);
    fails(cuDeviceGetByPCIBusId(&device, "here"), CUDA_ERROR_INVALID_VALUE);
}

static void memory_is_counted_where_it_is(void **unused)
{
    (void)unused;
    CUdeviceptr first, second;
    size_t free_bytes_0 = free_bytes();
    succeeds(cuMemAlloc_v2(&first, DEVICE_BYTES / 2));
    succeeds(cuCtxSetCurrent(primaries[1]));
    assert_int_equal(free_bytes(), DEVICE_BYTES);
    succeeds(cuMemAlloc_v2(&second, DEVICE_BYTES));
    fails(cuMemAlloc_v2(&first, FRAME), CUDA_ERROR_OUT_OF_MEMORY);
    int device = -1;
    succeeds(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, second));
    assert_int_equal(device, 1);
    succeeds(cuCtxSetCurrent(primaries[0]));
    assert_int_equal(free_bytes(), free_bytes_0 - DEVICE_BYTES / 2);
    assert_int_equal(stats_peak(), DEVICE_BYTES + DEVICE_BYTES / 2);
    /* Freed from another device's context: it goes back to where it came from. */
    succeeds(cuMemFree_v2(second));
    succeeds(cuMemFree_v2(first));
    assert_int_equal(free_bytes(), free_bytes_0);
    succeeds(cuCtxSetCurrent(primaries[1]));
    assert_int_equal(free_bytes(), DEVICE_BYTES);
}

static void small_allocations_do_not_mix(void **unused)
{
    (void)unused;
    CUdeviceptr here, there;
    size_t before = free_bytes();
    succeeds(cuMemAlloc_v2(&here, 512));
    succeeds(cuCtxSetCurrent(primaries[2]));
    succeeds(cuMemAlloc_v2(&there, 512));
    assert_int_equal(free_bytes(), DEVICE_BYTES - FRAME);
    succeeds(cuCtxSetCurrent(primaries[0]));
    assert_int_equal(free_bytes(), before - FRAME);
    succeeds(cuMemFree_v2(here));
    succeeds(cuMemFree_v2(there));
}

static void peer_access_is_one_way_and_remembered(void **unused)
{
    (void)unused;
    int can = -1;
    succeeds(cuDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 1);
    succeeds(cuDeviceCanAccessPeer(&can, 1, 1));
    assert_int_equal(can, 0);
    fails(cuDeviceCanAccessPeer(&can, 0, DEVICES), CUDA_ERROR_INVALID_DEVICE);
    fails(cuDeviceCanAccessPeer(NULL, 0, 1), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuCtxEnablePeerAccess(primaries[1], 0));
    fails(cuCtxEnablePeerAccess(primaries[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    fails(cuCtxEnablePeerAccess(primaries[2], 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuCtxEnablePeerAccess(primaries[0], 0), CUDA_ERROR_INVALID_CONTEXT);
    fails(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
    fails(cuCtxDisablePeerAccess(primaries[2]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    succeeds(cuCtxDisablePeerAccess(primaries[1]));
    fails(cuCtxDisablePeerAccess(primaries[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CUcontext twin;
    succeeds(cuCtxCreate_v2(&twin, 0, 0));
    fails(cuCtxEnablePeerAccess(primaries[0], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    succeeds(cuCtxDestroy_v2(twin));
    int value = -1;
    succeeds(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 2));
    assert_int_equal(value, 1);
    fails(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 2, 2), CUDA_ERROR_INVALID_DEVICE);
    fails(cuDeviceGetP2PAttribute(&value, 99, 0, 2), CUDA_ERROR_INVALID_VALUE);
    fails(cuDeviceGetP2PAttribute(NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 2), CUDA_ERROR_INVALID_VALUE);
}

static void copies_cross_devices(void **unused)
{
    (void)unused;
    enum { BYTES = 3 * 65536 };
    static unsigned char from[BYTES], back[BYTES];
    CUdeviceptr here, there;
    for (size_t i = 0; i < BYTES; i++)
        from[i] = (unsigned char)(i * 7 + 3);
    succeeds(cuMemAlloc_v2(&here, BYTES));
    succeeds(cuMemcpyHtoD_v2(here, from, BYTES));
    succeeds(cuCtxSetCurrent(primaries[2]));
    succeeds(cuMemAlloc_v2(&there, BYTES));
    succeeds(cuMemcpyPeer(there, primaries[2], here, primaries[0], BYTES));
    succeeds(cuMemcpyDtoH_v2(back, there, BYTES));
    assert_memory_equal(from, back, BYTES);
    CUstream stream;
    succeeds(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    succeeds(cuMemsetD8_v2(there, 0, BYTES));
    succeeds(cuMemcpyPeerAsync(there, primaries[2], here, primaries[0], BYTES / 2, stream));
    CUDA_MEMCPY3D_PEER rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = here + BYTES / 2,
                               .srcContext = primaries[0],
                               .srcPitch = 1024,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = there + BYTES / 2,
                               .dstContext = primaries[2],
                               .dstPitch = 1024,
                               .WidthInBytes = 1024,
                               .Height = BYTES / 2048,
                               .Depth = 1};
    succeeds(cuMemcpy3DPeerAsync(&rows, stream));
    succeeds(cuStreamSynchronize(stream));
    succeeds(cuMemcpyDtoH_v2(back, there, BYTES));
    assert_memory_equal(from, back, BYTES);
    fails(cuMemcpyPeer(there, NULL, here, primaries[0], 1), CUDA_ERROR_INVALID_CONTEXT);
    rows.srcContext = NULL;
    fails(cuMemcpy3DPeer(&rows), CUDA_ERROR_INVALID_CONTEXT);
    fails(cuMemcpy3DPeer(NULL), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuStreamDestroy_v2(stream));
    succeeds(cuMemFree_v2(there));
    succeeds(cuMemFree_v2(here));
}

static void virtual_memory_has_access_per_device(void **unused)
{
    (void)unused;
    CUmemAllocationProp properties = device_memory();
    properties.location.id = 1;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base;
    CUmemLocation first = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, second = first;
    second.id = 1;
    unsigned long long flags = 99;
    size_t before = free_bytes();
    succeeds(cuMemCreate(&handle, FRAME, &properties, 0));
    assert_int_equal(free_bytes(), before);
    succeeds(cuMemAddressReserve(&base, FRAME, 0, 0, 0));
    succeeds(cuMemMap(base, FRAME, 0, handle, 0));
    CUmemAccessDesc access[] = {{second, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}, {first, CU_MEM_ACCESS_FLAGS_PROT_READ}};
    succeeds(cuMemSetAccess(base, FRAME, access, 2));
    succeeds(cuMemGetAccess(&flags, &first, base));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    succeeds(cuMemGetAccess(&flags, &second, base));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    second.id = 2;
    succeeds(cuMemGetAccess(&flags, &second, base));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    second.id = DEVICES;
    fails(cuMemGetAccess(&flags, &second, base), CUDA_ERROR_INVALID_DEVICE);
    access[0].location.id = DEVICES;
    fails(cuMemSetAccess(base, FRAME, access, 2), CUDA_ERROR_INVALID_DEVICE);
    properties.location.id = DEVICES;
    CUmemGenericAllocationHandle none;
    fails(cuMemCreate(&none, FRAME, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
    succeeds(cuMemUnmap(base, FRAME));
    succeeds(cuMemAddressFree(base, FRAME));
    succeeds(cuMemRelease(handle));
}

static void a_kernel_does_not_go_to_another_devices_stream(void **unused)
{
    (void)unused;
    CUmodule module;
    CUfunction store;
    CUstream other;
    CUdeviceptr word;
    succeeds(cuModuleLoadData(&module, test_ptx));
    succeeds(cuModuleGetFunction(&store, module, "store"));
    succeeds(cuMemAlloc_v2(&word, 4));
    succeeds(cuCtxSetCurrent(primaries[1]));
    succeeds(cuStreamCreate(&other, 0));
    CUdevice device = -1;
    succeeds(cuStreamGetDevice(other, &device));
    assert_int_equal(device, 1);
    succeeds(cuCtxSetCurrent(primaries[0]));
    unsigned value = 5;
    void *params[] = {&word, &value};
    fails(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, other, params, NULL), CUDA_ERROR_INVALID_HANDLE);
    succeeds(cuMemsetD32Async(word, 9, 1, other));
    succeeds(cuStreamSynchronize(other));
    CUevent event;
    succeeds(cuEventCreate(&event, 0));
    fails(cuEventRecord(event, other), CUDA_ERROR_INVALID_HANDLE);
    succeeds(cuEventRecord(event, NULL));
    succeeds(cuStreamWaitEvent(other, event, 0));
    succeeds(cuStreamSynchronize(other));
    succeeds(cuEventDestroy_v2(event));
    succeeds(cuStreamDestroy_v2(other));
    succeeds(cuMemFree_v2(word));
    succeeds(cuModuleUnload(module));
}

static const char counter_ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                                  ".visible .global .align 4 .u32 counter = 10;\n"
                                  ".visible .entry up() {\n"
                                  "  .reg .b32 %r<2>;\n"
                                  "  ld.global.u32 %r1, [counter]; add.u32 %r1, %r1, 1;\n"
                                  "  st.global.u32 [counter], %r1;\n  ret;\n}\n";

static uint32_t count_up(CUlibrary library, CUkernel kernel, int times)
{
    CUdeviceptr counter;
    uint32_t value = 0;
    for (int i = 0; i < times; i++)
        succeeds(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    succeeds(cuLibraryGetGlobal(&counter, NULL, library, "counter"));
    succeeds(cuMemcpyDtoH_v2(&value, counter, 4));
    return value;
}

static void a_library_has_its_globals_in_every_context(void **unused)
{
    (void)unused;
    CUlibrary library;
    CUkernel kernel;
    succeeds(cuLibraryLoadData(&library, counter_ptx, NULL, NULL, 0, NULL, NULL, 0));
    succeeds(cuLibraryGetKernel(&kernel, library, "up"));
    assert_int_equal(count_up(library, kernel, 3), 13);
    succeeds(cuCtxSetCurrent(primaries[1]));
    assert_int_equal(count_up(library, kernel, 1), 11);
    CUcontext own;
    succeeds(cuCtxCreate_v2(&own, 0, 0));
    assert_int_equal(count_up(library, kernel, 2), 12);
    succeeds(cuCtxDestroy_v2(own));
    succeeds(cuCtxSetCurrent(primaries[0]));
    assert_int_equal(count_up(library, kernel, 1), 14);
    succeeds(cuLibraryUnload(library));
}

static void *use_device(void *number)
{
    int device = (int)(intptr_t)number;
    CUdeviceptr memory;
    uint32_t value = 0;
    bool is_good = cuCtxSetCurrent(primaries[device]) == CUDA_SUCCESS;
    for (int i = 0; i < 200 && is_good; i++) {
        is_good = cuMemAlloc_v2(&memory, 4096 * (size_t)(1 + i % 40)) == CUDA_SUCCESS &&
                  cuMemsetD32_v2(memory, (unsigned)i, 1024) == CUDA_SUCCESS &&
                  cuMemcpyDtoH_v2(&value, memory + 4092, 4) == CUDA_SUCCESS && value == (uint32_t)i &&
                  cuMemFree_v2(memory) == CUDA_SUCCESS;
        CUdevice now = -1;
        is_good &= cuCtxGetDevice(&now) == CUDA_SUCCESS && now == device;
    }
    return (void *)(intptr_t)is_good;
}

static void threads_have_their_own_current_device(void **unused)
{
    (void)unused;
    pthread_t threads[2 * DEVICES];
    for (int i = 0; i < 2 * DEVICES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_device, (void *)(intptr_t)(i % DEVICES)), 0);
    for (int i = 0; i < 2 * DEVICES; i++) {
        void *is_good = NULL;
        pthread_join(threads[i], &is_good);
        assert_non_null(is_good);
    }
    CUdevice device = -1;
    succeeds(cuCtxGetDevice(&device));
    assert_int_equal(device, 0);
}

static void a_fault_stays_in_its_context(void **unused)
{
    (void)unused;
    CUcontext doomed;
    CUmodule module;
    CUfunction die;
    succeeds(cuCtxCreate_v2(&doomed, 0, 1));
    succeeds(cuModuleLoadData(&module, test_ptx));
    succeeds(cuModuleGetFunction(&die, module, "die"));
    succeeds(cuLaunchKernel(die, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    assert_int_not_equal(cuCtxSynchronize(), CUDA_SUCCESS);
    assert_int_not_equal(cuStreamQuery(NULL), CUDA_SUCCESS);
    succeeds(cuCtxSetCurrent(primaries[1]));
    succeeds(cuCtxSynchronize());
    succeeds(cuCtxDestroy_v2(doomed));
}

static void pools_belong_to_devices(void **unused)
{
    (void)unused;
    CUmemoryPool pools[2], pool;
    succeeds(cuDeviceGetDefaultMemPool(&pools[0], 0));
    succeeds(cuDeviceGetDefaultMemPool(&pools[1], 1));
    assert_ptr_not_equal(pools[0], pools[1]);
    fails(cuDeviceSetMemPool(0, pools[1]), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr memory;
    int device = -1;
    succeeds(cuMemAllocFromPoolAsync(&memory, 2 * FRAME, pools[1], NULL));
    succeeds(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
    assert_int_equal(device, 1);
    succeeds(cuMemFreeAsync(memory, NULL));
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 2}};
    succeeds(cuMemPoolCreate(&pool, &properties));
    CUmemAccess_flags flags;
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    succeeds(cuMemPoolGetAccess(&flags, pool, &location));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    CUmemAccessDesc access = {location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    succeeds(cuMemPoolSetAccess(pool, &access, 1));
    succeeds(cuMemPoolGetAccess(&flags, pool, &location));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    access.location.id = 2;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    fails(cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_DEVICE);
    succeeds(cuMemPoolDestroy(pool));
}

/* How many devices a new process sees, and which is its first; -1: cuInit failed with CUDA_ERROR_NO_DEVICE. */
static int visible(const char *list, int *first_bus)
{
    int channel[2], answer[2] = {-2, -2};
    assert_int_equal(pipe(channel), 0);
    char program[256];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = '\0';
    pid_t child = fork();
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", channel[1]);
        setenv("TEST_DEVICES_TO", number, 1);
        setenv("CUDA_VISIBLE_DEVICES", list, 1);
        execl(program, program, (char *)NULL);
        _exit(9);
    }
    close(channel[1]);
    assert_int_equal(read(channel[0], answer, sizeof answer), sizeof answer);
    close(channel[0]);
    waitpid(child, NULL, 0);
    *first_bus = answer[1];
    return answer[0];
}

static void tell_devices(int channel)
{
    int answer[2] = {-1, -1};
    if (cuInit(0) != CUDA_ERROR_NO_DEVICE && cuDeviceGetCount(&answer[0]) == CUDA_SUCCESS && answer[0] > 0)
        cuDeviceGetAttribute(&answer[1], CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0);
    (void)!write(channel, answer, sizeof answer);
}

static void visible_devices_are_chosen(void **unused)
{
    (void)unused;
    int bus;
    assert_int_equal(visible("2,0", &bus), 2);
    assert_int_equal(bus, 2);
    assert_int_equal(visible("1,7,0", &bus), 1);
    assert_int_equal(bus, 1);
    assert_int_equal(visible("0,1,0,2", &bus), 2);
    assert_int_equal(visible("", &bus), -1);
    assert_int_equal(visible("-1", &bus), -1);
    assert_int_equal(visible("GPU-6370752d-6465-7669-6365-2d3030303031", &bus), 1);
    assert_int_equal(bus, 1);
    assert_int_equal(visible("GPU-6370", &bus), -1);
}

int main(void)
{
    if (getenv("TEST_DEVICES_TO") != NULL) {
        tell_devices(atoi(getenv("TEST_DEVICES_TO")));
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_device_has_a_name_of_its_own, on_first),
        cmocka_unit_test_setup(memory_is_counted_where_it_is, on_first),
        cmocka_unit_test_setup(small_allocations_do_not_mix, on_first),
        cmocka_unit_test_setup(peer_access_is_one_way_and_remembered, on_first),
        cmocka_unit_test_setup(copies_cross_devices, on_first),
        cmocka_unit_test_setup(virtual_memory_has_access_per_device, on_first),
        cmocka_unit_test_setup(a_kernel_does_not_go_to_another_devices_stream, on_first),
        cmocka_unit_test_setup(a_library_has_its_globals_in_every_context, on_first),
        cmocka_unit_test_setup(threads_have_their_own_current_device, on_first),
        cmocka_unit_test_setup(a_fault_stays_in_its_context, on_first),
        cmocka_unit_test_setup(pools_belong_to_devices, on_first),
        cmocka_unit_test_setup(visible_devices_are_chosen, on_first),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
