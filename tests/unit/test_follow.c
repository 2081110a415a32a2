/* links: tests/unit/fake_%.c shim/follow.c shim/replay.c shim/leave.c shim/proven.c shim/reside.c shim/swap.c shim/hidden.c shim/learn.c shim/compose.c shim/proof.c shim/space.c shim/frames.c shim/streams.c shim/store.c shim/launch.c shim/say.c policy/%.c */
#include "tests/unit/core.h"

#include "shim/engine.h"
#include "shim/follow.h"
#include "shim/learn.h"
#include "shim/proof.h"
#include "shim/proven.h"
#include "shim/reside.h"
#include "shim/swap.h"

#define LARGE (3u * CORE_FRAME)
#define WORDS (LARGE / 8)
#define STOPPED_STATUS 3
#define MAX_STEPS 16u
#define MAX_BUFFERS 12u

void engine_stop(void)          /* in place of shim/engine.c */
{
    _exit(STOPPED_STATUS);
}

/* ---- the program: every step writes `out` from `left` and `right`, or changes it in place ---- */

enum step_kind { MIX, CHANGE, NOISE, COUNT }; /* COUNT: like MIX, and adds to the words of `right` (given) */

struct step {
    enum step_kind kind;
    uint32_t out, left, right;  /* buffers; the first three are given, the others are made by their first step */
    uint32_t freed_before;      /* bits: buffers that the program frees before this step */
};

struct block {
    uint64_t out, left, right, scalar;
};

static void run_mix(const void *arguments)
{
    const struct block *a = arguments;
    for (uint64_t i = 0; i < WORDS; i++) {
        ((uint64_t *)a->out)[i] = ((uint64_t *)a->left)[i] * 3 + ((uint64_t *)a->right)[i] + a->scalar;
    }
}

static void run_change(const void *arguments)
{
    const struct block *a = arguments;
    for (uint64_t i = 0; i < WORDS; i++) {
        ((uint64_t *)a->out)[i] = ((uint64_t *)a->out)[i] * 5 + a->scalar + i;
    }
}

static void run_noise(const void *arguments)
{
    static uint64_t drawn;
    const struct block *a = arguments;
    drawn += 1000003;
    for (uint64_t i = 0; i < WORDS; i++) {
        ((uint64_t *)a->out)[i] = drawn * (i + 1);
    }
}

static void run_count(const void *arguments)
{
    const struct block *a = arguments;
    for (uint64_t i = 0; i < WORDS; i++) {
        ((uint64_t *)a->out)[i] = ((uint64_t *)a->left)[i] ^ a->scalar;
        ((uint64_t *)a->right)[i] += ((uint64_t *)a->left)[i];
    }
}

static struct {
    const struct step *steps;
    uint32_t step_count;
    uint32_t buffers[MAX_BUFFERS]; /* allocations; SPACE_NONE: not held */
    uint64_t expected[MAX_BUFFERS][WORDS];
    struct function_facts facts[4];
    uint32_t stream;
    uint64_t scalar;            /* changes from iteration to iteration */
    struct script script;
    struct policy_problem problem;
    struct plan_item items[64];
} state;

static void open_memory(uint32_t cap, enum fake_order order)
{
    static fake_kernel *const kernels[] = { run_mix, run_change, run_noise, run_count };
    core_open_device(cap, cap, true, order);
    REQUIRE(space_open());
    state.stream = streams_number(fake_stream());
    REQUIRE(proof_open(state.stream));
    for (uint32_t i = 0; i < 4; i++) {
        state.facts[i] = (struct function_facts){ .function = fake_function("step", sizeof(struct block), kernels[i], 1000),
                                                  .name = "step",
                                                  .argument_bytes = sizeof(struct block),
                                                  .has_param_info = true };
    }
    for (uint32_t i = 0; i < MAX_BUFFERS; i++) {
        state.buffers[i] = SPACE_NONE;
    }
}

