/* Synthetic problems: the shapes of training iterations, and random ones. All deterministic. */
#pragma once
#include "policy/builder.h"

/* Forward n steps, loss, backward n steps; the backward of step k reads the output of k - 1 and of k. */
void generate_chain(struct problem_builder *b, uint32_t steps, uint64_t bytes, uint64_t forward_ns,
                    uint64_t backward_ns);
/* The same with random sizes and durations. */
void generate_random_chain(struct problem_builder *b, uint32_t steps, uint64_t seed);
/* Chains of many kinds: up to two tapes per step besides its output, weights and their gradients, workspace; the
 * backward of a step reads some of these. Sizes and durations are each spread in one of five ways. */
void generate_varied_chain(struct problem_builder *b, uint32_t steps, uint64_t seed);

/* The chain of Griewank and Walther's Revolve: the backward of step k reads the input of step k alone and takes
 * one unit to run the step again within itself. The input is always there; s slots, the input's included, and
 * the two ends of a running step make a cap of s + 2 units. */
void generate_revolve_chain(struct problem_builder *b, uint32_t steps, uint64_t bytes, uint64_t forward_ns);

/* A residual network as an autograd without a caching allocator runs it: per block convolution, BatchNorm,
 * ReLU, convolution, BatchNorm, addition, ReLU; backward in reverse; SGD with momentum at the end. */
struct generate_resnet {
    uint32_t blocks;
    uint64_t activation_bytes, weight_bytes;
    uint64_t convolution_ns, pointwise_ns;
};
void generate_resnet(struct problem_builder *b, const struct generate_resnet *shape);

/* An unrolled recurrent network: per step two products, gates, cell and hidden state; loss at every step;
 * weight gradients accumulated in place. */
void generate_recurrent(struct problem_builder *b, uint32_t steps, uint64_t bytes, uint64_t weight_bytes);

/* Random graphs with everything a problem may have: several outputs, in-place chains, pinned and late
 * droppable versions, operations that cannot be replayed (or only for a while), kept and swappable versions. */
struct generate_random {
    uint32_t operations, inputs;
    uint32_t max_reads, max_writes, max_bytes, max_ns;
    uint32_t per_mille_in_place, per_mille_fixed, per_mille_pinned, per_mille_kept, per_mille_swappable;
    uint64_t seed;
};
void generate_random(struct problem_builder *b, const struct generate_random *shape);

/* A random network and its training: `layers` forward operations that read one to three earlier results, some with two
 * results or in place, then the backward operations in reverse order, each of which reads what its layer read and made
 * and the gradients of the layer's results. */
void generate_training(struct problem_builder *b, uint32_t layers, uint64_t seed);

/* All of them by one word, KIND:SIZE[:SEED], for command lines. */
bool generate_is_name(const char *name);
/* False, with one line in `why`, where the word is malformed or memory ran out. */
bool generate_named(struct problem_builder *b, const char *name, char *why, size_t why_bytes);
