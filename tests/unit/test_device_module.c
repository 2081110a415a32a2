/* links: tests/device/whole.c */
#include "tests/unit/device_fixture.h"
#include "tests/unit/device_kernels.h"
#include "tests/device/stats.h"

static void text_loads_and_runs(void **unused)
{
    (void)unused;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory, answer;
    size_t bytes;
    unsigned got = 0;
    succeeds(cuModuleLoadData(&module, test_ptx));
    fails(cuModuleGetFunction(&function, module, "absent"), CUDA_ERROR_NOT_FOUND);
    succeeds(cuModuleGetFunction(&function, module, "read_answer"));
    succeeds(cuMemAlloc_v2(&memory, 4));
    void *params[] = {&memory};
    uint64_t before = stats_launches();
    succeeds(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    succeeds(cuMemcpyDtoH_v2(&got, memory, 4));
    assert_int_equal(got, 42);
    assert_int_equal(stats_launches(), before + 1);
    fails(cuModuleGetGlobal_v2(&answer, &bytes, module, "absent"), CUDA_ERROR_NOT_FOUND);
    succeeds(cuModuleGetGlobal_v2(&answer, &bytes, module, "answer"));
    assert_int_equal(bytes, 4);
    succeeds(cuMemsetD32_v2(answer, 43, 1));
    succeeds(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    succeeds(cuMemcpyDtoH_v2(&got, memory, 4));
    assert_int_equal(got, 43);
    succeeds(cuModuleUnload(module));
    fails(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    fails(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
    succeeds(cuMemFree_v2(memory));
}

static void every_block_runs_once(void **unused)
{
    (void)unused;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    unsigned got = 0;
    succeeds(cuModuleLoadData(&module, test_ptx));
    succeeds(cuModuleGetFunction(&function, module, "count"));
    succeeds(cuMemAlloc_v2(&memory, 4));
    succeeds(cuMemsetD32_v2(memory, 0, 1));
    void *params[] = {&memory};
    for (int i = 0; i < 20; i++)
        succeeds(cuLaunchKernel(function, 101, 3, 2, 8, 4, 2, 0, NULL, params, NULL));
    succeeds(cuLaunchCooperativeKernel(function, 5, 1, 1, 64, 1, 1, 0, NULL, params));
    succeeds(cuMemcpyDtoH_v2(&got, memory, 4));
    assert_int_equal(got, 20 * 101 * 3 * 2 * 64 + 5 * 64);
    succeeds(cuModuleUnload(module));
    succeeds(cuMemFree_v2(memory));
}

static void parameters_are_known(void **unused)
{
    (void)unused;
    CUmodule module;
    CUfunction function;
    const char *name;
    static const size_t offsets[] = {0, 8, 16}, sizes[] = {5, 8, 2};
    succeeds(cuModuleLoadData(&module, test_ptx));
    succeeds(cuModuleGetFunction(&function, module, "many"));
    succeeds(cuFuncGetName(&name, function));
    assert_string_equal(name, "many");
    for (size_t i = 0; i < 3; i++) {
        size_t offset, bytes;
        succeeds(cuFuncGetParamInfo(function, i, &offset, &bytes));
        assert_int_equal(offset, offsets[i]);
        assert_int_equal(bytes, sizes[i]);
    }
    size_t offset;
    fails(cuFuncGetParamInfo(function, 3, &offset, NULL), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuModuleUnload(module));
}

static void launches_are_checked(void **unused)
{
    (void)unused;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    unsigned value = 9, got = 0;
    succeeds(cuModuleLoadData(&module, test_ptx));
    succeeds(cuModuleGetFunction(&function, module, "store"));
    succeeds(cuMemAlloc_v2(&memory, 4));
    void *params[] = {&memory, &value}, *missing[] = {&memory, NULL};
    fails(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuLaunchKernel(function, 1, 70000, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuLaunchKernel(function, 1, 1, 1, 1, 1, 0, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, missing, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
    fails(cuLaunchCooperativeKernel(function, 5000, 1, 1, 64, 1, 1, 0, NULL, params),
          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    struct {
        CUdeviceptr p;
        unsigned v;
    } buffer = {memory, 11};
    size_t bytes = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    fails(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    succeeds(cuMemcpyDtoH_v2(&got, memory, 4));
    assert_int_equal(got, 11);
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}};
    CUlaunchConfig config = {2, 1, 1, 1, 1, 1, 0, NULL, &cluster, 1};
    fails(cuLaunchKernelEx(&config, function, params, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cluster.value.clusterDim.x = 1;
    succeeds(cuLaunchKernelEx(&config, function, params, NULL));
    succeeds(cuMemcpyDtoH_v2(&got, memory, 4));
    assert_int_equal(got, 9);
    succeeds(cuMemFree_v2(memory));
    succeeds(cuModuleUnload(module));
}

/* A container of plain entries; returns its size. */
static size_t put_entry(unsigned char *at, unsigned kind, unsigned target, const char *text)
{
    size_t bytes = (strlen(text) + 8) / 8 * 8, header = kind == 1 ? 80 : 64;
    memset(at, 0, header + bytes);
    at[0] = (unsigned char)kind;
    at[2] = at[3] = 1;
    memcpy(at + 4, &(uint32_t){(uint32_t)header}, 4);
    memcpy(at + 8, &(uint64_t){bytes}, 8);
    memcpy(at + 28, &target, 4);
    memcpy(at + 56, &(uint64_t){strlen(text)}, 8);
    memcpy(at + header, text, strlen(text));
    return header + bytes;
}

static void put_header(unsigned char *at, size_t payload)
{
    static const unsigned char head[8] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
    memcpy(at, head, 8);
    memcpy(at + 8, &(uint64_t){payload}, 8);
}

#define ONE_ENTRY(name) ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry " name "() {\n  ret;\n}\n"

static void the_newest_text_for_the_device_is_taken(void **unused)
{
    (void)unused;
    static unsigned char image[4096];
    CUmodule module;
    CUfunction function;
    size_t bytes = 16;
    bytes += put_entry(image + bytes, 2, 90, "not for a CPU");
    bytes += put_entry(image + bytes, 1, 75, ONE_ENTRY("old"));
    bytes += put_entry(image + bytes, 1, 121, ONE_ENTRY("fitting"));
    bytes += put_entry(image + bytes, 1, 130, ONE_ENTRY("too_new"));
    put_header(image, bytes - 16);
    succeeds(cuModuleLoadData(&module, image));
    succeeds(cuModuleGetFunction(&function, module, "fitting"));
    fails(cuModuleGetFunction(&function, module, "old"), CUDA_ERROR_NOT_FOUND);
    succeeds(cuModuleUnload(module));
    bytes = 16 + put_entry(image + 16, 1, 130, ONE_ENTRY("too_new"));
    put_header(image, bytes - 16);
    fails(cuModuleLoadData(&module, image), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

static void bad_images_are_refused(void **unused)
{
    (void)unused;
    CUmodule module;
    char log[256] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    fails(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_75\n.entry x( {", 2, options, values),
          CUDA_ERROR_INVALID_PTX);
    assert_true(strlen(log) > 0);
    fails(cuModuleLoadDataEx(&module,
                             "\x7f"
                             "ELF\2\1\1\0\0\0\0\0",
                             2, options, values),
          CUDA_ERROR_NO_BINARY_FOR_GPU);
    fails(cuModuleLoadDataEx(&module, "\1\2\3\4\5\6\7\0", 2, options, values), CUDA_ERROR_INVALID_IMAGE);
    fails(cuModuleLoad(&module, "/nonexistent.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
    fails(cuModuleUnload(NULL), CUDA_ERROR_INVALID_HANDLE);
}

#define HEAD_75 ".version 7.0\n.target sm_75\n.address_size 64\n"
#define UNDONE                                                                                                         \
    HEAD_75 ".visible .entry done() { ret; }\n"                                                                        \
            ".visible .entry undone() {\n  .reg .f32 %f<2>;\n  sin.approx.sat.f32 %f0, %f1;\n  ret;\n}\n"

static CUresult load_logged(CUmodule *module, const char *text, char *log, unsigned room, size_t *used)
{
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER};
    void *values[] = {(void *)(uintptr_t)room, log};
    CUresult result = cuModuleLoadDataEx(module, text, 2, options, values);
    *used = (size_t)values[0];
    return result;
}

static void a_refused_kernel_is_named(void **unused)
{
    (void)unused;
    CUmodule module;
    CUfunction function;
    char log[512] = "";
    size_t used;
    succeeds(load_logged(&module, UNDONE, log, sizeof log, &used));
    assert_non_null(strstr(log, "undone: PTX line 7"));
    assert_non_null(strstr(log, "sin.approx.sat.f32"));
    assert_int_equal(used, strlen(log));
    fails(cuModuleGetFunction(&function, module, "undone"), CUDA_ERROR_INVALID_PTX);
    succeeds(cuModuleGetFunction(&function, module, "done"));
    succeeds(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    succeeds(cuCtxSynchronize());
    succeeds(cuModuleUnload(module));
}

static void texts_for_others_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        CUresult code;
        const char *named;
    } cases[] = {
        {".version 10.0\n.target sm_75\n", CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "10.0"},
        {".version 99.9\n.target sm_75\n", CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "99.9"},
        {".version 8.0\n.target sm_999\n.address_size 64\n", CUDA_ERROR_INVALID_PTX, "sm_999"},
        {".version 8.0\n.target sm_75\n.address_size 32\n", CUDA_ERROR_INVALID_PTX, "line 3"},
        {".target sm_75\n.visible .entry k() { ret; }\n", CUDA_ERROR_INVALID_PTX, ".version"},
        {HEAD_75 ".visible .entry k() {\n  mov.u32 r1, 5;\n}\n", CUDA_ERROR_INVALID_PTX, "line 5"},
        {HEAD_75 ".visible .entry k() {\n  bra nowhere;\n}\n", CUDA_ERROR_INVALID_PTX, "nowhere"},
        {HEAD_75 ".extern .global .u32 absent;\n", CUDA_ERROR_INVALID_PTX, "absent"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CUmodule module;
        char log[256] = "";
        size_t used;
        fails(load_logged(&module, cases[i].text, log, sizeof log, &used), cases[i].code);
        if (!strstr(log, cases[i].named))
            fail_msg("%s: the log says: %s", cases[i].text, log);
    }
}

/* Wherever a text ends too early, it is refused with a reason, or what is there is whole. */
static void truncated_texts_are_refused(void **unused)
{
    (void)unused;
    static const char whole[] = UNDONE;
    for (size_t bytes = 1; bytes < sizeof whole; bytes++) {
        char text[sizeof whole] = "", log[256] = "", tiny[4] = "";
        CUmodule module;
        size_t used;
        memcpy(text, whole, bytes);
        CUresult result = load_logged(&module, text, log, sizeof log, &used);
        bool ends_whole = bytes >= strlen(".version 7.0\n.target sm_75") && strchr("\n}45", text[bytes - 1]);
        if (result == CUDA_SUCCESS) {
            if (!ends_whole)
                fail_msg("accepted: %s", text);
            succeeds(cuModuleUnload(module));
            continue;
        }
        assert_true(result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_INVALID_IMAGE);
        assert_true(used == strlen(log) && used > 0);
        fails(load_logged(&module, text, tiny, sizeof tiny, &used), result);
        assert_int_equal(used, sizeof tiny - 1);
        assert_int_equal(tiny[sizeof tiny - 1], 0);
    }
}

static void libraries_give_kernels(void **unused)
{
    (void)unused;
    CUlibrary library;
    CUkernel kernel, all[16];
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    unsigned count = 0, value = 3, got = 0;
    succeeds(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, NULL, NULL, 0));
    succeeds(cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 5);
    succeeds(cuLibraryEnumerateKernels(all, count, library));
    succeeds(cuLibraryGetKernel(&kernel, library, "store"));
    succeeds(cuKernelGetFunction(&function, kernel));
    succeeds(cuLibraryGetModule(&module, library));
    succeeds(cuModuleGetFunction(&function, module, "store"));
    succeeds(cuMemAlloc_v2(&memory, 4));
    void *params[] = {&memory, &value};
    succeeds(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    succeeds(cuMemcpyDtoH_v2(&got, memory, 4));
    assert_int_equal(got, 3);
    succeeds(cuMemFree_v2(memory));
    succeeds(cuLibraryUnload(library));
    fails(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
}

static void texts_are_linked(void **unused)
{
    (void)unused;
    static char caller[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                           ".visible .entry twice(.param .u64 p) {\n"
                           "  .reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
                           "  ld.param.u64 %rd1, [p]; mov.u32 %r1, 6;\n"
                           "  st.u32 [%rd1], %r1;\n  ret;\n}\n";
    CUlinkState link;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    void *image;
    size_t bytes;
    unsigned got = 0;
    succeeds(cuLinkCreate_v2(0, NULL, NULL, &link));
    fails(cuLinkComplete(link, &image, &bytes), CUDA_ERROR_INVALID_VALUE);
    succeeds(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller", 0, NULL, NULL));
    succeeds(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)test_ptx, sizeof test_ptx, "kernels", 0, NULL, NULL));
    fails(cuLinkAddData_v2(link, CU_JIT_INPUT_CUBIN, caller, sizeof caller, "x", 0, NULL, NULL),
          CUDA_ERROR_NO_BINARY_FOR_GPU);
    fails(cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, "/nonexistent.ptx", 0, NULL, NULL), CUDA_ERROR_FILE_NOT_FOUND);
    succeeds(cuLinkComplete(link, &image, &bytes));
    succeeds(cuModuleLoadData(&module, image));
    succeeds(cuLinkDestroy(link));
    fails(cuLinkDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
    succeeds(cuModuleGetFunction(&function, module, "store"));
    succeeds(cuModuleGetFunction(&function, module, "twice"));
    succeeds(cuMemAlloc_v2(&memory, 4));
    void *params[] = {&memory};
    succeeds(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    succeeds(cuMemcpyDtoH_v2(&got, memory, 4));
    assert_int_equal(got, 6);
    succeeds(cuMemFree_v2(memory));
    succeeds(cuModuleUnload(module));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_loads_and_runs),
        cmocka_unit_test(every_block_runs_once),
        cmocka_unit_test(parameters_are_known),
        cmocka_unit_test(launches_are_checked),
        cmocka_unit_test(the_newest_text_for_the_device_is_taken),
        cmocka_unit_test(bad_images_are_refused),
        cmocka_unit_test(a_refused_kernel_is_named),
        cmocka_unit_test(texts_for_others_are_refused),
        cmocka_unit_test(truncated_texts_are_refused),
        cmocka_unit_test(libraries_give_kernels),
        cmocka_unit_test(texts_are_linked),
    };
    return cmocka_run_group_tests(tests, start_device, NULL);
}
