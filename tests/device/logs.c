/* The driver's log: the CPU device writes none, so callbacks are never called and what is dumped is empty. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include <fcntl.h>
#include <unistd.h>

CUresult cuLogsRegisterCallback(CUlogsCallback callback, void *data, CUlogsCallbackHandle *out)
{
    static char registered[64];
    static _Atomic unsigned count;
    (void)data;
    if (callback == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (out != NULL)
        *out = (CUlogsCallbackHandle)&registered[count++ % sizeof registered];
    return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
    return handle == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuLogsCurrent(CUlogIterator *iterator, unsigned int flags)
{
    if (iterator == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *iterator = 0;
    return CUDA_SUCCESS;
}

CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *path, unsigned int flags)
{
    (void)iterator;
    if (path == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return CUDA_ERROR_INVALID_VALUE;
    close(file);
    return CUDA_SUCCESS;
}

CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *bytes, unsigned int flags)
{
    (void)iterator;
    if (buffer == NULL || bytes == NULL || *bytes == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *buffer = '\0';
    *bytes = 0;
    return CUDA_SUCCESS;
}
