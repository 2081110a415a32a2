#pragma once
#include "tests/device/stream.h"

/* Checks a launch, compiles its function and copies its arguments. */
CUresult launch_make_work(const CUlaunchConfig *config, CUfunction handle, void *const *params, void *const *extra,
                          bool is_cooperative, struct work **out);
