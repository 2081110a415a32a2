/* links: shim/outside.c shim/store.c shim/say.c shim/config.c trace/size.c */
#include "shim/outside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_take_once(void **state)
{
    (void)state;
    assert_int_equal(outside_take(OUTSIDE_ARRAY, 7), 0);
    assert_true(outside_add(OUTSIDE_ARRAY, 7, 100));
    assert_int_equal(outside_take(OUTSIDE_MIPMAP, 7), 0);
    assert_int_equal(outside_take(OUTSIDE_ARRAY, 7), 100);
    assert_int_equal(outside_take(OUTSIDE_ARRAY, 7), 0);
}

static void test_references(void **state)
{
    uint64_t bytes = 1;
    (void)state;
    assert_true(outside_add(OUTSIDE_HANDLE, 3, 64));
    assert_true(outside_retain(OUTSIDE_HANDLE, 3)); /* mapped */
    assert_true(outside_release(OUTSIDE_HANDLE, 3, &bytes));
    assert_int_equal(bytes, 0);
    assert_true(outside_find(OUTSIDE_HANDLE, 3, &bytes));
    assert_int_equal(bytes, 64);
    assert_true(outside_release(OUTSIDE_HANDLE, 3, &bytes));
    assert_int_equal(bytes, 64);
    assert_false(outside_release(OUTSIDE_HANDLE, 3, &bytes));
    assert_int_equal(bytes, 0);
    assert_false(outside_retain(OUTSIDE_HANDLE, 3));
}

static void test_sums(void **state)
{
    (void)state;
    assert_true(outside_add(OUTSIDE_GRAPHS, 0, 10));
    assert_true(outside_add(OUTSIDE_GRAPHS, 0, 20));
    assert_int_equal(outside_set(OUTSIDE_GRAPHS, 0, 5), 30);
    assert_int_equal(outside_take(OUTSIDE_GRAPHS, 0), 5);
    assert_int_equal(outside_set(OUTSIDE_POOL, 9, 4), 0);
    assert_int_equal(outside_take(OUTSIDE_POOL, 9), 4);
}

/* Many keys, come and gone many times: places are used again. */
static void test_many(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        for (uint64_t key = 0; key < 50000; key++)
            assert_true(outside_add(OUTSIDE_ADDRESS, key * 4096, key + 1));
        for (uint64_t key = 0; key < 50000; key++)
            assert_int_equal(outside_take(OUTSIDE_ADDRESS, key * 4096), key + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_once),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
