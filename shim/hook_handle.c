/* The program's own use of the driver's virtual memory: its handles are charged, its addresses are its own.
 * Memory lives until the handle and all its mappings are gone. */
#include "shim/hook.h"

#include "shim/outside.h"

#include "shim/inside.h"

/* By the location of the memory, whatever device is current. */
static bool is_on_device(const CUmemAllocationProp *properties)
{
    return properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult hook_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                          unsigned long long flags)
{
    if (handle == NULL || properties == NULL || !is_on_device(properties) || !gate_enter())
        return driver.cuMemCreate(handle, bytes, properties, flags);
    CUresult result = engine_charge(bytes, "cuMemCreate");
    if (result != CUDA_SUCCESS)
        return gate_leave(result);
    result = driver.cuMemCreate(handle, bytes, properties, flags);
    if (result != CUDA_SUCCESS || !outside_add(OUTSIDE_HANDLE, *handle, bytes))
        engine_refund(bytes);
    return gate_leave(result);
}

/* The size of an import is told when it is mapped: charged then. */
CUresult hook_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
                                             CUmemAllocationHandleType type)
{
    CUmemAllocationProp properties = {0};
    CUresult result = driver.cuMemImportFromShareableHandle(handle, from, type);
    if (result != CUDA_SUCCESS || !gate_enter())
        return result;
    if (driver.cuMemGetAllocationPropertiesFromHandle(&properties, *handle) == CUDA_SUCCESS &&
        is_on_device(&properties))
        outside_add(OUTSIDE_HANDLE, *handle, 0);
    return gate_leave(result);
}

/* Of our own memory this would hand out a frame: the allocation may not move from then on. */
CUresult hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    if (!gate_enter())
        return driver.cuMemRetainAllocationHandle(handle, address);
    CUresult result = engine_pin((CUdeviceptr)address, "its handle was taken");
    if (result == CUDA_SUCCESS)
        result = driver.cuMemRetainAllocationHandle(handle, address);
    if (result == CUDA_SUCCESS)
        outside_retain(OUTSIDE_HANDLE, *handle);
    return gate_leave(result);
}

static void release_reference(CUmemGenericAllocationHandle handle)
{
    uint64_t bytes = 0;
    if (outside_release(OUTSIDE_HANDLE, handle, &bytes))
        engine_refund(bytes);
}

/* The record goes first: another thread may be given the same handle at once. */
CUresult hook_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    if (!gate_enter())
        return driver.cuMemRelease(handle);
    uint64_t bytes = 0;
    bool is_counted = outside_release(OUTSIDE_HANDLE, handle, &bytes);
    CUresult result = driver.cuMemRelease(handle);
    if (result == CUDA_SUCCESS)
        engine_refund(bytes);
    else if (is_counted && !outside_retain(OUTSIDE_HANDLE, handle))
        outside_add(OUTSIDE_HANDLE, handle, bytes);
    return gate_leave(result);
}

CUresult hook_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags)
{
    uint64_t charged = 0;
    if (!gate_enter())
        return driver.cuMemMap(address, bytes, offset, handle, flags);
    bool is_counted = outside_find(OUTSIDE_HANDLE, handle, &charged);
    bool is_new_import = is_counted && charged == 0;
    CUresult result = is_new_import ? engine_charge(bytes, "an imported handle") : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return gate_leave(result);
    result = driver.cuMemMap(address, bytes, offset, handle, flags);
    if (result == CUDA_SUCCESS && is_counted) {
        outside_retain(OUTSIDE_HANDLE, handle);
        outside_set(OUTSIDE_MAPPING, address, handle);
    }
    if (result == CUDA_SUCCESS && is_new_import)
        outside_set(OUTSIDE_HANDLE, handle, bytes);
    else if (is_new_import)
        engine_refund(bytes);
    return gate_leave(result);
}

/* One call may cover many mappings; they lie at the granularity of the device. */
static void release_mappings(CUdeviceptr address, size_t bytes)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    size_t step = 0;
    if (driver.cuMemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
        step == 0)
        step = 65536;
    for (size_t at = 0; at < bytes; at += step) {
        uint64_t handle = outside_take(OUTSIDE_MAPPING, address + at);
        if (handle)
            release_reference(handle);
    }
}

CUresult hook_cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    CUresult result = driver.cuMemUnmap(address, bytes);
    if (result != CUDA_SUCCESS || !gate_enter())
        return result;
    release_mappings(address, bytes);
    return gate_leave(result);
}
