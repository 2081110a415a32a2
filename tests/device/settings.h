/* The CPU device's settings: environment variables, read once.
 *   CPUDEV_COUNT        devices (default 1, at most 16); CUDA_VISIBLE_DEVICES chooses among them, by number or UUID
 *   CPUDEV_MEMORY       bytes of memory of each device; suffixes K, M, G, KiB, MiB, GiB (default 1GiB)
 *   CPUDEV_GRANULARITY  bytes of a frame; a power of two, at least a host page (default 64KiB)
 *   CPUDEV_THREADS      threads that run blocks (default: the cores)
 *   CPUDEV_CLOCK        what the times of events count: wall (default), or work (see counts_work)
 *   CPUDEV_JITTER       seed of the adversarial order; 0 or unset: natural order
 *   CPUDEV_STATS        file for the counters
 *   CPUDEV_CAPABILITY   compute capability, "12.1" */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICES_MAX 16

struct settings {
    unsigned device_total;            /* CPUDEV_COUNT */
    unsigned device_count;            /* visible ones: 0 is possible */
    unsigned device_ids[DEVICES_MAX]; /* which of the CPUDEV_COUNT each is */
    size_t memory_bytes;
    size_t frame_bytes;
    uint64_t jitter;
    uint32_t threads;
    bool counts_work;    /* CPUDEV_CLOCK=work: events tell the processor time that kernels, copies and fills took on the
                            thread that runs a stream; with one thread, other programs do not show in it */
    uint32_t capability; /* 121 = 12.1 */
    const char *stats_path; /* NULL: none */
};

/* False after one line on stderr when a value is malformed; the settings must not be used then. */
bool settings_are_valid(void);
const struct settings *settings(void);

/* The 16 bytes that name the device of that id. */
void settings_uuid(unsigned device_id, unsigned char uuid[16]);
/* The same as text, as CUDA_VISIBLE_DEVICES takes it: GPU-8-4-4-4-12 hexadecimal digits. */
void settings_print_uuid(unsigned device_id, char text[48]);
