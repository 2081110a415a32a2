/* Questions about a capture, and changing what its next node waits for. */
#include "tests/device/driver.h"
#include "tests/device/capture_state.h"
#include "tests/device/context.h"

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (status == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    struct capture *capture = stream->capture;
    struct branch *branch = capture != NULL ? capture_branch(capture, stream) : NULL;
    *status = capture == NULL       ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (id != NULL)
        *id = capture != NULL ? capture->id : 0;
    if (graph != NULL)
        *graph = capture != NULL ? (CUgraph)capture->graph : NULL;
    if (dependencies != NULL)
        *dependencies = branch != NULL ? (const CUgraphNode *)branch->tail : NULL;
    if (edges != NULL)
        *edges = NULL;
    if (count != NULL)
        *count = branch != NULL ? branch->count : 0;
    graph_unlock();
    return CUDA_SUCCESS;
}

TWIN(cuStreamGetCaptureInfo_v3, _ptsz,
     (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
      const CUgraphEdgeData **edges, size_t *count),
     (per_thread(handle), status, id, graph, dependencies, edges, count))

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **dependencies, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(handle, status, id, graph, dependencies, NULL, count);
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                        const CUgraphNode **dependencies, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(per_thread(handle), status, id, graph, dependencies, NULL, count);
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return cuStreamGetCaptureInfo_v3(handle, status, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_ptsz(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return cuStreamGetCaptureInfo_v3(per_thread(handle), status, id, NULL, NULL, NULL, NULL);
}

/* Unlike the other questions, allowed for the legacy stream while others capture: it says so by its error. */
CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    return cuStreamGetCaptureInfo_v3(handle, status, NULL, NULL, NULL, NULL, NULL);
}

TWIN(cuStreamIsCapturing, _ptsz, (CUstream handle, CUstreamCaptureStatus *status), (per_thread(handle), status))

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *dependencies, const CUgraphEdgeData *edges,
                                              size_t count, unsigned int flags)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    (void)edges;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count > 0 && dependencies == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    struct capture *capture = stream->capture;
    if (capture == NULL)
        result = CUDA_ERROR_ILLEGAL_STATE;
    else if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        capture_branch(capture, stream)->count = 0;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        struct node *node;
        result = node_find(dependencies[i], &node);
        if (result == CUDA_SUCCESS && node->graph != capture->graph)
            result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
            capture_add_to_tail(capture_branch(capture, stream), node);
    }
    graph_unlock();
    return result;
}

TWIN(cuStreamUpdateCaptureDependencies_v2, _ptsz,
     (CUstream handle, CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count, unsigned int flags),
     (per_thread(handle), dependencies, edges, count, flags))

CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *dependencies, size_t count, unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies_v2(handle, dependencies, NULL, count, flags);
}

CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream handle, CUgraphNode *dependencies, size_t count,
                                                unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies_v2(per_thread(handle), dependencies, NULL, count, flags);
}
