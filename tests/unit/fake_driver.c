#include "tests/unit/fake_inside.h"

#include "shim/doors.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct driver driver; /* in place of shim/driver.c */
struct config fake_config = {.may_swap = true, .seed = 1, .log_level = 1};

static struct {
    struct fake_settings settings;
    struct fake_counts counts;
    uint64_t fail_at; /* number of the call to refuse; 0: none */
    bool is_sticky, has_failed, is_current;
    const char *failed_call;
} state = {.is_current = true, .failed_call = ""};

const struct config *config(void)
{
    return &fake_config;
}

const char *doors_name(enum door door)
{
    (void)door;
    return "none";
}

uint64_t doors_calls(enum door door)
{
    (void)door;
    return 0;
}

bool driver_has(enum driver_index index)
{
    (void)index;
    return true;
}

const struct fake_settings *fake_settings(void)
{
    return &state.settings;
}

struct fake_counts *fake_counts(void)
{
    return &state.counts;
}

struct fake_counts fake_count(void)
{
    return state.counts;
}

void fake_die(const char *what)
{
    fprintf(stderr, "fake driver: %s\n", what);
    fflush(NULL);
    _exit(101);
}

/* ---- refusing ---- */

void fake_fail(uint64_t nth, bool is_sticky)
{
    state.fail_at = nth == 0 ? 0 : state.counts.calls + nth;
    state.is_sticky = is_sticky;
    state.has_failed = false;
    state.failed_call = "";
}

bool fake_has_failed(void)
{
    return state.has_failed;
}

const char *fake_failed_call(void)
{
    return state.failed_call;
}

CUresult fake_enter(const char *name, CUresult refusal)
{
    state.counts.calls++;
    if (state.fail_at == 0 || state.counts.calls < state.fail_at ||
        (state.counts.calls > state.fail_at && !state.is_sticky)) {
        return CUDA_SUCCESS;
    }
    if (!state.has_failed) {
        state.has_failed = true;
        state.failed_call = name;
    }
    return state.is_sticky ? CUDA_ERROR_ILLEGAL_ADDRESS : refusal;
}

/* ---- context and device ---- */

void fake_make_current(bool is_current)
{
    state.is_current = is_current;
}

static CUresult fake_cuCtxGetCurrent(CUcontext *context)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    *context = state.is_current ? (CUcontext)&state : NULL;
    return entered;
}

static CUresult fake_cuCtxGetDevice(CUdevice *device)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    if (entered == CUDA_SUCCESS) {
        *device = 0;
    }
    return entered;
}

static CUresult fake_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    (void)device;
    if (entered == CUDA_SUCCESS) {
        int processors = state.settings.processors;
        *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? (processors == 0 ? 4 : processors) : 0;
    }
    return entered;
}

static CUresult fake_cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    (void)device;
    snprintf(name, (size_t)bytes, "fake device");
    return entered;
}

static CUresult fake_cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    ENTER(CUDA_ERROR_UNKNOWN);
    (void)device;
    *bytes = state.settings.memory_bytes;
    return entered;
}

static CUresult not_faked(void)
{
    fake_die("a driver function that is not faked was called");
}

void fake_open(const struct fake_settings *settings)
{
    state.settings = *settings;
    if (state.settings.copy_bytes_per_ns <= 0) {
        state.settings.copy_bytes_per_ns = 0.05;
    }
    void **slots = (void **)&driver;
    for (int i = 0; i < DRIVER_COUNT; i++) {
        slots[i] = (void *)not_faked;
    }
    driver.cuCtxGetCurrent = fake_cuCtxGetCurrent;
    driver.cuCtxGetDevice = fake_cuCtxGetDevice;
    driver.cuDeviceGetAttribute = fake_cuDeviceGetAttribute;
    driver.cuDeviceGetName = fake_cuDeviceGetName;
    driver.cuDeviceTotalMem_v2 = fake_cuDeviceTotalMem;
    fake_open_memory();
    fake_open_queue();
    fake_open_work();
}
