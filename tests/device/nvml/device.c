#include "tests/device/nvml/nvml.h"
#include "tests/device/presence.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define DEVICE_NAME     "CPU device"
#define PROCESSES_MAX   1024
#define UUID_TEXT_BYTES 48
#define SAMPLE_NS       100000000u /* utilisation is measured over at least this */

/* A device's handle is the address of its element. */
static struct nvmlDevice_st {
    char unused;
} handles[DEVICES_MAX];

nvmlReturn_t nvml_device(nvmlDevice_t device, unsigned *device_id)
{
    nvmlReturn_t result = nvml_enter();
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned i = 0; i < settings()->device_total; i++)
        if (device == &handles[i]) {
            *device_id = i;
            return NVML_SUCCESS;
        }
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* The same, for a question whose answer goes to `out`. */
static nvmlReturn_t ask(nvmlDevice_t device, unsigned *device_id, const void *out)
{
    nvmlReturn_t result = nvml_device(device, device_id);
    return result == NVML_SUCCESS && out == NULL ? NVML_ERROR_INVALID_ARGUMENT : result;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device);

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    nvmlReturn_t result = nvml_enter();
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = settings()->device_total;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_enter();
    if (result != NVML_SUCCESS)
        return result;
    if (device == NULL || index >= settings()->device_total)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &handles[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_enter();
    if (result != NVML_SUCCESS)
        return result;
    if (uuid == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < settings()->device_total; i++) {
        char text[UUID_TEXT_BYTES];
        settings_print_uuid(i, text);
        if (strcasecmp(text, uuid) == 0) {
            *device = &handles[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_enter();
    if (result != NVML_SUCCESS)
        return result;
    if (uuid == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != NVML_VERSION(nvmlUUID_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == NVML_UUID_TYPE_ASCII) {
        char text[sizeof uuid->value.str + 1] = "";
        memcpy(text, uuid->value.str, sizeof uuid->value.str);
        return nvmlDeviceGetHandleByUUID(text, device);
    }
    for (unsigned i = 0; uuid->type == NVML_UUID_TYPE_BINARY && i < settings()->device_total; i++) {
        unsigned char bytes[16];
        settings_uuid(i, bytes);
        if (memcmp(bytes, uuid->value.bytes, sizeof bytes) == 0) {
            *device = &handles[i];
            return NVML_SUCCESS;
        }
    }
    return uuid->type == NVML_UUID_TYPE_BINARY ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}

/* domain:bus:device.function; the domain and the function may be left out. */
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_enter();
    if (result != NVML_SUCCESS)
        return result;
    if (bus_id == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    if (sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = function = 0;
        if (sscanf(bus_id, "%x:%x.%x", &bus, &slot, &function) < 2)
            return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (domain != 0 || slot != 0 || function != 0 || bus >= settings()->device_total)
        return NVML_ERROR_NOT_FOUND;
    *device = &handles[bus];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length);
EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length);
EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index);
EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *number);
EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor);
EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *mode);
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info);
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *info);
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *info);

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    unsigned id;
    nvmlReturn_t result = nvml_device(device, &id);
    return result != NVML_SUCCESS ? result : nvml_tell(DEVICE_NAME, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    unsigned id;
    char text[UUID_TEXT_BYTES];
    nvmlReturn_t result = nvml_device(device, &id);
    if (result != NVML_SUCCESS)
        return result;
    settings_print_uuid(id, text);
    return nvml_tell(text, uuid, length);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    unsigned id;
    nvmlReturn_t result = ask(device, &id, index);
    if (result != NVML_SUCCESS)
        return result;
    *index = id;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *number)
{
    return nvmlDeviceGetIndex(device, number);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    unsigned id;
    nvmlReturn_t result = ask(device, &id, major == NULL ? NULL : minor);
    if (result != NVML_SUCCESS)
        return result;
    *major = (int)(settings()->capability / 10);
    *minor = (int)(settings()->capability % 10);
    return NVML_SUCCESS;
}

