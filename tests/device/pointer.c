/* Questions about an address. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/host_memory.h"
#include "tests/device/memory.h"
#include <string.h>
#include <sys/mman.h>

/* What is known of an address: device memory, page-locked host memory, or neither. */
struct pointer {
    CUdeviceptr address;
    struct context *context;
    bool is_device, is_host;
    struct allocation allocation;
    struct host_range host;
    int protection;
    CUmemAllocationHandleType handle_types;
};

static void look_up(CUdeviceptr address, struct context *context, struct pointer *out)
{
    *out = (struct pointer){.address = address, .context = context};
    out->is_device = memory_find(address, &out->allocation);
    if (out->is_device) {
        memory_lock();
        struct mapping *mapping = space_find(address);
        out->protection = mapping != NULL ? mapping->protection : PROT_NONE;
        if (mapping != NULL && mapping->physical->file >= 0)
            out->handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        memory_unlock();
    } else {
        out->is_host = host_memory_find((const void *)address, &out->host);
    }
}

static CUdeviceptr range_start(const struct pointer *pointer)
{
    return pointer->is_device ? pointer->allocation.base : pointer->host.base;
}

static size_t range_bytes(const struct pointer *pointer)
{
    return pointer->is_device ? pointer->allocation.bytes : pointer->host.bytes;
}

static unsigned access_flags(const struct pointer *pointer)
{
    if (pointer->is_host)
        return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    if (pointer->protection & PROT_WRITE)
        return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    return pointer->protection & PROT_READ ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                           : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

/* Memory that no context owns (pools, mappings) is everybody's: the asking one's. */
static struct context *owner_of(const struct pointer *pointer)
{
    return pointer->is_device && pointer->allocation.owner != NULL ? pointer->allocation.owner : pointer->context;
}

/* cuIpcGetMemHandle takes it. */
static bool is_ipc_capable(const struct pointer *pointer)
{
    enum mapping_kind kind = pointer->allocation.kind;
    return pointer->is_device && !pointer->allocation.is_managed && pointer->allocation.pool == NULL &&
           (kind == MAPPING_ALLOCATION || kind == MAPPING_SLAB);
}

/* False: the address has no such attribute. */
static bool answer(const struct pointer *pointer, CUpointer_attribute attribute, void *value)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = (CUcontext)owner_of(pointer);
        return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = pointer->is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)value = pointer->address;
        return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (pointer->is_device && !pointer->allocation.is_managed)
            return false;
        *(void **)value = (void *)pointer->address;
        return true;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)value = 0;
        return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)value = pointer->is_device ? pointer->allocation.buffer_id : pointer->host.base;
        return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = pointer->is_device && pointer->allocation.is_managed;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = pointer->is_device ? pointer->allocation.device : pointer->context->device;
        return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)value = is_ipc_capable(pointer);
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)value = range_start(pointer);
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)value = range_bytes(pointer);
        return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)value = 1;
        return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)value = pointer->is_device ? pointer->handle_types : CU_MEM_HANDLE_TYPE_NONE;
        return true;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(unsigned *)value = 0;
        return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)value = access_flags(pointer);
        return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)value = pointer->is_device ? (CUmemoryPool)pointer->allocation.pool : NULL;
        return true;
    default:
        return false;
    }
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct context *context;
    struct pointer pointer;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    look_up(address, context, &pointer);
    if (!pointer.is_device && !pointer.is_host)
        return CUDA_ERROR_INVALID_VALUE;
    return answer(&pointer, attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static size_t width_of(CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return 4;
    default:
        return 8;
    }
}

/* Unlike the single form, an unknown address is no error: its attributes are zero. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **values, CUdeviceptr address)
{
    struct context *context;
    struct pointer pointer;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (attributes == NULL || values == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    look_up(address, context, &pointer);
    for (unsigned i = 0; i < count; i++) {
        if (values[i] == NULL || (unsigned)attributes[i] > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE)
            return CUDA_ERROR_INVALID_VALUE;
        bool is_known = (pointer.is_device || pointer.is_host) && answer(&pointer, attributes[i], values[i]);
        if (is_known)
            continue;
        memset(values[i], 0, width_of(attributes[i]));
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)values[i] = CU_DEVICE_INVALID;
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct context *context;
    struct pointer pointer;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    look_up(address, context, &pointer);
    /* Copies of the legacy stream are synchronous enough already. */
    if (value == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !pointer.is_device)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
