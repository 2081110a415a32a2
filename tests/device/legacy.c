/* Calls of early CUDA releases that need no 32-bit device address: contexts by use count, launches by a function's own
 * state, sizes in 32 bits. (The forms of CUDA 3.1 that take such addresses are not here: none is below 4 GiB.) */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/launch.h"
#include "tests/device/module.h"
#include <stdlib.h>
#include <string.h>

/* ---- contexts and memory ---- */

CUresult cuCtxCreate(CUcontext *out, unsigned int flags, CUdevice device)
{
    return cuCtxCreate_v2(out, flags, device);
}

CUresult cuCtxDestroy(CUcontext context)
{
    return cuCtxDestroy_v2(context);
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    return cuCtxPushCurrent_v2(context);
}

CUresult cuCtxPopCurrent(CUcontext *out)
{
    return cuCtxPopCurrent_v2(out);
}

static unsigned saturated(size_t bytes)
{
    return bytes < UINT32_MAX ? (unsigned)bytes : UINT32_MAX;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t all = 0;
    CUresult result = cuDeviceTotalMem_v2(bytes != NULL ? &all : NULL, device);
    if (result == CUDA_SUCCESS)
        *bytes = saturated(all);
    return result;
}

CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
    size_t all_free = 0, all = 0;
    CUresult result = cuMemGetInfo_v2(&all_free, &all);
    if (result == CUDA_SUCCESS && free_bytes != NULL)
        *free_bytes = saturated(all_free);
    if (result == CUDA_SUCCESS && total != NULL)
        *total = saturated(all);
    return result;
}

CUresult cuMemAllocHost(void **out, unsigned int bytes)
{
    return cuMemAllocHost_v2(out, bytes);
}

CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned int flags)
{
    return cuMemHostRegister_v2(memory, bytes, flags);
}

/* ---- launches ---- */

static CUresult enter(CUfunction handle, struct function **function)
{
    struct context *context;
    CUresult result = context_enter(&context);
    return result != CUDA_SUCCESS ? result : function_find(handle, function);
}

/* What the function's next cuLaunch uses. */
static struct old_launch *old_launch(struct function *function)
{
    if (function->old == NULL) {
        function->old = calloc(1, sizeof *function->old + function->entry->param_bytes);
        if (function->old == NULL)
            abort();
        function->old->block[0] = function->old->block[1] = function->old->block[2] = 1;
    }
    return function->old;
}

CUresult cuFuncSetBlockShape(CUfunction handle, int x, int y, int z)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (x <= 0 || y <= 0 || z <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct old_launch *old = old_launch(function);
    old->block[0] = (unsigned)x;
    old->block[1] = (unsigned)y;
    old->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedSize(CUfunction handle, unsigned int bytes)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes > (unsigned)function->dynamic_shared_limit)
        return CUDA_ERROR_INVALID_VALUE;
    old_launch(function)->shared_bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult cuParamSetSize(CUfunction handle, unsigned int bytes)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes > function->entry->param_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    old_launch(function)->argument_bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult cuParamSetv(CUfunction handle, int offset, void *from, unsigned int bytes)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    size_t room = function->entry->param_bytes;
    if (offset < 0 || from == NULL || (size_t)offset > room || bytes > room - (size_t)offset)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(old_launch(function)->arguments + offset, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuParamSeti(CUfunction function, int offset, unsigned int value)
{
    return cuParamSetv(function, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction function, int offset, float value)
{
    return cuParamSetv(function, offset, &value, sizeof value);
}

static CUresult launch(CUfunction handle, int width, int height, CUstream stream)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct old_launch *old = old_launch(function);
    size_t bytes = old->argument_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, old->arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    return cuLaunchKernel(handle, (unsigned)width, (unsigned)height, 1, old->block[0], old->block[1], old->block[2],
                          old->shared_bytes, stream, NULL, extra);
}

CUresult cuLaunch(CUfunction function)
{
    return launch(function, 1, 1, NULL);
}

CUresult cuLaunchGrid(CUfunction function, int width, int height)
{
    return launch(function, width, height, NULL);
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    return launch(function, width, height, stream);
}

/* ---- what no PTX module here has ---- */

CUresult cuModuleGetTexRef(CUtexref *out, CUmodule module, const char *name)
{
    unsigned count;
    CUresult result = cuModuleGetFunctionCount(&count, module);
    if (result != CUDA_SUCCESS)
        return result;
    return out == NULL || name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetSurfRef(CUsurfref *out, CUmodule module, const char *name)
{
    return cuModuleGetTexRef((CUtexref *)out, module, name);
}

CUresult cuLibraryGetUnifiedFunction(void **out, CUlibrary library, const char *name)
{
    unsigned count;
    CUresult result = cuLibraryGetKernelCount(&count, library);
    if (result != CUDA_SUCCESS)
        return result;
    return out == NULL || name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}
