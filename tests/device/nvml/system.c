#include "tests/device/driver.h"
#include "tests/device/nvml/nvml.h"
#include "tests/device/settings.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The first number is that of the drivers that came with DRIVER_VERSION; tools compare it. */
#define DRIVER_RELEASE "580.0"
#define NVML_RELEASE   "13.580.0"

#define INIT_FLAGS 3u /* NVML_INIT_FLAG_NO_GPUS, NVML_INIT_FLAG_NO_ATTACH */

static _Atomic unsigned holders;

nvmlReturn_t nvml_enter(void)
{
    return atomic_load(&holders) > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t nvml_tell(const char *text, char *out, unsigned room)
{
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags);
EXPORT nvmlReturn_t nvmlInit_v2(void);
EXPORT nvmlReturn_t nvmlInit(void);
EXPORT nvmlReturn_t nvmlShutdown(void);

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    if ((flags & ~INIT_FLAGS) != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!settings_are_valid())
        return NVML_ERROR_UNKNOWN;
    if (atomic_fetch_add(&holders, 1) == 0)
        nvml_utilisation_begin();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    unsigned count = atomic_load(&holders);
    while (count > 0)
        if (atomic_compare_exchange_weak(&holders, &count, count - 1))
            return NVML_SUCCESS;
    return NVML_ERROR_UNINITIALIZED;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result);

const char *nvmlErrorString(nvmlReturn_t result)
{
    static const char *const texts[] = {
        "The operation was successful",
        "Uninitialized",
        "Invalid Argument",
        "Not Supported",
        "Insufficient Permissions",
        "Already Initialized",
        "Not Found",
        "Insufficient Size",
        "Insufficient External Power",
        "Driver Not Loaded",
        "Timeout",
        "Interrupt Request Issue",
        "NVML Shared Library Not Found",
        "Function Not Found",
        "Corrupted infoROM",
        "GPU is lost",
        "GPU requires reset",
        "The operating system has blocked the request",
        "Driver/library version mismatch",
        "In use by another client",
        "Insufficient Memory",
        "No data",
        "ECC is not supported for vGPU",
        "Insufficient resources",
        "Frequency not supported",
        "Argument version mismatch",
        "Deprecated",
        "Not ready",
        "GPU not found",
        "Invalid state",
    };
    unsigned number = (unsigned)result;
    return number < sizeof texts / sizeof *texts ? texts[number] : "Unknown Error";
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length);
EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length);
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version);
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);
EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length);

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    nvmlReturn_t result = nvml_enter();
    return result != NVML_SUCCESS ? result : nvml_tell(DRIVER_RELEASE, version, length);
}

/* Needs no nvmlInit. */
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    return nvml_tell(NVML_RELEASE, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    if (version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = DRIVER_VERSION;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    char path[64], line[4096];
    nvmlReturn_t result = nvml_enter();
    if (result != NVML_SUCCESS)
        return result;
    if (name == NULL || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NVML_ERROR_NOT_FOUND;
    ssize_t bytes = read(file, line, sizeof line - 1);
    close(file);
    line[bytes < 0 ? 0 : bytes] = '\0';
    snprintf(name, length, "%s", line); /* the manual: cut to the length */
    return NVML_SUCCESS;
}
