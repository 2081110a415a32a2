/* links: policy/assign.c */
#include "policy/assign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST 4096

static uint32_t most_at_once(const struct assign_span *spans, uint32_t count)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t now = 0;
        for (uint32_t j = 0; j < count; j++) {
            now += spans[j].begin <= spans[i].begin && spans[i].begin < spans[j].end;
        }
        most = now > most ? now : most;
    }
    return most;
}

static void check_disjoint(const struct assign_span *spans, uint32_t count, const uint32_t *frame_of)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            bool overlap = spans[i].begin < spans[j].end && spans[j].begin < spans[i].end;
            if (overlap && spans[i].page != spans[j].page && frame_of[spans[i].page] != ASSIGN_NONE) {
                assert_int_not_equal(frame_of[spans[i].page], frame_of[spans[j].page]);
            }
        }
    }
}

/* One span per page: as many frames as are in use at once are enough, for any set of spans. */
static void test_single_spans_need_no_more_than_the_most_at_once(void **context)
{
    (void)context;
    srand(7);
    for (int round = 0; round < 50; round++) {
        struct assign_span spans[200];
        uint32_t frame_of[200];
        for (uint32_t i = 0; i < 200; i++) {
            uint32_t begin = (uint32_t)rand() % 500;
            spans[i] = (struct assign_span){i, begin, begin + 1 + (uint32_t)rand() % 60};
        }
        struct assign_problem problem = {
            .spans = spans, .span_count = 200, .page_count = 200, .frame_count = most_at_once(spans, 200)};
        assert_int_equal(assign_frames(&problem, frame_of), 200);
        check_disjoint(spans, 200, frame_of);
    }
}

/* A chain with segments: each page lives shortly going forward and again going back. */
static void test_a_checkpointed_chain_is_assigned_whole(void **context)
{
    (void)context;
    enum { LAYERS = 64, SEGMENT = 8 };
    struct assign_span spans[2 * LAYERS];
    uint32_t frame_of[LAYERS], count = 0;
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        uint32_t segment = layer / SEGMENT, back = 2 * LAYERS + (LAYERS / SEGMENT - 1 - segment) * 3 * SEGMENT;
        uint32_t rebuilt = back + layer % SEGMENT, done = back + SEGMENT + (SEGMENT - layer % SEGMENT);
        if (layer % SEGMENT == SEGMENT - 1) {
            spans[count++] = (struct assign_span){layer, layer, done};
        } else {
            spans[count++] = (struct assign_span){layer, layer, layer + 2};
            spans[count++] = (struct assign_span){layer, rebuilt, done};
        }
    }
    struct assign_problem problem = {
        .spans = spans, .span_count = count, .page_count = LAYERS, .frame_count = most_at_once(spans, count) + 1};
    assert_int_equal(assign_frames(&problem, frame_of), LAYERS);
    check_disjoint(spans, count, frame_of);
}

static void test_preference_is_kept_where_it_is_free(void **context)
{
    (void)context;
    const struct assign_span spans[] = {{0, 0, 10}, {1, 5, 15}, {2, 10, 20}};
    const uint32_t preferred[] = {3, 3, 3};
    uint32_t frame_of[3];
    struct assign_problem problem = {
        .spans = spans, .span_count = 3, .page_count = 3, .frame_count = 4, .preferred = preferred};
    assert_int_equal(assign_frames(&problem, frame_of), 3);
    assert_int_equal(frame_of[2], 3);
    assert_int_equal(frame_of[0], 3);
    assert_int_equal(frame_of[1], 0);
}

static void test_too_few_frames_leave_pages_without(void **context)
{
    (void)context;
    const struct assign_span spans[] = {{0, 0, 10}, {1, 5, 15}, {2, 6, 20}};
    uint32_t frame_of[3];
    struct assign_problem problem = {.spans = spans, .span_count = 3, .page_count = 3, .frame_count = 2};
    assert_int_equal(assign_frames(&problem, frame_of), 2);
    check_disjoint(spans, 3, frame_of);
    problem.frame_count = 0;
    assert_int_equal(assign_frames(&problem, frame_of), 0);
}

static void test_effort_bounds_the_search(void **context)
{
    (void)context;
    static struct assign_span spans[MOST];
    static uint32_t frame_of[MOST];
    for (uint32_t i = 0; i < MOST; i++) {
        spans[i] = (struct assign_span){i, 0, 10};
    }
    struct assign_problem problem = {
        .spans = spans, .span_count = MOST, .page_count = MOST, .frame_count = MOST, .effort = 1000};
    uint32_t assigned = assign_frames(&problem, frame_of);
    assert_true(assigned > 0 && assigned < MOST);
    check_disjoint(spans, 64, frame_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_spans_need_no_more_than_the_most_at_once),
        cmocka_unit_test(test_a_checkpointed_chain_is_assigned_whole),
        cmocka_unit_test(test_preference_is_kept_where_it_is_free),
        cmocka_unit_test(test_too_few_frames_leave_pages_without),
        cmocka_unit_test(test_effort_bounds_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
