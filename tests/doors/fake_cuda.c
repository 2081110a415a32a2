/* A libcuda.so.1 that does next to nothing, but is strict about how it is called: memory comes from the host, per
 * thread contexts are kept, and cuGetProcAddress hands out other addresses than the exported ones for some
 * functions, as a driver may. */
#include <cuda.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread int has_context;
static _Atomic int captures;
static _Atomic int wrong_calls; /* calls with a form that the program did not use */

int fake_wrong_calls(void);
int fake_wrong_calls(void)
{
    return wrong_calls;
}

CUresult cuInit(unsigned int flags)
{
    (void)flags;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = has_context ? (CUcontext)&captures : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    has_context = context != NULL;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = (CUcontext)&captures;
    return CUDA_SUCCESS;
}

/* The 32-bit form cannot be served here; being called by mistake for the other must show. */
CUresult cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
    (void)address;
    (void)bytes;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult allocate(CUdeviceptr *address, size_t bytes)
{
    if (!has_context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *address = (CUdeviceptr)malloc(bytes);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    return allocate(address, bytes);
}

/* The address that cuGetProcAddress gives. */
static CUresult handed_out_allocate(CUdeviceptr *address, size_t bytes)
{
    return allocate(address, bytes);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    free((void *)address);
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = 1u << 30;
    *total_bytes = 1u << 30;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = 1u << 30;
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    memcpy((void *)to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t bytes)
{
    memcpy((void *)to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    memcpy(to, (const void *)from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    wrong_calls += stream == NULL; /* the hook gives it its name */
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    (void)stream;
    wrong_calls++; /* one driver function serves both forms */
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    (void)stream;
    (void)mode;
    captures++;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    (void)stream;
    *graph = NULL;
    captures--;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

/* One kernel: it has a pointer and an int, and stores the int through the pointer. */
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    (void)function;
    if (index > 1)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = index * 8;
    *bytes = index ? 4 : 8;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    (void)function;
    *name = "store";
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void **parameters, void **extra)
{
    (void)function;
    (void)stream;
    (void)shared_bytes;
    if (grid_x * grid_y * grid_z * block_x * block_y * block_z == 0)
        return CUDA_ERROR_INVALID_VALUE;
    int *to = parameters ? *(int **)parameters[0] : *(int **)extra[1];
    int value = parameters ? *(int *)parameters[1] : *(int *)((char *)extra[1] + 8);
    *to = value;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    (void)stream;
    return allocate(address, bytes);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    (void)stream;
    free((void *)address);
    return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    (void)flags;
    return allocate(address, bytes);
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    int is_per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    *function = NULL;
    if (strcmp(name, "") == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (strcmp(name, "cuMemAlloc") == 0)
        *function = version >= 3020 ? (void *)handed_out_allocate : (void *)cuMemAlloc;
    else if (strcmp(name, "cuMemFree") == 0)
        *function = (void *)cuMemFree_v2;
    else if (strcmp(name, "cuMemcpyHtoD") == 0)
        *function = is_per_thread ? (void *)cuMemcpyHtoD_v2_ptds : (void *)cuMemcpyHtoD_v2;
    else if (strcmp(name, "cuStreamSynchronize") == 0)
        *function = is_per_thread ? (void *)cuStreamSynchronize_ptsz : (void *)cuStreamSynchronize;
    else if (strcmp(name, "cuGetProcAddress") == 0)
        *function = (void *)cuGetProcAddress_v2;
    else if (strcmp(name, "cuCtxSetCurrent") == 0)
        *function = (void *)cuCtxSetCurrent;
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

#ifdef CALLS_BACK
/* A driver whose start-up looks names up and calls itself through the exported names, on the thread that loads it. */
__attribute__((constructor)) static void call_back(void)
{
    CUresult (*get_info)(size_t *, size_t *) = (CUresult(*)(size_t *, size_t *))dlsym(RTLD_DEFAULT, "cuMemGetInfo_v2");
    size_t free_bytes, total_bytes;
    if (get_info)
        fprintf(stderr, "called back: %d\n", get_info(&free_bytes, &total_bytes));
}
#endif
