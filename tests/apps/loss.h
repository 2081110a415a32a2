/* Losses, averaged over rows; each writes one float on the device, summed in a fixed order. */
#pragma once

/* log_probability is what the backward pass reads; logits are not needed any more. */
void log_softmax_forward(float *log_probability, const float *logits, int rows, int classes);
/* *loss = mean of -log_probability[row][label[row]] */
void negative_log_likelihood(float *loss, const float *log_probability, const int *label, int rows, int classes);
void cross_entropy_backward(float *dlogits, const float *log_probability, const int *label, int rows, int classes);

/* *loss = mean of (prediction - target)^2 */
void squared_error(float *loss, const float *prediction, const float *target, int count);
void squared_error_backward(float *dprediction, const float *prediction, const float *target, int count);
