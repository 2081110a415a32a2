#include "tests/device/driver.h"
#include "tests/device/value.h"
#include "tests/device/context.h"
#include "tests/device/copy.h"
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include <string.h>

#define WAIT_FLAGS (CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH)

/* Managed memory is not for these operations. */
static CUresult check_address(CUdeviceptr address, size_t bytes)
{
    struct allocation allocation;
    if (address == 0 || address % bytes != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (memory_find(address, &allocation) && allocation.is_managed)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_check_device(address, bytes);
}

static CUresult make_word(enum work_kind kind, CUdeviceptr address, uint64_t value, unsigned flags, bool is_wide,
                          struct work **out)
{
    unsigned known = kind == WORK_VALUE_WRITE ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER : WAIT_FLAGS;
    if ((flags & ~known) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    /* CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES is 0. */
    if (kind == WORK_VALUE_WAIT && (flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = check_address(address, is_wide ? 8 : 4);
    if (result != CUDA_SUCCESS)
        return result;
    *out = work_new(kind);
    (*out)->value = (struct value_work){address, value, flags, is_wide};
    return CUDA_SUCCESS;
}

static CUresult make_one(const CUstreamBatchMemOpParams *operation, struct work **out)
{
    switch (operation->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return make_word(WORK_VALUE_WAIT, operation->waitValue.address, operation->waitValue.value,
                         operation->waitValue.flags, false, out);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return make_word(WORK_VALUE_WAIT, operation->waitValue.address, operation->waitValue.value64,
                         operation->waitValue.flags, true, out);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return make_word(WORK_VALUE_WRITE, operation->writeValue.address, operation->writeValue.value,
                         operation->writeValue.flags, false, out);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return make_word(WORK_VALUE_WRITE, operation->writeValue.address, operation->writeValue.value64,
                         operation->writeValue.flags, true, out);
    case CU_STREAM_MEM_OP_BARRIER:
        if (operation->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU)
            return CUDA_ERROR_INVALID_VALUE;
        *out = work_new(WORK_NOTHING);
        return CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult value_make_work(const CUstreamBatchMemOpParams *operations, unsigned count, struct work **out)
{
    struct work **link = out;
    *out = NULL;
    if (operations == NULL || count == 0 || count > VALUE_OPERATIONS_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        CUresult result = make_one(&operations[i], link);
        if (result != CUDA_SUCCESS) {
            work_discard(*out);
            *out = NULL;
            return result;
        }
        link = &(*link)->next;
    }
    return CUDA_SUCCESS;
}

CUstreamBatchMemOpParams value_describe(const struct work *work)
{
    CUstreamBatchMemOpParams operation;
    memset(&operation, 0, sizeof operation);
    const struct value_work *value = &work->value;
    if (work->kind == WORK_VALUE_WAIT) {
        operation.operation = value->is_wide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
        operation.waitValue.address = value->address;
        operation.waitValue.value64 = value->value;
        operation.waitValue.flags = value->flags;
    } else if (work->kind == WORK_VALUE_WRITE) {
        operation.operation = value->is_wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
        operation.writeValue.address = value->address;
        operation.writeValue.value64 = value->value;
        operation.writeValue.flags = value->flags;
    } else {
        operation.operation = CU_STREAM_MEM_OP_BARRIER;
    }
    return operation;
}

struct look {
    const struct value_work *value;
    uint64_t now;
};

static void read_word(void *argument)
{
    struct look *look = argument;
    look->now = look->value->is_wide ? __atomic_load_n((uint64_t *)look->value->address, __ATOMIC_ACQUIRE)
                                     : __atomic_load_n((uint32_t *)look->value->address, __ATOMIC_ACQUIRE);
}

bool value_is_there(const struct value_work *value, CUresult *error)
{
    struct look look = {value, 0};
    *error = fault_guard(read_word, &look);
    if (*error != CUDA_SUCCESS)
        return true;
    uint64_t mask = value->is_wide ? UINT64_MAX : UINT32_MAX, wanted = value->value & mask, now = look.now;
    switch (value->flags & 3u) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & wanted) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return (~(now | wanted) & mask) != 0;
    default:
        return value->is_wide ? (int64_t)(now - wanted) >= 0 : (int32_t)(uint32_t)(now - wanted) >= 0;
    }
}

/* ---- calls ---- */

static CUresult submit(CUstream handle, unsigned count, const CUstreamBatchMemOpParams *operations)
{
    struct context *context;
    struct stream *stream;
    struct work *work;
    CUresult result = stream_enter(handle, &context, &stream);
    if (result == CUDA_SUCCESS)
        result = value_make_work(operations, count, &work);
    return result != CUDA_SUCCESS ? result : work_take(stream, work);
}

static CUresult submit_word(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value,
                            unsigned flags)
{
    CUstreamBatchMemOpParams operation;
    memset(&operation, 0, sizeof operation);
    operation.operation = type;
    /* The structs of writing and of waiting are laid out alike. */
    operation.waitValue.address = address;
    operation.waitValue.value64 = value;
    operation.waitValue.flags = flags;
    return submit(stream, 1, &operation);
}

/* All four forms of a call: the operations of 8.0 and those of 11.7 do the same here. */
#define WORD(name, number, operation)                                                                                  \
    CUresult name##_v2(CUstream stream, CUdeviceptr address, cuuint##number##_t value, unsigned int flags)             \
    {                                                                                                                  \
        return submit_word(stream, operation, address, value, flags);                                                  \
    }                                                                                                                  \
    CUresult name##_v2_ptsz(CUstream stream, CUdeviceptr address, cuuint##number##_t value, unsigned int flags)        \
    {                                                                                                                  \
        return submit_word(per_thread(stream), operation, address, value, flags);                                      \
    }                                                                                                                  \
    CUresult name(CUstream stream, CUdeviceptr address, cuuint##number##_t value, unsigned int flags)                  \
    {                                                                                                                  \
        return submit_word(stream, operation, address, value, flags);                                                  \
    }                                                                                                                  \
    CUresult name##_ptsz(CUstream stream, CUdeviceptr address, cuuint##number##_t value, unsigned int flags)           \
    {                                                                                                                  \
        return submit_word(per_thread(stream), operation, address, value, flags);                                      \
    }

WORD(cuStreamWriteValue32, 32, CU_STREAM_MEM_OP_WRITE_VALUE_32)
WORD(cuStreamWriteValue64, 64, CU_STREAM_MEM_OP_WRITE_VALUE_64)
WORD(cuStreamWaitValue32, 32, CU_STREAM_MEM_OP_WAIT_VALUE_32)
WORD(cuStreamWaitValue64, 64, CU_STREAM_MEM_OP_WAIT_VALUE_64)

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations,
                               unsigned int flags)
{
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : submit(stream, count, operations);
}

TWIN(cuStreamBatchMemOp_v2, _ptsz,
     (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations, unsigned int flags),
     (per_thread(stream), count, operations, flags))

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations,
                            unsigned int flags)
{
    return cuStreamBatchMemOp_v2(stream, count, operations, flags);
}

TWIN(cuStreamBatchMemOp, _ptsz,
     (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations, unsigned int flags),
     (per_thread(stream), count, operations, flags))
