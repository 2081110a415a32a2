/* Code that the program loads itself. */
#include "tests/device/runtime/runtime.h"

_Static_assert((int)cudaJitMaxRegisters == (int)CU_JIT_MAX_REGISTERS &&
                   (int)cudaJitOptimizationLevel == (int)CU_JIT_OPTIMIZATION_LEVEL,
               "the options differ");
_Static_assert((int)cudaLibraryBinaryIsPreserved == (int)CU_LIBRARY_BINARY_IS_PRESERVED, "the options differ");
_Static_assert((int)cudaFuncAttributeMaxDynamicSharedMemorySize == (int)CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
               "the attributes differ");

FORWARD(cudaLibraryLoadData,
        (cudaLibrary_t * library, const void *code, enum cudaJitOption *jit, void **jit_values, unsigned int jit_count,
         enum cudaLibraryOption *options, void **values, unsigned int count),
        cuLibraryLoadData((CUlibrary *)library, code, (CUjit_option *)jit, jit_values, jit_count,
                          (CUlibraryOption *)options, values, count))
FORWARD(cudaLibraryLoadFromFile,
        (cudaLibrary_t * library, const char *file, enum cudaJitOption *jit, void **jit_values, unsigned int jit_count,
         enum cudaLibraryOption *options, void **values, unsigned int count),
        cuLibraryLoadFromFile((CUlibrary *)library, file, (CUjit_option *)jit, jit_values, jit_count,
                              (CUlibraryOption *)options, values, count))
FORWARD(cudaLibraryUnload, (cudaLibrary_t library), cuLibraryUnload((CUlibrary)library))
FORWARD(cudaLibraryGetKernel, (cudaKernel_t * kernel, cudaLibrary_t library, const char *name),
        cuLibraryGetKernel((CUkernel *)kernel, (CUlibrary)library, name))
FORWARD(cudaLibraryGetKernelCount, (unsigned int *count, cudaLibrary_t library),
        cuLibraryGetKernelCount(count, (CUlibrary)library))
FORWARD(cudaLibraryEnumerateKernels, (cudaKernel_t * kernels, unsigned int count, cudaLibrary_t library),
        cuLibraryEnumerateKernels((CUkernel *)kernels, count, (CUlibrary)library))
FORWARD(cudaKernelSetAttributeForDevice, (cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int device),
        cuKernelSetAttribute((CUfunction_attribute)attribute, value, (CUkernel)kernel, device))

cudaError_t cudaLibraryGetGlobal(void **address, size_t *bytes, cudaLibrary_t library, const char *name)
{
    CUdeviceptr found = 0;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = runtime_result(driver.cuLibraryGetGlobal(&found, bytes, (CUlibrary)library, name));
    if (error == cudaSuccess && address != NULL)
        *address = (void *)found;
    return error;
}

FORWARD(cudaLibraryGetManaged, (void **address, size_t *bytes, cudaLibrary_t library, const char *name),
        cuLibraryGetManaged((CUdeviceptr *)address, bytes, (CUlibrary)library, name))
FORWARD(cudaLibraryGetUnifiedFunction, (void **address, cudaLibrary_t library, const char *name),
        cuLibraryGetUnifiedFunction(address, (CUlibrary)library, name))

/* ---- the driver's log ---- */

FORWARD_LOADED(cudaLogsRegisterCallback, (cudaLogsCallback_t callback, void *data, cudaLogsCallbackHandle *out),
               cuLogsRegisterCallback((CUlogsCallback)(void *)callback, data, (CUlogsCallbackHandle *)out))
FORWARD_LOADED(cudaLogsUnregisterCallback, (cudaLogsCallbackHandle handle),
               cuLogsUnregisterCallback((CUlogsCallbackHandle)handle))
FORWARD_LOADED(cudaLogsCurrent, (cudaLogIterator * iterator, unsigned int flags),
               cuLogsCurrent((CUlogIterator *)iterator, flags))
FORWARD_LOADED(cudaLogsDumpToFile, (cudaLogIterator * iterator, const char *path, unsigned int flags),
               cuLogsDumpToFile((CUlogIterator *)iterator, path, flags))
FORWARD_LOADED(cudaLogsDumpToMemory, (cudaLogIterator * iterator, char *buffer, size_t *bytes, unsigned int flags),
               cuLogsDumpToMemory((CUlogIterator *)iterator, buffer, bytes, flags))
