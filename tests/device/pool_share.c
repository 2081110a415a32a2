/* Pools and their allocations in other processes, and the calls that name a pool by location. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/memory.h"
#include "tests/device/pool.h"
#include "tests/device/share.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LABEL_BYTES 4096

_Static_assert(sizeof(struct share_ticket) <= sizeof(CUmemPoolPtrExportData), "a ticket does not fit");

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool handle, CUmemAllocationHandleType type,
                                          unsigned long long flags)
{
    struct pool *pool;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        pool->properties.handleTypes != type || pool->is_imported)
        return CUDA_ERROR_INVALID_VALUE;
    struct share_label label = {
        .kind = SHARE_POOL, .device_id = settings()->device_ids[pool->properties.location.id], .pool_id = pool->id};
    int file = memfd_create("cpu-device-pool", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, LABEL_BYTES) != 0 ||
        pwrite(file, &label, sizeof label, 0) != (ssize_t)sizeof label) {
        if (file >= 0)
            close(file);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *(int *)out = file;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *shared, CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    struct share_label label;
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !share_read_label((int)(intptr_t)shared, SHARE_POOL, &label))
        return CUDA_ERROR_INVALID_VALUE;
    int device = share_device(label.device_id);
    if (device < 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .handleTypes = type,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    struct pool *pool = pool_new(&properties);
    pool->is_imported = true;
    pool->id = label.pool_id;
    *out = (CUmemoryPool)pool;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr address)
{
    struct allocation allocation;
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || !memory_find(address, &allocation) || allocation.base != address || allocation.pool == NULL ||
        allocation.pool->properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE || allocation.pool->is_imported)
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    struct mapping *mapping = space_find(address);
    struct share_ticket ticket = {.kind = SHARE_MEMORY,
                                  .process = getpid(),
                                  .file = mapping->physical->file,
                                  .bytes = allocation.bytes,
                                  .pool_id = allocation.pool->id};
    memory_unlock();
    memset(out, 0, sizeof *out);
    memcpy(out, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool handle, CUmemPoolPtrExportData *shared)
{
    struct pool *pool;
    struct share_ticket ticket;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || shared == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&ticket, shared, sizeof ticket);
    if (!pool->is_imported || ticket.kind != SHARE_MEMORY || ticket.pool_id != pool->id)
        return CUDA_ERROR_INVALID_VALUE;
    int file = share_open_ticket(&ticket);
    if (file < 0)
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    struct physical *physical = share_import_physical(file);
    memory_unlock();
    close(file);
    return physical == NULL ? CUDA_ERROR_INVALID_VALUE : memory_place(physical, ticket.bytes, pool, out);
}

/* ---- by location ---- */

static CUresult check_location(const CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (location == NULL || (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    bool is_host = location->type == CU_MEM_LOCATION_TYPE_HOST || location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    bool is_nowhere = location->type == CU_MEM_LOCATION_TYPE_NONE && type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    /* Host and managed pools are not here. */
    if (is_host || is_nowhere)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    return type == CU_MEM_ALLOCATION_TYPE_MANAGED ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = check_location(location, type);
    return result != CUDA_SUCCESS ? result : cuDeviceGetDefaultMemPool(out, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = check_location(location, type);
    return result != CUDA_SUCCESS ? result : cuDeviceGetMemPool(out, location->id);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUresult result = check_location(location, type);
    return result != CUDA_SUCCESS ? result : cuDeviceSetMemPool(location->id, pool);
}
