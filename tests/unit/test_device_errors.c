/* links: tests/device/whole.c */
/* The error paths that the manual names, a row each (device_errors.def); and that no function falls over nulls. */
#include "tests/unit/device_fixture.h"
#include "tests/unit/device_kernels.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static CUcontext context, out_context;
static CUdeviceptr range, plain, managed, out_address;
static CUmemGenericAllocationHandle handle, released, out_handle;
static CUmemAllocationProp properties, untyped, elsewhere, on_host, windows, out_properties;
static CUmemAccessDesc reach, strange_access, access_elsewhere, no_access;
static CUmemLocation nowhere;
static CUmemPoolProps pool_elsewhere, pool_nearby;
static CUmemoryPool default_pool, out_pool;
static CUstream stream, dead_stream, capturing, out_stream;
static CUevent event, dead_event, untimed, out_event;
static CUgraph graph, out_graph;
static CUmodule module, out_module;
static CUfunction store, narrow, out_function;
static CUarray array, out_array;
static CUDA_ARRAY_DESCRIPTOR odd_array;
static CUDA_MEMCPY2D long_rows;
static CUDA_MEMCPY3D_BATCH_OP flat_box;
static CUmemcpyAttributes copy_attributes, no_attributes;
static CUstreamBatchMemOpParams operations[256], strange_operation[1];
static CUstreamAttrValue out_attribute;
static CUstreamCaptureStatus out_status;
static CUgreenCtx out_green;
static size_t out_size, zero_size, one_size = 1;
static unsigned long long out_flags;
static cuuint64_t zero, one = 1;
static unsigned out_number;
static int out_int, out_file;
static float out_float;
static uint64_t pageable;
static void *page, *out_pointer, *params[2], *extra[1] = {CU_LAUNCH_PARAM_END};
static unsigned char broken_fatbin[64] = {0x50, 0xed, 0x55, 0xba, 9, 0, 16, 0, 0xff};

static const char narrow_ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                                 ".visible .entry narrow() .maxntid 32, 1, 1 {\n  ret;\n}\n";

static void CUDA_CB callback(CUstream where, CUresult status, void *data)
{
    (void)where, (void)status, (void)data;
}

static void CUDA_CB host_function(void *data)
{
    (void)data;
}

static void prepare_properties(void)
{
    properties = untyped = elsewhere = on_host = windows = device_memory();
    untyped.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    elsewhere.location.id = 7;
    on_host.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    windows.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    reach.location = strange_access.location = access_elsewhere.location = no_access.location = properties.location;
    reach.flags = access_elsewhere.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    strange_access.flags = 2;
    access_elsewhere.location.id = 7;
    pool_elsewhere.allocType = pool_nearby.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool_elsewhere.location = elsewhere.location;
    pool_nearby.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    odd_array = (CUDA_ARRAY_DESCRIPTOR){16, 0, CU_AD_FORMAT_FLOAT, 3};
    copy_attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    strange_operation[0].operation = (CUstreamBatchMemOpType)99;
    long_rows = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcPitch = 16,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstPitch = 32,
                                .WidthInBytes = 32,
                                .Height = 2};
}

static void prepare_memory(void)
{
    succeeds(cuMemAddressReserve(&range, 4 * FRAME, 0, 0, 0));
    succeeds(cuMemCreate(&handle, 2 * FRAME, &properties, 0));
    succeeds(cuMemCreate(&released, FRAME, &properties, 0));
    succeeds(cuMemMap(range, FRAME, 0, handle, 0));
    succeeds(cuMemMap(range + FRAME, FRAME, 0, released, 0));
    succeeds(cuMemSetAccess(range, 2 * FRAME, &reach, 1));
    succeeds(cuMemRelease(released));
    succeeds(cuMemAlloc_v2(&plain, 4 * FRAME));
    succeeds(cuMemAllocManaged(&managed, 2 * FRAME, CU_MEM_ATTACH_GLOBAL));
    succeeds(cuMemHostAlloc(&page, 4096, 0));
    succeeds(cuDeviceGetDefaultMemPool(&default_pool, 0));
    CUDA_ARRAY_DESCRIPTOR line = {16, 0, CU_AD_FORMAT_FLOAT, 1};
    succeeds(cuArrayCreate_v2(&array, &line));
    long_rows.srcDevice = long_rows.dstDevice = plain;
    params[0] = &plain;
    params[1] = &out_number;
}

