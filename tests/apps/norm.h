/* Normalisation layers.
 *
 * BatchNorm, on [batch][channels][spatial], saves mean and 1/std of the batch for the backward pass and
 * updates the running statistics in the same kernel, as a side effect:
 *     running = (1 - momentum) * running + momentum * batch      (variance: the unbiased one)
 * LayerNorm, on [rows][columns], saves mean and 1/std per row. */
#pragma once

struct batch_norm {
    int batch, channels, spatial;
    float momentum;
};

void batch_norm_forward(float *y, const float *x, const float *gamma, const float *beta, float *mean,
                        float *inverse_std, float *running_mean, float *running_variance, struct batch_norm shape);
void batch_norm_evaluate(float *y, const float *x, const float *gamma, const float *beta, const float *running_mean,
                         const float *running_variance, struct batch_norm shape);
void batch_norm_backward(float *dx, float *dgamma, float *dbeta, const float *dy, const float *x, const float *gamma,
                         const float *mean, const float *inverse_std, struct batch_norm shape);

void layer_norm_forward(float *y, float *mean, float *inverse_std, const float *x, const float *gamma,
                        const float *beta, int rows, int columns);
void layer_norm_backward(float *dx, const float *dy, const float *x, const float *gamma, const float *mean,
                         const float *inverse_std, int rows, int columns);
/* Writes both, in two steps with a workspace of its own. */
void layer_norm_backward_affine(float *dgamma, float *dbeta, const float *dy, const float *x, const float *mean,
                                const float *inverse_std, int rows, int columns);
