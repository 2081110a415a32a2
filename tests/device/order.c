#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/executor.h"
#include "tests/device/settings.h"
#include "tests/device/value.h"

/* The adversary's state; only the dispatcher uses it. */
static struct {
    uint64_t random;
    struct stream *starved; /* passed over while others are ready */
    uint32_t starved_choices;
    bool has_paused; /* the last answer was a pause */
} state;

static uint64_t random_next(void)
{
    if (state.random == 0)
        state.random = settings()->jitter * 0x9E3779B97F4A7C15u | 1;
    state.random ^= state.random << 13;
    state.random ^= state.random >> 7;
    state.random ^= state.random << 17;
    return state.random;
}

uint64_t order_seed(void)
{
    return settings()->jitter == 0 ? 0 : random_next() | 1;
}

/* Legacy and blocking streams of one context wait for each other's earlier work. */
static bool is_held_back(const struct stream *stream, struct stream **active, size_t count)
{
    if (!stream->is_blocking)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct stream *other = active[i];
        if (other == stream || other->context != stream->context || !other->is_blocking)
            continue;
        if ((stream->is_legacy || other->is_legacy) && other->head->order < stream->head->order)
            return true;
    }
    return false;
}

bool order_is_ready(const struct stream *stream, struct stream **active, size_t count)
{
    if (stream->is_running || is_held_back(stream, active, count))
        return false;
    const struct work *head = stream->head;
    if (stream->context->error != CUDA_SUCCESS)
        return true;
    if (head->kind == WORK_WAIT)
        return fence_is_passed(head->fence);
    if (head->kind != WORK_VALUE_WAIT)
        return true;
    CUresult error;
    bool is_there = value_is_there(&head->value, &error);
    if (error != CUDA_SUCCESS)
        context_fail(stream->context, error);
    return is_there;
}

static bool goes_before(const struct stream *a, const struct stream *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->head->order < b->head->order;
}

static bool wants_pause(const struct stream *stream)
{
    uint64_t odds = stream->head->kind == WORK_COPY && stream->head->copy.is_to_host ? 4 : 64;
    return random_next() % odds == 0;
}

static struct stream *choose_adversarially(struct stream **ready, size_t count, uint64_t *pause_nanoseconds)
{
    if (state.starved_choices == 0 && random_next() % 8 == 0) {
        state.starved = ready[random_next() % count];
        state.starved_choices = 1 + (uint32_t)(random_next() % 32);
    }
    struct stream *chosen = ready[random_next() % count];
    if (state.starved_choices > 0) {
        state.starved_choices--;
        for (size_t i = 0; i < count && chosen == state.starved; i++)
            chosen = ready[i];
    }
    if (!state.has_paused && wants_pause(chosen)) {
        state.has_paused = true;
        *pause_nanoseconds = 5000 + random_next() % 200000;
        return NULL;
    }
    state.has_paused = false;
    return chosen;
}

#define READY_MAX 128

struct stream *order_choose(struct stream **active, size_t count, uint64_t *pause_nanoseconds)
{
    struct stream *ready[READY_MAX], *best = NULL;
    size_t ready_count = 0;
    *pause_nanoseconds = 0;
    for (size_t i = 0; i < count; i++) {
        if (!order_is_ready(active[i], active, count))
            continue;
        if (best == NULL || goes_before(active[i], best))
            best = active[i];
        if (ready_count < READY_MAX)
            ready[ready_count++] = active[i];
    }
    if (best == NULL || settings()->jitter == 0)
        return best;
    return choose_adversarially(ready, ready_count, pause_nanoseconds);
}
