/* Global average pooling: one mean per plane of `spatial` elements. */
#pragma once

void pool_forward(float *y, const float *x, int planes, int spatial);
void pool_backward(float *dx, const float *dy, int planes, int spatial);
