/* links: trace/period.c */
#include "trace/period.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* A training program on paper: it holds allocations and feeds operations, as the engine would see it. */
struct program {
    struct period *period;
    uint64_t live, demand;
    uint64_t changes; /* times that period_feed said the answer changed */
    bool has_state;   /* optimiser state is allocated */
};

static uint64_t live_word(uint64_t bytes)
{
    return (bytes * 0x9e3779b97f4a7c15u ^ bytes >> 7) * 0xc2b2ae3d27d4eb4fu;
}

static void hold(struct program *program, uint64_t bytes)
{
    program->demand += bytes;
    program->live += live_word(bytes);
}

static void release(struct program *program, uint64_t bytes)
{
    program->demand -= bytes;
    program->live -= live_word(bytes);
}

static void run(struct program *program, uint64_t signature)
{
    struct period_operation operation = {signature * 0x9e3779b97f4a7c15u, program->live, program->demand};
    program->changes += period_feed(program->period, &operation);
}

enum { INPUT = 1, FORWARD = 10, LOSS = 2, BACKWARD = 20, OPTIMISE = 3, EVALUATE = 40, FILL = 5, WARM = 60 };

static void forward(struct program *program, int layers, uint64_t bytes, bool keeps)
{
    for (int i = 0; i < layers; i++) {
        hold(program, bytes);
        run(program, FORWARD + bytes);
        hold(program, bytes / 2); /* a temporary */
        run(program, FORWARD + 1 + bytes);
        release(program, bytes / 2);
        run(program, FORWARD + 2 + bytes);
        if (!keeps)
            release(program, bytes);
    }
}

static void backward(struct program *program, int layers, uint64_t bytes)
{
    hold(program, bytes); /* gradient of the activation */
    for (int i = 0; i < layers; i++) {
        hold(program, bytes);
        run(program, BACKWARD + bytes);
        run(program, BACKWARD + 1 + bytes);
        release(program, bytes);
        release(program, bytes);
    }
    release(program, bytes);
}

static void optimise(struct program *program, int parameters, uint64_t state)
{
    if (state && !program->has_state) {
        for (int i = 0; i < parameters; i++) {
            hold(program, state);
            run(program, FILL);
        }
        program->has_state = true;
    }
    for (int i = 0; i < parameters; i++)
        run(program, OPTIMISE);
}

static void train(struct program *program, int layers, uint64_t bytes, int parameters, uint64_t state)
{
    hold(program, 64);
    run(program, INPUT);
    forward(program, layers, bytes, true);
    run(program, LOSS);
    backward(program, layers, bytes);
    optimise(program, parameters, state);
    release(program, 64);
    run(program, LOSS + 100); /* reads the loss */
}

static uint64_t train_length(int layers, int parameters)
{
    return 1 + (uint64_t)layers * 3 + 1 + (uint64_t)layers * 2 + (uint64_t)parameters + 1;
}

static struct program begin(uint32_t most_entries)
{
    struct program program = {.period = period_start(most_entries)};
    assert_non_null(program.period);
    hold(&program, 5000); /* weights */
    for (int i = 0; i < 30; i++)
        run(&program, FILL);
    return program;
}

static void assert_iteration(const struct program *program, uint64_t length, uint64_t first_boundary)
{
    struct period_answer answer = period_now(program->period);
    assert_int_equal(answer.length, length);
    assert_int_equal((answer.boundary - first_boundary) % length, 0);
    assert_true(answer.boundary + 2 * length > period_position(program->period));
    assert_true(answer.boundary < period_position(program->period));
}

static void test_plain_training(void **state)
{
    (void)state;
    struct program program = begin(0);
    uint64_t first = period_position(program.period);
    for (int i = 0; i < 3; i++)
        train(&program, 20, 1000, 12, 0);
    assert_iteration(&program, train_length(20, 12), first);
    assert_int_equal(program.changes, 1);
    for (int i = 0; i < 50; i++)
        train(&program, 20, 1000, 12, 0);
    assert_iteration(&program, train_length(20, 12), first);
    assert_int_equal(program.changes, 1);
    period_stop(program.period);
}

