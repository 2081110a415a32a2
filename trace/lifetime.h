/* What was held when, computed from one recorded iteration. */
#pragma once
#include "trace/file.h"

struct lifetime {
    uint32_t position_count; /* operation_count: one entry per operation, as it runs */
    uint64_t *demand;        /* bytes held, fixed bytes included */
    uint32_t peak_position;  /* first one with the highest demand */
    uint32_t *last_read;     /* per version: last operation that reads it, TRACE_NONE: none */
    uint32_t *ends;          /* per version: position from which it is gone: replaced, or its allocation freed */
};

/* False if there is no memory. To be released with lifetime_release. */
bool lifetime_make(const struct trace_recorded *recorded, struct lifetime *out);
void lifetime_release(struct lifetime *lifetime);

/* True if the version's bytes are held while operation `position` runs. */
bool lifetime_holds(const struct trace_recorded *recorded, const struct lifetime *lifetime, uint32_t version,
                    uint32_t position);
