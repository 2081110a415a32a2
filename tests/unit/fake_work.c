/* Launches, copies and sets of the fake driver. */
#include "tests/unit/fake_inside.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FUNCTIONS 256

struct CUfunc_st {
    char name[64];
    uint32_t argument_bytes;
    fake_kernel *run;
    uint64_t nanoseconds, launches;
};

static struct {
    struct CUfunc_st functions[MAX_FUNCTIONS];
    uint32_t count;
} state;

CUfunction fake_function(const char *name, uint32_t argument_bytes, fake_kernel *run, uint64_t nanoseconds)
{
    if (state.count == MAX_FUNCTIONS) {
        fake_die("too many functions");
    }
    struct CUfunc_st *function = &state.functions[state.count++];
    *function = (struct CUfunc_st){.argument_bytes = argument_bytes, .run = run, .nanoseconds = nanoseconds};
    strncpy(function->name, name, sizeof function->name - 1);
    return function;
}

const char *fake_function_name(CUfunction function)
{
    return function->name;
}

uint64_t fake_launches(CUfunction function)
{
    return function->launches;
}

/* ---- launches ---- */

struct launch {
    CUfunction function;
    _Alignas(16) unsigned char arguments[];
};

static void run_launch(const void *work)
{
    const struct launch *launch = work;
    launch->function->launches++;
    fake_counts()->launches++;
    launch->function->run(launch->arguments);
}

static const void *packed_arguments(void **extra, size_t *bytes)
{
    const void *arguments = NULL;
    for (int i = 0; extra != NULL && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            arguments = extra[i + 1];
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            *bytes = *(const size_t *)extra[i + 1];
        }
    }
    return arguments;
}

static CUresult put_launch(CUfunction function, CUstream stream, void **parameters, void **extra)
{
    size_t bytes = function->argument_bytes;
    const void *arguments = parameters != NULL ? parameters[0] : packed_arguments(extra, &bytes);
    if (bytes != function->argument_bytes || (bytes > 0 && arguments == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct launch *launch = malloc(sizeof *launch + bytes);
    if (launch == NULL) {
        fake_die("no memory");
    }
    launch->function = function;
    memcpy(launch->arguments, arguments, bytes);
    fake_put(stream, run_launch, launch, sizeof *launch + bytes, function->nanoseconds);
    free(launch);
    return CUDA_SUCCESS;
}

static CUresult fake_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                    CUstream stream, void **parameters, void **extra)
{
    ENTER(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    (void)shared_bytes;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || block_x == 0 || block_y == 0 || block_z == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return entered != CUDA_SUCCESS ? entered : put_launch(function, stream, parameters, extra);
}

static CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                      void **extra)
{
    ENTER(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    return entered != CUDA_SUCCESS ? entered : put_launch(function, config->hStream, parameters, extra);
}

/* ---- modules ---- */

static CUresult fake_cuModuleLoadData(CUmodule *module, const void *image)
{
    ENTER(CUDA_ERROR_OUT_OF_MEMORY);
    *module = (CUmodule)(uintptr_t)image;
    return entered;
}

static CUresult fake_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    *function = (const char *)module == reprise_kernels_ptx ? fake_own_kernel(name) : NULL;
    return *function == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

/* ---- copies ---- */

struct copy {
    void *to;
    const void *from; /* NULL: the bytes follow */
    size_t bytes;
    unsigned char payload[];
};

static void run_copy(const void *work)
{
    const struct copy *copy = work;
    memmove(copy->to, copy->from == NULL ? copy->payload : copy->from, copy->bytes);
}

static uint64_t copy_time(size_t bytes)
{
    return (uint64_t)((double)bytes / fake_settings()->copy_bytes_per_ns);
}

static CUresult put_copy(void *to, const void *from, size_t bytes, CUstream stream, uint64_t nanoseconds, bool is_taken)
{
    size_t payload = is_taken ? bytes : 0;
    struct copy *copy = malloc(sizeof *copy + payload);
    if (copy == NULL) {
        fake_die("no memory");
    }
    *copy = (struct copy){.to = to, .from = is_taken ? NULL : from, .bytes = bytes};
    if (is_taken) {
        memcpy(copy->payload, from, bytes);
    }
    fake_put(stream, run_copy, copy, sizeof *copy + payload, nanoseconds);
    free(copy);
    return CUDA_SUCCESS;
}

static CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return put_copy((void *)to, from, bytes, stream, copy_time(bytes), !fake_is_pinned(from, bytes));
}

static CUresult copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    put_copy(to, (const void *)from, bytes, stream, copy_time(bytes), false);
    if (!fake_is_pinned(to, bytes)) {
        fake_finish_stream(stream);
    }
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    return entered != CUDA_SUCCESS ? entered : copy_in(to, from, bytes, stream);
}

