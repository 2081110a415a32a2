/* The devices' own counters, kept in the CPUDEV_STATS file as {"peak_bytes","launches","kernels_compiled",
 * "device_peak_bytes"}: the first is of all devices together, the last a list with one number per device.
 *
 * The file is mapped and its numbers are overwritten in place (padded with blanks, so it is JSON at every
 * moment): a process that leaves by _exit or is killed has still written them. */
#pragma once
#include <stdint.h>

/* At the first context. NULL: counters only. */
void stats_open(const char *path, unsigned device_count);
void stats_add_launch(void);
void stats_add_compiled(void);
void stats_set_peak(uint64_t bytes); /* under the memory lock */
void stats_set_device_peak(int device, uint64_t bytes);
uint64_t stats_launches(void);
uint64_t stats_peak(void);
