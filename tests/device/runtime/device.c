#include "tests/device/runtime/runtime.h"
#include <string.h>

FORWARD_LOADED(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device),
               cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device))

struct property {
    size_t offset, bytes;
    CUdevice_attribute attribute;
};

#define PROPERTY(field, attribute)                                                                                     \
    {                                                                                                                  \
        offsetof(struct cudaDeviceProp, field), sizeof((struct cudaDeviceProp *)0)->field,                             \
            CU_DEVICE_ATTRIBUTE_##attribute                                                                            \
    }

static const struct property properties[] = {
    PROPERTY(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    PROPERTY(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    PROPERTY(warpSize, WARP_SIZE),
    PROPERTY(memPitch, MAX_PITCH),
    PROPERTY(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    PROPERTY(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    PROPERTY(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    PROPERTY(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    PROPERTY(maxGridSize[0], MAX_GRID_DIM_X),
    PROPERTY(maxGridSize[1], MAX_GRID_DIM_Y),
    PROPERTY(maxGridSize[2], MAX_GRID_DIM_Z),
    PROPERTY(totalConstMem, TOTAL_CONSTANT_MEMORY),
    PROPERTY(major, COMPUTE_CAPABILITY_MAJOR),
    PROPERTY(minor, COMPUTE_CAPABILITY_MINOR),
    PROPERTY(textureAlignment, TEXTURE_ALIGNMENT),
    PROPERTY(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    PROPERTY(multiProcessorCount, MULTIPROCESSOR_COUNT),
    PROPERTY(integrated, INTEGRATED),
    PROPERTY(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    PROPERTY(surfaceAlignment, SURFACE_ALIGNMENT),
    PROPERTY(concurrentKernels, CONCURRENT_KERNELS),
    PROPERTY(ECCEnabled, ECC_ENABLED),
    PROPERTY(pciBusID, PCI_BUS_ID),
    PROPERTY(pciDeviceID, PCI_DEVICE_ID),
    PROPERTY(pciDomainID, PCI_DOMAIN_ID),
    PROPERTY(asyncEngineCount, ASYNC_ENGINE_COUNT),
    PROPERTY(unifiedAddressing, UNIFIED_ADDRESSING),
    PROPERTY(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    PROPERTY(l2CacheSize, L2_CACHE_SIZE),
    PROPERTY(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    PROPERTY(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    PROPERTY(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    PROPERTY(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    PROPERTY(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    PROPERTY(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    PROPERTY(managedMemory, MANAGED_MEMORY),
    PROPERTY(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
    PROPERTY(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    PROPERTY(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    PROPERTY(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    PROPERTY(cooperativeLaunch, COOPERATIVE_LAUNCH),
    PROPERTY(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    PROPERTY(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    PROPERTY(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    PROPERTY(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
    PROPERTY(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    PROPERTY(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
    PROPERTY(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    PROPERTY(clusterLaunch, CLUSTER_LAUNCH),
    PROPERTY(deviceNumaId, NUMA_ID),
    PROPERTY(hostNumaId, HOST_NUMA_ID),
};

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    cudaError_t error = runtime_load();
    if (error != cudaSuccess)
        return error;
    if (out == NULL)
        return runtime_record(cudaErrorInvalidValue);
    memset(out, 0, sizeof *out);
    CUresult result = driver.cuDeviceGetName(out->name, sizeof out->name, device);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetUuid_v2((CUuuid *)&out->uuid, device);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceTotalMem_v2(&out->totalGlobalMem, device);
    for (size_t i = 0; i < sizeof properties / sizeof *properties && result == CUDA_SUCCESS; i++) {
        int value = 0;
        result = driver.cuDeviceGetAttribute(&value, properties[i].attribute, device);
        size_t wide = (size_t)value;
        void *field = (char *)out + properties[i].offset;
        if (properties[i].bytes == sizeof wide)
            memcpy(field, &wide, sizeof wide);
        else
            memcpy(field, &value, sizeof value);
    }
    return runtime_result(result);
}

FORWARD_LOADED(cudaDeviceGetPCIBusId, (char *text, int length, int device), cuDeviceGetPCIBusId(text, length, device))
FORWARD_LOADED(cudaDeviceCanAccessPeer, (int *can, int device, int peer), cuDeviceCanAccessPeer(can, device, peer))
FORWARD(cudaDeviceGetLimit, (size_t * value, enum cudaLimit limit), cuCtxGetLimit(value, (CUlimit)limit))
FORWARD(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value), cuCtxSetLimit((CUlimit)limit, value))
FORWARD(cudaDeviceGetCacheConfig, (enum cudaFuncCache * config), cuCtxGetCacheConfig((CUfunc_cache *)config))
FORWARD(cudaDeviceSetCacheConfig, (enum cudaFuncCache config), cuCtxSetCacheConfig((CUfunc_cache)config))

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    CUcontext context;
    cudaError_t error = runtime_enter();
    if (error == cudaSuccess)
        error = runtime_result(runtime_primary(peer, &context));
    return error != cudaSuccess ? error : runtime_result(driver.cuCtxEnablePeerAccess(context, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    CUcontext context;
    cudaError_t error = runtime_enter();
    if (error == cudaSuccess)
        error = runtime_result(runtime_primary(peer, &context));
    return error != cudaSuccess ? error : runtime_result(driver.cuCtxDisablePeerAccess(context));
}

FORWARD_LOADED(cudaDeviceGetByPCIBusId, (int *device, const char *text), cuDeviceGetByPCIBusId(device, text))
FORWARD_LOADED(cudaDeviceGetP2PAttribute, (int *value, enum cudaDeviceP2PAttr attribute, int from, int to),
               cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attribute, from, to))

FORWARD(cudaCtxResetPersistingL2Cache, (void), cuCtxResetPersistingL2Cache())
FORWARD_LOADED(cudaDeviceGetHostAtomicCapabilities,
               (unsigned int *capabilities, const enum cudaAtomicOperation *operations, unsigned int count, int device),
               cuDeviceGetHostAtomicCapabilities(capabilities, (const CUatomicOperation *)operations, count, device))
FORWARD_LOADED(cudaDeviceGetP2PAtomicCapabilities,
               (unsigned int *capabilities, const enum cudaAtomicOperation *operations, unsigned int count, int from,
                int to),
               cuDeviceGetP2PAtomicCapabilities(capabilities, (const CUatomicOperation *)operations, count, from, to))
