/* What other processes can know of those that use the CPU device: a small file per process, as an NVML library reads
 * it.
 *
 * The files lie in one folder per user (CPUDEV_RUN, else a folder in XDG_RUNTIME_DIR or /tmp), named by process id. A
 * file's process maps it and keeps it up to date by plain atomic stores; it goes when the process exits. A file whose
 * process is gone, or is another one of the same id, is dropped by whoever reads it next.
 *
 * Failing to make or read one is no error: the process is then not seen. Locking: presence_set_used under the memory
 * lock, presence_begin and presence_end by the thread that has taken the executor. */
#pragma once
#include "tests/device/settings.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct presence {
    uint32_t pid;
    uint64_t used[DEVICES_MAX]; /* bytes of memory, by the device's id */
    uint64_t busy[DEVICES_MAX]; /* nanoseconds in which it worked for this process, to now */
};

/* This process uses the device from now on. */
void presence_open(void);
void presence_set_used(unsigned device_id, uint64_t bytes);
/* A piece of work begins, ends. */
void presence_begin(unsigned device_id);
void presence_end(unsigned device_id);

/* Those of all processes of this user that use the device now, at most `room`; returns how many there are. */
size_t presence_list(struct presence *list, size_t room);
