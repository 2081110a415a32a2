/* links: tests/device/whole.c */
/* Memory and events between two processes: the test starts itself again as the other one. */
#include "tests/unit/device_fixture.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS (FRAME / 4)

/* What the other process is told, as bytes on its standard input. */
struct message {
    CUipcMemHandle memory;
    CUipcEventHandle event;
    CUmemPoolPtrExportData pointer;
    size_t bytes;
};

static CUstream stream;

static int begin(void **state)
{
    return start_device(state) == 0 && cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS ? 0 : -1;
}

/* ---- the other process: 0 if all is well, else the number of the check ---- */

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "other process, line %d\n", __LINE__);                                                     \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* The words hold 5, 6, 7...; they are made 1 greater. */
static int change_words(CUdeviceptr memory, size_t count)
{
    uint32_t *words = malloc(count * 4);
    CHECK(words != NULL && cuMemcpyDtoH_v2(words, memory, count * 4) == CUDA_SUCCESS);
    for (size_t i = 0; i < count; i++)
        CHECK(words[i]++ == (uint32_t)i + 5);
    CHECK(cuMemcpyHtoD_v2(memory, words, count * 4) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
    free(words);
    return 0;
}

static int import_handle(int file)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base;
    size_t before = free_bytes();
    CHECK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
          CUDA_SUCCESS);
    CUmemAllocationProp properties;
    CHECK(cuMemGetAllocationPropertiesFromHandle(&properties, handle) == CUDA_SUCCESS);
    CHECK(properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CHECK(cuMemAddressReserve(&base, 2 * FRAME, 0, 0, 0) == CUDA_SUCCESS);
    CHECK(cuMemMap(base, 2 * FRAME, 0, handle, 0) == CUDA_SUCCESS);
    CHECK(set_access(base, 2 * FRAME, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
    /* It counts where it was made. */
    CHECK(free_bytes() == before);
    CHECK(change_words(base, 2 * WORDS) == 0);
    CHECK(cuMemUnmap(base, 2 * FRAME) == CUDA_SUCCESS && cuMemRelease(handle) == CUDA_SUCCESS);
    return 0;
}

static int import_pool(int file, struct message *message)
{
    CUmemoryPool pool;
    CUdeviceptr memory, more;
    CHECK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                             0) == CUDA_SUCCESS);
    CHECK(cuMemPoolImportPointer(&memory, pool, &message->pointer) == CUDA_SUCCESS);
    CHECK(change_words(memory, message->bytes / 4) == 0);
    CHECK(cuMemAllocFromPoolAsync(&more, FRAME, pool, stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuDeviceSetMemPool(0, pool) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemFreeAsync(memory, stream) == CUDA_SUCCESS && cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
    return 0;
}

static int open_memory(struct message *message)
{
    CUdeviceptr memory, again;
    CHECK(cuIpcOpenMemHandle_v2(&memory, message->memory, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuIpcOpenMemHandle_v2(&memory, message->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS);
    CHECK(cuIpcOpenMemHandle_v2(&again, message->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS);
    CHECK(again == memory && cuIpcCloseMemHandle(again) == CUDA_SUCCESS);
    CHECK(change_words(memory, message->bytes / 4) == 0);
    CHECK(cuMemFree_v2(memory) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuIpcCloseMemHandle(memory) == CUDA_SUCCESS);
    CHECK(cuIpcCloseMemHandle(memory) == CUDA_ERROR_INVALID_VALUE);
    return 0;
}

/* Waits, on the device, for what the first process does. */
static int open_event(struct message *message)
{
    CUdeviceptr memory;
    CUevent event;
    uint32_t value = 0;
    CHECK(cuIpcOpenMemHandle_v2(&memory, message->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS);
    CHECK(cuIpcOpenEventHandle(&event, message->event) == CUDA_SUCCESS);
    CHECK(cuStreamWaitEvent(stream, event, 0) == CUDA_SUCCESS);
    CHECK(cuMemcpyDtoHAsync_v2(&value, memory, 4, stream) == CUDA_SUCCESS);
    CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS && value == 99);
    CHECK(cuEventQuery(event) == CUDA_SUCCESS && cuEventSynchronize(event) == CUDA_SUCCESS);
    CHECK(cuEventDestroy_v2(event) == CUDA_SUCCESS && cuIpcCloseMemHandle(memory) == CUDA_SUCCESS);
    return 0;
}

static int other_process(const char *task, int file)
{
    struct message message;
    void *unused = NULL;
    CHECK(begin(&unused) == 0 && read(0, &message, sizeof message) == sizeof message);
    if (strcmp(task, "handle") == 0)
        return import_handle(file);
    if (strcmp(task, "pool") == 0)
        return import_pool(file, &message);
    return strcmp(task, "event") == 0 ? open_event(&message) : open_memory(&message);
}

/* ---- the first process ---- */

static pid_t start_other(const char *task, int file, const struct message *message)
{
    int channel[2];
    char number[16];
    assert_int_equal(pipe(channel), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(channel[0], 0);
        if (file >= 0)
            fcntl(file, F_SETFD, 0);
        snprintf(number, sizeof number, "%d", file);
        execl("/proc/self/exe", "other", task, number, (char *)NULL);
        _exit(9);
    }
    close(channel[0]);
    assert_int_equal(write(channel[1], message, sizeof *message), sizeof *message);
    close(channel[1]);
    return child;
}

static int end_of(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void write_words(CUdeviceptr memory, size_t count)
{
    uint32_t *words = malloc(count * 4);
    assert_non_null(words);
    for (size_t i = 0; i < count; i++)
        words[i] = (uint32_t)i + 5;
    succeeds(cuMemcpyHtoD_v2(memory, words, count * 4));
    succeeds(cuCtxSynchronize());
    free(words);
}

static void check_words(CUdeviceptr memory, size_t count)
{
    uint32_t *words = malloc(count * 4);
    assert_non_null(words);
    succeeds(cuMemcpyDtoH_v2(words, memory, count * 4));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(words[i], i + 6);
    free(words);
}

static void a_handle_goes_to_another_process(void **unused)
{
    (void)unused;
    CUmemAllocationProp properties = device_memory();
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle, same;
    CUdeviceptr base;
    int file = -1;
    size_t before = free_bytes();
    succeeds(cuMemCreate(&handle, 2 * FRAME, &properties, 0));
    assert_int_equal(free_bytes(), before - 2 * FRAME);
    succeeds(cuMemAddressReserve(&base, 2 * FRAME, 0, 0, 0));
    succeeds(cuMemMap(base, 2 * FRAME, 0, handle, 0));
    succeeds(set_access(base, 2 * FRAME, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    write_words(base, 2 * WORDS);
    succeeds(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    struct message message = {0};
    assert_int_equal(end_of(start_other("handle", file, &message)), 0);
    check_words(base, 2 * WORDS);
    /* Imported where it was made it is the same memory, counted once. */
    succeeds(cuMemImportFromShareableHandle(&same, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    assert_int_equal(free_bytes(), before - 2 * FRAME);
    succeeds(cuMemRelease(same));
    fails(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_NOT_SUPPORTED);
    fails(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1),
          CUDA_ERROR_INVALID_VALUE);
    fails(cuMemExportToShareableHandle(NULL, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          CUDA_ERROR_INVALID_VALUE);
    fails(cuMemImportFromShareableHandle(&same, (void *)(intptr_t)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemUnmap(base, 2 * FRAME));
    succeeds(cuMemAddressFree(base, 2 * FRAME));
    succeeds(cuMemRelease(handle));
    assert_int_equal(free_bytes(), before);
    close(file);
    /* Memory that was not made to be shared is not. */
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    succeeds(cuMemCreate(&handle, FRAME, &properties, 0));
    fails(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemRelease(handle));
}

static void a_pool_goes_to_another_process(void **unused)
{
    (void)unused;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool, plain;
    CUdeviceptr memory;
    int file = -1;
    struct message message = {.bytes = 4000};
    size_t before = free_bytes();
    succeeds(cuMemPoolCreate(&pool, &properties));
    succeeds(cuMemAllocFromPoolAsync(&memory, message.bytes, pool, stream));
    succeeds(cuStreamSynchronize(stream));
    assert_int_equal(free_bytes(), before - FRAME);
    write_words(memory, message.bytes / 4);
    succeeds(cuMemPoolExportToShareableHandle(&file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    succeeds(cuMemPoolExportPointer(&message.pointer, memory));
    assert_int_equal(end_of(start_other("pool", file, &message)), 0);
    check_words(memory, message.bytes / 4);
    succeeds(cuMemFreeAsync(memory, stream));
    succeeds(cuStreamSynchronize(stream));
    assert_int_equal(free_bytes(), before);
    succeeds(cuMemPoolDestroy(pool));
    close(file);
    succeeds(cuDeviceGetDefaultMemPool(&plain, 0));
    fails(cuMemPoolExportToShareableHandle(&file, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemAlloc_v2(&memory, FRAME));
    fails(cuMemPoolExportPointer(&message.pointer, memory), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemFree_v2(memory));
}

static void share_plainly(size_t bytes)
{
    CUdeviceptr memory, ours;
    struct message message = {.bytes = bytes};
    succeeds(cuMemAlloc_v2(&memory, bytes));
    write_words(memory, bytes / 4);
    succeeds(cuIpcGetMemHandle(&message.memory, memory));
    fails(cuIpcOpenMemHandle_v2(&ours, message.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(end_of(start_other("memory", -1, &message)), 0);
    check_words(memory, bytes / 4);
    fails(cuIpcGetMemHandle(&message.memory, memory + 4), CUDA_ERROR_INVALID_VALUE);
    fails(cuIpcGetMemHandle(NULL, memory), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemFree_v2(memory));
}

static void plain_memory_is_opened_elsewhere(void **unused)
{
    (void)unused;
    CUdeviceptr first, second;
    share_plainly(5 * FRAME);
    share_plainly(2048);
    /* In pieces: holes of two frames, filled by one allocation. */
    CUdeviceptr pieces[DEVICE_BYTES / FRAME];
    size_t count = 0;
    while (cuMemAlloc_v2(&pieces[count], 2 * FRAME) == CUDA_SUCCESS)
        count++;
    for (size_t i = 0; i < count; i += 2)
        succeeds(cuMemFree_v2(pieces[i]));
    share_plainly(8 * FRAME);
    for (size_t i = 1; i < count; i += 2)
        succeeds(cuMemFree_v2(pieces[i]));
    CUipcMemHandle handle;
    memset(&handle, 0x5a, sizeof handle);
    fails(cuIpcOpenMemHandle_v2(&first, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_HANDLE);
    succeeds(cuMemAllocManaged(&second, FRAME, CU_MEM_ATTACH_GLOBAL));
    fails(cuIpcGetMemHandle(&handle, second), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuMemFree_v2(second));
}

static void an_event_orders_two_processes(void **unused)
{
    (void)unused;
    CUdeviceptr memory;
    CUevent event, plain;
    struct message message = {.bytes = 4};
    uint32_t *gate;
    succeeds(cuMemHostAlloc((void **)&gate, 64, 0));
    gate[0] = 0;
    succeeds(cuMemAlloc_v2(&memory, FRAME));
    succeeds(cuMemsetD32_v2(memory, 1, 1));
    fails(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    succeeds(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    fails(cuIpcGetEventHandle(&message.event, plain), CUDA_ERROR_INVALID_HANDLE);
    succeeds(cuIpcGetEventHandle(&message.event, event));
    succeeds(cuIpcGetMemHandle(&message.memory, memory));
    succeeds(cuStreamWaitValue32_v2(stream, (CUdeviceptr)gate, 1, CU_STREAM_WAIT_VALUE_EQ));
    succeeds(cuMemsetD32Async(memory, 99, 1, stream));
    succeeds(cuEventRecord(event, stream));
    fails(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    pid_t child = start_other("event", -1, &message);
    usleep(100000);
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
    assert_int_equal(end_of(child), 0);
    succeeds(cuEventSynchronize(event));
    succeeds(cuEventQuery(event));
    succeeds(cuEventDestroy_v2(event));
    succeeds(cuEventDestroy_v2(plain));
    succeeds(cuMemFree_v2(memory));
    succeeds(cuMemFreeHost(gate));
}

int main(int count, char **arguments)
{
    if (count == 3)
        return other_process(arguments[1], atoi(arguments[2]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_goes_to_another_process),
        cmocka_unit_test(a_pool_goes_to_another_process),
        cmocka_unit_test(plain_memory_is_opened_elsewhere),
        cmocka_unit_test(an_event_orders_two_processes),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
