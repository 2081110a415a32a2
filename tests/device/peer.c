/* Several devices: who may reach whose memory, and what their links can do. */
#include "tests/device/driver.h"
#include "tests/device/context.h"
#include "tests/device/settings.h"
#include <stdatomic.h>

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    CUresult result = device_check(device);
    if (result == CUDA_SUCCESS)
        result = device_check(peer);
    if (result != CUDA_SUCCESS)
        return result;
    if (can == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

static CUresult enter(CUcontext handle, struct context **context, struct context **peer)
{
    CUresult result = context_enter(context);
    if (result == CUDA_SUCCESS)
        result = context_find(handle, peer);
    return result;
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags)
{
    struct context *context, *peer;
    CUresult result = enter(handle, &context, &peer);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (peer == context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (peer->device == context->device)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    uint32_t bit = 1u << peer->device;
    return atomic_fetch_or(&context->peers, bit) & bit ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext handle)
{
    struct context *context, *peer;
    CUresult result = enter(handle, &context, &peer);
    if (result != CUDA_SUCCESS)
        return result;
    uint32_t bit = 1u << peer->device;
    return atomic_fetch_and(&context->peers, ~bit) & bit ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

static CUresult check_link(CUdevice from, CUdevice to)
{
    CUresult result = device_check(from);
    if (result == CUDA_SUCCESS)
        result = device_check(to);
    return result == CUDA_SUCCESS && from == to ? CUDA_ERROR_INVALID_DEVICE : result;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
    CUresult result = check_link(from, to);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Every atomic operation is the host's own, wherever the memory is. */
static CUresult all_atomics(unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count)
{
    if (capabilities == NULL || operations == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        capabilities[i] = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_REDUCTION |
                          CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations,
                                          unsigned int count, CUdevice from, CUdevice to)
{
    CUresult result = check_link(from, to);
    return result != CUDA_SUCCESS ? result : all_atomics(capabilities, operations, count);
}

CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations,
                                           unsigned int count, CUdevice device)
{
    CUresult result = device_check(device);
    return result != CUDA_SUCCESS ? result : all_atomics(capabilities, operations, count);
}
