#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/module.h"
#include <stdio.h>
#include <stdlib.h>

static CUresult find_module(CUmodule handle, struct module **out)
{
    struct module *module = (struct module *)handle;
    if (module == NULL || ((uintptr_t)module & 7) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (module->magic != HANDLE_MODULE && module->magic != HANDLE_LIBRARY)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = module;
    return CUDA_SUCCESS;
}

static CUresult find_library(CUlibrary handle, struct module **out)
{
    CUresult result = find_module((CUmodule)handle, out);
    if (result != CUDA_SUCCESS)
        return result;
    return (*out)->magic == HANDLE_LIBRARY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult load(CUmodule *out, const void *image, size_t bytes, unsigned count, const CUjit_option *options,
                     void **values)
{
    struct context *context;
    struct module *module;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct load_log log = load_log_of(count, options, values);
    result = module_load(image, bytes, context, &log, &module);
    if (result == CUDA_SUCCESS)
        *out = (CUmodule)module;
    return result;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    return load(out, image, SIZE_MAX, 0, NULL, NULL);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int count, CUjit_option *options, void **values)
{
    return load(out, image, SIZE_MAX, count, options, values);
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
    return load(out, image, SIZE_MAX, 0, NULL, NULL);
}

char *module_read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return NULL;
    char *text = NULL;
    size_t room = 0, got;
    *bytes = 0;
    do {
        room += (size_t)1 << 20;
        char *more = realloc(text, room + 1);
        if (more == NULL)
            abort();
        text = more;
        got = fread(text + *bytes, 1, room - *bytes, file);
        *bytes += got;
    } while (*bytes == room);
    fclose(file);
    text[*bytes] = '\0';
    return text;
}

CUresult cuModuleLoad(CUmodule *out, const char *path)
{
    size_t bytes;
    if (path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    char *image = module_read_file(path, &bytes);
    if (image == NULL)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = load(out, image, bytes, 0, NULL, NULL);
    free(image);
    return result;
}

CUresult cuModuleUnload(CUmodule handle)
{
    struct context *context;
    struct module *module;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = find_module(handle, &module);
    if (result != CUDA_SUCCESS)
        return result;
    if (module->magic != HANDLE_MODULE)
        return CUDA_ERROR_NOT_PERMITTED;
    module_unload(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (mode == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

static CUresult get_function(CUfunction *out, struct module *module, const char *name)
{
    if (out == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct function *function = module_find_function(module, name);
    if (function == NULL)
        return CUDA_ERROR_NOT_FOUND;
    CUresult result = function_check(function);
    if (result == CUDA_SUCCESS)
        *out = (CUfunction)function;
    return result;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
    struct context *context;
    struct module *module;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = find_module(handle, &module);
    return result != CUDA_SUCCESS ? result : get_function(out, module, name);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name)
{
    struct context *context;
    struct module *module;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = find_module(handle, &module);
    if (result != CUDA_SUCCESS)
        return result;
    return name == NULL ? CUDA_ERROR_INVALID_VALUE : module_find_global(module, name, address, bytes);
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle)
{
    struct module *module;
    CUresult result = find_module(handle, &module);
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (unsigned)module->function_count;
    return CUDA_SUCCESS;
}

static CUresult enumerate(CUfunction *functions, unsigned count, struct module *module)
{
    if (functions == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && i < module->function_count; i++)
        functions[i] = (CUfunction)&module->functions[i];
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int count, CUmodule handle)
{
    struct module *module;
    CUresult result = find_module(handle, &module);
    return result != CUDA_SUCCESS ? result : enumerate(functions, count, module);
}

static CUresult load_library(CUlibrary *out, const void *image, size_t bytes, unsigned count,
                             const CUjit_option *options, void **values)
{
    struct module *module;
    CUresult result = device_open();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct load_log log = load_log_of(count, options, values);
    result = module_load(image, bytes, NULL, &log, &module);
    if (result == CUDA_SUCCESS)
        *out = (CUlibrary)module;
    return result;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *image, CUjit_option *options, void **values, unsigned int count,
                           CUlibraryOption *library_options, void **library_values, unsigned int library_count)
{
    (void)library_options;
    (void)library_values;
    (void)library_count;
    return load_library(out, image, SIZE_MAX, count, options, values);
}

CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *options, void **values,
                               unsigned int count, CUlibraryOption *library_options, void **library_values,
                               unsigned int library_count)
{
    (void)library_options;
    (void)library_values;
    (void)library_count;
    size_t bytes;
    if (path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    char *image = module_read_file(path, &bytes);
    if (image == NULL)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = load_library(out, image, bytes, count, options, values);
    free(image);
    return result;
}

CUresult cuLibraryUnload(CUlibrary handle)
{
    struct module *module;
    CUresult result = find_library(handle, &module);
    if (result != CUDA_SUCCESS)
        return result;
    module_unload(module);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name)
{
    struct module *module;
    CUresult result = find_library(handle, &module);
    return result != CUDA_SUCCESS ? result : get_function((CUfunction *)out, module, name);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle)
{
    return cuModuleGetFunctionCount(count, (CUmodule)handle);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int count, CUlibrary handle)
{
    struct module *module;
    CUresult result = find_library(handle, &module);
    return result != CUDA_SUCCESS ? result : enumerate((CUfunction *)kernels, count, module);
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary handle)
{
    struct context *context;
    struct module *module;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = find_library(handle, &module);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    result = module_in_context(module, context, &module);
    if (result == CUDA_SUCCESS)
        *out = (CUmodule)module;
    return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name)
{
    struct context *context;
    struct module *module;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = find_library(handle, &module);
    if (result == CUDA_SUCCESS)
        result = module_in_context(module, context, &module);
    if (result != CUDA_SUCCESS)
        return result;
    return name == NULL ? CUDA_ERROR_INVALID_VALUE : module_find_global(module, name, address, bytes);
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name)
{
    return cuLibraryGetGlobal(address, bytes, handle, name);
}
