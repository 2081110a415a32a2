/* Device memory that the program takes past the arena: charged before the driver gives it, refunded when it is
 * given back. Old forms, managed memory, pools that are shared, imports, limits, graphs. */
#include "shim/hook.h"

#include "shim/outside.h"
#include <stdatomic.h>

#include "shim/inside.h"

/* After a driver call that was charged for beforehand: keeps the charge under the key, or gives it back. */
static CUresult settle(CUresult result, enum outside_kind kind, uint64_t key, uint64_t bytes)
{
    if (result != CUDA_SUCCESS || !outside_add(kind, key, bytes))
        engine_refund(bytes);
    return result;
}

CUresult hook_cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
    if (address == NULL || !gate_enter())
        return driver.cuMemAlloc(address, bytes);
    CUresult result = engine_charge(bytes, "cuMemAlloc of 32-bit addresses");
    if (result == CUDA_SUCCESS) {
        result = driver.cuMemAlloc(address, bytes);
        settle(result, OUTSIDE_ADDRESS, result == CUDA_SUCCESS ? *address : 0, bytes);
    }
    return gate_leave(result);
}

CUresult hook_cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width, unsigned int height,
                              unsigned int element)
{
    if (address == NULL || pitch == NULL || !gate_enter())
        return driver.cuMemAllocPitch(address, pitch, width, height, element);
    uint64_t most = ((uint64_t)width + 511) / 512 * 512 * height;
    CUresult result = engine_charge(most, "cuMemAllocPitch of 32-bit addresses");
    if (result == CUDA_SUCCESS) {
        result = driver.cuMemAllocPitch(address, pitch, width, height, element);
        settle(result, OUTSIDE_ADDRESS, result == CUDA_SUCCESS ? *address : 0, most);
    }
    return gate_leave(result);
}

CUresult hook_cuMemFree(CUdeviceptr_v1 address)
{
    if (!gate_enter())
        return driver.cuMemFree(address);
    uint64_t charged = outside_take(OUTSIDE_ADDRESS, address);
    CUresult result = driver.cuMemFree(address);
    if (charged)
        settle(result == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, OUTSIDE_ADDRESS, address, charged);
    return gate_leave(result);
}

/* All of it may come to the device at once. */
CUresult hook_cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    if (address == NULL || bytes == 0 || !gate_enter())
        return driver.cuMemAllocManaged(address, bytes, flags);
    CUresult result = engine_charge(bytes, "managed memory");
    if (result == CUDA_SUCCESS) {
        result = driver.cuMemAllocManaged(address, bytes, flags);
        settle(result, OUTSIDE_ADDRESS, result == CUDA_SUCCESS ? *address : 0, bytes);
    }
    return gate_leave(result);
}

/* Pools that other processes may open, or that are not on a device, keep their own memory; all other pools are
 * served from the arena and hold nothing. The record's bytes tell the two apart, see hook_memory.c. */
CUresult hook_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    CUresult result = driver.cuMemPoolCreate(pool, properties);
    if (result != CUDA_SUCCESS || !gate_enter())
        return result;
    bool is_on_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (!is_on_device || properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        outside_set(OUTSIDE_PRIVATE, (uintptr_t)*pool, is_on_device ? PRIVATE_DEVICE : PRIVATE_HOST);
    return gate_leave(result);
}

CUresult hook_cuMemPoolDestroy(CUmemoryPool pool)
{
    if (!gate_enter())
        return driver.cuMemPoolDestroy(pool);
    uint64_t kind = outside_take(OUTSIDE_PRIVATE, (uintptr_t)pool);
    uint64_t held = outside_take(OUTSIDE_POOL, (uintptr_t)pool);
    CUresult result = driver.cuMemPoolDestroy(pool);
    if (result == CUDA_SUCCESS) {
        engine_refund(held);
    } else if (kind) {
        outside_set(OUTSIDE_PRIVATE, (uintptr_t)pool, kind);
        outside_set(OUTSIDE_POOL, (uintptr_t)pool, held);
    }
    return gate_leave(result);
}

CUresult hook_cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
    CUresult result = driver.cuMemPoolTrimTo(pool, bytes);
    uint64_t held = 0;
    cuuint64_t reserved = 0;
    if (result != CUDA_SUCCESS || !gate_enter())
        return result;
    if (outside_find(OUTSIDE_POOL, (uintptr_t)pool, &held) &&
        driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) == CUDA_SUCCESS &&
        reserved < held) {
        outside_set(OUTSIDE_POOL, (uintptr_t)pool, reserved);
        engine_refund(held - reserved);
    }
    return gate_leave(result);
}

/* The size is known only once it is open: if it does not fit, it is closed again. */
static CUresult open_ipc(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags,
                         CUresult (*forward)(CUdeviceptr *, CUipcMemHandle, unsigned int))
{
    if (address == NULL || !gate_enter())
        return forward(address, handle, flags);
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CUresult result = forward(address, handle, flags);
    if (result != CUDA_SUCCESS || driver.cuMemGetAddressRange_v2(&base, &bytes, *address) != CUDA_SUCCESS)
        return gate_leave(result);
    result = engine_charge(bytes, "memory of another process");
    if (result == CUDA_SUCCESS)
        settle(CUDA_SUCCESS, OUTSIDE_ADDRESS, *address, bytes);
    else
        driver.cuIpcCloseMemHandle(*address);
    return gate_leave(result);
}

CUresult hook_cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    return open_ipc(address, handle, flags, driver.cuIpcOpenMemHandle);
}

CUresult hook_cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    return open_ipc(address, handle, flags, driver.cuIpcOpenMemHandle_v2);
}

