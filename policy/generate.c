#include "policy/generate.h"
#include "policy/random.h"
#include <stdlib.h>

static bool draw_chance(uint64_t *state, uint32_t per_mille)
{
    return random_below(state, 1000) < per_mille;
}

struct step_shape {
    uint64_t bytes, forward_ns, backward_ns;
};

static void write_chain(struct problem_builder *b, const struct step_shape *steps, uint32_t count)
{
    if (!count)
        return;
    uint32_t *outputs = malloc(sizeof *outputs * ((size_t)count + 1));
    if (!outputs) {
        b->has_failed = true;
        return;
    }
    outputs[0] = builder_input(b, steps[0].bytes);
    for (uint32_t k = 0; k < count; k++) {
        builder_operation(b, steps[k].forward_ns);
        builder_read(b, outputs[k]);
        outputs[k + 1] = builder_write(b, steps[k].bytes);
    }
    uint32_t gradient = POLICY_NONE;
    for (uint32_t k = count; k-- > 0;) {
        builder_operation(b, steps[k].backward_ns);
        builder_read(b, outputs[k]);
        builder_read(b, outputs[k + 1]);
        if (gradient != POLICY_NONE)
            builder_read(b, gradient);
        gradient = builder_write(b, steps[k].bytes);
    }
    if (!b->has_failed && count)
        b->problem.versions[gradient].is_kept = true;
    free(outputs);
}

static void generate_steps(struct problem_builder *b, uint32_t count, const struct step_shape *fixed, uint64_t seed)
{
    struct step_shape *steps = malloc(sizeof *steps * ((size_t)count + 1));
    if (!steps) {
        b->has_failed = true;
        return;
    }
    for (uint32_t k = 0; k < count; k++)
        steps[k] = fixed ? *fixed
                         : (struct step_shape){1 + random_below(&seed, 20), 1 + random_below(&seed, 20),
                                               1 + random_below(&seed, 40)};
    write_chain(b, steps, count);
    free(steps);
}

void generate_chain(struct problem_builder *b, uint32_t steps, uint64_t bytes, uint64_t forward_ns,
                    uint64_t backward_ns)
{
    generate_steps(b, steps, &(struct step_shape){bytes, forward_ns, backward_ns}, 0);
}

void generate_random_chain(struct problem_builder *b, uint32_t steps, uint64_t seed)
{
    generate_steps(b, steps, NULL, seed);
}

void generate_revolve_chain(struct problem_builder *b, uint32_t steps, uint64_t bytes, uint64_t forward_ns)
{
    uint32_t *inputs = malloc(sizeof *inputs * ((size_t)steps + 1)), gradient = POLICY_NONE;
    if (!inputs) {
        b->has_failed = true;
        return;
    }
    inputs[0] = builder_input(b, bytes);
    if (!b->has_failed)
        b->problem.versions[inputs[0]].droppable_from = POLICY_NONE;
    for (uint32_t k = 1; k < steps; k++) {
        builder_operation(b, forward_ns);
        builder_read(b, inputs[k - 1]);
        inputs[k] = builder_write(b, bytes);
    }
    for (uint32_t k = steps; k-- > 0;) {
        uint32_t o = builder_operation(b, forward_ns);
        builder_read(b, inputs[k]);
        if (gradient != POLICY_NONE)
            builder_read(b, gradient);
        gradient = builder_write(b, 0);
        if (!b->has_failed)
            b->problem.operations[o].workspace_bytes = bytes;
    }
    free(inputs);
}

/* One parameter: the weight, its momentum, and its gradient once there. */
struct parameter {
    uint32_t weight, momentum, gradient;
};

static struct parameter add_parameter(struct problem_builder *b, uint64_t bytes)
{
    return (struct parameter){builder_input(b, bytes), builder_input(b, bytes), POLICY_NONE};
}

static void keep(struct problem_builder *b, uint32_t version)
{
    if (b->has_failed)
        return;
    b->problem.versions[version].is_kept = true;
    b->problem.versions[version].droppable_from = POLICY_NONE;
}

static void pin(struct problem_builder *b, uint32_t version)
{
    if (!b->has_failed)
        b->problem.versions[version].droppable_from = POLICY_NONE;
}

static void update(struct problem_builder *b, struct parameter *parameter, uint64_t nanoseconds)
{
    builder_operation(b, nanoseconds);
    builder_read(b, parameter->gradient);
    pin(b, parameter->weight);
    pin(b, parameter->momentum);
    keep(b, builder_replace(b, parameter->weight));
    keep(b, builder_replace(b, parameter->momentum));
}

