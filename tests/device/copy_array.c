/* Copies of one row to, from and between arrays: `offset` counts bytes from the array's first one. */
#include "tests/device/driver.h"
#include "tests/device/array.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"

/* The address in the array; the whole row must lie in it and consist of whole elements. */
static CUresult place_in(CUarray handle, size_t offset, size_t bytes, uint64_t *out)
{
    struct array *array;
    CUresult result = array_find(handle, &array);
    if (result != CUDA_SUCCESS)
        return result;
    size_t room = array->row_bytes * array->rows * array->slices;
    if (offset > room || bytes > room - offset || offset % array->element_bytes != 0 ||
        bytes % array->element_bytes != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = array->memory + offset;
    return CUDA_SUCCESS;
}

/* One side of such a copy: in an array, or an address that is the device's if `is_device`. */
struct end {
    CUarray array;
    size_t offset;
    uint64_t address;
    bool is_array, is_device;
};

static CUresult address_of(const struct end *end, size_t bytes, uint64_t *out)
{
    if (end->is_array)
        return place_in(end->array, end->offset, bytes, out);
    *out = end->address;
    if (end->address == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return end->is_device ? copy_check_device(end->address, bytes) : CUDA_SUCCESS;
}

static CUresult copy(struct end to, struct end from, size_t bytes, CUstream handle, bool is_synchronous)
{
    struct context *context;
    struct stream *stream;
    struct copy_work work = {.width = bytes, .height = 1, .depth = 1};
    CUresult result = stream_enter(handle, &context, &stream);
    if (result != CUDA_SUCCESS || bytes == 0)
        return result;
    result = address_of(&to, bytes, &work.destination);
    if (result == CUDA_SUCCESS)
        result = address_of(&from, bytes, &work.source);
    return result != CUDA_SUCCESS ? result : copy_submit(context, stream, &work, is_synchronous);
}

static struct end in_array(CUarray array, size_t offset)
{
    return (struct end){.array = array, .offset = offset, .is_array = true};
}

static struct end at_device(CUdeviceptr address)
{
    return (struct end){.address = address, .is_device = true};
}

static struct end at_host(const void *address)
{
    return (struct end){.address = (uint64_t)address};
}

/* The blocking call and its per-thread-stream twin. */
#define BLOCKING(name, parameters, to, from, bytes)                                                                    \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        return copy(to, from, bytes, CU_STREAM_LEGACY, true);                                                          \
    }                                                                                                                  \
    CUresult name##_ptds parameters                                                                                    \
    {                                                                                                                  \
        return copy(to, from, bytes, CU_STREAM_PER_THREAD, true);                                                      \
    }

BLOCKING(cuMemcpyDtoA_v2, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes), in_array(to, offset),
         at_device(from), bytes)
BLOCKING(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes), at_device(to),
         in_array(from, offset), bytes)
BLOCKING(cuMemcpyHtoA_v2, (CUarray to, size_t offset, const void *from, size_t bytes), in_array(to, offset),
         at_host(from), bytes)
BLOCKING(cuMemcpyAtoH_v2, (void *to, CUarray from, size_t offset, size_t bytes), at_host(to), in_array(from, offset),
         bytes)
BLOCKING(cuMemcpyAtoA_v2, (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
         in_array(to, to_offset), in_array(from, from_offset), bytes)

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream)
{
    return copy(in_array(to, offset), at_host(from), bytes, stream, false);
}

TWIN(cuMemcpyHtoAAsync_v2, _ptsz, (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream),
     (to, offset, from, bytes, per_thread(stream)))

CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream)
{
    return copy(at_host(to), in_array(from, offset), bytes, stream, false);
}

TWIN(cuMemcpyAtoHAsync_v2, _ptsz, (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream),
     (to, from, offset, bytes, per_thread(stream)))

/* The forms of CUDA 3.1, with 32-bit sizes, where no device address is 32 bits wide. */
CUresult cuMemcpyHtoA(CUarray to, unsigned int offset, const void *from, unsigned int bytes)
{
    return cuMemcpyHtoA_v2(to, offset, from, bytes);
}

CUresult cuMemcpyAtoH(void *to, CUarray from, unsigned int offset, unsigned int bytes)
{
    return cuMemcpyAtoH_v2(to, from, offset, bytes);
}

CUresult cuMemcpyAtoA(CUarray to, unsigned int to_offset, CUarray from, unsigned int from_offset, unsigned int bytes)
{
    return cuMemcpyAtoA_v2(to, to_offset, from, from_offset, bytes);
}

CUresult cuMemcpyHtoAAsync(CUarray to, unsigned int offset, const void *from, unsigned int bytes, CUstream stream)
{
    return cuMemcpyHtoAAsync_v2(to, offset, from, bytes, stream);
}

CUresult cuMemcpyAtoHAsync(void *to, CUarray from, unsigned int offset, unsigned int bytes, CUstream stream)
{
    return cuMemcpyAtoHAsync_v2(to, from, offset, bytes, stream);
}
