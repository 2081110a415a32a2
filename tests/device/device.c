#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/limits.h"
#include "tests/device/settings.h"
#include <stdio.h>
#include <string.h>

#define DEVICE_NAME "CPU device"

CUresult cuDriverGetVersion(int *version)
{
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = device_check(ordinal);
    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (int)settings()->device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (name == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "%s", DEVICE_NAME);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (uuid == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    settings_uuid(settings()->device_ids[device], (unsigned char *)uuid->bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = settings()->memory_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (major == NULL || minor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *major = (int)(settings()->capability / 10);
    *minor = (int)(settings()->capability % 10);
    return CUDA_SUCCESS;
}

struct attribute {
    CUdevice_attribute attribute;
    int value;
};

static const struct attribute attributes[] = {
#define ATTRIBUTE(name, value) {CU_DEVICE_ATTRIBUTE_##name, value},
#include "tests/device/attributes.def"
#undef ATTRIBUTE
};

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = (int)(settings()->capability / 10);
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        *value = (int)(settings()->capability % 10);
    if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        *value = (int)settings()->device_ids[device];
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID)
        *value = (int)settings()->device_ids[device];
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].attribute == attribute)
            *value = attributes[i].value;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *out, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdevprop){
        .maxThreadsPerBlock = LIMIT_THREADS_PER_BLOCK,
        .maxThreadsDim = {LIMIT_BLOCK_X, LIMIT_BLOCK_Y, LIMIT_BLOCK_Z},
        .maxGridSize = {LIMIT_GRID_X, LIMIT_GRID_Y, LIMIT_GRID_Z},
        .sharedMemPerBlock = LIMIT_SHARED_PER_BLOCK,
        .totalConstantMemory = LIMIT_CONSTANT_BYTES,
        .SIMDWidth = LIMIT_WARP,
        .memPitch = 2147483647,
        .regsPerBlock = LIMIT_REGISTERS,
        .clockRate = 1000000,
        .textureAlign = 512,
    };
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    if (text == NULL || length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(text, (size_t)length, "0000:%02x:00.0", settings()->device_ids[device]);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    CUresult result = device_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL || text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned domain = 0, bus, slot, function = 0;
    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = function = 0;
        if (sscanf(text, "%x:%x.%x", &bus, &slot, &function) < 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < settings()->device_count; i++) {
        if (domain != 0 || slot != 0 || function != 0 || settings()->device_ids[i] != bus)
            continue;
        *device = (CUdevice)i;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetExecAffinitySupport(int *is_supported, CUexecAffinityType type, CUdevice device)
{
    CUresult result = device_check(device);
    if (result != CUDA_SUCCESS)
        return result;
    (void)type;
    if (is_supported == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *is_supported = 0;
    return CUDA_SUCCESS;
}

CUresult cuProfilerStart(void)
{
    struct context *context;
    return context_enter(&context);
}

CUresult cuProfilerStop(void)
{
    struct context *context;
    return context_enter(&context);
}
