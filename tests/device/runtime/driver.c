#include "tests/device/runtime/runtime.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

struct driver driver;

static cudaError_t load_error;
static pthread_once_t once = PTHREAD_ONCE_INIT;

typedef __typeof__(cuGetProcAddress_v2) get_function;

static void *request(get_function *get, const char *name, int version, cuuint64_t flags)
{
    void *address = NULL;
    if (get(name, &address, version, flags, NULL) != CUDA_SUCCESS)
        address = NULL;
    if (address == NULL) {
        fprintf(stderr, "cuda runtime: the driver has no %s of version %d\n", name, version);
        load_error = cudaErrorInsufficientDriver;
    }
    return address;
}

static void load(void)
{
    load_error = cudaErrorInsufficientDriver;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL)
        return;
    void *address = dlsym(library, "cuGetProcAddress_v2");
    if (address == NULL)
        return;
    get_function *get = (get_function *)address;
    void *probe = NULL;
    get("", &probe, 0, 0, NULL);
    load_error = cudaSuccess;
#define CALL(symbol, name, version)    driver.symbol = (__typeof__(driver.symbol))request(get, #name, version, 0);
#define CALL_PT(symbol, name, version) driver.symbol = (__typeof__(driver.symbol))request(get, #name, version, 2);
#include "tests/device/runtime/calls.def"
#undef CALL
#undef CALL_PT
}

cudaError_t driver_load(void)
{
    pthread_once(&once, load);
    return load_error;
}
