/* links: tests/unit/fake_%.c tests/unit/network%.c shim/engine.c shim/submit.c shim/judge.c shim/refuse.c shim/frames.c
 * shim/frames_assign.c policy/assign.c shim/space.c shim/streams.c shim/store.c shim/swap.c shim/reside.c shim/hidden.c
 * shim/proof.c shim/learn.c shim/compose.c shim/annotate.c shim/replay.c shim/follow.c shim/away.c shim/leave.c
 * shim/proven.c shim/iterate.c shim/stats.c shim/launch.c shim/say.c  trace/period.c policy/%.c */
/* Programs that nobody would write: random operations on random buffers, freed at random, iteration after iteration,
 * under a cap. Their results are those of plain memory, byte for byte, or the program is refused memory. */
#include "tests/unit/child.h"
#include "tests/unit/fake_driver.h"
#include "tests/unit/network.h"

#include "shim/engine.h"
#include "shim/follow.h"
#include "shim/stats.h"
#include "shim/swap.h"

#include <sys/mman.h>

#define FRAME           4096u
#define LARGE           (6u * FRAME)
#define SMALL           1024u
#define OVERHEAD_FRAMES 20u /* our own tables, and what a plan keeps in reserve */
#define STOPPED_STATUS  3   /* the engine ended the process, with a reason */
#define FIRST_CALL      3u  /* the two before it ask whether there is a context */
#define MAX_BUFFERS     96u
#define MAX_STEPS       160u
#define MAX_OUTPUTS     512u
#define GIVEN_SMALL     4u /* buffers 0 .. 3 */
#define GIVEN_LARGE     2u /* then these; all others live within an iteration */
#define GIVEN           (GIVEN_SMALL + GIVEN_LARGE)

enum step_kind { STEP_ALLOCATE, STEP_FREE, STEP_LAUNCH, STEP_CLEAR, STEP_COPY, STEP_INPUT, STEP_OUTPUT };

struct step {
    enum step_kind kind;
    uint32_t kernel, count;
    uint32_t buffers[5];
    uint64_t words;
};

struct program {
    struct step steps[MAX_STEPS];
    uint32_t step_count;
    size_t bytes[MAX_BUFFERS];
    uint32_t buffer_count;
    uint32_t live[MAX_BUFFERS], live_count; /* while it is made up */
    uint64_t random;
};

static uint32_t below(struct program *p, uint32_t limit)
{
    p->random ^= p->random << 13;
    p->random ^= p->random >> 7;
    p->random ^= p->random << 17;
    return (uint32_t)((p->random >> 11) % limit);
}

/* ---- making a program up ---- */

static struct step *add(struct program *p, enum step_kind kind)
{
    REQUIRE(p->step_count < MAX_STEPS);
    struct step *step = &p->steps[p->step_count++];
    *step = (struct step){.kind = kind};
    return step;
}

static uint32_t new_buffer(struct program *p)
{
    static const size_t sizes[] = {LARGE, LARGE, LARGE, LARGE - 72, LARGE / 2, 2 * LARGE, SMALL};
    REQUIRE(p->buffer_count < MAX_BUFFERS);
    uint32_t buffer = p->buffer_count++;
    p->bytes[buffer] = sizes[below(p, sizeof sizes / sizeof sizes[0])];
    add(p, STEP_ALLOCATE)->buffers[0] = buffer;
    p->live[p->live_count++] = buffer;
    return buffer;
}

static uint32_t some_live(struct program *p)
{
    return p->live[below(p, p->live_count)];
}

static uint64_t common_words(const struct program *p, const struct step *step, uint32_t count)
{
    uint64_t words = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t own = p->bytes[step->buffers[i]] / 8;
        words = own < words ? own : words;
    }
    return words;
}

/* A kernel writes `words` of a new buffer: if that is not all of it, the rest must have been written before. */
static void cover(struct program *p, uint32_t buffer, uint64_t words)
{
    if (words * 8 < p->bytes[buffer]) {
        add(p, STEP_CLEAR)->buffers[0] = buffer;
    }
}

static void add_launch(struct program *p, uint32_t kernel, uint32_t news, uint32_t news_count, const uint32_t *buffers,
                       uint32_t count, uint32_t sized)
{
    struct step launch = {.kind = STEP_LAUNCH, .kernel = kernel, .count = count};
    memcpy(launch.buffers, buffers, count * sizeof *buffers);
    launch.words = common_words(p, &launch, sized);
    for (uint32_t i = 0; i < news_count; i++) {
        cover(p, news + i, launch.words);
    }
    *add(p, STEP_LAUNCH) = launch;
}

static void add_forward(struct program *p)
{
    uint32_t in = some_live(p), other = some_live(p), small = below(p, GIVEN_SMALL), fresh;
    switch (below(p, 10)) {
    case 0:
    case 1:
        fresh = new_buffer(p);
        add_launch(p, NETWORK_linear_forward, fresh, 1, (uint32_t[]){fresh, in, small}, 3, 2);
        break;
    case 2:
    case 3:
        fresh = new_buffer(p);
        add_launch(p, NETWORK_norm_forward, fresh, 1, (uint32_t[]){fresh, in, small}, 3, 2);
        break;
    case 4:
        add_launch(p, NETWORK_activate, 0, 0, &in, 1, 1);
        break;
    case 5:
        fresh = new_buffer(p);
        new_buffer(p);
        add_launch(p, NETWORK_dropout_forward, fresh, 2, (uint32_t[]){fresh, fresh + 1, in}, 3, 3);
        break;
    case 6:
        fresh = some_live(p);
        if (fresh != in) {
            add_launch(p, NETWORK_activate_backward, 0, 0, (uint32_t[]){fresh, in}, 2, 2);
        }
        break;
    case 7:
        fresh = new_buffer(p);
        add_launch(p, NETWORK_linear_backward, fresh, 1,
                   (uint32_t[]){fresh, in, other, small, (small + 1) % GIVEN_SMALL}, 5, 3);
        break;
    case 8:
        fresh = below(p, 2) ? new_buffer(p) : some_live(p);
        add(p, STEP_CLEAR)->buffers[0] = fresh;
        break;
    default:
        fresh = new_buffer(p);
        add(p, STEP_CLEAR)->buffers[0] = fresh;
        if (fresh != in) {
            struct step *copy = add(p, STEP_COPY);
            copy->buffers[0] = fresh;
            copy->buffers[1] = in;
            copy->words = common_words(p, copy, 2);
        }
    }
}