static struct allocation *buffer(uint32_t index)
{
    return space_get(state.buffers[index]);
}

static void hold(uint32_t index)
{
    if (state.buffers[index] == SPACE_NONE) {
        CUresult result;
        state.buffers[index] = space_allocate(LARGE, state.stream, &result);
        REQUIRE(state.buffers[index] != SPACE_NONE);
        learn_allocated(buffer(index));
    }
}

/* As engine_free does it. */
static void give_up(uint32_t index)
{
    if (state.buffers[index] == SPACE_NONE) {
        return;
    }
    struct allocation *allocation = buffer(index);
    learn_freed(allocation);
    if (allocation->host != NULL) {
        swap_release(allocation->host);
    }
    bool is_kept = follow_free(allocation);
    uint32_t place = space_end(state.buffers[index]);
    if (!is_kept) {
        space_give_place(place);
    }
    state.buffers[index] = SPACE_NONE;
    REQUIRE(frames_is_valid() && space_is_valid());
}

static void make_given(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        CUresult result;
        hold(i);
        REQUIRE(frames_acquire(space_place(buffer(i)->home), state.stream, &result));
        core_fill(buffer(i)->base, LARGE, 100 * i, state.stream);
        last_use_note(&space_place(buffer(i)->home)->last, state.stream);
        buffer(i)->is_fresh = false;
        for (uint64_t j = 0; j < WORDS; j++) {
            state.expected[i][j] = 100 * i + j;
        }
    }
}

/* ---- operations as the engine sees them ---- */

static CUresult forward(void *call)
{
    const struct operation *operation = call;
    return launch_issue(operation, operation->arguments);
}

static uint32_t touched_buffers(const struct step *step, uint32_t *list)
{
    uint32_t count = 0;
    list[count++] = step->out;
    if (step->kind == MIX || step->kind == COUNT) {
        list[count++] = step->left;
        if (step->right != step->left) {
            list[count++] = step->right;
        }
    }
    return count;
}

struct prepared {
    struct operation operation;
    struct block block;
    struct use uses[3];
};

static void prepare(const struct step *step, struct prepared *p, struct touches *touches)
{
    CUdeviceptr begin, end;
    frames_arena(&begin, &end);
    hold(step->out);
    bool has_inputs = step->kind == MIX || step->kind == COUNT;
    p->block = (struct block){ .out = buffer(step->out)->base,
                               .left = has_inputs ? buffer(step->left)->base : 0,
                               .right = has_inputs ? buffer(step->right)->base : 0,
                               .scalar = state.scalar + (uint64_t)(step - state.steps) };
    p->operation = (struct operation){ .kind = OPERATION_LAUNCH,
                                       .stream = streams_handle(state.stream),
                                       .arguments = (unsigned char *)&p->block,
                                       .argument_bytes = sizeof p->block,
                                       .uses = p->uses,
                                       .facts = &state.facts[step->kind],
                                       .config = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
                                                   .blockDimY = 1, .blockDimZ = 1,
                                                   .hStream = streams_handle(state.stream) },
                                       .forward = forward };
    p->operation.call = &p->operation;
    REQUIRE(launch_find_uses(&p->operation, begin, end));
    uint32_t list[3];
    touches->count = touched_buffers(step, list);
    touches->is_overfull = false;
    for (uint32_t i = 0; i < touches->count; i++) {
        const struct allocation *allocation = buffer(list[i]);
        touches->items[i] = (struct touch){ .allocation = allocation->index,
                                            .is_loaded = true,
                                            .was_fresh = allocation->is_fresh };
        for (uint32_t j = 0; j < p->operation.use_count; j++) {
            if (p->uses[j].address == allocation->base) {
                touches->of_use[j] = i;
            }
        }
    }
}

