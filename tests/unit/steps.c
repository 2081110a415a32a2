#include "tests/unit/steps.h"

#include "shim/engine.h"
#include "shim/proof.h"
#include "shim/reside.h"
#include "shim/swap.h"

void engine_stop(void) /* in place of shim/engine.c */
{
    _exit(STOPPED_STATUS);
}

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

static void run_turn(const void *arguments)
{
    const struct block *a = arguments;
    run_mix(arguments);
    for (uint64_t i = 0; i < WORDS; i++) {
        ((uint64_t *)a->right)[i] = ((uint64_t *)a->right)[i] * 7 + ((uint64_t *)a->left)[i];
    }
}

static fake_kernel *const kernels[STEP_KINDS] = {run_mix, run_change, run_noise, run_count, run_turn};

struct step_state state;

static void open_steps(void)
{
    REQUIRE(space_open());
    state.stream = streams_number(fake_stream());
    REQUIRE(proof_open(state.stream));
    for (uint32_t i = 0; i < STEP_KINDS; i++) {
        state.facts[i] =
            (struct function_facts){.function = fake_function("step", sizeof(struct block), kernels[i], 1000),
                                    .name = "step",
                                    .argument_bytes = sizeof(struct block),
                                    .has_param_info = true};
    }
    for (uint32_t i = 0; i < MAX_BUFFERS; i++) {
        state.buffers[i] = SPACE_NONE;
    }
}

void steps_open(uint32_t cap, enum fake_order order)
{
    core_open_device(cap, cap, true, order);
    open_steps();
}

void steps_open_at(uint32_t cap, enum fake_order order, double copy_bytes_per_ns)
{
    fake_open(&(struct fake_settings){.memory_bytes = (uint64_t)cap * CORE_FRAME,
                                      .granularity = CORE_FRAME,
                                      .order = order,
                                      .copy_bytes_per_ns = copy_bytes_per_ns});
    REQUIRE(frames_open(0, (uint64_t)cap * CORE_FRAME, false));
    open_steps();
}

struct allocation *steps_buffer(uint32_t index)
{
    return space_get(state.buffers[index]);
}

void steps_hold(uint32_t index)
{
    if (state.buffers[index] == SPACE_NONE) {
        CUresult result;
        state.buffers[index] = space_allocate(LARGE, state.stream, &result);
        REQUIRE(state.buffers[index] != SPACE_NONE);
        learn_allocated(steps_buffer(index));
    }
}

