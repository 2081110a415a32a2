/* links: tests/unit/fake_%.c tests/unit/network%.c shim/engine.c shim/submit.c shim/judge.c shim/refuse.c shim/frames.c
 * shim/frames_assign.c policy/assign.c shim/space.c shim/streams.c shim/store.c shim/swap.c shim/reside.c shim/hidden.c
 * shim/proof.c shim/learn.c shim/compose.c shim/annotate.c shim/replay.c shim/follow.c shim/away.c shim/leave.c
 * shim/proven.c shim/iterate.c shim/stats.c shim/launch.c shim/say.c  trace/period.c policy/%.c */
/* Every driver call fails once, and from every one on all fail. Whatever happens, the program gets an error or the
 * right bytes; a call that was refused can be made again; nothing crashes, and no frame is lost. */
#include "tests/unit/child.h"
#include "tests/unit/fake_driver.h"
#include "tests/unit/network.h"

#include "shim/engine.h"
#include "shim/follow.h"
#include "shim/frames.h"

#include <sys/mman.h>

#define FRAME          4096u
#define UNIT           (8u * FRAME)
#define FIRST_CALL     3 /* the two before it ask whether there is a context: without one nothing is held */
#define STOPPED_STATUS 3 /* the engine ended the process, with a reason */

struct trial {
    uint64_t nth;
    bool is_sticky, is_retrying, may_not_swap, is_strict;
    enum fake_order order;
};

static const struct network_settings network = {.blocks = 4, .iterations = 6, .unit_bytes = UNIT, .exception_at = 4};
static struct network_result plain;

/* Filled by the children. */
static struct {
    uint64_t calls;       /* driver calls of a run in which none fails */
    uint32_t used_frames; /* when the program has freed everything */
    char failed_call[64];
} * shared;

static void open_device(const struct trial *trial)
{
    fake_config.cap_bytes = plain_peak_bytes() * 55 / 100 / FRAME * FRAME;
    fake_config.may_swap = !trial->may_not_swap;
    fake_config.is_strict = trial->is_strict;
    fake_config.log_level = getenv("UNITS_LOG") != NULL ? atoi(getenv("UNITS_LOG")) : 0;
    fake_open(
        &(struct fake_settings){.memory_bytes = fake_config.cap_bytes, .granularity = FRAME, .order = trial->order});
}

static uint32_t used_frames(void)
{
    return frames_count().created_frames - frames_count().free_frames;
}

static void try_once(const void *argument)
{
    static struct network_result capped;
    const struct trial *trial = argument;
    open_device(trial);
    const struct engine_machine settings = {.stream = CU_STREAM_LEGACY,
                                            .is_readable = true,
                                            .is_retrying = trial->is_retrying,
                                            .cap_bytes = fake_config.cap_bytes};
    const struct machine *machine = engine_machine_open(&settings);
    fake_fail(trial->nth, trial->is_sticky);
    network_run(&network, machine, &capped);
    uint64_t calls = fake_count().calls;
    strncpy(shared->failed_call, fake_failed_call(), sizeof shared->failed_call - 1);
    REQUIRE(capped.is_complete || fake_has_failed());
    REQUIRE(!capped.is_complete || network_equal(&plain, &capped));
    REQUIRE(capped.is_complete || engine_machine_error() != CUDA_SUCCESS);
    bool has_lost_memory = strcmp(fake_failed_call(), "fake_cuMemCreate") == 0; /* the cap is lower then */
    REQUIRE(!trial->is_retrying || capped.is_complete || has_lost_memory);
    fake_fail(0, false);
    if (!frames_are_open()) {
        return;
    }
    REQUIRE(network_free(machine));
    if (follow_is_on()) {
        follow_leave(); /* what a plan keeps beyond the program's frees goes now */
    }
    if (trial->nth == 0 || getenv("UNITS_HERE") != NULL) {
        shared->calls = calls;
        shared->used_frames = used_frames();
    }
    REQUIRE(used_frames() <= shared->used_frames);
    engine_finish();
}

static uint32_t step(void)
{
    const char *text = getenv("UNITS_TORTURE_STEP"); /* 1: every call */
    return text == NULL ? 197 : (uint32_t)atoi(text);
}

static void torture(struct trial trial)
{
    uint32_t stopped = 0, failed = 0;
    trial.nth = getenv("UNITS_HERE") != NULL ? (uint64_t)atoll(getenv("UNITS_NTH")) : 0;
    assert_int_equal(child_run(try_once, &trial), 0);
    uint64_t calls = shared->calls;
    bool is_retrying = trial.is_retrying;
    uint64_t begin = getenv("UNITS_NTH") != NULL ? (uint64_t)atoll(getenv("UNITS_NTH")) : FIRST_CALL;
    for (trial.nth = begin; trial.nth <= calls; trial.nth += step()) {
        int status = child_run(try_once, &trial);
        stopped += status == STOPPED_STATUS;
        if (status != 0 && (status != STOPPED_STATUS || (is_retrying && false))) {
            print_message("call %llu of %llu (%s): status %d\n", (unsigned long long)trial.nth,
                          (unsigned long long)calls, shared->failed_call, status);
            failed++;
        }
        if (getenv("UNITS_NTH") != NULL) {
            break;
        }
    }
    print_message("%llu calls, %u stopped\n", (unsigned long long)calls, stopped);
    assert_int_equal(failed, 0);
}

static void test_each_call_once(void **state)
{
    (void)state;
    torture((struct trial){.is_sticky = false});
}

static void test_each_call_once_and_again(void **state)
{
    (void)state;
    torture((struct trial){.is_retrying = true});
}

static void test_each_call_once_strict(void **state)
{
    (void)state;
    torture((struct trial){.is_strict = true, .may_not_swap = true});
}

static void test_from_each_call_on(void **state)
{
    (void)state;
    torture((struct trial){.is_sticky = true, .order = FAKE_LATE});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_once),
        cmocka_unit_test(test_each_call_once_and_again),
        cmocka_unit_test(test_each_call_once_strict),
        cmocka_unit_test(test_from_each_call_on),
    };
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return 1;
    }
    network_run(&network, plain_machine(), &plain);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
