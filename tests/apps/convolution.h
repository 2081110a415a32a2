/* 3x3 convolution with padding 1 on square images, NCHW, no bias. Weights: [out][in][3][3]. */
#pragma once

struct convolution {
    int batch, in, out, size;
};

void convolution_forward(float *y, const float *x, const float *w, struct convolution shape);
void convolution_backward_data(float *dx, const float *dy, const float *w, struct convolution shape);
/* A fresh tensor, the caller's. Sums per image and band of rows first, then over those in order. */
float *convolution_backward_weight(const float *dy, const float *x, struct convolution shape);
