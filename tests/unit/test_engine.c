/* links: tests/unit/fake_%.c tests/unit/network%.c shim/engine.c shim/judge.c shim/refuse.c shim/frames.c shim/space.c shim/streams.c shim/store.c shim/swap.c shim/reside.c shim/hidden.c shim/proof.c shim/learn.c shim/compose.c shim/replay.c shim/follow.c shim/leave.c shim/proven.c shim/iterate.c shim/stats.c shim/launch.c shim/say.c shim/tracing.c trace/file.c trace/period.c policy/%.c */
#include "tests/unit/child.h"
#include "tests/unit/fake_driver.h"
#include "tests/unit/network.h"

#include "shim/engine.h"
#include "shim/follow.h"
#include "shim/frames.h"
#include "shim/learn.h"
#include "shim/proven.h"
#include "shim/space.h"
#include "shim/stats.h"
#include "shim/swap.h"

#define FRAME 8192u
#define UNIT (8u * FRAME)

struct scenario {
    const char *name;
    struct network_settings network;
    double fraction;            /* cap = fraction x peak of the plain run */
    bool may_not_swap, is_strict, is_on_own_stream, is_code_unknown;
    enum fake_order order;
    uint64_t seed;
    uint32_t planned_from;      /* from this iteration on: phase planned, nothing swapped; NETWORK_NEVER: not looked at */
    uint32_t must_reject;       /* so many kernels are rejected */
    int processors;
};

static struct {
    enum phase phases[64];
    uint64_t swapped[64], replayed[64], driver_calls[64];
    uint32_t count;
} seen;

static void note_iteration(uint32_t iteration)
{
    struct swap_counts swaps = swap_count();
    seen.phases[iteration] = stats_phase();
    seen.swapped[iteration] = swaps.out_bytes + swaps.in_bytes;
    seen.replayed[iteration] = follow_count().replayed;
    seen.driver_calls[iteration] = frames_count().driver_calls;
    seen.count = iteration + 1;
}

static void print_iterations(void)
{
    for (uint32_t i = 0; i < seen.count; i++) {
        fprintf(stderr, "  %u %s swapped %llu replayed %llu driver calls %llu\n", i, phase_name(seen.phases[i]),
                (unsigned long long)seen.swapped[i], (unsigned long long)seen.replayed[i],
                (unsigned long long)seen.driver_calls[i]);
    }
}

static void expect_planned(const struct scenario *scenario)
{
    for (uint32_t i = scenario->planned_from; i < seen.count; i++) {
        REQUIRE_EQUAL(seen.phases[i], PHASE_PLANNED);
        if (i > scenario->planned_from) {
            REQUIRE_EQUAL(seen.swapped[i], seen.swapped[i - 1]);
        }
    }
}

static void open_device(const struct scenario *scenario, uint64_t peak)
{
    fake_config.cap_bytes = (uint64_t)((double)peak * scenario->fraction) / FRAME * FRAME;
    fake_config.may_swap = !scenario->may_not_swap;
    fake_config.is_strict = scenario->is_strict;
    fake_config.seed = scenario->seed + 1;
    if (getenv("UNITS_LOG") != NULL) {
        fake_config.log_level = atoi(getenv("UNITS_LOG"));
    }
    fake_open(&(struct fake_settings){ .memory_bytes = fake_config.cap_bytes,
                                       .granularity = FRAME,
                                       .order = scenario->order,
                                       .seed = scenario->seed,
                                       .processors = scenario->processors });
}

