/* links: tests/device/ranges.c */
#include "tests/device/ranges.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define COUNT 4096

static void takes_what_it_gives(void **unused)
{
    (void)unused;
    struct ranges *ranges = ranges_create(COUNT);
    uint64_t first;
    assert_true(ranges_take(ranges, COUNT, 1, &first));
    assert_int_equal(first, 0);
    assert_false(ranges_take(ranges, 1, 1, &first));
    assert_int_equal(ranges_take_some(ranges, 5, &first), 0);
    ranges_give(ranges, 100, 50);
    ranges_give(ranges, 200, 10);
    assert_int_equal(ranges_take_some(ranges, 60, &first), 50);
    assert_int_equal(first, 100);
    ranges_give(ranges, 100, 50);
    ranges_give(ranges, 150, 50);
    assert_true(ranges_are_valid(ranges));
    assert_true(ranges_take(ranges, 110, 1, &first));
    assert_int_equal(first, 100);
    ranges_destroy(ranges);
}

static void aligns(void **unused)
{
    (void)unused;
    struct ranges *ranges = ranges_create(COUNT);
    uint64_t odd, first;
    assert_true(ranges_take(ranges, 3, 1, &odd));
    assert_true(ranges_take(ranges, 64, 64, &first));
    assert_int_equal(first % 64, 0);
    assert_int_equal(ranges_free_count(ranges), COUNT - 67);
    assert_true(ranges_are_valid(ranges));
    assert_false(ranges_take(ranges, COUNT - 60, 64, &first));
    ranges_destroy(ranges);
}

/* Random takes and gives against a plain map of owners. */
static void keeps_its_invariants(void **unused)
{
    (void)unused;
    struct ranges *ranges = ranges_create(COUNT);
    static int owner[COUNT];
    static struct {
        uint64_t first, count;
    } taken[COUNT];
    size_t live = 0;
    srand(1);
    for (int step = 1; step < 20000; step++) {
        if (live > 0 && rand() % 2 == 0) {
            size_t i = (size_t)rand() % live;
            for (uint64_t k = 0; k < taken[i].count; k++)
                owner[taken[i].first + k] = 0;
            ranges_give(ranges, taken[i].first, taken[i].count);
            taken[i] = taken[--live];
        } else {
            uint64_t first, count = 1 + (uint64_t)rand() % 60;
            if (step % 3 == 0)
                count = ranges_take_some(ranges, count, &first);
            else if (!ranges_take(ranges, count, 1, &first))
                count = 0;
            for (uint64_t k = 0; k < count; k++) {
                assert_int_equal(owner[first + k], 0);
                owner[first + k] = step;
            }
            if (count == 0)
                continue;
            taken[live].first = first;
            taken[live++].count = count;
        }
        if (step % 50 == 0)
            assert_true(ranges_are_valid(ranges));
    }
    uint64_t used = 0;
    for (size_t i = 0; i < COUNT; i++)
        used += owner[i] != 0;
    assert_int_equal(used, COUNT - ranges_free_count(ranges));
    ranges_destroy(ranges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_it_gives),
        cmocka_unit_test(aligns),
        cmocka_unit_test(keeps_its_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