static CUresult fake_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    return entered != CUDA_SUCCESS ? entered : copy_out(to, from, bytes, stream);
}

static CUresult fake_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    return entered != CUDA_SUCCESS ? entered
                                   : put_copy((void *)to, (const void *)from, bytes, stream, bytes / 64 + 1, false);
}

static CUresult fake_cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    if (entered == CUDA_SUCCESS) {
        copy_in(to, from, bytes, CU_STREAM_LEGACY);
        fake_finish_stream(CU_STREAM_LEGACY);
    }
    return entered;
}

static CUresult fake_cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    if (entered == CUDA_SUCCESS) {
        copy_out(to, from, bytes, CU_STREAM_LEGACY);
        fake_finish_stream(CU_STREAM_LEGACY);
    }
    return entered;
}

static CUresult fake_cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    return entered != CUDA_SUCCESS ? entered
                                   : put_copy((void *)to, (const void *)from, bytes, CU_STREAM_LEGACY, 1, false);
}

/* ---- sets ---- */

struct set {
    unsigned char *at;
    size_t pitch, width, height;
    uint32_t value, element_bytes;
};

static void run_set(const void *work)
{
    const struct set *set = work;
    if (set->element_bytes == 1 && set->height == 1) {
        memset(set->at, (int)set->value, set->width);
        return;
    }
    for (size_t row = 0; row < set->height; row++) {
        for (size_t i = 0; i < set->width; i++) {
            memcpy(set->at + row * set->pitch + i * set->element_bytes, &set->value, set->element_bytes);
        }
    }
}

static CUresult put_set(struct set set, CUstream stream)
{
    fake_put(stream, run_set, &set, sizeof set, set.width * set.height * set.element_bytes / 64 + 1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count, CUstream stream)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    return entered != CUDA_SUCCESS ? entered : put_set((struct set){(void *)at, 0, count, 1, value, 1}, stream);
}

static CUresult fake_cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t count, CUstream stream)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    return entered != CUDA_SUCCESS ? entered : put_set((struct set){(void *)at, 0, count, 1, value, 4}, stream);
}

static CUresult fake_cuMemsetD8(CUdeviceptr at, unsigned char value, size_t count)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    return entered != CUDA_SUCCESS ? entered
                                   : put_set((struct set){(void *)at, 0, count, 1, value, 1}, CU_STREAM_LEGACY);
}

static CUresult fake_cuMemsetD2D8Async(CUdeviceptr at, size_t pitch, unsigned char value, size_t width, size_t height,
                                       CUstream stream)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    return entered != CUDA_SUCCESS ? entered
                                   : put_set((struct set){(void *)at, pitch, width, height, value, 1}, stream);
}

void fake_open_work(void)
{
    driver.cuLaunchKernel = fake_cuLaunchKernel;
    driver.cuLaunchKernelEx = fake_cuLaunchKernelEx;
    driver.cuModuleLoadData = fake_cuModuleLoadData;
    driver.cuModuleGetFunction = fake_cuModuleGetFunction;
    driver.cuMemcpyHtoDAsync_v2 = fake_cuMemcpyHtoDAsync;
    driver.cuMemcpyDtoHAsync_v2 = fake_cuMemcpyDtoHAsync;
    driver.cuMemcpyDtoDAsync_v2 = fake_cuMemcpyDtoDAsync;
    driver.cuMemcpyHtoD_v2 = fake_cuMemcpyHtoD;
    driver.cuMemcpyDtoH_v2 = fake_cuMemcpyDtoH;
    driver.cuMemcpyDtoD_v2 = fake_cuMemcpyDtoD;
    driver.cuMemsetD8Async = fake_cuMemsetD8Async;
    driver.cuMemsetD32Async = fake_cuMemsetD32Async;
    driver.cuMemsetD8_v2 = fake_cuMemsetD8;
    driver.cuMemsetD2D8Async = fake_cuMemsetD2D8Async;
}
