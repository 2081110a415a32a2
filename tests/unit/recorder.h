/* Records operations by hand, and makes script and problem of them: for test_learn.c. */
#pragma once
#include "tests/unit/core.h"

#include "shim/learn.h"
#include "shim/proof.h"

#define LARGE (3u * CORE_FRAME)

enum access { READS, WRITES, BEGINS, SPARES_LAST, SPARES_ODD, CHANGES, SETS, REACHES };

struct access_to {
    uint32_t allocation;
    enum access access; /* BEGINS: writes its first half; SPARES_LAST, SPARES_ODD: all but its last byte, every second
                           byte; SETS: every byte, without reading; REACHES: read through a pointer in memory */
};

static struct {
    uint32_t stream;
    struct function_facts facts[8];
    uint64_t next_value;
    struct script script;
    struct policy_problem problem;
} state;

static void open_memory(void)
{
    core_open_device(3000, 3000, false, FAKE_LATE);
    REQUIRE(space_open());
    state.stream = streams_number(fake_stream());
    REQUIRE(proof_open(state.stream));
    for (uint32_t i = 0; i < 8; i++) {
        state.facts[i] = (struct function_facts){
            .function = fake_function("kernel", 8, NULL, 0), .name = "kernel", .has_param_info = true};
    }
}

static uint32_t allocate(uint64_t bytes)
{
    CUresult result;
    uint32_t index = space_allocate(bytes, state.stream, &result);
    REQUIRE(index != SPACE_NONE);
    REQUIRE(frames_acquire(space_place(space_get(index)->home), state.stream, &result));
    learn_allocated(space_get(index));
    return index;
}

static uint32_t allocate_filled(uint64_t bytes)
{
    uint32_t index = allocate(bytes);
    core_fill(space_get(index)->base, bytes, ++state.next_value * 1000, state.stream);
    space_get(index)->is_fresh = false;
    return index;
}

static void give_up(uint32_t index)
{
    learn_freed(space_get(index));
    space_give_place(space_end(index));
}

static struct touch touch_of(const struct access_to *to, bool is_exact)
{
    return (struct touch){.allocation = to->allocation,
                          .is_stored = is_exact && to->access != READS && to->access != REACHES,
                          .is_loaded = to->access != SETS,
                          .is_exact = is_exact,
                          .is_full_write = to->access == SETS,
                          .is_hidden = to->access == REACHES,
                          .was_fresh = space_get(to->allocation)->is_fresh};
}

static void change(const struct access_to *to)
{
    const struct allocation *allocation = space_get(to->allocation);
    CUstream stream = streams_handle(state.stream);
    if (to->access == SPARES_ODD) {
        REQUIRE_EQUAL(driver.cuMemsetD2D8Async(allocation->base, 2, 7, 1, allocation->bytes / 2, stream), CUDA_SUCCESS);
    } else if (to->access == SPARES_LAST) {
        REQUIRE_EQUAL(driver.cuMemsetD8Async(allocation->base, 7, allocation->bytes - 1, stream), CUDA_SUCCESS);
    } else if (to->access != READS && to->access != REACHES) {
        uint64_t bytes = allocation->bytes / (to->access == BEGINS ? 2 : 1);
        core_fill(allocation->base, bytes, ++state.next_value * 1000, state.stream);
    }
    streams_submitted(state.stream);
}

/* Records one operation that does to its allocations what `list` says. */
static uint32_t record(struct operation operation, bool is_exact, const struct access_to *list, uint32_t count)
{
    static struct touches touches;
    struct use uses[8];
    touches.count = count;
    touches.is_overfull = false;
    for (uint32_t i = 0; i < count; i++) {
        struct allocation *allocation = space_get(list[i].allocation);
        if (allocation->is_fresh) {
            proof_fill(allocation->base, allocation->bytes, state.stream);
        }
        touches.items[i] = touch_of(&list[i], is_exact);
        touches.of_use[i] = i;
        uses[i] = (struct use){8 * i, allocation->base};
    }
    operation.uses = uses;
    operation.use_count = count;
    uint32_t index = learn_before(&operation, 0x1000 + learn_count(), &touches, state.stream);
    for (uint32_t i = 0; i < count; i++) {
        change(&list[i]);
        space_get(list[i].allocation)->is_fresh = false;
    }
    learn_after(index, &touches, state.stream);
    return index;
}

#define TO(...)                                                                                                        \
    (const struct access_to[]){__VA_ARGS__}, (sizeof(struct access_to[]){__VA_ARGS__} / sizeof(struct access_to))
#define RUN(kernel, ...)                                                                                               \
    record((struct operation){.kind = OPERATION_LAUNCH, .facts = &state.facts[kernel]}, false, TO(__VA_ARGS__))

static uint32_t copy_to_device(uint32_t destination)
{
    struct copy_arguments copy = {.direction = COPY_HOST_TO_DEVICE, .bytes = space_get(destination)->bytes};
    return record(
        (struct operation){.kind = OPERATION_COPY, .arguments = (unsigned char *)&copy, .argument_bytes = sizeof copy},
        true, TO({destination, SETS}));
}

/* The problem must be one that the planner takes, whatever else is asked of it. */
static void make(uint32_t first, uint32_t count)
{
    struct plan plan = {0};
    char why[256] = "";
    REQUIRE(learn_make(0, first, count, state.stream, &state.script, &state.problem));
    struct policy_options options = {.cap_bytes = 1ull << 40};
    enum policy_status status = policy_make_plan(&state.problem, &options, &plan, NULL, why, sizeof why);
    if (status != POLICY_OK) {
        fprintf(stderr, "the planner: %s\n", why);
    }
    REQUIRE_EQUAL(status, POLICY_OK);
    plan_release(&plan);
    REQUIRE_EQUAL(state.script.operation_count, count);
    REQUIRE_EQUAL(state.problem.operation_count, count);
    REQUIRE_EQUAL(state.problem.version_count, state.script.version_count);
}

/* The script made last gets this plan. */
static void annotate(struct plan_item *items, uint32_t count)
{
    state.script.plan = (struct plan){.items = items, .item_count = count};
    learn_annotate(&state.script, &state.problem);
}

static const struct script_touch *touch(uint32_t operation, uint32_t index)
{
    return &state.script.touches[state.script.operations[operation].first_touch + index];
}

static const struct script_slot *slot(uint32_t operation, uint32_t index)
{
    return &state.script.slots[touch(operation, index)->slot];
}

static bool is_replayable(uint32_t operation)
{
    REQUIRE_EQUAL(state.script.operations[operation].is_replayable,
                  state.problem.operations[operation].replayable_until != 0);
    return state.script.operations[operation].is_replayable;
}

static const struct policy_version *version(uint32_t index)
{
    return &state.problem.versions[index];
}
