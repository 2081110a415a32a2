/* links: tests/unit/fake_%.c tests/unit/network%.c shim/engine.c shim/submit.c shim/judge.c shim/refuse.c shim/frames.c
 * shim/frames_assign.c policy/assign.c shim/space.c shim/streams.c shim/store.c shim/swap.c shim/reside.c shim/hidden.c
 * shim/proof.c shim/learn.c shim/compose.c shim/annotate.c shim/replay.c shim/follow.c shim/away.c shim/leave.c
 * shim/proven.c shim/iterate.c shim/stats.c shim/launch.c shim/say.c  trace/period.c policy/%.c */
/* What the hooks may count on: engine.h, call by call. */
#include "tests/unit/engine_calls.h"

#include "shim/follow.h"
#include "shim/frames.h"
#include "shim/space.h"
#include "shim/stats.h"
#include "shim/swap.h"

/* ---- allocations ---- */

static void before_the_first_allocation_nothing_is_ours(const void *argument)
{
    (void)argument;
    open_device(64, 32, FAKE_AT_ONCE);
    CUdeviceptr begin = 1, end = 1, base;
    size_t bytes;
    bool is_ours = true;
    engine_arena(&begin, &end);
    REQUIRE(engine_is_on());
    REQUIRE_EQUAL(begin, 0);
    REQUIRE_EQUAL(end, 0);
    REQUIRE(!engine_owns(0) && !engine_owns(4096) && !engine_find(4096, &base, &bytes));
    REQUIRE_EQUAL(engine_free(4096, NULL, &is_ours), CUDA_SUCCESS);
    REQUIRE(!is_ours);
    REQUIRE_EQUAL(engine_pin(4096, "a test"), CUDA_SUCCESS);
    REQUIRE_EQUAL(engine_scan(&begin, 8, 0), CUDA_SUCCESS);
    REQUIRE_EQUAL(engine_after_sync(CUDA_ERROR_NOT_READY), CUDA_ERROR_NOT_READY);
    engine_refund(FRAME);
    REQUIRE_EQUAL(fake_count().calls, 0);
}
engine_test(before_the_first_allocation_nothing_is_ours)

    static void it_is_off_where_nothing_is_wanted(const void *argument)
{
    (void)argument;
    fake_config.cap_bytes = 0;
    REQUIRE(!engine_is_on());
    fake_config.stats_path = "x";
    REQUIRE(engine_is_on());
    fake_config.stats_path = NULL;
    fake_config.trace_path = "x";
    REQUIRE(engine_is_on());
}
engine_test(it_is_off_where_nothing_is_wanted)

    static void allocations_are_found_by_any_address(const void *argument)
{
    (void)argument;
    open_device(64, 32, FAKE_AT_ONCE);
    CUdeviceptr small = allocate(100), large = allocate(LARGE + 5), base = 0;
    size_t bytes = 0;
    REQUIRE(engine_owns(small) && engine_owns(large));
    REQUIRE(engine_find(large + LARGE, &base, &bytes));
    REQUIRE_EQUAL(base, large);
    REQUIRE_EQUAL(bytes, LARGE + 5);
    REQUIRE(engine_find(small + 99, &base, &bytes));
    REQUIRE_EQUAL(base, small);
    REQUIRE_EQUAL(bytes, 100);
    give_up(large);
    REQUIRE(!engine_find(large, &base, &bytes));
    REQUIRE(engine_owns(large)); /* the arena is ours for ever */
}
engine_test(allocations_are_found_by_any_address)

    static void wrong_frees_are_refused(const void *argument)
{
    (void)argument;
    open_device(64, 32, FAKE_AT_ONCE);
    CUdeviceptr large = allocate(LARGE), small = allocate(1000);
    bool is_ours = false;
    REQUIRE_EQUAL(engine_free(large + 512, NULL, &is_ours), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(is_ours);
    REQUIRE_EQUAL(engine_free(small + 512, NULL, &is_ours), CUDA_ERROR_INVALID_VALUE);
    give_up(large);
    REQUIRE_EQUAL(engine_free(large, NULL, &is_ours), CUDA_ERROR_INVALID_VALUE);
    give_up(small);
    REQUIRE_EQUAL(engine_free(small, NULL, &is_ours), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(frames_is_valid() && space_is_valid());
}
engine_test(wrong_frees_are_refused)

    static void nothing_is_left_to_the_driver_to_refuse(const void *argument)
{
    (void)argument;
    open_device(64, 32, FAKE_AT_ONCE);
    CUdeviceptr address = 0;
    allocate(100);
    REQUIRE_EQUAL(engine_allocate(&address, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}
engine_test(nothing_is_left_to_the_driver_to_refuse)

    static void more_than_the_cap_is_out_of_memory(const void *argument)
{
    (void)argument;
    open_device(64, 32, FAKE_AT_ONCE);
    CUdeviceptr address = 77;
    allocate(100);
    REQUIRE_EQUAL(engine_allocate(&address, 33 * FRAME, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE_EQUAL(engine_allocate(&address, SIZE_MAX / 2, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE_EQUAL(engine_allocate(&address, SIZE_MAX, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(frames_is_valid() && space_is_valid());
    fill(allocate(LARGE), 5);
}
engine_test(more_than_the_cap_is_out_of_memory)

    static void much_more_can_be_held_than_fits(const void *argument)
{
    (void)argument;
    open_device(40, 40, FAKE_LATE);
    CUdeviceptr list[30];
    fill_many(list, 30); /* 120 frames */
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 30; i++) {
            REQUIRE(is_filled(list[i * 7 % 30], i * 7 % 30 + 1));
        }
    }
    REQUIRE(swap_count().out_bytes > 20 * LARGE);
    REQUIRE_EQUAL(stats_phase(), PHASE_RECORDING);
}
engine_test(much_more_can_be_held_than_fits)

    static void small_ones_alone_fill_the_cap_and_no_more(const void *argument)
{
    (void)argument;
    open_device(40, 20, FAKE_AT_ONCE);
    CUdeviceptr address;
    CUresult result;
    uint32_t count = 0;
    while ((result = engine_allocate(&address, 8000, NULL)) == CUDA_SUCCESS) {
        REQUIRE(++count < 100);
    }
    REQUIRE_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(count > 20);
    REQUIRE(fake_count().peak_bytes <= 20 * FRAME);
    REQUIRE(frames_is_valid() && space_is_valid());
}
engine_test(small_ones_alone_fill_the_cap_and_no_more)

    /* The first slab frame is needed when others hold all: they make room. */
    static void a_small_one_makes_room(const void *argument)
{
    (void)argument;
    open_device(40, 20, FAKE_LATE);
    CUdeviceptr list[8];
    fill_many(list, 8);
    while (frames_available() > 0) {
        REQUIRE(machine->clear(allocate(FRAME), FRAME));
    }
    for (uint32_t i = 0; i < 12; i++) {
        allocate(8000);
    }
    REQUIRE(is_filled(list[0], 1));
}
engine_test(a_small_one_makes_room)

    /* ---- operations ---- */

    static void an_operation_that_does_not_fit_is_refused(const void *argument)
{
    (void)argument;
    open_device(64, 20, FAKE_LATE);
    CUdeviceptr in = allocate(12 * FRAME), out = allocate(12 * FRAME), other = allocate(LARGE);
    fill(in, 3);
    fill(other, 4);
    struct network_arguments arguments = {.pointers = {out, in, other}, .words = 10};
    REQUIRE(!machine->launch(NETWORK_linear_forward, &arguments));
    REQUIRE_EQUAL(engine_machine_error(), CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(is_filled(in, 3) && is_filled(other, 4)); /* nothing is lost, and it goes on */
    give_up(out);
    REQUIRE(activate(in));
}
engine_test(an_operation_that_does_not_fit_is_refused)

    /* The driver refuses the program's launch: the program is told, and nothing was done. */
    static void the_driver_s_refusal_reaches_the_program(const void *argument)
{
    (void)argument;
    open_device(64, 40, FAKE_AT_ONCE);
    CUdeviceptr address = allocate(LARGE);
    fill(address, 3);
    struct network_arguments arguments = {.pointers = {address}, .words = WORDS};
    fake_fail(1, false); /* resident already: the launch is the only call */
    REQUIRE(!machine->launch(NETWORK_activate, &arguments));
    REQUIRE(fake_has_failed());
    REQUIRE_EQUAL(engine_machine_error(), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    REQUIRE(is_filled(address, 3));
}
engine_test(the_driver_s_refusal_reaches_the_program)

    static void captured_work_pins_what_it_touches(const void *argument)
{
    (void)argument;
    open_device(40, 40, FAKE_LATE);
    CUdeviceptr list[16], kept = allocate(LARGE);
    fill(kept, 50);
    fill_many(list, 12);
    engine_machine_present(true, false);
    REQUIRE(activate(kept));
    engine_machine_present(false, false);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 12; i++) {
            REQUIRE(is_filled(list[i], i + 1));
            REQUIRE_EQUAL(fake_mapped_pages(kept, LARGE), LARGE / FRAME);
        }
    }
}
engine_test(captured_work_pins_what_it_touches)

    static void unreadable_work_needs_everything(const void *argument)
{
    (void)argument;
    open_device(64, 40, FAKE_LATE);
    CUdeviceptr list[6];
    fill_many(list, 6);
    engine_machine_present(false, true);
    REQUIRE(machine->launch(NETWORK_activate, &(struct network_arguments){.pointers = {list[0]}, .words = 0}));
    engine_machine_present(false, false);
    for (uint32_t i = 0; i < 6; i++) {
        REQUIRE_EQUAL(fake_mapped_pages(list[i], LARGE), LARGE / FRAME);
    }
    CUdeviceptr more = allocate(LARGE);
    fill(more, 9);
    for (uint32_t i = 0; i < 6; i++) { /* and for ever */
        REQUIRE_EQUAL(fake_mapped_pages(list[i], LARGE), LARGE / FRAME);
        REQUIRE(is_filled(list[i], i + 1));
    }
}
engine_test(unreadable_work_needs_everything)

    static void unreadable_work_that_cannot_have_everything_is_refused(const void *argument)
{
    (void)argument;
    open_device(40, 40, FAKE_LATE);
    CUdeviceptr list[16];
    fill_many(list, 16);
    engine_machine_present(false, true);
    REQUIRE(!activate(list[0]));
    REQUIRE_EQUAL(engine_machine_error(), CUDA_ERROR_OUT_OF_MEMORY);
}
engine_test(unreadable_work_that_cannot_have_everything_is_refused)

    /* ---- streams ---- */

    /* Two streams of the program's, ordered by its own events, on far more than fits. */
    static void two_streams_keep_their_order(const void *argument)
{
    open_device(40, 40, *(const enum fake_order *)argument);
    CUstream streams[2] = {fake_stream(), fake_stream()};
    CUevent events[2];
    CUdeviceptr list[20];
    engine_machine_use_stream(streams[0]);
    fill_many(list, 20);
    REQUIRE_EQUAL(driver.cuEventCreate(&events[0], 0), CUDA_SUCCESS);
    REQUIRE_EQUAL(driver.cuEventCreate(&events[1], 0), CUDA_SUCCESS);
    uint64_t random = 88;
    for (uint32_t step = 0; step < 300; step++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t from = (uint32_t)(random >> 40) % 20, to = (uint32_t)(random >> 50) % 20, lane = step % 2;
        if (from != to) { /* list[to] = list[from] ^ all bits of list[from]: a copy */
            struct network_arguments arguments = {.pointers = {list[to], list[from], list[from]}, .words = WORDS};
            REQUIRE(machine->launch(NETWORK_dropout_backward, &arguments));
        }
        REQUIRE_EQUAL(driver.cuEventRecord(events[lane], streams[lane]), CUDA_SUCCESS);
        REQUIRE_EQUAL(driver.cuStreamWaitEvent(streams[1 - lane], events[lane], 0), CUDA_SUCCESS);
        engine_machine_use_stream(streams[1 - lane]);
    }
    /* the same on paper */
    uint64_t values[20];
    random = 88;
    for (uint32_t i = 0; i < 20; i++) {
        values[i] = i + 1;
    }
    for (uint32_t step = 0; step < 300; step++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        values[(uint32_t)(random >> 50) % 20] = values[(uint32_t)(random >> 40) % 20];
    }
    for (uint32_t i = 0; i < 20; i++) {
        REQUIRE(is_filled(list[i], values[i]));
    }
}

static void test_two_streams_keep_their_order(void **unused)
{
    (void)unused;
    for (enum fake_order order = FAKE_AT_ONCE; order <= FAKE_MIXED; order++) {
        assert_child(two_streams_keep_their_order, &order);
    }
}

/* Memory freed while one stream still uses it goes to another stream's allocation. */
static void freed_memory_is_used_again_in_order(const void *argument)
{
    (void)argument;
    open_device(40, 40, FAKE_LATE);
    CUstream a = fake_stream(), b = fake_stream();
    for (uint32_t round = 0; round < 40; round++) {
        CUdeviceptr first = allocate(LARGE);
        engine_machine_use_stream(a);
        fill(first, 1);
        for (uint32_t i = 0; i < 5; i++) {
            REQUIRE(activate(first));
        }
        give_up(first);
        CUdeviceptr second = allocate(LARGE);
        engine_machine_use_stream(b);
        fill(second, round);
        REQUIRE(is_filled(second, round));
        driver.cuCtxSynchronize();
        REQUIRE(is_filled(second, round));
        give_up(second);
    }
}
engine_test(freed_memory_is_used_again_in_order)

    static void a_destroyed_stream_is_forgotten(const void *argument)
{
    (void)argument;
    open_device(40, 40, FAKE_LATE);
    CUdeviceptr list[12];
    CUstream stream = fake_stream();
    engine_machine_use_stream(stream);
    fill_many(list, 12);
    engine_stream_destroyed(stream);
    REQUIRE_EQUAL(fake_count().queued, 0);
    engine_machine_use_stream(fake_stream());
    for (uint32_t i = 0; i < 12; i++) {
        REQUIRE(is_filled(list[i], i + 1));
    }
}
engine_test(a_destroyed_stream_is_forgotten)

    /* ---- pins, charges, information ---- */

    static void pinned_memory_comes_in_and_stays(const void *argument)
{
    (void)argument;
    open_device(40, 40, FAKE_LATE);
    CUdeviceptr list[14];
    fill_many(list, 14); /* list[0] has been evicted by now */
    REQUIRE(!space_place(space_get(space_find(list[0]))->home)->is_resident);
    REQUIRE_EQUAL(engine_pin(list[0] + 100, "a test"), CUDA_SUCCESS);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 14; i++) {
            REQUIRE(is_filled(list[i], i + 1));
            REQUIRE(space_place(space_get(space_find(list[0]))->home)->is_resident);
        }
    }
    give_up(list[0]); /* the pin ends with the allocation */
    REQUIRE_EQUAL(space_unmovable_frames(), space_slab_frames());
}
engine_test(pinned_memory_comes_in_and_stays)

    static void too_many_pins_are_out_of_memory(const void *argument)
{
    (void)argument;
    open_device(40, 40, FAKE_AT_ONCE);
    CUdeviceptr list[14];
    CUresult result = CUDA_SUCCESS;
    fill_many(list, 14);
    uint32_t pinned = 0;
    while (pinned < 14 && (result = engine_pin(list[pinned], "a test")) == CUDA_SUCCESS) {
        pinned++;
    }
    REQUIRE_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(pinned >= 7 && pinned <= 10);
    for (uint32_t i = 0; i < pinned; i++) {
        give_up(list[i]);
    }
    REQUIRE(is_filled(list[pinned], pinned + 1));
}
engine_test(too_many_pins_are_out_of_memory)

    static void charges_evict_and_are_refused_at_the_end(const void *argument)
{
    (void)argument;
    open_device(40, 40, FAKE_LATE);
    CUdeviceptr list[12];
    fill_many(list, 12);
    REQUIRE_EQUAL(engine_charge(10 * FRAME + 1, "a test"), CUDA_SUCCESS);
    REQUIRE_EQUAL(frames_count().charged_frames, 11);
    REQUIRE(fake_count().frames + 11 <= 40);
    REQUIRE_EQUAL(engine_charge(40 * FRAME, "a test"), CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE_EQUAL(frames_count().charged_frames, 11);
    for (uint32_t i = 0; i < 12; i++) {
        REQUIRE(is_filled(list[i], i + 1));
        REQUIRE(fake_count().frames + 11 <= 40);
    }
    engine_refund(10 * FRAME + 1);
    REQUIRE_EQUAL(frames_count().charged_frames, 0);
}
engine_test(charges_evict_and_are_refused_at_the_end)

    static void variables_share_frames(const void *argument)
{
    (void)argument;
    open_device(40, 40, FAKE_LATE);
    REQUIRE_EQUAL(engine_charge_variables(FRAME / 2), CUDA_SUCCESS); /* the engine opens here */
    allocate(LARGE);
    uint32_t before = frames_count().charged_frames;
    REQUIRE(before >= 1);
    REQUIRE_EQUAL(engine_charge_variables(FRAME / 2), CUDA_SUCCESS);
    REQUIRE_EQUAL(frames_count().charged_frames, before);
    REQUIRE_EQUAL(engine_charge_variables(1), CUDA_SUCCESS);
    REQUIRE_EQUAL(frames_count().charged_frames, before + 1);
    REQUIRE_EQUAL(engine_charge_variables(60 * FRAME), CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE_EQUAL(frames_count().charged_frames, before + 1);
    engine_refund_variables(1);
    REQUIRE_EQUAL(frames_count().charged_frames, before);
    engine_refund_variables(FRAME);
    REQUIRE_EQUAL(frames_count().charged_frames, before - 1);
}
engine_test(variables_share_frames)

    static void information_is_about_the_cap(const void *argument)
{
    (void)argument;
    open_device(64, 40, FAKE_AT_ONCE);
    size_t available = 0, total = 0, later = 0;
    REQUIRE(engine_memory_info(&available, &total));
    REQUIRE_EQUAL(total, 40 * FRAME);
    REQUIRE(available < total && available > 30 * FRAME);
    fill(allocate(LARGE), 1);
    REQUIRE(engine_memory_info(&later, NULL));
    REQUIRE_EQUAL(available - later, LARGE);
    REQUIRE(engine_memory_info(NULL, &total));
    fake_config.cap_bytes = 0;
    REQUIRE(!engine_memory_info(&available, &total));
}
engine_test(information_is_about_the_cap)

    /* ---- a device that refuses at the start ---- */

    static void without_a_context_the_driver_is_asked(const void *argument)
{
    (void)argument;
    open_device(64, 40, FAKE_AT_ONCE);
    CUdeviceptr address = 0;
    fake_make_current(false);
    engine_allocate(&address, 100, NULL);
    REQUIRE(!engine_owns(address));
    fake_make_current(true);
    REQUIRE_EQUAL(engine_allocate(&address, 100, NULL), CUDA_SUCCESS);
    REQUIRE(engine_owns(address));
}
engine_test(without_a_context_the_driver_is_asked)

    static void a_cap_that_cannot_be_held_stops_at_once(const void *argument)
{
    CUdeviceptr address = 0;
    open_device(64, 40, FAKE_AT_ONCE);
    fake_fail(*(const uint64_t *)argument, false);
    CUresult result = engine_allocate(&address, 100, NULL);
    REQUIRE(fake_has_failed());
    REQUIRE(result != CUDA_SUCCESS || engine_owns(address));
    _exit(0);
}

static void test_a_cap_that_cannot_be_held_stops_at_once(void **unused)
{
    (void)unused;
    uint32_t stopped = 0;
    for (uint64_t nth = 3; nth < 30; nth++) {
        int status = child_run(a_cap_that_cannot_be_held_stops_at_once, &nth);
        stopped += status == 3;
        assert_true(status == 0 || status == 3);
    }
    assert_true(stopped > 10);
}

/* ---- without pressure ---- */

static void where_it_fits_nothing_is_done(const void *argument)
{
    (void)argument;
    static struct network_result plain, capped;
    static const struct network_settings network = {.blocks = 4, .iterations = 8, .unit_bytes = LARGE};
    network_run(&network, plain_machine(), &plain);
    open_device(400, 300, FAKE_LATE);
    network_run(&network, machine, &capped);
    REQUIRE(network_equal(&plain, &capped));
    REQUIRE_EQUAL(stats_phase(), PHASE_PASS_THROUGH);
    REQUIRE_EQUAL(swap_count().out_bytes + swap_count().in_bytes + swap_count().audited_bytes, 0);
    REQUIRE_EQUAL(follow_count().replayed, 0);
    uint64_t memory_calls = fake_count().memory_calls, frames = fake_count().frames;
    REQUIRE(frames <= 2 + plain_peak_bytes() / FRAME + 8);
    REQUIRE(memory_calls <= 2 * frames + 60); /* every place is mapped once, in its first iteration */
}
engine_test(where_it_fits_nothing_is_done)

    static void a_trace_without_a_cap_is_only_a_trace(const void *argument)
{
    (void)argument;
    static struct network_result plain, traced;
    static const struct network_settings network = {.blocks = 3, .iterations = 6, .unit_bytes = LARGE};
    char path[] = "/tmp/reprise-unit-XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    network_run(&network, plain_machine(), &plain);
    fake_config.trace_path = path;
    open_device(400, 0, FAKE_LATE);
    network_run(&network, machine, &traced);
    REQUIRE(network_equal(&plain, &traced));
    REQUIRE_EQUAL(swap_count().out_bytes + follow_count().replayed, 0);
    engine_finish();
    unlink(path);
}
engine_test(a_trace_without_a_cap_is_only_a_trace)

    int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_the_first_allocation_nothing_is_ours),
        cmocka_unit_test(test_it_is_off_where_nothing_is_wanted),
        cmocka_unit_test(test_allocations_are_found_by_any_address),
        cmocka_unit_test(test_wrong_frees_are_refused),
        cmocka_unit_test(test_nothing_is_left_to_the_driver_to_refuse),
        cmocka_unit_test(test_more_than_the_cap_is_out_of_memory),
        cmocka_unit_test(test_much_more_can_be_held_than_fits),
        cmocka_unit_test(test_small_ones_alone_fill_the_cap_and_no_more),
        cmocka_unit_test(test_a_small_one_makes_room),
        cmocka_unit_test(test_an_operation_that_does_not_fit_is_refused),
        cmocka_unit_test(test_the_driver_s_refusal_reaches_the_program),
        cmocka_unit_test(test_captured_work_pins_what_it_touches),
        cmocka_unit_test(test_unreadable_work_needs_everything),
        cmocka_unit_test(test_unreadable_work_that_cannot_have_everything_is_refused),
        cmocka_unit_test(test_two_streams_keep_their_order),
        cmocka_unit_test(test_freed_memory_is_used_again_in_order),
        cmocka_unit_test(test_a_destroyed_stream_is_forgotten),
        cmocka_unit_test(test_pinned_memory_comes_in_and_stays),
        cmocka_unit_test(test_too_many_pins_are_out_of_memory),
        cmocka_unit_test(test_charges_evict_and_are_refused_at_the_end),
        cmocka_unit_test(test_variables_share_frames),
        cmocka_unit_test(test_information_is_about_the_cap),
        cmocka_unit_test(test_without_a_context_the_driver_is_asked),
        cmocka_unit_test(test_a_cap_that_cannot_be_held_stops_at_once),
        cmocka_unit_test(test_where_it_fits_nothing_is_done),
        cmocka_unit_test(test_a_trace_without_a_cap_is_only_a_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