/* What the step does to what is expected. */
static void expect_step(const struct step *step)
{
    const struct block block = { .out = (uint64_t)(uintptr_t)state.expected[step->out],
                                 .left = (uint64_t)(uintptr_t)state.expected[step->left],
                                 .right = (uint64_t)(uintptr_t)state.expected[step->right],
                                 .scalar = state.scalar + (uint64_t)(step - state.steps) };
    static fake_kernel *const kernels[] = { run_mix, run_change, NULL, run_count };
    if (step->kind != NOISE) {
        kernels[step->kind](&block);
    }
}

static void free_before(const struct step *step)
{
    for (uint32_t i = 0; i < MAX_BUFFERS; i++) {
        if (step->freed_before >> i & 1) {
            give_up(i);
        }
    }
}

/* ---- recording ---- */

static void record_step(const struct step *step)
{
    static struct touches touches;
    struct prepared p;
    free_before(step);
    prepare(step, &p, &touches);
    for (uint32_t i = 0; i < touches.count; i++) {
        struct allocation *allocation = space_get(touches.items[i].allocation);
        CUresult result;
        REQUIRE(frames_acquire(space_place(allocation->home), state.stream, &result));
        if (allocation->is_fresh) {
            proof_fill(allocation->base, allocation->bytes, state.stream);
        }
    }
    uint32_t index = learn_before(&p.operation, launch_signature(&p.operation), &touches, state.stream);
    REQUIRE_EQUAL(p.operation.forward(p.operation.call), CUDA_SUCCESS);
    streams_submitted(state.stream);
    learn_after(index, &touches, state.stream);
    for (uint32_t i = 0; i < touches.count; i++) {
        last_use_note(&space_place(space_get(touches.items[i].allocation)->home)->last, state.stream);
        space_get(touches.items[i].allocation)->is_fresh = false;
    }
    expect_step(step);
}

static void free_all(void)
{
    for (uint32_t i = 3; i < MAX_BUFFERS; i++) {
        give_up(i);
    }
}

/* Records the steps once, and installs a script with this plan. */
static void install(const struct step *steps, uint32_t step_count, const struct plan_item *items, uint32_t item_count,
                    bool is_probation)
{
    state.steps = steps;
    state.step_count = step_count;
    make_given();
    learn_begin();
    for (uint32_t i = 0; i < step_count; i++) {
        record_step(&steps[i]);
    }
    free_all();
    REQUIRE(learn_make(0, 0, step_count, state.stream, &state.script, &state.problem));
    learn_stop();
    memcpy(state.items, items, item_count * sizeof *items);
    state.script.plan = (struct plan){ .items = state.items, .item_count = item_count, .strategy = "by hand" };
    learn_annotate(&state.script, &state.problem);
    REQUIRE(proof_plan(state.script.print_count, state.stream));
    follow_install(&state.script, is_probation, is_probation);
}

#define INSTALL(steps, items, is_probation)                                                                            \
    install(steps, sizeof(steps) / sizeof *(steps), items, sizeof(items) / sizeof *(items), is_probation)

/* ---- following ---- */

static bool follow_step(const struct step *step)
{
    static struct touches touches;
    struct prepared p;
    CUresult result;
    free_before(step);
    prepare(step, &p, &touches);
    bool is_done = follow_operation(&p.operation, launch_signature(&p.operation), &touches, state.stream, &result);
    REQUIRE(frames_is_valid() && space_is_valid());
    if (is_done) {
        REQUIRE_EQUAL(result, CUDA_SUCCESS);
        expect_step(step);
    }
    return is_done;
}

static void begin(void)
{
    static struct touches touches;
    struct prepared p;
    state.scalar += 1000;
    prepare(&state.steps[0], &p, &touches);
    REQUIRE(follow_matches_start(launch_signature(&p.operation)));
    REQUIRE(follow_begin(state.stream));
}

static void follow_all(void)
{
    begin();
    for (uint32_t i = 0; i < state.step_count; i++) {
        REQUIRE(follow_step(&state.steps[i]));
    }
    REQUIRE(follow_is_complete());
    follow_finish();
    REQUIRE(!follow_is_on());
    REQUIRE(follow_trouble() == NULL);
}

