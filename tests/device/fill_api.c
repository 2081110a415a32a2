/* The memset calls: element sizes 1, 2, 4; one row or many; blocking forms and stream forms, each with its
 * per-thread-stream twin. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"

static CUresult fill(CUstream handle, struct fill_work work, bool is_synchronous)
{
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter(handle, &context, &stream);
    return result != CUDA_SUCCESS ? result : fill_submit(context, stream, &work, is_synchronous);
}

static CUresult fill_row(CUstream stream, CUdeviceptr to, uint32_t element_bytes, uint32_t value, size_t count,
                         bool is_synchronous)
{
    return fill(stream, (struct fill_work){to, 0, count, 1, element_bytes, value}, is_synchronous);
}

static CUresult fill_rows(CUstream stream, CUdeviceptr to, size_t pitch, uint32_t element_bytes, uint32_t value,
                          size_t width, size_t height, bool is_synchronous)
{
    return fill(stream, (struct fill_work){to, pitch, width, height, element_bytes, value}, is_synchronous);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    return fill_row(CU_STREAM_LEGACY, to, 1, value, count, true);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, size_t count)
{
    return fill_row(CU_STREAM_PER_THREAD, to, 1, value, count, true);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return fill_row(stream, to, 1, value, count, false);
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return fill_row(per_thread(stream), to, 1, value, count, false);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return fill_rows(CU_STREAM_LEGACY, to, pitch, 1, value, width, height, true);
}

CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return fill_rows(CU_STREAM_PER_THREAD, to, pitch, 1, value, width, height, true);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream)
{
    return fill_rows(stream, to, pitch, 1, value, width, height, false);
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                CUstream stream)
{
    return fill_rows(per_thread(stream), to, pitch, 1, value, width, height, false);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
    return fill_row(CU_STREAM_LEGACY, to, 2, value, count, true);
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value, size_t count)
{
    return fill_row(CU_STREAM_PER_THREAD, to, 2, value, count, true);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    return fill_row(stream, to, 2, value, count, false);
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    return fill_row(per_thread(stream), to, 2, value, count, false);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return fill_rows(CU_STREAM_LEGACY, to, pitch, 2, value, width, height, true);
}

CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return fill_rows(CU_STREAM_PER_THREAD, to, pitch, 2, value, width, height, true);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream)
{
    return fill_rows(stream, to, pitch, 2, value, width, height, false);
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                                 CUstream stream)
{
    return fill_rows(per_thread(stream), to, pitch, 2, value, width, height, false);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
    return fill_row(CU_STREAM_LEGACY, to, 4, value, count, true);
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned int value, size_t count)
{
    return fill_row(CU_STREAM_PER_THREAD, to, 4, value, count, true);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
    return fill_row(stream, to, 4, value, count, false);
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
    return fill_row(per_thread(stream), to, 4, value, count, false);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height)
{
    return fill_rows(CU_STREAM_LEGACY, to, pitch, 4, value, width, height, true);
}

CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height)
{
    return fill_rows(CU_STREAM_PER_THREAD, to, pitch, 4, value, width, height, true);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                            CUstream stream)
{
    return fill_rows(stream, to, pitch, 4, value, width, height, false);
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                                 CUstream stream)
{
    return fill_rows(per_thread(stream), to, pitch, 4, value, width, height, false);
}
