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
        cmocka_unit_test(libraries_give_kernels),
        cmocka_unit_test(texts_are_linked),
    };
    return cmocka_run_group_tests(tests, start_device, NULL);
}