/* Any number of contexts. */
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *mode)
{
    unsigned id;
    nvmlReturn_t result = ask(device, &id, mode);
    if (result != NVML_SUCCESS)
        return result;
    *mode = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    unsigned id;
    nvmlReturn_t result = ask(device, &id, info);
    if (result != NVML_SUCCESS)
        return result;
    *info = (nvmlPciInfo_t){.bus = id};
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "0000:%02X:00.0", id & 0xFFu);
    snprintf(info->busId, sizeof info->busId, "00000000:%02X:00.0", id & 0xFFu);
    return NVML_SUCCESS;
}

/* The second version, and the first, end before the third's long bus id or have reserved words there. */
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    nvmlPciInfo_t whole;
    nvmlReturn_t result = nvmlDeviceGetPciInfo_v3(device, &whole);
    if (result == NVML_SUCCESS && info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        memcpy(info, &whole, offsetof(nvmlPciInfo_t, busId));
    return result;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return nvmlDeviceGetPciInfo_v2(device, info);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates);

/* Of all processes. Each has memory of its own behind the device: their sum may pass the device's size. */
static void add_up(unsigned device_id, uint64_t *used, uint64_t *busy)
{
    struct presence list[PROCESSES_MAX];
    size_t count = presence_list(list, PROCESSES_MAX);
    *used = *busy = 0;
    for (size_t i = 0; i < count && i < PROCESSES_MAX; i++) {
        *used += list[i].used[device_id];
        *busy += list[i].busy[device_id];
    }
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    unsigned id;
    uint64_t busy, used;
    nvmlReturn_t result = ask(device, &id, memory);
    if (result != NVML_SUCCESS)
        return result;
    add_up(id, &used, &busy);
    uint64_t total = settings()->memory_bytes;
    memory->total = total;
    memory->used = used < total ? used : total;
    memory->free = total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlMemory_t first;
    nvmlReturn_t result = nvmlDeviceGetMemoryInfo(device, &first);
    if (result != NVML_SUCCESS)
        return result;
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != NVML_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = first.total;
    memory->reserved = 0;
    memory->free = first.free;
    memory->used = first.used;
    return NVML_SUCCESS;
}

/* The last look at each device's clock of work, and what it said; under the lock. */
static struct {
    uint64_t time, busy[DEVICES_MAX];
    unsigned percent[DEVICES_MAX];
    pthread_mutex_t lock;
} sample = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t monotonic(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void look(uint64_t elapsed)
{
    for (unsigned i = 0; i < settings()->device_total; i++) {
        uint64_t used, busy;
        add_up(i, &used, &busy);
        uint64_t worked = busy > sample.busy[i] ? busy - sample.busy[i] : 0; /* a process may have gone */
        sample.busy[i] = busy;
        if (elapsed > 0)
            sample.percent[i] = worked >= elapsed ? 100 : (unsigned)(100 * worked / elapsed);
    }
    sample.time = monotonic();
}

void nvml_utilisation_begin(void)
{
    pthread_mutex_lock(&sample.lock);
    look(0);
    pthread_mutex_unlock(&sample.lock);
}

/* The share of the time since the last look, at least SAMPLE_NS of it, in which the device worked; the first question
 * after nvmlInit waits for that. Every piece of work uses memory, so both shares are one. */
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    unsigned id;
    nvmlReturn_t result = ask(device, &id, rates);
    if (result != NVML_SUCCESS)
        return result;
    pthread_mutex_lock(&sample.lock);
    uint64_t elapsed = monotonic() - sample.time;
    if (elapsed < SAMPLE_NS) {
        struct timespec rest = {.tv_nsec = (long)(SAMPLE_NS - elapsed)};
        nanosleep(&rest, NULL);
        elapsed = monotonic() - sample.time;
    }
    look(elapsed);
    rates->gpu = rates->memory = sample.percent[id];
    pthread_mutex_unlock(&sample.lock);
    return NVML_SUCCESS;
}
