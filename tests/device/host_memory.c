#include "tests/device/driver.h"
#include "tests/device/host_memory.h"
#include "tests/device/context.h"
#include "tests/device/memory.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOST_ALLOC_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS   (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY)

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct {
    struct host_range *ranges; /* ascending, never overlapping */
    size_t count, room;
} state;

static size_t position(uintptr_t address)
{
    size_t low = 0, high = state.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (state.ranges[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct host_range *find(uintptr_t address)
{
    size_t after = position(address);
    if (after == 0)
        return NULL;
    struct host_range *range = &state.ranges[after - 1];
    return address - range->base < range->bytes ? range : NULL;
}

bool host_memory_find(const void *address, struct host_range *out)
{
    pthread_rwlock_rdlock(&lock);
    struct host_range *range = find((uintptr_t)address);
    if (range != NULL)
        *out = *range;
    pthread_rwlock_unlock(&lock);
    return range != NULL;
}

static bool overlaps(uintptr_t base, size_t bytes)
{
    size_t after = position(base);
    return find(base) != NULL || (after < state.count && state.ranges[after].base < base + bytes);
}

/* CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED if part of it is known. */
static CUresult add(struct host_range range)
{
    CUresult result = CUDA_SUCCESS;
    pthread_rwlock_wrlock(&lock);
    if (state.count == state.room) {
        state.room = state.room == 0 ? 16 : 2 * state.room;
        struct host_range *more = realloc(state.ranges, state.room * sizeof *more);
        if (more == NULL)
            abort();
        state.ranges = more;
    }
    if (overlaps(range.base, range.bytes)) {
        result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    } else {
        size_t at = position(range.base);
        memmove(&state.ranges[at + 1], &state.ranges[at], (state.count - at) * sizeof *state.ranges);
        state.ranges[at] = range;
        state.count++;
    }
    pthread_rwlock_unlock(&lock);
    return result;
}

static bool remove_range(uintptr_t base, bool is_registered, struct host_range *out)
{
    pthread_rwlock_wrlock(&lock);
    struct host_range *range = find(base);
    bool is_found = range != NULL && range->base == base && range->is_registered == is_registered;
    if (is_found) {
        *out = *range;
        size_t at = (size_t)(range - state.ranges);
        state.count--;
        memmove(&state.ranges[at], &state.ranges[at + 1], (state.count - at) * sizeof *state.ranges);
    }
    pthread_rwlock_unlock(&lock);
    return is_found;
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || bytes == 0 || (flags & ~(unsigned)HOST_ALLOC_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    add((struct host_range){(uintptr_t)memory, bytes, flags, false});
    *out = memory;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
    return cuMemHostAlloc(out, bytes, 0);
}

CUresult cuMemFreeHost(void *memory)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct host_range range;
    if (memory == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!host_memory_find(memory, &range) || range.base != (uintptr_t)memory || range.is_registered)
        return CUDA_ERROR_INVALID_VALUE;
    /* Copies that are still queued may use it. */
    device_wait();
    if (!remove_range((uintptr_t)memory, false, &range))
        return CUDA_ERROR_INVALID_VALUE;
    munmap(memory, range.bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned int flags)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (memory == NULL || bytes == 0 || (flags & ~(unsigned)REGISTER_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)memory & ~(page - 1);
    uintptr_t end = ((uintptr_t)memory + bytes + page - 1) & ~(page - 1);
    bool is_there = end > begin && msync((void *)begin, end - begin, MS_ASYNC) == 0;
    if (!is_there || memory_is_device((CUdeviceptr)memory))
        return CUDA_ERROR_INVALID_VALUE;
    return add((struct host_range){(uintptr_t)memory, bytes, flags, true});
}

CUresult cuMemHostUnregister(void *memory)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct host_range range;
    if (!host_memory_find(memory, &range) || range.base != (uintptr_t)memory || !range.is_registered)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    device_wait();
    remove_range((uintptr_t)memory, true, &range);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *memory, unsigned int flags)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct host_range range;
    if (out == NULL || flags != 0 || !host_memory_find(memory, &range))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)memory;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *memory)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct host_range range;
    if (flags == NULL || !host_memory_find(memory, &range))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}
