/* A driver that does nothing, for measuring what stands in front of it: launches return at once, streams are always
 * done. Virtual memory is real enough to be written to. */
#include <cuda.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANULE (64u << 10)
#define MEMORY  (4ull << 30)

static int memory_file = -1;
static size_t next_offset;

CUresult cuInit(unsigned int flags)
{
    (void)flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = (CUcontext)&memory_file;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)attribute;
    (void)device;
    *value = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    (void)device;
    strncpy(name, "null", (size_t)bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = MEMORY;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = MEMORY;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags which)
{
    (void)properties;
    (void)which;
    *bytes = GRANULE;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags)
{
    void *range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)alignment;
    (void)wanted;
    (void)flags;
    *address = (CUdeviceptr)range;
    return range == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags)
{
    (void)properties;
    (void)flags;
    if (memory_file < 0 &&
        ((memory_file = memfd_create("null", MFD_CLOEXEC)) < 0 || ftruncate(memory_file, MEMORY) != 0))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = next_offset + 1;
    next_offset += bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    (void)handle;
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    (void)flags;
    void *mapped = mmap((void *)address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory_file,
                        (off_t)(handle - 1 + offset));
    return mapped == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    mmap((void *)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    (void)address;
    (void)bytes;
    (void)access;
    (void)count;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    static CUdeviceptr next = 1ull << 40;
    *address = next;
    next += bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    (void)address;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    (void)flags;
    *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return *address == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    (void)flags;
    *event = (CUevent)&memory_file;
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)event;
    (void)stream;
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    (void)stream;
    (void)event;
    (void)flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    (void)flags;
    (void)priority;
    *stream = (CUstream)&next_offset;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    (void)image;
    *module = (CUmodule)&memory_file;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    *function = (CUfunction)name;
    return CUDA_SUCCESS;
}

/* Six parameters: three pointers, three numbers. */
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    (void)function;
    if (index >= 6)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = index < 3 ? 8 * index : 24 + 4 * (index - 3);
    *bytes = index < 3 ? 8 : 4;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    (void)function;
    *name = "nothing";
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream)
{
    (void)address;
    (void)value;
    (void)bytes;
    (void)stream;
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t bytes)
{
    (void)address;
    (void)value;
    (void)bytes;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void **parameters, void **extra)
{
    (void)function;
    (void)grid_x;
    (void)grid_y;
    (void)grid_z;
    (void)block_x;
    (void)block_y;
    (void)block_z;
    (void)shared_bytes;
    (void)stream;
    (void)parameters;
    (void)extra;
    return CUDA_SUCCESS;
}