/* A convolution with BatchNorm: what its backward pass reads. */
struct layer {
    uint32_t input, output, statistics;
    struct parameter parameter;
};

static uint32_t forward_layer(struct problem_builder *b, const struct generate_resnet *s, struct layer *layer,
                              uint32_t input)
{
    layer->input = input;
    layer->parameter = add_parameter(b, s->weight_bytes);
    builder_operation(b, s->convolution_ns);
    builder_read(b, input);
    builder_read(b, layer->parameter.weight);
    layer->output = builder_write(b, s->activation_bytes);
    builder_operation(b, s->pointwise_ns);
    builder_read(b, layer->output);
    layer->statistics = builder_write(b, s->weight_bytes / 64 + 1);
    builder_operation(b, s->pointwise_ns);
    builder_read(b, layer->output);
    builder_read(b, layer->statistics);
    return builder_write(b, s->activation_bytes);
}

static uint32_t pointwise(struct problem_builder *b, const struct generate_resnet *s, uint32_t first, uint32_t second)
{
    builder_operation(b, s->pointwise_ns);
    builder_read(b, first);
    if (second != POLICY_NONE)
        builder_read(b, second);
    return builder_write(b, s->activation_bytes);
}

static uint32_t backward_layer(struct problem_builder *b, const struct generate_resnet *s, struct layer *layer,
                               uint32_t gradient)
{
    builder_operation(b, s->pointwise_ns * 2);
    builder_read(b, gradient);
    builder_read(b, layer->output);
    builder_read(b, layer->statistics);
    uint32_t inner = builder_write(b, s->activation_bytes);
    builder_operation(b, s->convolution_ns);
    builder_read(b, inner);
    builder_read(b, layer->input);
    layer->parameter.gradient = builder_write(b, s->weight_bytes);
    builder_operation(b, s->convolution_ns);
    builder_read(b, inner);
    builder_read(b, layer->parameter.weight);
    return builder_write(b, s->activation_bytes);
}

struct block {
    struct layer first, second;
    uint32_t middle, output;
};

void generate_resnet(struct problem_builder *b, const struct generate_resnet *s)
{
    struct block *blocks = calloc((size_t)s->blocks + 1, sizeof *blocks);
    if (!blocks) {
        b->has_failed = true;
        return;
    }
    uint32_t x = builder_input(b, s->activation_bytes);
    for (uint32_t k = 0; k < s->blocks; k++) {
        struct block *block = &blocks[k];
        block->middle = pointwise(b, s, forward_layer(b, s, &block->first, x), POLICY_NONE);
        uint32_t sum = pointwise(b, s, forward_layer(b, s, &block->second, block->middle), x);
        x = block->output = pointwise(b, s, sum, POLICY_NONE);
    }
    uint32_t gradient = pointwise(b, s, x, POLICY_NONE);
    for (uint32_t k = s->blocks; k-- > 0;) {
        struct block *block = &blocks[k];
        uint32_t outer = pointwise(b, s, gradient, block->output);
        uint32_t inner = backward_layer(b, s, &block->second, outer);
        inner = backward_layer(b, s, &block->first, pointwise(b, s, inner, block->middle));
        gradient = pointwise(b, s, inner, outer);
    }
    for (uint32_t k = 0; k < s->blocks; k++) {
        update(b, &blocks[k].first.parameter, s->pointwise_ns / 4);
        update(b, &blocks[k].second.parameter, s->pointwise_ns / 4);
    }
    free(blocks);
}

struct cell {
    uint32_t products, gates, state, squashed, hidden;
};

static void forward_cell(struct problem_builder *b, struct cell *cell, const struct cell *last, uint32_t weights,
                         uint64_t bytes)
{
    uint32_t input = builder_input(b, bytes);
    pin(b, input);
    builder_operation(b, 400);
    builder_read(b, input);
    builder_read(b, weights);
    if (last)
        builder_read(b, last->hidden);
    cell->products = builder_write(b, 4 * bytes);
    builder_operation(b, 40);
    builder_read(b, cell->products);
    cell->gates = builder_write(b, 4 * bytes);
    builder_operation(b, 20);
    builder_read(b, cell->gates);
    if (last)
        builder_read(b, last->state);
    cell->state = builder_write(b, bytes);
    builder_operation(b, 10);
    builder_read(b, cell->state);
    cell->squashed = builder_write(b, bytes);
    builder_operation(b, 10);
    builder_read(b, cell->squashed);
    builder_read(b, cell->gates);
    cell->hidden = builder_write(b, bytes);
}

