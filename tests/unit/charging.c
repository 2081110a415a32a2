#include "tests/unit/charging.h"

#include "shim/capture.h"
#include "shim/driver.h"
#include "shim/engine.h"
#include "shim/functions.h"
#include "shim/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct driver driver;

struct charging test;

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

CUresult engine_charge_variables(size_t bytes)
{
    return engine_charge(bytes, "variables");
}

void engine_refund_variables(size_t bytes)
{
    engine_refund(bytes);
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

void engine_before_host_function(CUstream stream)
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

static CUresult fake_graph_memory(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  CUDA_MEM_ALLOC_NODE_PARAMS *what)
{
    (void)node;
    (void)graph;
    (void)after;
    (void)count;
    (void)what;
    return test.driver_answer;
}

static CUresult fake_graph_trim(CUdevice device)
{
    (void)device;
    test.graph_reserved = 0;
    return test.driver_answer;
}

static CUresult fake_graph_attribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    (void)device;
    (void)attribute;
    *(cuuint64_t *)value = test.graph_reserved;
    return CUDA_SUCCESS;
}

static CUresult fake_graph_launch(CUgraphExec exec, CUstream stream)
{
    (void)stream;
    test.graph_reserved += (uintptr_t)exec; /* what it allocates */
    return test.driver_answer;
}

static CUresult fake_device(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
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

int charging_set_up(void **state)
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
    driver.cuGraphAddMemAllocNode = fake_graph_memory;
    driver.cuDeviceGraphMemTrim = fake_graph_trim;
    driver.cuDeviceGetGraphMemAttribute = fake_graph_attribute;
    driver.cuGraphLaunch = fake_graph_launch;
    driver.cuCtxGetDevice = fake_device;
    driver.cuDeviceTotalMem_v2 = fake_total;
    driver.cuMemGetInfo_v2 = fake_info;
    return 0;
}
