/* The arithmetic of the small training program. */
#include "tests/unit/network.h"

#include <string.h>

#define WEIGHT_WORDS 64u

static uint64_t *pointer(const struct network_arguments *a, int index)
{
    return (uint64_t *)a->pointers[index];
}

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185ull;
    return x ^ x >> 27;
}

static void run_linear_forward(const struct network_arguments *a)
{
    uint64_t *out = pointer(a, 0);
    const uint64_t *in = pointer(a, 1), *weight = pointer(a, 2);
    for (uint64_t i = 0; i < a->words; i++) {
        out[i] = (in[i] << 7 | in[i] >> 57) * 3 + in[i + 1 < a->words ? i + 1 : 0] + weight[i % WEIGHT_WORDS];
    }
}

static void run_linear_backward(const struct network_arguments *a)
{
    uint64_t *in_gradient = pointer(a, 0), *weight_gradient = pointer(a, 4);
    const uint64_t *out_gradient = pointer(a, 1), *in = pointer(a, 2), *weight = pointer(a, 3);
    for (uint64_t i = 0; i < a->words; i++) {
        in_gradient[i] = out_gradient[i] * (weight[i % WEIGHT_WORDS] | 1) ^ in[i] >> 3;
        weight_gradient[i % WEIGHT_WORDS] += out_gradient[i] * in[i];
    }
}

static uint64_t mean(const uint64_t *in, uint64_t words)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < words; i++) {
        sum += in[i];
    }
    return mixed(sum);
}

static void run_norm_forward(const struct network_arguments *a)
{
    uint64_t *out = pointer(a, 0), *statistics = pointer(a, 2);
    const uint64_t *in = pointer(a, 1);
    uint64_t centre = mean(in, a->words);
    statistics[0] = statistics[0] * 9 + centre;
    statistics[1] += 1;
    for (uint64_t i = 0; i < a->words; i++) {
        out[i] = in[i] - centre;
    }
}

static void run_norm_evaluate(const struct network_arguments *a)
{
    uint64_t *out = pointer(a, 0);
    const uint64_t *in = pointer(a, 1), *statistics = pointer(a, 2);
    for (uint64_t i = 0; i < a->words; i++) {
        out[i] = in[i] - statistics[0];
    }
}

static void run_norm_backward(const struct network_arguments *a)
{
    uint64_t *in_gradient = pointer(a, 0);
    const uint64_t *out_gradient = pointer(a, 1), *in = pointer(a, 2);
    uint64_t centre = mean(in, a->words);
    for (uint64_t i = 0; i < a->words; i++) {
        in_gradient[i] = out_gradient[i] * 5 - (in[i] ^ centre);
    }
}

static void run_activate(const struct network_arguments *a)
{
    uint64_t *values = pointer(a, 0);
    for (uint64_t i = 0; i < a->words; i++) {
        values[i] = values[i] >> 63 ? values[i] >> 1 : values[i] * 3;
    }
}

static void run_activate_backward(const struct network_arguments *a)
{
    uint64_t *gradient = pointer(a, 0);
    const uint64_t *out = pointer(a, 1);
    for (uint64_t i = 0; i < a->words; i++) {
        gradient[i] = out[i] & 1 ? gradient[i] : gradient[i] + out[i];
    }
}

static void run_dropout_forward(const struct network_arguments *a)
{
    uint64_t *out = pointer(a, 0), *mask = pointer(a, 1);
    const uint64_t *in = pointer(a, 2);
    for (uint64_t i = 0; i < a->words; i++) {
        mask[i] = mixed(a->scalars[0] * 0x9e3779b97f4a7c15ull + a->scalars[1] + i);
        out[i] = in[i] & mask[i];
    }
}

static void run_dropout_backward(const struct network_arguments *a)
{
    uint64_t *in_gradient = pointer(a, 0);
    const uint64_t *out_gradient = pointer(a, 1), *mask = pointer(a, 2);
    for (uint64_t i = 0; i < a->words; i++) {
        in_gradient[i] = out_gradient[i] & mask[i];
    }
}

static void run_loss_forward(const struct network_arguments *a)
{
    *pointer(a, 0) = mean(pointer(a, 1), a->words);
}

static void run_loss_backward(const struct network_arguments *a)
{
    uint64_t *gradient = pointer(a, 0);
    const uint64_t *in = pointer(a, 1), *loss = pointer(a, 2);
    for (uint64_t i = 0; i < a->words; i++) {
        gradient[i] = in[i] * 7 + *loss;
    }
}

