/* Contexts: waiting for all of one, and ending one. */
#include "shim/hook.h"

#include "shim/inside.h"

CUresult hook_cuCtxSynchronize(void)
{
    if (!gate_enter())
        return driver.cuCtxSynchronize();
    return gate_leave(engine_after_sync(driver.cuCtxSynchronize()));
}

CUresult hook_cuCtxSynchronize_v2(CUcontext context)
{
    if (!gate_enter())
        return driver.cuCtxSynchronize_v2(context);
    return gate_leave(engine_after_sync(driver.cuCtxSynchronize_v2(context)));
}

static CUresult destroy(CUcontext context, CUresult (*forward)(CUcontext))
{
    if (context == NULL || !gate_enter())
        return forward(context);
    engine_context_destroyed(context);
    return gate_leave(forward(context));
}

CUresult hook_cuCtxDestroy(CUcontext context)
{
    return destroy(context, driver.cuCtxDestroy);
}

CUresult hook_cuCtxDestroy_v2(CUcontext context)
{
    return destroy(context, driver.cuCtxDestroy_v2);
}

CUresult hook_cuCtxDetach(CUcontext context)
{
    return destroy(context, driver.cuCtxDetach);
}

/* The primary context of `device` if it is alive; taking and giving back one reference leaves it as it was. */
static CUcontext primary_context(CUdevice device)
{
    unsigned flags = 0;
    int is_active = 0;
    CUcontext context = NULL;
    if (driver.cuDevicePrimaryCtxGetState(device, &flags, &is_active) != CUDA_SUCCESS || !is_active)
        return NULL;
    if (driver.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
        return NULL;
    driver.cuDevicePrimaryCtxRelease_v2(device);
    return context;
}

/* Only the last of many releases ends the context, and the driver tells only afterwards which one that was. */
static CUresult release(CUdevice device, CUresult (*forward)(CUdevice))
{
    if (!gate_enter())
        return forward(device);
    CUcontext context = primary_context(device);
    CUresult result = forward(device);
    unsigned flags = 0;
    int is_active = 1;
    if (context && result == CUDA_SUCCESS &&
        driver.cuDevicePrimaryCtxGetState(device, &flags, &is_active) == CUDA_SUCCESS && !is_active)
        engine_context_destroyed(context);
    return gate_leave(result);
}

CUresult hook_cuDevicePrimaryCtxRelease(CUdevice device)
{
    return release(device, driver.cuDevicePrimaryCtxRelease);
}

CUresult hook_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return release(device, driver.cuDevicePrimaryCtxRelease_v2);
}

static CUresult reset(CUdevice device, CUresult (*forward)(CUdevice))
{
    if (!gate_enter())
        return forward(device);
    CUcontext context = primary_context(device);
    if (context)
        engine_context_destroyed(context);
    return gate_leave(forward(device));
}

CUresult hook_cuDevicePrimaryCtxReset(CUdevice device)
{
    return reset(device, driver.cuDevicePrimaryCtxReset);
}

CUresult hook_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return reset(device, driver.cuDevicePrimaryCtxReset_v2);
}
