/* Initialisation, the thread's device and context, and the last error. */
#include "tests/device/runtime/runtime.h"
#include <pthread.h>

#define DEVICES_MAX 64

static THREAD_LOCAL cudaError_t last_error;
static THREAD_LOCAL int device;

static struct {
    CUresult init_result;
    CUcontext primaries[DEVICES_MAX]; /* of each device, retained once for the process */
    unsigned flags;
} state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t init_once = PTHREAD_ONCE_INIT;

cudaError_t runtime_record(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

cudaError_t runtime_result(CUresult result)
{
    return runtime_record((cudaError_t)result);
}

static void init(void)
{
    state.init_result = driver.cuInit(0);
}

cudaError_t runtime_load(void)
{
    cudaError_t error = driver_load();
    if (error != cudaSuccess)
        return runtime_record(error);
    pthread_once(&init_once, init);
    return runtime_result(state.init_result);
}

CUresult runtime_primary(int ordinal, CUcontext *out)
{
    if (ordinal < 0 || ordinal >= DEVICES_MAX)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    CUresult result = CUDA_SUCCESS;
    if (state.primaries[ordinal] == NULL)
        result = driver.cuDevicePrimaryCtxRetain(&state.primaries[ordinal], ordinal);
    *out = state.primaries[ordinal];
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult make_current(void)
{
    CUcontext primary;
    CUresult result = runtime_primary(device, &primary);
    return result != CUDA_SUCCESS ? result : driver.cuCtxSetCurrent(primary);
}

cudaError_t runtime_enter(void)
{
    cudaError_t error = runtime_load();
    if (error != cudaSuccess)
        return error;
    CUcontext current = NULL;
    CUresult result = driver.cuCtxGetCurrent(&current);
    if (result == CUDA_SUCCESS && current == NULL)
        result = make_current();
    return runtime_result(result);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

FORWARD_LOADED(cudaGetDeviceCount, (int *count), cuDeviceGetCount(count))

cudaError_t cudaGetDevice(int *out)
{
    cudaError_t error = runtime_load();
    if (error != cudaSuccess)
        return error;
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    /* A context that the program made current itself decides. */
    if (driver.cuCtxGetDevice(out) != CUDA_SUCCESS)
        *out = device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess)
        return error;
    if (ordinal < 0 || ordinal >= count)
        return runtime_record(cudaErrorInvalidDevice);
    device = ordinal;
    return runtime_result(make_current());
}

cudaError_t cudaInitDevice(int ordinal, unsigned int device_flags, unsigned int flags)
{
    (void)device_flags;
    if (flags != 0 && flags != cudaInitDeviceFlagsAreValid)
        return runtime_record(cudaErrorInvalidValue);
    return cudaSetDevice(ordinal);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    cudaError_t error = runtime_load();
    if (error != cudaSuccess)
        return error;
    state.flags = flags;
    return runtime_result(driver.cuDevicePrimaryCtxSetFlags_v2(device, flags & ~(unsigned)cudaDeviceMapHost));
}

FORWARD(cudaGetDeviceFlags, (unsigned int *flags), cuCtxGetFlags(flags))
FORWARD_LOADED(cudaDeviceReset, (void), cuDevicePrimaryCtxReset_v2(device))
FORWARD(cudaDeviceSynchronize, (void), cuCtxSynchronize())

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (version == NULL)
        return runtime_record(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    if (version == NULL)
        return runtime_record(cudaErrorInvalidValue);
    *version = 0;
    if (driver_load() != cudaSuccess)
        return cudaSuccess;
    return runtime_result(driver.cuDriverGetVersion(version));
}

FORWARD(cudaProfilerStart, (void), cuProfilerStart())
FORWARD(cudaProfilerStop, (void), cuProfilerStop())
