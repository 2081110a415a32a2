/* What functions and kernels can be asked and told. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/limits.h"
#include "tests/device/module.h"
#include "tests/device/settings.h"

static CUresult enter(CUfunction handle, struct function **function)
{
    struct context *context;
    CUresult result = context_enter(&context);
    return result != CUDA_SUCCESS ? result : function_find(handle, function);
}

static CUresult get_attribute(int *value, CUfunction_attribute attribute, const struct function *function)
{
    const struct program_entry *entry = function->entry;
    int version = (int)settings()->capability;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)entry->max_threads;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)entry->shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = 0;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)entry->local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)entry->register_count;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: /* of the code, by which CUB chooses its kernels */
        *value = (int)program_target(function->module->program);
        break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = version;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->dynamic_shared_limit;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = function->carveout;
        break;
    default:
        if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
            return CUDA_ERROR_INVALID_VALUE;
        *value = 0;
    }
    return CUDA_SUCCESS;
}

static CUresult set_attribute(struct function *function, CUfunction_attribute attribute, int value)
{
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (size_t)value + function->entry->shared_bytes > LIMIT_SHARED_OPTIN)
            return CUDA_ERROR_INVALID_VALUE;
        function->dynamic_shared_limit = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        function->carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    return value == NULL ? CUDA_ERROR_INVALID_VALUE : get_attribute(value, attribute, function);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    return result != CUDA_SUCCESS ? result : set_attribute(function, attribute, value);
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    function->cache_config = (int)config;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction handle)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmodule)function->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction handle)
{
    struct function *function;
    CUresult result = function_find(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *name = function->entry->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *bytes)
{
    struct function *function;
    CUresult result = function_find(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (offset == NULL || index >= function->entry->param_count)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = function->entry->params[index].offset;
    if (bytes != NULL)
        *bytes = function->entry->params[index].bytes;
    return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *loading, CUfunction handle)
{
    struct function *function;
    CUresult result = function_find(handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (loading == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *loading = function->is_prepared ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction handle)
{
    struct function *function;
    CUresult result = enter(handle, &function);
    if (result == CUDA_SUCCESS)
        result = function_in_context(function, context_current(), &function);
    return result != CUDA_SUCCESS ? result : function_prepare(function);
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel)
{
    struct function *function;
    CUresult result = enter((CUfunction)kernel, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    result = function_in_context(function, context_current(), &function);
    if (result == CUDA_SUCCESS)
        *out = (CUfunction)function;
    return result;
}

CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel kernel)
{
    struct function *function;
    CUresult result = function_find((CUfunction)kernel, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUlibrary)function->module;
    return CUDA_SUCCESS;
}

static CUresult kernel_of(CUkernel kernel, CUdevice device, struct function **function)
{
    CUresult result = device_check(device);
    return result != CUDA_SUCCESS ? result : function_find((CUfunction)kernel, function);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    struct function *function;
    CUresult result = kernel_of(kernel, device, &function);
    if (result != CUDA_SUCCESS)
        return result;
    return value == NULL ? CUDA_ERROR_INVALID_VALUE : get_attribute(value, attribute, function);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    struct function *function;
    CUresult result = kernel_of(kernel, device, &function);
    return result != CUDA_SUCCESS ? result : set_attribute(function, attribute, value);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    struct function *function;
    CUresult result = kernel_of(kernel, device, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    function->cache_config = (int)config;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    return cuFuncGetName(name, (CUfunction)kernel);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    return cuFuncGetParamInfo((CUfunction)kernel, index, offset, bytes);
}
