/* links: shim/hook_charge.c shim/hook_handle.c shim/hook_array.c shim/hook_memory.c shim/hook_copy.c shim/hook_graph.c shim/arguments.c shim/touch.c shim/outside.c shim/store.c shim/say.c shim/config.c */
/* Memory taken past the arena: what is charged, and that every charge is refunded once and not before. */
#include "shim/capture.h"
#include "shim/driver.h"
#include "shim/engine.h"
#include "shim/functions.h"
#include "shim/gate.h"
#include "shim/hooks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct driver driver;

static struct {
    int64_t charged;            /* bytes, now */
    uint64_t room;
    CUresult driver_answer;
    bool is_capturing;
    unsigned closed, submitted, opaque;
    CUdeviceptr pinned;
    struct set_arguments set;
    uint64_t pool_reserved;
    size_t limit;
} test;

bool gate_enter(void)
{
    return true;
}

CUresult gate_leave(CUresult result)
{
    return result;
}

CUresult engine_charge(size_t bytes, const char *what)
{
    assert_non_null(what);
    if ((uint64_t)test.charged + bytes > test.room)
        return CUDA_ERROR_OUT_OF_MEMORY;
    test.charged += (int64_t)bytes;
    return CUDA_SUCCESS;
}

void engine_refund(size_t bytes)
{
    test.charged -= (int64_t)bytes;
    assert_true(test.charged >= 0);
}

CUresult engine_allocate(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    (void)stream;
    *out = 0x900000;
    return bytes <= test.room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult engine_free(CUdeviceptr address, CUstream stream, bool *is_ours)
{
    (void)stream;
    *is_ours = engine_owns(address);
    return CUDA_SUCCESS;
}

bool engine_owns(CUdeviceptr address)
{
    return address >= 0x900000 && address < 0xa00000;
}

bool engine_find(CUdeviceptr address, CUdeviceptr *base, size_t *bytes)
{
    *base = 0x900000;
    *bytes = 0x1000;
    return engine_owns(address);
}

void engine_arena(CUdeviceptr *begin, CUdeviceptr *end)
{
    *begin = 0x900000;
    *end = 0xa00000;
}

CUresult engine_submit(struct operation *operation)
{
    test.submitted++;
    test.opaque += operation->is_opaque;
    if (operation->kind == OPERATION_SET)
        memcpy(&test.set, operation->arguments, sizeof test.set);
    return CUDA_SUCCESS;
}

CUresult engine_pin(CUdeviceptr address, const char *reason)
{
    assert_non_null(reason);
    test.pinned = address;
    return CUDA_SUCCESS;
}

CUresult engine_scan(const void *host, size_t bytes, CUdeviceptr destination)
{
    (void)host;
    (void)bytes;
    (void)destination;
    return CUDA_SUCCESS;
}

void engine_before_sync(CUstream stream)
{
    (void)stream;
}

CUresult engine_after_sync(CUresult result)
{
    return result;
}

bool engine_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    if (free_bytes)
        *free_bytes = 5;
    *total_bytes = test.room;
    return true;
}

bool capture_is_active(CUstream stream)
{
    (void)stream;
    return test.is_capturing;
}

static struct {
    struct function_facts facts;
    struct parameter parameter[1];
} kernel = {.facts = {.name = "kernel", .param_count = 1, .argument_bytes = 8, .has_param_info = true},
            .parameter = {{0, 8}}};

const struct function_facts *launch_facts(CUfunction function)
{
    static const struct function_facts silent = {.name = "silent"};
    return function == (CUfunction)1 ? &kernel.facts : &silent;
}

const struct parameter *functions_parameters(const struct function_facts *facts)
{
    assert_ptr_equal(facts, &kernel.facts);
    return kernel.parameter;
}

CUresult launch_issue(const struct operation *operation, const unsigned char *arguments)
{
    (void)operation;
    (void)arguments;
    return CUDA_SUCCESS;
}

bool launch_find_uses(struct operation *operation, CUdeviceptr begin, CUdeviceptr end)
{
    (void)operation;
    (void)begin;
    (void)end;
    return true;
}

/* The driver. */
static CUdeviceptr next_address = 0x1000;

static CUresult fake_managed(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    (void)bytes;
    (void)flags;
    *address = next_address++;
    return test.driver_answer;
}

static CUresult fake_allocate_old(CUdeviceptr_v1 *address, unsigned int bytes)
{
    (void)bytes;
    *address = (CUdeviceptr_v1)next_address++;
    return test.driver_answer;
}

static CUresult fake_free(CUdeviceptr address)
{
    (void)address;
    return test.driver_answer;
}

static CUresult fake_free_old(CUdeviceptr_v1 address)
{
    (void)address;
    return test.driver_answer;
}

static CUresult fake_create(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                            unsigned long long flags)
{
    (void)bytes;
    (void)properties;
    (void)flags;
    *handle = next_address++;
    return test.driver_answer;
}

static CUresult fake_import(CUmemGenericAllocationHandle *handle, void *from, CUmemAllocationHandleType type)
{
    (void)from;
    (void)type;
    *handle = next_address++;
    return test.driver_answer;
}

