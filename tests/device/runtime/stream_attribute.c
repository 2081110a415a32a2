/* Attributes of streams. */
#include "tests/device/runtime/runtime.h"

/* Each with its per-thread-stream twin, which the driver has as well. */
#define BOTH(name, parameters, call, arguments)                                                                        \
    FORWARD(name, parameters, call arguments)                                                                          \
    FORWARD(name##_ptsz, parameters, call##_ptsz arguments)

BOTH(cudaStreamGetAttribute, (cudaStream_t stream, cudaLaunchAttributeID id, cudaLaunchAttributeValue *value),
     cuStreamGetAttribute, (stream, (CUlaunchAttributeID)id, (CUlaunchAttributeValue *)value))
BOTH(cudaStreamSetAttribute, (cudaStream_t stream, cudaLaunchAttributeID id, const cudaLaunchAttributeValue *value),
     cuStreamSetAttribute, (stream, (CUlaunchAttributeID)id, (const CUlaunchAttributeValue *)value))
BOTH(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from), cuStreamCopyAttributes, (to, from))
BOTH(cudaStreamAttachMemAsync, (cudaStream_t stream, void *memory, size_t bytes, unsigned int flags),
     cuStreamAttachMemAsync, (stream, (CUdeviceptr)memory, bytes, flags))
