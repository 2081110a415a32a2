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

/* A function that the CPU device does not have is of no type that cuda.h knows. */
#define DECLARE_DONE(symbol)
#define DECLARE_TODO(symbol)                          extern int symbol##_address(void) __asm__(#symbol);
#define EXPORT(symbol, name, version, variant, state) DECLARE_##state(symbol)
#include "tests/device/exports.def"
#undef EXPORT

static const struct row {
    const char *name;
    int version, variant;
    void *address; /* as a linker finds it */
} rows[] = {
#define PLAIN                                         0
#define PER_THREAD                                    2
#define ADDRESS_DONE(symbol)                          (void *)symbol
#define ADDRESS_TODO(symbol)                          (void *)symbol##_address
#define EXPORT(symbol, name, version, variant, state) {#name, version, variant, ADDRESS_##state(symbol)},
#include "tests/device/exports.def"
#undef EXPORT
};

#define ROWS (sizeof rows / sizeof *rows)

/* The newest row of the name and variant that is not above the version. */
static const struct row *expected(const char *name, int version, int variant)
{
    const struct row *best = NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].variant == variant && rows[i].version <= version && strcmp(rows[i].name, name) == 0 &&
            (best == NULL || rows[i].version > best->version))
            best = &rows[i];
    return best;
}

static void check(const struct row *row, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;
    void *address = &status;
    const struct row *best = flags == 2 ? expected(row->name, version, PER_THREAD) : NULL;
    if (best == NULL)
        best = expected(row->name, version, PLAIN);
    succeeds(cuGetProcAddress_v2(row->name, &address, version, flags, &status));
    assert_ptr_equal(address, best != NULL ? best->address : NULL);
    assert_int_equal(status, best != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    void *old = &status;
    CUresult result = cuGetProcAddress(row->name, &old, version, flags);
    assert_int_equal(result, best != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
    assert_ptr_equal(old, best != NULL ? best->address : NULL);
}

/* Every name at the version of each of its forms, just before it, and at the newest, for both kinds of stream. */
static void every_name_answers(void **unused)
{
    (void)unused;
    static const cuuint64_t flags[] = {0, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                                       CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM};
    assert_int_equal(ROWS, 637);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t k = 0; k < 3; k++) {
            check(&rows[i], rows[i].version, flags[k]);
            check(&rows[i], rows[i].version - 1, flags[k]);
            check(&rows[i], 13000, flags[k]);
        }
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(rows[i].address, rows[k].address);
    }
}

static void errors_have_names(void **unused)
{
    (void)unused;
    static const struct {
        CUresult error;
        const char *name;
    } errors[] = {
#define ERROR(name) {name, #name},
#include "gen/driver_errors.def"
#undef ERROR
    };
    const char *text = NULL;
    assert_true(sizeof errors / sizeof *errors > 90);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        succeeds(cuGetErrorName(errors[i].error, &text));
        assert_string_equal(text, errors[i].name);
        succeeds(cuGetErrorString(errors[i].error, &text));
        assert_true(strlen(text) > 4);
    }
    succeeds(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    assert_string_equal(text, "an illegal memory access was encountered");
    fails(cuGetErrorString((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    assert_null(text);
    fails(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    fails(cuGetErrorName(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
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
