/* Stream-ordered allocation. A pool hoards nothing: memory is taken when it is allocated and given back when
 * the free is reached in stream order, so what is reserved is what is used. */
#include "tests/device/driver.h"
#include "tests/device/capture.h"
#include "tests/device/context.h"
#include "tests/device/graph_memory.h"
#include "tests/device/pool.h"
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Of each device; made at first use, under memory_lock. */
static struct {
    struct pool *standard, *current;
} pools[DEVICES_MAX];

struct pool *pool_new(const CUmemPoolProps *properties)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        abort();
    *pool = (struct pool){.magic = HANDLE_POOL, .properties = *properties, .reuse = {1, 1, 1}};
    pool->access[properties->location.id] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE && getrandom(&pool->id, sizeof pool->id, 0) < 0)
        pool->id = (uintptr_t)pool ^ ((uint64_t)getpid() << 40);
    return pool;
}

static struct pool *default_pool(int device)
{
    memory_lock();
    if (pools[device].standard == NULL) {
        CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
        pools[device].standard = pools[device].current = pool_new(&properties);
        pools[device].standard->is_default = true;
    }
    struct pool *pool = pools[device].standard;
    memory_unlock();
    return pool;
}

static struct pool *current_pool(int device)
{
    default_pool(device);
    memory_lock();
    struct pool *pool = pools[device].current;
    memory_unlock();
    return pool;
}

CUresult pool_find(CUmemoryPool handle, struct pool **out)
{
    struct pool *pool = (struct pool *)handle;
    if (pool == NULL || ((uintptr_t)pool & 7) != 0 || pool->magic != HANDLE_POOL || pool->is_dying)
        return CUDA_ERROR_INVALID_VALUE;
    *out = pool;
    return CUDA_SUCCESS;
}

/* A NULL pool: the current one of the stream's device. */
static CUresult allocate(CUdeviceptr *out, size_t bytes, struct pool *pool, CUstream handle)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (pool == NULL)
        pool = current_pool(stream->context->device);
    if (stream->capture != NULL)
        return capture_allocate(stream, pool, bytes, out);
    if (pool->is_imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->properties.maxSize != 0 && bytes > pool->properties.maxSize - pool->used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return memory_allocate(pool->properties.location.id, bytes, USE_PLAIN, NULL, pool, out);
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    return allocate(out, bytes, NULL, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    return allocate(out, bytes, NULL, per_thread(stream));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool handle, CUstream stream)
{
    struct pool *pool;
    CUresult result = pool_find(handle, &pool);
    return result != CUDA_SUCCESS ? result : allocate(out, bytes, pool, stream);
}

TWIN(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr * out, size_t bytes, CUmemoryPool handle, CUstream stream),
     (out, bytes, handle, per_thread(stream)))

static CUresult free_graph_memory(struct graph_memory *memory, struct stream *stream)
{
    struct work *drop;
    CUresult result = graph_memory_free_outside(memory, &drop);
    if (result == CUDA_SUCCESS)
        work_submit(stream, drop);
    return result;
}

static CUresult free_async(CUdeviceptr address, CUstream handle)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct graph_memory *of_graph = graph_memory_at(address);
    if (stream->capture != NULL)
        return capture_free(stream, of_graph);
    if (of_graph != NULL)
        return free_graph_memory(of_graph, stream);
    struct allocation allocation;
    if (!memory_find(address, &allocation) || allocation.base != address || allocation.kind == MAPPING_VIRTUAL)
        return CUDA_ERROR_INVALID_VALUE;
    struct work *work = work_new(WORK_RELEASE);
    work->release = address;
    memory_expect_release(1);
    work_submit(stream, work);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    return free_async(address, stream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    return free_async(address, per_thread(stream));
}

static bool is_reserved_zero(const CUmemPoolProps *properties)
{
    static const CUmemPoolProps zeros;
    return properties->win32SecurityAttributes == NULL &&
           memcmp(properties->reserved, zeros.reserved, sizeof zeros.reserved) == 0;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *properties)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || properties == NULL || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_reserved_zero(properties) || properties->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE &&
         properties->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return CUDA_ERROR_NOT_SUPPORTED;
    result = device_check(properties->location.id);
    if (result != CUDA_SUCCESS)
        return result;
    *out = (CUmemoryPool)pool_new(properties);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    struct pool *pool;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    int device = pool->properties.location.id;
    memory_lock();
    if (pools[device].current == pool)
        pools[device].current = pools[device].standard;
    pool->is_dying = true;
    bool is_empty = pool->live == 0;
    memory_unlock();
    if (is_empty)
        free(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
    struct pool *pool;
    (void)keep;
    return pool_find(handle, &pool);
}

/* Some attributes are 32 bits wide, the others 64. */
CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    struct pool *pool;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        pool->reuse[0] = *(int *)value;
        break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        pool->reuse[1] = *(int *)value;
        break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[2] = *(int *)value;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->release_threshold = *(cuuint64_t *)value;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(cuuint64_t *)value != 0)
            result = CUDA_ERROR_INVALID_VALUE;
        else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
            pool->used_high = pool->used;
        else
            pool->reserved_high = pool->used;
        break;
    default:
        result = CUDA_ERROR_INVALID_VALUE;
    }
    memory_unlock();
    return result;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    struct pool *pool;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memory_lock();
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        *(int *)value = pool->reuse[0];
        break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        *(int *)value = pool->reuse[1];
        break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = pool->reuse[2];
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = pool->release_threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->used;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = pool->reserved_high;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = pool->used_high;
        break;
    default:
        result = CUDA_ERROR_INVALID_VALUE;
    }
    memory_unlock();
    return result;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *access, size_t count)
{
    struct pool *pool;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (count > 0 && access == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        result = device_check(access[i].location.id);
        if (result != CUDA_SUCCESS)
            return result;
        /* The device that owns the pool cannot be shut out of it. */
        if (access[i].location.id == pool->properties.location.id &&
            access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_DEVICE;
    }
    memory_lock();
    for (size_t i = 0; i < count; i++)
        pool->access[access[i].location.id] = access[i].flags;
    memory_unlock();
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location)
{
    struct pool *pool;
    CUresult result = pool_find(handle, &pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL || location == NULL || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    result = device_check(location->id);
    if (result == CUDA_SUCCESS)
        *flags = pool->access[location->id];
    return result;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmemoryPool)default_pool(device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmemoryPool)current_pool(device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle)
{
    struct pool *pool;
    CUresult result = device_check(device);
    if (result == CUDA_SUCCESS)
        result = pool_find(handle, &pool);
    if (result == CUDA_SUCCESS && (pool->properties.location.id != device || pool->is_imported))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    default_pool(device);
    memory_lock();
    pools[device].current = pool;
    memory_unlock();
    return CUDA_SUCCESS;
}
