/* Tensor maps: the arguments, checked as the manual says, in an encoding of our own (the hardware's is not public).
 * Kernels that use them are refused when they are loaded, so nothing here reads one back but ReplaceAddress. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/settings.h"
#include <string.h>

#define RANK_MAX      5
#define DIMENSION_MAX ((cuuint64_t)1 << 32)
#define STRIDE_END    ((cuuint64_t)1 << 40)
#define MAP_MAGIC     0xA7

enum map_kind { MAP_TILED = 1, MAP_IM2COL, MAP_IM2COL_WIDE };

/* The 128 bytes. The address does not lie on a word: who looks for pointers must not find it by chance. */
struct map {
    unsigned char magic, kind, type, rank;
    unsigned char interleave, swizzle, promotion, fill;
    unsigned char address[6], mode, reserved;
    uint32_t dimensions[RANK_MAX];          /* less 1 */
    unsigned char strides[RANK_MAX - 1][5]; /* bytes */
    uint16_t box[RANK_MAX];                 /* tiled: elements */
    unsigned char steps[RANK_MAX];
    int16_t lower[RANK_MAX - 2], upper[RANK_MAX - 2]; /* im2col: corners */
    uint16_t channels, pixels;
};

_Static_assert(sizeof(struct map) <= sizeof(CUtensorMap), "a tensor map does not fit");

/* What all three kinds are given. */
struct tensor {
    CUtensorMapDataType type;
    cuuint32_t rank;
    const void *address;
    const cuuint64_t *dimensions, *strides;
    const cuuint32_t *steps;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

/* 0: packed elements of less than a byte. */
static size_t element_bytes(CUtensorMapDataType type)
{
    static const unsigned char bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 0, 0};
    return bytes[type];
}

