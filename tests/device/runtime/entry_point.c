#include "tests/device/runtime/runtime.h"
#include <dlfcn.h>

typedef __typeof__(cuGetProcAddress_v2) get_function;

/* cudaEnable* flags are the driver's numbers. `flags` without a choice means the variant of the caller. */
static cudaError_t entry_point(const char *name, void **address, unsigned version, unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *status)
{
    cudaError_t error = runtime_load();
    if (error != cudaSuccess)
        return error;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    get_function *get = library != NULL ? (get_function *)dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (get == NULL)
        return runtime_record(cudaErrorInsufficientDriver);
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    error = runtime_result(get(name, address, (int)version, flags, &found));
    if (status != NULL)
        *status = (enum cudaDriverEntryPointQueryResult)found;
    return error;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **address, unsigned int version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    return entry_point(name, address, version, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **address, unsigned int version,
                                                  unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *status)
{
    return entry_point(name, address, version, flags == 0 ? cudaEnablePerThreadDefaultStream : flags, status);
}

cudaError_t cudaGetDriverEntryPoint(const char *name, void **address, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status)
{
    return entry_point(name, address, CUDART_VERSION, flags, status);
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *name, void **address, unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion_ptsz(name, address, CUDART_VERSION, flags, status);
}