void generate_recurrent(struct problem_builder *b, uint32_t steps, uint64_t bytes, uint64_t weight_bytes)
{
    struct cell *cells = calloc((size_t)steps + 1, sizeof *cells);
    if (!cells) {
        b->has_failed = true;
        return;
    }
    struct parameter weights = add_parameter(b, weight_bytes);
    for (uint32_t k = 0; k < steps; k++)
        forward_cell(b, &cells[k], k ? &cells[k - 1] : NULL, weights.weight, bytes);
    uint32_t down = POLICY_NONE, inner;
    for (uint32_t k = steps; k-- > 0;) {
        builder_operation(b, 60);
        builder_read(b, cells[k].gates);
        builder_read(b, cells[k].squashed);
        if (k)
            builder_read(b, cells[k - 1].state);
        if (down != POLICY_NONE)
            builder_read(b, down);
        inner = builder_write(b, 4 * bytes);
        builder_operation(b, 400);
        builder_read(b, inner);
        if (k)
            builder_read(b, cells[k - 1].hidden);
        weights.gradient =
            weights.gradient == POLICY_NONE ? builder_write(b, weight_bytes) : builder_replace(b, weights.gradient);
        builder_operation(b, 400);
        builder_read(b, inner);
        builder_read(b, weights.weight);
        down = builder_write(b, 2 * bytes);
    }
    update(b, &weights, 10);
    free(cells);
}

/* Versions of a random problem that the program may still read. */
struct live_list {
    uint32_t *versions;
    uint32_t count;
};

static void forget(struct live_list *live, uint32_t slot)
{
    live->versions[slot] = live->versions[--live->count];
}

static void dress_version(struct problem_builder *b, const struct generate_random *s, uint32_t v, uint64_t *seed)
{
    struct policy_version *version = &b->problem.versions[v];
    version->is_kept = draw_chance(seed, s->per_mille_kept);
    version->is_swappable = draw_chance(seed, s->per_mille_swappable);
    if (draw_chance(seed, s->per_mille_pinned))
        version->droppable_from = random_below(seed, 3) ? random_below(seed, s->operations + 1) : POLICY_NONE;
}

static void add_random_operation(struct problem_builder *b, const struct generate_random *s, struct live_list *live,
                                 uint64_t *seed)
{
    uint32_t o = builder_operation(b, random_below(seed, s->max_ns + 1));
    uint32_t reads = random_below(seed, s->max_reads + 1), writes = 1 + random_below(seed, s->max_writes);
    for (uint32_t k = 0; k < reads && live->count; k++) {
        bool is_recent = random_below(seed, 2) && live->count > 4;
        uint32_t slot = is_recent ? live->count - 1 - random_below(seed, 4) : random_below(seed, live->count);
        builder_read(b, live->versions[slot]);
    }
    struct policy_operation *op = &b->problem.operations[o];
    if (draw_chance(seed, s->per_mille_fixed))
        op->replayable_until = random_below(seed, 3) ? random_below(seed, s->operations + 1) : 0;
    op->workspace_bytes = random_below(seed, 4) ? 0 : random_below(seed, s->max_bytes);
    op->scratch_bytes = random_below(seed, 4) ? 0 : random_below(seed, s->max_bytes);
    for (uint32_t k = 0; k < writes; k++) {
        uint32_t version;
        uint32_t slot = random_below(seed, live->count);
        if (live->count && draw_chance(seed, s->per_mille_in_place) && k == 0 &&
            b->problem.versions[live->versions[slot]].producer != o) {
            uint32_t old = live->versions[slot];
            version = builder_replace(b, old);
            b->problem.versions[old].is_kept = false;
            forget(live, slot);
        } else {
            version = builder_write(b, random_below(seed, s->max_bytes + 1));
        }
        dress_version(b, s, version, seed);
        live->versions[live->count++] = version;
    }
}

void generate_random(struct problem_builder *b, const struct generate_random *s)
{
    struct live_list live = {calloc((size_t)s->operations * (s->max_writes + 1) + s->inputs + 1, sizeof(uint32_t)), 0};
    uint64_t seed = s->seed;
    if (!live.versions) {
        b->has_failed = true;
        return;
    }
    b->problem.out_bytes_per_ns = b->problem.in_bytes_per_ns = s->per_mille_swappable ? 0.5 : 0;
    b->problem.fixed_bytes = random_below(&seed, s->max_bytes + 1);
    for (uint32_t k = 0; k < s->inputs; k++) {
        uint32_t v = builder_input(b, random_below(&seed, s->max_bytes + 1));
        dress_version(b, s, v, &seed);
        live.versions[live.count++] = v;
    }
    for (uint32_t o = 0; o < s->operations; o++)
        add_random_operation(b, s, &live, &seed);
    free(live.versions);
}
