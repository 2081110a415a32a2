#include "policy/generate.h"
#include "policy/random.h"
#include <stdlib.h>

enum { MOST_TAPES = 2, NUMBERS = 5, SHARES = 4 };

/* How numbers are spread: 1 to 20; as many between 1 and 10 as between 10,000 and 100,000; one for all; few different
 * ones, zero among them; small but for one in five. */
static uint64_t draw_number(uint64_t *seed, uint32_t kind)
{
    switch (kind) {
    case 0:
        return 1 + random_below(seed, 20);
    case 1: {
        uint32_t decade = 1;
        for (uint32_t k = random_below(seed, 5); k; k--)
            decade *= 10;
        return decade + random_below(seed, 9 * decade);
    }
    case 2:
        return 100;
    case 3:
        return 5 * random_below(seed, 3);
    default:
        return random_below(seed, 5) ? 1 + random_below(seed, 3) : 500 + random_below(seed, 500);
    }
}

struct varied_step {
    uint32_t weight, input, output; /* weight: POLICY_NONE where there is none */
    uint32_t tapes[MOST_TAPES], tape_count;
};

struct varied {
    struct problem_builder *b;
    uint32_t sizes, times; /* kinds of numbers */
    uint64_t seed;
};

static void add_workspace(struct varied *x, uint32_t operation)
{
    if (!x->b->has_failed && !random_below(&x->seed, 3))
        x->b->problem.operations[operation].workspace_bytes = draw_number(&x->seed, x->sizes);
}

static void add_forward(struct varied *x, struct varied_step *step)
{
    struct problem_builder *b = x->b;
    step->weight = random_below(&x->seed, 3) ? POLICY_NONE : builder_input(b, draw_number(&x->seed, x->sizes));
    if (step->weight != POLICY_NONE && !b->has_failed)
        b->problem.versions[step->weight].droppable_from = POLICY_NONE;
    add_workspace(x, builder_operation(b, draw_number(&x->seed, x->times)));
    builder_read(b, step->input);
    if (step->weight != POLICY_NONE)
        builder_read(b, step->weight);
    step->output = builder_write(b, draw_number(&x->seed, x->sizes));
    step->tape_count = random_below(&x->seed, MOST_TAPES + 1);
    for (uint32_t k = 0; k < step->tape_count; k++)
        step->tapes[k] = builder_write(b, draw_number(&x->seed, x->sizes));
}

/* Reads the tapes, and often the input and the output as well; makes the gradient of the input and, where the step has
 * a weight, that of the weight, which stays. */
static uint32_t add_backward(struct varied *x, const struct varied_step *step, uint32_t gradient)
{
    struct problem_builder *b = x->b;
    add_workspace(x, builder_operation(b, draw_number(&x->seed, x->times)));
    if (gradient != POLICY_NONE)
        builder_read(b, gradient);
    for (uint32_t k = 0; k < step->tape_count; k++)
        builder_read(b, step->tapes[k]);
    if (!step->tape_count || random_below(&x->seed, SHARES))
        builder_read(b, step->input);
    if (gradient == POLICY_NONE || !random_below(&x->seed, 2))
        builder_read(b, step->output);
    uint32_t made = builder_write(b, draw_number(&x->seed, x->sizes));
    if (step->weight != POLICY_NONE) {
        builder_read(b, step->weight);
        uint32_t kept = builder_write(b, draw_number(&x->seed, x->sizes));
        if (!b->has_failed)
            b->problem.versions[kept].is_kept = true;
    }
    return made;
}

void generate_varied_chain(struct problem_builder *b, uint32_t steps, uint64_t seed)
{
    struct varied x = {.b = b, .seed = seed};
    struct varied_step *all = calloc((size_t)steps + 1, sizeof *all);
    if (!all) {
        b->has_failed = true;
        return;
    }
    x.sizes = random_below(&x.seed, NUMBERS);
    x.times = random_below(&x.seed, NUMBERS);
    uint32_t value = builder_input(b, draw_number(&x.seed, x.sizes)), gradient = POLICY_NONE;
    for (uint32_t k = 0; k < steps; k++) {
        all[k].input = value;
        add_forward(&x, &all[k]);
        value = all[k].output;
    }
    for (uint32_t k = steps; k-- > 0;)
        gradient = add_backward(&x, &all[k], gradient);
    if (!b->has_failed && gradient != POLICY_NONE)
        b->problem.versions[gradient].is_kept = true;
    free(all);
}
