/* Calls that run kernels and host functions. */
#include "shim/hook.h"

#include "shim/arguments.h"
#include "shim/capture.h"

#include <string.h>

#include "shim/inside.h"

enum launch_form { FORM_PLAIN, FORM_EXTENDED, FORM_COOPERATIVE };

/* The call as the program made it, but for its stream, which is canonical. */
struct launch_call {
    enum launch_form form;
    CUfunction function;
    CUlaunchConfig config;
    void **parameters, **extra;
};

static CUresult forward_launch(void *opaque)
{
    const struct launch_call *call = opaque;
    const CUlaunchConfig *config = &call->config;
    switch (call->form) {
    case FORM_PLAIN:
        return driver.cuLaunchKernel(call->function, config->gridDimX, config->gridDimY, config->gridDimZ,
                                     config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes,
                                     config->hStream, call->parameters, call->extra);
    case FORM_COOPERATIVE:
        return driver.cuLaunchCooperativeKernel(call->function, config->gridDimX, config->gridDimY, config->gridDimZ,
                                                config->blockDimX, config->blockDimY, config->blockDimZ,
                                                config->sharedMemBytes, config->hStream, call->parameters);
    default:
        return driver.cuLaunchKernelEx(config, call->function, call->parameters, call->extra);
    }
}

/* A kernel that may start before the one in front of it has ended could write into memory that has just changed owner:
 * stream order holds for all of them. `attributes` becomes the call's own list. */
static void keep_stream_order(struct launch_call *call, CUlaunchAttribute attributes[LAUNCH_MAX_ATTRIBUTES])
{
    unsigned count = 0;
    if (call->form != FORM_EXTENDED || call->config.numAttrs == 0)
        return;
    for (unsigned i = 0; i < call->config.numAttrs; i++)
        if (call->config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            attributes[count++] = call->config.attrs[i];
    call->config.attrs = attributes;
    call->config.numAttrs = count;
}

/* The engine reads `uses` and `arguments` only during the call; they live here. */
static CUresult submit(struct launch_call *call, const struct function_facts *facts, uint32_t argument_bytes,
                       bool is_opaque)
{
    struct use uses[LAUNCH_MAX_USES];
    unsigned char arguments[argument_bytes + 1] __attribute__((aligned(16)));
    CUlaunchAttribute attributes[LAUNCH_MAX_ATTRIBUTES];
    if (!is_opaque)
        keep_stream_order(call, attributes);
    struct operation operation = {
        .kind = OPERATION_LAUNCH,
        .stream = call->config.hStream,
        .arguments = arguments,
        .argument_bytes = argument_bytes,
        .uses = uses,
        .facts = facts,
        .config = call->config,
        .is_opaque = is_opaque,
        .is_captured = capture_is_active(call->config.hStream),
        .forward = forward_launch,
        .call = call,
    };
    if (!is_opaque) {
        CUdeviceptr begin, end;
        engine_arena(&begin, &end);
        arguments_read(facts, call->parameters, call->extra, arguments);
        operation.is_opaque = !launch_find_uses(&operation, begin, end);
    }
    return engine_submit(&operation);
}

static CUresult launch(struct launch_call *call)
{
    if (call->function == NULL || !gate_enter())
        return forward_launch(call);
    const struct function_facts *facts = launch_facts(call->function);
    int64_t bytes = arguments_bytes(facts, call->parameters, call->extra);
    bool is_opaque = bytes < 0 || call->config.numAttrs > LAUNCH_MAX_ATTRIBUTES;
    return gate_leave(submit(call, facts, is_opaque ? 0 : (uint32_t)bytes, is_opaque));
}

static CUresult on_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                  CUstream stream, void **parameters, void **extra)
{
    struct launch_call call = {FORM_PLAIN,
                               function,
                               {.gridDimX = grid_x,
                                .gridDimY = grid_y,
                                .gridDimZ = grid_z,
                                .blockDimX = block_x,
                                .blockDimY = block_y,
                                .blockDimZ = block_z,
                                .sharedMemBytes = shared_bytes,
                                .hStream = stream},
                               parameters,
                               extra};
    return launch(&call);
}

STREAM_PAIR(cuLaunchKernel,
            (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
             unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra),
            (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, extra))

static CUresult on_cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                             unsigned block_x, unsigned block_y, unsigned block_z,
                                             unsigned shared_bytes, CUstream stream, void **parameters)
{
    CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    struct launch_call call = {FORM_COOPERATIVE,
                               function,
                               {.gridDimX = grid_x,
                                .gridDimY = grid_y,
                                .gridDimZ = grid_z,
                                .blockDimX = block_x,
                                .blockDimY = block_y,
                                .blockDimZ = block_z,
                                .sharedMemBytes = shared_bytes,
                                .hStream = stream,
                                .attrs = &cooperative,
                                .numAttrs = 1},
                               parameters,
                               NULL};
    return launch(&call);
}

