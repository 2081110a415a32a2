#include "tests/device/nvml/nvml.h"
#include "tests/device/presence.h"
#include <stdlib.h>

#define PROCESSES_MAX 1024
#define NO_INSTANCE   0xFFFFFFFFu

/* Those that hold memory of the device. */
static size_t list_users(unsigned device_id, struct presence list[PROCESSES_MAX])
{
    size_t all = presence_list(list, PROCESSES_MAX), count = 0;
    for (size_t i = 0; i < all && i < PROCESSES_MAX; i++)
        if (list[i].used[device_id] > 0)
            list[count++] = list[i];
    return count;
}

/* What every version of the question has in common: *count is the room, and then how many there are. */
static nvmlReturn_t ask(nvmlDevice_t device, unsigned *count, const void *infos, unsigned *device_id,
                        struct presence list[PROCESSES_MAX])
{
    nvmlReturn_t result = nvml_device(device, device_id);
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL || (*count > 0 && infos == NULL))
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned room = *count;
    *count = (unsigned)list_users(*device_id, list);
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                         nvmlProcessInfo_v1_t *infos);
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_v2_t *infos);
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_v2_t *infos);
EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *out);

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *infos)
{
    struct presence list[PROCESSES_MAX];
    unsigned id;
    nvmlReturn_t result = ask(device, count, infos, &id, list);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){.pid = list[i].pid, .usedGpuMemory = list[i].used[id]};
    return result;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    struct presence list[PROCESSES_MAX];
    unsigned id;
    nvmlReturn_t result = ask(device, count, infos, &id, list);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v2_t){.pid = list[i].pid,
                                          .usedGpuMemory = list[i].used[id],
                                          .gpuInstanceId = NO_INSTANCE,
                                          .computeInstanceId = NO_INSTANCE};
    return result;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    return nvmlDeviceGetComputeRunningProcesses_v2(device, count, infos);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *out)
{
    struct presence list[PROCESSES_MAX];
    unsigned id;
    nvmlReturn_t result = nvml_device(device, &id);
    if (result != NVML_SUCCESS)
        return result;
    if (out == NULL || out->mode >= NVML_PROCESS_MODE_MAX)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION(nvmlProcessDetailList_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    bool is_compute = out->mode == NVML_PROCESS_MODE_COMPUTE || out->mode == NVML_PROCESS_MODE_ALL;
    if (out->procArray == NULL || !is_compute)
        out->numProcArrayEntries = 0;
    if (is_compute)
        result = ask(device, &out->numProcArrayEntries, out->procArray, &id, list);
    for (unsigned i = 0; result == NVML_SUCCESS && i < out->numProcArrayEntries; i++)
        out->procArray[i] = (nvmlProcessDetail_v1_t){.pid = list[i].pid,
                                                     .usedGpuMemory = list[i].used[id],
                                                     .gpuInstanceId = NO_INSTANCE,
                                                     .computeInstanceId = NO_INSTANCE};
    return result;
}

/* Nobody draws here, and nothing is shared by NVIDIA's server. */
static nvmlReturn_t answer_none(nvmlDevice_t device, unsigned *count)
{
    unsigned id;
    nvmlReturn_t result = nvml_device(device, &id);
    if (result == NVML_SUCCESS && count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *count = 0;
    return result;
}

#define DEFINE_NONE(name)                                                                                              \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count, void *infos);                                       \
    nvmlReturn_t name(nvmlDevice_t device, unsigned *count, void *infos)                                               \
    {                                                                                                                  \
        (void)infos;                                                                                                   \
        return answer_none(device, count);                                                                             \
    }

DEFINE_NONE(nvmlDeviceGetGraphicsRunningProcesses)
DEFINE_NONE(nvmlDeviceGetGraphicsRunningProcesses_v2)
DEFINE_NONE(nvmlDeviceGetGraphicsRunningProcesses_v3)
DEFINE_NONE(nvmlDeviceGetMPSComputeRunningProcesses)
DEFINE_NONE(nvmlDeviceGetMPSComputeRunningProcesses_v2)
DEFINE_NONE(nvmlDeviceGetMPSComputeRunningProcesses_v3)
