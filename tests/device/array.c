#include "tests/device/driver.h"
#include "tests/device/array.h"
#include "tests/device/capture.h"
#include "tests/device/context.h"
#include "tests/device/memory.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXTENT_MAX 131072
#define LEVELS_MAX 18
#define ARRAY_FLAGS                                                                                                    \
    (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |           \
     CUDA_ARRAY3D_COLOR_ATTACHMENT)

struct mipmap {
    enum handle_kind magic;
    unsigned count;
    CUdeviceptr memory;
    struct context *owner;
    struct array levels[LEVELS_MAX];
    struct mipmap *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct array *arrays;   /* under lock */
static struct mipmap *mipmaps; /* under lock */

CUresult array_find(CUarray handle, struct array **out)
{
    struct array *array = (struct array *)handle;
    if (array == NULL || ((uintptr_t)array & 7) != 0 || array->magic != HANDLE_ARRAY)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = array;
    return CUDA_SUCCESS;
}

static CUresult mipmap_find(CUmipmappedArray handle, struct mipmap **out)
{
    struct mipmap *mipmap = (struct mipmap *)handle;
    if (mipmap == NULL || ((uintptr_t)mipmap & 7) != 0 || mipmap->magic != HANDLE_MIPMAP)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = mipmap;
    return CUDA_SUCCESS;
}

/* 0: a format that only a texture unit can read. */
static size_t channel_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static CUresult check_extents(const CUDA_ARRAY3D_DESCRIPTOR *asked)
{
    bool is_layered = (asked->Flags & CUDA_ARRAY3D_LAYERED) != 0, is_cube = (asked->Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
    if (asked->Width == 0 || asked->Width > EXTENT_MAX || asked->Height > EXTENT_MAX || asked->Depth > EXTENT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (asked->Depth > 0 && asked->Height == 0 && !is_layered)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_layered && asked->Depth == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_cube && (asked->Width != asked->Height || (is_layered ? asked->Depth % 6 != 0 : asked->Depth != 6)))
        return CUDA_ERROR_INVALID_VALUE;
    if ((asked->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0 && (asked->Height == 0 || asked->Depth != 0))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Everything but the memory. */
static CUresult array_describe(const CUDA_ARRAY3D_DESCRIPTOR *asked, const struct context *context, struct array *out)
{
    if ((asked->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_DEPTH_TEXTURE)) != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if ((asked->Flags & ~(unsigned)ARRAY_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (asked->NumChannels != 1 && asked->NumChannels != 2 && asked->NumChannels != 4)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_extents(asked);
    if (result != CUDA_SUCCESS)
        return result;
    size_t channel = channel_bytes(asked->Format);
    if (channel == 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    *out = (struct array){.magic = HANDLE_ARRAY,
                          .descriptor = *asked,
                          .element_bytes = channel * asked->NumChannels,
                          .rows = asked->Height > 0 ? asked->Height : 1,
                          .slices = asked->Depth > 0 ? asked->Depth : 1,
                          .device = context->device,
                          .owner = (struct context *)context};
    out->row_bytes = asked->Width * out->element_bytes;
    return CUDA_SUCCESS;
}

/* The memory itself is the context's and goes with it. */
static void forget_context(struct context *context)
{
    pthread_mutex_lock(&lock);
    for (struct array *array = arrays; array != NULL; array = array->next)
        if (array->owner == context)
            array->magic = HANDLE_DEAD;
    for (struct mipmap *mipmap = mipmaps; mipmap != NULL; mipmap = mipmap->next) {
        if (mipmap->owner != context)
            continue;
        mipmap->magic = HANDLE_DEAD;
        for (unsigned i = 0; i < mipmap->count; i++)
            mipmap->levels[i].magic = HANDLE_DEAD;
    }
    pthread_mutex_unlock(&lock);
}

static CUresult enter(struct context **context)
{
    CUresult result = context_enter(context);
    return result != CUDA_SUCCESS ? result : capture_check_unsafe();
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *asked)
{
    struct context *context;
    struct array described;
    CUresult result = enter(&context);
    if (result == CUDA_SUCCESS && (out == NULL || asked == NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = array_describe(asked, context, &described);
    if (result == CUDA_SUCCESS)
        result = memory_allocate(context->device, described.row_bytes * described.rows * described.slices, USE_PLAIN,
                                 context, NULL, &described.memory);
    if (result != CUDA_SUCCESS)
        return result;
    struct array *array = malloc(sizeof *array);
    if (array == NULL)
        abort();
    *array = described;
    context_on_destroy(forget_context);
    pthread_mutex_lock(&lock);
    array->next = arrays;
    arrays = array;
    pthread_mutex_unlock(&lock);
    *out = (CUarray)array;
    return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *asked)
{
    if (asked == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR same = {
        .Width = asked->Width, .Height = asked->Height, .Format = asked->Format, .NumChannels = asked->NumChannels};
    return cuArray3DCreate_v2(out, &same);
}

CUresult cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *asked)
{
    if (asked == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR same = {asked->Width,  asked->Height,      asked->Depth,
                                    asked->Format, asked->NumChannels, asked->Flags};
    return cuArray3DCreate_v2(out, &same);
}

CUresult cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *asked)
{
    if (asked == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR same = {
        .Width = asked->Width, .Height = asked->Height, .Format = asked->Format, .NumChannels = asked->NumChannels};
    return cuArray3DCreate_v2(out, &same);
}

/* Handles are never returned, so that a stale one is refused. */
CUresult cuArrayDestroy(CUarray handle)
{
    struct context *context;
    struct array *array;
    CUresult result = enter(&context);
    if (result == CUDA_SUCCESS)
        result = array_find(handle, &array);
    if (result == CUDA_SUCCESS && array->is_level)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result != CUDA_SUCCESS)
        return result;
    device_wait();
    array->magic = HANDLE_DEAD;
    return memory_release(array->memory);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray handle)
{
    struct context *context;
    struct array *array;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = array_find(handle, &array);
    if (result == CUDA_SUCCESS && out == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *out = array->descriptor;
    return result;
}

/* For arrays of any shape, as the driver has it: the depth is left out. */
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *out, CUarray handle)
{
    CUDA_ARRAY3D_DESCRIPTOR all;
    CUresult result = cuArray3DGetDescriptor_v2(&all, handle);
    if (result == CUDA_SUCCESS && out == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *out = (CUDA_ARRAY_DESCRIPTOR){all.Width, all.Height, all.Format, all.NumChannels};
    return result;
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *out, CUarray handle)
{
    CUDA_ARRAY3D_DESCRIPTOR all;
    CUresult result = cuArray3DGetDescriptor_v2(&all, handle);
    if (result == CUDA_SUCCESS && out == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *out = (CUDA_ARRAY3D_DESCRIPTOR_v1){(unsigned)all.Width, (unsigned)all.Height, (unsigned)all.Depth,
                                            all.Format,          all.NumChannels,      all.Flags};
    return result;
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *out, CUarray handle)
{
    CUDA_ARRAY3D_DESCRIPTOR all;
    CUresult result = cuArray3DGetDescriptor_v2(&all, handle);
    if (result == CUDA_SUCCESS && out == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *out = (CUDA_ARRAY_DESCRIPTOR_v1){(unsigned)all.Width, (unsigned)all.Height, all.Format, all.NumChannels};
    return result;
}

static CUresult check_array(CUarray handle)
{
    struct array *array;
    return array_find(handle, &array);
}

/* What only planar, sparse and deferred arrays can be asked; there are none here. */
CUresult cuArrayGetPlane(CUarray *out, CUarray handle, unsigned int plane)
{
    (void)out, (void)plane;
    CUresult result = check_array(handle);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray handle, CUdevice device)
{
    (void)out, (void)device;
    CUresult result = check_array(handle);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray handle)
{
    (void)out;
    CUresult result = check_array(handle);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
}

static size_t halved(size_t extent)
{
    return extent > 1 ? extent / 2 : extent;
}

static CUresult describe_levels(const CUDA_ARRAY3D_DESCRIPTOR *asked, const struct context *context,
                                struct mipmap *mipmap, size_t *bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR level = *asked;
    bool is_layered = (asked->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    for (unsigned i = 0; i < mipmap->count; i++) {
        struct array *array = &mipmap->levels[i];
        CUresult result = array_describe(&level, context, array);
        if (result != CUDA_SUCCESS)
            return result;
        array->is_level = true;
        array->memory = *bytes;
        *bytes += array->row_bytes * array->rows * array->slices;
        level.Width = halved(level.Width);
        level.Height = halved(level.Height);
        level.Depth = is_layered ? level.Depth : halved(level.Depth);
    }
    return CUDA_SUCCESS;
}

/* As many levels as the largest extent has binary digits, at most. */
static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *asked)
{
    bool is_layered = (asked->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    size_t largest = asked->Width > asked->Height ? asked->Width : asked->Height;
    unsigned levels = 0;
    if (!is_layered && asked->Depth > largest)
        largest = asked->Depth;
    for (; largest > 0 && levels < LEVELS_MAX; largest /= 2)
        levels++;
    return levels;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *asked, unsigned int levels)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || asked == NULL || levels == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct mipmap *mipmap = calloc(1, sizeof *mipmap);
    size_t bytes = 0;
    if (mipmap == NULL)
        abort();
    *mipmap = (struct mipmap){.magic = HANDLE_MIPMAP, .owner = context};
    mipmap->count = levels < most_levels(asked) ? levels : most_levels(asked);
    result = mipmap->count > 0 ? describe_levels(asked, context, mipmap, &bytes) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = memory_allocate(context->device, bytes, USE_PLAIN, context, NULL, &mipmap->memory);
    if (result != CUDA_SUCCESS) {
        free(mipmap);
        return result;
    }
    for (unsigned i = 0; i < mipmap->count; i++)
        mipmap->levels[i].memory += mipmap->memory;
    context_on_destroy(forget_context);
    pthread_mutex_lock(&lock);
    mipmap->next = mipmaps;
    mipmaps = mipmap;
    pthread_mutex_unlock(&lock);
    *out = (CUmipmappedArray)mipmap;
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray handle, unsigned int level)
{
    struct context *context;
    struct mipmap *mipmap;
    CUresult result = context_enter(&context);
    if (result == CUDA_SUCCESS)
        result = mipmap_find(handle, &mipmap);
    if (result == CUDA_SUCCESS && (out == NULL || level >= mipmap->count))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *out = (CUarray)&mipmap->levels[level];
    return result;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
    struct context *context;
    struct mipmap *mipmap;
    CUresult result = enter(&context);
    if (result == CUDA_SUCCESS)
        result = mipmap_find(handle, &mipmap);
    if (result != CUDA_SUCCESS)
        return result;
    device_wait();
    mipmap->magic = HANDLE_DEAD;
    for (unsigned i = 0; i < mipmap->count; i++)
        mipmap->levels[i].magic = HANDLE_DEAD;
    return memory_release(mipmap->memory);
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray handle,
                                               CUdevice device)
{
    struct mipmap *mipmap;
    (void)out, (void)device;
    CUresult result = mipmap_find(handle, &mipmap);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUmipmappedArray handle)
{
    struct mipmap *mipmap;
    (void)out;
    CUresult result = mipmap_find(handle, &mipmap);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
}
