/* links: tests/unit/fake_%.c tests/unit/network%.c tests/unit/random_program.c shim/engine.c shim/submit.c shim/judge.c
 * shim/refuse.c shim/frames.c shim/frames_assign.c policy/assign.c shim/space.c shim/streams.c shim/store.c shim/swap.c
 * shim/reside.c shim/hidden.c shim/proof.c shim/learn.c shim/compose.c shim/annotate.c shim/replay.c shim/follow.c
 * shim/away.c shim/leave.c shim/proven.c shim/iterate.c shim/stats.c shim/launch.c shim/say.c  trace/period.c
 * policy/%.c */
/* Programs that nobody would write: random operations on random buffers, freed at random, iteration after iteration,
 * under a cap. Their results are those of plain memory, byte for byte, or the program is refused memory. */
#include "tests/unit/child.h"
#include "tests/unit/fake_driver.h"
#include "tests/unit/network.h"
#include "tests/unit/random_program.h"

#include "shim/engine.h"
#include "shim/follow.h"
#include "shim/proven.h"
#include "shim/stats.h"
#include "shim/swap.h"

#include <sys/mman.h>

#define FRAME           PROGRAM_FRAME
#define LARGE           PROGRAM_LARGE
#define SMALL           PROGRAM_SMALL
#define GIVEN_SMALL     PROGRAM_GIVEN_SMALL
#define GIVEN_LARGE     PROGRAM_GIVEN_LARGE
#define GIVEN           PROGRAM_GIVEN
#define MAX_BUFFERS     PROGRAM_MAX_BUFFERS
#define OVERHEAD_FRAMES 20u /* our own tables, and what a plan keeps in reserve */
#define STOPPED_STATUS  3   /* the engine ended the process, with a reason */
#define FIRST_CALL      3u  /* the two before it ask whether there is a context */
#define MAX_OUTPUTS     512u

/* ---- running it ---- */

struct run {
    const struct program *program;
    const struct machine *machine;
    uint64_t addresses[MAX_BUFFERS];
    uint64_t iteration, varies_from; /* extents that the data say */
    uint64_t outputs[MAX_OUTPUTS];   /* sums over what was read back, in order */
    uint32_t output_iterations[MAX_OUTPUTS], output_count;
    unsigned char state[GIVEN_SMALL * SMALL + GIVEN_LARGE * LARGE];
};

static bool give_input(struct run *r, uint32_t buffer, uint64_t seed)
{
    static uint64_t values[2 * LARGE / 8];
    for (size_t i = 0; i < r->program->bytes[buffer] / 8; i++) {
        values[i] = (seed + i) * 0xd6e8feb86659fd93ull;
        values[i] ^= values[i] >> 29;
    }
    return r->machine->copy_in(r->addresses[buffer], values, r->program->bytes[buffer]);
}

static bool take_output(struct run *r, uint32_t buffer)
{
    uint64_t words[SMALL / 8];
    if (!r->machine->copy_out(words, r->addresses[buffer], SMALL)) {
        return false;
    }
    REQUIRE(r->output_count < MAX_OUTPUTS);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < SMALL / 8; i++) {
        sum = (sum ^ words[i]) * 0x100000001b3ull;
    }
    r->outputs[r->output_count] = sum;
    r->output_iterations[r->output_count++] = (uint32_t)r->iteration;
    return true;
}

static bool run_launch(struct run *r, const struct step *step, uint32_t index)
{
    struct network_arguments arguments = {.words = step->words, .scalars = {r->iteration, index}};
    for (uint32_t i = 0; i < step->count; i++) {
        arguments.pointers[i] = r->addresses[step->buffers[i]];
    }
    if (step->piece.rows > 0) {
        arguments.pointers[step->piece_buffer] += step->piece.at;
        arguments.pointers[3] = step->piece.width;
        arguments.pointers[4] = step->piece.pitch;
        arguments.words = step->piece.rows;
        arguments.scalars[1] |= (uint64_t)(r->iteration >= r->varies_from) << 32;
    }
    return r->machine->launch(step->kernel, &arguments);
}

static bool clear_piece(struct run *r, uint64_t address, struct piece piece)
{
    return piece.rows == 1 ? r->machine->clear(address + piece.at, piece.width)
                           : r->machine->clear_rows(address + piece.at, piece.pitch, piece.width, piece.rows);
}