/* Optimiser state appears in the first iteration: the first two periods must not be taken as equal. */
static void test_lazy_optimiser_state(void **state)
{
    (void)state;
    struct program program = begin(0);
    train(&program, 20, 1000, 12, 300);
    uint64_t second = period_position(program.period);
    train(&program, 20, 1000, 12, 300);
    assert_int_equal(period_now(program.period).length, 0);
    train(&program, 20, 1000, 12, 300);
    train(&program, 20, 1000, 12, 300);
    assert_iteration(&program, train_length(20, 12), second);
    assert_int_equal(program.changes, 1);
    period_stop(program.period);
}

static void test_identical_layers_are_no_iteration(void **state)
{
    (void)state;
    struct program program = begin(0);
    forward(&program, 500, 1000, true);
    backward(&program, 500, 1000);
    assert_int_equal(program.changes, 0);
    period_stop(program.period);
}

static void test_optimiser_loop_is_no_iteration(void **state)
{
    (void)state;
    struct program program = begin(0);
    train(&program, 20, 1000, 5000, 10);
    assert_int_equal(program.changes, 0);
    uint64_t second = period_position(program.period);
    train(&program, 20, 1000, 5000, 10);
    train(&program, 20, 1000, 5000, 10);
    train(&program, 20, 1000, 5000, 10);
    assert_iteration(&program, train_length(20, 5000), second);
    period_stop(program.period);
}

static void evaluate(struct program *program, int layers, uint64_t bytes)
{
    hold(program, 64);
    run(program, INPUT);
    forward(program, layers, bytes, false);
    release(program, 64);
    run(program, EVALUATE);
}

/* The group of iterations and evaluation is a true period as well; the shorter one is wanted. */
static void test_evaluation_now_and_then(void **state)
{
    (void)state;
    struct program program = begin(0);
    uint64_t length = train_length(20, 12), found = 0;
    for (int i = 1; i <= 30; i++) {
        uint64_t first = period_position(program.period);
        train(&program, 20, 1000, 12, 200);
        struct period_answer answer = period_now(program.period);
        assert_true(answer.length == 0 || answer.length == length);
        found += answer.length == length;
        if (answer.length == length)
            assert_int_equal((first - answer.boundary) % length, 0);
        if (i % 3 == 0)
            evaluate(&program, 20, 1000);
    }
    assert_true(found > 10);
    period_stop(program.period);
}

/* Evaluations at ever other distances: only the single iteration is a period. */
static void test_evaluation_at_random(void **state)
{
    (void)state;
    struct program program = begin(0);
    uint64_t length = train_length(20, 12), found = 0, trained = 0;
    for (int group = 3; group < 12; group++) {
        for (int i = 0; i < group; i++, trained++) {
            train(&program, 20, 1000, 12, 200);
            struct period_answer answer = period_now(program.period);
            found += answer.length == length;
            assert_true(answer.length == 0 || answer.length == length);
        }
        evaluate(&program, 20, 1000);
        assert_int_equal(period_now(program.period).length, 0);
    }
    assert_true(found > trained / 2);
    period_stop(program.period);
}

/* Training and evaluation by turns: only both together are a period. */
static void test_evaluation_every_time(void **state)
{
    (void)state;
    struct program program = begin(0);
    for (int i = 0; i < 5; i++) {
        train(&program, 20, 1000, 12, 200);
        evaluate(&program, 20, 1000);
    }
    assert_int_equal(period_now(program.period).length, train_length(20, 12) + 62);
    period_stop(program.period);
}

static void test_other_batch_now_and_then(void **state)
{
    (void)state;
    struct program program = begin(0);
    uint64_t length = train_length(20, 12), found = 0;
    for (int i = 1; i <= 40; i++) {
        train(&program, 20, i % 5 ? 1000 : 700, 12, 200);
        struct period_answer answer = period_now(program.period);
        assert_true(answer.length == 0 || answer.length == length);
        found += answer.length == length;
    }
    assert_true(found > 15);
    period_stop(program.period);
}

/* A validation run before training: whatever it is taken for, the training iteration is found after it. */
static void test_warm_up_and_validation_first(void **state)
{
    (void)state;
    struct program program = begin(0);
    for (int i = 0; i < 5; i++)
        evaluate(&program, 12, 300);
    for (int i = 0; i < 7; i++)
        run(&program, WARM + (uint64_t)i);
    train(&program, 20, 1000, 12, 200);
    uint64_t second = period_position(program.period);
    for (int i = 0; i < 3; i++)
        train(&program, 20, 1000, 12, 200);
    assert_iteration(&program, train_length(20, 12), second);
    period_stop(program.period);
}

