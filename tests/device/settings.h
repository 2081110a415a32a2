/* The CPU device's settings: environment variables, read once.
 *   CPUDEV_MEMORY       bytes of device memory; suffixes K, M, G, KiB, MiB, GiB (default 1GiB)
 *   CPUDEV_GRANULARITY  bytes of a frame; a power of two, at least a host page (default 64KiB)
 *   CPUDEV_THREADS      threads that run blocks (default: the cores)
 *   CPUDEV_JITTER       seed of the adversarial order; 0 or unset: natural order
 *   CPUDEV_STATS        file for the counters
 *   CPUDEV_CAPABILITY   compute capability, "12.1" */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings {
    size_t memory_bytes;
    size_t frame_bytes;
    uint64_t jitter;
    uint32_t threads;
    uint32_t capability;    /* 121 = 12.1 */
    const char *stats_path; /* NULL: none */
};

/* False after one line on stderr when a value is malformed; the settings must not be used then. */
bool settings_are_valid(void);
const struct settings *settings(void);
