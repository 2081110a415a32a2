/* Shared by the parts of the fake driver. */
#pragma once
#include "tests/unit/fake_driver.h"

#include <stddef.h>

/* ---- fake_driver.c: settings, counting, refusing ---- */
const struct fake_settings *fake_settings(void);
struct fake_counts *fake_counts(void);
/* Counts the call. Not CUDA_SUCCESS: refuse it with this code. */
CUresult fake_enter(const char *name, CUresult refusal);
#define ENTER(refusal) CUresult entered = fake_enter(__func__, refusal)
void fake_die(const char *what) __attribute__((noreturn));

/* ---- fake_memory.c ---- */
void fake_open_memory(void);

/* ---- fake_queue.c ---- */
typedef void fake_work(const void *arguments);
void fake_open_queue(void);
void fake_put(CUstream stream, fake_work *run, const void *arguments, size_t bytes, uint64_t nanoseconds);
void fake_finish_stream(CUstream stream);
void fake_finish_all(void);

/* ---- fake_work.c: launches, copies, sets ---- */
void fake_open_work(void);

/* ---- fake_kernels.c: the kernels of shim/kernels.h ---- */
extern const char reprise_kernels_ptx[];
CUfunction fake_own_kernel(const char *name);