static void run_scenario(const void *argument)
{
    static struct network_result plain, capped;
    struct scenario usual = *(const struct scenario *)argument;
    const struct scenario *scenario = &usual;
    usual.network.blocks = usual.network.blocks == 0 ? 6 : usual.network.blocks;
    usual.network.iterations = usual.network.iterations == 0 ? 10 : usual.network.iterations;
    usual.network.unit_bytes = usual.network.unit_bytes == 0 ? UNIT : usual.network.unit_bytes;
    network_run(&scenario->network, plain_machine(), &plain);
    REQUIRE(plain.is_complete);
    open_device(scenario, plain_peak_bytes());
    const struct engine_machine settings = { .stream = scenario->is_on_own_stream ? fake_stream() : CU_STREAM_LEGACY,
                                             .is_readable = !scenario->is_code_unknown,
                                             .cap_bytes = fake_config.cap_bytes,
                                             .ended_iteration = note_iteration };
    network_run(&scenario->network, engine_machine_open(&settings), &capped);
    if (getenv("UNITS_LOG") != NULL) {
        print_iterations();
    }
    REQUIRE(capped.is_complete);
    REQUIRE(network_equal(&plain, &capped));
    REQUIRE(learn_rejected() >= scenario->must_reject);
    expect_planned(scenario);
    engine_finish();
}

static void test_scenario(void **state)
{
    assert_child(run_scenario, *state);
}

#define USUAL .fraction = 0.5, .planned_from = 6

