/* links: tests/device/jitlink/jitlink.c tests/device/link_text.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* The library's functions, as NVIDIA's header declares them. */
enum {
    SUCCESS = 0,
    UNRECOGNIZED_OPTION = 1,
    MISSING_ARCH = 2,
    INVALID_INPUT = 3,
    UNRECOGNIZED_INPUT = 8,
    NULL_INPUT = 10
};
enum { INPUT_CUBIN = 1, INPUT_PTX = 2, INPUT_LTOIR = 3, INPUT_ANY = 10 };
typedef struct link *nvJitLinkHandle;
int nvJitLinkVersion(unsigned *major, unsigned *minor);
int nvJitLinkCreate(nvJitLinkHandle *handle, uint32_t count, const char *const *options);
int nvJitLinkDestroy(nvJitLinkHandle *handle);
int nvJitLinkAddData(nvJitLinkHandle handle, int type, const void *data, size_t size, const char *name);
int __nvJitLinkAddFile_13_0(nvJitLinkHandle handle, int type, const char *path);
int nvJitLinkComplete(nvJitLinkHandle handle);
int nvJitLinkGetLinkedCubinSize(nvJitLinkHandle handle, size_t *size);
int __nvJitLinkGetLinkedCubin_13_2(nvJitLinkHandle handle, void *cubin);
int nvJitLinkGetLinkedPtxSize(nvJitLinkHandle handle, size_t *size);
int nvJitLinkGetErrorLogSize(nvJitLinkHandle handle, size_t *size);
int nvJitLinkGetErrorLog(nvJitLinkHandle handle, char *log);

static const char first[] = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func f;\n";
static const char second[] = "  .version 7.0\n\t.target sm_75\n.address_size 64\n.func f { ret; }\n";
static const char both[] = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func f;\n\n.func f { ret; }\n\n";

static nvJitLinkHandle create(void)
{
    const char *options[] = {"-arch=sm_121"};
    nvJitLinkHandle handle = NULL;
    assert_int_equal(nvJitLinkCreate(&handle, 1, options), SUCCESS);
    assert_non_null(handle);
    return handle;
}

static void texts_become_one_with_one_head(void **unused)
{
    (void)unused;
    char image[256];
    size_t size = 0, same = 0;
    nvJitLinkHandle handle = create();
    assert_int_equal(nvJitLinkAddData(handle, INPUT_PTX, first, sizeof first, "first"),
                     SUCCESS); /* with its zero byte */
    assert_int_equal(nvJitLinkAddData(handle, INPUT_ANY, second, sizeof second - 1, NULL), SUCCESS);
    assert_int_equal(nvJitLinkGetLinkedCubinSize(handle, &size), INVALID_INPUT);
    assert_int_equal(nvJitLinkComplete(handle), SUCCESS);
    assert_int_equal(nvJitLinkGetLinkedCubinSize(handle, &size), SUCCESS);
    assert_int_equal(size, sizeof both);
    assert_int_equal(nvJitLinkGetLinkedPtxSize(handle, &same), SUCCESS);
    assert_int_equal(same, size);
    assert_int_equal(__nvJitLinkGetLinkedCubin_13_2(handle, image), SUCCESS);
    assert_string_equal(image, both);
    assert_int_equal(nvJitLinkDestroy(&handle), SUCCESS);
    assert_null(handle);
    assert_int_equal(nvJitLinkDestroy(&handle), INVALID_INPUT);
}

static void options_are_read(void **unused)
{
    (void)unused;
    const char *none[] = {"-O3"}, *nonsense[] = {"arch"}, *lto[] = {"-arch=sm_90", "-lto"};
    nvJitLinkHandle handle = NULL;
    unsigned major = 0, minor = 0;
    assert_int_equal(nvJitLinkCreate(&handle, 1, none), MISSING_ARCH);
    assert_int_equal(nvJitLinkCreate(&handle, 1, nonsense), UNRECOGNIZED_OPTION);
    assert_int_not_equal(nvJitLinkCreate(&handle, 2, lto), SUCCESS);
    assert_int_equal(nvJitLinkCreate(NULL, 0, NULL), INVALID_INPUT);
    assert_null(handle);
    assert_int_equal(nvJitLinkVersion(&major, NULL), INVALID_INPUT);
    assert_int_equal(nvJitLinkVersion(&major, &minor), SUCCESS);
    assert_true(major * 100 + minor < 1203); /* what frameworks take for link-time optimisation */
}

static void what_is_no_ptx_is_refused_and_told(void **unused)
{
    (void)unused;
    char log[512] = "";
    size_t size = 0;
    nvJitLinkHandle handle = create();
    assert_int_equal(nvJitLinkAddData(handle, INPUT_LTOIR, first, sizeof first, NULL), UNRECOGNIZED_INPUT);
    assert_int_equal(nvJitLinkAddData(handle, INPUT_CUBIN, "\177ELF\2\1", 6, NULL), UNRECOGNIZED_INPUT);
    assert_int_equal(nvJitLinkAddData(handle, INPUT_PTX, "\177ELF\2\1", 6, NULL), UNRECOGNIZED_INPUT);
    assert_int_equal(nvJitLinkAddData(handle, INPUT_PTX, "a\0b\0c", 5, NULL), UNRECOGNIZED_INPUT);
    assert_int_equal(nvJitLinkAddData(handle, INPUT_PTX, NULL, 5, NULL), NULL_INPUT);
    assert_int_equal(nvJitLinkGetErrorLogSize(handle, &size), SUCCESS);
    assert_in_range(size, 20, sizeof log);
    assert_int_equal(nvJitLinkGetErrorLog(handle, log), SUCCESS);
    assert_non_null(strstr(log, "only PTX"));
    assert_int_equal(nvJitLinkComplete(handle), INVALID_INPUT);
    assert_int_equal(nvJitLinkDestroy(&handle), SUCCESS);
}

static void files_are_read(void **unused)
{
    (void)unused;
    char path[] = "/tmp/test_jitlink.XXXXXX";
    size_t size = 0;
    nvJitLinkHandle handle = create();
    int file = mkstemp(path);
    assert_int_equal(write(file, first, sizeof first - 1), sizeof first - 1);
    close(file);
    assert_int_equal(__nvJitLinkAddFile_13_0(handle, INPUT_PTX, path), SUCCESS);
    unlink(path);
    assert_int_equal(__nvJitLinkAddFile_13_0(handle, INPUT_PTX, path), INVALID_INPUT);
    assert_int_equal(nvJitLinkComplete(handle), SUCCESS);
    assert_int_equal(nvJitLinkAddData(handle, INPUT_PTX, first, sizeof first, NULL), INVALID_INPUT); /* too late */
    assert_int_equal(nvJitLinkGetLinkedPtxSize(handle, &size), SUCCESS);
    assert_int_equal(size, sizeof first + 1);
    nvJitLinkDestroy(&handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_one_with_one_head),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(what_is_no_ptx_is_refused_and_told),
        cmocka_unit_test(files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
