/* links: tests/device/whole.c */
#include "tests/unit/device_fixture.h"

static void *address_of(const char *name, int version, cuuint64_t flags)
{
    void *address = NULL;
    succeeds(cuGetProcAddress_v2(name, &address, version, flags, NULL));
    return address;
}

static void versions_choose_the_form(void **unused)
{
    (void)unused;
    assert_ptr_equal(address_of("cuMemAlloc", 3020, 0), cuMemAlloc_v2);
    assert_ptr_equal(address_of("cuMemAlloc", 3010, 0), cuMemAlloc);
    assert_ptr_equal(address_of("cuCtxCreate", 11030, 0), cuCtxCreate_v2);
    assert_ptr_equal(address_of("cuCtxCreate", 12000, 0), cuCtxCreate_v3);
    assert_ptr_equal(address_of("cuCtxCreate", 13000, 0), cuCtxCreate_v4);
    assert_ptr_equal(address_of("cuMemAdvise", 8000, 0), cuMemAdvise);
    assert_ptr_equal(address_of("cuMemAdvise", 12020, 0), cuMemAdvise_v2);
    assert_ptr_equal(address_of("cuCtxSynchronize", 13000, 0), cuCtxSynchronize_v2);
}

static void flags_choose_the_stream(void **unused)
{
    (void)unused;
    assert_ptr_equal(address_of("cuMemcpyHtoD", 13000, 0), cuMemcpyHtoD_v2);
    assert_ptr_equal(address_of("cuMemcpyHtoD", 13000, 1), cuMemcpyHtoD_v2);
    assert_ptr_equal(address_of("cuMemcpyHtoD", 13000, 2), cuMemcpyHtoD_v2_ptds);
    assert_ptr_equal(address_of("cuLaunchKernel", 13000, 2), cuLaunchKernel_ptsz);
    assert_ptr_equal(address_of("cuInit", 13000, 2), cuInit);
    void *address;
    fails(cuGetProcAddress_v2("cuInit", &address, 13000, 3, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuGetProcAddress_v2("cuInit", &address, 13000, 4, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void what_is_not_there_says_so(void **unused)
{
    (void)unused;
    CUdriverProcAddressQueryResult status;
    void *address = &status;
    succeeds(cuGetProcAddress_v2("cuNothing", &address, 13000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_null(address);
    succeeds(cuGetProcAddress_v2("cuMemAllocAsync", &address, 11010, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_null(address);
    succeeds(cuGetProcAddress_v2("cuMemAlloc_v2", &address, 13000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    succeeds(cuGetProcAddress_v2("cuInit", &address, 13000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
    fails(cuGetProcAddress("cuNothing", &address, 11030, 0), CUDA_ERROR_NOT_FOUND);
    succeeds(cuGetProcAddress("cuInit", &address, 11030, 0));
    fails(cuGetProcAddress_v2(NULL, &address, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    fails(cuGetProcAddress_v2("cuInit", NULL, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    fails(cuGetProcAddress_v2("cuInit", &address, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

static const struct {
    const char *symbol, *name;
    int version, variant;
} rows[] = {
#define PLAIN                                         0
#define PER_THREAD                                    2
#define EXPORT(symbol, name, version, variant, state) {#symbol, #name, version, variant},
#include "tests/device/exports.def"
};

/* Every row answers, and no two rows of the list have one address. */
static void every_name_answers(void **unused)
{
    (void)unused;
    size_t count = sizeof rows / sizeof *rows;
    assert_int_equal(count, 637);
    static void *addresses[637];
    for (size_t i = 0; i < count; i++) {
        addresses[i] = address_of(rows[i].name, rows[i].version, (cuuint64_t)rows[i].variant);
        assert_non_null(addresses[i]);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(addresses[i], addresses[k]);
    }
}

static void errors_have_names(void **unused)
{
    (void)unused;
    const char *text = NULL;
    succeeds(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
    succeeds(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    assert_string_equal(text, "an illegal memory access was encountered");
    fails(cuGetErrorString((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    assert_null(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_choose_the_form),  cmocka_unit_test(flags_choose_the_stream),
        cmocka_unit_test(what_is_not_there_says_so), cmocka_unit_test(every_name_answers),
        cmocka_unit_test(errors_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
