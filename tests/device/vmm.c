/* Virtual memory management: reserve, create, map, protect. The rules are the manual's; see space.h for what
 * they become on the host. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/memory.h"
#include "tests/device/parking.h"
#include "tests/device/settings.h"
#include "tests/device/share.h"
#include "tests/device/space.h"
#include <fcntl.h>
#include <sys/mman.h>

static bool is_whole(uint64_t bytes)
{
    return bytes % frames_bytes() == 0;
}

static bool is_range(CUdeviceptr base, size_t bytes)
{
    return bytes > 0 && base + bytes > base;
}

static CUresult check_location(const CUmemLocation *location)
{
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    return device_check(location->id);
}

static CUresult check_properties(const CUmemAllocationProp *properties)
{
    if (properties == NULL || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
        properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    return check_location(&properties->location);
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (granularity == NULL || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_properties(properties);
    if (result == CUDA_SUCCESS)
        *granularity = settings()->frame_bytes;
    return result;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t align, CUdeviceptr hint, unsigned long long flags)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    (void)hint;
    if (out == NULL || bytes == 0 || !is_whole(bytes) || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((align & (align - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    CUdeviceptr base = space_take(bytes, align);
    if (base != 0 && !reservation_add(base, bytes)) {
        space_give(base, bytes);
        base = 0;
    }
    memory_unlock();
    if (base == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = base;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr base, size_t bytes)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    memory_lock();
    struct reservation *reservation = reservation_find(base);
    if (reservation == NULL || reservation->is_of_graph || reservation->base != base || reservation->bytes != bytes ||
        !space_is_bare(base, bytes)) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        reservation_remove(reservation);
        space_give(base, bytes);
    }
    memory_unlock();
    return result;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_properties(properties);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == 0 || !is_whole(bytes))
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    bool is_shareable = properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
    int device = properties->location.id;
    struct physical *physical = is_shareable ? share_create_physical(device, bytes, properties, 0)
                                             : parking_create_physical(device, bytes, memory_poison());
    if (physical != NULL) {
        physical->properties = *properties;
        physical->handle_count = 1;
    }
    memory_unlock();
    if (physical == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUmemGenericAllocationHandle)physical;
    return CUDA_SUCCESS;
}

/* Under memory_lock. NULL if the handle was released as often as it was made. */
static struct physical *physical_of(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = (struct physical *)handle;
    if (physical == NULL || (handle & 7) != 0 || physical->magic != HANDLE_PHYSICAL)
        return NULL;
    return physical->handle_count > 0 ? physical : NULL;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    memory_lock();
    struct physical *physical = physical_of(handle);
    if (physical == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        physical->handle_count--;
        physical_let_go(physical);
    }
    memory_unlock();
    return result;
}

static bool may_map(CUdeviceptr base, size_t bytes, const struct physical *physical)
{
    const struct reservation *reservation = reservation_find(base);
    if (reservation == NULL || reservation->is_of_graph || base + bytes > reservation->base + reservation->bytes)
        return false;
    return bytes <= physical->bytes && space_is_bare(base, bytes);
}

CUresult cuMemMap(CUdeviceptr base, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    if (flags != 0 || offset != 0 || !is_range(base, bytes) || !is_whole(base) || !is_whole(bytes))
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    struct physical *physical = physical_of(handle);
    if (physical == NULL || !may_map(base, bytes, physical))
        result = CUDA_ERROR_INVALID_VALUE;
    else
        space_map(base, bytes, physical, MAPPING_VIRTUAL);
    memory_unlock();
    return result;
}

/* Under memory_lock: whole mappings of cuMemMap, from the first byte to the last. */
static bool is_virtual_range(CUdeviceptr base, size_t bytes)
{
    const struct reservation *reservation = reservation_find(base);
    return is_range(base, bytes) && is_whole(base) && is_whole(bytes) && reservation != NULL &&
           !reservation->is_of_graph && space_is_covered(base, bytes);
}

CUresult cuMemUnmap(CUdeviceptr base, size_t bytes)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    memory_lock();
    if (!is_virtual_range(base, bytes))
        result = CUDA_ERROR_INVALID_VALUE;
    else
        space_unmap(base, bytes);
    memory_unlock();
    return result;
}

static bool is_access(CUmemAccess_flags flags)
{
    return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
           flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

/* What all devices together may do: the host's pages know of no devices. */
static int protection_of(const struct mapping *mapping)
{
    int protection = PROT_NONE;
    for (unsigned device = 0; device < settings()->device_count; device++) {
        if (mapping->access[device] == CU_MEM_ACCESS_FLAGS_PROT_READ)
            protection |= PROT_READ;
        else if (mapping->access[device] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            protection |= PROT_READ | PROT_WRITE;
    }
    return protection;
}

/* Under memory_lock; the range is covered by whole mappings. Runs of mappings with the same protection go to the host
 * in one call. */
static bool set_access(CUdeviceptr base, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    CUdeviceptr from = base, end = base + bytes;
    int protection = PROT_NONE;
    for (CUdeviceptr at = base; at < end;) {
        struct mapping *mapping = space_find(at);
        for (size_t i = 0; i < count; i++)
            mapping->access[access[i].location.id] = (unsigned char)access[i].flags;
        int own = protection_of(mapping);
        if (at != from && own != protection) {
            if (!space_protect(from, at - from, protection))
                return false;
            from = at;
        }
        protection = own;
        at += mapping->bytes;
    }
    return space_protect(from, end - from, protection);
}

CUresult cuMemSetAccess(CUdeviceptr base, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    if (access == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        result = check_location(&access[i].location);
        if (result == CUDA_SUCCESS && !is_access(access[i].flags))
            result = CUDA_ERROR_INVALID_VALUE;
        if (result != CUDA_SUCCESS)
            return result;
    }
    memory_lock();
    if (!is_virtual_range(base, bytes))
        result = CUDA_ERROR_INVALID_VALUE;
    else if (!set_access(base, bytes, access, count))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    memory_unlock();
    return result;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL || location == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_location(location);
    if (result != CUDA_SUCCESS)
        return result;
    memory_lock();
    const struct mapping *mapping = space_find(address);
    if (mapping == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (mapping->kind == MAPPING_VIRTUAL)
        *flags = mapping->access[location->id];
    else
        *flags = mapping->physical->device == location->id ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    memory_unlock();
    return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    struct mapping *mapping = space_find((CUdeviceptr)address);
    if (mapping == NULL || mapping->kind != MAPPING_VIRTUAL) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        physical_hold(mapping->physical);
        mapping->physical->handle_count++;
        *out = (CUmemGenericAllocationHandle)mapping->physical;
    }
    memory_unlock();
    return result;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    memory_lock();
    struct physical *physical = physical_of(handle);
    if (properties == NULL || physical == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        *properties = physical->properties;
    memory_unlock();
    return result;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    int file = -1;
    memory_lock();
    struct physical *physical = physical_of(handle);
    if (physical == NULL || physical->file < 0)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        file = fcntl(physical->file, F_DUPFD_CLOEXEC, 0);
    memory_unlock();
    if (result == CUDA_SUCCESS && file < 0)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        *(int *)out = file;
    return result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *shared, CUmemAllocationHandleType type)
{
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    memory_lock();
    struct physical *physical = share_import_physical((int)(intptr_t)shared);
    if (physical != NULL)
        physical->handle_count++;
    memory_unlock();
    if (physical == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmemGenericAllocationHandle)physical;
    return CUDA_SUCCESS;
}
