/* Stream capture: what is submitted to a capturing stream becomes nodes of a graph.
 *
 * A capture begins on one stream (its origin); others join it by waiting for an event recorded in it, and must
 * have been waited for by the origin when it ends. Per stream it remembers the nodes that the next one will depend
 * on. Something that cannot be captured makes the capture invalid: everything but ending it then fails.
 *
 * Under graph_lock inside; the functions take it themselves. */
#pragma once
#include "tests/device/event.h"

struct capture;
struct graph;
struct graph_memory;
struct pool;

/* Consumes the work. */
CUresult capture_take(struct stream *stream, struct work *work);
CUresult capture_record(struct stream *stream, struct event *event);
CUresult capture_wait(struct stream *stream, struct event *event);

/* Stream-ordered allocation and release become nodes. Memory that no graph allocates cannot be freed by one: then
 * `memory` is NULL. */
CUresult capture_allocate(struct stream *stream, const struct pool *pool, size_t bytes, CUdeviceptr *out);
CUresult capture_free(struct stream *stream, struct graph_memory *memory);

/* A launch of an executable graph becomes a child graph. */
CUresult capture_graph(struct stream *stream, const struct graph *graph);

/* The call cannot be made on a capturing stream: the capture becomes invalid; the error to return. */
CUresult capture_refuse(struct stream *stream);
CUresult capture_refuse_legacy(struct context *context);
/* For a call about the whole context. */
CUresult capture_refuse_context(const struct context *context);
/* CUDA_SUCCESS, or the error for a call that is forbidden while this thread, or a capture in global mode anywhere,
 * is capturing (allocation, synchronisation). */
CUresult capture_check_unsafe(void);