/* As engine_free does it. */
static void give_up(uint32_t index)
{
    if (state.buffers[index] == SPACE_NONE) {
        return;
    }
    struct allocation *allocation = steps_buffer(index);
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
        steps_hold(i);
        REQUIRE(frames_acquire(space_place(steps_buffer(i)->home), state.stream, &result));
        core_fill(steps_buffer(i)->base, LARGE, 100 * i, state.stream);
        last_use_note(&space_place(steps_buffer(i)->home)->last, state.stream);
        steps_buffer(i)->is_fresh = false;
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
    if (step->kind != CHANGE && step->kind != NOISE) {
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
    steps_hold(step->out);
    bool has_inputs = step->kind != CHANGE && step->kind != NOISE;
    p->block = (struct block){.out = steps_buffer(step->out)->base,
                              .left = has_inputs ? steps_buffer(step->left)->base : 0,
                              .right = has_inputs ? steps_buffer(step->right)->base : 0,
                              .scalar = state.scalar + (uint64_t)(step - state.steps)};
    p->operation = (struct operation){.kind = OPERATION_LAUNCH,
                                      .stream = streams_handle(state.stream),
                                      .arguments = (unsigned char *)&p->block,
                                      .argument_bytes = sizeof p->block,
                                      .uses = p->uses,
                                      .facts = &state.facts[step->kind],
                                      .config = {.gridDimX = 1,
                                                 .gridDimY = 1,
                                                 .gridDimZ = 1,
                                                 .blockDimX = 1,
                                                 .blockDimY = 1,
                                                 .blockDimZ = 1,
                                                 .hStream = streams_handle(state.stream)},
                                      .forward = forward};
    p->operation.call = &p->operation;
    REQUIRE(launch_find_uses(&p->operation, begin, end));
    uint32_t list[3];
    touches->count = touched_buffers(step, list);
    touches->is_overfull = false;
    for (uint32_t i = 0; i < touches->count; i++) {
        const struct allocation *allocation = steps_buffer(list[i]);
        touches->items[i] =
            (struct touch){.allocation = allocation->index, .is_loaded = true, .was_fresh = allocation->is_fresh};
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
    const struct block block = {.out = (uint64_t)(uintptr_t)state.expected[step->out],
                                .left = (uint64_t)(uintptr_t)state.expected[step->left],
                                .right = (uint64_t)(uintptr_t)state.expected[step->right],
                                .scalar = state.scalar + (uint64_t)(step - state.steps)};
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

void steps_free_all(void)
{
    for (uint32_t i = 3; i < MAX_BUFFERS; i++) {
        give_up(i);
    }
}

void steps_install(const struct step *steps, uint32_t step_count, const struct plan_item *items, uint32_t item_count,
                   bool is_probation)
{
    state.steps = steps;
    state.step_count = step_count;
    make_given();
    learn_begin();
    for (uint32_t i = 0; i < step_count; i++) {
        record_step(&steps[i]);
    }
    steps_free_all();
    REQUIRE(learn_make(0, 0, step_count, state.stream, &state.script, &state.problem));
    learn_stop();
    memcpy(state.items, items, item_count * sizeof *items);
    state.script.plan = (struct plan){.items = state.items, .item_count = item_count, .strategy = "by hand"};
    learn_annotate(&state.script, &state.problem);
    REQUIRE(proof_plan(state.script.print_count, state.stream));
    follow_install(&state.script, is_probation, is_probation);
}

/* ---- following ---- */

bool steps_follow_one(const struct step *step)
{
    static struct touches touches;
    struct prepared p;
    CUresult result;
    free_before(step);
    prepare(step, &p, &touches);
    bool is_done = follow_operation(&p.operation, launch_signature(&p.operation), &touches, state.stream, &result);
    REQUIRE(frames_is_valid() && space_is_valid());
    if (is_done) {
        if (result != CUDA_SUCCESS && fake_has_failed()) {
            _exit(REFUSED_STATUS);
        }
        REQUIRE_EQUAL(result, CUDA_SUCCESS);
        expect_step(step);
    }
    return is_done;
}

void steps_begin(void)
{
    static struct touches touches;
    struct prepared p;
    state.scalar += 1000;
    prepare(&state.steps[0], &p, &touches);
    REQUIRE(follow_matches_start(launch_signature(&p.operation)));
    REQUIRE(follow_begin(state.stream));
}

void steps_follow_all(void)
{
    steps_begin();
    for (uint32_t i = 0; i < state.step_count; i++) {
        REQUIRE(steps_follow_one(&state.steps[i]));
    }
    REQUIRE(follow_is_complete());
    follow_finish();
    REQUIRE(!follow_is_on());
    REQUIRE(follow_trouble() == NULL);
}

void steps_check_held(void)
{
    for (uint32_t i = 0; i < MAX_BUFFERS; i++) {
        if (state.buffers[i] == SPACE_NONE || steps_buffer(i)->is_fresh) {
            continue;
        }
        CUresult result;
        REQUIRE(!steps_buffer(i)->is_dropped);
        REQUIRE_EQUAL(steps_buffer(i)->slot, SPACE_NONE);
        REQUIRE(reside_content(steps_buffer(i), state.stream, &result));
        streams_finished(&space_place(steps_buffer(i)->home)->last);
        driver.cuCtxSynchronize();
        REQUIRE(memcmp((const void *)steps_buffer(i)->base, state.expected[i], LARGE) == 0);
    }
}

uint32_t steps_frames_in_use(void)
{
    return frames_count().created_frames - frames_count().free_frames;
}

bool steps_is_resident(uint32_t index)
{
    return space_place(steps_buffer(index)->home)->is_resident;
}
