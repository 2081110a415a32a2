/* links: tests/unit/charging.c shim/hook_charge.c shim/hook_handle.c shim/hook_array.c shim/hook_memory.c
 * shim/hook_copy.c shim/hook_graph.c shim/arguments.c shim/touch.c shim/outside.c shim/store.c shim/say.c shim/config.c
 * trace/size.c
 */
/* Memory taken past the arena: what is charged, and that every charge is refunded once and not before. */
#include "tests/unit/charging.h"

#include "shim/hooks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_managed(void **state)
{
    CUdeviceptr address = 0;
    (void)state;
    assert_int_equal(hook_cuMemAllocManaged(&address, 4000, 1), CUDA_SUCCESS);
    assert_int_equal(test.charged, 4000);
    assert_int_equal(hook_cuMemAllocManaged(&address, 7000, 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(test.charged, 4000);
    test.driver_answer = CUDA_ERROR_INVALID_CONTEXT; /* not freed: still charged */
    assert_int_equal(hook_cuMemFree_v2(address), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(test.charged, 4000);
    CUdeviceptr other = 0;
    assert_int_equal(hook_cuMemAllocManaged(&other, 10, 1), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(test.charged, 4000);
    test.driver_answer = CUDA_SUCCESS;
    assert_int_equal(hook_cuMemFree_v2(address), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
    assert_int_equal(hook_cuMemFree_v2(address), CUDA_SUCCESS); /* unknown: forwarded, nothing refunded */
    assert_int_equal(test.charged, 0);
}

static void test_old_forms(void **state)
{
    CUdeviceptr_v1 address = 0;
    (void)state;
    assert_int_equal(hook_cuMemAlloc(&address, 300), CUDA_SUCCESS);
    assert_int_equal(test.charged, 300);
    assert_int_equal(hook_cuMemFree(address), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
}

/* Memory lives until the handle and all its mappings are gone. */
static void test_handles(void **state)
{
    CUmemAllocationProp properties = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle = 0, host = 0;
    (void)state;
    assert_int_equal(hook_cuMemCreate(&handle, 4096, &properties, 0), CUDA_SUCCESS);
    assert_int_equal(hook_cuMemMap(0x100000, 4096, 0, handle, 0), CUDA_SUCCESS);
    assert_int_equal(hook_cuMemMap(0x200000, 4096, 0, handle, 0), CUDA_SUCCESS);
    assert_int_equal(hook_cuMemRelease(handle), CUDA_SUCCESS);
    assert_int_equal(test.charged, 4096);
    assert_int_equal(hook_cuMemUnmap(0x100000, 4096), CUDA_SUCCESS);
    assert_int_equal(test.charged, 4096);
    assert_int_equal(hook_cuMemUnmap(0x1ff000, 8192), CUDA_SUCCESS); /* one call over more than one mapping */
    assert_int_equal(test.charged, 0);
    assert_int_equal(hook_cuMemCreate(&handle, 20000, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST;
    assert_int_equal(hook_cuMemCreate(&host, 20000, &properties, 0), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
    assert_int_equal(hook_cuMemRelease(host), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
}

static void test_imported_handles(void **state)
{
    CUmemGenericAllocationHandle handle = 0;
    (void)state;
    assert_int_equal(hook_cuMemImportFromShareableHandle(&handle, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                     CUDA_SUCCESS);
    assert_int_equal(hook_cuMemMap(0x300000, 20480, 0, handle, 0), CUDA_ERROR_OUT_OF_MEMORY);
    test.room = 30000;
    assert_int_equal(hook_cuMemMap(0x300000, 20480, 0, handle, 0), CUDA_SUCCESS);
    assert_int_equal(test.charged, 20480);
    assert_int_equal(hook_cuMemRelease(handle), CUDA_SUCCESS);
    assert_int_equal(hook_cuMemUnmap(0x300000, 20480), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
}

static void test_arrays(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR description = {.Width = 16, .Height = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
    CUarray array = NULL;
    CUmipmappedArray mipmap = NULL;
    (void)state;
    assert_int_equal(hook_cuArray3DCreate_v2(&array, &description), CUDA_SUCCESS);
    assert_int_equal(test.charged, 16 * 8 * 8);
    assert_int_equal(hook_cuArrayDestroy(array), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
    description.Format = CU_AD_FORMAT_HALF;
    assert_int_equal(hook_cuMipmappedArrayCreate(&mipmap, &description, 3), CUDA_SUCCESS);
    assert_int_equal(test.charged, (16 * 8 + 8 * 4 + 4 * 2) * 4);
    assert_int_equal(hook_cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
    description.Width = 1 << 20;
    assert_int_equal(hook_cuArray3DCreate_v2(&array, &description), CUDA_ERROR_OUT_OF_MEMORY);
    description.Flags = CUDA_ARRAY3D_SPARSE;
    assert_int_equal(hook_cuArray3DCreate_v2(&array, &description), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
}

static void test_other_process(void **state)
{
    CUipcMemHandle handle = {{0}};
    CUdeviceptr address = 0;
    (void)state;
    assert_int_equal(hook_cuIpcOpenMemHandle_v2(&address, handle, 0), CUDA_SUCCESS);
    assert_int_equal(test.charged, 700);
    assert_int_equal(hook_cuIpcCloseMemHandle(address), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
    test.room = 600;
    assert_int_equal(hook_cuIpcOpenMemHandle_v2(&address, handle, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(test.closed, 2); /* not left open */
    assert_int_equal(test.charged, 0);
}

static void test_limits(void **state)
{
    (void)state;
    test.limit = 1000;
    assert_int_equal(hook_cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 5000), CUDA_SUCCESS);
    assert_int_equal(test.charged, 4000);
    assert_int_equal(hook_cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 15000), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(test.limit, 5000);
    assert_int_equal(hook_cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 3000), CUDA_SUCCESS);
    assert_int_equal(test.charged, 2000);
    assert_int_equal(hook_cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 500), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
    assert_int_equal(hook_cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1 << 30), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
}

/* Only pools that others may open keep memory of their own; the rest is served from the arena. */
static void test_pools(void **state)
{
    CUmemPoolProps properties = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool plain = NULL, shared = NULL;
    CUdeviceptr address = 0;
    (void)state;
    assert_int_equal(hook_cuMemPoolCreate(&plain, &properties), CUDA_SUCCESS);
    assert_int_equal(hook_cuMemAllocFromPoolAsync(&address, 100, plain, NULL), CUDA_SUCCESS);
    assert_int_equal(address, 0x900000);
    assert_int_equal(test.charged, 0);
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    assert_int_equal(hook_cuMemPoolCreate(&shared, &properties), CUDA_SUCCESS);
    assert_int_equal(hook_cuMemAllocFromPoolAsync(&address, 100, shared, NULL), CUDA_SUCCESS);
    assert_int_not_equal(address, 0x900000);
    assert_int_equal(test.charged, 4096); /* what the pool really took */
    assert_int_equal(hook_cuMemAllocFromPoolAsync(&address, 9000, shared, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(test.charged, 4096);
    assert_int_equal(hook_cuMemPoolTrimTo(shared, 1024), CUDA_SUCCESS);
    assert_int_equal(test.charged, 1024);
    assert_int_equal(hook_cuMemPoolDestroy(shared), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
}

static void test_pitch(void **state)
{
    CUdeviceptr address = 0;
    size_t pitch = 0;
    (void)state;
    assert_int_equal(hook_cuMemAllocPitch_v2(&address, &pitch, 513, 3, 4), CUDA_SUCCESS);
    assert_int_equal(pitch, 1024);
    assert_int_equal(hook_cuMemAllocPitch_v2(&address, &pitch, 513, 30, 4), CUDA_ERROR_OUT_OF_MEMORY);
}

/* Sets of rows are operations like any other; one row is a plain set. */
static void test_rows(void **state)
{
    (void)state;
    assert_int_equal(hook_cuMemsetD2D32_v2(0x900000, 64, 7, 16, 3), CUDA_SUCCESS);
    assert_int_equal(test.submitted, 1);
    assert_int_equal(test.set.pitch, 64);
    assert_int_equal(test.set.height, 3);
    assert_int_equal(test.set.element_bytes, 4);
    assert_int_equal(hook_cuMemsetD2D16Async(0x900000, 0, 7, 16, 1, NULL), CUDA_SUCCESS);
    assert_int_equal(test.set.pitch, 0);
    assert_int_equal(hook_cuMemsetD2D16_v2(0x900000, 31, 7, 16, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(test.submitted, 2);
}

/* What a trim gave back is charged again before a launch can take it, and only what it took stays charged. */
static void test_graph_memory(void **state)
{
    CUDA_MEM_ALLOC_NODE_PARAMS node = {.bytesize = 3000};
    (void)state;
    assert_int_equal(hook_cuGraphAddMemAllocNode(NULL, NULL, NULL, 0, &node), CUDA_SUCCESS);
    node.bytesize = 4000;
    assert_int_equal(hook_cuGraphAddMemAllocNode(NULL, NULL, NULL, 0, &node), CUDA_SUCCESS);
    assert_int_equal(hook_cuGraphAddMemAllocNode(NULL, NULL, NULL, 0, &node), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(test.charged, 7000);
    assert_int_equal(hook_cuGraphLaunch((CUgraphExec)3000, NULL), CUDA_SUCCESS);
    assert_int_equal(test.charged, 7000);
    assert_int_equal(hook_cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
    test.room = 6000;
    assert_int_equal(hook_cuGraphLaunch((CUgraphExec)3000, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(test.graph_reserved, 0);
    test.room = 10000;
    assert_int_equal(hook_cuGraphLaunch((CUgraphExec)3000, NULL), CUDA_SUCCESS);
    assert_int_equal(test.charged, 3000);
    assert_int_equal(hook_cuGraphLaunch_ptsz((CUgraphExec)4000, NULL), CUDA_SUCCESS);
    assert_int_equal(test.charged, 7000);
    assert_int_equal(hook_cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
    assert_int_equal(hook_cuGraphLaunch((CUgraphExec)7000, NULL), CUDA_SUCCESS);
    assert_int_equal(test.charged, 7000);
}

static void test_graph_nodes(void **state)
{
    CUdeviceptr pointer = 0x900010;
    void *parameters[] = {&pointer};
    CUDA_KERNEL_NODE_PARAMS node = {.func = (CUfunction)1, .kernelParams = parameters};
    (void)state;
    assert_int_equal(hook_cuGraphAddKernelNode_v2(NULL, NULL, NULL, 0, &node), CUDA_SUCCESS);
    assert_int_equal(test.pinned, 0x900010);
    node.func = NULL;
    node.kern = (CUkernel)2; /* the driver does not explain this one: it may touch anything */
    assert_int_equal(hook_cuGraphAddKernelNode_v2(NULL, NULL, NULL, 0, &node), CUDA_SUCCESS);
    assert_int_equal(test.opaque, 1);
}

static void test_information(void **state)
{
    size_t free_bytes = 0, total = 0;
    unsigned int old_total = 0;
    (void)state;
    assert_int_equal(hook_cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
    assert_int_equal(total, 10000);
    assert_int_equal(free_bytes, 5);
    assert_int_equal(hook_cuMemGetInfo_v2(NULL, NULL), CUDA_SUCCESS);
    assert_int_equal(hook_cuMemGetInfo(NULL, &old_total), CUDA_SUCCESS);
    assert_int_equal(old_total, 10000);
    assert_int_equal(hook_cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
    assert_int_equal(total, 10000);
    test.room = 1 << 30; /* a cap above the device's memory */
    assert_int_equal(hook_cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
    assert_int_equal(total, 1 << 20);
    assert_int_equal(hook_cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
    assert_int_equal(total, 1 << 20);
    test.driver_answer = CUDA_ERROR_INVALID_CONTEXT;
    assert_int_equal(hook_cuMemGetInfo_v2(&free_bytes, &total), CUDA_ERROR_INVALID_CONTEXT);
}

/* Of an address that is ours, frames or none behind it. */
static void test_attributes(void **state)
{
    CUdeviceptr start = 0;
    size_t bytes = 0;
    unsigned int type = 0, managed = 9;
    void *host = &type;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                        CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *data[] = {&type, &managed, &host, &bytes};
    (void)state;
    assert_int_equal(hook_cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 0x900010), CUDA_SUCCESS);
    assert_int_equal(start, 0x900000);
    assert_int_equal(hook_cuPointerGetAttributes(4, attributes, data, 0x900010), CUDA_SUCCESS);
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(managed, 0);
    assert_null(host);
    assert_int_equal(bytes, 0x1000);
    assert_int_equal(test.pinned, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_managed, charging_set_up),
        cmocka_unit_test_setup(test_old_forms, charging_set_up),
        cmocka_unit_test_setup(test_handles, charging_set_up),
        cmocka_unit_test_setup(test_imported_handles, charging_set_up),
        cmocka_unit_test_setup(test_arrays, charging_set_up),
        cmocka_unit_test_setup(test_other_process, charging_set_up),
        cmocka_unit_test_setup(test_limits, charging_set_up),
        cmocka_unit_test_setup(test_pools, charging_set_up),
        cmocka_unit_test_setup(test_pitch, charging_set_up),
        cmocka_unit_test_setup(test_rows, charging_set_up),
        cmocka_unit_test_setup(test_graph_memory, charging_set_up),
        cmocka_unit_test_setup(test_graph_nodes, charging_set_up),
        cmocka_unit_test_setup(test_information, charging_set_up),
        cmocka_unit_test_setup(test_attributes, charging_set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