static struct scenario scenarios[] = {
    { "half", { 0 }, USUAL },
    { "half, code unknown", { 0 }, USUAL, .is_code_unknown = true },
    { "half, on a stream of its own", { 0 }, USUAL, .is_on_own_stream = true },
    { "half, strided kernels", { 0 }, USUAL, .processors = 80 },
    { "third", { 0 }, .fraction = 0.34, .planned_from = 6 },
    { "third, strict", { 0 }, .fraction = 0.34, .is_strict = true, .planned_from = 6 },
    { "third, no swap", { 0 }, .fraction = 0.34, .may_not_swap = true, .planned_from = 6 },
    { "half, late work", { 0 }, USUAL, .order = FAKE_LATE },
    { "half, late work, own stream", { 0 }, USUAL, .order = FAKE_LATE, .is_on_own_stream = true },
    { "third, late work, strict", { 0 }, .fraction = 0.34, .planned_from = 6, .order = FAKE_LATE, .is_strict = true },
    { "third, late, no swap, own stream", { 0 }, .fraction = 0.34, .planned_from = 6, .order = FAKE_LATE,
      .may_not_swap = true, .is_on_own_stream = true },
    { "half, mixed work", { 0 }, USUAL, .order = FAKE_MIXED, .seed = 3, .is_on_own_stream = true },
    { "units that are no whole number of frames", { .unit_bytes = UNIT - 1000 * 8 }, USUAL },
    { "noise", { .has_noise = true }, .fraction = 0.6, .planned_from = 8, .must_reject = 1 },
    { "noise, late work", { .has_noise = true }, .fraction = 0.6, .planned_from = 8, .must_reject = 1, .order = FAKE_LATE },
    { "pointer stored by a kernel", { .has_stored_pointer = true }, .fraction = 0.6, .planned_from = 6 },
    { "pointer stored, code unknown", { .has_stored_pointer = true }, .fraction = 0.6, .planned_from = 6,
      .is_code_unknown = true },
    { "pointer in a copy", { .has_copied_pointer = true }, .fraction = 0.6, .planned_from = 6 },
    { "both pointers, late work", { .has_copied_pointer = true, .has_stored_pointer = true }, .fraction = 0.6,
      .planned_from = 6, .order = FAKE_LATE },
    { "pointer to an activation", { .has_activation_pointer = true }, USUAL },
    { "pointer to an activation, third, strict, late", { .has_activation_pointer = true }, .fraction = 0.4,
      .planned_from = 6, .is_strict = true, .order = FAKE_LATE },
    { "pointer to an activation, code unknown", { .has_activation_pointer = true }, USUAL, .is_code_unknown = true },
    { "late pointer to an activation", { .late_pointer_at = 6, .iterations = 14 }, .fraction = 0.5, .planned_from = 11 },
    { "late pointer to an activation, third, strict", { .late_pointer_at = 6, .iterations = 14 }, .fraction = 0.34,
      .planned_from = 11, .is_strict = true, .order = FAKE_LATE },
    { "second stream always", { .side_from = 1, .iterations = 14 }, .fraction = 0.5, .planned_from = 6,
      .order = FAKE_LATE, .is_on_own_stream = true },
    { "second stream always, mixed", { .side_from = 1, .iterations = 14 }, .fraction = 0.5,
      .planned_from = 6, .order = FAKE_MIXED, .is_on_own_stream = true },
    { "second stream once", { .side_at = 6, .iterations = 16 }, .fraction = 0.5, .planned_from = 13, .order = FAKE_LATE,
      .is_on_own_stream = true },
    { "second stream once, strict, third", { .side_at = 6, .iterations = 16 }, .fraction = 0.34, .planned_from = 13,
      .order = FAKE_LATE, .is_on_own_stream = true, .is_strict = true },
    { "second stream later", { .side_from = 5, .iterations = 16 }, .fraction = 0.5, .planned_from = 12,
      .order = FAKE_MIXED, .is_on_own_stream = true },
    { "exception in forward, before there is a plan", { .exception_at = 1, .iterations = 12 }, .fraction = 0.5,
      .planned_from = 10 },
    { "exception in forward", { .exception_at = 5, .iterations = 14 }, .fraction = 0.5, .planned_from = 11 },
    { "exception in forward, in probation", { .exception_at = 3, .iterations = 14 }, .fraction = 0.5,
      .planned_from = 11 },
    { "exception in backward", { .backward_exception_at = 6, .iterations = 14 }, .fraction = 0.5,
      .planned_from = 11 },
    { "exception in backward, third, late", { .backward_exception_at = 6, .iterations = 14 }, .fraction = 0.34,
      .planned_from = 11, .order = FAKE_LATE },
    { "exception in backward, no swap, strict", { .backward_exception_at = 6, .iterations = 14 }, .fraction = 0.34,
      .planned_from = 11, .may_not_swap = true, .is_strict = true },
    { "evaluation once", { .evaluate_after = 6, .iterations = 14 }, .fraction = 0.5, .planned_from = 11 },
    { "evaluation after every third", { .evaluate_every = 3, .iterations = 18 }, .fraction = 0.5,
      .planned_from = NETWORK_NEVER },
    { "evaluation after every third, late", { .evaluate_every = 3, .iterations = 18 }, .fraction = 0.34,
      .planned_from = NETWORK_NEVER, .order = FAKE_LATE },
    { "another batch", { .small_batch_at = 6, .iterations = 14 }, .fraction = 0.5, .planned_from = 11 },
    { "another batch, no swap, late", { .small_batch_at = 6, .iterations = 14 }, .fraction = 0.34,
      .planned_from = 11, .order = FAKE_LATE, .may_not_swap = true },
    { "everything at once",
      { .has_noise = true, .has_copied_pointer = true, .has_stored_pointer = true, .exception_at = 9,
              .backward_exception_at = 11, .evaluate_every = 7, .small_batch_at = 13, .iterations = 24 },
      .fraction = 0.6, .planned_from = NETWORK_NEVER, .order = FAKE_MIXED, .seed = 5, .is_on_own_stream = true },
    { "everything at once, strict, late",
      { .has_noise = true, .has_copied_pointer = true, .has_stored_pointer = true, .exception_at = 9,
              .backward_exception_at = 11, .evaluate_every = 7, .small_batch_at = 13, .iterations = 24 },
      .fraction = 0.6, .planned_from = NETWORK_NEVER, .order = FAKE_LATE, .is_strict = true, .is_code_unknown = true },
};

int main(void)
{
    struct CMUnitTest tests[sizeof scenarios / sizeof scenarios[0]];
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        tests[i] = (struct CMUnitTest){ .name = scenarios[i].name, .test_func = test_scenario, .initial_state = &scenarios[i] };
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
