/* Streams and events: what waits, what ends, what is captured. */
#include "shim/hook.h"

#include "shim/capture.h"

#include <stdatomic.h>

#include "shim/inside.h"

/* Captures begun and not ended, in the whole process. Never below zero: an end without a begin is not counted. */
static _Atomic int open_captures;

bool capture_is_active(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return atomic_load_explicit(&open_captures, memory_order_relaxed) > 0 &&
           driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult note_begin(CUresult result)
{
    if (result == CUDA_SUCCESS)
        atomic_fetch_add(&open_captures, 1);
    return result;
}

static CUresult on_cuStreamBeginCapture(CUstream stream)
{
    return note_begin(driver.cuStreamBeginCapture(stream));
}

STREAM_PAIR(cuStreamBeginCapture, (CUstream stream), (stream))

static CUresult on_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return note_begin(driver.cuStreamBeginCapture_v2(stream, mode));
}

STREAM_PAIR(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))

static CUresult on_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                               const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode)
{
    return note_begin(driver.cuStreamBeginCaptureToGraph(stream, graph, dependencies, data, count, mode));
}

STREAM_PAIR(cuStreamBeginCaptureToGraph,
            (CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
             CUstreamCaptureMode mode),
            (stream, graph, dependencies, data, count, mode))

/* A capture that was broken ends as well, with an error. */
static CUresult on_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    bool was_active = capture_is_active(stream);
    CUresult result = driver.cuStreamEndCapture(stream, graph);
    if (was_active && !capture_is_active(stream))
        atomic_fetch_sub(&open_captures, 1);
    return result;
}

STREAM_PAIR(cuStreamEndCapture, (CUstream stream, CUgraph *graph), (stream, graph))

static CUresult on_cuStreamSynchronize(CUstream stream)
{
    if (!gate_enter())
        return driver.cuStreamSynchronize(stream);
    return gate_leave(engine_after_sync(driver.cuStreamSynchronize(stream)));
}

STREAM_PAIR(cuStreamSynchronize, (CUstream stream), (stream))

static CUresult on_cuStreamQuery(CUstream stream)
{
    if (!gate_enter())
        return driver.cuStreamQuery(stream);
    return gate_leave(engine_after_sync(driver.cuStreamQuery(stream)));
}

STREAM_PAIR(cuStreamQuery, (CUstream stream), (stream))

CUresult hook_cuEventSynchronize(CUevent event)
{
    if (!gate_enter())
        return driver.cuEventSynchronize(event);
    return gate_leave(engine_after_sync(driver.cuEventSynchronize(event)));
}

CUresult hook_cuEventQuery(CUevent event)
{
    if (!gate_enter())
        return driver.cuEventQuery(event);
    return gate_leave(engine_after_sync(driver.cuEventQuery(event)));
}

CUresult hook_cuStreamDestroy(CUstream stream)
{
    if (!gate_enter())
        return driver.cuStreamDestroy(stream);
    engine_stream_destroyed(stream);
    return gate_leave(driver.cuStreamDestroy(stream));
}

CUresult hook_cuStreamDestroy_v2(CUstream stream)
{
    if (!gate_enter())
        return driver.cuStreamDestroy_v2(stream);
    engine_stream_destroyed(stream);
    return gate_leave(driver.cuStreamDestroy_v2(stream));
}