static bool run_step(struct run *r, uint32_t index)
{
    const struct step *step = &r->program->steps[index];
    uint64_t *address = &r->addresses[step->buffers[0]];
    uint64_t held = *address;
    switch (step->kind) {
    case STEP_ALLOCATE:
        return r->machine->allocate(address, r->program->bytes[step->buffers[0]]);
    case STEP_FREE:
        *address = 0;
        return r->machine->release(held);
    case STEP_LAUNCH:
        return run_launch(r, step, index);
    case STEP_CLEAR:
        return clear_piece(r, *address, step->piece);
    case STEP_COPY:
        return r->machine->copy(*address + step->piece.at, r->addresses[step->buffers[1]] + step->piece.at,
                                step->piece.width);
    case STEP_INPUT:
        return give_input(r, step->buffers[0], r->iteration * 77);
    case STEP_OUTPUT:
        return take_output(r, step->buffers[0]);
    case STEP_LANE:
        return r->machine->lane(step->lane);
    }
    return false;
}

/* One iteration; `stop` steps of it, then everything it holds is freed. */
static bool run_iteration(struct run *r, uint32_t stop)
{
    for (uint32_t i = 0; i < r->program->step_count && i < stop; i++) {
        if (!run_step(r, i)) {
            return false;
        }
    }
    for (uint32_t i = GIVEN; i < MAX_BUFFERS; i++) {
        uint64_t held = r->addresses[i];
        r->addresses[i] = 0;
        if (held != 0 && !r->machine->release(held)) {
            return false;
        }
    }
    return true;
}

static bool run_program(struct run *r, const struct program *program, const struct machine *machine,
                        uint32_t iterations, uint32_t broken, uint32_t varies_from)
{
    memset(r, 0, sizeof *r);
    r->varies_from = varies_from;
    r->program = program;
    r->machine = machine;
    for (uint32_t i = 0; i < GIVEN; i++) {
        if (!machine->allocate(&r->addresses[i], program->bytes[i]) || !give_input(r, i, i + 1)) {
            return false;
        }
    }
    for (r->iteration = 0; r->iteration < iterations; r->iteration++) {
        if (!run_iteration(r, r->iteration == broken ? program->step_count * 2 / 3 : UINT32_MAX)) {
            return false;
        }
        if (machine->ended_iteration != NULL) {
            machine->ended_iteration((uint32_t)r->iteration);
        }
    }
    size_t done = 0;
    for (uint32_t i = 0; i < GIVEN; i++) {
        if (!machine->copy_out(r->state + done, r->addresses[i], program->bytes[i])) {
            return false;
        }
        done += program->bytes[i];
    }
    return true;
}

/* ---- trials ---- */

static struct tally {
    uint32_t planned, refused, replaying, mismatched;
} * tally;

static bool was_planned;

static void note_phase(uint32_t iteration)
{
    (void)iteration;
    was_planned |= stats_phase() == PHASE_PLANNED;
}

struct trial {
    uint64_t seed, fail_at; /* fail_at: driver call that is refused, once; 0: none */
};

static bool is_code_known(uint64_t seed)
{
    return seed % 7 < 4;
}

static bool has_extents(uint64_t seed)
{
    return seed % 8 == 6;
}

/* A kernel whose code is not known may write what it did not write in the recorded iteration (sums of zeros, say): then
 * a recipe's input has changed. That is seen, and stops the process before a wrong byte leaves the device. */
static bool may_be_stopped(uint64_t seed)
{
    return !is_code_known(seed) || has_extents(seed);
}

