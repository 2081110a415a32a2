/* links: policy/%.c */
#include "policy/generate.h"
#include "policy/plan.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* Forward steps of the best plan for n equal steps and s slots, by one strategy or (NULL) all. */
static uint64_t forward_steps(uint32_t steps, uint32_t slots, const char *strategy)
{
    struct problem_builder b = {0};
    struct plan plan;
    char why[200] = "";
    generate_revolve_chain(&b, steps, 1, 1);
    assert_false(b.has_failed);
    struct policy_options options = {
        .cap_bytes = slots + 2, .deadline_ns = 50000000, .is_untimed = true, .only_strategy = strategy};
    if (policy_make_plan(&b.problem, &options, &plan, NULL, why, sizeof why) != POLICY_OK)
        fail_msg("n %u, %u slots: %s", steps, slots, why);
    assert_true(plan.peak_bytes <= slots + 2);
    uint64_t forward = plan.added_nanoseconds + steps - 1;
    plan_release(&plan);
    builder_release(&b);
    return forward;
}

/* t(n, s) by its recurrence: store after j steps, do the right part with a slot less, then the left part. */
static void test_recurrence(void **state)
{
    (void)state;
    enum { STEPS = 24, SLOTS = 8 };
    static uint64_t t[STEPS + 1][SLOTS + 1];
    for (uint32_t s = 1; s <= SLOTS; s++) {
        t[1][s] = 0;
        for (uint32_t n = 2; n <= STEPS; n++) {
            t[n][s] = s == 1 ? (uint64_t)n * (n - 1) / 2 : UINT64_MAX;
            for (uint32_t j = 1; s > 1 && j < n; j++)
                if (j + t[n - j][s - 1] + t[j][s] < t[n][s])
                    t[n][s] = j + t[n - j][s - 1] + t[j][s];
        }
    }
    for (uint32_t s = 1; s <= SLOTS; s++)
        for (uint32_t n = 4; n <= STEPS; n += 4)
            assert_int_equal(forward_steps(n, s, NULL), t[n][s]);
}

static void test_reference(void **state)
{
    (void)state;
    FILE *table = fopen("../shared/data/revolve_reference.tsv", "r");
    unsigned steps, slots, repeats;
    unsigned long long wanted;
    uint32_t rows = 0;
    if (!table) {
        printf("  ../shared/data/revolve_reference.tsv is not there: skipped\n");
        skip();
    }
    if (fscanf(table, "%*[^\n]") != 0)
        fail_msg("the reference table has no heading");
    while (fscanf(table, "%u %u %u %llu %*s", &steps, &slots, &repeats, &wanted) == 4) {
        if (steps > 1024)
            continue;
        uint64_t found = forward_steps(steps, slots, "revolve");
        if (found != wanted)
            fail_msg("n %u, %u slots: %llu forward steps, %llu are enough", steps, slots, (unsigned long long)found,
                     wanted);
        rows++;
    }
    fclose(table);
    assert_true(rows > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recurrence), cmocka_unit_test(test_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
