/* links: shim/store.c shim/say.c shim/config.c trace/size.c */
#include "tests/unit/child.h"

#include "shim/store.h"

#include <stdbool.h>

#define MIB ((size_t)1 << 20)

static void test_reserved_memory_is_zero_and_stays(void **state)
{
    (void)state;
    unsigned char *array = store_reserve(64 * MIB, "a test");
    assert_non_null(array);
    for (size_t i = 0; i < 64 * MIB; i += MIB) {
        assert_int_equal(array[i], 0);
        array[i] = (unsigned char)(i / MIB + 1);
    }
    for (size_t i = 0; i < 64 * MIB; i += MIB) {
        assert_int_equal(array[i], i / MIB + 1);
    }
    store_return(array, 64 * MIB);
}

static void test_cleared_memory_is_zero_again(void **state)
{
    (void)state;
    unsigned char *array = store_reserve(MIB, "a test");
    memset(array, 7, MIB);
    store_clear(array, MIB);
    for (size_t i = 0; i < MIB; i++) {
        assert_int_equal(array[i], 0);
    }
    array[MIB - 1] = 1;
    store_return(array, MIB);
}

static void test_nothing_is_cleared_or_returned_without_complaint(void **state)
{
    (void)state;
    store_clear(NULL, MIB);
    store_return(NULL, MIB);
}

static void test_far_more_than_there_is_can_be_reserved(void **state)
{
    (void)state;
    unsigned char *array = store_reserve((size_t)1 << 40, "a test");
    assert_non_null(array);
    array[((size_t)1 << 40) - 1] = 1;
    store_return(array, (size_t)1 << 40);
}

static void test_what_the_system_refuses_is_null(void **state)
{
    (void)state;
    assert_null(store_reserve((size_t)1 << 62, "a test that wants too much"));
}

static void test_bump_is_aligned_and_disjoint(void **state)
{
    (void)state;
    struct bump bump;
    assert_true(bump_open(&bump, MIB, "a test"));
    unsigned char *end = bump.base;
    for (size_t bytes = 0; bytes < 300; bytes++) {
        unsigned char *taken = bump_take(&bump, bytes);
        assert_non_null(taken);
        assert_int_equal((uintptr_t)taken % 16, 0);
        assert_true(taken >= end);
        memset(taken, (int)bytes, bytes);
        end = taken + bytes;
    }
    assert_true(end <= bump.base + MIB);
    assert_true(bump.used <= bump.capacity);
}

static void test_bump_ends_at_its_capacity(void **state)
{
    (void)state;
    struct bump bump;
    assert_true(bump_open(&bump, 4096, "a test"));
    assert_null(bump_take(&bump, 4097));
    assert_non_null(bump_take(&bump, 4080));
    assert_null(bump_take(&bump, 17));
    assert_non_null(bump_take(&bump, 16));
    assert_null(bump_take(&bump, 1));
    assert_non_null(bump_take(&bump, 0));
}

static void test_bump_reset_starts_again_and_remembers_the_most(void **state)
{
    (void)state;
    struct bump bump;
    assert_true(bump_open(&bump, 4096, "a test"));
    void *first = bump_take(&bump, 1000);
    bump_take(&bump, 1000);
    size_t most = bump.used;
    bump_reset(&bump);
    assert_ptr_equal(bump_take(&bump, 10), first);
    assert_int_equal(bump.high, most);
    assert_true(bump.used < most);
}

static void test_bump_sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    struct bump bump;
    assert_true(bump_open(&bump, 4096, "a test"));
    bump_take(&bump, 16);
    assert_null(bump_take(&bump, SIZE_MAX));
    assert_null(bump_take(&bump, SIZE_MAX - 14));
    assert_int_equal(bump.used, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserved_memory_is_zero_and_stays),
        cmocka_unit_test(test_cleared_memory_is_zero_again),
        cmocka_unit_test(test_nothing_is_cleared_or_returned_without_complaint),
        cmocka_unit_test(test_far_more_than_there_is_can_be_reserved),
        cmocka_unit_test(test_what_the_system_refuses_is_null),
        cmocka_unit_test(test_bump_is_aligned_and_disjoint),
        cmocka_unit_test(test_bump_ends_at_its_capacity),
        cmocka_unit_test(test_bump_reset_starts_again_and_remembers_the_most),
        cmocka_unit_test(test_bump_sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
