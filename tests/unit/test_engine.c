/* links: tests/unit/fake_%.c tests/unit/network%.c shim/engine.c shim/submit.c shim/judge.c shim/refuse.c shim/frames.c
 * shim/frames_assign.c policy/assign.c shim/space.c shim/streams.c shim/store.c shim/swap.c shim/reside.c shim/hidden.c
 * shim/proof.c shim/learn.c shim/compose.c shim/annotate.c shim/replay.c shim/follow.c shim/away.c shim/leave.c
 * shim/proven.c shim/iterate.c shim/stats.c shim/launch.c shim/say.c  trace/period.c policy/%.c */
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
#define UNIT  (8u * FRAME)

struct scenario {
    const char *name;
    struct network_settings network;
    double fraction; /* cap = fraction x peak of the plain run */
    bool may_not_swap, is_strict, is_on_own_stream, is_code_unknown;
    enum fake_order order;
    uint64_t seed;
    uint32_t planned_from; /* from this iteration on: phase planned, nothing swapped; NETWORK_NEVER: not looked at */
    uint32_t must_reject;  /* so many kernels are rejected */
    bool is_still;         /* in the planned iterations but the first no driver memory call is made */
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
            REQUIRE(!scenario->is_still || seen.driver_calls[i] == seen.driver_calls[i - 1]);
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
    fake_open(&(struct fake_settings){.memory_bytes = fake_config.cap_bytes,
                                      .granularity = FRAME,
                                      .order = scenario->order,
                                      .seed = scenario->seed,
                                      .processors = scenario->processors});
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
    const struct engine_machine settings = {.stream = scenario->is_on_own_stream ? fake_stream() : CU_STREAM_LEGACY,
                                            .is_readable = !scenario->is_code_unknown,
                                            .cap_bytes = fake_config.cap_bytes,
                                            .ended_iteration = note_iteration};
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
#include "tests/unit/scenarios.def"
};

/* ---- another lane beside a plan ---- */

#define BESIDE_BYTES (3u * UNIT)

static struct {
    struct machine machine;
    const struct machine *engine;
    uint64_t launches;
} beside;

/* Now and then, while a plan is followed, a second stream takes memory that no plan knows of, and uses it. */
static bool launch_beside(uint32_t kernel, const void *arguments)
{
    const struct machine *engine = beside.engine;
    if (seen.count < 6 || ++beside.launches % 7 != 0) {
        return engine->launch(kernel, arguments);
    }
    uint64_t taken;
    struct network_arguments block = {.words = BESIDE_BYTES / 8};
    bool is_done = engine->lane(1) && engine->allocate(&taken, BESIDE_BYTES);
    block.pointers[0] = taken;
    return is_done && engine->clear(taken, BESIDE_BYTES) && engine->launch(NETWORK_activate, &block) &&
           engine->release(taken) && engine->lane(0) && engine->launch(kernel, arguments);
}

static void another_lane_needs_room(const void *argument)
{
    static struct network_result plain, capped;
    const struct scenario *scenario = argument;
    network_run(&scenario->network, plain_machine(), &plain);
    open_device(scenario, plain_peak_bytes());
    const struct engine_machine settings = {.stream = fake_stream(),
                                            .is_readable = true,
                                            .cap_bytes = fake_config.cap_bytes,
                                            .ended_iteration = note_iteration};
    beside.engine = engine_machine_open(&settings);
    beside.machine = *beside.engine;
    beside.machine.launch = launch_beside;
    network_run(&scenario->network, &beside.machine, &capped);
    REQUIRE(capped.is_complete);
    REQUIRE(seen.phases[5] == PHASE_PLANNED && seen.replayed[5] > 0);
    REQUIRE(network_equal(&plain, &capped));
    REQUIRE_EQUAL(proven_count().mismatched, 0);
    engine_finish();
}

static void test_another_lane_needs_room(void **unused)
{
    (void)unused;
    struct scenario scenario = {.network = {.blocks = 6, .iterations = 12, .unit_bytes = UNIT}, .fraction = 0.5};
    for (uint32_t i = 0; i < 12; i++) {
        scenario.order = i % 3;
        scenario.is_strict = i / 3 % 2;
        scenario.may_not_swap = i / 6;
        assert_child(another_lane_needs_room, &scenario);
    }
}

/* ---- what is told at the end ---- */

static uint32_t count_text(const char *text, const char *wanted)
{
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++) {
        count++;
    }
    return count;
}

static void stats_tell_what_happened(const void *argument)
{
    static char text[1 << 16];
    char path[] = "/tmp/reprise-unit-XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    fake_config.stats_path = path;
    run_scenario(argument);
    ssize_t bytes = read(file, text, sizeof text - 1);
    unlink(path);
    REQUIRE(bytes > 0);
    if (getenv("UNITS_LOG") != NULL) {
        fprintf(stderr, "%s\n", text);
    }
    REQUIRE_EQUAL(count_text(text, "\"outcome\": \"recompute\""), 1);
    REQUIRE_EQUAL(count_text(text, "\"index\":"), 9); /* the tenth was not seen to its end */
    REQUIRE_EQUAL(count_text(text, "\"phase\": \"probation\""), 2);
    REQUIRE_EQUAL(count_text(text, "\"phase\": \"planned\""), 5);
    REQUIRE_EQUAL(count_text(text, "\"driver_memory_calls\": 0, \"host_syncs\": 0}"), 5);
    REQUIRE_EQUAL(count_text(text, "\"swapped_out_bytes\": 0, \"swapped_in_bytes\": 0"), 7);
    REQUIRE_EQUAL(count_text(text, "\"rejected\": 0"), 1);
    REQUIRE_EQUAL(count_text(text, "\"dropped_records\": 0"), 1);
}

static void test_stats_tell_what_happened(void **unused)
{
    (void)unused;
    assert_child(stats_tell_what_happened, &scenarios[0]);
}

int main(void)
{
    enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };
    struct CMUnitTest tests[SCENARIOS + 2];
    for (size_t i = 0; i < SCENARIOS; i++) {
        tests[i] =
            (struct CMUnitTest){.name = scenarios[i].name, .test_func = test_scenario, .initial_state = &scenarios[i]};
    }
    tests[SCENARIOS] = (struct CMUnitTest)cmocka_unit_test(test_stats_tell_what_happened);
    tests[SCENARIOS + 1] = (struct CMUnitTest)cmocka_unit_test(test_another_lane_needs_room);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
