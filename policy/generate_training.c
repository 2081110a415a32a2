#include "policy/generate.h"
#include "policy/random.h"
#include <stdlib.h>

enum { MOST_INPUTS = 3 };

/* What the backward operation of a layer needs. */
struct training_layer {
    uint32_t inputs[MOST_INPUTS], input_count; /* places in `values` */
    uint32_t outputs[2], output_count;         /* places in `values` */
};

/* A value of the forward pass and its gradient once there. */
struct training_value {
    uint32_t version, gradient;
};

struct training {
    struct problem_builder *b;
    struct training_layer *layers;
    struct training_value *values;
    uint32_t value_count;
    uint64_t seed;
};

static uint32_t add_value(struct training *t, uint32_t version)
{
    t->values[t->value_count] = (struct training_value){version, POLICY_NONE};
    return t->value_count++;
}

/* Mostly the newest value: networks are deep. */
static uint32_t choose_value(struct training *t)
{
    uint32_t back = random_below(&t->seed, 10) < 7 ? 1 : 1 + random_below(&t->seed, t->value_count);
    return t->value_count - (back > t->value_count ? t->value_count : back);
}

static bool is_input(const struct training_layer *layer, uint32_t value)
{
    for (uint32_t k = 0; k < layer->input_count; k++)
        if (layer->inputs[k] == value)
            return true;
    return false;
}

static void add_forward(struct training *t, struct training_layer *layer)
{
    uint32_t reads = 1 + random_below(&t->seed, 3) / 2 + random_below(&t->seed, 8) / 7;
    builder_operation(t->b, 5 + random_below(&t->seed, 26));
    for (uint32_t k = 0; k < reads; k++) {
        uint32_t value = choose_value(t);
        if (is_input(layer, value))
            continue;
        layer->inputs[layer->input_count++] = value;
        builder_read(t->b, t->values[value].version);
    }
    layer->output_count = random_below(&t->seed, 5) ? 1 : 2;
    for (uint32_t k = 0; k < layer->output_count; k++)
        layer->outputs[k] = add_value(t, builder_write(t->b, 1 + random_below(&t->seed, 20)));
}

static void add_backward(struct training *t, const struct training_layer *layer)
{
    bool reads_outputs = random_below(&t->seed, 2);
    builder_operation(t->b, 5 + random_below(&t->seed, 56));
    for (uint32_t k = 0; k < layer->input_count; k++)
        builder_read(t->b, t->values[layer->inputs[k]].version);
    for (uint32_t k = 0; k < layer->output_count; k++) {
        struct training_value *output = &t->values[layer->outputs[k]];
        if (reads_outputs)
            builder_read(t->b, output->version);
        if (output->gradient != POLICY_NONE)
            builder_read(t->b, output->gradient);
    }
    for (uint32_t k = 0; k < layer->input_count; k++) {
        struct training_value *input = &t->values[layer->inputs[k]];
        if (t->b->has_failed)
            return;
        uint64_t bytes = t->b->problem.versions[input->version].bytes;
        input->gradient =
            input->gradient == POLICY_NONE ? builder_write(t->b, bytes) : builder_replace(t->b, input->gradient);
    }
}

void generate_training(struct problem_builder *b, uint32_t layers, uint64_t seed)
{
    struct training t = {.b = b,
                         .layers = calloc((size_t)layers + 1, sizeof *t.layers),
                         .values = calloc(2 * (size_t)layers + 2, sizeof *t.values),
                         .seed = seed};
    if (!t.layers || !t.values) {
        b->has_failed = true;
    } else {
        add_value(&t, builder_input(b, 1 + random_below(&t.seed, 20)));
        for (uint32_t k = 0; k < layers; k++)
            add_forward(&t, &t.layers[k]);
        for (uint32_t k = layers; k-- > 0;)
            add_backward(&t, &t.layers[k]);
        if (!b->has_failed)
            b->problem
                .versions[t.values[0].gradient == POLICY_NONE ? b->problem.version_count - 1 : t.values[0].gradient]
                .is_kept = true;
    }
    free(t.layers);
    free(t.values);
}
