/* The element-wise part of an LSTM step, fused. Gates: [batch][4][hidden] in the order i, f, g, o. */
#pragma once

/* From the two linear maps' sums: activated gates (kept for backward), next cell and next hidden state. */
void lstm_cell_forward(float *gates, float *cell, float *hidden, const float *from_input, const float *from_hidden,
                       const float *previous_cell, int batch, int hidden_size);
/* dcell may be NULL (zeros, the last step). Gives the gradient of the gates' sums and of the previous cell. */
void lstm_cell_backward(float *dgates, float *dprevious_cell, const float *dhidden, const float *dcell,
                        const float *gates, const float *previous_cell, const float *cell, int batch, int hidden_size);