STREAM_PAIR(cuLaunchCooperativeKernel,
            (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
             unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters),
            (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters))

static CUresult launch_extended(const CUlaunchConfig *config, CUstream stream, CUfunction function, void **parameters,
                                void **extra)
{
    struct launch_call call = {FORM_EXTENDED, function, *config, parameters, extra};
    call.config.hStream = stream;
    return launch(&call);
}

CUresult hook_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    if (config == NULL)
        return driver.cuLaunchKernelEx(config, function, parameters, extra);
    return launch_extended(config, stream_legacy(config->hStream), function, parameters, extra);
}

CUresult hook_cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    if (config == NULL)
        return driver.cuLaunchKernelEx_ptsz(config, function, parameters, extra);
    return launch_extended(config, stream_per_thread(config->hStream), function, parameters, extra);
}

/* Calls whose arguments are not in hand: the engine pins whatever they might touch. */
static CUresult submit_opaque(CUfunction function, CUstream stream, bool is_multi, CUresult (*forward)(void *),
                              void *call)
{
    struct use no_use = {0};
    unsigned char no_argument = 0;
    struct operation operation = {
        .kind = OPERATION_LAUNCH,
        .stream = stream,
        .arguments = &no_argument,
        .uses = &no_use,
        .facts = launch_facts(function),
        .config = {.hStream = stream},
        .is_opaque = true,
        .is_cooperative_multi = is_multi,
        .is_captured = capture_is_active(stream),
        .forward = forward,
        .call = call,
    };
    return engine_submit(&operation);
}

struct multi_call {
    CUDA_LAUNCH_PARAMS *list;
    unsigned count, flags;
};

static CUresult forward_multi(void *opaque)
{
    const struct multi_call *call = opaque;
    return driver.cuLaunchCooperativeKernelMultiDevice(call->list, call->count, call->flags);
}

CUresult hook_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned count, unsigned flags)
{
    struct multi_call call = {list, count, flags};
    if (list == NULL || count == 0 || !gate_enter())
        return forward_multi(&call);
    return gate_leave(submit_opaque(list[0].function, stream_legacy(list[0].hStream), true, forward_multi, &call));
}

struct old_call {
    CUfunction function;
    int width, height;
    CUstream stream;
};

static CUresult forward_old(void *opaque)
{
    const struct old_call *call = opaque;
    return driver.cuLaunch(call->function);
}

static CUresult forward_old_grid(void *opaque)
{
    const struct old_call *call = opaque;
    return driver.cuLaunchGrid(call->function, call->width, call->height);
}

static CUresult forward_old_grid_async(void *opaque)
{
    const struct old_call *call = opaque;
    return driver.cuLaunchGridAsync(call->function, call->width, call->height, call->stream);
}

static CUresult launch_old(struct old_call *call, CUresult (*forward)(void *))
{
    if (call->function == NULL || !gate_enter())
        return forward(call);
    return gate_leave(submit_opaque(call->function, call->stream, false, forward, call));
}

CUresult hook_cuLaunch(CUfunction function)
{
    struct old_call call = {function, 1, 1, CU_STREAM_LEGACY};
    return launch_old(&call, forward_old);
}

CUresult hook_cuLaunchGrid(CUfunction function, int width, int height)
{
    struct old_call call = {function, width, height, CU_STREAM_LEGACY};
    return launch_old(&call, forward_old_grid);
}

CUresult hook_cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    struct old_call call = {function, width, height, stream_legacy(stream)};
    return launch_old(&call, forward_old_grid_async);
}

/* The arguments of the old launches, given piece by piece: a pointer among them is pinned as it comes. */
CUresult hook_cuParamSetv(CUfunction function, int offset, void *value, unsigned bytes)
{
    if (value == NULL || !gate_enter())
        return driver.cuParamSetv(function, offset, value, bytes);
    CUresult result = engine_scan(value, bytes, 0);
    if (result == CUDA_SUCCESS)
        result = driver.cuParamSetv(function, offset, value, bytes);
    return gate_leave(result);
}

/* Host functions in stream order read what was copied before them. */
static CUresult on_cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    if (!gate_enter())
        return driver.cuLaunchHostFunc(stream, function, data);
    if (!capture_is_active(stream))
        engine_before_host_function(stream);
    return gate_leave(driver.cuLaunchHostFunc(stream, function, data));
}

STREAM_PAIR(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data), (stream, function, data))

static CUresult on_cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned flags)
{
    if (!gate_enter())
        return driver.cuStreamAddCallback(stream, callback, data, flags);
    if (!capture_is_active(stream))
        engine_before_host_function(stream);
    return gate_leave(driver.cuStreamAddCallback(stream, callback, data, flags));
}

STREAM_PAIR(cuStreamAddCallback, (CUstream stream, CUstreamCallback callback, void *data, unsigned flags),
            (stream, callback, data, flags))
