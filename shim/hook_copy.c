/* Plain copies and sets: operations that the engine understands. */
#include "shim/hook.h"

#include "shim/capture.h"

#include "shim/inside.h"

static CUresult forward_operation(void *call)
{
    const struct operation *operation = call;
    return launch_issue(operation, operation->arguments);
}

static CUresult submit(struct operation *operation)
{
    CUdeviceptr begin, end;
    struct use uses[2];
    operation->uses = uses;
    operation->forward = forward_operation;
    operation->call = operation;
    operation->is_captured = capture_is_active(operation->stream);
    engine_arena(&begin, &end);
    launch_find_uses(operation, begin, end);
    return engine_submit(operation);
}

/* What the program will be able to read on the host must have been compared first. */
static CUresult submit_copy(struct operation *operation, const struct copy_arguments *copy)
{
    CUresult result = CUDA_SUCCESS;
    bool is_seen = copy->direction == COPY_DEVICE_TO_HOST;
    if (copy->direction == COPY_HOST_TO_DEVICE)
        result = engine_scan((const void *)copy->source, copy->bytes, copy->destination);
    if (result == CUDA_SUCCESS)
        result = submit(operation);
    return is_seen && copy->is_synchronous ? engine_after_sync(result) : result;
}

static CUresult copy(struct copy_arguments arguments, CUstream stream)
{
    struct operation operation = {
        .kind = OPERATION_COPY,
        .stream = stream,
        .arguments = (unsigned char *)&arguments,
        .argument_bytes = sizeof arguments,
    };
    if (arguments.bytes == 0 || !gate_enter())
        return launch_issue(&operation, operation.arguments);
    return gate_leave(submit_copy(&operation, &arguments));
}

#define COPY_NOW(name, type_to, type_from, way)                                                                        \
    CUresult hook_##name(type_to destination, type_from source, size_t bytes)                                          \
    {                                                                                                                  \
        return copy((struct copy_arguments){(uint64_t)destination, (uint64_t)source, bytes, way, true},                \
                    CU_STREAM_LEGACY);                                                                                 \
    }                                                                                                                  \
    CUresult hook_##name##_ptds(type_to destination, type_from source, size_t bytes)                                   \
    {                                                                                                                  \
        return copy((struct copy_arguments){(uint64_t)destination, (uint64_t)source, bytes, way, true},                \
                    CU_STREAM_PER_THREAD);                                                                             \
    }

#define COPY_LATER(name, type_to, type_from, way)                                                                      \
    static CUresult on_##name(type_to destination, type_from source, size_t bytes, CUstream stream)                    \
    {                                                                                                                  \
        return copy((struct copy_arguments){(uint64_t)destination, (uint64_t)source, bytes, way, false}, stream);      \
    }                                                                                                                  \
    STREAM_PAIR(name, (type_to destination, type_from source, size_t bytes, CUstream stream),                          \
                (destination, source, bytes, stream))

COPY_NOW(cuMemcpyHtoD_v2, CUdeviceptr, const void *, COPY_HOST_TO_DEVICE)
COPY_NOW(cuMemcpyDtoH_v2, void *, CUdeviceptr, COPY_DEVICE_TO_HOST)
COPY_NOW(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, COPY_DEVICE_TO_DEVICE)
COPY_LATER(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, COPY_HOST_TO_DEVICE)
COPY_LATER(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, COPY_DEVICE_TO_HOST)
COPY_LATER(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, COPY_DEVICE_TO_DEVICE)

static bool is_device(CUdeviceptr address)
{
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    return engine_owns(address) ||
           (driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
            type == CU_MEMORYTYPE_DEVICE);
}

static CUresult forward_any(const struct copy_arguments *arguments, CUstream stream)
{
    CUdeviceptr to = arguments->destination, from = arguments->source;
    if (!arguments->is_synchronous)
        return driver.cuMemcpyAsync(to, from, arguments->bytes, stream);
    return (stream == CU_STREAM_PER_THREAD ? driver.cuMemcpy_ptds : driver.cuMemcpy)(to, from, arguments->bytes);
}

/* The direction is in the addresses. */
static CUresult copy_any(struct copy_arguments arguments, CUstream stream)
{
    if (arguments.bytes == 0 || !gate_enter())
        return forward_any(&arguments, stream);
    bool is_to_device = is_device(arguments.destination), is_from_device = is_device(arguments.source);
    arguments.direction = !is_from_device ? COPY_HOST_TO_DEVICE
                          : is_to_device  ? COPY_DEVICE_TO_DEVICE
                                          : COPY_DEVICE_TO_HOST;
    struct operation operation = {
        .kind = OPERATION_COPY,
        .stream = stream,
        .arguments = (unsigned char *)&arguments,
        .argument_bytes = sizeof arguments,
    };
    bool is_ours = is_to_device || is_from_device;
    return gate_leave(is_ours ? submit_copy(&operation, &arguments) : forward_any(&arguments, stream));
}

