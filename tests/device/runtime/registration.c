/* What nvcc's programs tell the runtime about themselves before main: their fatbins, and which host function or
 * variable stands for which name in them. A fatbin is loaded when something of it is first used. */
#include "tests/device/runtime/runtime.h"
#include "tests/device/runtime/registration.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct image {
    const void *wrapper;
    CUlibrary library; /* NULL until loaded */
    CUresult load_result;
    struct image *next;
};

struct symbol {
    const void *host; /* key; NULL: free slot */
    struct image *image;
    const char *name;
    CUkernel kernel; /* functions: NULL until looked up */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct image *images;
    struct symbol *symbols; /* open addressing, at most half full */
    size_t count, room;     /* room: a power of two */
} state;

static size_t slot_of(const void *host)
{
    return (size_t)((uintptr_t)host * 0x9E3779B97F4A7C15u >> 20) & (state.room - 1);
}

static struct symbol *find(const void *host)
{
    if (state.room == 0 || host == NULL)
        return NULL;
    for (size_t i = slot_of(host); state.symbols[i].host != NULL; i = (i + 1) & (state.room - 1))
        if (state.symbols[i].host == host)
            return &state.symbols[i];
    return NULL;
}

static void put(struct symbol symbol)
{
    size_t i = slot_of(symbol.host);
    while (state.symbols[i].host != NULL && state.symbols[i].host != symbol.host)
        i = (i + 1) & (state.room - 1);
    state.count += state.symbols[i].host == NULL;
    state.symbols[i] = symbol;
}

static void grow(void)
{
    struct symbol *old = state.symbols;
    size_t old_room = state.room;
    state.room = old_room == 0 ? 256 : 2 * old_room;
    state.count = 0;
    state.symbols = calloc(state.room, sizeof *state.symbols);
    if (state.symbols == NULL)
        abort();
    for (size_t i = 0; i < old_room; i++)
        if (old[i].host != NULL)
            put(old[i]);
    free(old);
}

static void add(void **handle, const void *host, const char *name)
{
    pthread_mutex_lock(&lock);
    if (2 * (state.count + 1) > state.room)
        grow();
    put((struct symbol){.host = host, .image = (struct image *)handle, .name = name});
    pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static CUresult load(struct image *image)
{
    if (image->library != NULL || image->load_result != CUDA_SUCCESS)
        return image->load_result;
    image->load_result = driver.cuLibraryLoadData(&image->library, image->wrapper, NULL, NULL, 0, NULL, NULL, 0);
    return image->load_result;
}

cudaError_t registered_kernel(const void *host_function, CUkernel *out)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    struct symbol *symbol = find(host_function);
    if (symbol != NULL && symbol->kernel == NULL) {
        result = load(symbol->image);
        if (result == CUDA_SUCCESS)
            result = driver.cuLibraryGetKernel(&symbol->kernel, symbol->image->library, symbol->name);
    }
    if (symbol != NULL)
        *out = symbol->kernel;
    pthread_mutex_unlock(&lock);
    return symbol == NULL || result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : (cudaError_t)result;
}

cudaError_t registered_variable(const void *host_variable, CUdeviceptr *address, size_t *bytes)
{
    CUresult result = CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&lock);
    struct symbol *symbol = find(host_variable);
    if (symbol != NULL)
        result = load(symbol->image);
    if (symbol != NULL && result == CUDA_SUCCESS)
        result = driver.cuLibraryGetGlobal(address, bytes, symbol->image->library, symbol->name);
    pthread_mutex_unlock(&lock);
    return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : (cudaError_t)result;
}

void **__cudaRegisterFatBinary(void *wrapper)
{
    struct image *image = calloc(1, sizeof *image);
    if (image == NULL)
        abort();
    image->wrapper = wrapper;
    pthread_mutex_lock(&lock);
    image->next = state.images;
    state.images = image;
    pthread_mutex_unlock(&lock);
    return (void **)image;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

/* At exit, when the driver may be half gone, or at dlclose: only what was registered is forgotten. */
void __cudaUnregisterFatBinary(void **handle)
{
    pthread_mutex_lock(&lock);
    struct image **link = &state.images;
    while (*link != NULL && *link != (struct image *)handle)
        link = &(*link)->next;
    if (*link != NULL)
        *link = (*link)->next;
    struct symbol *old = state.symbols;
    size_t old_room = state.room;
    if (old_room > 0) {
        state.count = 0;
        state.symbols = calloc(state.room, sizeof *state.symbols);
        if (state.symbols == NULL)
            abort();
        for (size_t i = 0; i < old_room; i++)
            if (old[i].host != NULL && old[i].image != (struct image *)handle)
                put(old[i]);
        free(old);
    }
    pthread_mutex_unlock(&lock);
    free(handle);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device_function, const char *device_name,
                            int thread_limit, void *thread, void *block, void *block_size, void *grid_size,
                            int *warp_size)
{
    (void)device_function, (void)thread_limit, (void)thread, (void)block, (void)block_size, (void)grid_size;
    (void)warp_size;
    add(handle, host, device_name);
}

void __cudaRegisterVar(void **handle, char *host, char *device_address, const char *device_name, int is_external,
                       size_t bytes, int is_constant, int is_global)
{
    (void)device_address, (void)is_external, (void)bytes, (void)is_constant, (void)is_global;
    add(handle, host, device_name);
}

void __cudaRegisterHostVar(void **handle, const char *device_name, char *host, size_t bytes)
{
    (void)bytes;
    add(handle, host, device_name);
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host_function)
{
    CUkernel kernel = NULL;
    cudaError_t error = runtime_enter();
    if (error == cudaSuccess)
        error = registered_kernel(host_function, &kernel);
    if (error == cudaSuccess)
        *out = (cudaKernel_t)kernel;
    return runtime_record(error);
}

cudaError_t cudaGetKernel(cudaKernel_t *out, const void *host_function)
{
    return out == NULL ? runtime_record(cudaErrorInvalidValue) : __cudaGetKernel(out, host_function);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *out, const void *symbol)
{
    CUkernel kernel = NULL;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    error = registered_kernel(symbol, &kernel);
    if (error != cudaSuccess)
        return runtime_record(error);
    return runtime_result(driver.cuKernelGetFunction((CUfunction *)out, kernel));
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    CUdeviceptr device = 0;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (address == NULL)
        return runtime_record(cudaErrorInvalidValue);
    error = registered_variable(symbol, &device, NULL);
    if (error == cudaSuccess)
        *address = (void *)device;
    return runtime_record(error);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    CUdeviceptr device = 0;
    cudaError_t error = runtime_enter();
    if (error != cudaSuccess)
        return error;
    if (bytes == NULL)
        return runtime_record(cudaErrorInvalidValue);
    return runtime_record(registered_variable(symbol, &device, bytes));
}