static void add_free(struct program *p, uint32_t at)
{
    add(p, STEP_FREE)->buffers[0] = p->live[at];
    memmove(&p->live[at], &p->live[at + 1], (p->live_count - at - 1) * sizeof *p->live);
    p->live_count--;
}

/* The other half: everything is read once more, mostly the newest first, and freed. */
static void add_backward(struct program *p)
{
    while (p->live_count > GIVEN_LARGE) {
        uint32_t newest = p->live_count - 1,
                 at = below(p, 4) == 0 ? GIVEN_LARGE + below(p, p->live_count - GIVEN_LARGE) : newest;
        uint32_t buffer = p->live[at], slot = below(p, GIVEN_SMALL);
        add_launch(p, NETWORK_add_mean, 0, 0, (uint32_t[]){slot, buffer}, 2, 2);
        p->steps[p->step_count - 1].words = p->bytes[buffer] / 8;
        if (below(p, 5) == 0 && buffer >= GIVEN) {
            add_launch(p, NETWORK_activate_backward, 0, 0, (uint32_t[]){GIVEN_SMALL + below(p, GIVEN_LARGE), buffer}, 2,
                       2);
        }
        if (below(p, 12) == 0) {
            add(p, STEP_OUTPUT)->buffers[0] = slot;
        }
        if (at >= GIVEN_LARGE) {
            add_free(p, at);
        }
    }
}

static void make_program(struct program *p, uint64_t seed)
{
    memset(p, 0, sizeof *p);
    p->random = seed * 0x9e3779b97f4a7c15ull + 1;
    for (uint32_t i = 0; i < GIVEN; i++) {
        p->bytes[i] = i < GIVEN_SMALL ? SMALL : LARGE;
        if (i >= GIVEN_SMALL) {
            p->live[p->live_count++] = i;
        }
    }
    p->buffer_count = GIVEN;
    uint32_t input = new_buffer(p);
    add(p, STEP_INPUT)->buffers[0] = input;
    uint32_t forward = 16 + below(p, 16);
    for (uint32_t i = 0; i < forward; i++) {
        add_forward(p);
        if (below(p, 10) == 0 && p->live_count > GIVEN_LARGE + 2) {
            add_free(p, GIVEN_LARGE + below(p, p->live_count - GIVEN_LARGE));
        }
    }
    add_backward(p);
    add(p, STEP_OUTPUT)->buffers[0] = 0;
}

/* ---- running it ---- */

struct run {
    const struct program *program;
    const struct machine *machine;
    uint64_t addresses[MAX_BUFFERS];
    uint64_t iteration;
    uint64_t outputs[MAX_OUTPUTS]; /* sums over what was read back, in order */
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
    return r->machine->launch(step->kernel, &arguments);
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
        return r->machine->clear(*address, r->program->bytes[step->buffers[0]]);
    case STEP_COPY:
        return r->machine->copy(*address, r->addresses[step->buffers[1]], step->words * 8);
    case STEP_INPUT:
        return give_input(r, step->buffers[0], r->iteration * 77);
    case STEP_OUTPUT:
        return take_output(r, step->buffers[0]);
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
                        uint32_t iterations, uint32_t broken)
{
    memset(r, 0, sizeof *r);
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
    uint32_t planned, refused, replaying;
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

static void try_program(const void *argument)
{
    static struct program program;
    static struct run plain, capped;
    const struct trial *trial = argument;
    uint64_t seed = trial->seed;
    make_program(&program, seed);
    uint32_t iterations = 9, broken = seed % 3 == 0 ? 6 : UINT32_MAX;
    REQUIRE(run_program(&plain, &program, plain_machine(), iterations, broken));
    uint64_t percent = 40 + seed * 7 % 50;
    fake_config.cap_bytes = (plain_peak_bytes() * percent / 100 / FRAME + OVERHEAD_FRAMES) * FRAME;
    fake_config.may_swap = seed % 4 != 1;
    fake_config.is_strict = seed % 5 < 2;
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
    bool is_done = run_program(&capped, &program, engine_machine_open(&settings), iterations, broken);
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
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : (uint64_t)atoll(text);
}

/* A kernel whose code is not known may write what it did not write in the recorded iteration (sums of zeros, say): then
 * a recipe's input has changed. That is seen, and stops the process before a wrong byte leaves the device. */
static bool may_be_stopped(uint64_t seed)
{
    return !is_code_known(seed);
}

static void test_any_program_gives_its_own_results(void **unused)
{
    (void)unused;
    uint32_t failed = 0, stopped = 0;
    uint64_t first = number("UNITS_SEED", 1), count = number("UNITS_SEEDS", 40);
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
    print_message("%u planned, %u of them replaying, %u refused memory, %u stopped\n", tally->planned, tally->replaying,
                  tally->refused, stopped);
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
    uint64_t first = number("UNITS_SEED", 1), count = number("UNITS_SEEDS", 40);
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
