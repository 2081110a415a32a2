/* What persists from iteration to iteration: weights, optimiser state, running statistics.
 *
 * Everything made here is in one list, in order of making, and counts in state_hash(). A parameter's
 * gradient does not persist: the backward pass makes it, parameters_drop_gradients() frees it. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <vector>

#define PARAMETER_MAX_MOMENTS 2

struct parameter {
    float *value;
    float *moment[PARAMETER_MAX_MOMENTS]; /* optimiser state, zero at first; NULL where not asked for */
    float *gradient;                      /* NULL outside backward pass and optimiser step */
    size_t count;
};

/* Persistent floats, all equal to `value` at first; freed by state_release(). */
float *state_make(size_t count, float value);
/* 64 bits over all persistent buffers in order of making. Waits for the device. */
uint64_t state_hash(void);
void state_release(void);

/* Uniform in [centre - spread, centre + spread); the draw depends on how many parameters came before. */
struct parameter *parameter_make(size_t count, float centre, float spread, int moments);
/* Takes ownership of a fresh gradient tensor: the first one is kept, later ones are added to it and freed. */
void parameter_add_gradient(struct parameter *parameter, float *gradient);

const std::vector<struct parameter *> &parameters(void);
void parameters_drop_gradients(void);
