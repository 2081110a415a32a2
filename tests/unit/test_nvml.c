/* links: tests/device/nvml/system.c tests/device/nvml/device.c tests/device/nvml/process.c tests/device/presence.c
 *        tests/device/settings.c */
#include "tests/device/nvml/nvml.h"
#include "tests/device/presence.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define MEMORY ((unsigned long long)64 << 20)

/* The library's functions, as a program declares them. */
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInitWithFlags(unsigned flags);
nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, void *infos);
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *out);

static char run_folder[] = "/tmp/test_nvml.XXXXXX";

static int prepare(void **unused)
{
    (void)unused;
    bool is_made = mkdtemp(run_folder) != NULL;
    setenv("CPUDEV_MEMORY", "64MiB", 1);
    setenv("CPUDEV_RUN", run_folder, 1);
    return !is_made;
}

static int clean(void **unused)
{
    (void)unused;
    return rmdir(run_folder); /* fails where a record was left behind */
}

static int begin(void **unused)
{
    (void)unused;
    return nvmlInit_v2() != NVML_SUCCESS;
}

static int end(void **unused)
{
    (void)unused;
    return nvmlShutdown() != NVML_SUCCESS;
}

static nvmlDevice_t first_device(void)
{
    nvmlDevice_t device = NULL;
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
    return device;
}

/* Another process that uses the device: holds `bytes`, and works if told to, until it is killed. */
static pid_t start_user(uint64_t bytes, bool is_working)
{
    int ends[2];
    char byte = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* should the test end without it */
        presence_open();
        presence_set_used(0, bytes);
        if (is_working)
            presence_begin(0);
        if (write(ends[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void stop_user(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void nothing_is_answered_before_init(void **unused)
{
    (void)unused;
    unsigned count = 7;
    char text[8];
    assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvmlSystemGetDriverVersion(text, sizeof text), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvmlInitWithFlags(1u << 20), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(count, 7);
}

static void inits_are_counted(void **unused)
{
    (void)unused;
    unsigned count = 0;
    assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
}

static void texts_need_room(void **unused)
{
    (void)unused;
    char text[80];
    int version = 0;
    assert_int_equal(nvmlSystemGetDriverVersion(text, 2), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(nvmlSystemGetDriverVersion(NULL, 80), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlSystemGetDriverVersion(text, sizeof text), NVML_SUCCESS);
    assert_int_equal(nvmlSystemGetCudaDriverVersion_v2(NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlSystemGetCudaDriverVersion_v2(&version), NVML_SUCCESS);
    assert_int_equal(version, 13000);
    assert_string_equal(nvmlErrorString(NVML_SUCCESS), "The operation was successful");
    assert_string_equal(nvmlErrorString(NVML_ERROR_INSUFFICIENT_SIZE), "Insufficient Size");
    assert_string_equal(nvmlErrorString((nvmlReturn_t)12345), "Unknown Error");
    assert_string_equal(nvmlErrorString(NVML_ERROR_UNKNOWN), "Unknown Error");
}

static void a_device_is_found_by_all_its_names(void **unused)
{
    (void)unused;
    char text[96];
    nvmlDevice_t device = first_device(), found = NULL;
    nvmlPciInfo_t pci;
    assert_int_equal(nvmlDeviceGetUUID(device, text, 40), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(nvmlDeviceGetUUID(device, text, 41), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetHandleByUUID(text, &found), NVML_SUCCESS);
    assert_ptr_equal(found, device);
    assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-", &found), NVML_ERROR_NOT_FOUND);
    nvmlUUID_t uuid = {.version = NVML_VERSION(nvmlUUID_t, 1), .type = NVML_UUID_TYPE_BINARY};
    settings_uuid(0, uuid.value.bytes);
    found = NULL;
    assert_int_equal(nvmlDeviceGetHandleByUUIDV(&uuid, &found), NVML_SUCCESS);
    assert_ptr_equal(found, device);
    uuid.version++;
    assert_int_equal(nvmlDeviceGetHandleByUUIDV(&uuid, &found), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    assert_int_equal(nvmlDeviceGetPciInfo_v3(device, &pci), NVML_SUCCESS);
    found = NULL;
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &found), NVML_SUCCESS);
    assert_ptr_equal(found, device);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2("0000:7f:00.0", &found), NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2("here", &found), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &found), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetUUID((nvmlDevice_t)text, text, 80), NVML_ERROR_INVALID_ARGUMENT);
}

static unsigned long long used_now(void)
{
    nvmlMemory_t memory;
    nvmlMemory_v2_t second = {.version = NVML_VERSION(nvmlMemory_v2_t, 2)};
    assert_int_equal(nvmlDeviceGetMemoryInfo(first_device(), &memory), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetMemoryInfo_v2(first_device(), &second), NVML_SUCCESS);
    assert_int_equal(memory.total, MEMORY);
    assert_int_equal(memory.used + memory.free, MEMORY);
    assert_int_equal(second.used, memory.used);
    return memory.used;
}

static void what_other_processes_hold_is_counted(void **unused)
{
    (void)unused;
    nvmlMemory_v2_t wrong = {.version = 1};
    assert_int_equal(nvmlDeviceGetMemoryInfo_v2(first_device(), &wrong), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    assert_int_equal(used_now(), 0);
    pid_t one = start_user(5 << 20, false), two = start_user(7 << 20, false);
    assert_int_equal(used_now(), 12 << 20);
    stop_user(one); /* it leaves its record behind */
    assert_int_equal(used_now(), 7 << 20);
    pid_t three = start_user(MEMORY, false);
    assert_int_equal(used_now(), MEMORY); /* together they hold more than there is */
    stop_user(two);
    stop_user(three);
    assert_int_equal(used_now(), 0);
}

static void processes_are_listed(void **unused)
{
    (void)unused;
    nvmlDevice_t device = first_device();
    pid_t user = start_user(5 << 20, false), idle = start_user(0, false);
    unsigned count = 0;
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(count, 1); /* who holds nothing is not listed */
    nvmlProcessInfo_v2_t infos[4];
    count = 4;
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos), NVML_SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(infos[0].pid, user);
    assert_int_equal(infos[0].usedGpuMemory, 5 << 20);
    nvmlProcessInfo_v1_t firsts[4];
    count = 4;
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device, &count, firsts), NVML_SUCCESS);
    assert_int_equal(firsts[0].pid, user);
    nvmlProcessDetail_v1_t details[4];
    nvmlProcessDetailList_t list = {NVML_VERSION(nvmlProcessDetailList_t, 1), NVML_PROCESS_MODE_COMPUTE, 4, details};
    assert_int_equal(nvmlDeviceGetRunningProcessDetailList(device, &list), NVML_SUCCESS);
    assert_int_equal(list.numProcArrayEntries, 1);
    assert_int_equal(details[0].usedGpuMemory, 5 << 20);
    count = 4;
    assert_int_equal(nvmlDeviceGetGraphicsRunningProcesses_v3(device, &count, infos), NVML_SUCCESS);
    assert_int_equal(count, 0);
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, NULL, infos), NVML_ERROR_INVALID_ARGUMENT);
    stop_user(user);
    stop_user(idle);
    count = 4;
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos), NVML_SUCCESS);
    assert_int_equal(count, 0);
}

