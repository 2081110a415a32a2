/* CUDA arrays: device memory in rows without gaps, slice after slice. (A GPU arranges them in its own way; nothing here
 * samples them, so their bytes are all that matters.) */
#pragma once
#include "tests/device/driver.h"

struct context;

struct array {
    enum handle_kind magic;
    CUDA_ARRAY3D_DESCRIPTOR descriptor; /* as asked for: 0 for extents that it does not have */
    size_t element_bytes;
    size_t row_bytes, rows, slices; /* rows and slices at least 1 */
    CUdeviceptr memory;
    int device;
    struct context *owner;
    bool is_level; /* of a mipmapped array, whose memory it is in */
    struct array *next;
};

CUresult array_find(CUarray handle, struct array **out);
