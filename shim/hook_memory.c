/* The program's plain allocations, served from the arena, and questions about memory. */
#include "shim/hook.h"

#include "shim/capture.h"
#include "shim/outside.h"

#include "shim/inside.h"

#define PITCH_BYTES 512 /* what drivers align rows to; a multiple of every texture alignment */

static bool has_context(void)
{
    CUcontext context = NULL;
    return driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context;
}

/* Errors that the driver alone knows how to give are left to it: no context, no place for the answer, no bytes. */
CUresult hook_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (address == NULL || bytes == 0 || !gate_enter())
        return driver.cuMemAlloc_v2(address, bytes);
    return gate_leave(has_context() ? engine_allocate(address, bytes, NULL) : driver.cuMemAlloc_v2(address, bytes));
}

CUresult hook_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
    bool is_legal =
        address && pitch && width && height && (element == 4 || element == 8 || element == 16) && width <= SIZE_MAX / 2;
    size_t row = is_legal ? (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES : 0;
    size_t bytes;
    if (!is_legal || __builtin_mul_overflow(row, height, &bytes) || !gate_enter())
        return driver.cuMemAllocPitch_v2(address, pitch, width, height, element);
    if (!has_context())
        return gate_leave(driver.cuMemAllocPitch_v2(address, pitch, width, height, element));
    CUresult result = engine_allocate(address, bytes, NULL);
    if (result == CUDA_SUCCESS)
        *pitch = row;
    return gate_leave(result);
}

/* Not ours: forwarded, and refunded if it was charged. The record goes before the driver frees the address,
 * since another thread may get it at once. */
static CUresult free_outside(CUdeviceptr address, CUresult (*forward)(CUdeviceptr, CUstream), CUstream stream)
{
    uint64_t charged = outside_take(OUTSIDE_ADDRESS, address);
    CUresult result = forward(address, stream);
    if (charged && result == CUDA_SUCCESS)
        engine_refund(charged);
    else if (charged)
        outside_add(OUTSIDE_ADDRESS, address, charged);
    return result;
}

static CUresult forward_free(CUdeviceptr address, CUstream stream)
{
    (void)stream;
    return driver.cuMemFree_v2(address);
}

static CUresult forward_free_async(CUdeviceptr address, CUstream stream)
{
    return driver.cuMemFreeAsync(address, stream);
}

CUresult hook_cuMemFree_v2(CUdeviceptr address)
{
    if (address == 0 || !gate_enter())
        return driver.cuMemFree_v2(address);
    bool is_ours = false;
    CUresult result = engine_free(address, NULL, &is_ours);
    return gate_leave(is_ours ? result : free_outside(address, forward_free, NULL));
}

static CUresult on_cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    if (address == 0 || !gate_enter())
        return driver.cuMemFreeAsync(address, stream);
    bool is_ours = false;
    CUresult result = engine_free(address, stream, &is_ours);
    return gate_leave(is_ours ? result : free_outside(address, forward_free_async, stream));
}

STREAM_PAIR(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), (address, stream))

/* Under capture the allocation is a node of a graph: the driver's, charged for as long as it lives. */
static CUresult allocate_captured(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    CUresult result = engine_charge(bytes, "memory of a captured graph");
    if (result != CUDA_SUCCESS)
        return result;
    result = pool ? driver.cuMemAllocFromPoolAsync(address, bytes, pool, stream)
                  : driver.cuMemAllocAsync(address, bytes, stream);
    if (result == CUDA_SUCCESS)
        outside_add(OUTSIDE_GRAPHS, 0, bytes);
    else
        engine_refund(bytes);
    return result;
}

/* A pool that other processes may open must really hold its memory. What it keeps in reserve is charged. */
static CUresult allocate_private(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    CUresult result = engine_charge(bytes, "memory of a pool that is shared with other processes");
    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuMemAllocFromPoolAsync(address, bytes, pool, stream);
    cuuint64_t reserved = 0;
    if (driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS) {
        if (result == CUDA_SUCCESS)
            outside_add(OUTSIDE_ADDRESS, *address, bytes);
        else
            engine_refund(bytes);
        return result;
    }
    engine_refund(bytes + outside_set(OUTSIDE_POOL, (uintptr_t)pool, 0));
    if (engine_charge(reserved, "memory of a pool that is shared with other processes") == CUDA_SUCCESS)
        outside_set(OUTSIDE_POOL, (uintptr_t)pool, reserved);
    return result;
}

static CUresult on_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    if (address == NULL || bytes == 0 || !gate_enter())
        return driver.cuMemAllocAsync(address, bytes, stream);
    if (capture_is_active(stream))
        return gate_leave(allocate_captured(address, bytes, NULL, stream));
    return gate_leave(has_context() ? engine_allocate(address, bytes, stream)
                                    : driver.cuMemAllocAsync(address, bytes, stream));
}

STREAM_PAIR(cuMemAllocAsync, (CUdeviceptr * address, size_t bytes, CUstream stream), (address, bytes, stream))

