/* Modules and libraries: their code is read when they come; what is known of their kernels is dropped when they go.
 * Not all of them come this way: the runtime may load through private tables, so nothing relies on it. */
#include "shim/hook.h"

#include "shim/code.h"
#include "shim/functions.h"
#include "shim/store.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/inside.h"

/* Reads the code of an image that is about to be loaded and charges for its variables; `key` stands for the handle
 * that there is not yet, `bytes` bounds the image. */
static CUresult before_load(const void *key, const void *image, size_t bytes)
{
    code_add_module_bytes(key, image, bytes);
    CUresult result = engine_charge_variables(code_module_variable_bytes(key));
    if (result != CUDA_SUCCESS)
        code_drop_module(key);
    return result;
}

/* `handle`: where the driver has put the handle, if it has loaded. */
static CUresult after_load(const void *key, CUresult result, const void *handle)
{
    if (result == CUDA_SUCCESS) {
        const void *owner;
        memcpy(&owner, handle, sizeof owner);
        engine_refund_variables(code_module_variable_bytes(owner)); /* of a module whose end nobody saw */
        code_rename_module(key, owner);
    } else {
        size_t bytes = code_module_variable_bytes(key);
        code_drop_module(key);
        engine_refund_variables(bytes);
    }
    return result;
}

/* The same for an image in a file. One that cannot be read stays unread. */
static CUresult before_load_file(const void *key, const char *path)
{
    CUresult result = CUDA_SUCCESS;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
        size_t bytes = (size_t)status.st_size;
        void *image = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
        if (image != MAP_FAILED) {
            result = before_load(key, image, bytes);
            munmap(image, bytes);
        }
    }
    if (file >= 0)
        close(file);
    return result;
}

CUresult hook_cuModuleLoad(CUmodule *module, const char *path)
{
    if (module == NULL || path == NULL || !gate_enter())
        return driver.cuModuleLoad(module, path);
    CUresult result = before_load_file(&module, path);
    if (result == CUDA_SUCCESS)
        result = after_load(&module, driver.cuModuleLoad(module, path), module);
    return gate_leave(result);
}

CUresult hook_cuModuleLoadData(CUmodule *module, const void *image)
{
    if (module == NULL || image == NULL || !gate_enter())
        return driver.cuModuleLoadData(module, image);
    CUresult result = before_load(&module, image, SIZE_MAX);
    if (result == CUDA_SUCCESS)
        result = after_load(&module, driver.cuModuleLoadData(module, image), module);
    return gate_leave(result);
}

CUresult hook_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                                 void **values)
{
    if (module == NULL || image == NULL || !gate_enter())
        return driver.cuModuleLoadDataEx(module, image, count, options, values);
    CUresult result = before_load(&module, image, SIZE_MAX);
    if (result == CUDA_SUCCESS)
        result = after_load(&module, driver.cuModuleLoadDataEx(module, image, count, options, values), module);
    return gate_leave(result);
}

CUresult hook_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    if (module == NULL || image == NULL || !gate_enter())
        return driver.cuModuleLoadFatBinary(module, image);
    CUresult result = before_load(&module, image, SIZE_MAX);
    if (result == CUDA_SUCCESS)
        result = after_load(&module, driver.cuModuleLoadFatBinary(module, image), module);
    return gate_leave(result);
}

CUresult hook_cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit, void **jit_values,
                                unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count)
{
    if (library == NULL || image == NULL || !gate_enter())
        return driver.cuLibraryLoadData(library, image, jit, jit_values, jit_count, options, values, count);
    CUresult result = before_load(&library, image, SIZE_MAX);
    if (result == CUDA_SUCCESS)
        result = after_load(
            &library, driver.cuLibraryLoadData(library, image, jit, jit_values, jit_count, options, values, count),
            library);
    return gate_leave(result);
}

CUresult hook_cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit, void **jit_values,
                                    unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count)
{
    if (library == NULL || path == NULL || !gate_enter())
        return driver.cuLibraryLoadFromFile(library, path, jit, jit_values, jit_count, options, values, count);
    CUresult result = before_load_file(&library, path);
    if (result == CUDA_SUCCESS)
        result = after_load(
            &library, driver.cuLibraryLoadFromFile(library, path, jit, jit_values, jit_count, options, values, count),
            library);
    return gate_leave(result);
}

/* Before the driver unloads: another thread may get the same handles at once. Returns what its variables took. */
static size_t forget(const void *owner)
{
    size_t bytes = code_module_variable_bytes(owner);
    functions_forget(owner);
    code_drop_module(owner);
    return bytes;
}

CUresult hook_cuModuleUnload(CUmodule module)
{
    if (!gate_enter())
        return driver.cuModuleUnload(module);
    size_t bytes = forget(module);
    CUresult result = driver.cuModuleUnload(module);
    engine_refund_variables(bytes);
    return gate_leave(result);
}

CUresult hook_cuLibraryUnload(CUlibrary library)
{
    if (!gate_enter())
        return driver.cuLibraryUnload(library);
    size_t bytes = forget(library);
    CUresult result = driver.cuLibraryUnload(library);
    engine_refund_variables(bytes);
    return gate_leave(result);
}
