/* Modules and libraries: their code is read when they come; what is known of their kernels is dropped when they go.
 * Not all of them come this way: the runtime may load through private tables, so nothing relies on it. */
#include "shim/hook.h"

#include "shim/code.h"
#include "shim/functions.h"
#include "shim/store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/inside.h"

static CUresult note_image(CUresult result, const void *owner, const void *image)
{
    if (result == CUDA_SUCCESS && image && gate_enter()) {
        code_add_module(owner, image);
        gate_leave(result);
    }
    return result;
}

/* The driver has read it, so it is there; if it is gone by now the code stays unread. */
static CUresult note_file(CUresult result, const void *owner, const char *path)
{
    if (result != CUDA_SUCCESS || path == NULL || !gate_enter())
        return result;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
        size_t bytes = (size_t)status.st_size;
        void *image = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
        if (image != MAP_FAILED) {
            code_add_module_bytes(owner, image, bytes);
            munmap(image, bytes);
        }
    }
    if (file >= 0)
        close(file);
    return gate_leave(result);
}

CUresult hook_cuModuleLoad(CUmodule *module, const char *path)
{
    CUresult result = driver.cuModuleLoad(module, path);
    return note_file(result, result == CUDA_SUCCESS ? *module : NULL, path);
}

CUresult hook_cuModuleLoadData(CUmodule *module, const void *image)
{
    CUresult result = driver.cuModuleLoadData(module, image);
    return note_image(result, result == CUDA_SUCCESS ? *module : NULL, image);
}

CUresult hook_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                                 void **values)
{
    CUresult result = driver.cuModuleLoadDataEx(module, image, count, options, values);
    return note_image(result, result == CUDA_SUCCESS ? *module : NULL, image);
}

CUresult hook_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    CUresult result = driver.cuModuleLoadFatBinary(module, image);
    return note_image(result, result == CUDA_SUCCESS ? *module : NULL, image);
}

CUresult hook_cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit, void **jit_values,
                                unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count)
{
    CUresult result = driver.cuLibraryLoadData(library, image, jit, jit_values, jit_count, options, values, count);
    return note_image(result, result == CUDA_SUCCESS ? *library : NULL, image);
}

CUresult hook_cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit, void **jit_values,
                                    unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count)
{
    CUresult result = driver.cuLibraryLoadFromFile(library, path, jit, jit_values, jit_count, options, values, count);
    return note_file(result, result == CUDA_SUCCESS ? *library : NULL, path);
}

/* Before the driver unloads: another thread may get the same handles at once. */
static void forget(const void *owner)
{
    functions_forget(owner);
    code_drop_module(owner);
}

CUresult hook_cuModuleUnload(CUmodule module)
{
    if (!gate_enter())
        return driver.cuModuleUnload(module);
    forget(module);
    return gate_leave(driver.cuModuleUnload(module));
}

CUresult hook_cuLibraryUnload(CUlibrary library)
{
    if (!gate_enter())
        return driver.cuLibraryUnload(library);
    forget(library);
    return gate_leave(driver.cuLibraryUnload(library));
}
