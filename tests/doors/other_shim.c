/* Somebody else's preloaded library in the style of the public ones: it exports the driver's name and looks for the
 * next one, and (built with OVERRIDES_DLSYM) it overrides dlsym as well. It counts what it sees. */
#include <cuda.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int seen;

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    static CUresult (*next)(CUdeviceptr *, size_t);
    seen++;
    if (next == NULL)
        next = (CUresult(*)(CUdeviceptr *, size_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    return next ? next(address, bytes) : CUDA_ERROR_UNKNOWN;
}

#ifdef OVERRIDES_DLSYM
void *dlsym(void *handle, const char *name);
void *dlsym(void *handle, const char *name)
{
    static void *(*real)(void *, const char *);
    if (real == NULL)
        real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (real == NULL)
        real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
    if (handle != RTLD_NEXT && strcmp(name, "cuMemAlloc_v2") == 0)
        return (void *)cuMemAlloc_v2;
    return real(handle, name);
}
#endif

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("OTHER_SHIM_REPORT");
    FILE *file = path && seen ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%d\n", seen);
        fclose(file);
    }
}