static void try_program(const void *argument)
{
    static struct program program;
    static struct run plain, capped;
    const struct trial *trial = argument;
    uint64_t seed = trial->seed;
    program_make(&program, seed, has_extents(seed), seed % 5 == 3);
    uint32_t iterations = 9, broken = seed % 3 == 0 ? 6 : UINT32_MAX, varies_from = (uint32_t)(1 + seed / 8 % 8);
    REQUIRE(run_program(&plain, &program, plain_machine(), iterations, broken, varies_from));
    uint64_t percent = 40 + seed * 7 % 50;
    fake_config.cap_bytes = (plain_peak_bytes() * percent / 100 / FRAME + OVERHEAD_FRAMES) * FRAME;
    fake_config.may_swap = seed % 4 != 1;
    fake_config.is_strict = seed % 5 < 2;
    fake_config.verify_mode = seed % 11 < 3 ? VERIFY_SAMPLE : VERIFY_ALWAYS;
    fake_config.log_level = getenv("UNITS_LOG") != NULL ? atoi(getenv("UNITS_LOG")) : 0;
    fake_open(&(struct fake_settings){.memory_bytes = fake_config.cap_bytes,
                                      .granularity = FRAME,
                                      .order = (enum fake_order)(seed % 3),
                                      .seed = seed});
    const struct engine_machine settings = {.stream = seed % 2 ? fake_stream() : CU_STREAM_LEGACY,
                                            .is_readable = is_code_known(seed),
                                            .is_retrying = trial->fail_at != 0,
                                            .cap_bytes = fake_config.cap_bytes,
                                            .ended_iteration = note_phase};
    fake_fail(trial->fail_at, false);
    bool is_done = run_program(&capped, &program, engine_machine_open(&settings), iterations, broken, varies_from);
    tally->refused += !is_done;
    tally->planned += was_planned;
    tally->replaying += follow_count().replayed > 0;
    if (!is_done) {
        bool has_less = strcmp(fake_failed_call(), "fake_cuMemCreate") == 0; /* the cap is lower then */
        REQUIRE_EQUAL(engine_machine_error(), CUDA_ERROR_OUT_OF_MEMORY);
        REQUIRE(!fake_config.may_swap || has_less);
        return;
    }
    REQUIRE_EQUAL(plain.output_count, capped.output_count);
    for (uint32_t i = 0; i < plain.output_count; i++) {
        if (plain.outputs[i] != capped.outputs[i]) {
            fprintf(stderr, "output %u, of iteration %u, is wrong\n", i, plain.output_iterations[i]);
            _exit(100);
        }
    }
    REQUIRE(memcmp(plain.state, capped.state, sizeof plain.state) == 0);
    tally->mismatched += (uint32_t)proven_count().mismatched;
    REQUIRE(proven_count().mismatched == 0 || may_be_stopped(seed) || trial->fail_at != 0);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : (uint64_t)atoll(text);
}

static void test_any_program_gives_its_own_results(void **unused)
{
    (void)unused;
    uint32_t failed = 0, stopped = 0;
    uint64_t first = number("UNITS_SEED", 1), count = number("UNITS_SEEDS", 80);
    for (uint64_t seed = first; seed < first + count; seed++) {
        const struct trial trial = {.seed = seed};
        int status = child_run(try_program, &trial);
        if (status == STOPPED_STATUS && may_be_stopped(seed)) {
            stopped++;
        } else if (status != 0) {
            print_message("seed %llu: status %d\n", (unsigned long long)seed, status);
            failed++;
        }
    }
    print_message("%u planned, %u of them replaying, %u refused memory, %u stopped, %u versions differed\n",
                  tally->planned, tally->replaying, tally->refused, stopped, tally->mismatched);
    assert_int_equal(failed, 0);
    assert_true(stopped <= 1 + count / 100);
    if (count >= 40) {
        assert_true(tally->planned > count / 2);
        assert_true(tally->replaying > count / 3);
        assert_true(tally->refused < count / 4);
    }
}

/* The engine may end the process with a reason, when nothing else is left; it must not go on with wrong bytes. */
static void test_any_program_survives_a_refused_call(void **unused)
{
    (void)unused;
    uint32_t failed = 0, stopped = 0;
    uint64_t first = number("UNITS_SEED", 1), count = number("UNITS_SEEDS", 80);
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct trial trial = {.seed = seed, .fail_at = FIRST_CALL + seed * 7919 % 5000};
        int status = child_run(try_program, &trial);
        stopped += status == STOPPED_STATUS;
        if (status != 0 && status != STOPPED_STATUS) {
            print_message("seed %llu, call %llu: status %d\n", (unsigned long long)seed,
                          (unsigned long long)trial.fail_at, status);
            failed++;
        }
    }
    print_message("%u stopped\n", stopped);
    assert_int_equal(failed, 0);
    assert_true(stopped <= 5 + count / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_program_gives_its_own_results),
        cmocka_unit_test(test_any_program_survives_a_refused_call),
    };
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
