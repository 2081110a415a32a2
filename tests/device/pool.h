/* Pools as objects (struct pool is memory.h's). */
#pragma once
#include "tests/device/memory.h"

CUresult pool_find(CUmemoryPool handle, struct pool **out);
/* A pool on a device, with properties that were checked. */
struct pool *pool_new(const CUmemPoolProps *properties);