/* Gradients are accumulated over four micro-batches: either they or the whole step may be the period. */
static void test_micro_batches(void **state)
{
    (void)state;
    struct program program = begin(0);
    hold(&program, 5000); /* gradients, held throughout */
    uint64_t micro = 2 + 20 * 5, step = 4 * micro + 12, found_micro = 0, found_step = 0;
    for (int i = 0; i < 20; i++) {
        for (int batch = 0; batch < 4; batch++) {
            hold(&program, 64);
            run(&program, INPUT);
            forward(&program, 20, 1000, true);
            backward(&program, 20, 1000);
            release(&program, 64);
            run(&program, LOSS);
            struct period_answer answer = period_now(program.period);
            found_micro += answer.length == micro;
            found_step += answer.length == step;
            assert_true(answer.length == 0 || answer.length == micro || answer.length == step);
        }
        optimise(&program, 12, 0);
    }
    assert_true(found_micro + found_step > 30);
    period_stop(program.period);
}

/* Everything is allocated once: demand tells nothing, so the repetition must be long. */
static void test_flat_demand(void **state)
{
    (void)state;
    struct program program = begin(0);
    uint64_t length = 90;
    for (uint64_t i = 0; i < 2 * length; i++)
        run(&program, 1000 + i % length);
    assert_int_equal(period_now(program.period).length, 0);
    for (uint64_t i = 0; i < 3 * length; i++)
        run(&program, 1000 + i % length);
    assert_int_equal(period_now(program.period).length, length);
    period_stop(program.period);
}

static void test_leaving_the_period(void **state)
{
    (void)state;
    struct program program = begin(0);
    for (int i = 0; i < 4; i++)
        train(&program, 20, 1000, 12, 0);
    assert_int_equal(program.changes, 1);
    run(&program, 777);
    assert_int_equal(program.changes, 2);
    assert_int_equal(period_now(program.period).length, 0);
    period_stop(program.period);
}

static void test_rejected_period_is_not_proposed_again(void **state)
{
    (void)state;
    struct program program = begin(0);
    uint64_t length = train_length(20, 12);
    for (int i = 0; i < 4; i++)
        train(&program, 20, 1000, 12, 0);
    assert_int_equal(period_now(program.period).length, length);
    period_reject(program.period, 6 * length);
    for (int i = 0; i < 5; i++) {
        train(&program, 20, 1000, 12, 0);
        assert_int_not_equal(period_now(program.period).length, length);
    }
    for (int i = 0; i < 3; i++)
        train(&program, 20, 1000, 12, 0);
    assert_int_equal(period_now(program.period).length % length, 0);
    assert_int_not_equal(period_now(program.period).length, 0);
    period_stop(program.period);
}

/* The boundary is the same whenever the search happens to succeed. */
static void test_boundary_is_canonical(void **state)
{
    (void)state;
    struct program program = begin(0);
    uint64_t first = period_position(program.period), length = train_length(20, 12);
    for (int i = 0; i < 3; i++)
        train(&program, 20, 1000, 12, 0);
    for (uint64_t cut = 1; cut < 40; cut++) {
        period_reject(program.period, cut * 7);
        for (int i = 0; i < 4; i++)
            train(&program, 20, 1000, 12, 0);
        struct period_answer answer = period_now(program.period);
        assert_int_not_equal(answer.length, 0);
        assert_int_equal((answer.boundary - first) % length, 0);
    }
    period_stop(program.period);
}

static void test_bounded_history(void **state)
{
    (void)state;
    struct program program = begin(1000);
    uint64_t first = period_position(program.period), length = train_length(20, 12);
    for (int i = 0; i < 200; i++)
        train(&program, 20, 1000, 12, 0);
    assert_iteration(&program, length, first);
    assert_int_equal(program.changes, 1);
    for (int i = 0; i < 50; i++) { /* longer than half the history: cannot be found, must not crash */
        train(&program, 180, 1000, 12, 0);
        assert_int_equal(period_now(program.period).length, 0);
    }
    period_stop(program.period);
}

/* While a period goes on nothing is looked for; what it fed must be found all the same when it ends: at once, with
 * other operations in between, also when the history was cut meanwhile. */