static void run_optimise(const struct network_arguments *a)
{
    uint64_t *weight = pointer(a, 0), *momentum = pointer(a, 1);
    const uint64_t *gradient = pointer(a, 2);
    for (uint64_t i = 0; i < WEIGHT_WORDS; i++) {
        momentum[i] = momentum[i] * 9 + gradient[i];
        weight[i] += mixed(momentum[i]) * a->scalars[0];
    }
}

static void run_noise(const struct network_arguments *a)
{
    static uint64_t drawn;
    uint64_t *out = pointer(a, 0);
    drawn++;
    for (uint64_t i = 0; i < a->words; i++) {
        out[i] = mixed(drawn + i * i);
    }
}

static void run_noise_sum(const struct network_arguments *a)
{
    *pointer(a, 0) = mean(pointer(a, 1), a->words);
}

static void run_add_mean(const struct network_arguments *a)
{
    *pointer(a, 0) += mean(pointer(a, 1), a->words);
}

static void run_noise_check(const struct network_arguments *a)
{
    *pointer(a, 0) += *pointer(a, 1) != mean(pointer(a, 2), a->words);
}

static void run_store_pointer(const struct network_arguments *a)
{
    *pointer(a, 0) = a->pointers[1];
}

static void run_change_through(const struct network_arguments *a)
{
    uint64_t *values = (uint64_t *)*pointer(a, 0);
    for (uint64_t i = 0; i < a->words; i++) {
        values[i] = values[i] * 3 + a->scalars[0] + i;
    }
}

static void run_read_through(const struct network_arguments *a)
{
    const uint64_t *values = (const uint64_t *)*pointer(a, 1);
    *pointer(a, 0) += mean(values, a->words);
}

/* Both outputs depend on what `other` held. */
static void run_turn_over(const struct network_arguments *a)
{
    uint64_t *out = pointer(a, 0), *other = pointer(a, 1);
    const uint64_t *in = pointer(a, 2);
    for (uint64_t i = 0; i < a->words; i++) {
        out[i] = (other[i] << 3 | other[i] >> 61) + in[i];
        other[i] = other[i] * 3 + in[i];
    }
}

/* ---- pieces ---- */

/* Up to 8 bytes of a row. */
static size_t chunk(const struct network_arguments *a, uint64_t at)
{
    return a->pointers[3] - at < 8 ? a->pointers[3] - at : 8;
}

static void write_rows(const struct network_arguments *a, uint64_t width)
{
    const uint64_t *in = pointer(a, 1);
    for (uint64_t row = 0; row < a->words; row++) {
        for (uint64_t at = 0; at < width; at += 8) {
            uint64_t value = mixed(in[(row * 7 + at / 8) % WEIGHT_WORDS] + a->scalars[0] * 77 + row * 131 + at);
            size_t left = width - at;
            memcpy((unsigned char *)pointer(a, 0) + row * a->pointers[4] + at, &value, left < 8 ? left : 8);
        }
    }
}

static void run_write_piece(const struct network_arguments *a)
{
    write_rows(a, a->pointers[3]);
}

static void run_write_some(const struct network_arguments *a)
{
    bool varies = a->scalars[1] >> 32 & 1;
    write_rows(a, a->pointers[3] - (varies ? mixed(*pointer(a, 1)) % (a->pointers[3] / 2 + 1) : 0));
}

static void run_change_piece(const struct network_arguments *a)
{
    for (uint64_t row = 0; row < a->words; row++) {
        for (uint64_t at = 0; at < a->pointers[3]; at += 8) {
            unsigned char *bytes = (unsigned char *)pointer(a, 0) + row * a->pointers[4] + at;
            uint64_t value = 0;
            memcpy(&value, bytes, chunk(a, at));
            value = value * 3 + row + at + a->scalars[0];
            memcpy(bytes, &value, chunk(a, at));
        }
    }
}

static void run_read_piece(const struct network_arguments *a)
{
    uint64_t sum = 0;
    for (uint64_t row = 0; row < a->words; row++) {
        for (uint64_t at = 0; at < a->pointers[3]; at += 8) {
            uint64_t value = 0;
            memcpy(&value, (unsigned char *)pointer(a, 1) + row * a->pointers[4] + at, chunk(a, at));
            sum = (sum << 5 | sum >> 59) + value;
        }
    }
    *pointer(a, 0) += mixed(sum);
}

/* One entry per kernel, of the type that the driver calls. */
#define K(name, stored, loaded, time)                                                                                  \
    static void entry_##name(const void *arguments)                                                                    \
    {                                                                                                                  \
        run_##name(arguments);                                                                                         \
    }
NETWORK_KERNELS(K)
#undef K

network_kernel_run *network_kernel(uint32_t kernel)
{
    static network_kernel_run *const entries[] = {
#define K(name, stored, loaded, time) entry_##name,
        NETWORK_KERNELS(K)
#undef K
    };
    return entries[kernel];
}