CUresult hook_cuIpcCloseMemHandle(CUdeviceptr address)
{
    if (!gate_enter())
        return driver.cuIpcCloseMemHandle(address);
    uint64_t charged = outside_take(OUTSIDE_ADDRESS, address);
    CUresult result = driver.cuIpcCloseMemHandle(address);
    if (charged)
        settle(result == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, OUTSIDE_ADDRESS, address, charged);
    return gate_leave(result);
}

CUresult hook_cuImportExternalMemory(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description)
{
    if (memory == NULL || description == NULL || !gate_enter())
        return driver.cuImportExternalMemory(memory, description);
    uint64_t bytes = description->size;
    CUresult result = engine_charge(bytes, "imported external memory");
    if (result == CUDA_SUCCESS) {
        result = driver.cuImportExternalMemory(memory, description);
        settle(result, OUTSIDE_EXTERNAL, result == CUDA_SUCCESS ? (uintptr_t)*memory : 0, bytes);
    }
    return gate_leave(result);
}

CUresult hook_cuDestroyExternalMemory(CUexternalMemory memory)
{
    if (!gate_enter())
        return driver.cuDestroyExternalMemory(memory);
    uint64_t charged = outside_take(OUTSIDE_EXTERNAL, (uintptr_t)memory);
    CUresult result = driver.cuDestroyExternalMemory(memory);
    if (charged)
        settle(result == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, OUTSIDE_EXTERNAL, (uintptr_t)memory,
               charged);
    return gate_leave(result);
}

/* Bytes that the device sets aside per unit of the limit; 0 for limits that take no memory. */
static uint64_t limit_factor(CUlimit limit)
{
    CUdevice device = 0;
    int processors = 0, threads = 0;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE)
        return 1;
    if (limit != CU_LIMIT_STACK_SIZE || driver.cuCtxGetDevice(&device) != CUDA_SUCCESS ||
        driver.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS ||
        driver.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device) !=
            CUDA_SUCCESS)
        return 0;
    return (uint64_t)processors * (uint64_t)threads;
}

/* What a context starts with is its own; what the program adds to it is charged. */
CUresult hook_cuCtxSetLimit(CUlimit limit, size_t value)
{
    size_t before = 0;
    if (!gate_enter())
        return driver.cuCtxSetLimit(limit, value);
    uint64_t factor = limit_factor(limit);
    if (factor == 0 || driver.cuCtxGetLimit(&before, limit) != CUDA_SUCCESS)
        return gate_leave(driver.cuCtxSetLimit(limit, value));
    uint64_t added = value > before ? (value - before) * factor : 0;
    CUresult result = added ? engine_charge(added, "a larger heap, stack or print buffer") : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return gate_leave(result);
    result = driver.cuCtxSetLimit(limit, value);
    if (added) {
        settle(result, OUTSIDE_LIMIT, limit, added);
    } else if (result == CUDA_SUCCESS && value < before) {
        uint64_t charged = 0, given = (before - value) * factor;
        outside_find(OUTSIDE_LIMIT, limit, &charged);
        given = given < charged ? given : charged;
        outside_set(OUTSIDE_LIMIT, limit, charged - given);
        engine_refund(given);
    }
    return gate_leave(result);
}

CUresult hook_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                     CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    if (parameters == NULL || !gate_enter())
        return driver.cuGraphAddMemAllocNode(node, graph, dependencies, count, parameters);
    size_t bytes = parameters->bytesize;
    CUresult result = engine_charge(bytes, "memory of a graph");
    if (result == CUDA_SUCCESS) {
        result = driver.cuGraphAddMemAllocNode(node, graph, dependencies, count, parameters);
        settle(result, OUTSIDE_GRAPHS, 0, bytes);
    }
    return gate_leave(result);
}

/* What trims have given back. A graph that is launched again takes its part of it again. */
static _Atomic uint64_t trimmed;

/* Sets the charge for graphs to what the driver says it holds, if that is less, and gives the rest back. */
static void settle_graphs(CUdevice device)
{
    uint64_t charged = 0;
    cuuint64_t reserved = 0;
    if (outside_find(OUTSIDE_GRAPHS, 0, &charged) &&
        driver.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) ==
            CUDA_SUCCESS &&
        reserved < charged) {
        outside_set(OUTSIDE_GRAPHS, 0, reserved);
        atomic_fetch_add(&trimmed, charged - reserved);
        engine_refund(charged - reserved);
    }
}

/* Graphs share memory and keep it between launches; after a trim the driver tells what is left. */
CUresult hook_cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult result = driver.cuDeviceGraphMemTrim(device);
    if (result != CUDA_SUCCESS || !gate_enter())
        return result;
    settle_graphs(device);
    return gate_leave(result);
}

/* After a trim all that was trimmed is charged again before the driver can take it; what it did not take is given
 * back at once. (Which graph needs how much is not to be seen from its executable.) */
static CUresult on_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CUdevice device = 0;
    if (atomic_load_explicit(&trimmed, memory_order_relaxed) == 0 || !gate_enter())
        return driver.cuGraphLaunch(exec, stream);
    uint64_t again = atomic_exchange(&trimmed, 0);
    CUresult result = again ? engine_charge(again, "memory of a graph that was trimmed") : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        atomic_fetch_add(&trimmed, again);
        return gate_leave(result);
    }
    if (again && !outside_add(OUTSIDE_GRAPHS, 0, again))
        engine_refund(again);
    result = driver.cuGraphLaunch(exec, stream);
    if (driver.cuCtxGetDevice(&device) == CUDA_SUCCESS)
        settle_graphs(device);
    return gate_leave(result);
}

STREAM_PAIR(cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream))
