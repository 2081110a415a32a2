/* Optimiser steps over all parameters that have a gradient; gradients are freed after the last update. */
#pragma once

/* moment[0] = momentum * moment[0] + gradient; value -= rate * moment[0] */
void sgd_step(float rate, float momentum);
/* Adam without weight decay; `step` counts from 1 and is a kernel argument (bias correction on the device). */
void adam_step(float rate, int step);