static CUresult fake_handle_properties(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
    (void)handle;
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult fake_granularity(size_t *step, const CUmemAllocationProp *properties,
                                 CUmemAllocationGranularity_flags which)
{
    (void)properties;
    (void)which;
    *step = 4096;
    return CUDA_SUCCESS;
}

static CUresult fake_release(CUmemGenericAllocationHandle handle)
{
    (void)handle;
    return test.driver_answer;
}

static CUresult fake_map(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags)
{
    (void)address;
    (void)bytes;
    (void)offset;
    (void)handle;
    (void)flags;
    return test.driver_answer;
}

static CUresult fake_unmap(CUdeviceptr address, size_t bytes)
{
    (void)address;
    (void)bytes;
    return test.driver_answer;
}

static CUresult fake_array(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *description)
{
    (void)description;
    *array = (CUarray)next_address++;
    return test.driver_answer;
}

static CUresult fake_array_destroy(CUarray array)
{
    (void)array;
    return test.driver_answer;
}

static CUresult fake_mipmap(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *description, unsigned int levels)
{
    (void)description;
    (void)levels;
    *array = (CUmipmappedArray)next_address++;
    return test.driver_answer;
}

static CUresult fake_mipmap_destroy(CUmipmappedArray array)
{
    (void)array;
    return test.driver_answer;
}

static CUresult fake_open(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    (void)handle;
    (void)flags;
    *address = next_address++;
    return test.driver_answer;
}

static CUresult fake_close(CUdeviceptr address)
{
    (void)address;
    test.closed++;
    return test.driver_answer;
}

static CUresult fake_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    *base = address;
    *bytes = 700;
    return CUDA_SUCCESS;
}

static CUresult fake_get_limit(size_t *value, CUlimit limit)
{
    (void)limit;
    *value = test.limit;
    return CUDA_SUCCESS;
}

static CUresult fake_set_limit(CUlimit limit, size_t value)
{
    (void)limit;
    if (test.driver_answer == CUDA_SUCCESS)
        test.limit = value;
    return test.driver_answer;
}

static CUresult fake_pool_create(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    (void)properties;
    *pool = (CUmemoryPool)next_address++;
    return test.driver_answer;
}

static CUresult fake_pool_destroy(CUmemoryPool pool)
{
    (void)pool;
    return test.driver_answer;
}

static CUresult fake_pool_trim(CUmemoryPool pool, size_t bytes)
{
    (void)pool;
    test.pool_reserved = bytes;
    return test.driver_answer;
}

static CUresult fake_pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    (void)pool;
    assert_int_equal(attribute, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    *(cuuint64_t *)value = test.pool_reserved;
    return CUDA_SUCCESS;
}

static CUresult fake_pool_allocate(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)pool;
    (void)stream;
    (void)bytes;
    *address = next_address++;
    if (test.driver_answer == CUDA_SUCCESS)
        test.pool_reserved = 4096; /* it takes more than it is asked for */
    return test.driver_answer;
}

static CUresult fake_current(CUcontext *context)
{
    *context = (CUcontext)1;
    return CUDA_SUCCESS;
}

static CUresult fake_graph_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  const CUDA_KERNEL_NODE_PARAMS *what)
{
    (void)node;
    (void)graph;
    (void)after;
    (void)count;
    (void)what;
    return test.driver_answer;
}

static CUresult fake_total(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = 1 << 20;
    return CUDA_SUCCESS;
}

static CUresult fake_info(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = 77;
    *total_bytes = 1 << 20;
    return test.driver_answer;
}

static int set_up(void **state)
{
    (void)state;
    memset(&test, 0, sizeof test);
    test.room = 10000;
    driver.cuMemAllocManaged = fake_managed;
    driver.cuMemAlloc = fake_allocate_old;
    driver.cuMemFree = fake_free_old;
    driver.cuMemFree_v2 = fake_free;
    driver.cuMemCreate = fake_create;
    driver.cuMemImportFromShareableHandle = fake_import;
    driver.cuMemGetAllocationPropertiesFromHandle = fake_handle_properties;
    driver.cuMemGetAllocationGranularity = fake_granularity;
    driver.cuMemRelease = fake_release;
    driver.cuMemMap = fake_map;
    driver.cuMemUnmap = fake_unmap;
    driver.cuArray3DCreate_v2 = fake_array;
    driver.cuArrayDestroy = fake_array_destroy;
    driver.cuMipmappedArrayCreate = fake_mipmap;
    driver.cuMipmappedArrayDestroy = fake_mipmap_destroy;
    driver.cuIpcOpenMemHandle_v2 = fake_open;
    driver.cuIpcCloseMemHandle = fake_close;
    driver.cuMemGetAddressRange_v2 = fake_range;
    driver.cuCtxGetLimit = fake_get_limit;
    driver.cuCtxSetLimit = fake_set_limit;
    driver.cuMemPoolCreate = fake_pool_create;
    driver.cuMemPoolDestroy = fake_pool_destroy;
    driver.cuMemPoolTrimTo = fake_pool_trim;
    driver.cuMemPoolGetAttribute = fake_pool_attribute;
    driver.cuMemAllocFromPoolAsync = fake_pool_allocate;
    driver.cuCtxGetCurrent = fake_current;
    driver.cuGraphAddKernelNode_v2 = fake_graph_kernel;
    driver.cuDeviceTotalMem_v2 = fake_total;
    driver.cuMemGetInfo_v2 = fake_info;
    return 0;
}

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
        cmocka_unit_test_setup(test_managed, set_up),       cmocka_unit_test_setup(test_old_forms, set_up),
        cmocka_unit_test_setup(test_handles, set_up),       cmocka_unit_test_setup(test_imported_handles, set_up),
        cmocka_unit_test_setup(test_arrays, set_up),        cmocka_unit_test_setup(test_other_process, set_up),
        cmocka_unit_test_setup(test_limits, set_up),        cmocka_unit_test_setup(test_pools, set_up),
        cmocka_unit_test_setup(test_pitch, set_up),         cmocka_unit_test_setup(test_rows, set_up),
        cmocka_unit_test_setup(test_graph_nodes, set_up),   cmocka_unit_test_setup(test_information, set_up),
        cmocka_unit_test_setup(test_attributes, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
