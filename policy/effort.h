/* How much planning may cost. Counted in steps of the algorithms, so that the same problem gives the same plan
 * on a busy machine; the wall clock only stops what runs away.
 *
 * A step takes about 6 ns on a machine of 2023; it counts as EFFORT_STEP_NS, more than that: so that a deadline is kept
 * by slower machines, beside other programs and by problems that do not fit into their caches. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { EFFORT_STEP_NS = 11, EFFORT_WALL_FACTOR = 10, EFFORT_WALL_LEAST_NS = 100000000 };

static inline uint64_t now_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct effort {
    uint64_t steps, allowed;
    uint64_t wall_end; /* now_nanoseconds() at which to stop in any case */
};

static inline struct effort effort_of(uint64_t nanoseconds)
{
    return (struct effort){.allowed = nanoseconds / EFFORT_STEP_NS,
                           .wall_end = now_nanoseconds() + nanoseconds * EFFORT_WALL_FACTOR + EFFORT_WALL_LEAST_NS};
}

static inline bool effort_is_used_up(const struct effort *effort)
{
    return effort->steps >= effort->allowed;
}

static inline bool effort_is_spent(const struct effort *effort)
{
    return effort_is_used_up(effort) || now_nanoseconds() > effort->wall_end;
}