CUresult hook_cuMemcpy(CUdeviceptr destination, CUdeviceptr source, size_t bytes)
{
    return copy_any((struct copy_arguments){destination, source, bytes, 0, true}, CU_STREAM_LEGACY);
}

CUresult hook_cuMemcpy_ptds(CUdeviceptr destination, CUdeviceptr source, size_t bytes)
{
    return copy_any((struct copy_arguments){destination, source, bytes, 0, true}, CU_STREAM_PER_THREAD);
}

static CUresult on_cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream)
{
    return copy_any((struct copy_arguments){destination, source, bytes, 0, false}, stream);
}

STREAM_PAIR(cuMemcpyAsync, (CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream),
            (destination, source, bytes, stream))

static CUresult set(struct set_arguments arguments, CUstream stream)
{
    struct operation operation = {
        .kind = OPERATION_SET,
        .stream = stream,
        .arguments = (unsigned char *)&arguments,
        .argument_bytes = sizeof arguments,
    };
    if (arguments.width == 0 || arguments.height == 0 || !gate_enter())
        return launch_issue(&operation, operation.arguments);
    return gate_leave(submit(&operation));
}

#define SET_NOW(name, type, element)                                                                                   \
    CUresult hook_##name(CUdeviceptr at, type value, size_t count)                                                     \
    {                                                                                                                  \
        return set((struct set_arguments){at, 0, count, 1, element, value, true, 0}, CU_STREAM_LEGACY);                \
    }                                                                                                                  \
    CUresult hook_##name##_ptds(CUdeviceptr at, type value, size_t count)                                              \
    {                                                                                                                  \
        return set((struct set_arguments){at, 0, count, 1, element, value, true, 0}, CU_STREAM_PER_THREAD);            \
    }

#define SET_LATER(name, type, element)                                                                                 \
    static CUresult on_##name(CUdeviceptr at, type value, size_t count, CUstream stream)                               \
    {                                                                                                                  \
        return set((struct set_arguments){at, 0, count, 1, element, value, false, 0}, stream);                         \
    }                                                                                                                  \
    STREAM_PAIR(name, (CUdeviceptr at, type value, size_t count, CUstream stream), (at, value, count, stream))

SET_NOW(cuMemsetD8_v2, unsigned char, 1)
SET_NOW(cuMemsetD16_v2, unsigned short, 2)
SET_NOW(cuMemsetD32_v2, unsigned int, 4)
SET_LATER(cuMemsetD8Async, unsigned char, 1)
SET_LATER(cuMemsetD16Async, unsigned short, 2)
SET_LATER(cuMemsetD32Async, unsigned int, 4)

/* A pitch of zero is legal only where there are no further rows; struct set_arguments says one row by it. */
static CUresult set_rows(struct set_arguments arguments, CUstream stream)
{
    if (arguments.height == 1)
        arguments.pitch = 0;
    else if (arguments.pitch < arguments.width * arguments.element_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return set(arguments, stream);
}

#define SET_ROWS_NOW(name, type, element)                                                                              \
    CUresult hook_##name(CUdeviceptr at, size_t pitch, type value, size_t width, size_t height)                        \
    {                                                                                                                  \
        return set_rows((struct set_arguments){at, pitch, width, height, element, value, true, 0}, CU_STREAM_LEGACY);  \
    }                                                                                                                  \
    CUresult hook_##name##_ptds(CUdeviceptr at, size_t pitch, type value, size_t width, size_t height)                 \
    {                                                                                                                  \
        return set_rows((struct set_arguments){at, pitch, width, height, element, value, true, 0},                     \
                        CU_STREAM_PER_THREAD);                                                                         \
    }

#define SET_ROWS_LATER(name, type, element)                                                                            \
    static CUresult on_##name(CUdeviceptr at, size_t pitch, type value, size_t width, size_t height, CUstream stream)  \
    {                                                                                                                  \
        return set_rows((struct set_arguments){at, pitch, width, height, element, value, false, 0}, stream);           \
    }                                                                                                                  \
    STREAM_PAIR(name, (CUdeviceptr at, size_t pitch, type value, size_t width, size_t height, CUstream stream),        \
                (at, pitch, value, width, height, stream))

SET_ROWS_NOW(cuMemsetD2D8_v2, unsigned char, 1)
SET_ROWS_NOW(cuMemsetD2D16_v2, unsigned short, 2)
SET_ROWS_NOW(cuMemsetD2D32_v2, unsigned int, 4)
SET_ROWS_LATER(cuMemsetD2D8Async, unsigned char, 1)
SET_ROWS_LATER(cuMemsetD2D16Async, unsigned short, 2)
SET_ROWS_LATER(cuMemsetD2D32Async, unsigned int, 4)
