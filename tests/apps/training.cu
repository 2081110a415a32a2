#include "tests/apps/training.h"
#include "tests/apps/device.h"
#include "tests/apps/parameter.h"
#include <condition_variable>
#include <inttypes.h>
#include <math.h>
#include <mutex>
#include <stdio.h>
#include <thread>
#include <time.h>

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/* The second thread. `turn` is the iteration handed to it; 0: none, back with the first; -1: leave.
 * Never destroyed: exit() on one thread must not wait for the other one's wait to end. */
struct second_thread {
    std::mutex lock;
    std::condition_variable changed;
    int turn;
};
static struct second_thread &other = *new struct second_thread();

static void run_other_thread(const struct training *training)
{
    std::unique_lock<std::mutex> held(other.lock);
    for (;;) {
        other.changed.wait(held, [] { return other.turn != 0; });
        if (other.turn < 0)
            return;
        training->backward(other.turn);
        training->step(other.turn);
        other.turn = 0;
        other.changed.notify_all();
    }
}

static void give_turn(int turn)
{
    std::unique_lock<std::mutex> held(other.lock);
    other.turn = turn;
    other.changed.notify_all();
    other.changed.wait(held, [] { return other.turn <= 0; });
}

static float read_loss(float *loss)
{
    float value;
    device_read(&value, loss, 1);
    device_free(loss);
    return value;
}

static void run_iteration(const struct run_settings *settings, const struct training *training, int iteration)
{
    double begin = seconds_now();
    float *loss = training->forward(iteration);
    if (settings->threads == 2) {
        give_turn(iteration);
    } else {
        training->backward(iteration);
        training->step(iteration);
    }
    float value = read_loss(loss);
    double end = seconds_now();
    printf("iter %d loss %a", iteration, static_cast<double>(value));
    if (training->report)
        training->report(iteration);
    printf("\n");
    fflush(stdout);
    if (settings->has_timing)
        fprintf(stderr, "time %d %.6f\n", iteration, end - begin);
}

static float loss_with(const struct training *training, struct parameter *parameter, size_t index, float value)
{
    device_write(parameter->value + index, &value, 1);
    float *loss = training->forward(1);
    training->backward(1);
    parameters_drop_gradients();
    return read_loss(loss);
}

/* The element of the gradient with the greatest magnitude: finite differences in single precision show little
 * of the others. */
static size_t greatest(const std::vector<float> &gradient)
{
    size_t at = 0;
    for (size_t i = 1; i < gradient.size(); i++)
        if (fabsf(gradient[i]) > fabsf(gradient[at]))
            at = i;
    return at;
}

/* Compares each parameter's steepest partial derivative with a central difference. */
static int check_gradients(const struct training *training)
{
    const float tolerance = 0.05f, step = 2e-3f;
    std::vector<std::vector<float>> gradients;
    float *loss = training->forward(1);
    training->backward(1);
    read_loss(loss);
    for (struct parameter *p : parameters()) {
        gradients.emplace_back(p->count);
        if (!p->gradient) {
            printf("parameter %zu has no gradient\n", gradients.size() - 1);
            return 1;
        }
        device_read(gradients.back().data(), p->gradient, p->count);
    }
    parameters_drop_gradients();
    size_t wrong = 0;
    for (size_t i = 0; i < gradients.size(); i++) {
        struct parameter *p = parameters()[i];
        size_t at = greatest(gradients[i]);
        float value;
        device_read(&value, p->value + at, 1);
        float high = loss_with(training, p, at, value + step), low = loss_with(training, p, at, value - step);
        device_write(p->value + at, &value, 1);
        float expected = (high - low) / ((value + step) - (value - step)), got = gradients[i][at];
        bool is_right = fabsf(expected - got) <= tolerance * (fabsf(expected) + fabsf(got)) + 2e-4f;
        wrong += !is_right;
        printf("parameter %zu element %zu of %zu: gradient %g, difference %g%s\n", i, at, p->count,
               static_cast<double>(got), static_cast<double>(expected), is_right ? "" : "  WRONG");
    }
    printf("%zu parameters, %zu wrong\n", gradients.size(), wrong);
    return wrong ? 1 : 0;
}

int training_run(const struct run_settings *settings, const struct training *training)
{
    if (settings->is_check)
        return check_gradients(training);
    std::thread second;
    if (settings->threads == 2)
        second = std::thread(run_other_thread, training);
    for (int iteration = 1; iteration <= settings->iterations; iteration++)
        run_iteration(settings, training, iteration);
    if (second.joinable()) {
        give_turn(-1);
        second.join();
    }
    printf("state %016" PRIx64 "\n", state_hash());
    state_release();
    return 0;
}
