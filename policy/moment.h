/* Monotonic wall clock, for deadlines of planning. */
#pragma once
#include <stdint.h>
#include <time.h>

static inline uint64_t now_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
