/* What of NVIDIA's management library the CPU device answers, in the documented forms; NVIDIA's own header is not
 * needed to build it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;

typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

/* The third version has the same form. */
typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct {
    unsigned version, mode, numProcArrayEntries;
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_t;

typedef struct {
    unsigned gpu, memory;
} nvmlUtilization_t;

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

typedef struct {
    unsigned version, type;
    union {
        char str[41];
        unsigned char bytes[16];
    } value;
} nvmlUUID_t;

enum { NVML_UUID_TYPE_ASCII = 1, NVML_UUID_TYPE_BINARY = 2 };
enum { NVML_PROCESS_MODE_COMPUTE = 0, NVML_PROCESS_MODE_ALL = 3, NVML_PROCESS_MODE_MAX = 4 };

/* The version word of a structure: its size, and its version in the highest byte. */
#define NVML_VERSION(type, number) ((unsigned)sizeof(type) | (unsigned)(number) << 24)

/* Between nvmlInit and nvmlShutdown: success, else the error to answer with. */
nvmlReturn_t nvml_enter(void);
/* nvml_enter, and the handle is a device's, whose id goes to *device_id. */
nvmlReturn_t nvml_device(nvmlDevice_t device, unsigned *device_id);
/* At the first nvmlInit: utilisation is measured from here. */
void nvml_utilisation_begin(void);
/* `text` into `room` bytes at `out`, or the error for null and too short ones. */
nvmlReturn_t nvml_tell(const char *text, char *out, unsigned room);