static void the_name_of_a_process_is_cut_to_the_room(void **unused)
{
    (void)unused;
    char name[256], part[5];
    assert_int_equal(nvmlSystemGetProcessName((unsigned)getpid(), name, sizeof name), NVML_SUCCESS);
    assert_non_null(strstr(name, "test_nvml"));
    assert_int_equal(nvmlSystemGetProcessName((unsigned)getpid(), part, sizeof part), NVML_SUCCESS);
    assert_int_equal(strlen(part), 4);
    assert_int_equal(nvmlSystemGetProcessName(0x7FFFFFFF, name, sizeof name), NVML_ERROR_NOT_FOUND);
}

static void work_is_utilisation(void **unused)
{
    (void)unused;
    nvmlUtilization_t rates = {101, 101};
    assert_int_equal(nvmlDeviceGetUtilizationRates(first_device(), &rates), NVML_SUCCESS);
    assert_int_equal(rates.gpu, 0);
    pid_t worker = start_user(1, true);
    assert_int_equal(nvmlDeviceGetUtilizationRates(first_device(), &rates), NVML_SUCCESS);
    assert_in_range(rates.gpu, 50, 100);
    stop_user(worker);
    assert_int_equal(nvmlDeviceGetUtilizationRates(first_device(), &rates), NVML_SUCCESS);
    assert_int_equal(rates.gpu, 0);
}

/* A record of a process that is gone, whose number another process now has. */
static void a_record_of_another_process_of_the_same_id_is_dropped(void **unused)
{
    (void)unused;
    char old[128], new[128];
    pid_t user = start_user(5 << 20, false);
    snprintf(old, sizeof old, "%s/%d", run_folder, user);
    snprintf(new, sizeof new, "%s/%d", run_folder, getpid());
    assert_int_equal(rename(old, new), 0);
    assert_int_equal(used_now(), 0);
    assert_int_equal(access(new, F_OK), -1);
    stop_user(user);
}

/* A folder that others may write to proves nothing: nothing is read from it. */
static void an_open_folder_is_not_trusted(void **unused)
{
    (void)unused;
    pid_t user = start_user(5 << 20, false);
    chmod(run_folder, 0777);
    assert_int_equal(used_now(), 0);
    chmod(run_folder, 0700);
    assert_int_equal(used_now(), 5 << 20);
    stop_user(user);
    assert_int_equal(used_now(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_answered_before_init),
        cmocka_unit_test(inits_are_counted),
        cmocka_unit_test_setup_teardown(texts_need_room, begin, end),
        cmocka_unit_test_setup_teardown(a_device_is_found_by_all_its_names, begin, end),
        cmocka_unit_test_setup_teardown(what_other_processes_hold_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(processes_are_listed, begin, end),
        cmocka_unit_test_setup_teardown(the_name_of_a_process_is_cut_to_the_room, begin, end),
        cmocka_unit_test_setup_teardown(work_is_utilisation, begin, end),
        cmocka_unit_test_setup_teardown(a_record_of_another_process_of_the_same_id_is_dropped, begin, end),
        cmocka_unit_test_setup_teardown(an_open_folder_is_not_trusted, begin, end),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
