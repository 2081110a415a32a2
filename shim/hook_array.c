/* Arrays: memory of the driver's own layout, charged by what their texels need. */
#include "shim/hook.h"

#include "shim/outside.h"

#include "shim/inside.h"

/* Compressed and planar formats take at most this. */
#define TEXEL_BYTES_MAX 16

static uint64_t texel_bytes(CUarray_format format, unsigned int channels)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2 * (uint64_t)channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4 * (uint64_t)channels;
    default:
        return TEXEL_BYTES_MAX;
    }
}

static uint64_t at_least_one(uint64_t number)
{
    return number ? number : 1;
}

/* Sparse arrays, and those whose memory the program maps itself, hold none. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *description, unsigned int levels)
{
    uint64_t width = description->Width, height = at_least_one(description->Height);
    uint64_t depth = at_least_one(description->Depth), bytes = 0;
    bool is_layered = description->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    if (description->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0;
    for (unsigned int level = 0; level < levels; level++) {
        bytes += width * height * depth * texel_bytes(description->Format, description->NumChannels);
        width = at_least_one(width / 2);
        height = at_least_one(height / 2);
        depth = is_layered ? depth : at_least_one(depth / 2);
    }
    return bytes;
}

/* After the driver was asked; `handle` counts only if it said yes. */
static void settle(CUresult result, enum outside_kind kind, void *handle, uint64_t bytes)
{
    if (result != CUDA_SUCCESS || !outside_add(kind, (uintptr_t)handle, bytes))
        engine_refund(bytes);
}

CUresult hook_cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *description)
{
    if (array == NULL || description == NULL || !gate_enter())
        return driver.cuArrayCreate(array, description);
    CUDA_ARRAY3D_DESCRIPTOR same = {.Width = description->Width,
                                    .Height = description->Height,
                                    .Format = description->Format,
                                    .NumChannels = description->NumChannels};
    uint64_t bytes = array_bytes(&same, 1);
    CUresult result = engine_charge(bytes, "an array");
    if (result == CUDA_SUCCESS) {
        result = driver.cuArrayCreate(array, description);
        settle(result, OUTSIDE_ARRAY, *array, bytes);
    }
    return gate_leave(result);
}

CUresult hook_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *description)
{
    if (array == NULL || description == NULL || !gate_enter())
        return driver.cuArrayCreate_v2(array, description);
    CUDA_ARRAY3D_DESCRIPTOR same = {.Width = description->Width,
                                    .Height = description->Height,
                                    .Format = description->Format,
                                    .NumChannels = description->NumChannels};
    uint64_t bytes = array_bytes(&same, 1);
    CUresult result = engine_charge(bytes, "an array");
    if (result == CUDA_SUCCESS) {
        result = driver.cuArrayCreate_v2(array, description);
        settle(result, OUTSIDE_ARRAY, *array, bytes);
    }
    return gate_leave(result);
}

CUresult hook_cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *description)
{
    if (array == NULL || description == NULL || !gate_enter())
        return driver.cuArray3DCreate(array, description);
    CUDA_ARRAY3D_DESCRIPTOR same = {.Width = description->Width,
                                    .Height = description->Height,
                                    .Depth = description->Depth,
                                    .Format = description->Format,
                                    .NumChannels = description->NumChannels,
                                    .Flags = description->Flags};
    uint64_t bytes = array_bytes(&same, 1);
    CUresult result = engine_charge(bytes, "an array");
    if (result == CUDA_SUCCESS) {
        result = driver.cuArray3DCreate(array, description);
        settle(result, OUTSIDE_ARRAY, *array, bytes);
    }
    return gate_leave(result);
}

CUresult hook_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *description)
{
    if (array == NULL || description == NULL || !gate_enter())
        return driver.cuArray3DCreate_v2(array, description);
    uint64_t bytes = array_bytes(description, 1);
    CUresult result = engine_charge(bytes, "an array");
    if (result == CUDA_SUCCESS) {
        result = driver.cuArray3DCreate_v2(array, description);
        settle(result, OUTSIDE_ARRAY, *array, bytes);
    }
    return gate_leave(result);
}

CUresult hook_cuArrayDestroy(CUarray array)
{
    if (!gate_enter())
        return driver.cuArrayDestroy(array);
    uint64_t charged = outside_take(OUTSIDE_ARRAY, (uintptr_t)array);
    CUresult result = driver.cuArrayDestroy(array);
    if (charged && result == CUDA_SUCCESS)
        engine_refund(charged);
    else if (charged)
        outside_add(OUTSIDE_ARRAY, (uintptr_t)array, charged);
    return gate_leave(result);
}

CUresult hook_cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *description,
                                     unsigned int levels)
{
    if (array == NULL || description == NULL || levels > 64 || !gate_enter())
        return driver.cuMipmappedArrayCreate(array, description, levels);
    uint64_t bytes = array_bytes(description, levels);
    CUresult result = engine_charge(bytes, "a mipmapped array");
    if (result == CUDA_SUCCESS) {
        result = driver.cuMipmappedArrayCreate(array, description, levels);
        settle(result, OUTSIDE_MIPMAP, *array, bytes);
    }
    return gate_leave(result);
}

CUresult hook_cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    if (!gate_enter())
        return driver.cuMipmappedArrayDestroy(array);
    uint64_t charged = outside_take(OUTSIDE_MIPMAP, (uintptr_t)array);
    CUresult result = driver.cuMipmappedArrayDestroy(array);
    if (charged && result == CUDA_SUCCESS)
        engine_refund(charged);
    else if (charged)
        outside_add(OUTSIDE_MIPMAP, (uintptr_t)array, charged);
    return gate_leave(result);
}
