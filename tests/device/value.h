/* Stream memory operations: a word of memory written by the stream, or waited for by it. */
#pragma once
#include "tests/device/stream.h"

#define VALUE_OPERATIONS_MAX 255

/* One piece of work per operation, linked by next, in their order. */
CUresult value_make_work(const CUstreamBatchMemOpParams *operations, unsigned count, struct work **out);
/* What such a piece of work was asked for. */
CUstreamBatchMemOpParams value_describe(const struct work *work);
/* The condition holds now. A word that cannot be read counts as there; *error then says why. */
bool value_is_there(const struct value_work *value, CUresult *error);
