/* Sleeping on a 32-bit word, and short spins before it. */
#pragma once
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline void futex_wait(_Atomic uint32_t *word, uint32_t expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static inline void futex_wake(_Atomic uint32_t *word, int sleepers)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}

static inline uint64_t now_nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spins until the word differs from `value`; false when the time is over. */
static inline bool spin_while_equal(_Atomic uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
    uint64_t deadline = now_nanoseconds() + nanoseconds;
    do {
        for (int i = 0; i < 16; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value)
                return true;
            pause_core();
        }
    } while (now_nanoseconds() < deadline);
    return false;
}