static int begin(void **state)
{
    if (start_device(state) != 0 || cuCtxGetCurrent(&context) != CUDA_SUCCESS)
        return -1;
    CUmodule other;
    prepare_properties();
    prepare_memory();
    succeeds(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    succeeds(cuStreamCreate(&capturing, 0));
    succeeds(cuEventCreate(&event, 0));
    succeeds(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    /* Last, so that nothing new has taken their place. */
    succeeds(cuStreamCreate(&dead_stream, 0));
    succeeds(cuStreamDestroy_v2(dead_stream));
    succeeds(cuEventCreate(&dead_event, 0));
    succeeds(cuEventDestroy_v2(dead_event));
    succeeds(cuGraphCreate(&graph, 0));
    succeeds(cuModuleLoadData(&module, test_ptx));
    succeeds(cuModuleLoadData(&other, narrow_ptx));
    succeeds(cuModuleGetFunction(&store, module, "store"));
    succeeds(cuModuleGetFunction(&narrow, other, "narrow"));
    return 0;
}

static int end(void **state)
{
    (void)state;
    return cuMemUnmap(range, 2 * FRAME) == CUDA_SUCCESS && cuMemAddressFree(range, 4 * FRAME) == CUDA_SUCCESS ? 0 : -1;
}

#define NAME_AT(line) row_##line
#define NAME(line)    NAME_AT(line)
#define ROW(function, error, cause, call)                                                                              \
    static CUresult NAME(__LINE__)(void)                                                                               \
    {                                                                                                                  \
        return call;                                                                                                   \
    }
#include "tests/unit/device_errors.def"
#undef ROW

static const struct row {
    const char *function, *error_name, *cause, *text;
    CUresult error;
    CUresult (*call)(void);
} rows[] = {
#define ROW(function, error, cause, call) {#function, #error, cause, #call, error, NAME(__LINE__)},
#include "tests/unit/device_errors.def"
#undef ROW
};

#define ROWS (sizeof rows / sizeof *rows)

/* A call may spoil the capture, and a capture what other calls say: each row that speaks of it has a fresh one. */
static void renew_capture(const struct row *row)
{
    if (strstr(row->text, "capturing") != NULL || strstr(row->cause, "beside a capture") != NULL)
        succeeds(cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
}

static void drop_capture(void)
{
    CUgraph captured = NULL;
    cuStreamEndCapture(capturing, &captured);
    if (captured != NULL)
        succeeds(cuGraphDestroy(captured));
}

static void every_row_fails_as_it_says(void **unused)
{
    (void)unused;
    size_t wrong = 0, before = free_bytes();
    for (size_t i = 0; i < ROWS; i++) {
        const char *got = "";
        renew_capture(&rows[i]);
        CUresult result = rows[i].call();
        drop_capture();
        if (result == rows[i].error)
            continue;
        cuGetErrorName(result, &got);
        fprintf(stderr, "%s, %s: expected %s, got %s\n", rows[i].function, rows[i].cause, rows[i].error_name, got);
        wrong++;
    }
    assert_int_equal(wrong, 0);
    /* What failed has changed nothing. */
    succeeds(cuCtxSynchronize());
    assert_int_equal(free_bytes(), before);
}

static bool has_row(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].function, name) == 0)
            return true;
    return false;
}

/* The names of exports.def, and whether the CPU device has them. */
static const struct {
    const char *symbol, *name;
    bool is_done;
} exports[] = {
#define DONE                                          true
#define TODO                                          false
#define EXPORT(symbol, name, version, variant, state) {#symbol, #name, state},
#include "tests/device/exports.def"
#undef EXPORT
};

static bool is_of_streams_or_mappings(const char *name)
{
    static const char *const mapping[] = {"cuMemAddress",       "cuMemCreate",    "cuMemMap",     "cuMemUnmap",
                                          "cuMemSetAccess",     "cuMemGetAccess", "cuMemRelease", "cuMemRetain",
                                          "cuMemGetAllocation", "cuMemExport",    "cuMemImport"};
    if (strncmp(name, "cuStream", 8) == 0)
        return true;
    for (size_t i = 0; i < sizeof mapping / sizeof *mapping; i++)
        if (strncmp(name, mapping[i], strlen(mapping[i])) == 0)
            return true;
    return false;
}

static void every_function_of_streams_and_mappings_has_a_row(void **unused)
{
    (void)unused;
    size_t missing = 0;
    for (size_t i = 0; i < sizeof exports / sizeof *exports; i++) {
        if (!exports[i].is_done || !is_of_streams_or_mappings(exports[i].name) || has_row(exports[i].name))
            continue;
        fprintf(stderr, "%s has no row\n", exports[i].name);
        missing++;
    }
    assert_int_equal(missing, 0);
}

/* ---- nulls ---- */

typedef CUresult any_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                              uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                              uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static CUresult call_with_nulls(void *address)
{
    return ((any_function *)address)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static const char *called;

static void say_what_was_called(int number)
{
    (void)!write(2, called, strlen(called));
    (void)!write(2, ": falls over nulls\n", 19);
    _exit(128 + number);
}

/* In a process of its own, which a call that falls over would end. */
static int call_all_with_nulls(void)
{
    signal(SIGSEGV, say_what_was_called);
    for (size_t i = 0; i < sizeof exports / sizeof *exports; i++) {
        void *address = NULL;
        const char *name = NULL;
        if (!exports[i].is_done)
            continue;
        CUdriverProcAddressQueryResult status;
        bool is_per_thread = strstr(exports[i].symbol, "_pts") != NULL || strstr(exports[i].symbol, "_ptds") != NULL;
        if (cuGetProcAddress_v2(exports[i].name, &address, 13000, is_per_thread ? 2 : 0, &status) != CUDA_SUCCESS)
            return 2;
        called = exports[i].symbol;
        /* The call before may have destroyed it. */
        if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS)
            return 3;
        if (cuGetErrorName(call_with_nulls(address), &name) != CUDA_SUCCESS)
            return 4;
    }
    return 0;
}

static void nulls_are_refused(void **unused)
{
    (void)unused;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "nulls", "nulls", (char *)NULL);
        _exit(9);
    }
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int count, char **arguments)
{
    void *state = NULL;
    if (count == 2 && strcmp(arguments[1], "nulls") == 0)
        return start_device(&state) == 0 && cuCtxGetCurrent(&context) == CUDA_SUCCESS ? call_all_with_nulls() : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_fails_as_it_says),
        cmocka_unit_test(every_function_of_streams_and_mappings_has_a_row),
        cmocka_unit_test(nulls_are_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
