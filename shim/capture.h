/* Is work on a stream being captured into a graph instead of run? Costs a driver call only while some capture of
 * the process is open. */
#pragma once
#include <cuda.h>
#include <stdbool.h>

bool capture_is_active(CUstream stream);