static bool is_type(CUtensorMapDataType type)
{
    return (unsigned)type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

static bool is_packed_wide(CUtensorMapDataType type)
{
    return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B || type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

static bool is_float(CUtensorMapDataType type)
{
    return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

/* The alignment of addresses and strides. */
static size_t alignment_of(const struct tensor *tensor)
{
    return tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_32B || is_packed_wide(tensor->type) ? 32 : 16;
}

static bool are_enums_good(const struct tensor *tensor)
{
    return is_type(tensor->type) && (unsigned)tensor->interleave <= CU_TENSOR_MAP_INTERLEAVE_32B &&
           (unsigned)tensor->swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
           (unsigned)tensor->promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
           (unsigned)tensor->fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
}

static bool is_swizzle_good(const struct tensor *tensor)
{
    CUtensorMapSwizzle swizzle = tensor->swizzle;
    if (tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_32B && swizzle != CU_TENSOR_MAP_SWIZZLE_32B)
        return false;
    if (!is_packed_wide(tensor->type))
        return true;
    if (tensor->type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B && tensor->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
        return false;
    return swizzle == CU_TENSOR_MAP_SWIZZLE_NONE || swizzle == CU_TENSOR_MAP_SWIZZLE_128B ||
           swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B ||
           (swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B && tensor->type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
}

static bool are_dimensions_good(const struct tensor *tensor)
{
    for (cuuint32_t i = 0; i < tensor->rank; i++)
        if (tensor->dimensions[i] == 0 || tensor->dimensions[i] > DIMENSION_MAX)
            return false;
    if (is_packed_wide(tensor->type) && tensor->dimensions[0] % 128 != 0)
        return false;
    return tensor->type != CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B || tensor->dimensions[0] % 2 == 0;
}

static bool are_strides_good(const struct tensor *tensor)
{
    for (cuuint32_t i = 0; i + 1 < tensor->rank; i++)
        if (tensor->strides[i] % alignment_of(tensor) != 0 || tensor->strides[i] >= STRIDE_END)
            return false;
    for (cuuint32_t i = 0; i < tensor->rank; i++) {
        bool is_ignored = i == 0 && tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
        if (!is_ignored && (tensor->steps[i] == 0 || tensor->steps[i] > 8))
            return false;
    }
    return true;
}

static CUresult check(const CUtensorMap *out, const struct tensor *tensor, cuuint32_t least_rank,
                      uint32_t least_capability)
{
    struct context *context;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (settings()->capability < least_capability)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (out == NULL || ((uintptr_t)out & 63) != 0 || !are_enums_good(tensor))
        return CUDA_ERROR_INVALID_VALUE;
    if (tensor->rank < least_rank || tensor->rank > RANK_MAX ||
        (tensor->rank < 3 && tensor->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE))
        return CUDA_ERROR_INVALID_VALUE;
    if (tensor->dimensions == NULL || tensor->steps == NULL || (tensor->strides == NULL && tensor->rank > 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (tensor->address == NULL || (uintptr_t)tensor->address % alignment_of(tensor) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (tensor->fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && !is_float(tensor->type))
        return CUDA_ERROR_INVALID_VALUE;
    return are_dimensions_good(tensor) && are_strides_good(tensor) && is_swizzle_good(tensor)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

/* The inner row of a box, without interleaving, must fit what is swizzled. */
static bool fits_swizzle(const struct tensor *tensor, size_t inner_elements)
{
    static const size_t spans[] = {0, 32, 64, 128, 128, 128, 128};
    size_t bytes = inner_elements * element_bytes(tensor->type), span = spans[tensor->swizzle];
    return tensor->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || span == 0 || bytes <= span;
}

static void put_address(struct map *map, uintptr_t address)
{
    for (size_t i = 0; i < sizeof map->address; i++)
        map->address[i] = (unsigned char)(address >> (4 + 8 * i));
}

static struct map encode(const struct tensor *tensor, enum map_kind kind)
{
    struct map map;
    memset(&map, 0, sizeof map);
    map.magic = MAP_MAGIC;
    map.kind = (unsigned char)kind;
    map.type = (unsigned char)tensor->type;
    map.rank = (unsigned char)tensor->rank;
    map.interleave = (unsigned char)tensor->interleave;
    map.swizzle = (unsigned char)tensor->swizzle;
    map.promotion = (unsigned char)tensor->promotion;
    map.fill = (unsigned char)tensor->fill;
    put_address(&map, (uintptr_t)tensor->address);
    for (cuuint32_t i = 0; i < tensor->rank; i++) {
        map.dimensions[i] = (uint32_t)(tensor->dimensions[i] - 1);
        map.steps[i] = (unsigned char)tensor->steps[i];
    }
    for (cuuint32_t i = 0; i + 1 < tensor->rank; i++)
        for (size_t k = 0; k < sizeof map.strides[i]; k++)
            map.strides[i][k] = (unsigned char)(tensor->strides[i] >> (8 * k));
    return map;
}

static void give(CUtensorMap *out, const struct map *map)
{
    memset(out, 0, sizeof *out);
    memcpy(out, map, sizeof *map);
}

static bool is_box_good(const struct tensor *tensor, const cuuint32_t *box)
{
    if (box == NULL)
        return false;
    for (cuuint32_t i = 0; i < tensor->rank; i++)
        if (box[i] == 0 || box[i] > 256)
            return false;
    if (is_packed_wide(tensor->type))
        return box[0] == 128;
    size_t bytes =
        tensor->type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B ? box[0] / 2 : box[0] * element_bytes(tensor->type);
    if (tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && bytes % 16 != 0)
        return false;
    return fits_swizzle(tensor, box[0]);
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *dimensions, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    struct tensor tensor = {type, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill};
    CUresult result = check(out, &tensor, 1, 90);
    if (result == CUDA_SUCCESS && !is_box_good(&tensor, box))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    struct map map = encode(&tensor, MAP_TILED);
    for (cuuint32_t i = 0; i < rank; i++)
        map.box[i] = (uint16_t)box[i];
    give(out, &map);
    return CUDA_SUCCESS;
}

static bool are_counts_good(const struct tensor *tensor, cuuint32_t channels, cuuint32_t pixels)
{
    if (channels == 0 || channels > 256 || pixels > 1024 || (is_packed_wide(tensor->type) && channels != 128))
        return false;
    return fits_swizzle(tensor, channels);
}

/* Corners lie within what their number of bits holds, which depends on how many there are, and leave a box between. */
static bool are_corners_good(const struct tensor *tensor, const int *lower, const int *upper)
{
    static const int limits[] = {32768, 128, 16};
    int limit = limits[tensor->rank - 3];
    for (cuuint32_t i = 0; i < tensor->rank - 2; i++) {
        if (lower[i] < -limit || lower[i] >= limit || upper[i] < -limit || upper[i] >= limit)
            return false;
        /* The dimensions run C W H D N, the corners D H W. */
        int64_t extent = (int64_t)tensor->dimensions[tensor->rank - 2 - i];
        if (extent + upper[i] - lower[i] <= 0)
            return false;
    }
    return true;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                 const cuuint64_t *dimensions, const cuuint64_t *strides, const int *lower,
                                 const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    struct tensor tensor = {type, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill};
    CUresult result = check(out, &tensor, 3, 90);
    if (result == CUDA_SUCCESS && (lower == NULL || upper == NULL || !are_counts_good(&tensor, channels, pixels) ||
                                   !are_corners_good(&tensor, lower, upper)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    struct map map = encode(&tensor, MAP_IM2COL);
    for (cuuint32_t i = 0; i < rank - 2; i++) {
        map.lower[i] = (int16_t)lower[i];
        map.upper[i] = (int16_t)upper[i];
    }
    map.channels = (uint16_t)channels;
    map.pixels = (uint16_t)pixels;
    give(out, &map);
    return CUDA_SUCCESS;
}

static bool is_wide_swizzle(const struct tensor *tensor)
{
    return tensor->swizzle == CU_TENSOR_MAP_SWIZZLE_128B || tensor->swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B ||
           (tensor->swizzle == CU_TENSOR_MAP_SWIZZLE_64B && !is_packed_wide(tensor->type));
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                     const cuuint64_t *dimensions, const cuuint64_t *strides, int lower, int upper,
                                     cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps,
                                     CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
                                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                     CUtensorMapFloatOOBfill fill)
{
    struct tensor tensor = {type, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill};
    bool is_counted = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W;
    CUresult result = check(out, &tensor, 3, 100);
    if (result != CUDA_SUCCESS)
        return result;
    int64_t extent = (int64_t)dimensions[1] + upper - lower;
    if ((unsigned)mode > CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 || !is_wide_swizzle(&tensor) || lower < -32768 ||
        lower > 32767 || upper < -32768 || upper > 32767 || extent <= 0 ||
        !are_counts_good(&tensor, channels, is_counted ? pixels : 0))
        return CUDA_ERROR_INVALID_VALUE;
    struct map map = encode(&tensor, MAP_IM2COL_WIDE);
    map.lower[0] = (int16_t)lower;
    map.upper[0] = (int16_t)upper;
    map.channels = (uint16_t)channels;
    map.pixels = (uint16_t)pixels;
    map.mode = (unsigned char)mode;
    give(out, &map);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *out, void *address)
{
    struct context *context;
    struct map map;
    CUresult result = context_enter(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || ((uintptr_t)out & 63) != 0 || address == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&map, out, sizeof map);
    bool is_map = map.magic == MAP_MAGIC && map.kind >= MAP_TILED && map.kind <= MAP_IM2COL_WIDE;
    if (!is_map || !is_type((CUtensorMapDataType)map.type))
        return CUDA_ERROR_INVALID_VALUE;
    struct tensor tensor = {.type = (CUtensorMapDataType)map.type, .interleave = (CUtensorMapInterleave)map.interleave};
    if ((uintptr_t)address % alignment_of(&tensor) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    put_address(&map, (uintptr_t)address);
    memcpy(out, &map, sizeof map);
    return CUDA_SUCCESS;
}
