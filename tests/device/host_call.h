/* The threads that call the program's host functions and callbacks.
 *
 * The dispatcher hands such a piece of work over and goes on: a host function that waits for other work, or for a
 * thread that waits for it, stops its own stream only. There are as many threads as calls that wait at the same time.
 */
#pragma once
#include "tests/device/stream.h"

/* Under queue_lock. The stream's head is a host call and is marked as running; `finish` is called with the stream,
 * under queue_lock, when the call has returned. */
void host_call_post(struct stream *stream, void (*finish)(struct stream *stream));

/* The calling thread is inside such a call: the driver must not be called there. */
bool host_call_is_inside(void);
