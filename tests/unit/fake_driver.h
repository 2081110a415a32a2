/* A little driver inside the test process: it fills the slots of `struct driver driver` and the answer of config().
 *
 * Memory is honest. Frames are pieces of a memory file, address ranges are real, so two mappings of one frame show the
 * same bytes, a fresh frame holds garbage, and an access to what is not mapped is a fault (the child dies by SIGSEGV).
 *
 * Order is chosen. FAKE_AT_ONCE runs work as it is submitted. FAKE_LATE queues it, and runs no more of it than what
 * somebody waits for: whoever forgets to wait sees it. FAKE_MIXED runs queued work at random points chosen by `seed`.
 * A copy from memory that is not pinned takes its bytes at the call; one to such memory waits.
 *
 * Kernels are C functions. Those of shim/kernels.h are there under their names.
 *
 * The process's only instance; the modules under test have static state too, so every test opens it in a child
 * (tests/unit/child.h). Not thread-safe. */
#pragma once
#include "shim/config.h"
#include "shim/driver.h"

#include <stdbool.h>
#include <stdint.h>

enum fake_order { FAKE_AT_ONCE, FAKE_LATE, FAKE_MIXED };

struct fake_settings {
    uint64_t memory_bytes; /* physical memory of the device */
    uint64_t granularity;
    enum fake_order order;
    uint64_t seed;
    double copy_bytes_per_ns; /* virtual speed of copies to and from the host; 0: 0.05 */
    int processors;           /* 0: 4; more than 8 chooses the strided kernels */
    bool is_old;              /* a driver before 12.8: no cuEventElapsedTime_v2 */
};

extern struct config fake_config; /* what config() answers; set it before the modules open */

void fake_open(const struct fake_settings *settings);

/* The context as the program has made it; false: cuCtxGetCurrent gives none. */
void fake_make_current(bool is_current);

typedef void fake_kernel(const void *arguments);
/* A kernel of the program's: `nanoseconds` is what a launch takes in virtual time. */
CUfunction fake_function(const char *name, uint32_t argument_bytes, fake_kernel *run, uint64_t nanoseconds);
const char *fake_function_name(CUfunction function);
CUstream fake_stream(void); /* a new one */

/* From now on: the nth driver call (1 is the next) is refused; is_sticky: and all that follow it. 0: none. */
void fake_fail(uint64_t nth, bool is_sticky);
bool fake_has_failed(void);         /* the call to be refused has come */
const char *fake_failed_call(void); /* its name, or "" */

struct fake_counts {
    uint64_t calls;                      /* driver calls */
    uint64_t physical_bytes, peak_bytes; /* frames and cuMemAlloc memory that exist */
    uint64_t frames, mappings;           /* now */
    uint64_t memory_calls;               /* create, release, map, unmap, access */
    uint64_t host_waits;                 /* synchronisations */
    uint64_t launches;
    uint64_t queued; /* work that has not run yet */
};

struct fake_counts fake_count(void);
uint64_t fake_launches(CUfunction function); /* how often it ran */
bool fake_is_pinned(const void *host, size_t bytes);
uint64_t fake_mapped_pages(CUdeviceptr address, uint64_t bytes); /* accessible now, counted in granules */
