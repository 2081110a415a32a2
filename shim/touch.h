/* What a call touches that is not modelled as an operation: pinned, and read if it comes from the host. */
#pragma once
#include <cuda.h>
#include <stddef.h>

/* One side of a copy of `height` x `depth` rows: device memory is pinned, host memory that goes to a device is
 * searched for addresses. Arrays need nothing. */
struct touch_side {
    CUmemorytype type;
    CUdeviceptr device; /* also a host address if type is UNIFIED */
    const void *host;
    size_t x_bytes, y, z, pitch, height; /* of the area that the rows lie in */
};

struct touch_copy {
    struct touch_side from, to;
    size_t width_bytes, rows, layers;
};

CUresult touch_copy(const struct touch_copy *copy);

CUresult touch_copy_2d(const CUDA_MEMCPY2D *copy);
CUresult touch_copy_3d(const CUDA_MEMCPY3D *copy);
CUresult touch_copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy);
CUresult touch_memory_operations(const CUstreamBatchMemOpParams *list, size_t count);
