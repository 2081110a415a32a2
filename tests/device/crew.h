/* The threads that run the parts of one job (blocks of a kernel, pieces of a copy).
 *
 * One job at a time; the thread that calls crew_run takes part. Parts may run in any order and at the same
 * time. A part that faults ends the job: parts not yet begun are left out. */
#pragma once
#include "tests/device/program.h"
#include <pthread.h>

struct job {
    void (*run)(void *subject, uint64_t part, struct program_worker *worker);
    void *subject;
    uint64_t parts;
    bool is_shared; /* worth waking the other threads for */
    uint64_t seed;  /* 0: parts in order; else in an order of the seed's choosing */
};

/* `threads` includes the caller of crew_run. Called once. */
bool crew_start(uint32_t threads);
CUresult crew_run(const struct job *job);

/* Every part on a thread of its own, all at the same time (cooperative launches). */
CUresult crew_run_together(const struct job *job);

/* A thread on which device work or the program's host functions run: only faults are delivered to it. */
bool crew_start_thread(void *(*body)(void *), void *argument, pthread_t *thread, size_t stack_bytes);
