#include "shim/touch.h"

#include "shim/driver.h"
#include "shim/engine.h"

#include <stdbool.h>
#include <stdint.h>

#include "shim/inside.h"

static const char reason[] = "a copy of rows, or between devices";

static bool is_host(const struct touch_side *side)
{
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    if (side->type != CU_MEMORYTYPE_UNIFIED)
        return side->type == CU_MEMORYTYPE_HOST;
    return !engine_owns(side->device) &&
           (driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, side->device) != CUDA_SUCCESS ||
            type == CU_MEMORYTYPE_HOST);
}

/* Only the bytes that are copied are read: the rest of a row need not be there. */
static CUresult scan(const struct touch_copy *copy)
{
    const struct touch_side *from = &copy->from;
    const unsigned char *base = from->type == CU_MEMORYTYPE_UNIFIED ? (const unsigned char *)from->device : from->host;
    size_t pitch = from->pitch ? from->pitch : copy->width_bytes;
    size_t layer_rows = from->height ? from->height : copy->rows;
    for (size_t layer = 0; layer < copy->layers; layer++)
        for (size_t row = 0; row < copy->rows; row++) {
            size_t at = ((from->z + layer) * layer_rows + from->y + row) * pitch + from->x_bytes;
            CUresult result = engine_scan(base + at, copy->width_bytes, 0);
            if (result != CUDA_SUCCESS)
                return result;
        }
    return CUDA_SUCCESS;
}

static CUresult pin_side(const struct touch_side *side)
{
    bool is_address = side->type == CU_MEMORYTYPE_DEVICE || side->type == CU_MEMORYTYPE_UNIFIED;
    return is_address ? engine_pin(side->device, reason) : CUDA_SUCCESS;
}

CUresult touch_copy(const struct touch_copy *copy)
{
    CUresult result = pin_side(&copy->from);
    if (result == CUDA_SUCCESS)
        result = pin_side(&copy->to);
    if (result == CUDA_SUCCESS && is_host(&copy->from) && !is_host(&copy->to))
        result = scan(copy);
    return result;
}

CUresult touch_copy_2d(const CUDA_MEMCPY2D *copy)
{
    return touch_copy(&(struct touch_copy){
        .from = {copy->srcMemoryType, copy->srcDevice, copy->srcHost, copy->srcXInBytes, copy->srcY, 0, copy->srcPitch,
                 0},
        .to = {copy->dstMemoryType, copy->dstDevice, copy->dstHost, copy->dstXInBytes, copy->dstY, 0, copy->dstPitch,
               0},
        .width_bytes = copy->WidthInBytes,
        .rows = copy->Height,
        .layers = 1,
    });
}

CUresult touch_copy_3d(const CUDA_MEMCPY3D *copy)
{
    return touch_copy(&(struct touch_copy){
        .from = {copy->srcMemoryType, copy->srcDevice, copy->srcHost, copy->srcXInBytes, copy->srcY, copy->srcZ,
                 copy->srcPitch, copy->srcHeight},
        .to = {copy->dstMemoryType, copy->dstDevice, copy->dstHost, copy->dstXInBytes, copy->dstY, copy->dstZ,
               copy->dstPitch, copy->dstHeight},
        .width_bytes = copy->WidthInBytes,
        .rows = copy->Height,
        .layers = copy->Depth,
    });
}

CUresult touch_copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy)
{
    return touch_copy(&(struct touch_copy){
        .from = {copy->srcMemoryType, copy->srcDevice, copy->srcHost, copy->srcXInBytes, copy->srcY, copy->srcZ,
                 copy->srcPitch, copy->srcHeight},
        .to = {copy->dstMemoryType, copy->dstDevice, copy->dstHost, copy->dstXInBytes, copy->dstY, copy->dstZ,
               copy->dstPitch, copy->dstHeight},
        .width_bytes = copy->WidthInBytes,
        .rows = copy->Height,
        .layers = copy->Depth,
    });
}

CUresult touch_memory_operations(const CUstreamBatchMemOpParams *list, size_t count)
{
    for (size_t i = 0; list && i < count; i++) {
        CUstreamBatchMemOpType type = list[i].operation;
        bool is_wait = type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
        bool is_write = type == CU_STREAM_MEM_OP_WRITE_VALUE_32 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        CUdeviceptr address = is_wait ? list[i].waitValue.address : is_write ? list[i].writeValue.address : 0;
        CUresult result = address ? engine_pin(address, "a stream memory operation") : CUDA_SUCCESS;
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}
