/* links: tests/unit/charging.c shim/hook_module.c shim/code%.c shim/fatbin.c shim/store.c shim/say.c shim/config.c
 * trace/size.c */
/* Modules come and go: what their variables take is charged and given back. */
#include "tests/unit/charging.h"

#include "shim/driver.h"
#include "shim/functions.h"
#include "shim/hooks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TEXT                                                                                                           \
    ".version 7.0\n.target sm_75\n.address_size 64\n"                                                                  \
    ".visible .global .align 4 .b8 array[3000];\n.visible .entry k() { ret; }\n"

static unsigned loaded, unloaded;

void functions_forget(const void *owner)
{
    (void)owner;
}

static CUresult load(CUmodule *module, const void *image)
{
    (void)image;
    *module = (CUmodule)0x77;
    loaded++;
    return test.driver_answer;
}

static CUresult unload(CUmodule module)
{
    assert_ptr_equal(module, (CUmodule)0x77);
    unloaded++;
    return CUDA_SUCCESS;
}

static int set_up(void **state)
{
    charging_set_up(state);
    loaded = unloaded = 0;
    driver.cuModuleLoadData = load;
    driver.cuModuleUnload = unload;
    return 0;
}

static void test_variables_are_charged_until_the_end(void **state)
{
    CUmodule module;
    (void)state;
    assert_int_equal(hook_cuModuleLoadData(&module, TEXT), CUDA_SUCCESS);
    assert_int_equal(test.charged, 3000);
    assert_int_equal(hook_cuModuleUnload(module), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
    assert_int_equal(unloaded, 1);
}

static void test_what_does_not_fit_is_not_loaded(void **state)
{
    CUmodule module;
    (void)state;
    test.room = 2999;
    assert_int_equal(hook_cuModuleLoadData(&module, TEXT), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(test.charged, 0);
    assert_int_equal(loaded, 0);
}

static void test_a_handle_that_comes_again_is_charged_once(void **state)
{
    CUmodule module;
    (void)state;
    assert_int_equal(hook_cuModuleLoadData(&module, TEXT), CUDA_SUCCESS);
    assert_int_equal(hook_cuModuleLoadData(&module, TEXT), CUDA_SUCCESS);
    assert_int_equal(test.charged, 3000);
    assert_int_equal(hook_cuModuleUnload(module), CUDA_SUCCESS);
    assert_int_equal(test.charged, 0);
}

static void test_a_refused_load_is_not_charged(void **state)
{
    CUmodule module;
    (void)state;
    test.driver_answer = CUDA_ERROR_INVALID_PTX;
    assert_int_equal(hook_cuModuleLoadData(&module, TEXT), CUDA_ERROR_INVALID_PTX);
    assert_int_equal(test.charged, 0);
    assert_int_equal(unloaded, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_variables_are_charged_until_the_end, set_up),
        cmocka_unit_test_setup(test_what_does_not_fit_is_not_loaded, set_up),
        cmocka_unit_test_setup(test_a_handle_that_comes_again_is_charged_once, set_up),
        cmocka_unit_test_setup(test_a_refused_load_is_not_charged, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
