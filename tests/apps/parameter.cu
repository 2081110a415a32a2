#include "tests/apps/parameter.h"
#include "tests/apps/device.h"
#include "tests/apps/elementwise.h"
#include "tests/apps/random.h"
#include <string.h>

struct state_buffer {
    float *data;
    size_t count;
};

static struct {
    std::vector<struct state_buffer> buffers;
    std::vector<struct parameter *> parameters;
} state;

float *state_make(size_t count, float value)
{
    float *data = device_make<float>(count);
    state.buffers.push_back({data, count});
    if (value == 0.0f) {
        device_clear(data, count);
    } else {
        std::vector<float> host(count, value);
        device_write(data, host.data(), count);
    }
    return data;
}

uint64_t state_hash(void)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const struct state_buffer &buffer : state.buffers) {
        std::vector<float> host(buffer.count);
        device_read(host.data(), buffer.data, buffer.count);
        for (float element : host) {
            uint32_t bits;
            memcpy(&bits, &element, sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3u;
            hash ^= hash >> 29;
        }
    }
    return hash;
}

void state_release(void)
{
    for (struct state_buffer &buffer : state.buffers)
        device_free(buffer.data);
    for (struct parameter *parameter : state.parameters)
        delete parameter;
    state.buffers.clear();
    state.parameters.clear();
}

struct parameter *parameter_make(size_t count, float centre, float spread, int moments)
{
    struct parameter *parameter = new struct parameter();
    uint64_t stream = 1000 + state.parameters.size();
    std::vector<float> host(count);
    for (size_t i = 0; i < count; i++)
        host[i] = centre + spread * random_signed(stream, i);
    parameter->count = count;
    parameter->value = device_make<float>(count);
    state.buffers.push_back({parameter->value, count});
    device_write(parameter->value, host.data(), count);
    for (int i = 0; i < moments; i++)
        parameter->moment[i] = state_make(count, 0.0f);
    state.parameters.push_back(parameter);
    return parameter;
}

void parameter_add_gradient(struct parameter *parameter, float *gradient)
{
    if (!parameter->gradient) {
        parameter->gradient = gradient;
        return;
    }
    accumulate(parameter->gradient, gradient, parameter->count);
    device_free(gradient);
}

const std::vector<struct parameter *> &parameters(void)
{
    return state.parameters;
}

void parameters_drop_gradients(void)
{
    for (struct parameter *parameter : state.parameters)
        device_free(parameter->gradient);
}
