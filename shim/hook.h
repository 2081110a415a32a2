/* What every hook file uses. A hook asks gate_enter() first and forwards if it says no; after it said yes, every
 * way out goes through gate_leave(). Not for other files. */
#pragma once
#include "shim/driver.h"
#include "shim/engine.h"
#include "shim/gate.h"
#include "shim/hooks.h"

/* Streams in their canonical form, see launch.h. */
static inline CUstream stream_legacy(CUstream stream)
{
    return stream ? stream : CU_STREAM_LEGACY;
}

static inline CUstream stream_per_thread(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

/* Both forms of a function with a parameter `stream`, made from on_NAME, which takes a canonical stream. */
#define STREAM_PAIR(name, parameters, arguments)                                                                       \
    CUresult hook_##name parameters                                                                                    \
    {                                                                                                                  \
        stream = stream_legacy(stream);                                                                                \
        return on_##name arguments;                                                                                    \
    }                                                                                                                  \
    CUresult hook_##name##_ptsz parameters                                                                             \
    {                                                                                                                  \
        stream = stream_per_thread(stream);                                                                            \
        return on_##name arguments;                                                                                    \
    }