static CUresult on_cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    uint64_t kind;
    if (address == NULL || bytes == 0 || pool == NULL || !gate_enter())
        return driver.cuMemAllocFromPoolAsync(address, bytes, pool, stream);
    if (capture_is_active(stream))
        return gate_leave(allocate_captured(address, bytes, pool, stream));
    if (outside_find(OUTSIDE_PRIVATE, (uintptr_t)pool, &kind))
        return gate_leave(kind == PRIVATE_HOST ? driver.cuMemAllocFromPoolAsync(address, bytes, pool, stream)
                                               : allocate_private(address, bytes, pool, stream));
    return gate_leave(has_context() ? engine_allocate(address, bytes, stream)
                                    : driver.cuMemAllocFromPoolAsync(address, bytes, pool, stream));
}

STREAM_PAIR(cuMemAllocFromPoolAsync, (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
            (address, bytes, pool, stream))

/* The driver is asked first, so that its errors are the program's; a cap above the device's memory is no news. */
CUresult hook_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    if (!gate_enter())
        return driver.cuMemGetInfo_v2(free_bytes, total_bytes);
    size_t real_free = 0, real_total = 0, free_now = 0, total = 0;
    CUresult result = driver.cuMemGetInfo_v2(&real_free, &real_total);
    if (result != CUDA_SUCCESS)
        return gate_leave(result);
    if (!engine_memory_info(&free_now, &total)) {
        free_now = real_free;
        total = real_total;
    }
    if (total_bytes)
        *total_bytes = total < real_total ? total : real_total;
    if (free_bytes)
        *free_bytes = free_now < real_total ? free_now : real_total;
    return gate_leave(CUDA_SUCCESS);
}

static unsigned int clip(size_t bytes)
{
    return bytes < UINT32_MAX ? (unsigned int)bytes : UINT32_MAX;
}

CUresult hook_cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes)
{
    size_t free_now = 0, total = 0;
    CUresult result = hook_cuMemGetInfo_v2(&free_now, &total);
    if (result == CUDA_SUCCESS && free_bytes)
        *free_bytes = clip(free_now);
    if (result == CUDA_SUCCESS && total_bytes)
        *total_bytes = clip(total);
    return result;
}

CUresult hook_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = driver.cuDeviceTotalMem_v2(bytes, device);
    size_t total = 0;
    if (result != CUDA_SUCCESS || bytes == NULL || !gate_enter())
        return result;
    if (engine_memory_info(NULL, &total) && total < *bytes)
        *bytes = total;
    return gate_leave(result);
}

CUresult hook_cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t total = 0;
    CUresult result = hook_cuDeviceTotalMem_v2(&total, device);
    if (result == CUDA_SUCCESS && bytes)
        *bytes = clip(total);
    return result;
}

CUresult hook_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    CUdeviceptr found_base = 0;
    size_t found_bytes = 0;
    if (!gate_enter())
        return driver.cuMemGetAddressRange_v2(base, bytes, address);
    if (!engine_find(address, &found_base, &found_bytes))
        return gate_leave(driver.cuMemGetAddressRange_v2(base, bytes, address));
    if (base)
        *base = found_base;
    if (bytes)
        *bytes = found_bytes;
    return gate_leave(CUDA_SUCCESS);
}

/* What the driver would say of memory from cuMemAlloc, whether or not frames are mapped there now. False: only
 * the driver can answer. */
static bool answer_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    if (data == NULL || !engine_find(address, &base, &bytes))
        return false;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return driver.cuCtxGetCurrent((CUcontext *)data) == CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)data = CU_MEMORYTYPE_DEVICE;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = address;
        return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned int *)data = 0;
        return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned int *)data = 1;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return driver.cuCtxGetDevice((CUdevice *)data) == CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = base;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = bytes;
        return true;
    default:
        return false;
    }
}

/* Anything else (tokens, handles, the memory's identity) may let others reach the memory, or needs it mapped. */
CUresult hook_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (!gate_enter())
        return driver.cuPointerGetAttribute(data, attribute, address);
    if (answer_attribute(data, attribute, address))
        return gate_leave(CUDA_SUCCESS);
    CUresult result = engine_pin(address, "a pointer attribute that needs the memory itself");
    if (result == CUDA_SUCCESS)
        result = driver.cuPointerGetAttribute(data, attribute, address);
    return gate_leave(result);
}

/* One after the other; the driver gives what does not apply as zero, and so does this. */
static CUresult get_attributes(unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    for (unsigned i = 0; i < count; i++) {
        if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && data[i])
            *(void **)data[i] = NULL;
        else if (!answer_attribute(data[i], attributes[i], address)) {
            CUresult result = engine_pin(address, "a pointer attribute that needs the memory itself");
            if (result == CUDA_SUCCESS)
                result = driver.cuPointerGetAttributes(1, &attributes[i], &data[i], address);
            if (result != CUDA_SUCCESS)
                return result;
        }
    }
    return CUDA_SUCCESS;
}

CUresult hook_cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    if (attributes == NULL || data == NULL || !gate_enter())
        return driver.cuPointerGetAttributes(count, attributes, data, address);
    return gate_leave(engine_owns(address) ? get_attributes(count, attributes, data, address)
                                           : driver.cuPointerGetAttributes(count, attributes, data, address));
}

CUresult hook_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (!gate_enter())
        return driver.cuPointerSetAttribute(value, attribute, address);
    CUresult result = engine_pin(address, "a pointer attribute that was set");
    if (result == CUDA_SUCCESS)
        result = driver.cuPointerSetAttribute(value, attribute, address);
    return gate_leave(result);
}