/* Everything that the program holds has the bytes that it would have without us, at its address. */
static void check_held(void)
{
    for (uint32_t i = 0; i < MAX_BUFFERS; i++) {
        if (state.buffers[i] == SPACE_NONE || buffer(i)->is_fresh) {
            continue;
        }
        CUresult result;
        REQUIRE(!buffer(i)->is_dropped);
        REQUIRE_EQUAL(buffer(i)->slot, SPACE_NONE);
        REQUIRE(reside_content(buffer(i), state.stream, &result));
        streams_finished(&space_place(buffer(i)->home)->last);
        driver.cuCtxSynchronize();
        REQUIRE(memcmp((const void *)buffer(i)->base, state.expected[i], LARGE) == 0);
    }
}

static uint32_t frames_in_use(void)
{
    return frames_count().created_frames - frames_count().free_frames;
}

static bool is_resident(uint32_t index)
{
    return space_place(buffer(index)->home)->is_resident;
}

/* ---- a chain: 3 = f(0,1), 4 = f(3,1), 5 = f(4,2), 6 = f(5,3): 3 is wanted again late ---- */

static const struct step chain[] = { { MIX, 3, 0, 1, 0 }, { MIX, 4, 3, 1, 0 }, { MIX, 5, 4, 2, 0 }, { MIX, 6, 5, 3, 0 } };

/* Versions are numbered as their producers. */
static const struct plan_item chain_plan[] = { { PLAN_RUN, 0 },    { PLAN_RUN, 1 }, { PLAN_DROP, 0 },
                                               { PLAN_RUN, 2 },    { PLAN_REPLAY, 0 }, { PLAN_RUN, 3 } };

static void a_dropped_version_is_gone_and_comes_back(const void *argument)
{
    open_memory(100, *(const enum fake_order *)argument);
    INSTALL(chain, chain_plan, true);
    for (uint32_t iteration = 0; iteration < 3; iteration++) {
        begin();
        REQUIRE(follow_step(&chain[0]) && follow_step(&chain[1]));
        REQUIRE(is_resident(3));
        uint32_t used = frames_in_use();
        REQUIRE(follow_step(&chain[2]));
        REQUIRE(!is_resident(3) && buffer(3)->is_dropped);
        REQUIRE_EQUAL(frames_in_use(), used); /* one dropped, one new */
        REQUIRE_EQUAL(fake_mapped_pages(buffer(3)->base, LARGE), 0); /* strict */
        REQUIRE(follow_step(&chain[3]));
        REQUIRE(is_resident(3) && !buffer(3)->is_dropped);
        follow_finish();
        check_held();
        REQUIRE_EQUAL(follow_count().replayed, iteration + 1);
        REQUIRE_EQUAL(proven_count().verified, iteration + 1);
        REQUIRE_EQUAL(proven_count().mismatched, 0);
        free_all();
    }
    REQUIRE_EQUAL(swap_count().out_bytes + swap_count().in_bytes, 0);
    REQUIRE_EQUAL(swap_count().audited_bytes, 3 * LARGE);
}

static void test_a_dropped_version_is_gone_and_comes_back(void **unused)
{
    (void)unused;
    for (enum fake_order order = FAKE_AT_ONCE; order <= FAKE_MIXED; order++) {
        assert_child(a_dropped_version_is_gone_and_comes_back, &order);
    }
}

