/* Captures in detail, and attributes of streams. */
#include "tests/device/runtime/runtime.h"

/* Each with its per-thread-stream twin, which the driver has as well. */
#define BOTH(name, parameters, call, arguments)                                                                        \
    FORWARD(name, parameters, call arguments)                                                                          \
    FORWARD(name##_ptsz, parameters, call##_ptsz arguments)

BOTH(cudaStreamBeginCaptureToGraph,
     (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
      size_t count, enum cudaStreamCaptureMode mode),
     cuStreamBeginCaptureToGraph,
     (stream, graph, dependencies, (const CUgraphEdgeData *)edges, count, (CUstreamCaptureMode)mode))
BOTH(cudaStreamGetCaptureInfo,
     (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
      const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *count),
     cuStreamGetCaptureInfo_v3,
     (stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph, dependencies, (const CUgraphEdgeData **)edges,
      count))
BOTH(cudaStreamUpdateCaptureDependencies,
     (cudaStream_t stream, cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges, size_t count,
      unsigned int flags),
     cuStreamUpdateCaptureDependencies_v2, (stream, dependencies, (const CUgraphEdgeData *)edges, count, flags))
BOTH(cudaStreamGetAttribute, (cudaStream_t stream, cudaLaunchAttributeID id, cudaLaunchAttributeValue *value),
     cuStreamGetAttribute, (stream, (CUlaunchAttributeID)id, (CUlaunchAttributeValue *)value))
BOTH(cudaStreamSetAttribute, (cudaStream_t stream, cudaLaunchAttributeID id, const cudaLaunchAttributeValue *value),
     cuStreamSetAttribute, (stream, (CUlaunchAttributeID)id, (const CUlaunchAttributeValue *)value))
BOTH(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from), cuStreamCopyAttributes, (to, from))
BOTH(cudaStreamAttachMemAsync, (cudaStream_t stream, void *memory, size_t bytes, unsigned int flags),
     cuStreamAttachMemAsync, (stream, (CUdeviceptr)memory, bytes, flags))
