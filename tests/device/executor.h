/* The dispatcher: the thread that takes work from the streams' heads and runs it. */
#pragma once
#include "tests/device/stream.h"

/* Starts the threads; once per process. */
bool executor_start(void);

/* Under queue_lock: the stream's queue has just become non-empty. */
void executor_add_stream(struct stream *stream);
/* After queue_unlock: new work was submitted. */
void executor_notify(void);

/* Under queue_lock, by a thread that waits for work: runs the next ready piece on this thread, if no other is
 * running any. False: nothing was run (it is being run elsewhere, or is not ready). The lock is let go meanwhile. */
bool executor_help(void);
/* Under queue_lock, after the last executor_help: what is left is the dispatcher's, who may have gone to sleep because
 * somebody else was at work. */
void executor_leave(void);

/* A piece of work submitted to no queue is run here (implemented in run.c). On the dispatcher's thread. */
CUresult work_run(struct work *work, uint64_t seed);

/* What events tell, in nanoseconds (CPUDEV_CLOCK). */
uint64_t device_clock(void);

/* order.c: which stream goes next. Under queue_lock. NULL: none is ready. *pause_nanoseconds > 0: let that
 * time pass first, then ask again. */
struct stream *order_choose(struct stream **active, size_t count, uint64_t *pause_nanoseconds);
bool order_is_ready(const struct stream *stream, struct stream **active, size_t count);
/* A number of the adversarial order; 0 when there is none. Dispatcher only. */
uint64_t order_seed(void);