static void after_probation_no_copy_is_kept(const void *argument)
{
    (void)argument;
    open_memory(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    follow_all();
    free_all();
    follow_end_probation();
    uint64_t audited = swap_count().audited_bytes;
    for (uint32_t i = 0; i < 5; i++) {
        follow_all();
        check_held();
        free_all();
    }
    proven_look(follow_script());
    REQUIRE_EQUAL(proven_count().verified, 6); /* by fingerprint */
    REQUIRE(swap_count().audited_bytes <= audited + LARGE); /* a random share */
}
core_test(after_probation_no_copy_is_kept)

/* The recipe is replayed although the program has freed what it needs: the plan keeps that, or rebuilds it aside. */
static const struct step freeing[] = { { MIX, 3, 0, 1, 0 }, { MIX, 4, 3, 1, 0 }, { MIX, 5, 4, 2, 1u << 3 },
                                       { MIX, 6, 5, 4, 0 }, { MIX, 7, 6, 2, 0 } };

static void what_the_program_freed_may_be_kept_for_a_recipe(const void *argument)
{
    (void)argument;
    static const struct plan_item items[] = { { PLAN_RUN, 0 },    { PLAN_RUN, 1 },  { PLAN_RUN, 2 }, { PLAN_DROP, 1 },
                                              { PLAN_REPLAY, 1 }, { PLAN_DROP, 0 }, { PLAN_RUN, 3 }, { PLAN_RUN, 4 } };
    open_memory(100, FAKE_LATE);
    INSTALL(freeing, items, true);
    uint32_t before = frames_in_use();
    for (uint32_t i = 0; i < 3; i++) {
        follow_all();
        check_held();
        free_all();
        REQUIRE_EQUAL(frames_in_use(), before);
    }
    REQUIRE_EQUAL(follow_count().replayed, 3);
}
core_test(what_the_program_freed_may_be_kept_for_a_recipe)

static void what_the_program_freed_may_be_rebuilt_aside(const void *argument)
{
    (void)argument;
    static const struct plan_item items[] = { { PLAN_RUN, 0 },    { PLAN_RUN, 1 },  { PLAN_DROP, 0 },
                                              { PLAN_DROP, 1 },   { PLAN_REPLAY, 0 }, { PLAN_REPLAY, 1 }, { PLAN_RUN, 2 },
                                              { PLAN_DROP, 0 },   { PLAN_DROP, 1 }, { PLAN_REPLAY, 0 }, { PLAN_REPLAY, 1 },
                                              { PLAN_DROP, 0 },   { PLAN_RUN, 3 },  { PLAN_RUN, 4 } };
    open_memory(100, FAKE_LATE);
    INSTALL(freeing, items, true);
    uint32_t before = frames_in_use();
    for (uint32_t i = 0; i < 3; i++) {
        follow_all();
        check_held();
        free_all();
        REQUIRE_EQUAL(frames_in_use(), before);
    }
    REQUIRE_EQUAL(follow_count().replayed, 12);
}
core_test(what_the_program_freed_may_be_rebuilt_aside)

/* ---- writes that a replay does not want ---- */

static const struct step counting[] = { { COUNT, 3, 0, 2, 0 }, { MIX, 4, 3, 1, 0 }, { MIX, 5, 4, 3, 0 } };

static void statistics_are_not_updated_twice(const void *argument)
{
    (void)argument;
    static const struct plan_item items[] = { { PLAN_RUN, 0 }, { PLAN_RUN, 1 }, { PLAN_DROP, 0 }, { PLAN_REPLAY, 0 },
                                              { PLAN_RUN, 2 } };
    open_memory(100, FAKE_LATE);
    INSTALL(counting, items, true);
    for (uint32_t i = 0; i < 4; i++) {
        follow_all();
        check_held(); /* buffer 2 among them */
        free_all();
    }
    REQUIRE_EQUAL(follow_count().replayed, 4);
}
core_test(statistics_are_not_updated_twice)

/* An output that is still there is not written by a replay for another one. */
static void changes_in_place_are_replayed_in_order(const void *argument)
{
    (void)argument;
    static const struct step steps[] = { { MIX, 3, 0, 1, 0 }, { CHANGE, 3, 0, 0, 0 }, { CHANGE, 3, 0, 0, 0 },
                                         { MIX, 4, 3, 1, 0 }, { MIX, 5, 4, 1, 0 },    { MIX, 6, 5, 3, 0 } };
    static const struct plan_item items[] = { { PLAN_RUN, 0 },    { PLAN_RUN, 1 },    { PLAN_RUN, 2 }, { PLAN_RUN, 3 },
                                              { PLAN_DROP, 2 },   { PLAN_RUN, 4 },    { PLAN_REPLAY, 0 },
                                              { PLAN_REPLAY, 1 }, { PLAN_REPLAY, 2 }, { PLAN_RUN, 5 } };
    open_memory(100, FAKE_LATE);
    INSTALL(steps, items, true);
    for (uint32_t i = 0; i < 3; i++) {
        follow_all();
        check_held();
        free_all();
    }
}
core_test(changes_in_place_are_replayed_in_order)

/* ---- swapping ---- */

static void a_plan_may_swap(const void *argument)
{
    (void)argument;
    static const struct plan_item items[] = { { PLAN_RUN, 0 }, { PLAN_RUN, 1 },     { PLAN_SWAP_OUT, 0 },
                                              { PLAN_RUN, 2 }, { PLAN_SWAP_IN, 0 }, { PLAN_RUN, 3 } };
    open_memory(100, FAKE_LATE);
    INSTALL(chain, items, true);
    for (uint32_t i = 0; i < 3; i++) {
        begin();
        REQUIRE(follow_step(&chain[0]) && follow_step(&chain[1]) && follow_step(&chain[2]));
        REQUIRE(!is_resident(3));
        REQUIRE(follow_step(&chain[3]));
        follow_finish();
        check_held();
        free_all();
    }
    REQUIRE_EQUAL(swap_count().out_bytes, 3 * LARGE);
    REQUIRE_EQUAL(swap_count().in_bytes, 3 * LARGE);
}
core_test(a_plan_may_swap)

/* ---- recipes that do not hold ---- */

static const struct step noisy[] = { { NOISE, 3, 0, 0, 0 }, { MIX, 4, 3, 1, 0 }, { MIX, 5, 4, 1, 0 }, { MIX, 6, 5, 3, 0 } };

static void another_result_is_put_right_in_probation(const void *argument)
{
    (void)argument;
    static uint64_t first[WORDS];
    open_memory(100, FAKE_LATE);
    INSTALL(noisy, chain_plan, true);
    REQUIRE(!proven_wants_new_plan());
    begin();
    REQUIRE(follow_step(&noisy[0]));
    driver.cuCtxSynchronize();
    memcpy(first, (const void *)buffer(3)->base, LARGE);
    REQUIRE(follow_step(&noisy[1]) && follow_step(&noisy[2]) && follow_step(&noisy[3]));
    follow_finish();
    driver.cuCtxSynchronize();
    REQUIRE(memcmp(first, (const void *)buffer(3)->base, LARGE) == 0);
    REQUIRE(proven_wants_new_plan() && !proven_wants_new_plan());
    REQUIRE(learn_is_rejected(state.facts[NOISE].function));
    REQUIRE_EQUAL(learn_rejected(), 1);
    REQUIRE_EQUAL(proven_count().mismatched, 1);
}
core_test(another_result_is_put_right_in_probation)

static void another_result_stops_the_process_afterwards(const void *argument)
{
    (void)argument;
    open_memory(100, FAKE_LATE);
    INSTALL(noisy, chain_plan, false);
    begin();
    for (uint32_t i = 0; i < 4; i++) {
        REQUIRE(follow_step(&noisy[i]));
    }
    follow_finish();
    proven_look(follow_script()); /* the device has not got there yet: nothing has left it either */
    driver.cuCtxSynchronize();
    proven_look(follow_script());
    REQUIRE(false);
}

static void test_another_result_stops_the_process_afterwards(void **unused)
{
    (void)unused;
    assert_int_equal(child_run(another_result_stops_the_process_afterwards, NULL), STOPPED_STATUS);
}

/* ---- leaving ---- */

struct departure {
    const struct step *steps;
    uint32_t step_count;
    const struct plan_item *items;
    uint32_t item_count, after; /* steps that are followed */
    enum fake_order order;
    uint32_t frames;            /* beside what is given; 0: plenty */
};

static void leaving_restores_everything(const void *argument)
{
    const struct departure *d = argument;
    open_memory(100, d->order);
    install(d->steps, d->step_count, d->items, d->item_count, true);
    if (d->frames != 0) {
        REQUIRE(frames_charge(frames_available() - d->frames));
    }
    uint32_t before = frames_in_use();
    follow_all();
    free_all();
    follow_end_probation();
    begin();
    for (uint32_t i = 0; i < d->after; i++) {
        REQUIRE(follow_step(&d->steps[i]));
    }
    follow_leave();
    REQUIRE(!follow_is_on());
    REQUIRE(frames_is_valid() && space_is_valid());
    REQUIRE(follow_trouble() != NULL);
    check_held();
    proven_look(follow_script());
    free_all();
    REQUIRE(frames_in_use() <= before);
    follow_all(); /* and it can be followed again */
    check_held();
}

static void leave_everywhere(struct departure departure)
{
    for (departure.after = 0; departure.after <= departure.step_count; departure.after++) {
        for (departure.order = FAKE_AT_ONCE; departure.order <= FAKE_LATE; departure.order++) {
            assert_child(leaving_restores_everything, &departure);
        }
    }
}

#define DEPARTURE(s, p, count)                                                                                         \
    (struct departure){ .steps = s, .step_count = sizeof(s) / sizeof *(s), .items = p,                                 \
                        .item_count = sizeof(p) / sizeof *(p), .frames = count }

static void test_a_chain_can_be_left_anywhere(void **unused)
{
    (void)unused;
    leave_everywhere(DEPARTURE(chain, chain_plan, 0));
}

static void test_changes_in_place_can_be_left_anywhere(void **unused)
{
    (void)unused;
    static const struct step steps[] = { { MIX, 3, 0, 1, 0 }, { CHANGE, 3, 0, 0, 0 },       { CHANGE, 3, 0, 0, 0 },
                                         { MIX, 4, 3, 1, 0 }, { CHANGE, 4, 0, 0, 0 },       { MIX, 5, 4, 1, 0 },
                                         { MIX, 6, 5, 3, 0 }, { MIX, 7, 6, 4, 1u << 3 | 1u << 5 } };
    static const struct plan_item items[] = { { PLAN_RUN, 0 },    { PLAN_RUN, 1 },    { PLAN_RUN, 2 },    { PLAN_RUN, 3 },
                                              { PLAN_DROP, 2 },   { PLAN_RUN, 4 },    { PLAN_RUN, 5 },    { PLAN_DROP, 4 },
                                              { PLAN_REPLAY, 0 }, { PLAN_REPLAY, 1 }, { PLAN_REPLAY, 2 }, { PLAN_RUN, 6 },
                                              { PLAN_REPLAY, 3 }, { PLAN_REPLAY, 4 }, { PLAN_DROP, 2 },   { PLAN_RUN, 7 } };
    leave_everywhere(DEPARTURE(steps, items, 0));
    leave_everywhere(DEPARTURE(steps, items, 4 * LARGE / CORE_FRAME));
}

static void test_counting_can_be_left_anywhere(void **unused)
{
    (void)unused;
    static const struct plan_item items[] = { { PLAN_RUN, 0 }, { PLAN_DROP, 0 }, { PLAN_REPLAY, 0 }, { PLAN_RUN, 1 },
                                              { PLAN_DROP, 0 }, { PLAN_REPLAY, 0 }, { PLAN_RUN, 2 } };
    leave_everywhere(DEPARTURE(counting, items, 0));
}

static void another_operation_leaves(const void *argument)
{
    (void)argument;
    open_memory(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    begin();
    REQUIRE(follow_step(&chain[0]) && follow_step(&chain[1]));
    static const struct step other = { CHANGE, 4, 0, 0, 0 };
    REQUIRE(!follow_step(&other));
    REQUIRE(!follow_is_on());
    check_held();
}
core_test(another_operation_leaves)

/* The same operation on other buffers than in the recording is another operation. */
static void other_buffers_leave(const void *argument)
{
    (void)argument;
    open_memory(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    begin();
    REQUIRE(follow_step(&chain[0]) && follow_step(&chain[1]));
    static const struct step other = { MIX, 5, 3, 2, 0 }; /* reads 3 where the recording read 4 */
    REQUIRE(!follow_step(&other));
    REQUIRE(!follow_is_on());
    check_held();
}
core_test(other_buffers_leave)

static void pinning_what_a_plan_drops_leaves(const void *argument)
{
    (void)argument;
    open_memory(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    begin();
    REQUIRE(follow_step(&chain[0]) && follow_step(&chain[1]));
    space_pin(buffer(3), "a test");
    REQUIRE(!follow_step(&chain[2]));
    REQUIRE_EQUAL(strcmp(follow_trouble(), FOLLOW_PINNED), 0);
    REQUIRE(is_resident(3));
    check_held();
}
core_test(pinning_what_a_plan_drops_leaves)

static void an_iteration_begins_only_where_it_did(const void *argument)
{
    (void)argument;
    open_memory(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    uint64_t signature = state.script.operations[0].signature;
    REQUIRE(!follow_matches_start(signature)); /* the live set lacks the first output */
    hold(3);
    REQUIRE(follow_matches_start(signature));
    REQUIRE(!follow_matches_start(signature + 1));
    REQUIRE(follow_begin(state.stream));
    REQUIRE(!follow_matches_start(signature)); /* one is on */
    follow_leave();
    follow_install(NULL, false, false);
    REQUIRE(!follow_matches_start(signature));
    REQUIRE(follow_script() == NULL);
}
core_test(an_iteration_begins_only_where_it_did)

static void what_is_given_comes_in_at_the_beginning(const void *argument)
{
    (void)argument;
    open_memory(100, FAKE_LATE);
    INSTALL(chain, chain_plan, true);
    REQUIRE(reside_evict(buffer(1), state.stream));
    REQUIRE(!is_resident(1));
    follow_all();
    REQUIRE(is_resident(1) && buffer(1)->host == NULL);
    check_held();
}
core_test(what_is_given_comes_in_at_the_beginning)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_dropped_version_is_gone_and_comes_back),
        cmocka_unit_test(test_after_probation_no_copy_is_kept),
        cmocka_unit_test(test_what_the_program_freed_may_be_kept_for_a_recipe),
        cmocka_unit_test(test_what_the_program_freed_may_be_rebuilt_aside),
        cmocka_unit_test(test_statistics_are_not_updated_twice),
        cmocka_unit_test(test_changes_in_place_are_replayed_in_order),
        cmocka_unit_test(test_a_plan_may_swap),
        cmocka_unit_test(test_another_result_is_put_right_in_probation),
        cmocka_unit_test(test_another_result_stops_the_process_afterwards),
        cmocka_unit_test(test_a_chain_can_be_left_anywhere),
        cmocka_unit_test(test_changes_in_place_can_be_left_anywhere),
        cmocka_unit_test(test_counting_can_be_left_anywhere),
        cmocka_unit_test(test_another_operation_leaves),
        cmocka_unit_test(test_other_buffers_leave),
        cmocka_unit_test(test_pinning_what_a_plan_drops_leaves),
        cmocka_unit_test(test_an_iteration_begins_only_where_it_did),
        cmocka_unit_test(test_what_is_given_comes_in_at_the_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