static void test_found_again_after_a_long_period(void **state)
{
    (void)state;
    for (int iterations = 4; iterations < 40; iterations++) {
        struct program program = begin(1000);
        uint64_t first = period_position(program.period), length = train_length(20, 12);
        for (int i = 0; i < iterations; i++)
            train(&program, 20, 1000, 12, 0);
        assert_iteration(&program, length, first);
        run(&program, 777);
        assert_int_equal(period_now(program.period).length, 0);
        train(&program, 20, 1000, 12, 0);
        train(&program, 20, 1000, 12, 0);
        assert_iteration(&program, length, first + 1);
        period_stop(program.period);
    }
}

static double seconds_for(int parameters, int iterations)
{
    struct timespec begin_time, end_time;
    struct program program = begin(0);
    clock_gettime(CLOCK_MONOTONIC, &begin_time);
    for (int i = 0; i < iterations; i++) {
        train(&program, 20, 1000, parameters, 0);
        run(&program, 900 + (uint64_t)i * 1000003); /* never the same twice: the search never succeeds */
    }
    clock_gettime(CLOCK_MONOTONIC, &end_time);
    assert_int_equal(program.changes, 0);
    period_stop(program.period);
    return (double)(end_time.tv_sec - begin_time.tv_sec) + 1e-9 * (double)(end_time.tv_nsec - begin_time.tv_nsec);
}

/* The same number of operations in long and in short runs of equal ones takes about the same time. */
static void test_long_runs_cost_no_more(void **state)
{
    (void)state;
    double in_short_runs = seconds_for(100, 2000), in_long_runs = seconds_for(100000, 4);
    print_message("per 400,000 operations: short runs %.3f s, long runs %.3f s\n", in_short_runs, in_long_runs);
    assert_true(in_long_runs < 10 * in_short_runs + 0.1);
}

/* Random sequences with planted repetitions: whatever is answered is a true repetition with equal live sets. */
static void test_answers_are_true(void **state)
{
    (void)state;
    enum { MOST = 20000 };
    struct period_operation *fed = calloc(MOST, sizeof *fed);
    uint64_t random = 1, answers = 0;
    for (int round = 0; round < 20; round++) {
        struct period *period = period_start(0);
        uint64_t count = 0;
        while (count < MOST) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint64_t back = count ? random >> 40 & 255 : 0, run_length = 1 + (random >> 33 & 127);
            bool repeats = (random >> 60 & 3) != 0 && back > 0 && back <= count;
            for (uint64_t i = 0; i < run_length && count < MOST; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                struct period_operation next = {random >> 62, random >> 61 & 1, 1000 + (random >> 56)};
                fed[count] = repeats ? fed[count - back] : next;
                period_feed(period, &fed[count++]);
                struct period_answer answer = period_now(period);
                if (!answer.length || answer.found_at != count - 1)
                    continue;
                uint64_t now = count - 1;
                answers++;
                assert_true(2 * answer.length <= now);
                assert_int_equal(fed[now].live, fed[now - answer.length].live);
                assert_int_equal(fed[now].live, fed[now - 2 * answer.length].live);
                for (uint64_t k = 0; k < answer.length; k++)
                    assert_int_equal(fed[now - k].signature, fed[now - k - answer.length].signature);
                assert_true(answer.boundary <= now && answer.boundary + answer.length > now);
            }
        }
        period_stop(period);
    }
    free(fed);
    assert_true(answers > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_training),
        cmocka_unit_test(test_lazy_optimiser_state),
        cmocka_unit_test(test_identical_layers_are_no_iteration),
        cmocka_unit_test(test_optimiser_loop_is_no_iteration),
        cmocka_unit_test(test_evaluation_now_and_then),
        cmocka_unit_test(test_evaluation_at_random),
        cmocka_unit_test(test_evaluation_every_time),
        cmocka_unit_test(test_other_batch_now_and_then),
        cmocka_unit_test(test_warm_up_and_validation_first),
        cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_flat_demand),
        cmocka_unit_test(test_leaving_the_period),
        cmocka_unit_test(test_rejected_period_is_not_proposed_again),
        cmocka_unit_test(test_boundary_is_canonical),
        cmocka_unit_test(test_bounded_history),
        cmocka_unit_test(test_found_again_after_a_long_period),
        cmocka_unit_test(test_long_runs_cost_no_more),
        cmocka_unit_test(test_answers_are_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
